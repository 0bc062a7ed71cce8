"""docker/compose.yaml, without an engine: it is what the specification of compose allows, its parts know each other, the
programs take the arguments that it gives them, and the request at its top is answered.

ctest: once
"""

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import redis_server  # noqa: E402

try:
    import yaml
except ImportError:  # of a Python that Debian's packages are not installed for
    yaml = None
try:
    import jsonschema
except ImportError:
    jsonschema = None

DOCKER = os.path.join(harness.SOURCE, "docker")
IMAGES_LISTEN = {"redis": 6379, "prometheus": 9090, "grafana": 3000}  # by themselves; ours by what they are told


def text(name):
    with open(os.path.join(DOCKER, name), encoding="utf-8") as file:
        return file.read()


def schema():
    """Of the compose specification, as Debian's docker-compose has it (tests/run unpacks it); None without."""
    program = shutil.which("docker-compose")
    path = program and os.path.join(os.path.dirname(program), "../lib/python3/dist-packages/compose/config/compose_spec.json")
    if not path or not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def seconds(duration):
    return int(re.fullmatch(r"(\d+)s", duration)[1])


class Compose(harness.Case):
    def setUp(self):
        self.compose = yaml.safe_load(text("compose.yaml"))
        self.services = self.compose["services"]
        self.settings = yaml.safe_load(text("compose/sluice.yaml"))
        self.stages = set(re.findall(r"^FROM \S+ AS (\w+)$", text("Dockerfile"), re.MULTILINE))

    def mounts(self, service):
        """{path in the container: source}"""
        mounts = [mount.split(":") for mount in self.services[service].get("volumes", [])]
        return {target: source for source, target, *_ in mounts}

    def listens(self, service):
        """The ports at which it answers in the network of the stack."""
        if service == "sluice":
            return {int(address.rpartition(":")[2]) for address in
                    [*(one["address"] for one in self.settings["listen"]), self.settings["admin"]["address"]]}
        if service == "provider":
            return {int(re.search(r'provider_sim",.*"--port", "(\d+)"', text("Dockerfile"))[1])}
        return {IMAGES_LISTEN[service]}

    def assert_reached(self, url):
        parts = urllib.parse.urlsplit(url)
        self.assertIn(parts.hostname, self.services, url)
        self.assertIn(parts.port, self.listens(parts.hostname), url)

    def test_it_is_what_the_specification_allows(self):
        found = schema()
        if found is None or jsonschema is None:
            self.skipTest("there is no docker-compose (its schema), or no python3-jsonschema")
        judge = jsonschema.Draft7Validator(found)
        self.assertEqual([f"{list(error.path)}: {error.message}" for error in judge.iter_errors(self.compose)], [])
        self.services["redis"]["imagee"] = self.services["redis"].pop("image")
        self.assertFalse(judge.is_valid(self.compose))  # it would notice

    def test_what_is_built_is_a_stage_and_the_rest_is_pinned(self):
        for name, service in self.services.items():
            if "build" in service:
                build = service["build"]
                self.assertIn(build["target"], self.stages, name)
                self.assertTrue(os.path.exists(os.path.join(DOCKER, build["context"], build["dockerfile"])))
                self.assertTrue(service["image"].endswith(":local"), name)
            else:
                self.assertRegex(service["image"], r"^docker\.io/.*:v?[0-9]+\.[0-9]+", name)

    def test_who_is_waited_for_is_there_and_says_when_he_is_well(self):
        for name, service in self.services.items():
            for other, how in service.get("depends_on", {}).items():
                self.assertIn(other, self.services, name)
                if how["condition"] == "service_healthy":
                    self.assertIn("healthcheck", self.services[other], f"{name} waits for {other}")

    def test_nothing_is_published_but_on_loopback_and_what_is_published_listens(self):
        published = {}
        for name, service in self.services.items():
            for port in service.get("ports", []):
                address, outside, inside = port.split(":")
                self.assertEqual(address, "127.0.0.1", name)
                self.assertNotIn(outside, published)
                published[outside] = name
                self.assertIn(int(inside), self.listens(name), name)
        with open(os.path.join(harness.SOURCE, "deploy/docs/image.md"), encoding="utf-8") as file:
            told = set(re.findall(r"`(?:127\.0\.0\.1:)?(\d{4})`", file.read().partition("## A stack")[2].partition("\n## ")[0]))
        self.assertEqual(told, set(published))

    def test_nobody_has_more_rights_than_it_needs(self):
        for name, service in self.services.items():
            self.assertEqual((service["cap_drop"], service["security_opt"]), (["ALL"], ["no-new-privileges:true"]), name)
        for name in ("sluice", "provider", "redis"):
            self.assertIs(self.services[name]["read_only"], True, name)

    def test_what_it_mounts_is_there(self):
        for name in self.services:
            for target, source in self.mounts(name).items():
                if source.startswith("."):
                    self.assertTrue(os.path.exists(os.path.join(DOCKER, source)), source)
                else:
                    self.assertIn(source, self.compose["volumes"], f"{name}: {target}")

    # ---- the parts know each other ---------------------------------------------------------------

    def test_the_gateway_finds_its_provider_and_its_redis(self):
        (provider,) = self.settings["providers"].values()
        for endpoint in provider["endpoints"]:
            self.assert_reached(endpoint["url"])
        self.assert_reached(self.settings["store"]["url"])
        self.assertIn("/etc/sluice/sluice.yaml", self.mounts("sluice"))
        arguments = self.services["provider"]["command"]
        self.assertEqual(self.services["sluice"]["environment"],
                         {"PROVIDER_API_KEY": arguments[arguments.index("--api-key") + 1]})

    def test_it_has_the_time_to_drain(self):
        self.assertGreater(seconds(self.services["sluice"]["stop_grace_period"]), seconds(self.settings["drain"]) + 5)

    def test_prometheus_scrapes_the_gateway_and_loads_the_rules(self):
        configuration, mounts = yaml.safe_load(text("compose/prometheus.yml")), self.mounts("prometheus")
        self.assertIn(f"--config.file={next(path for path in mounts if path.endswith('prometheus.yml'))}",
                      self.services["prometheus"]["command"])
        for path in configuration["rule_files"]:
            self.assertEqual(os.path.normpath(os.path.join(DOCKER, mounts[path])),
                             os.path.normpath(os.path.join(harness.SOURCE, "deploy/prometheus/rules.yml")))
        (job,) = configuration["scrape_configs"]
        self.assertEqual(job["job_name"], "sluice")  # as the rules ask
        self.assert_reached("http://" + job["static_configs"][0]["targets"][0])

    def test_grafana_finds_its_dashboards_and_prometheus(self):
        mounts = self.mounts("grafana")
        provisioning = os.path.join(DOCKER, mounts["/etc/grafana/provisioning"])
        with open(os.path.join(provisioning, "datasources/sluice.yml"), encoding="utf-8") as file:
            self.assert_reached(yaml.safe_load(file)["datasources"][0]["url"])
        with open(os.path.join(provisioning, "dashboards/sluice.yml"), encoding="utf-8") as file:
            path = yaml.safe_load(file)["providers"][0]["options"]["path"]
        names = os.listdir(os.path.join(DOCKER, mounts[path]))
        self.assertLessEqual({"service.json", "tenant.json"}, set(names))

    # ---- its programs ------------------------------------------------------------------------------

    def test_prometheus_takes_its_configuration(self):
        if shutil.which("promtool") is None:
            self.skipTest("there is no promtool")
        check = subprocess.run(["promtool", "check", "config", "--syntax-only",
                                os.path.join(DOCKER, "compose/prometheus.yml")], capture_output=True, text=True,
                               check=False)
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)

    def test_redis_takes_its_arguments_and_answers_its_health_check(self):
        if not redis_server.available():
            self.skipTest("there is no redis-server")
        program, *options = self.services["redis"]["command"]
        port = harness.free_port()
        redis = harness.Process([program, *options, "--port", str(port), "--dir", self.directory()])
        self.addCleanup(redis.kill)
        redis.wait_line(lambda line: "Ready to accept connections" in line, "Redis")
        kind, *check = self.services["redis"]["healthcheck"]["test"]
        self.assertEqual((kind, check[0]), ("CMD", "redis-cli"))
        with socket.create_connection(("127.0.0.1", port), harness.PATIENCE_S) as connection:
            connection.sendall(" ".join(check[1:]).encode() + b"\r\nconfig get maxmemory-policy\r\n")
            answer = connection.makefile("rb")
            self.assertEqual(answer.readline(), b"+PONG\r\n")
            self.assertEqual([answer.readline() for _ in range(5)][-1], b"volatile-ttl\r\n")  # as deploy/docs/state.md wants it

    def test_the_request_at_its_top_is_answered(self):
        """By the gateway with its configuration, the simulator with its arguments, and a Redis."""
        if not redis_server.available():
            self.skipTest("there is no redis-server")
        sim = self.sim(*self.services["provider"]["command"])
        redis = redis_server.Redis(self)
        listen, admin = harness.free_port(), harness.free_port()
        config = text("compose/sluice.yaml")
        for shown, mine in (("0.0.0.0:8080", f"127.0.0.1:{listen}"), ("0.0.0.0:9090", f"127.0.0.1:{admin}"),
                            ("http://provider:8000", sim.url), ('"redis://redis:6379/0"', f'"{redis.url}", deadline: 5s')):
            self.assertEqual(config.count(shown), 1, shown)
            config = config.replace(shown, mine)
        path = os.path.join(self.directory(), "sluice.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(config)
        gateway = harness.Process([harness.BIN, "serve", "--config", path], env=self.services["sluice"]["environment"])
        self.addCleanup(gateway.stop)
        harness.wait_for(lambda: any("serving, configuration" in line for line in gateway.stderr), "it serves")
        command = re.search(r"^#   (curl .*(?:\n#     .*)*)", text("compose.yaml"), re.MULTILINE)[1].replace("\n#", "\n")
        self.assertIn("http://127.0.0.1:8080", command)
        run = subprocess.run(["bash", "-c", command.replace("127.0.0.1:8080", f"127.0.0.1:{listen}")], capture_output=True,
                             text=True, check=True)
        self.assertIn('"stopReason":"endTurn"', run.stdout)
        key = re.search(r"Bearer (\S+)'", command)[1]
        self.assertIn(hashlib.sha256(key.encode()).hexdigest(), config)


if __name__ == "__main__":
    if yaml is None and sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["python3", *sys.argv])
    if yaml is None:
        print("SKIPPED: there is no python3-yaml")
        sys.exit(77)
    harness.main()
