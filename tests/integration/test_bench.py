"""bench/run: measures something, writes it down, and calls a run void when a request fails.

ctest: once timeout=240
"""

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

LOAD = os.path.join(os.path.dirname(harness.BIN), "load")
BODY = '{"model":"claude-test","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}'
FIELDS = ("content-type: application/json", "anthropic-version: 2023-06-01", "x-api-key: key")
QUICK = ("--quick", "--seconds", "0.1", "--servers", "none")


class Bench(harness.Case):
    def bench(self, *words, **environment):
        """Exit code, stderr and what it wrote, by the end of the name."""
        output = self.directory()
        run = subprocess.run([sys.executable, os.path.join(harness.SOURCE, "bench/run"), *QUICK, "--output", output, *words],
                             capture_output=True, text=True, check=False,
                             env={**os.environ, "SLUICE_BIN": harness.BIN, "SLUICE_SIM": harness.SIM, **environment})
        written = {}
        for name in os.listdir(output):
            with open(os.path.join(output, name), encoding="utf-8") as file:
                written[name.partition("-quick")[2]] = file.read()
        return run.returncode, run.stderr, written

    def test_every_scenario_is_measured_and_drawn(self):
        code, stderr, written = self.bench()
        self.assertEqual(code, 0, stderr + written[".md"])
        result = json.loads(written[".json"])
        self.assertEqual(result["void"], [])
        listed = subprocess.run([sys.executable, os.path.join(harness.SOURCE, "bench/run"), "--list"], capture_output=True,
                                text=True, check=True).stdout
        self.assertEqual([*result["scenarios"], "soak"], [line.split()[0] for line in listed.splitlines()])
        for name in result["scenarios"].keys() - {"direct"}:
            points = result["scenarios"][name]["points"]
            self.assertTrue(points and all("sluice" in point["servers"] for point in points), name)
        for name in ("h2c-1", "rate"):
            for metric in ("cpu_us", "rate", "p50_ms", "p99_ms"):
                self.assertGreater(result["scenarios"][name]["points"][0]["servers"]["sluice"][metric]["median"], 0, name)
        self.assertRegex(result["commit"], "^[0-9a-f]{40}|unknown")
        self.assertEqual(result["request"]["bytes"], 2048)
        self.assertIn("h2load", result["machine"]["versions"]["h2load"])
        self.assertIn("| sluice |", written[".md"])
        self.assertRegex(stderr, r"\[(\d+)/\1\]")
        charts = {name for name in written if name.endswith(".svg")}
        self.assertGreaterEqual(charts, {"-cpu.svg", "-p99.svg", "-throughput.svg"})
        for name in charts:
            xml.etree.ElementTree.fromstring(written[name])

    def void(self, fault, *names):
        """Those scenarios, each of which has to be void by the provider's `fault`."""
        sim = os.path.join(self.directory(), "sim")
        with open(sim, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {harness.SIM} "$@" --default {fault}\n')
        os.chmod(sim, 0o755)
        code, stderr, written = self.bench("--scenario", *names, SLUICE_SIM=sim)
        self.assertEqual(code, 1, stderr)
        self.assertIn("VOID: " + ", ".join(names), stderr)
        result = json.loads(written[".json"])
        self.assertEqual(result["void"], list(names))
        for name in names:
            self.assertRegex(result["scenarios"][name]["void"], f"^{name}, sluice.*: [0-9]+ of [0-9]+ requests failed")
        self.assertEqual(written[".md"].count("**Void**"), len(names))

    def test_a_failed_request_makes_the_run_void(self):
        self.void("error-400-every-7", "h2c-1", "rate", "idle")  # by h2load, by bench/load, by connections of our own

    def test_a_stream_that_fails_behind_a_200_makes_the_run_void(self):
        self.void("midway-every-7", "streams")

    def replay(self, sim, schedule, *words):
        """The log of bench/load at the simulator itself: lines of DUE SENT DONE STATUS."""
        directory = self.directory()
        for name, text in (("schedule", schedule), ("body", BODY)):
            with open(os.path.join(directory, name), "w", encoding="ascii") as file:
                file.write(text)
        log = os.path.join(directory, "log")
        run = subprocess.run([LOAD, "--to", f"127.0.0.1:{sim.port}", "--path", "/v1/messages", "--http1", "--schedule",
                              os.path.join(directory, "schedule"), "--body", os.path.join(directory, "body"), "--log", log,
                              "--patience", "60",
                              *(word for field in FIELDS for word in ("--field", field)), *words], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            return run.stderr
        with open(log, encoding="ascii") as file:
            return [tuple(map(int, line.split())) for line in file]

    def test_load_sends_when_it_is_due_and_counts_what_is_not_answered(self):
        sim = self.sim("--default", "close-every-3")
        shots = self.replay(sim, "".join(f"{at} 0\n" for at in (0, 0, 50000, 100000)), "--connections", "3")
        self.assertEqual([shot[0] for shot in shots], [0, 0, 50000, 100000])
        self.assertTrue(all(due <= sent for due, sent, _, _ in shots), shots)
        self.assertEqual(sorted(status for _, _, _, status in shots), [0, 200, 200, 200], shots)
        self.assertTrue(all(sent < done for _, sent, done, _ in shots), shots)
        self.assertEqual(sim.stats()["requests"], 4)

    def test_load_gives_up_what_hangs(self):
        shots = self.replay(self.sim("--default", "hang"), "0 0\n", "--patience", "1")
        self.assertEqual([(done, status) for _, _, done, status in shots], [(0, 0)])

    def test_load_waits_for_a_connection_and_the_request_has_waited(self):
        shots = self.replay(self.sim("--default", "latency-100ms"), "0 0\n0 0\n", "--connections", "1")
        self.assertGreaterEqual(shots[1][1], 90000, shots)  # sent when the first was answered
        self.assertEqual([status for _, _, _, status in shots], [200, 200])

    def test_load_goes_round_the_addresses_where_somebody_listens(self):
        sims = self.sim(), self.sim()
        others = [word for port in (harness.free_port(), sims[1].port) for word in ("--to", f"127.0.0.1:{port}")]
        shots = self.replay(sims[0], "".join(f"{at * 1000} 0\n" for at in range(20)), "--connections", "4", *others)
        self.assertEqual([status for _, _, _, status in shots], [200] * 20)
        asked = [sim.stats()["requests"] for sim in sims]
        self.assertEqual(sum(asked), 20)
        self.assertTrue(all(asked), asked)

    def test_load_uses_the_key_that_the_schedule_names(self):
        keys = os.path.join(self.directory(), "keys")
        with open(keys, "w", encoding="ascii") as file:
            file.write("Bearer one\nBearer two\n")
        sim = self.sim()
        for key, wanted in (("0", "Bearer one"), ("1", "Bearer two")):
            self.assertEqual(self.replay(sim, f"0 {key}\n", "--keys", keys)[0][3], 200)
            self.assertEqual(sim.last()["headers"]["authorization"], wanted)

    def test_load_refuses_what_is_no_schedule(self):
        for wrong in ("5 0\n4 0\n", "soon\n", ""):
            self.assertIn("schedule", self.replay(self.sim(), wrong))

    def test_a_scenario_that_is_not_there_is_named(self):
        code, stderr, _ = self.bench("--scenario", "faster")
        self.assertEqual(code, 2)
        self.assertIn("no scenario faster; there are direct, h2c-1", stderr)


if __name__ == "__main__":
    for program in ("h2load", LOAD):
        if shutil.which(program) is None:
            print(f"NOT RUN: there is no {program}")
            sys.exit(77)
    harness.main()
