"""bench/run: measures something, writes it down, and calls a run void when a request fails.

ctest: once timeout=120
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

    def test_a_scenario_is_measured_and_drawn(self):
        code, stderr, written = self.bench("--scenario", "h2c-1", "rate")
        self.assertEqual(code, 0, stderr)
        result = json.loads(written[".json"])
        self.assertEqual(result["void"], [])
        for name in ("h2c-1", "rate"):
            for metric in ("cpu_us", "rate", "p50_ms", "p99_ms"):
                self.assertGreater(result["scenarios"][name]["points"][0]["servers"]["sluice"][metric]["median"], 0, name)
        self.assertRegex(result["commit"], "^[0-9a-f]{40}|unknown")
        self.assertIn("| sluice |", written[".md"])
        self.assertIn("[2/2]", stderr)
        charts = [name for name in written if name.endswith(".svg")]
        self.assertEqual(sorted(charts), ["-cpu.svg", "-p99.svg", "-throughput.svg"])
        for name in charts:
            xml.etree.ElementTree.fromstring(written[name])

    def test_a_failed_request_makes_the_run_void(self):
        sim = os.path.join(self.directory(), "sim")
        with open(sim, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {harness.SIM} "$@" --default error-400-every-7\n')
        os.chmod(sim, 0o755)
        names = ["h2c-1", "rate"]  # by h2load, and by bench/load
        code, stderr, written = self.bench("--scenario", *names, SLUICE_SIM=sim)
        self.assertEqual(code, 1, stderr)
        self.assertIn("VOID: h2c-1, rate", stderr)
        result = json.loads(written[".json"])
        self.assertEqual(result["void"], names)
        for name in names:
            self.assertRegex(result["scenarios"][name]["void"], f"^{name}, sluice.*: [0-9]+ of [0-9]+ requests failed")
        self.assertEqual(written[".md"].count("**Void**"), 2)

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
