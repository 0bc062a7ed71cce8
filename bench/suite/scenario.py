"""What a scenario is: points, each measured on its servers in turns, round by round.

A figure is a dict of metric to number for one server in one round. Servers take turns within a round, so that what
disturbs the machine for a while disturbs them all, in another order in each; a ratio is taken within each round.
"""

import contextlib
import dataclasses

from suite import load, stats, work
from suite.machine import stolen_ms
from suite.servers import Bed, KINDS

PROXIES = ("nginx", "haproxy", "h2o")
BARE = "direct"  # what is added is added to this
STOLEN_MOST = 0.0025  # of two CPUs' time: where the host took more of a stretch, its 99th percentile is the host's
TRIES = 8
UNITS = {"cpu_us": "us of CPU a request", "rate": "requests a second", "p50_ms": "ms, median of answers",
         "p99_ms": "ms, 99th percentile", "late_ms": "ms that the load was late, 99th percentile",
         "event_us": "us of CPU an event", "age_p50_ms": "ms that an event is under way, median",
         "age_p99_ms": "ms that an event is under way, 99th percentile", "kb_each": "kB of memory each", "base_mb": "MB with nobody there",
         "added_p50_ms": "ms added, median", "added_p99_ms": "ms added, 99th percentile", "redis_us": "us of Redis's CPU a request", "scripts": "scripts a request",
         "stolen_ms": "ms that the host took from both CPUs", "tries": "stretches made",
         "missed_percent": "% of commands late, lost or refused", "loop_us": "us of CPU a loop of two turns", "load_s": "s to read a configuration", "reloads": "reloads", "restarts": "restarts",
         "attack_percent": "% of a core that the attack adds", "calm_p99_ms": "ms, the same without it",
         "leak_kb_min": "kB of memory a minute more, in the second half", "files_more": "files more than at first"}


@dataclasses.dataclass
class Effort:
    """How long and how often."""

    seconds: float = 4.0
    rounds: int = 5
    quick: bool = False

    def pick(self, full, quick):
        return quick if self.quick else full


@dataclasses.dataclass
class Point:
    """`x` names it; `bed` are Bed's arguments; `count` is for scenarios where `x` is not all there is to say."""

    x: object
    bed: dict = dataclasses.field(default_factory=dict)
    servers: tuple = ()
    count: int = 0


