"""A Redis that fails under load, and what that did to whom.

    result = redis_outage.run(self, redis_outage.FAULTS["killed"], calm_s=2, fault_s=4)
    result.failed, result.money, result.recovery_s ...

Four gateways (redis_fleet) are asked all the time, at fixed rates, in the names of six tenants, each of whom
shows one thing. A run is a calm stretch, then the fault, then the return; every figure of the fault is
compared with the calm just before it. What may happen is in deploy/docs/limits.md.
"""

import collections
import dataclasses
import datetime
import math
import os
import statistics
import time

import fault_proxy
import harness
import redis_fleet
import redis_server

GATEWAYS = 4
AFTER_S = 2  # callers go on for so long after the fault: as long as the return may take
# Callers' time to come up against every limit, before it is calm.
SETTLING_S = 4 if os.environ.get("SLUICE_SANITIZE") else 1.5
QUICK, SLOW = "quick", "slow"  # models; places are scarce at the slow one
BURST, A_MINUTE = 20, 60
PLACES = 8
BUDGET_NANO, AWAY_NANO = 500 * 10**6, 100 * 10**6
LOCAL = {"rates": "local", "budget": {"local": 1000000}}
LOCAL_TO_A_POINT = {"rates": "local", "budget": {"local": AWAY_NANO / 10**9}}
CLOSED_TO_MONEY = {"rates": "local", "budget": "closed"}
CLOSED = {"rates": "closed", "budget": "closed"}
RATE = {"requests_per_minute": A_MINUTE, "requests_burst": BURST}
BUDGET = {"usd_per_day": BUDGET_NANO / 10**9}
# Who, his limits, and what he wants while Redis is away.
TENANTS = {
    "wide": ({}, LOCAL),  # whose answers are timed
    "rates": (RATE, LOCAL),
    "places": ({"concurrent": PLACES}, LOCAL),
    "money": (BUDGET, LOCAL_TO_A_POINT),
    "strict": (BUDGET, CLOSED_TO_MONEY),
    "closed": ({}, CLOSED),
}
# Requests a second at each gateway.
RATES = {"wide": 50, "rates": 20, "places": 30, "money": 20, "strict": 20, "closed": 20}
# What an answer may be, besides 200, where nothing has failed.
REFUSALS = {"wide": (), "rates": (429,), "places": (429,)}
AWAY = "sluice_away_decisions_total"
# Refusals by which one sees that a limit is in the way.
USED_UP = {"rates": "rate_limited", "places": "concurrency", "money": "budget_exceeded", "strict": "budget_exceeded"}


# ---- faults ------------------------------------------------------------------------------------

@dataclasses.dataclass
class Fault:
    """`begin` and `end` take a World; `middle` comes half way; `every`: begin again so often, in seconds."""
    name: str
    begin: callable
    end: callable
    middle: callable = None
    every: float = None
    proxied: bool = False
    replicated: bool = False
    away: bool = True  # whether gateways must notice
    loses: bool = False  # what Redis knew


def _nothing(_world):
    pass


def _restart(world):
    world.redis.start()
    redis_fleet.favour(world.redis)


def _lose_master(world):
    world.redis.kill()


def _reach_replica(world):
    world.proxy.lead_to(world.replica.port)


FAULTS = {fault.name: fault for fault in (
    Fault("killed", lambda w: w.redis.kill(), _restart, loses=True),
    Fault("stopped", lambda w: w.redis.stop(), lambda w: w.redis.go_on()),
    Fault("slow", lambda w: w.proxy.delay(0.5), lambda w: w.proxy.delay(0), proxied=True),
    Fault("read-only", lambda w: w.redis.ask("REPLICAOF", "127.0.0.1", "1"),
          lambda w: w.redis.ask("REPLICAOF", "NO", "ONE")),
    Fault("flushed", lambda w: w.redis.ask("FLUSHALL"), _nothing, every=1.0, away=False, loses=True),
    # The master dies, its address leads to a replica that still only reads, and at last that is the master.
    Fault("failing over", _lose_master, lambda w: w.replica.ask("REPLICAOF", "NO", "ONE"), middle=_reach_replica,
          proxied=True, replicated=True, loses=True),
)}


