"""What the supervisor and the watchdog make good: dead, spinning and hanging servers.

ctest: worker timeout=240
"""

import ctypes
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

SANITIZED = bool(os.environ.get("SLUICE_SANITIZE"))
OTHER_KEY = "sk-other-0123456789abcdef"


class Crash(harness.Case):
    def crash(self, gateway):
        """Kills the server process and returns the moment."""
        pid = gateway.server_pid()
        os.kill(pid, signal.SIGKILL)
        return time.monotonic()

    def test_a_killed_server_is_replaced_and_only_what_was_in_flight_is_lost(self):
        gateway = self.gateway(harness.config(self.sim("--latency", "20ms"), workers=2))
        load = harness.Load(gateway, 8)
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
