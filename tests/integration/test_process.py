"""The process from outside: start, admin pages, reload, crash, restart, log lines.

ctest: worker timeout=240
"""

import ctypes
import http.client
import json
import os
import re
import resource
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

SANITIZED = bool(os.environ.get("SLUICE_SANITIZE"))
OTHER_KEY = "sk-other-0123456789abcdef"


def tenant(id, key):
    return {"id": id, "plan": "standard", "keys": [{"sha256": harness.sha256(key)}]}


def server_pid(gateway):
    """The server process, a child of the supervisor; 0 while there is none."""
    with open(f"/proc/{gateway.pid}/task/{gateway.pid}/children", encoding="ascii") as file:
        pids = file.read().split()
    return int(pids[0]) if pids else 0


def get(gateway, path, method="GET"):
    return harness.request(method, gateway.admin + path)


def reload(gateway):
    return harness.request("POST", gateway.admin + "/reload", b"")


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


def wait_stderr(gateway, text):
    return harness.wait_for(lambda: any(text in line for line in gateway.stderr),
                            f"{text!r} on stderr:\n" + "\n".join(gateway.stderr))


def ends(gateway, code):
    """Waits until it has ended by itself, with that exit code; returns what it said."""
    got = gateway.wait()
    gateway.killed = True  # nothing is left to stop
    if got != code:
        raise harness.Failure(f"ended with {got}, wanted {code}\n{gateway.report()}")
    return "\n".join(gateway.stderr)


class Load:
    """Threads that send one request after the other, each on a connection of its own."""

    def __init__(self, gateway, threads=8):
        self.gateway, self.results, self.going = gateway, [], True
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._run) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def _run(self):
        while self.going:
            started = time.monotonic()
            try:
                outcome = self.gateway.sample("hello").status
            except (OSError, http.client.HTTPException) as error:  # the connection ended too early
                outcome = error
            with self.lock:
                self.results.append((started, time.monotonic(), outcome))

    def snapshot(self):
        with self.lock:
            return list(self.results)

    def wait(self, count, since=0.0):
        """Until that many requests that began after `since` are answered well."""
        return harness.wait_for(
            lambda: len([r for r in self.snapshot() if r[0] >= since and r[2] == 200]) >= count,
            f"{count} answers; got {self.snapshot()[-5:]}")

    def stop(self):
        self.going = False
        for thread in self.threads:
            thread.join()
        return self.results


class Admin(harness.Case):
    def test_a_healthy_gateway_says_so(self):
        gateway = self.gateway(harness.config(self.sim()))
        self.assertEqual((get(gateway, "/healthz").status, get(gateway, "/healthz").body), (200, b"ok\n"))
        self.assertRegex(get(gateway, "/readyz").body, rb"^ready, configuration [0-9a-f]{16}\n$")
        self.assertEqual(get(gateway, "/healthz", "HEAD").status, 200)

    def test_anything_else_is_told_what_there_is(self):
        gateway = self.gateway(harness.config(self.sim()))
        self.assertEqual(get(gateway, "/v1/sampling").status, 404)
        self.assertIn(b"GET /readyz", get(gateway, "/").body)
        wrong = get(gateway, "/reload")
        self.assertEqual((wrong.status, wrong.headers.get("allow")), (405, "POST"))
        for method in ("POST", "PUT", "DELETE"):
            wrong = get(gateway, "/metrics", method)
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
        self.assertEqual(len(metrics.find("sluice_guard_kills_total")), 8)
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
        self.assertEqual(reload(gateway).status, 200)

    def test_clients_that_do_not_finish_hold_up_nobody(self):
        gateway = self.gateway(harness.config(self.sim()))
        host, port = gateway.settings["admin"]["address"].split(":")
        slow = [socket.create_connection((host, int(port))) for _ in range(50)]
        try:
            for i, peer in enumerate(slow):
                peer.sendall(b"GET /metrics HTTP/1.1\r\n" if i % 2 else b"POST /reload HTTP/1.1\r\nContent-Length: 9\r\n\r\n")
            self.assertEqual(get(gateway, "/healthz").status, 200)
            self.assert_result(gateway.sample("hello"))
        finally:
            for peer in slow:
                peer.close()


