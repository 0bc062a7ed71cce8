"""`user` in the configuration: the server process is that user, and root reads for it.

ctest: once timeout=120
"""

import json
import os
import pwd
import signal
import socket
import ssl
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

USER = "nobody"
OTHER_KEY = "sk-other-0123456789abcdef"
THIRD_KEY = "sk-third-0123456789abcdef"
READER = "sluice-reader"
DAC_OVERRIDE, DAC_READ_SEARCH = 1 << 1, 1 << 2  # capabilities


def status_of(path):
    """/proc/.../status as a dict of texts."""
    with open(os.path.join(path, "status"), encoding="ascii") as file:
        return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}


def children(gateway, wanted):
    """The supervisor's children whose name is the reader's, or is not."""
    with open(f"/proc/{gateway.pid}/task/{gateway.pid}/children", encoding="ascii") as file:
        pids = [int(pid) for pid in file.read().split()]
    return [pid for pid in pids if (status_of(f"/proc/{pid}")["Name"] == READER) == (wanted == READER)]


def server_of(gateway):
    return children(gateway, "server")[0]


def reader_of(gateway):
    """It is begun after the server, and has its name a moment later."""
    return harness.wait_for(lambda: children(gateway, READER), "the reader")[0]


def write_private(path, text):
    """0600, in the place of what was there."""
    with open(path + ".new", "w", encoding="utf-8", opener=lambda p, f: os.open(p, f, 0o600)) as file:
        file.write(text)
    os.replace(path + ".new", path)


class Dropped(harness.Case):
    def dropping(self, sim, **changes):
        return self.gateway(harness.config(sim, user=USER, **changes))

    def assert_dropped(self, gateway):
        entry = pwd.getpwnam(USER)
        tasks = f"/proc/{server_of(gateway)}/task"
        self.assertGreater(len(os.listdir(tasks)), 1)
        for task in os.listdir(tasks):
            status = status_of(f"{tasks}/{task}")
            self.assertEqual(status["Uid"].split(), [str(entry.pw_uid)] * 4, task)
            self.assertEqual(status["Gid"].split(), [str(entry.pw_gid)] * 4, task)
            self.assertEqual(sorted(map(int, status["Groups"].split())),
                             sorted(os.getgrouplist(USER, entry.pw_gid)), task)
            for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                self.assertEqual(int(status[kind], 16), 0, kind)
            self.assertEqual(status["NoNewPrivs"], "1", task)

    def test_every_thread_of_the_server_is_that_user_before_and_after_a_crash(self):
        gateway = self.dropping(self.sim(), workers=2)
        self.assert_dropped(gateway)
        self.assertEqual(status_of(f"/proc/{gateway.pid}")["Uid"].split()[0], "0")
        self.assert_result(gateway.sample("hello"))
        os.kill(server_of(gateway), signal.SIGKILL)
        gateway.wait_stderr("next start in")
        self.assert_result(gateway.sample("hello"))
        gateway.wait_ready()
        self.assert_dropped(gateway)

    def test_it_goes_with_a_supervisor_that_is_killed(self):
        gateway = self.dropping(self.sim())
        left = [reader_of(gateway), server_of(gateway)]
        gateway.kill()
        harness.wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in left),
                         "the end of server and reader")

    def test_a_port_below_1024_and_the_admin_socket_are_made_for_it(self):
        directory = self.directory()  # root's alone, so that nobody else makes a socket in it
        path = os.path.join(directory, "admin.sock")
        with socket.socket() as probe:
            for port in range(1023, 599, -1):
                try:
                    probe.bind(("127.0.0.1", port))
                    break
                except OSError:
                    continue
        gateway = self.dropping(self.sim(), listen=[{"address": f"127.0.0.1:{port}"}],
                                admin={"address": f"127.0.0.1:{harness.free_port()}", "socket": path})
        self.assert_result(gateway.sample("hello"))
        found, entry = os.stat(path), pwd.getpwnam(USER)
        self.assertEqual((found.st_uid, found.st_gid, found.st_mode & 0o777),
                         (entry.pw_uid, entry.pw_gid, 0o600))
        answer = subprocess.run(["curl", "-sS", "--unix-socket", path, "-X", "POST", "http://admin/reload"],
                                capture_output=True, text=True, check=True)
        self.assertRegex(answer.stdout, r"^[0-9a-f]{16}\n$")
        gateway.stop()
        self.assertFalse(os.path.exists(path))


    def test_the_reader_may_read_what_is_not_its_own_and_nothing_else(self):
        gateway = self.dropping(self.sim())
        self.assertEqual(gateway.reload().status, 200)  # it has begun to answer
        status = status_of(f"/proc/{reader_of(gateway)}")
        self.assertEqual(status["Uid"].split(), ["0"] * 4)
        own = int(status_of(f"/proc/{gateway.pid}")["CapPrm"], 16)
        kept = DAC_READ_SEARCH if own & DAC_READ_SEARCH else own & DAC_OVERRIDE
        self.assertEqual([int(status[kind], 16) for kind in ("CapPrm", "CapEff", "CapInh", "CapAmb")], [kept, kept, 0, 0])
        self.assertEqual(status["NoNewPrivs"], "1")