class Scenario:
    """One row of `bench/run --list`."""

    quick = True   # part of --quick, too
    fresh = False  # each round has servers of its own
    bed_kind = Bed

    def __init__(self, name, about, servers=("sluice", *PROXIES), x_name="", **options):
        self.name, self.about, self.servers, self.x_name = name, about, servers, x_name
        self.options, self.round = options, 0

    def points(self, effort):
        return [Point("", self.options.get("bed", {}), self.servers)]

    def measure(self, bed, server, point, effort):
        """One server for one stretch: a figure. Raises Void."""
        raise NotImplementedError

    def prepare(self, bed, server, point, effort):
        """Once, before the rounds: what is made at first use is made."""

    def undisturbed(self, bed, server, point, effort):
        """At the points that the option `calm` names: of TRIES stretches the first that the host left alone, or that from
        which it took least, with `stolen_ms` and how many were made. At others the only one."""
        if effort.quick or point.x not in self.options.get("calm", ()):
            return self.measure(bed, server, point, effort)
        made = []
        while len(made) < TRIES and not (made and made[-1]["stolen_ms"] <= STOLEN_MOST * 2000 * effort.seconds):
            before = stolen_ms()
            figure = self.measure(bed, server, point, effort)
            made.append({**figure, "stolen_ms": stolen_ms() - before})
        return {**min(made, key=lambda figure: figure["stolen_ms"]), "tries": len(made)}

    def run(self, effort, missing, progress):
        """`missing`: servers that this machine has not. What results.py keeps; raises Void."""
        options = {name: value for name, value in self.options.items() if name not in ("bed", "sweep")}
        points = self.points(effort)
        if self.options.get("abreast"):
            found = self.run_abreast(points, effort, missing, progress)
        else:
            found = [self.run_point(point, effort, missing, progress) for point in points]
        return {"about": self.about, "x": self.x_name, "options": options, "points": found}

    def beds(self, point, effort):
        """Of each round; the same for all of them, unless what one leaves behind would be the next one's."""
        if not self.fresh:
            bed = self.bed_kind(**point.bed)
            try:
                for _ in range(self.rounds(effort)):
                    yield bed
            finally:
                bed.end()
            return
        for _ in range(self.rounds(effort)):
            bed = self.bed_kind(**point.bed)
            try:
                yield bed
            finally:
                bed.end()

    def rounds(self, effort):
        return min(effort.rounds, self.options.get("rounds", effort.rounds))

    def run_point(self, point, effort, missing, progress):
        figures = {name: [] for name in point.servers if name not in missing}
        progress(f"{self.name} {point.x}: starting")
        with contextlib.closing(self.beds(point, effort)) as beds:
            for number, bed in enumerate(beds):
                self.play(bed, point, figures, number, effort, progress)
        return self.result_of(point, figures)

    def run_abreast(self, points, effort, missing, progress):
        """All points at once, which take turns as servers do: for points that are compared with each other."""
        figures = [{name: [] for name in point.servers if name not in missing} for point in points]
        with contextlib.ExitStack() as stack:
            beds = []
            for point in points:
                progress(f"{self.name} {point.x}: starting")
                beds.append(self.bed_kind(**point.bed))
                stack.callback(beds[-1].end)
            for number in range(self.rounds(effort)):
                for place in stats.turns(range(len(points)), number):
                    self.play(beds[place], points[place], figures[place], number, effort, progress)
        return [{**self.result_of(point, of_point), "times_first": against_first(of_point, figures[0])}
                for point, of_point in zip(points, figures)]

    def play(self, bed, point, figures, number, effort, progress):
        """One round of a point."""
        self.round = number  # all servers of a round are sent the same schedule
        servers = [bed.server(name) for name in stats.turns(figures, number)]
        for server in servers if self.fresh or number == 0 else ():
            progress(f"{self.name} {point.x}: {server.name}, warming up")
            self.prepare(bed, server, point, effort)
        for server in servers:
            progress(f"{self.name} {point.x}: {server.name}, round {number + 1} of {self.rounds(effort)}")
            server.forget()
            figures[server.name].append(self.undisturbed(bed, server, point, effort))

    def result_of(self, point, figures):
        self.extend(figures)
        return {"x": point.x, "parameters": parameters(point.bed),
                "servers": {name: summary(of) for name, of in figures.items()}, "times_sluice": against(figures)}

    def extend(self, figures):
        """Adds what is only known of all servers together."""


def parameters(bed):
    """As JSON can have them."""
    return {name: f"{len(value)} bytes" if isinstance(value, bytes) else value for name, value in bed.items()}


def summary(figures):
    """Rounds of one server: metric to spread."""
    return {metric: stats.spread([figure[metric] for figure in figures]) for metric in figures[0]}


def against(figures):
    """The gateways' ratios to each other server, of the metric that comes first: {gateway: {server: spread}}. What the bare
    provider takes is no server's."""
    result = {}
    for ours in (name for name in figures if name.startswith("sluice")):
        metric = next(iter(figures[ours][0]))
        rounds = [figure[metric] for figure in figures[ours]]
        result[ours] = {name: stats.spread(stats.ratios(rounds, [figure[metric] for figure in theirs]))
                        for name, theirs in figures.items()
                        if name not in (ours, BARE) and metric in theirs[0] and all(figure[metric] for figure in theirs)}
    return result


def against_first(figures, first):
    """Each server's ratio to itself at the first point, of the metric that comes first: {server: spread}."""
    metric = next(iter(next(iter(figures.values()))[0]))
    return {name: stats.spread(stats.ratios(*([figure[metric] for figure in of] for of in (figures[name], first[name]))))
            for name in figures}