class World:
    """A Redis as the fault wants it, and who uses it."""

    def __init__(self, case, fault):
        self.redis = redis_fleet.favour(redis_server.Redis(case, "--repl-diskless-sync-delay", "0"))
        if fault.replicated:
            self.replica = redis_fleet.favour(
                redis_server.Redis(case, "--replicaof", "127.0.0.1", str(self.redis.port)))
            harness.wait_for(lambda: "master_link_status:up" in self.replica.ask("INFO", "replication"), "replication")
        if fault.proxied:
            self.proxy = fault_proxy.Proxy(case, self.redis.port)
        url = self.proxy.url if fault.proxied else self.redis.url
        self.sims = {QUICK: case.sim("--default", "latency-20ms-" + redis_fleet.USAGE_WORDS),
                     SLOW: case.sim("--default", "latency-500ms-" + redis_fleet.USAGE_WORDS)}
        tenants = [redis_fleet.Tenant(id, *row) for id, row in TENANTS.items()]
        self.fleet = redis_fleet.Fleet(case, url, tenants, self.sims, GATEWAYS)


# ---- a run -------------------------------------------------------------------------------------

Stretch = collections.namedtuple("Stretch", "begin end")  # seconds since 1970


def linger(seconds, until=lambda: False):
    """A stretch of the run."""
    end = time.monotonic() + seconds
    harness.wait_for(lambda: time.monotonic() >= end or until(), "time to pass", seconds + 60)


def suffer(world, fault, seconds):
    """The fault from begin to end. Returns its blows, and when it was over."""
    blows, left = [], seconds
    while True:
        before = time.time()
        fault.begin(world)
        blows.append(Stretch(before, time.time()))
        step = min(fault.every or seconds, left)
        linger(step / 2)
        if fault.middle:
            fault.middle(world)
        linger(step / 2)
        left -= step
        if left <= 0:
            break
    away = world.fleet.away()
    if fault.away and away != GATEWAYS:
        raise harness.Failure(f"{fault.name}: {away} of {GATEWAYS} gateways have noticed")
    fault.end(world)
    return blows, time.time()


def used_up(fleet):
    """Whether every limit is in its tenant's way: nothing can be exceeded before."""
    metrics = [gateway.metrics() for gateway in fleet.gateways]
    return all(any(one.sum("sluice_requests_total", tenant=id, outcome=reason) for one in metrics)
               for id, reason in USED_UP.items())


def run(case, fault, calm_s, fault_s):
    """A Result. Processes end with the case."""
    world = World(case, fault)
    seconds = SETTLING_S + calm_s + fault_s + AFTER_S
    callers = {id: world.fleet.callers(id, SLOW if id == "places" else QUICK, math.ceil(RATES[id] * seconds), 2, 100,
                                       RATES[id]) for id in TENANTS}
    harness.wait_for(lambda: used_up(world.fleet), "every limit to be in the way")
    world.sims[SLOW].reset()
    calm_began = time.time()
    linger(calm_s)
    calm_high = world.sims[SLOW].stats()["in_flight_high"]
    world.sims[SLOW].reset()
    away_before = world.fleet.metric(AWAY)
    blows, ended = suffer(world, fault, fault_s)
    world.fleet.wait_shared(30)
    back = time.time()
    rows = {id: [row for one in those for row in one.rows()] for id, those in callers.items()}
    world.fleet.settle()
    return Result(fault, Stretch(calm_began, blows[0].begin), Stretch(blows[0].begin, ended), blows, back, rows,
                  timed(world.fleet.lines()), (calm_high, world.sims[SLOW].stats()["in_flight_high"]),
                  (away_before, world.fleet.metric(AWAY)))


def timed(lines):
    """With the times at which each request began and ended, as far as milliseconds go; by tenant."""
    found = collections.defaultdict(list)
    for line in lines:
        line["began"] = datetime.datetime.fromisoformat(line["time"]).timestamp()
        line["ended"] = line["began"] + line["total_ms"] / 1000 + 0.001
        found[line.get("tenant")].append(line)
    return found


# ---- what became of it -------------------------------------------------------------------------

Overshoot = collections.namedtuple("Overshoot", "had bound")


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


