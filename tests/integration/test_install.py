"""deploy/install and deploy/systemd: below a directory, and for real on a copy of this machine's files.

ctest: once timeout=120
"""

import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

INSTALL = os.path.join(harness.SOURCE, "deploy/install")
UNIT = os.path.join(harness.SOURCE, "deploy/systemd/sluice.service")
CONFIG = "etc/sluice/sluice.yaml"
INSTALLED = {"usr/local/bin/sluice": 0o755, "etc/systemd/system/sluice.service": 0o644, CONFIG: 0o640,
             "etc/sluice/secrets/anthropic": 0o640, "etc/sluice/tenants.d/first.yaml": 0o640}

# A mount namespace of its own in which /etc, /home and /usr/local may be written and nothing of it stays.
ON_A_COPY = """
set -e
mount -t tmpfs none "$1"
for place in etc usr/local; do
    mkdir -p "$1/$place/upper" "$1/$place/work"
    mount -t overlay none -o "lowerdir=/$place,upperdir=$1/$place/upper,workdir=$1/$place/work" "/$place"
done
mount -t tmpfs -o mode=0755 none /run
"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def needs(command):
    return unittest.skipUnless(shutil.which(command), f"there is no {command}")


class Below(harness.Case):
    def install(self, root, *args, code=0):
        run = subprocess.run([INSTALL, *args], capture_output=True, text=True, check=False, cwd="/",
                             env={**os.environ, "DESTDIR": root})
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stdout + run.stderr

    def files(self, root):
        found = {}
        for directory, _, names in os.walk(root):
            for name in names:
                path = os.path.join(directory, name)
                found[os.path.relpath(path, root)] = os.stat(path).st_mode & 0o777
        return found

    def test_it_installs_what_passes_the_check_and_prints_a_key_once(self):
        root = self.directory()
        said = self.install(root, "--binary", harness.BIN)
        self.assertEqual(self.files(root), INSTALLED)
        self.assertIn("sluice.yaml: ok (1 providers, 1 models, 1 tenants)", said)
        key = re.search(r"kept nowhere: (\S+)", said)[1]
        self.assertIn(harness.sha256(key), read(os.path.join(root, "etc/sluice/tenants.d/first.yaml")))
        self.assertEqual(read(os.path.join(root, "etc/systemd/system/sluice.service")), read(UNIT))

    def test_again_it_leaves_the_configuration_alone(self):
        root = self.directory()
        self.install(root, "--binary", harness.BIN)
        path = os.path.join(root, CONFIG)
        with open(path, "a", encoding="utf-8") as file:
            file.write("zone: mine\n")
        before = {name: os.stat(os.path.join(root, name)).st_mtime_ns for name in INSTALLED if "etc/sluice" in name}
        said = self.install(root, "--binary", harness.BIN)
        self.assertNotIn("kept nowhere", said)
        self.assertEqual({name: os.stat(os.path.join(root, name)).st_mtime_ns for name in before}, before)
        self.assertEqual(self.files(root), INSTALLED)

    def test_a_mistake_in_the_configuration_replaces_nothing(self):
        root = self.directory()
        self.install(root, "--binary", harness.BIN)
        program = os.path.join(root, "usr/local/bin/sluice")
        before = os.stat(program).st_ino
        with open(os.path.join(root, CONFIG), "a", encoding="utf-8") as file:
            file.write("wrokers: 3\n")
        said = self.install(root, "--binary", harness.BIN, code=1)
        self.assertRegex(said, r"sluice\.yaml:\d+: wrokers: is no setting")
        self.assertIn("nothing was replaced", said)
        self.assertEqual(os.stat(program).st_ino, before)
        self.assertEqual(self.files(root), INSTALLED)

    def test_the_check_knows_the_variables_of_the_service(self):
        root = self.directory()
        self.install(root, "--binary", harness.BIN)
        path = os.path.join(root, CONFIG)
        text = read(path).replace("file:secrets/anthropic", "${SLUICE_TEST_INSTALL_KEY}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        self.install(root, "--binary", harness.BIN, code=1)
        with open(os.path.join(root, "etc/sluice/environment"), "w", encoding="utf-8") as file:
            file.write("# a comment\nSLUICE_TEST_INSTALL_KEY='a;touch$IFS/nowhere'")
        self.install(root, "--binary", harness.BIN)

    def test_uninstall_leaves_the_configuration_and_purge_does_not(self):
        root = self.directory()
        self.install(root, "--uninstall")  # there is nothing
        self.install(root, "--binary", harness.BIN)
        self.install(root, "--uninstall")
        self.assertEqual(self.files(root), {name: mode for name, mode in INSTALLED.items() if "etc/sluice" in name})
        self.install(root, "--binary", harness.BIN)
        self.install(root, "--uninstall", "--purge")
        self.assertEqual(self.files(root), {})

    def test_wrong_usage_and_what_is_no_program_are_told(self):
        root = self.directory()
        self.assertIn("usage", self.install(root, "--purge", code=2))
        self.assertIn("usage", self.install(root, "--binary", code=2))
        self.assertIn("usage", self.install(root, "--what", code=2))
        self.assertIn("is no program", self.install(root, "--binary", "/etc/passwd", code=1))
        self.assertEqual(self.files(root), {})


class OnThisMachine(harness.Case):
    """As root, without DESTDIR, where nothing of it stays."""

    def on_a_copy(self, script):
        place = self.directory()
        run = subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "bash", "-c", ON_A_COPY + script, "bash", place],
            capture_output=True, text=True, check=False,
            env={**{k: v for k, v in os.environ.items() if k != "DESTDIR"}, "INSTALL": INSTALL, "BIN": harness.BIN})
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout

    def can(self):
        if os.geteuid() != 0:
            return False
        probe = subprocess.run(["unshare", "--mount", "--propagation", "private", "bash", "-c", ON_A_COPY, "bash",
                                self.directory()], capture_output=True, check=False)
        return probe.returncode == 0

    def test_the_user_is_made_reads_its_configuration_and_goes(self):
        if not self.can():
            self.skipTest("no root, or no overlay mounts here")
        port = harness.free_port()
        said = self.on_a_copy(f"""
            "$INSTALL" --binary "$BIN"
            "$INSTALL" --binary "$BIN" | grep -q "systemd does not run here"
            stat -c '%U:%G %a %n' /etc/sluice /etc/sluice/sluice.yaml /etc/sluice/secrets/anthropic
            getent passwd sluice
            ! runuser -u nobody -- cat /etc/sluice/sluice.yaml 2>/dev/null
            sed -i 's/127.0.0.1:8080/127.0.0.1:{port}/; s/^admin:.*//' /etc/sluice/sluice.yaml
            sed -n 's/^ExecStartPre=//p' /etc/systemd/system/sluice.service >/tmp/check.$$
            runuser -u sluice -- bash -c "$(cat /tmp/check.$$)"
            rm /tmp/check.$$
            coproc serve {{ exec setpriv --reuid sluice --regid sluice --init-groups $(sed -n 's/^ExecStart=//p' /etc/systemd/system/sluice.service) 2>&1; }}
            while read -r line <&"${{serve[0]}}"; do
                case $line in *"serving, configuration"*) break ;; esac
            done
            curl -sS -o /dev/null -w 'answered %{{http_code}}\\n' -H 'Content-Type: application/json' -d '{{}}' \\
                http://127.0.0.1:{port}/v1/sampling
            kill -TERM "$serve_PID"
            wait "$serve_PID" || echo "ended with $?"
            "$INSTALL" --uninstall --purge
            ! getent passwd sluice
            ! ls /etc/sluice /usr/local/bin/sluice /etc/systemd/system/sluice.service 2>/dev/null
        """)
        self.assertIn("root:sluice 750 /etc/sluice\n", said)
        self.assertIn("root:sluice 640 /etc/sluice/sluice.yaml\n", said)
        self.assertIn("root:sluice 640 /etc/sluice/secrets/anthropic\n", said)
        self.assertRegex(said, r"sluice:x:\d+:\d+::/nonexistent:/usr/sbin/nologin")
        self.assertIn("answered 401", said)
        self.assertNotIn("ended with", said)
        self.assertIn("removed, with its configuration", said)


class Unit(harness.Case):
    @needs("systemd-analyze")
    def test_systemd_has_nothing_to_say_about_it(self):
        place = os.path.join(self.directory(), "sluice.service")
        with open(place, "w", encoding="utf-8") as file:
            file.write(read(UNIT).replace("/usr/local/bin/sluice", harness.BIN))
        run = subprocess.run(["systemd-analyze", "verify", "--man=no", place], capture_output=True, text=True,
                             check=False)
        self.assertEqual((run.returncode, run.stdout + run.stderr), (0, ""))

    @needs("systemd-analyze")
    def test_it_is_exposed_by_two_of_ten_at_most(self):
        run = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", UNIT],
                             capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout[-300:])
        self.assertRegex(run.stdout, r"Overall exposure level for sluice\.service: [01]\.\d OK")

    def test_it_waits_for_a_whole_drain(self):
        stop_s = int(re.search(r"^TimeoutStopSec=(\d+)$", read(UNIT), re.M)[1])
        settings = subprocess.run([harness.BIN, "settings"], capture_output=True, text=True, check=True).stdout
        self.assertIn("longest provider total + 30s", settings)
        total_s = int(re.search(r"timeouts\.total\b.*?600s|600s", settings)[0][-4:-1])
        self.assertGreater(stop_s, total_s + 30 + 5)


if __name__ == "__main__":
    harness.main()