class Read(harness.Case):
    """The files that make up a configuration are root's alone."""

    def private(self, sim, **changes):
        directory = self.directory()
        os.makedirs(os.path.join(directory, "tenants.d"), 0o700)
        write_private(os.path.join(directory, "provider"), harness.PROVIDER_KEY)
        self.copy_certificate(directory)
        settings = harness.config(sim, user=USER, **changes)
        settings["providers"]["anthropic"]["keys"] = ["file:" + os.path.join(directory, "provider")]
        settings["tenants"].append({"files": os.path.join(directory, "tenants.d", "*.yaml")})
        settings["listen"] = [{"address": f"127.0.0.1:{harness.free_port()}"},
                              {"address": f"127.0.0.1:{harness.free_port()}", "tls": {
                                  "cert": os.path.join(directory, "cert.pem"),
                                  "key": os.path.join(directory, "key.pem")}}]
        return directory, self.gateway(settings)

    def copy_certificate(self, directory):
        for source, name in zip(self.certificate(), ("cert.pem", "key.pem")):
            with open(source, encoding="ascii") as file:
                write_private(os.path.join(directory, name), file.read())

    def add_tenant(self, directory, name, key):
        write_private(os.path.join(directory, "tenants.d", name + ".yaml"),
                      json.dumps([harness.tenant(name, key)]))

    def served_certificate(self, gateway):
        host, port = gateway.settings["listen"][1]["address"].split(":")
        return ssl.get_server_certificate((host, int(port)))

    def certificate_of(self, directory):
        with open(os.path.join(directory, "cert.pem"), encoding="ascii") as file:
            return file.read()

    def wait_tenant(self, gateway, key):
        harness.wait_for(lambda: gateway.sample("hello", key=key).status == 200, "the new tenant")

    def test_a_reload_reads_them_and_a_crash_keeps_them(self):
        sim = self.sim()
        directory, gateway = self.private(sim)
        self.assertEqual(self.served_certificate(gateway), self.certificate_of(directory))
        self.copy_certificate(directory)
        self.add_tenant(directory, "other", OTHER_KEY)
        write_private(os.path.join(directory, "provider"), "sk-second")
        self.assertEqual(gateway.reload().status, 200)
        self.wait_tenant(gateway, OTHER_KEY)
        self.assertEqual(sim.last()["headers"]["x-api-key"], "sk-second")
        harness.wait_for(lambda: self.served_certificate(gateway) == self.certificate_of(directory),
                         "the new certificate")
        gateway.write_config({"broken": True})
        os.kill(server_of(gateway), signal.SIGKILL)
        gateway.wait_stderr("next start in")
        self.assert_result(gateway.sample("hello", key=OTHER_KEY))
        self.assertEqual(self.served_certificate(gateway), self.certificate_of(directory))
        gateway.wait_ready()
        self.assertEqual(gateway.reload().status, 422)
        gateway.write_config(gateway.settings)
        self.add_tenant(directory, "third", THIRD_KEY)
        gateway.send(signal.SIGHUP)
        self.wait_tenant(gateway, THIRD_KEY)

    def test_a_change_is_noticed_and_a_bad_one_explained(self):
        directory, gateway = self.private(self.sim(), reload_watch="100ms")
        self.add_tenant(directory, "other", OTHER_KEY)
        self.wait_tenant(gateway, OTHER_KEY)
        path = os.path.join(directory, "tenants.d", "bad.yaml")
        write_private(path, "- {id: bad, plna: standard}\n")
        gateway.wait_stderr(f"{path}:1: [0].plna: ")
        self.assert_result(gateway.sample("hello", key=OTHER_KEY))
        os.unlink(path)
        self.add_tenant(directory, "third", THIRD_KEY)
        self.wait_tenant(gateway, THIRD_KEY)
        os.kill(server_of(gateway), signal.SIGKILL)
        gateway.wait_stderr("next start in")
        os.unlink(os.path.join(directory, "tenants.d", "third.yaml"))
        harness.wait_for(lambda: gateway.sample("hello", key=THIRD_KEY).status == 401, "the tenant's end")

    def test_a_file_that_is_another_users_alone_is_read(self):
        directory, gateway = self.private(self.sim())
        self.add_tenant(directory, "other", OTHER_KEY)
        path, entry = os.path.join(directory, "tenants.d", "other.yaml"), pwd.getpwnam("daemon")
        os.chown(path, entry.pw_uid, entry.pw_gid)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertEqual(gateway.reload().status, 200)
        self.wait_tenant(gateway, OTHER_KEY)

    def test_another_reader_takes_the_place_of_one_that_died(self):
        directory, gateway = self.private(self.sim())
        os.kill(reader_of(gateway), signal.SIGKILL)
        gateway.wait_stderr("the reader of the configuration was ended by signal 9; another starts")
        self.add_tenant(directory, "other", OTHER_KEY)
        self.assertEqual(gateway.reload().status, 200)
        self.wait_tenant(gateway, OTHER_KEY)
        self.assertEqual(len(children(gateway, READER)), 1)

    def test_its_user_stays_until_a_restart(self):
        _, gateway = self.private(self.sim())
        changed = {**gateway.settings, "user": "daemon"}
        gateway.write_config(changed)
        answer = gateway.reload()
        self.assertEqual(answer.status, 422)
        self.assertIn("user: cannot change while the gateway runs", answer.body.decode())


class NotDropped(harness.Case):
    def test_without_the_key_nothing_is_dropped(self):
        gateway = self.gateway(harness.config(self.sim()))
        server, own = status_of(f"/proc/{server_of(gateway)}"), status_of(f"/proc/{gateway.pid}")
        for name in ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "NoNewPrivs"):
            self.assertEqual(server[name], own[name], name)
        self.assertEqual(server["Uid"].split()[0], "0")
        self.assertEqual(children(gateway, READER), [])

    def test_check_names_line_and_key_of_an_unknown_user(self):
        with tempfile.TemporaryDirectory(prefix="sluice-test-") as directory:
            path = os.path.join(directory, "sluice.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write("zone: a\nuser: no-such-user-here\n")
            run = subprocess.run([harness.BIN, "check", path], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn(f"{path}:2: user: is no user of this system", run.stdout)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("SKIPPED: only root can become another user")
        sys.exit(77)
    harness.main()