class Reload(harness.Case):
    def test_a_good_configuration_is_in_force_at_once(self):
        gateway = self.gateway(harness.config(self.sim()))
        self.assert_error(gateway.sample("hello", key=OTHER_KEY), 401)
        before = get(gateway, "/readyz").body
        gateway.settings["tenants"].append(tenant("other", OTHER_KEY))
        gateway.write_config(gateway.settings)
        answer = reload(gateway)
        self.assertEqual(answer.status, 200)
        self.assertRegex(answer.body, rb"^[0-9a-f]{16}\n$")
        self.assertNotIn(answer.body.strip(), before)
        self.assertIn(answer.body.strip(), get(gateway, "/readyz").body)
        harness.wait_for(lambda: gateway.sample("hello", key=OTHER_KEY).status == 200, "the new tenant")
        self.assert_result(gateway.sample("hello"))
        self.assertEqual(gateway.metrics().sum("sluice_reloads_total", result="ok"), 1)

    def test_a_signal_does_the_same(self):
        gateway = self.gateway(harness.config(self.sim()))
        gateway.settings["tenants"].append(tenant("other", OTHER_KEY))
        gateway.write_config(gateway.settings)
        gateway.send(signal.SIGHUP)
        harness.wait_for(lambda: gateway.sample("hello", key=OTHER_KEY).status == 200, "the new tenant")

    def test_a_bad_one_is_explained_and_the_old_one_stays(self):
        gateway = self.gateway(harness.config(self.sim()))
        bad = {**gateway.settings, "wrokers": 3}
        gateway.write_config(bad)
        with open(gateway.config_path, encoding="utf-8") as file:
            line = next(n for n, text in enumerate(file, 1) if "wrokers" in text)
        answer = reload(gateway)
        self.assertEqual(answer.status, 422)
        self.assertIn(f"{gateway.config_path}:{line}: wrokers: ", answer.body.decode())
        self.assert_result(gateway.sample("hello"))
        gateway.send(signal.SIGHUP)
        wait_stderr(gateway, f"{gateway.config_path}:{line}: wrokers: ")
        harness.wait_for(lambda: gateway.metrics().sum("sluice_reloads_total", result="refused") == 2,
                         "two refusals counted")
        self.assert_result(gateway.sample("hello"))
        self.assertEqual(get(gateway, "/readyz").status, 200)

    def test_what_needs_a_restart_is_refused_by_name(self):
        gateway = self.gateway(harness.config(self.sim()))
        for key, value in (("workers", 2), ("listen", [{"address": f"127.0.0.1:{harness.free_port()}"}]),
                           ("admin", {"address": f"127.0.0.1:{harness.free_port()}"})):
            with self.subTest(key):
                gateway.write_config({**gateway.settings, key: value})
                answer = reload(gateway)
                self.assertEqual(answer.status, 422)
                self.assertRegex(answer.body.decode(), rf": {key}\b.*restart")
        self.assert_result(gateway.sample("hello"))

    def test_many_reloads_under_load_cost_no_request(self):
        gateway = self.gateway(harness.config(self.sim(), workers=2))
        load = Load(gateway, 4)
        done = 0
        for _ in range(20 if SANITIZED else 100):
            status = reload(gateway).status
            self.assertIn(status, (200, 503))
            done += status == 200
        load.wait(20)
        results = load.stop()
        self.assertGreater(done, 0)
        self.assertEqual([r for r in results if r[2] != 200], [])
        self.assertEqual(gateway.metrics().sum("sluice_reloads_total", result="ok"), done)


