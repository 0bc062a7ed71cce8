#!/usr/bin/env python3
"""`sluice wrap` as a process: exit status, signals, environment, and the end of either side.

ctest: timeout=180
"""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import wrapped

SHELL = ["--sampling", "relay", "--", "sh", "-c"]


class Process(wrapped.Case):
    def run_wrap(self, *args, env=None, **more):
        return subprocess.run([harness.BIN, "wrap", *args], capture_output=True, timeout=harness.PATIENCE_S, check=False,
                              **{"stdin": subprocess.DEVNULL, **more}, env={**os.environ, **(env or {})})

    def start(self, *args, **more):
        process = subprocess.Popen([harness.BIN, "wrap", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **more)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_the_exit_status_is_the_childs(self):
        for code in (0, 1, 7, 255):
            self.assertEqual(self.run_wrap(*SHELL, f"exit {code}").returncode, code)
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
            self.assertEqual(self.run_wrap(*SHELL, f"kill -{int(number)} $$").returncode, -number)

    def test_signals_go_to_the_child(self):
        for name in ("INT", "TERM", "HUP", "USR1"):
            process = self.start(*SHELL, f"trap 'echo got; exit 3' {name}; echo ready; while :; do read x || sleep 0.01; done")
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.send_signal(getattr(signal, "SIG" + name))
            self.assertEqual(process.stdout.readline(), b"got\n")
            self.assertEqual(process.wait(harness.PATIENCE_S), 3)

    def test_a_signal_that_ends_the_child_ends_the_wrapper_likewise(self):
        process = self.start(*SHELL, "echo ready; exec cat")
        process.stdout.readline()
        process.terminate()
        self.assertEqual(process.wait(harness.PATIENCE_S), -signal.SIGTERM)

    def test_the_end_of_input_is_the_childs_and_what_it_says_then_still_comes(self):
        run = self.run_wrap(*SHELL, "cat; echo last; echo err >&2; exit 4", input=b"one\ntwo", stdin=None)
        self.assertEqual((run.returncode, run.stdout, run.stderr), (4, b"one\ntwolast\n", b"err\n"))

    def test_a_child_that_stays_without_input_is_told_to_end_and_then_killed(self):
        run = self.run_wrap(*SHELL, "exec sleep 1000")
        self.assertEqual(run.returncode, -signal.SIGTERM)
        process = self.start("--sampling=relay", "--", sys.executable, "-c",
                             "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('x', flush=True); time.sleep(1000)")
        process.stdout.readline()
        process.stdin.close()
        process.stdin = None
        self.assertEqual(process.wait(harness.PATIENCE_S + 10), -signal.SIGKILL)

    def test_a_client_that_reads_no_more_ends_the_child(self):
        process = self.start(*SHELL, "while echo line; do :; done")
        process.stdout.readline()
        process.stdout.close()
        process.stdout = None
        process.wait(harness.PATIENCE_S)

    def test_the_child_ends_with_a_wrapper_that_is_killed(self):
        process = self.start(*SHELL, "echo $$; exec sleep 1000")
        pid = int(process.stdout.readline())
        process.kill()
        process.wait()

        def gone():
            try:
                with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                    return file.read().split()[2] == "Z"
            except OSError:
                return True
        harness.wait_for(gone, "the end of the child")

    def test_a_process_that_the_child_leaves_behind_holds_nobody_up(self):
        run = self.run_wrap(*SHELL, "echo first; (trap '' TERM HUP; exec sleep 30) 2>/dev/null & exit 5")
        self.assertEqual((run.returncode, run.stdout), (5, b"first\n"))

    def test_keys_do_not_reach_the_child(self):
        secrets = {"SLUICE_KEY": harness.KEY, "OPENAI_API_KEY": "sk-o", "ANTHROPIC_API_KEY": "sk-a", "KEPT": "yes"}
        for options in (["--sampling", "relay"], ["--gateway", "http://127.0.0.1:1"], ["--provider", "anthropic"]):
            run = self.run_wrap(*options, "--", "env", env=secrets)
            self.assertEqual(run.returncode, 0, run.stderr)
            lines = run.stdout.decode().splitlines()
            self.assertIn("KEPT=yes", lines)
            self.assertFalse([line for line in lines if line.split("=")[0] in set(secrets) - {"KEPT"}])
        run = self.run_wrap("--sampling=relay", "--", "env", "OPENAI_API_KEY=own", "env", env=secrets)
        self.assertIn(b"OPENAI_API_KEY=own\n", run.stdout)

    def test_a_command_that_cannot_be_run_says_why(self):
        run = self.run_wrap("--sampling", "relay", "--", "/no/such/server")
        self.assertEqual((run.returncode, run.stderr), (127, b"sluice wrap: /no/such/server: No such file or directory\n"))
        run = self.run_wrap("--sampling", "relay", "/etc/passwd")
        self.assertEqual((run.returncode, run.stderr), (126, b"sluice wrap: /etc/passwd: Permission denied\n"))

    def test_wrong_usage_says_what_is_right(self):
        rows = [
            ([], "the server's command is missing"),
            (["--gateway", "http://h"], "the server's command is missing"),
            (["--", "true"], "--gateway URL or --provider anthropic|openai is missing"),
            (["--gateway", "--", "true"], "--gateway wants a value"),
            (["--gateway=", "true"], "--gateway wants a value"),
            (["--gatway", "x", "true"], "there is no option --gatway"),
            (["--gateway", "ftp://x", "--", "true"], "--gateway has no scheme"),
            (["--gateway", "http://a:b@x", "--", "true"], "leave them out"),
            (["--sampling", "some", "--", "true"], "--sampling is one of backfill|force|relay|refuse, not some"),
            (["--gateway", "http://x", "--key-file", "/no/such", "--", "true"], "--key-file /no/such: No such file"),
            (["--gateway", "http://x", "--key-file", "/dev/null", "--", "true"], "its first line is no key"),
            (["--provider", "acme", "--", "true"], "--provider is one of anthropic|openai, not acme"),
            (["--provider", "openai", "--gateway", "http://x", "--", "true"], "--provider starts a gateway"),
            (["--provider", "openai", "--", "true"], "the key of openai is missing: set OPENAI_API_KEY"),
            (["--provider", "anthropic", "--usd-per-day", "-1", "--", "true"], "--usd-per-day wants a number"),
            (["--provider", "anthropic", "--model", "claude-haku-4-5", "--", "true"], "did you mean claude-haiku-4-5"),
            (["--gateway", "http://x", "--model", "m", "--", "true"], "go with --provider"),
        ]
        env = {"SLUICE_KEY": "key", "ANTHROPIC_API_KEY": "sk-a", "OPENAI_API_KEY": ""}
        for args, text in rows:
            run = self.run_wrap(*args, env=env)
            self.assertEqual((run.returncode, run.stdout), (2, b""), args)
            self.assertTrue(run.stderr.decode().startswith("sluice wrap: "), run.stderr)
            self.assertIn(text, run.stderr.decode())
        run = self.run_wrap("--gateway", "http://x", "--", "true", env={"SLUICE_KEY": ""})
        self.assertIn(b"the key is missing: set SLUICE_KEY", run.stderr)
        run = self.run_wrap("--gateway", "http://x", "--", "true", env={"SLUICE_KEY": "secret\nkey"})
        self.assertIn(b"SLUICE_KEY is no key", run.stderr)
        self.assertNotIn(b"secret", run.stderr)

    def test_help_is_no_error(self):
        for args in (["--help"], ["-h"], ["--gateway", "http://x", "--help"]):
            run = self.run_wrap(*args)
            self.assertEqual((run.returncode, run.stderr), (0, b""))
            for word in ("--sampling", "--gateway", "--key-file", "--provider", "--model", "--base-url", "--usd-per-day"):
                self.assertIn(word, run.stdout.decode())


if __name__ == "__main__":
    harness.main()