class Result:
    """Times in seconds, waits in ms, money in nano-USD."""

    def __init__(self, fault, calm, during, blows, back, rows, lines, high, away):
        """`high`: most at the provider of `places` in the calm, and from the fault on; `away`: requests decided
        without Redis until the fault, and in all: a busy machine may have let a gateway take Redis for gone."""
        self.fault, self.calm, self.during, self.blows, self.back = fault, calm, during, blows, back
        self.rows, self.lines = rows, lines
        self.calm_high, self.fault_high = high
        self.away_in_the_calm, self.away = away

    # ---- callers of tenants with local functions
    @property
    def requests(self):
        return sum(len(self.rows[id]) for id in REFUSALS)

    @property
    def failed(self):
        return sum(1 for id, refusals in REFUSALS.items() for row in self.rows[id]
                   if row.status != 200 and row.status not in refusals)

    def times_ms(self, stretch):
        """Of `wide`: of requests that were in flight in that stretch."""
        return [row.took_ms for row in self.rows["wide"]
                if stretch.begin <= row.began + row.took_ms / 1000 and row.began < stretch.end]

    def added_ms(self, share):
        """What the fault added to that percentile; (in the calm, added)."""
        calm = percentile(self.times_ms(self.calm), share)
        return calm, percentile(self.times_ms(self.during), share) - calm

    def waits_ms(self):
        """What a request spent neither at its provider nor in the queue before him, while the fault lasted: the
        wait for the store, and the gateway's own work."""
        return [line["total_ms"] - line.get("queue_ms", 0) - line.get("provider_ms", 0)
                for id in REFUSALS for line in self.lines[id]
                if self.during.begin <= line["ended"] and line["began"] < self.back]

    # ---- the return
    @property
    def recovery_s(self):
        """Until every gateway had asked Redis again."""
        return max(0, self.back - self.during.end) if self.fault.away else 0

    @property
    def refused(self):
        """Of tenants who would rather be refused than counted without Redis."""
        return sum(1 for row in self.rows["closed"] if row.status == 503)

    # ---- too much
    @property
    def rates(self):
        """Requests beyond the rate from the first blow on; the burst was used up before."""
        seconds = max(row.began for row in self.rows["rates"]) - self.during.begin
        granted = sum(1 for row in self.rows["rates"] if row.status == 200 and row.began >= self.during.begin)
        fair = math.ceil(seconds * A_MINUTE / 60) + 1
        # What Redis had forgotten, or had let refill while nobody told it.
        back = BURST * len(self.blows) if self.fault.loses else \
            min(BURST, (self.back - self.during.begin) * A_MINUTE / 60)
        away = GATEWAYS * BURST + (GATEWAYS - 1) * seconds * A_MINUTE / 60 if self.away > self.away_in_the_calm else 0
        return Overshoot(max(0, granted - fair), math.floor(back + away))

    @property
    def places(self):
        """At the provider at once, beyond the limit."""
        return Overshoot(max(0, self.fault_high - PLACES), (GATEWAYS - 1) * PLACES)

    def _spoken(self, id, blow, until):
        """When every gateway had told Redis of that tenant again, after a blow; `until`, if never."""
        def first_word(number):
            refused = [line["ended"] for line in self.lines["closed"] if line["gateway"] == number and
                       line["status"] == 503 and blow.begin <= line["began"] < until]
            back = max([blow.end, *refused])
            return min((line["ended"] for line in self.lines[id] if line["gateway"] == number and
                        line["began"] > back and line["status"] in (200, 402)), default=until)
        return max(map(first_word, range(GATEWAYS)))

    def _unspoken(self, id):
        """Requests whose money Redis forgot, or that were granted before every gateway had spoken again."""
        spans = []
        ends = [*(blow.begin for blow in self.blows[1:]), self.back]
        for blow, until in zip(self.blows, ends) if self.fault.loses else []:
            granted_from = self.during.end if self.fault.away else blow.end
            spans += [blow, Stretch(granted_from, self._spoken(id, blow, until))]
        return sum(1 for line in self.lines[id] if line["status"] == 200 and
                   any(line["began"] <= span.end and span.begin <= line["ended"] for span in spans))

    def _money(self, id, away_nano):
        """What local budgets granted is spent by the day, however often Redis goes."""
        spent = redis_fleet.spent_nano(self.lines[id])
        away = GATEWAYS * away_nano if self.away > 0 else 0
        return Overshoot(max(0, spent - BUDGET_NANO), away + self._unspoken(id) * redis_fleet.COST_NANO)

    @property
    def money(self):
        """Of the tenant whose gateways may each spend something while Redis is away."""
        return self._money("money", AWAY_NANO)

    @property
    def strict_money(self):
        return self._money("strict", 0)

    def __str__(self):
        calm, added = self.added_ms(0.99)
        waits = self.waits_ms()
        over = [f"{name} {had}/{bound}" for name, (had, bound) in (
            ("requests", self.rates), ("places", self.places), ("nano-USD", self.money),
            ("strictly", self.strict_money))]
        return (f"{self.fault.name}: {self.requests} requests, {self.failed} failed; p99 {calm:.1f} ms {added:+.1f}, "
                f"median {self.added_ms(0.5)[1]:+.1f}; waits p99 {percentile(waits, 0.99):.1f} most {max(waits):.1f} ms "
                f"(median {statistics.median(waits):.2f}); too much: {', '.join(over)}; {self.refused} refused; "
                f"back after {self.recovery_s:.2f} s")
