#!/usr/bin/env python3
"""docker/compose.yaml under a real Docker engine: the command at its top brings the stack up, the request below it is
answered, every part finds every other, nobody has more rights than it says, and it drains and leaves nothing behind.

Wants root, mmdebstrap and iptables, and the ports that the stack publishes; SLUICE_STACK (build-stack) is where engine and
images are kept, made anew when they are a week old. There is no registry: debian:bookworm-slim, Redis and Prometheus are
made of Debian's packages, under the names and for the users that compose.yaml has. Nobody packages Grafana: in its place
stands a program that shows the files which it would read. A page's command is changed in what a machine without a registry
needs: builds have its network, and the limit of open files is not raised above its own.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import docker_engine  # noqa: E402
import documents  # noqa: E402
import harness  # noqa: E402

try:
    import yaml
except ImportError:  # of a Python that Debian's packages are not installed for
    yaml = None

WORK = os.path.abspath(os.environ.get("SLUICE_STACK", os.path.join(harness.SOURCE, "build-stack")))
BASE = "debian:bookworm-slim"
WEEK_S = 7 * 86400
OVERRIDE = {"services": {"sluice": {"build": {"network": "host"}, "ulimits": {"nofile": {"soft": 4096, "hard": 4096}}},
                         "provider": {"build": {"network": "host"}}}}
INSTALL = f"FROM {BASE}\nRUN apt-get update -qq && apt-get install -y -qq --no-install-recommends "
# As the images of those names have it, as far as compose.yaml can tell: user, entry point, folder.
STAND_INS = {
    "redis": INSTALL + "redis-server && mkdir /data && chown 999:999 /data\nWORKDIR /data\n",
    "prometheus": INSTALL + "prometheus && mkdir -p /prometheus && chown nobody /prometheus\nUSER nobody\nVOLUME /prometheus\n"
                            'WORKDIR /prometheus\nENTRYPOINT ["/bin/prometheus"]\n',
    "grafana": INSTALL + 'python3-minimal libpython3-stdlib\nUSER 472\n'
                         'ENTRYPOINT ["python3", "-m", "http.server", "3000", "--directory", "/"]\n'}


def compose_yaml():
    return documents.read("docker/compose.yaml")


def services():
    return yaml.safe_load(compose_yaml())["services"]


def command(program):
    """One of the two at the top of compose.yaml, as the shell has it."""
    return re.search(rf"^#   ({program} .*(?:\n#     .*)*)", compose_yaml(), re.MULTILINE)[1].replace("\n#", "\n")


def published():
    return [int(port.split(":")[1]) for service in services().values() for port in service.get("ports", [])]


def get(url):
    """Status and text; 0 and nothing where nobody listens."""
    try:
        answer = harness.request("GET", url)
    except OSError:
        return 0, ""
    return answer.status, answer.body.decode()


class Stack(harness.Case):
    """In the order of their numbers, one stack."""

    def compose(self, *args):
        return Stack.engine.ok("compose", *Stack.files, *args)

    def inspect(self, service, what):
        return Stack.engine.ok("inspect", "--format", "{{" + what + "}}", f"docker-{service}-1").strip()

    def address(self, service):
        return self.inspect(service, '(index .NetworkSettings.Networks "docker_default").IPAddress')

    def pid(self, service):
        return int(self.inspect(service, ".State.Pid"))

    def ask(self):
        run = subprocess.run(["bash", "-c", command("curl")], capture_output=True, text=True, check=True)
        return run.stdout

    def assert_served(self):
        self.assertEqual(json.loads(self.ask()).get("result", {}).get("stopReason"), "endTurn", Stack.engine.log())

    def prometheus(self, path, **query):
        status, body = get(f"http://127.0.0.1:9091/api/v1/{path}?{urllib.parse.urlencode(query)}")
        self.assertEqual(status, 200, body)
        return json.loads(body)["data"]

    def metrics(self):
        return harness.Metrics(get("http://127.0.0.1:9090/metrics")[1])

    def test_1_one_command_brings_it_up(self):
        words = command("docker").split()
        self.assertEqual([words], documents.fence("deploy/docs/image.md", "docker compose").commands())
        self.assertIn(" ".join(words), documents.read("README.md"))
        self.assertEqual(words[:4], ["docker", "compose", "-f", "docker/compose.yaml"])
        self.assertEqual(words[4:], ["up", "--build", "--wait"])
        self.compose(*words[4:])
        listed = [json.loads(line) for line in self.compose("ps", "--format", "json").splitlines()]
        self.assertEqual({one["Service"]: one["State"] for one in listed}, {name: "running" for name in services()})
        self.assertEqual({one["Service"] for one in listed if one["Health"] == "healthy"}, {"sluice", "redis"})

    def test_2_the_request_at_its_top_is_answered_and_counted_in_redis(self):
        self.assert_served()
        self.assertEqual(self.metrics().find("sluice_requests_total", tenant="demo", outcome="ok"), [1])
        self.assertGreater(int(self.compose("exec", "-T", "redis", "redis-cli", "dbsize")), 0)

    def test_3_nobody_has_more_rights_than_it_says(self):
        for name in services():
            with self.subTest(name):
                with open(f"/proc/{self.pid(name)}/status", encoding="ascii") as file:
                    status = {key: value.split() for key, _, value in (line.partition(":") for line in file)}
                self.assertNotEqual(status["Uid"][0], "0")
                self.assertEqual((status["CapEff"], status["CapBnd"]), (["0" * 16], ["0" * 16]))
                self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), (["1"], ["2"]))
                self.assertEqual(self.inspect(name, ".HostConfig.ReadonlyRootfs") == "true",
                                 services()[name].get("read_only", False))
                ports = json.loads(self.inspect(name, "json .NetworkSettings.Ports"))
                outside = [binding["HostIp"] for bindings in ports.values() for binding in bindings or []]
                self.assertEqual(set(outside) - {"127.0.0.1"}, set())
        with open(f"/proc/{self.pid('sluice')}/limits", encoding="ascii") as file:
            self.assertRegex(file.read(), r"Max core file size +0 +0 ")

    def test_4_prometheus_scrapes_the_gateway_and_has_its_rules(self):
        rules = yaml.safe_load(documents.read("deploy/prometheus/rules.yml"))["groups"]
        wanted = [rule.get("alert", rule.get("record")) for group in rules for rule in group["rules"]]
        harness.wait_for(lambda: self.prometheus("query", query='up{job="sluice"}')["result"], "a scrape")
        self.assertEqual([one["value"][1] for one in self.prometheus("query", query='up{job="sluice"}')["result"]], ["1"])
        groups = self.prometheus("rules")["groups"]
        self.assertEqual([rule["name"] for group in groups for rule in group["rules"]], wanted)
        harness.wait_for(lambda: all(rule["health"] == "ok" for group in self.prometheus("rules")["groups"]
                                     for rule in group["rules"]), "every rule evaluated")
        self.assertEqual(self.prometheus("alerts")["alerts"], [])
        harness.wait_for(lambda: [one["value"][1] for one in self.prometheus(
            "query", query='sum(sluice_requests_total{tenant="demo"})')["result"]] == ["1"], "the request in Prometheus")

    def test_5_grafana_has_its_files_and_reaches_prometheus(self):
        for path, source in (("/var/lib/grafana/dashboards/service.json", "deploy/grafana/service.json"),
                             ("/var/lib/grafana/dashboards/tenant.json", "deploy/grafana/tenant.json"),
                             ("/etc/grafana/provisioning/datasources/sluice.yml",
                              "deploy/grafana/provisioning/datasources/sluice.yml"),
                             ("/etc/grafana/provisioning/dashboards/sluice.yml",
                              "deploy/grafana/provisioning/dashboards/sluice.yml")):
            self.assertEqual(get("http://127.0.0.1:3000" + path), (200, documents.read(source)))
        url = yaml.safe_load(documents.read("deploy/grafana/provisioning/datasources/sluice.yml"))["datasources"][0]["url"]
        script = f"import urllib.request; print(urllib.request.urlopen('{url}/-/ready', timeout=10).status)"
        self.assertEqual(self.compose("exec", "-T", "grafana", "python3", "-c", script).strip(), "200")

    def test_6_a_gateway_that_crashes_comes_back(self):
        with open(f"/proc/{self.pid('sluice')}/task/{self.pid('sluice')}/children", encoding="ascii") as file:
            (server,) = file.read().split()
        supervisor = self.pid("sluice")
        os.kill(int(server), 9)
        harness.wait_for(lambda: self.metrics().sum("sluice_restarts_total") == 1, "another server")
        self.assertEqual(self.pid("sluice"), supervisor)
        self.assert_served()
        os.kill(supervisor, 9)
        harness.wait_for(lambda: self.inspect("sluice", ".RestartCount") == "1", "Docker restarts it")
        harness.wait_for(lambda: self.inspect("sluice", ".State.Health.Status") == "healthy", "healthy", 60)
        self.assert_served()

    def test_7_who_comes_back_elsewhere_is_found(self):
        """As a container does that was made anew, or a pod."""
        for name in ("redis", "provider"):
            with self.subTest(name):
                before = self.address(name)
                self.compose("stop", name)
                self.addCleanup(Stack.engine.docker, "rm", "--force", "in-its-place-" + name)
                Stack.engine.ok("run", "--detach", "--name", "in-its-place-" + name, "--network", "docker_default", BASE,
                                "sleep", "infinity")
                self.compose("start", name)
                self.assertNotEqual(self.address(name), before)
                harness.wait_for(lambda: "result" in json.loads(self.ask()), "served again", 60)

    def test_8_it_drains(self):
        address = self.address("provider")
        self.assertEqual(harness.request("POST", f"http://{address}:8000/default", b"latency-3s").status, 200)
        answers, asked = self.background(self.ask)
        harness.wait_for(lambda: self.metrics().sum("sluice_in_flight") == 1, "a request in flight")
        self.compose("stop", "sluice")
        asked.join()
        self.assertEqual(json.loads(answers[0])["result"]["stopReason"], "endTurn")
        self.assertEqual(self.inspect("sluice", ".State.ExitCode"), "0", self.compose("logs", "sluice"))

    def test_9_down_leaves_nothing(self):
        self.compose("down", "--volumes")
        for what in (["ps", "--all", "--quiet"], ["volume", "ls", "--quiet"]):
            self.assertEqual(Stack.engine.ok(*what), "")
        self.assertNotIn("docker_default", Stack.engine.ok("network", "ls", "--format", "{{.Name}}"))

    def test_A_the_image_in_earnest(self):
        """The page's `docker run`, with a folder of this test as /etc/sluice, on loopback."""
        line, = documents.fence("deploy/docs/image.md", "docker run -d").commands()
        folder = self.directory()
        os.chmod(folder, 0o755)
        config = {"listen": [{"address": "0.0.0.0:8080"}], "admin": {"address": "127.0.0.1:9090"}}
        with open(os.path.join(folder, "sluice.yaml"), "w", encoding="utf-8") as file:
            yaml.safe_dump({**yaml.safe_load(documents.read("docker/compose/sluice.yaml")), "store": {"kind": "memory"},
                            **config}, file)
        Stack.engine.ok("tag", "sluice:local", "sluice")
        changed = {"/etc/sluice:/etc/sluice:ro": folder + ":/etc/sluice:ro", "nofile=65536:65536": "nofile=4096:4096",
                   "8080:8080": "127.0.0.1:8080:8080"}
        self.assertEqual(set(changed) - set(line), set())
        words = [changed.get(word, word) for word in line[1:]]
        Stack.engine.ok("network", "create", "earnest")  # the engine has no default one: it would outlive it
        self.addCleanup(Stack.engine.ok, "network", "rm", "earnest")
        self.addCleanup(Stack.engine.docker, "rm", "--force", "sluice")
        Stack.engine.ok(*words[:-1], "--network", "earnest", "--env", "PROVIDER_API_KEY=simulated-provider-key", words[-1])
        harness.wait_for(lambda: Stack.engine.ok("inspect", "--format", "{{.State.Health.Status}}", "sluice").strip() ==
                         "healthy", "healthy", 60)
        self.assertEqual(get("http://127.0.0.1:8080/v1/sampling")[0], 405)
        Stack.engine.ok("stop", "sluice")
        self.assertEqual(Stack.engine.ok("inspect", "--format", "{{.State.ExitCode}}", "sluice").strip(), "0")


