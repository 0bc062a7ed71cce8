"""What docker/Dockerfile says, without building it, and what its page says of it; .ci/nightly image builds and runs it.

ctest: once
"""
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import documents  # noqa: E402
import harness  # noqa: E402

DOCKER = os.path.join(harness.SOURCE, "docker")


def text(name):
    with open(os.path.join(DOCKER, name), encoding="utf-8") as file:
        return file.read()


class Dockerfile(harness.Case):
    def setUp(self):
        """[(instruction, arguments)] of each stage, and those before the first."""
        lines = re.sub(r"^\s*#.*\n", "", text("Dockerfile"), flags=re.M).replace("\\\n", " ").splitlines()
        self.before, self.stages = [], {}
        rows = self.before
        for instruction, _, arguments in (line.strip().partition(" ") for line in lines if line.strip()):
            if instruction == "FROM":
                image, _, name = arguments.partition(" AS ")
                rows = self.stages[name] = []
            rows.append((instruction, " ".join(arguments.split())))
        self.final = list(self.stages.values())[-1]

    def one(self, instruction, stage=None):
        found = [arguments for name, arguments in stage or self.final if name == instruction]
        self.assertEqual(len(found), 1, instruction)
        return found[0]

    @staticmethod
    def output(*command):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def test_every_stage_has_a_name_and_a_base_that_is_said_once(self):
        base = self.one("ARG", self.before).partition("=")[2]
        self.assertRegex(base, r"^debian:bookworm-slim$")
        earlier = {"${BASE}"}
        for name, rows in self.stages.items():
            self.assertTrue(name)
            self.assertIn(rows[0][1].partition(" ")[0], earlier)
            earlier.add(name)

    def test_what_is_shipped_runs_as_nobody_who_is_anybody(self):
        for stage in ("run", "provider_sim"):
            user, group = self.one("USER", self.stages[stage]).split(":")
            self.assertGreater(int(user), 999)
            self.assertGreater(int(group), 999)

    def test_signals_reach_the_gateway_itself(self):
        self.assertEqual(json.loads(self.one("ENTRYPOINT")), ["/usr/bin/sluice"])
        self.assertEqual(json.loads(self.one("CMD")), ["serve", "--config", "/etc/sluice/sluice.yaml"])
        self.assertEqual(self.one("STOPSIGNAL"), "SIGTERM")

    def test_its_health_is_asked_without_a_shell(self):
        command = json.loads(self.one("HEALTHCHECK").partition(" CMD ")[2])
        self.assertEqual(command, ["/usr/lib/sluice/healthz"])

    def test_nothing_is_fetched_but_debian_packages(self):
        for rows in self.stages.values():
            for instruction, arguments in rows:
                self.assertNotEqual(instruction, "ADD")
                self.assertNotRegex(arguments, r"\b(curl|wget|pip|npm|git) ")
                if "apt-get install" in arguments:
                    self.assertIn("--no-install-recommends", arguments)
                    self.assertIn("rm -rf /var/lib/apt/lists/*", arguments)

    def test_it_has_the_libraries_that_the_binary_is_linked_with(self):
        if shutil.which("dpkg") is None:
            self.skipTest("not a Debian")
        installed = set(" ".join(arguments for _, arguments in self.stages["libraries"]).split())
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", self.output("readelf", "--dynamic", harness.BIN))
        paths = dict(re.findall(r"^\s+(\S+) => (\S+)", self.output("ldd", harness.BIN), re.M))
        wanted = [os.path.realpath(paths[name]) for name in needed
                  if name not in ("libc.so.6", "libm.so.6")]  # which every Debian has
        owners = set(re.findall(r"^([^:]+):", self.output("dpkg", "-S", *wanted), re.M))
        self.assertGreater(len(owners), 3)
        self.assertLessEqual(owners, installed)

    def test_what_it_copies_is_there_and_not_ignored(self):
        with open(os.path.join(harness.SOURCE, ".dockerignore"), encoding="utf-8") as file:
            let_in = set(re.findall(r"^!(.+)$", file.read(), re.M))
        for rows in self.stages.values():
            for arguments in (arguments for name, arguments in rows if name == "COPY" and "--from" not in arguments):
                for source in arguments.split()[:-1]:
                    self.assertTrue(os.path.exists(os.path.join(harness.SOURCE, source)), source)
                    self.assertTrue({source, source.partition("/")[0]} & let_in, source)


class Health(harness.Case):
    def healthz(self, address):
        return subprocess.run([os.path.join(DOCKER, "healthz")], capture_output=True, text=True, check=False,
                              env={**os.environ, "SLUICE_ADMIN_PORT": address.rpartition(":")[2]})

    def test_it_is_what_the_gateway_says(self):
        gateway = self.gateway(harness.config(self.sim()))
        self.assertEqual(self.healthz(gateway.admin).stdout, "200\n")
        self.assertEqual(self.healthz(gateway.admin).returncode, 0)
        self.assertNotEqual(self.healthz(f"127.0.0.1:{harness.free_port()}").returncode, 0)
        # Another service on that port is no gateway: a listener of requests knows no /healthz.
        self.assertNotEqual(self.healthz(gateway.url).returncode, 0)


class Page(harness.Case):
    """deploy/docs/image.md says what there is."""

    def commands(self):
        found = [command for fence in documents.fences("deploy/docs/image.md", "sh") for command in fence.commands()]
        self.assertGreater(len(found), 4)
        return found

    def test_it_builds_from_the_file_and_names_stages_that_there_are(self):
        for command in self.commands():
            for option, value in zip(command, command[1:]):
                if option in ("-f", "--file"):
                    self.assertTrue(os.path.exists(os.path.join(harness.SOURCE, value)), value)
                if option == "--target":
                    self.assertRegex(text("Dockerfile"), rf"(?m)^FROM \S+ AS {value}$")

    def test_what_it_runs_in_earnest_is_as_confined_as_the_stack(self):
        (run,) = [command for command in self.commands() if "--read-only" in command]
        given = dict(zip(run, run[1:]))
        stack = text("compose.yaml").partition("\n  provider:")[0]
        self.assertEqual((given["--cap-drop"], given["--security-opt"]), ("all", "no-new-privileges"))
        self.assertIn(f"pids_limit: {given['--pids-limit']}\n", stack)
        nofile = given["--ulimit"].removeprefix("nofile=").partition(":")[0]
        self.assertIn(f"nofile: {{soft: {nofile}, hard: {nofile}}}", stack)
        manual = subprocess.run([harness.BIN, "settings"], capture_output=True, text=True, check=True).stdout
        total_s = int(re.search(r"providers\.\*\.timeouts\.total\n.*?default (\d+)s", manual)[1])
        self.assertGreater(int(given["--stop-timeout"]), total_s + 30 + 5)  # drain's default, and the supervisor's grace


if __name__ == "__main__":
    harness.main()
