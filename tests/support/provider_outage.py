"""A provider's endpoints that fail under load, and what that did to callers.

    result = provider_outage.run(self, provider_outage.FAULTS["one dead"], calm_s=2, fault_s=4)
    result.lost, result.amplification, result.recovery_s ...

One gateway, one provider with three endpoints (simulators) of equal weight, callers at a fixed rate. A run is
a calm stretch, then the fault, then the return; every figure of the fault is compared with the calm before it.
"""

import dataclasses
import os
import threading
import time

import harness
import redis_fleet
from redis_outage import Stretch, linger, percentile

SANITIZED = bool(os.environ.get("SLUICE_SANITIZE"))
ENDPOINTS = 3
LATENCY_MS = 20
RATE = 50 if SANITIZED else 150  # requests a second
SETTLING_S = 1  # callers' first connections
TICK_S = 0.05
MODEL = "outage"
DEADLINE = "20s"
# One attempt's own: short, so that a half-dead endpoint costs a retry and not the whole deadline.
TIMEOUTS = {"connect": "500ms", "first_byte": "2s", "idle": "1s", "total": "10s"}
USUAL = f"latency-{LATENCY_MS}ms-" + redis_fleet.USAGE_WORDS


# ---- endpoints ---------------------------------------------------------------------------------

class Endpoint:
    """A simulator that can die and come back at its address; its counters go on."""

    def __init__(self, case, words=USUAL):
        self.case, self.words = case, words
        self.sim = case.sim("--default", words)
        self.url, self.port = self.sim.url, self.sim.port
        self.buried = 0  # requests of those that died
        self.lock = threading.Lock()

    def requests(self):
        """Requests that arrived, ever; those on which it died are not all known."""
        with self.lock:
            return self.buried + (0 if self.sim.killed else self.sim.stats()["requests"])

    def behave(self, words):
        """On top of the usual; "": as usual."""
        self.sim.default(words)

    def die(self):
        with self.lock:
            self.buried += self.sim.stats()["requests"]
            self.sim.kill()

    def rise(self):
        with self.lock:
            self.sim = self.case.sim("--port", str(self.port), "--default", self.words)


# ---- faults ------------------------------------------------------------------------------------

@dataclasses.dataclass
class Fault:
    """`begin` and `end` take the endpoints. `total`: no endpoint is left, so requests may be lost."""
    name: str
    begin: callable
    end: callable
    total: bool = False


def _first(act):
    return lambda endpoints: act(endpoints[0])


def _each(act):
    def on_all(endpoints):
        for endpoint in endpoints:
            act(endpoint)
    return on_all


def _words(words):
    return lambda endpoint: endpoint.behave(words)


_well = _words("")
FAULTS = {fault.name: fault for fault in (
    Fault("one dead", _first(Endpoint.die), _first(Endpoint.rise)),
    Fault("one slow", _first(_words("latency-1s")), _first(_well)),
    Fault("one limited", _first(_words("error-429-retry-1")), _first(_well)),
    Fault("one overloaded", _first(_words("error-529")), _first(_well)),
    Fault("one half dead", _first(_words("stall-size-4096")), _first(_well)),
    Fault("one hangs", _first(_words("hang")), _first(_well)),
    Fault("one resets", _first(_words("reset")), _first(_well)),
    Fault("storm", _each(_words("error-529-every-2")), _each(_well), total=True),
    Fault("all limited", _each(_words("error-429-retry-1")), _each(_well), total=True),
    Fault("all overloaded", _each(_words("error-529")), _each(_well), total=True),
    Fault("all dead", _each(Endpoint.die), _each(Endpoint.rise), total=True),
)}


# ---- a run -------------------------------------------------------------------------------------

class Watch:
    """Samples how many requests each endpoint has had, and last how many attempts the gateway has counted, all the time:
    (seconds since 1970, [count, ...])."""

    def __init__(self, case, world):
        self.world, self.samples = world, []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        case.addCleanup(self.stop)

    def _run(self):
        while not self.over.is_set():
            counts = [endpoint.requests() for endpoint in self.world.endpoints]
            self.samples.append((time.time(), [*counts, self.world.attempts()]))
            self.over.wait(TICK_S)

    def stop(self):
        self.over.set()
        self.thread.join()

    def between(self, begin, end):
        """Requests that each endpoint had in that time, and attempts that were counted, as far as samples go."""
        first, last = ([counts for at, counts in list(self.samples) if at <= when][-1] for when in (begin, end))
        return [now - before for before, now in zip(first, last)]


class World:
    """A gateway over three endpoints of one provider; `weights` one each, `more` of the provider's settings."""

    def __init__(self, case, words=(USUAL,) * ENDPOINTS, weights=None, binary=harness.BIN, **more):
        self.case = case
        self.endpoints = [Endpoint(case, word) for word in words]
        weights = weights or [1] * len(words)
        provider = harness.provider(self.endpoints[0], "anthropic", timeouts=TIMEOUTS, endpoints=[
            {"url": endpoint.url, "weight": weight} for endpoint, weight in zip(self.endpoints, weights)], **more)
        settings = harness.config(self.endpoints[0], providers={"many": provider},
                                  models=[harness.model(MODEL, "many")])
        plan = settings["plans"]["standard"]
        plan["models"] = {"allow": ["*"], "default": MODEL}
        plan["limits"].update(redis_fleet.ENDLESS, deadline=DEADLINE)
        self.gateway = case.gateway(settings, binary=binary)

    def callers(self, count, connections=10, streams=100, rps=None):
        return redis_fleet.Callers(self.case, self.gateway.url, harness.KEY, MODEL, count, connections, streams, rps)

    def attempts(self):
        return self.gateway.metrics().sum("sluice_provider_attempts_total")