def cost(name, server, run, per=None):
    """The figure of one stretch of load: CPU of the server, over the requests that were answered."""
    before = server.cpu_s()
    outcome = run()
    spent = server.cpu_s() - before
    try:
        outcome.require_all(f"{name}, {server.name}")
    except stats.Void as void:
        raise stats.Void(f"{void}\n{server.complaint()}".strip()) from None
    figure = {"cpu_us": spent * 1e6 / (per or outcome.answered), "rate": outcome.answered / max(1e-9, outcome.seconds)}
    if outcome.times_ms:
        figure["p50_ms"] = stats.percentile(outcome.times_ms, 0.5)
        figure["p99_ms"] = stats.percentile(outcome.times_ms, 0.99)
    if outcome.late_ms:
        figure["late_ms"] = stats.percentile(outcome.late_ms, 0.99)
    return figure


class Closed(Scenario):
    """So many requests in flight, as fast as answers come, or at most `rate` a second.
    options: in_flight, rate, and `bed` or `sweep`, full and quick: [(x, bed arguments)]."""

    def points(self, effort):
        sweep = self.options.get("sweep")
        if sweep is None:
            return super().points(effort)
        return [Point(x, bed, self.servers) for x, bed in effort.pick(*sweep)]

    def in_flight(self, point):
        return self.options.get("in_flight", 64)

    def prepare(self, bed, server, point, effort):
        """Finds out how many requests a stretch of that many seconds is."""
        in_flight = self.in_flight(point)
        load.closed(server, 1, 1).require_all(f"{self.name}, {server.name}, warming up")
        warm = load.closed(server, max(effort.pick(4, 2) * in_flight, 50), in_flight)
        warm.require_all(f"{self.name}, {server.name}, warming up")
        rate = self.options.get("rate") or warm.answered / max(1e-3, warm.seconds)
        server.count = max(in_flight, int(rate * effort.seconds))

    def measure(self, bed, server, point, effort):
        return cost(self.name, server, lambda: load.closed(server, server.count, self.in_flight(point),
                                                           self.options.get("rate")))


class Open(Scenario):
    """Independent callers at a fixed rate; latency counts from when each request was due.
    options: `rates`, or `rate` with `sweep` as above; `calm`."""

    def points(self, effort):
        if "rates" in self.options:
            return [Point(rate, self.options.get("bed", {}), self.servers)
                    for rate in effort.pick(*self.options["rates"])]
        return [Point(x, bed, self.servers) for x, bed in effort.pick(*self.options["sweep"])]

    def rate(self, point):
        return self.options.get("rate", point.x)

    def keys(self, bed):
        return ["Bearer " + work.tenant_key(number) for number in range(bed.tenants)]

    def prepare(self, bed, server, point, effort):
        count = max(200, bed.tenants)  # each tenant once
        load.replay(server, 4000, count / 4000 + 0.05, keys=self.keys(bed) if self.is_ours(server) else ()).require_all(
            f"{self.name}, {server.name}, warming up")

    def measure(self, bed, server, point, effort):
        keys = self.keys(bed) if self.is_ours(server) and bed.tenants > 1 else ()
        return cost(self.name, server, lambda: load.replay(server, self.rate(point), effort.seconds, seed=self.round,
                                                           keys=keys))

    def extend(self, figures):
        """What a server adds to the latency that there is without any, round by round."""
        for name, of in figures.items():
            for figure, bare in zip(of, figures[BARE] if name != BARE and BARE in figures else ()):
                for metric in ("p50_ms", "p99_ms"):
                    figure["added_" + metric] = figure[metric] - bare[metric]

    @staticmethod
    def is_ours(server):
        return server.name.startswith("sluice")


class Fresh(Open):
    """The same with servers that have just started in each round: they have few connections to the provider yet."""

    fresh = True


class Paced(Open):
    """Callers of h2load's on a connection each, at the same pace, so that they ask at nearly the same time; latency counts
    from when a request was sent. options: `rates`, `callers`, `calm`."""

    def measure(self, bed, server, point, effort):
        rate = self.rate(point)
        return cost(self.name, server, lambda: load.closed(server, int(rate * effort.seconds), self.options["callers"], rate,
                                                           per_connection=1))


def unknown(names, scenarios):
    """Those of `names` that no scenario has."""
    return sorted(set(names) - {scenario.name for scenario in scenarios})


assert set(PROXIES) <= set(KINDS)
