"""What tests of exact costs share: costs of a request as the difference of two run lengths, against the table exact.json.

The table holds the present values; only a deliberate commit changes it. A value that is worse than its row by more than the
row's tolerance fails, and so does one that is better by more: then the table is out of date.
"""
import collections
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import callgrind
import harness

TABLE = os.path.join(harness.SOURCE, "tests/integration/exact.json")


class Case(harness.Case):
    measured, printing = {}, False

    def h2load(self, url, count, clients, streams, body, fields=(), http2=True):
        """`count` requests; every one is answered 200."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(body)
            file.flush()
            run = subprocess.run(
                ["h2load", *([] if http2 else ["--h1"]), "-n", str(count), "-c", str(clients), "-m", str(streams),
                 "-d", file.name, *[word for field in fields for word in ("-H", field)], "-H", "content-type: application/json", "-H",
                 "authorization: Bearer " + harness.KEY, url],
                capture_output=True, text=True, check=True)
        self.assertIn(f"status codes: {count} 2xx", run.stdout)

    def check(self, name, value):
        Case.measured[name] = value
        if Case.printing:
            return
        with open(TABLE, encoding="utf-8") as file:
            row = json.load(file)[name]
        slack = row["value"] * row["tolerance"] + row.get("absolute", 0)
        print(f"{name}: {value:.2f}, the table has {row['value']} +- {slack:.2f}")
        self.assertLessEqual(value, row["value"] + slack, f"{name} got worse")
        self.assertGreaterEqual(value, row["value"] - slack, f"{name} got better: update {TABLE}")

    def profiled(self, settings, work):
        return callgrind.worker(self, settings, work, started=self.started)

    def started(self, settings, **options):
        """With Redis: once it is in use."""
        gateway = self.gateway(settings, **options)
        if settings["store"]["kind"] == "redis":
            harness.wait_for(lambda: gateway.metrics().sum("sluice_limiter_mode", mode="shared"), "Redis in use")
        return gateway

    def worker_thread(self, supervisor):
        for path in glob.glob("/proc/[0-9]*/task/*/comm"):
            process = path.split("/")[2]
            try:
                with open(path, encoding="utf-8") as file:
                    if file.read().strip() != "worker-0":
                        continue
                with open(f"/proc/{process}/stat", encoding="utf-8") as file:
                    parent = int(file.read().rsplit(")", 1)[1].split()[1])
            except OSError:  # somebody else's process, which has ended
                continue
            if parent == supervisor:
                return path.split("/")[4]
        self.fail("no thread worker-0")

    def traced(self, thread, work):
        directory = self.directory()
        out = os.path.join(directory, "strace")
        tracer = subprocess.Popen(["strace", "-c", "-o", out, "-p", thread], stderr=subprocess.PIPE, text=True)
        self.assertIn("attached", tracer.stderr.readline())
        work()
        tracer.terminate()
        tracer.wait()
        tracer.stderr.close()
        counts = collections.Counter()
        with open(out, encoding="utf-8") as file:
            for line in file:
                match = re.match(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", line)
                if match and match[2] != "total":
                    counts[match[2]] += int(match[1])
        return counts


def print_table():
    rows = {name: {"value": round(value, 2), "tolerance": 0.03} for name, value in Case.measured.items()}
    print(json.dumps(rows, indent=1))


def main(kind):
    """Runs the tests of `kind`; with --print they print what they measured, in the table's form, and judge nothing."""
    if "--print" in sys.argv:
        sys.argv.remove("--print")
        Case.printing = True
        kind.tearDownClass = staticmethod(print_table)
    harness.main()