class Crash(harness.Case):
    def crash(self, gateway):
        """Kills the server process and returns the moment."""
        pid = server_pid(gateway)
        os.kill(pid, signal.SIGKILL)
        return time.monotonic()

    def test_a_killed_server_is_replaced_and_only_what_was_in_flight_is_lost(self):
        gateway = self.gateway(harness.config(self.sim("--latency", "20ms"), workers=2))
        load = Load(gateway, 8)
        load.wait(50)
        killed = self.crash(gateway)
        load.wait(50, since=killed)
        results = load.stop()
        lost = [r for r in results if r[2] != 200]
        self.assertLessEqual(len(lost), 8, lost)
        self.assertEqual([r for r in lost if r[0] > killed], [], "a request after the crash was lost")
        served = min(r[1] for r in results if r[0] > killed and r[2] == 200) - killed
        self.assertLess(served, 2.0 if SANITIZED else 0.2)
        gateway.wait_ready()
        self.assertEqual(gateway.metrics().sum("sluice_restarts_total"), 1)
        self.assertTrue(any("signal 9" in line for line in gateway.stderr))

    def test_the_last_good_configuration_survives_a_broken_file(self):
        gateway = self.gateway(harness.config(self.sim()))
        with open(gateway.config_path, "w", encoding="utf-8") as file:
            file.write("tenants: [")
        self.crash(gateway)
        self.assert_result(gateway.sample("hello"))
        gateway.wait_ready()
        self.assertEqual(reload(gateway).status, 422)
        self.assert_result(gateway.sample("hello"))

    def test_a_reloaded_configuration_survives_with_all_its_files(self):
        directory = self.directory()
        more = os.path.join(directory, "more.yaml")
        gateway = self.gateway(harness.config(self.sim()))
        with open(more, "w", encoding="utf-8") as file:
            json.dump([tenant("other", OTHER_KEY)], file)
        gateway.settings["tenants"].append({"files": directory + "/*.yaml"})
        gateway.write_config(gateway.settings)
        digest = reload(gateway).body.strip()
        os.unlink(more)
        os.unlink(gateway.config_path)
        self.crash(gateway)
        self.assert_result(gateway.sample("hello", key=OTHER_KEY))
        gateway.wait_ready()
        self.assertIn(digest, get(gateway, "/readyz").body)

    def test_the_server_does_not_outlive_its_supervisor(self):
        gateway = self.gateway(harness.config(self.sim()))
        pid = server_pid(gateway)
        gateway.kill()
        harness.wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "the server is gone too")

    def test_a_server_that_cannot_begin_is_given_up(self):
        directory = self.directory()
        path = os.path.join(directory, "sluice.json")
        settings = harness.config(self.sim(), listen=[{"address": f"127.0.0.1:{harness.free_port()}"}],
                                  workers=4)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(settings, file)
        # Enough descriptors for the supervisor and its listeners, too few for four loops.
        run = subprocess.run(
            [harness.BIN, "serve", "--config", path], capture_output=True, text=True, check=False,
            timeout=harness.PATIENCE_S,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (14, 14)))
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("giving up", run.stderr)


class Watchdog(harness.Case):
    PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000

    def stop_thread(self, tid):
        """Stops one thread as a debugger would; the caller has to wait for its end."""
        ptrace = ctypes.CDLL(None, use_errno=True).ptrace
        ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        if ptrace(self.PTRACE_SEIZE, tid, None, None) != 0:
            self.skipTest("ptrace is not allowed here: " + os.strerror(ctypes.get_errno()))
        self.assertEqual(ptrace(self.PTRACE_INTERRUPT, tid, None, None), 0)

    def test_a_worker_that_hangs_costs_its_server_and_no_more(self):
        gateway = self.gateway(harness.config(self.sim()))
        server = server_pid(gateway)
        # Nothing else waits in epoll but control, which is the first thread.
        threads = [int(name) for name in os.listdir(f"/proc/{server}/task") if int(name) != server]
        worker = max(threads)
        self.stop_thread(worker)
        # It cannot let go of its configuration: with the fourth alive there is no room for a fifth.
        statuses = [reload(gateway).status for _ in range(3)]
        self.assertEqual(statuses, [200, 200, 200])
        busy = reload(gateway)
        self.assertEqual((busy.status, busy.body.split(b":")[0]), (503, b"reload_busy"))
        while True:  # until its process has ended; else it would stay as a zombie of ours
            _, status = os.waitpid(worker, self.WALL)
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                break
        wait_stderr(gateway, "worker 0 has not turned its loop for 5 s: aborting")
        self.assert_result(gateway.sample("hello"))
        self.assertNotEqual(server_pid(gateway), server)


class Commands(harness.Case):
    def run_it(self, *args):
        return subprocess.run([harness.BIN, *args], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=harness.PATIENCE_S)

    def test_help_names_every_command(self):
        for word in ("help", "--help", "-h"):
            run = self.run_it(word)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            for name in ("serve", "check", "explain", "translate", "key", "schema", "settings",
                         "metrics", "version", "help"):
                self.assertRegex(run.stdout, rf"(?m)^  {name}\b")

    def test_wrong_usage_is_explained(self):
        for args in ((), ("srve",), ("serve",), ("serve", "file.yaml"), ("metrics", "more")):
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
        os.kill(server_pid(gateway), signal.SIGKILL)
        self.assert_result(gateway.sample("hello"))

    def test_a_name_that_does_not_exist_is_reported(self):
        settings = harness.config(self.sim())
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

    def lines_of(self, text):
        """The log lines, each of which must be a whole JSON object."""
        lines = [line for line in text.decode().split("\n") if line.startswith("{")]
        return [json.loads(line) for line in lines]

    def test_a_reader_that_stops_reading_holds_up_nobody(self):
        child, settings, admin = self.start(stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.send(settings, self.REQUESTS)
        metrics = harness.Metrics(harness.request("GET", admin + "/metrics").body.decode())
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
