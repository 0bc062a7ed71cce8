"""What the supervisor and the watchdog make good: dead, spinning and hanging servers; how soon, test_crash_time.py
measures.

ctest: worker timeout=240
"""

import contextlib
import ctypes
import http.client
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

SANITIZED = bool(os.environ.get("SLUICE_SANITIZE"))
OTHER_KEY = "sk-other-0123456789abcdef"


FAULTY = os.path.join(os.path.dirname(harness.BIN), "sluice_faulty")


class CrashCase(harness.Case):
    def crash(self, gateway):
        """Kills the server process and returns the moment."""
        pid = gateway.server_pid()
        os.kill(pid, signal.SIGKILL)
        return time.monotonic()

    def limited(self, sim, **limits):
        """One tenant with these limits; those of money and requests are out of the way else."""
        settings = harness.config(sim)
        settings["plans"]["standard"]["limits"].update(limits)
        return self.gateway(settings)


class Crash(CrashCase):
    def test_a_signal_that_ends_processes_ends_the_server_and_another_one_serves(self):
        # A sanitizer takes SIGSEGV for itself.
        for number in (signal.SIGABRT, *(() if SANITIZED else (signal.SIGSEGV,))):
            with self.subTest(number):
                gateway = self.gateway(harness.config(self.sim()))
                pid = gateway.server_pid()
                os.kill(pid, number)
                harness.wait_for(lambda: gateway.metrics().sum("sluice_restarts_total") == 1, "another server")
                self.assertNotEqual(gateway.server_pid(), pid)
                self.assert_result(gateway.sample("hello"))
                self.assertIn(f"signal {number.value}", gateway.report())
                gateway.kill()

    def test_the_last_good_configuration_survives_a_broken_file(self):
        gateway = self.gateway(harness.config(self.sim()))
        with open(gateway.config_path, "w", encoding="utf-8") as file:
            file.write("tenants: [")
        self.crash(gateway)
        self.assert_result(gateway.sample("hello"))
        gateway.wait_ready()
        self.assertEqual(gateway.reload().status, 422)
        self.assert_result(gateway.sample("hello"))

    def test_a_reloaded_configuration_survives_with_all_its_files(self):
        directory = self.directory()
        more = os.path.join(directory, "more.yaml")
        gateway = self.gateway(harness.config(self.sim()))
        with open(more, "w", encoding="utf-8") as file:
            json.dump([harness.tenant("other", OTHER_KEY)], file)
        gateway.settings["tenants"].append({"files": directory + "/*.yaml"})
        gateway.write_config(gateway.settings)
        digest = gateway.reload().body.strip()
        os.unlink(more)
        os.unlink(gateway.config_path)
        self.crash(gateway)
        self.assert_result(gateway.sample("hello", key=OTHER_KEY))
        gateway.wait_ready()
        self.assertIn(digest, gateway.get("/readyz").body)

    def test_the_server_does_not_outlive_its_supervisor(self):
        gateway = self.gateway(harness.config(self.sim()))
        pid = gateway.server_pid()
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

    def test_deaths_in_a_row_are_answered_more_and_more_slowly(self):
        gateway = self.gateway(harness.config(self.sim()))
        delays = []
        for deaths in range(1, 7):
            gateway.wait_stderr("serving, configuration", deaths)
            self.crash(gateway)
            line = gateway.wait_stderr("was ended by signal 9; next start in", deaths)
            delays.append(int(re.search(r"next start in (\d+) ms", line)[1]))
        self.assertEqual(delays, [0, 0, 0, 100, 200, 400])
        self.assert_result(gateway.sample("hello"))
        gateway.wait_ready()
        self.assertEqual(gateway.metrics().sum("sluice_restarts_total"), 6)


class LimitsSurvive(CrashCase):
    """What was spent stays spent: the limit table is the supervisor's."""

    def wait_crash(self, gateway):
        self.crash(gateway)
        gateway.wait_stderr("serving, configuration", 2)

    def test_requests(self):
        gateway = self.limited(self.sim(), requests_per_minute=1, requests_burst=2)
        for _ in range(2):
            self.assert_result(gateway.sample("hello"))
        self.wait_crash(gateway)
        self.assert_error(gateway.sample("hello"), 429, 429, "rate_limited")

    def test_money_and_what_the_dead_server_had_reserved(self):
        sim = self.sim("--latency", "60s")
        gateway = self.limited(sim, usd_per_day=0.015)  # enough for one request's bound
        asking = threading.Thread(target=self.ask_in_vain, args=(gateway,))
        asking.start()
        sim.wait_stats(lambda stats: stats["requests"] == 1, "the request has reached the provider")
        self.assert_error(gateway.sample("hello"), 402, 402, "budget_exceeded")
        self.wait_crash(gateway)
        asking.join()
        self.assert_error(gateway.sample("hello"), 402, 402, "budget_exceeded")

    def test_places_of_requests_that_died_are_free_again(self):
        sim = self.sim("--latency", "60s")
        gateway = self.limited(sim, concurrent=1)
        asking = threading.Thread(target=self.ask_in_vain, args=(gateway,))
        asking.start()
        sim.wait_stats(lambda stats: stats["requests"] == 1, "the request has reached the provider")
        self.assert_error(gateway.sample("hello"), 429, 429, "concurrency")
        sim.default("latency-0ms")
        self.wait_crash(gateway)
        asking.join()
        for _ in range(3):
            self.assert_result(gateway.sample("hello"))

    def ask_in_vain(self, gateway):
        with self.assertRaises((OSError, http.client.HTTPException)):
            gateway.sample("hello", timeout_s=60)


