"""The process from outside: start, admin pages, commands, log lines.

ctest: worker timeout=240
"""

import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness


def ask_socket(path, text):
    """One raw HTTP exchange over a UNIX socket."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(harness.PATIENCE_S)
        peer.connect(path)
        peer.sendall(text.encode())
        pieces = []
        while piece := peer.recv(65536):
            pieces.append(piece)
    return b"".join(pieces).decode()


def ends(gateway, code):
    """Waits until it has ended by itself, with that exit code; returns what it said."""
    got = gateway.wait()
    gateway.killed = True  # nothing is left to stop
    if got != code:
        raise harness.Failure(f"ended with {got}, wanted {code}\n{gateway.report()}")
    return "\n".join(gateway.stderr)


class Admin(harness.Case):
    def test_a_healthy_gateway_says_so(self):
        gateway = self.gateway(harness.config(self.sim()))
        self.assertEqual((gateway.get("/healthz").status, gateway.get("/healthz").body), (200, b"ok\n"))
        self.assertRegex(gateway.get("/readyz").body, rb"^ready, configuration [0-9a-f]{16}\n$")
        self.assertEqual(gateway.get("/healthz", "HEAD").status, 200)

    def test_anything_else_is_told_what_there_is(self):
        gateway = self.gateway(harness.config(self.sim()))
        self.assertEqual(gateway.get("/v1/sampling").status, 404)
        self.assertIn(b"GET /readyz", gateway.get("/").body)
        wrong = gateway.get("/reload")
        self.assertEqual((wrong.status, wrong.headers.get("allow")), (405, "POST"))
        for method in ("POST", "PUT", "DELETE"):
            wrong = gateway.get("/metrics", method)
            self.assertEqual((wrong.status, wrong.headers.get("allow")), (405, "GET, HEAD"))

    def test_metrics_please_promtool(self):
        gateway = self.gateway(harness.config(self.sim()))
        self.assert_result(gateway.sample("hello"))
        gateway.sample("hello", key="wrong-key-0123456789")
        # The last turn publishes its counters before it waits again.
        harness.wait_for(lambda: gateway.metrics().sum("sluice_requests_total") == 2, "two requests")
        metrics = gateway.metrics()
        self.assertEqual(metrics.sum("sluice_requests_total", tenant="acme", outcome="ok"), 1)
        self.assertEqual(metrics.sum("sluice_requests_total", tenant="_none", outcome="unauthorized"), 1)
        self.assertEqual(metrics.sum("sluice_restarts_total"), 0)
        self.assertEqual(metrics.sum("sluice_build_info"), 1)
        self.assertEqual(len(metrics.find("sluice_guard_kills_total")), 10)
        self.assertEqual(len(metrics.find("sluice_pool_connections", provider="anthropic")), 4)
        self.assertAlmostEqual(metrics.sum("sluice_config_timestamp_seconds"), time.time(), delta=3600)
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed (Debian package prometheus)")
        check = subprocess.run(["promtool", "check", "metrics"], input=metrics.text, text=True,
                               capture_output=True, check=False)
        self.assertEqual((check.returncode, check.stdout, check.stderr), (0, "", ""))

    def test_the_socket_is_its_owners_alone_and_goes_with_the_gateway(self):
        path = os.path.join(self.directory(), "admin.sock")
        admin = {"address": f"127.0.0.1:{harness.free_port()}", "socket": path}
        gateway = self.gateway(harness.config(self.sim(), admin=admin))
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        answer = ask_socket(path, "POST /reload HTTP/1.0\r\n\r\n")
        self.assertRegex(answer, r"^HTTP/1\.[01] 200 ")
        self.assertRegex(ask_socket(path, "GET /readyz HTTP/1.0\r\n\r\n"), r"^HTTP/1\.[01] 200 ")
        gateway.stop()
        self.assertFalse(os.path.exists(path))

    def test_a_socket_left_behind_is_replaced_and_a_used_one_is_not(self):
        path = os.path.join(self.directory(), "admin.sock")
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(path)
        admin = {"address": f"127.0.0.1:{harness.free_port()}", "socket": path}
        sim = self.sim()
        self.gateway(harness.config(sim, admin=admin))
        second = self.gateway(
            harness.config(sim, admin={"address": f"127.0.0.1:{harness.free_port()}", "socket": path}),
            wait_ready=False)
        self.assertRegex(ends(second, 1), "admin.socket: .*in use")
        self.assertIn("200", ask_socket(path, "GET /healthz HTTP/1.0\r\n\r\n"))

    def test_a_file_that_is_no_socket_is_left_alone(self):
        path = os.path.join(self.directory(), "precious.yaml")
        with open(path, "w", encoding="ascii") as file:
            file.write("tenants: []")
        gateway = self.gateway(harness.config(self.sim(), admin={"address": f"127.0.0.1:{harness.free_port()}", "socket": path}),
                               wait_ready=False)
        self.assertRegex(ends(gateway, 1), "admin.socket: .*not a socket")
        with open(path, encoding="ascii") as file:
            self.assertEqual(file.read(), "tenants: []")

    def test_reload_is_not_for_strangers(self):
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; only asks for the route
            mine = probe.getsockname()[0]
        except OSError:
            self.skipTest("this machine has no address but loopback")
        finally:
            probe.close()
        port = harness.free_port()
        gateway = self.gateway(harness.config(self.sim(), admin={"address": f"0.0.0.0:{port}"}))
        self.assertEqual(harness.request("GET", f"http://{mine}:{port}/healthz").status, 200)
        self.assertEqual(harness.request("POST", f"http://{mine}:{port}/reload", b"").status, 403)
        self.assertEqual(gateway.reload().status, 200)

    def test_what_acts_or_names_money_is_not_for_browsers(self):
        path = os.path.join(self.directory(), "admin.sock")
        port = harness.free_port()
        gateway = self.gateway(harness.config(
            self.sim(), admin={"address": f"127.0.0.1:{port}", "socket": path, "names": ["gateway.example"]}))

        def ask(method, page, body=None, **headers):
            answer = harness.request(method, f"http://127.0.0.1:{port}{page}", body, headers)
            return answer.status, b"browsers" in answer.body
        pages = (("GET", "/metrics", None), ("POST", "/reload", b""), ("GET", "/lessons", None), ("POST", "/tenants/acme/budget", b'{"usd": 5}'),
                 ("GET", "/tenants/acme", None))
        for page in pages:
            with self.subTest(page):
                for origin in ("https://evil.example", f"http://127.0.0.1:{port}", "null"):
                    self.assertEqual(ask(*page, Origin=origin), (403, True))
                for host in ("evil.example", f"evil.example:{port}", "localhost.evil.example", "127.0.0.1.evil.example"):
                    self.assertEqual(ask(*page, Host=host), (403, True))
        self.assertEqual(gateway.metrics().sum("sluice_reloads_total"), 0)
        self.assertNotIn(b'"topped_up":5', gateway.get("/tenants/acme").body)
        for page in pages:
            with self.subTest(page):
                for host in ("127.0.0.1", f"127.0.0.1:{port}", "[::1]:9090", "LocalHost:9090", "localhost",
                             "Gateway.example:9090"):
                    self.assertEqual(ask(*page, Host=host), (200, False))
        for page in ("/healthz", "/readyz"):
            self.assertEqual(ask("GET", page, Host="other.example", Origin="https://grafana.example"), (200, False))
        for head, status in (("Host: admin", 200), ("Origin: https://evil.example", 403)):
            answer = ask_socket(path, f"POST /reload HTTP/1.1\r\nConnection: close\r\n{head}\r\n\r\n")
            self.assertTrue(answer.startswith(f"HTTP/1.1 {status} "), answer)

    def test_clients_that_do_not_finish_hold_up_nobody(self):
        gateway = self.gateway(harness.config(self.sim()))
        host, port = gateway.settings["admin"]["address"].split(":")
        slow = [socket.create_connection((host, int(port))) for _ in range(50)]
        try:
            for i, peer in enumerate(slow):
                peer.sendall(b"GET /metrics HTTP/1.1\r\n" if i % 2 else b"POST /reload HTTP/1.1\r\nContent-Length: 9\r\n\r\n")
            self.assertEqual(gateway.get("/healthz").status, 200)
            self.assert_result(gateway.sample("hello"))
        finally:
            for peer in slow:
                peer.close()


class Commands(harness.Case):
    def run_it(self, *args):
        return subprocess.run([harness.BIN, *args], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=harness.PATIENCE_S)

    NAMES = ("serve", "check", "explain", "translate", "key", "schema", "settings", "metrics", "version", "help")

    def test_help_names_every_command(self):
        for word in ("help", "--help", "-h"):
            run = self.run_it(word)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            for name in self.NAMES:
                self.assertRegex(run.stdout, rf"(?m)^  {name}\b")

    def test_each_command_has_a_help_of_its_own(self):
        for name in self.NAMES:
            with self.subTest(name):
                run = self.run_it(name, "--help")
                self.assertEqual((run.returncode, run.stderr), (0, ""))
                self.assertRegex(run.stdout, rf"^usage: sluice COMMAND \.\.\.\n\n(  {name}\b.*\n)+      \S.*\n$")
                for words in ((name, "-h"), ("help", name)):
                    self.assertEqual(self.run_it(*words).stdout, run.stdout)

    def test_wrong_usage_is_explained(self):
        for args in ((), ("srve",), ("serve",), ("serve", "file.yaml"), ("serve", "--config"), ("metrics", "more"),
                     ("version", "more"), ("help", "srve"), ("help", "serve", "more")):
            with self.subTest(args):
                run = self.run_it(*args)
                self.assertEqual((run.returncode, run.stdout), (2, ""))
                self.assertRegex(run.stderr, r"^sluice: .+\n\nusage: ")

    def test_the_manual_names_what_is_scraped(self):
        manual = self.run_it("metrics").stdout
        scraped = self.gateway(harness.config(self.sim())).metrics().text
        names = re.findall(r"(?m)^# TYPE (\S+) ", scraped)
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(sorted(names), sorted(re.findall(r"(?m)^(sluice_\w+)", manual)))


class Start(harness.Case):
    def test_an_address_in_use_is_named(self):
        sim = self.sim()
        first = self.gateway(harness.config(sim))
        second = self.gateway(harness.config(sim, listen=first.settings["listen"]), wait_ready=False)
        address = first.settings["listen"][0]["address"]
        self.assertRegex(ends(second, 1), f"listen: {re.escape(address)}: the address is in use")
        third = self.gateway(harness.config(sim, admin=first.settings["admin"]), wait_ready=False)
        address = first.settings["admin"]["address"]
        self.assertRegex(ends(third, 1), f"admin.address: {re.escape(address)}: .*in use")
        self.assert_result(first.sample("hello"))

    def test_a_broken_configuration_is_explained(self):
        gateway = self.gateway(harness.config(self.sim(), modles=[]), wait_ready=False)
        self.assertRegex(ends(gateway, 1), r"sluice\.json:\d+: modles: ")

    def test_a_provider_may_have_a_name(self):
        sim = self.sim()
        settings = harness.config(sim)
        settings["providers"]["anthropic"]["endpoints"] = [{"url": f"http://localhost:{sim.port}"}]
        gateway = self.gateway(settings)
        self.assert_result(gateway.sample("hello"))
        self.crash_and_ask_again(gateway)

    def crash_and_ask_again(self, gateway):
        os.kill(gateway.server_pid(), signal.SIGKILL)
        self.assert_result(gateway.sample("hello"))

    def test_a_name_that_does_not_exist_is_reported(self):
        settings = harness.config(self.sim(), retries={"attempts": 1})  # the other model would step in
        settings["providers"]["anthropic"]["endpoints"] = [{"url": "http://no-such-host.invalid"}]
        gateway = self.gateway(settings)
        harness.wait_for(lambda: any("no-such-host.invalid cannot be resolved" in line
                                     for line in gateway.stderr), "the report", 60)
        self.assert_error(gateway.sample("hello"), 503, -32011)
        self.assert_result(gateway.sample("hello", modelPreferences={"hints": [{"name": "gpt-test"}]}))


class Log(harness.Case):
    """Stdout in the ways that it is given in real life."""

    REQUESTS = 4000

    def start(self, **streams):
        """A gateway whose stdout is the test's; returns (child, settings, admin URL)."""
        directory = self.directory()
        path = os.path.join(directory, "sluice.json")
        settings = harness.config(self.sim(), listen=[{"address": f"127.0.0.1:{harness.free_port()}"}],
                                  admin={"address": f"127.0.0.1:{harness.free_port()}"})
        with open(path, "w", encoding="utf-8") as file:
            json.dump(settings, file)
        child = subprocess.Popen([harness.BIN, "serve", "--config", path], stdin=subprocess.DEVNULL,
                                 **streams)
        self.addCleanup(lambda: child.poll() is None and child.kill())
        admin = "http://" + settings["admin"]["address"]

        def ready():
            try:
                return harness.request("GET", admin + "/readyz").status == 200
            except OSError:
                return False
        harness.wait_for(ready, "readyz")
        return child, settings, admin

    def send(self, settings, count):
        """That many samplings, fast."""
        body = os.path.join(self.directory(), "body.json")
        with open(body, "w", encoding="utf-8") as file:
            json.dump({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
                "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}],
                "maxTokens": 10}}, file)
        run = subprocess.run(
            ["h2load", "-n", str(count), "-c", "4", "-m", "8", "-d", body,
             "-H", "authorization: Bearer " + harness.KEY, "-H", "content-type: application/json",
             "http://" + settings["listen"][0]["address"] + "/v1/sampling"],
            capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(f"{count} done", run.stdout)

    def metrics_of_all(self, admin):
        """When every request is over: its line comes after its answer."""
        found = []

        def all_counted():
            found[:] = [harness.Metrics(harness.request("GET", admin + "/metrics").body.decode())]
            return found[0].sum("sluice_requests_total") == self.REQUESTS
        harness.wait_for(all_counted, "all requests in the metrics")
        return found[0]

    def lines_of(self, text):
        """The log lines, each of which must be a whole JSON object."""
        lines = [line for line in text.decode().split("\n") if line.startswith("{")]
        return [json.loads(line) for line in lines]

    def test_a_reader_that_stops_reading_holds_up_nobody(self):
        child, settings, admin = self.start(stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.send(settings, self.REQUESTS)
        metrics = self.metrics_of_all(admin)
        dropped = metrics.sum("sluice_log_dropped_total")
        self.assertGreater(dropped, 0)
        child.send_signal(signal.SIGTERM)
        text, _ = child.communicate(timeout=harness.PATIENCE_S)
        self.assertEqual(child.returncode, 0)
        self.assertEqual(len(self.lines_of(text)) + dropped, self.REQUESTS)

    def test_a_file_gets_every_line(self):
        with tempfile.TemporaryFile() as file:
            child, settings, _ = self.start(stdout=file, stderr=subprocess.DEVNULL)
            self.send(settings, 1000)
            child.send_signal(signal.SIGTERM)
            self.assertEqual(child.wait(harness.PATIENCE_S), 0)
            file.seek(0)
            self.assertEqual(len(self.lines_of(file.read())), 1000)

    def test_a_socket_gets_every_line(self):
        mine, theirs = socket.socketpair()
        child, settings, _ = self.start(stdout=theirs, stderr=subprocess.DEVNULL)
        theirs.close()
        pieces = []

        def read():
            while piece := mine.recv(65536):
                pieces.append(piece)
        reader = threading.Thread(target=read)
        reader.start()
        self.send(settings, 1000)
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(harness.PATIENCE_S), 0)
        reader.join()
        mine.close()
        self.assertEqual(len(self.lines_of(b"".join(pieces))), 1000)

    def test_lines_stay_whole_beside_stderr_in_one_pipe(self):
        child, settings, _ = self.start(stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        pieces = []

        def read():
            while piece := os.read(child.stdout.fileno(), 512):
                pieces.append(piece)
        reader = threading.Thread(target=read)
        reader.start()
        self.send(settings, 1000)
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(harness.PATIENCE_S), 0)
        reader.join()
        child.stdout.close()
        self.assertEqual(len(self.lines_of(b"".join(pieces))), 1000)

    def test_a_reader_that_leaves_ends_nothing(self):
        child, settings, admin = self.start(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child.stdout.close()
        self.send(settings, 10)
        harness.wait_for(lambda: harness.Metrics(harness.request("GET", admin + "/metrics").body.decode())
                         .sum("sluice_log_dropped_total") == 10, "the lost lines are counted")
        child.send_signal(signal.SIGTERM)
        _, text = child.communicate(timeout=harness.PATIENCE_S)
        self.assertEqual(child.returncode, 0)
        self.assertEqual(text.count(b"log lines are lost"), 1)


if __name__ == "__main__":
    harness.main()
