#!/usr/bin/env python3
"""deploy/systemd/sluice.service under a real systemd, in a container of Debian's own packages that podman runs:
deploy/install puts it in place, then it starts, reloads, drains, crashes and comes back, as an operator would have it.

Wants root, podman, runc and mmdebstrap; SLUICE_SYSTEMD (build-systemd) is where the container's files are kept. The first
run makes them, in half a minute; they are made anew when they are a week old. A gateway with sanitizers is not taken: the
unit allows no memory that can be written and run.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

WORK = os.path.abspath(os.environ.get("SLUICE_SYSTEMD", os.path.join(harness.SOURCE, "build-systemd")))
BASE, NAME, IMAGE = os.path.join(WORK, "base.tar"), "sluice-systemd", "localhost/systemd:local"
PODMAN = ["podman", "--root", os.path.join(WORK, "storage"), "--runroot", os.path.join(WORK, "run"),
          "--storage-driver", "overlay"]
ENVIRONMENT = {**os.environ, "CONTAINERS_CONF": os.path.join(WORK, "containers.conf")}
WEEK_S = 7 * 86400
# Without cgroup v2 or the right to raise limits, as in many CI machines.
CONF = """[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "file"
"""
CONFIG, DROP_IN = "/etc/sluice/sluice.yaml", "/etc/systemd/system/sluice.service.d/own.conf"
ADMIN, PROVIDER = "http://127.0.0.1:9090", "http://127.0.0.1:8000"
REQUEST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
    "maxTokens": 100, "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}]}})


def podman(*args, stdin=None):
    return subprocess.run([*PODMAN, *args], capture_output=True, text=True, check=False, env=ENVIRONMENT, input=stdin)


def libraries():
    """The packages that deploy/install tells who brings a binary."""
    with open(os.path.join(harness.SOURCE, "deploy/install"), encoding="utf-8") as file:
        return re.search(r"its libraries are those of: ([^\"]+)\"", file.read())[1].split()


def make_image():
    os.makedirs(WORK, exist_ok=True)
    with open(ENVIRONMENT["CONTAINERS_CONF"], "w", encoding="utf-8") as file:
        file.write(CONF)
    fresh = os.path.exists(BASE) and time.time() - os.stat(BASE).st_mtime < WEEK_S
    if not fresh:
        sources = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"]
        packages = ["systemd", "systemd-sysv", "dbus", "curl", "ca-certificates", *libraries()]
        subprocess.run(["mmdebstrap", "--quiet", "--format=tar", "--variant=minbase", "--include=" + ",".join(packages),
                        "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
                        "--dpkgopt=path-exclude=/usr/share/doc/*", "bookworm", BASE + ".new",
                        next(path for path in sources if os.path.exists(path))], check=True)
        os.replace(BASE + ".new", BASE)
    if not fresh or podman("image", "exists", IMAGE).returncode != 0:
        subprocess.run([*PODMAN, "import", "--quiet", BASE, IMAGE], check=True, stdout=subprocess.DEVNULL,
                       env=ENVIRONMENT)


def inside(*argv, stdin=None):
    return podman("exec", "--interactive", NAME, *argv, stdin=stdin)


def boot():
    """None, or why there is no systemd."""
    podman("rm", "--force", "--time", "0", NAME)  # of a run that was killed
    run = podman("run", "--detach", "--name", NAME, "--network", "none", "--privileged", "--systemd=always",
                 "--volume", harness.SOURCE + ":/src:ro", "--volume", harness.BIN + ":/sluice:ro",
                 "--volume", harness.SIM + ":/provider_sim:ro", IMAGE, "/sbin/init")
    if run.returncode != 0:
        return run.stderr.strip()
    try:
        harness.wait_for(lambda: inside("systemctl", "is-system-running").stdout.strip() == "running",
                         "systemd is running", 60)
    except harness.Failure:
        return "systemd does not come up here: " + podman("logs", NAME).stdout[-500:]
    return None


class Unit(harness.Case):
    """In the order of their numbers, one service."""

    def ok(self, *argv, stdin=None):
        run = inside(*argv, stdin=stdin)
        self.assertEqual(run.returncode, 0, f"{argv}\n{run.stdout}{run.stderr}\n{self.journal()}")
        return run.stdout

    def journal(self):
        return inside("journalctl", "--no-pager", "--output", "cat", "--unit", "sluice").stdout

    def property(self, name):
        return self.ok("systemctl", "show", "--value", "--property", name, "sluice").strip()

    def pids(self):
        """The supervisor and its server."""
        main = self.property("MainPID")
        return [main, *inside("cat", f"/proc/{main}/task/{main}/children").stdout.split()]

    def readyz(self):
        return inside("curl", "-sS", "--max-time", "5", ADMIN + "/readyz").stdout

    def wait_ready(self):
        return harness.wait_for(lambda: re.match("ready, configuration ([0-9a-f]{16})", self.readyz()), "ready")[1]

    def ask(self):
        return ["curl", "-sS", "--max-time", "20", "-H", "Content-Type: application/json", "-H",
                "Authorization: Bearer " + Unit.key, "-d", REQUEST, "http://127.0.0.1:8080/v1/sampling"]

    def assert_served(self):
        answer = self.ok(*self.ask())
        self.assertEqual(json.loads(answer)["result"]["stopReason"], "endTurn", answer)

    def edit(self, pattern, replacement):
        text, count = re.subn(pattern, replacement, self.ok("cat", CONFIG))
        self.assertEqual(count, 1, pattern)
        self.ok("sh", "-c", f"cat >{CONFIG}", stdin=text)

    def test_1_the_installer_starts_it_and_it_is_ready(self):
        said = self.ok("/src/deploy/install", "--binary", "/sluice")
        Unit.key = re.search(r"kept nowhere: (\S+)", said)[1]
        self.assertIn("active (running)", said)
        self.wait_ready()
        self.assertEqual(self.ok("systemctl", "is-enabled", "sluice").strip(), "enabled")
        self.assertEqual(self.property("NRestarts"), "0")

    def test_2_it_is_confined(self):
        uid = self.ok("id", "-u", "sluice").strip()
        pids = self.pids()
        self.assertEqual(len(pids), 2)
        for pid in pids:
            status = {name: value.split() for name, _, value in
                      (line.partition(":") for line in self.ok("cat", f"/proc/{pid}/status").splitlines())}
            self.assertEqual(status["Uid"], [uid] * 4)
            self.assertEqual((status["CapEff"], status["CapPrm"], status["CapBnd"]), (["0" * 16],) * 3)
            self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), (["1"], ["2"]))
            self.assertRegex(self.ok("cat", f"/proc/{pid}/limits"), r"Max core file size +0 +0 ")
        self.assertEqual(self.ok("stat", "-c", "%U:%G %a", "/run/sluice", "/run/sluice/admin.sock"),
                         "sluice:sluice 750\nsluice:sluice 600\n")

    def test_3_a_reload_takes_the_configuration_over(self):
        self.ok("systemd-run", "--quiet", "--unit", "provider", "/provider_sim", "--port", "8000")
        before, pids = self.wait_ready(), self.pids()
        self.edit("https://api.anthropic.com", PROVIDER)
        self.ok("systemctl", "reload", "sluice")
        harness.wait_for(lambda: before not in self.readyz(), "another configuration")
        self.assert_served()
        self.edit("(?m)^store:", "stroe:")
        self.assertNotEqual(inside("systemctl", "reload", "sluice").returncode, 0)
        self.edit("(?m)^stroe:", "store:")
        self.ok("systemctl", "reload", "sluice")
        self.assert_served()
        self.assertEqual(self.pids(), pids)

    def test_4_a_server_that_crashes_is_replaced_by_the_supervisor(self):
        supervisor, server = self.pids()
        self.ok("sh", "-c", "kill -KILL " + server)
        harness.wait_for(lambda: self.pids()[1:] not in ([], [server]), "another server")
        self.wait_ready()
        self.assert_served()
        self.assertEqual(self.pids()[0], supervisor)
        self.assertEqual(self.property("NRestarts"), "0")

    def test_5_a_supervisor_that_crashes_is_replaced_by_systemd(self):
        supervisor, server = self.pids()
        self.ok("sh", "-c", "kill -KILL " + supervisor)
        harness.wait_for(lambda: self.property("NRestarts") == "1" and self.property("MainPID") not in ("0", supervisor),
                         "a restart")
        self.wait_ready()
        self.assert_served()
        self.assertNotIn(server, self.pids())

    def test_6_stop_drains(self):
        self.ok("curl", "-fsS", "-X", "POST", "--data", "latency-3s", PROVIDER + "/default")
        asked = subprocess.Popen([*PODMAN, "exec", NAME, *self.ask()], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.addCleanup(asked.stdout.close)
        harness.wait_for(lambda: "\nsluice_in_flight 1\n" in self.ok("curl", "-sS", ADMIN + "/metrics"), "in flight")
        self.ok("systemctl", "stop", "sluice")
        self.assertEqual(json.loads(asked.communicate()[0])["result"]["stopReason"], "endTurn")
        self.assertEqual((self.property("ActiveState"), self.property("Result"), self.property("ExecMainStatus")),
                         ("inactive", "success", "0"))
        self.assertNotIn("cannot be held off", self.journal())

    def test_7_a_configuration_with_a_mistake_does_not_start_and_is_explained(self):
        self.edit("(?m)^store:", "stroe:")
        self.assertNotEqual(inside("systemctl", "start", "sluice").returncode, 0)
        self.assertRegex(self.journal(), r"sluice\.yaml:\d+: stroe: is no setting")
        self.edit("(?m)^stroe:", "store:")
        harness.wait_for(lambda: self.property("ActiveState") != "activating", "the end of its attempts")
        self.ok("systemctl", "reset-failed", "sluice")
        self.ok("systemctl", "start", "sluice")
        self.wait_ready()

    def test_8_a_low_port_wants_the_drop_in_that_the_unit_tells(self):
        told = re.search(r"a drop-in: (\S+) and (PrivateUsers=no), and (CapabilityBoundingSet=) with the same",
                         self.ok("cat", "/etc/systemd/system/sluice.service").replace("\n# ", " "))
        capability = told[1].partition("=")[2]
        self.edit("127.0.0.1:8080", "127.0.0.1:80")
        self.ok("sh", "-c", f"mkdir -p {os.path.dirname(DROP_IN)} && cat >{DROP_IN}",
                stdin=f"[Service]\n{told[1]}\n{told[2]}\n{told[3]}{capability}\n")
        self.ok("systemctl", "daemon-reload")
        self.ok("systemctl", "restart", "sluice")
        self.wait_ready()
        self.assertEqual(self.ok("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-H",
                                 "Content-Type: application/json", "-d", "{}", "http://127.0.0.1/v1/sampling"), "401")

    def test_9_uninstall_stops_it_and_leaves_the_configuration_unless_told(self):
        self.ok("/src/deploy/install", "--uninstall")
        self.assertNotEqual(inside("systemctl", "cat", "sluice").returncode, 0)
        self.ok("test", "-e", CONFIG)
        self.ok("/src/deploy/install", "--uninstall", "--purge")
        self.assertNotEqual(inside("test", "-e", CONFIG).returncode, 0)
        self.assertNotEqual(inside("id", "sluice").returncode, 0)


def missing():
    if os.geteuid() != 0:
        return "only root can run systemd in a container"
    for command in ("podman", "runc", "mmdebstrap"):
        if shutil.which(command) is None:
            return f"there is no {command}"
    make_image()
    return boot()


if __name__ == "__main__":
    try:
        why = missing()
        if why:
            print("NOT RUN:", why)
            sys.exit(77)
        harness.main()
    finally:
        podman("rm", "--force", "--time", "0", NAME)
        # podman leaves it mounted, and then nobody could remove the directory.
        subprocess.run(["umount", os.path.join(WORK, "storage/overlay")], stderr=subprocess.DEVNULL, check=False)