# ---- the images -------------------------------------------------------------------------------------

def make_images(engine):
    """What a registry would have been asked for."""
    base = os.path.join(WORK, "base.tar")
    sources = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"]
    subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "--format=tar", "--dpkgopt=path-exclude=/usr/share/man/*",
                    "--dpkgopt=path-exclude=/usr/share/locale/*", "--dpkgopt=path-exclude=/usr/share/doc/*", "bookworm",
                    base, next(path for path in sources if os.path.exists(path))], check=True)
    engine.ok("import", base, BASE)
    os.remove(base)
    for name, recipe in STAND_INS.items():
        engine.ok("build", "--quiet", "--network", "host", "--tag", services()[name]["image"], "-", stdin=recipe)


def version_inside(engine, name, *argv):
    return re.search(r"\d+\.\d+\.\d+", engine.ok("run", "--rm", "--entrypoint", argv[0], services()[name]["image"],
                                                 *argv[1:]))[0]


def check_versions(engine):
    """Debian's are those that compose.yaml names, as far as its tags tell."""
    for name, argv in (("redis", ("redis-server", "--version")), ("prometheus", ("prometheus", "--version"))):
        tag = re.search(r":v?(\d[\d.]*)", services()[name]["image"])[1]
        version = version_inside(engine, name, *argv)
        if not f"{version}.".startswith(tag + "."):
            raise harness.Failure(f"{name}: Debian has {version}, compose.yaml {tag}")
        print(f"{name} {version}, of Debian's package")
    print("grafana: NOT the program, which nobody packages, but one that shows its files")