class Bugs(harness.Case):
    """Ours, in a binary that has some on purpose: what they cost and what is said of them."""

    PROMPT = "the prompt that nobody may log"

    def start(self, tenant, **changes):
        settings = harness.config(self.sim(), **changes)
        settings["tenants"].append(harness.tenant(tenant, OTHER_KEY))
        return self.gateway(settings, binary=FAULTY)

    def meet(self, gateway):
        """The request that meets the bug, in the background: its connection ends some time."""
        def ask():
            with contextlib.suppress(OSError, http.client.HTTPException):
                gateway.sample(self.PROMPT, key=OTHER_KEY, timeout_s=60)
        thread = threading.Thread(target=ask)
        thread.start()
        self.addCleanup(thread.join)

    def assert_no_secret(self, gateway):
        text = "\n".join(gateway.stderr + gateway.stdout)
        for secret in (OTHER_KEY, harness.KEY, harness.PROVIDER_KEY, self.PROMPT, harness.sha256(OTHER_KEY)):
            self.assertNotIn(secret, text)

    def test_a_broken_promise_is_told_with_step_tenant_and_slabs(self):
        gateway = self.start("breaks-a-promise")
        self.meet(gateway)
        line = gateway.wait_stderr("sluice: panic: ")
        self.assertRegex(line, r"^sluice: panic: step policy, tenant breaks-a-promise; "
                               r"requests 1 of 32768 out, at most \d+(; \w+ 0 of \d+ out, at most \d+)*$")
        self.assertRegex(gateway.wait_stderr("must("), r"sluice_faulty\.c:\d+: policy_check: must\(.*\) failed$")
        gateway.wait_stderr("the server process was ended by signal 6; next start in 0 ms")
        gateway.wait_stderr("serving, configuration", 2)
        self.assert_result(gateway.sample("hello"))
        self.assert_no_secret(gateway)
        gateway.kill()  # stop() would take the line above for a failure of the test

    def test_a_crash_costs_the_requests_of_one_server(self):
        gateway = self.start("crashes")
        self.meet(gateway)
        line = gateway.wait_stderr("; next start in 0 ms")
        if not SANITIZED:  # a sanitizer has its own word for it
            self.assertIn("the server process was ended by signal 11", line)
        self.assert_result(gateway.sample("hello"))
        self.assert_no_secret(gateway)
        gateway.kill()

    def test_a_worker_that_spins_is_replaced_within_six_seconds(self):
        gateway = self.start("spins")
        began = time.monotonic()
        self.meet(gateway)
        # Its queue outlives it: what was asked meanwhile is answered by the next server.
        gateway.wait_stderr("worker 0 has not turned its loop for 5 s: aborting", timeout_s=30)
        self.assert_result(gateway.sample("hello"))
        took = time.monotonic() - began
        print(f"spinning to served again: {took:.2f} s")
        self.assertLess(took, 15 if SANITIZED else 6)
        self.assert_no_secret(gateway)

    def test_a_worker_that_spins_does_not_prevent_the_end_of_a_drain(self):
        gateway = self.start("spins", drain="1s")
        self.meet(gateway)
        self.wait_spinning(gateway)
        began = time.monotonic()
        gateway.stop()
        self.assertLess(time.monotonic() - began, 10 if SANITIZED else 3)

    def test_nobody_waits_for_a_worker_that_spins_until_the_end_of_a_drain(self):
        gateway = self.start("spins", drain="600s", workers=2)
        self.meet(gateway)
        self.wait_spinning(gateway)
        began = time.monotonic()
        gateway.send(signal.SIGTERM)
        gateway.wait_stderr("has not turned its loop for 5 s: leaving without it", timeout_s=30)
        gateway.stop()
        self.assertLess(time.monotonic() - began, 30 if SANITIZED else 8)

    def wait_spinning(self, gateway):
        """Until one thread has used a third of a second of CPU time."""
        def spins():
            pid = gateway.server_pid()
            for name in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{name}/schedstat", encoding="ascii") as file:
                    if int(file.read().split()[0]) > 300e6:
                        return True
            return False
        harness.wait_for(spins, "a worker that spins")


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
        server = gateway.server_pid()
        # Nothing else waits in epoll but control, which is the first thread.
        threads = [int(name) for name in os.listdir(f"/proc/{server}/task") if int(name) != server]
        worker = max(threads)
        self.stop_thread(worker)
        # It cannot let go of its configuration: with the fourth alive there is no room for a fifth.
        statuses = [gateway.reload().status for _ in range(3)]
        self.assertEqual(statuses, [200, 200, 200])
        busy = gateway.reload()
        self.assertEqual((busy.status, busy.body.split(b":")[0]), (503, b"reload_busy"))
        while True:  # until its process has ended; else it would stay as a zombie of ours
            _, status = os.waitpid(worker, self.WALL)
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                break
        gateway.wait_stderr("worker 0 has not turned its loop for 5 s: aborting")
        self.assert_result(gateway.sample("hello"))
        self.assertNotEqual(gateway.server_pid(), server)


if __name__ == "__main__":
    harness.main()