def run(case, fault, calm_s, fault_s, after_s, **more):
    """A Result. Processes end with the case. `more` of the provider's settings."""
    world = World(case, **more)
    callers = world.callers(int(RATE * (SETTLING_S + calm_s + fault_s + after_s)), rps=RATE)
    watch = Watch(case, world)
    linger(SETTLING_S)
    calm_began = time.time()
    linger(calm_s)
    began = time.time()
    fault.begin(world.endpoints)
    linger(fault_s)
    fault.end(world.endpoints)
    ended = time.time()
    rows = callers.rows()
    watch.stop()
    return Result(fault, Stretch(calm_began, began), Stretch(began, ended), rows, watch)


# ---- what became of it -------------------------------------------------------------------------

class Result:
    def __init__(self, fault, calm, during, rows, watch):
        self.fault, self.calm, self.during, self.rows, self.watch = fault, calm, during, rows, watch

    def _of(self, stretch):
        """Rows that were in flight in that stretch."""
        return [row for row in self.rows if stretch.begin <= row.began + row.took_ms / 1000 and row.began < stretch.end]

    @property
    def requests(self):
        return len(self._of(self.during))

    @property
    def lost(self):
        """Answers other than 200, and none at all, in the whole run."""
        return sum(1 for row in self.rows if row.status != 200)

    def statuses(self):
        return redis_fleet.statuses(self.rows)

    def amplification(self, stretch):
        """Attempts for each request that began in that stretch, by the count of whoever saw more. What was saved up in
        the calm may be spent at once: a short fault by itself may see more than the budget's share."""
        began = sum(1 for row in self.rows if stretch.begin <= row.began < stretch.end)
        *arrived, counted = self.watch.between(*stretch)
        return max(counted, sum(arrived)) / max(began, 1)

    @property
    def both(self):
        """The calm and the fault."""
        return Stretch(self.calm.begin, self.during.end)

    def added_ms(self, share):
        """(in the calm, what the fault added) of that percentile; of answered requests."""
        calm, during = (percentile([row.took_ms for row in self._of(stretch) if row.status == 200], share)
                        for stretch in (self.calm, self.during))
        return calm, during - calm

    def share(self, stretch):
        """Of the first endpoint, of all that the endpoints had."""
        *arrived, _ = self.watch.between(*stretch)
        return arrived[0] / max(sum(arrived), 1)

    @property
    def well_after_s(self):
        """From the end of the fault until the last answer that was not good; 0 if all were."""
        bad = [row.began + row.took_ms / 1000 for row in self.rows if row.status != 200]
        return max([0, *(at - self.during.end for at in bad)])

    @property
    def shared_after_s(self):
        """From the end of the fault until the first endpoint had at least half its fair share, for a second; None:
        not in this run."""
        for at, _ in self.watch.samples:
            if at >= self.during.end and self.share(Stretch(at, at + 1)) >= 0.5 / ENDPOINTS and \
                    at + 1 <= max(row.began for row in self.rows):
                return at - self.during.end
        return None

    def __str__(self):
        calm, added = self.added_ms(0.99)
        shared = self.shared_after_s
        return (f"{self.fault.name}: {self.requests} requests, {self.lost} lost {self.statuses()}; amplification "
                f"{self.amplification(self.during):.3f}, with the calm {self.amplification(self.both):.3f}; p50 {self.added_ms(0.5)[1]:+.1f}, p99 {calm:.1f} ms {added:+.1f}; its share "
                f"{self.share(self.during):.3f}; well after {self.well_after_s:.2f} s, its share back after "
                f"{'more than that run' if shared is None else f'{shared:.2f} s'}")


# ---- balance -----------------------------------------------------------------------------------

def shares(case, weights, count):
    """What each endpoint had of so many requests, at equal latency, over what its weight is of all."""
    world = World(case, (USUAL,) * len(weights), weights)
    rows = world.callers(count, connections=5, streams=10).rows()
    if redis_fleet.statuses(rows) != {200: count}:
        raise harness.Failure(f"not all were answered: {redis_fleet.statuses(rows)}")
    return [endpoint.requests() / count * sum(weights) / weight for endpoint, weight in zip(world.endpoints, weights)]


def unequal(case, latencies_ms, count, rps, binary=harness.BIN):
    """At endpoints of such latencies: how long requests took, in order, and how many each endpoint had."""
    world = World(case, tuple(f"latency-{latency}ms-" + redis_fleet.USAGE_WORDS for latency in latencies_ms), binary=binary)
    rows = world.callers(count, rps=rps).rows()
    if redis_fleet.statuses(rows) != {200: count}:
        raise harness.Failure(f"not all were answered: {redis_fleet.statuses(rows)}")
    return sorted(row.took_ms for row in rows), [endpoint.requests() for endpoint in world.endpoints]