def missing():
    if os.geteuid() != 0:
        return "only root can run Docker"
    for program in ("mmdebstrap", "iptables"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    for port in published():
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return f"port {port}, which compose.yaml publishes, is taken"
    return None


def clear(engine):
    """Nothing but images is kept: the engine is ours alone."""
    for container in engine.ok("ps", "--all", "--quiet").split():
        engine.docker("rm", "--force", "--volumes", container)
    engine.docker("compose", *Stack.files, "down", "--volumes")
    engine.docker("network", "prune", "--force")


def main():
    if os.path.exists(WORK) and time.time() - os.stat(WORK).st_mtime > WEEK_S:
        shutil.rmtree(WORK)
    os.makedirs(WORK, exist_ok=True)
    override = os.path.join(WORK, "override.json")
    with open(override, "w", encoding="utf-8") as file:
        json.dump(OVERRIDE, file)
    engine = docker_engine.Engine(WORK)
    try:
        print(engine.version())
        Stack.engine = engine
        Stack.files = ("--file", os.path.join(harness.SOURCE, "docker/compose.yaml"), "--file", override)
        clear(engine)  # of a run that was killed
        if not all(engine.has_image(services()[name]["image"]) for name in STAND_INS):
            make_images(engine)
        check_versions(engine)
        harness.main()
    finally:
        clear(engine)
        engine.stop()


if __name__ == "__main__":
    if yaml is None and sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["python3", *sys.argv])
    why = "there is no python3-yaml" if yaml is None else missing()
    if why:
        print("NOT RUN:", why)
        sys.exit(77)
    main()
