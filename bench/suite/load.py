"""Who asks: h2load, which keeps so many requests in flight, and bench/load, which asks when a schedule says so."""

import os
import re
import subprocess
import urllib.parse

import harness
from suite import stats
from suite.machine import LOAD_CPU, pinned

LOAD = os.environ.get("SLUICE_LOAD", os.path.join(os.path.dirname(harness.BIN), "load"))
PER_CONNECTION = 8  # requests at once on a connection of HTTP/2
PATIENCE_S = 20
H2LOAD_PATIENCE_S = 180


class Outcome:
    """Of one stretch: how many were asked and answered well, for how long, milliseconds of each answer."""

    def __init__(self, asked, answered, seconds, times_ms, why=""):
        self.asked, self.answered, self.seconds, self.times_ms, self.why = asked, answered, seconds, times_ms, why
        self.late_ms = []  # how much later than due each was sent; of bench/load alone

    def require_all(self, name):
        stats.require_all(name, self.asked, self.answered, self.why)
        return self


def body_file(server, directory):
    path = os.path.join(directory, "body")
    with open(path, "wb") as file:
        file.write(server.body)
    return path


def shape(front, in_flight, per_connection=PER_CONNECTION):
    """Connections and requests at once on each."""
    if front == "h1":
        return in_flight, 1
    streams = min(in_flight, per_connection)
    return -(-in_flight // streams), streams


def closed(server, count, in_flight, rate=None, per_connection=PER_CONNECTION, timed=True):
    """`count` requests, `in_flight` of them at a time; with `rate` no more than that many a second."""
    directory = server.bed.case.directory()
    connections, streams = shape(server.front, in_flight, per_connection)
    count = max(count, connections)
    log = os.path.join(directory, "log")
    argv = ["h2load", "-t", 1, "-c", connections, "-m", streams, "-n", count, "-d", body_file(server, directory)]
    if timed:
        argv += ["--log-file", log]
    if server.front == "h1":
        argv.append("--h1")
    if rate is not None:
        argv += ["--rps", rate / connections]
    for field in server.fields.items():
        argv += ["-H", ": ".join(field)]
    try:
        run = pinned(LOAD_CPU, lambda: subprocess.run([*map(str, argv), server.url], capture_output=True, text=True,
                                                      check=False, timeout=H2LOAD_PATIENCE_S))
    except subprocess.TimeoutExpired:
        return Outcome(count, 0, H2LOAD_PATIENCE_S, [], f"h2load did not end within {H2LOAD_PATIENCE_S} s")
    return read_h2load(run.stdout + run.stderr, count, log if timed else None)


SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


def read_h2load(text, count, log):
    """What h2load says; its log has a line per request: start, status, microseconds. "status codes" are counted where the
    header comes, so a body that is cut short is a 2xx, too: only "succeeded" has come to its end, and nothing beside it."""
    finished = re.search(r"finished in ([\d.]+)(us|ms|s|m)\b", text)
    of = {what: int(number) for number, what in re.findall(r"(\d+) (succeeded|failed|errored|timeout)", text)}
    bad = max(of.get(what, 0) for what in ("failed", "errored", "timeout"))
    seconds = float(finished[1]) * SECONDS[finished[2]] if finished else 0.0
    times = []
    if log is not None and os.path.exists(log):
        with open(log, encoding="ascii") as file:
            times = [int(line.split()[2]) / 1000 for line in file]
    why = "; ".join(line for line in text.splitlines() if line.startswith(("requests:", "status codes:"))) or text[-300:]
    return Outcome(count, min(of.get("succeeded", 0), count - bad), seconds, times, why)


class Replay:
    """bench/load in the background: independent callers, `rate` requests a second between them all."""

    def __init__(self, server, rate, seconds, seed=1, keys=(), keyed="authorization", connections=20, targets=(),
                 count=None, stamps=None):
        """Request n has the field `keyed` with value n of `keys`, counted round; where there are none, all have the server's.
        `count`: so many, as evenly as can be; `stamps`: a file for the ages of events."""
        directory = server.bed.case.directory()
        self.server, self.log = server, os.path.join(directory, "log")
        schedule = os.path.join(directory, "schedule")
        due = stats.poisson(rate, seconds, seed) if count is None else [int(n * seconds * 1e6 / count) for n in range(count)]
        self.count = len(due)
        with open(schedule, "w", encoding="ascii") as file:
            file.writelines(f"{at} {number % max(1, len(keys))}\n" for number, at in enumerate(due))
        parts = urllib.parse.urlsplit(server.url)
        argv = [LOAD, "--path", parts.path, "--schedule", schedule, "--log", self.log, "--body",
                body_file(server, directory), "--connections", connections, "--patience", PATIENCE_S]
        for target in targets or (parts.netloc,):
            argv += ["--to", target]
        if server.front == "h1":
            argv.append("--http1")
        if stamps is not None:
            argv += ["--stamps", stamps]
        for name, value in server.fields.items():
            if not (keys and name == keyed):
                argv += ["--field", f"{name}: {value}"]
        if keys:
            path = os.path.join(directory, "keys")
            with open(path, "w", encoding="ascii") as file:
                file.writelines(f"{key}\n" for key in keys)
            argv += ["--keys", path, "--keyed", keyed]
        self.child = pinned(LOAD_CPU, lambda: subprocess.Popen([*map(str, argv)], stderr=subprocess.PIPE, text=True))
        server.bed.case.addCleanup(self.end)

    def end(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        self.child.stderr.close()

    @property
    def running(self):
        return self.child.poll() is None

    def stop(self):
        """Nothing more is sent; its outcome, of what was."""
        self.child.terminate()
        return self.wait()

    def wait(self):
        """Its outcome; time is that from the first request's due time to the last answer."""
        said = self.child.communicate()[1]
        if self.child.returncode != 0:
            raise harness.Failure(f"bench/load at {self.server.name}: {said}")
        return read_replay(self.log)


def read_replay(log):
    """Latency counts from when a request was due: one that had to wait before it was sent has waited."""
    with open(log, encoding="ascii") as file:
        shots = [tuple(map(int, line.split())) for line in file]
    good = [shot for shot in shots if shot[3] == 200]
    statuses = sorted({shot[3] for shot in shots} - {200})
    last = max((shot[2] for shot in good), default=0)
    outcome = Outcome(len(shots), len(good), last / 1e6, [(done - due) / 1000 for due, _, done, _ in good],
                      f"statuses {statuses}; 0: no answer" if statuses else "")
    outcome.late_ms = [(sent - due) / 1000 for due, sent, _, _ in good]
    return outcome


def replay(server, rate, seconds, **options):
    return Replay(server, rate, seconds, **options).wait()
