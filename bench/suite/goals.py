"""The figures that the project has set itself, beside what a run found."""

import dataclasses

from suite import stats, table


def spread_at(result, scenario, x, place):
    """What `place` finds at that point (None: the first) of a scenario; None where it is not."""
    for point in result["scenarios"].get(scenario, {}).get("points", ()):
        if x is None or point["x"] == x:
            return place(point)
    return None


def times(ours, theirs):
    """The ratio of the metric that comes first."""
    return lambda point: point["times_sluice"].get(ours, {}).get(theirs)


def metric(name, server="sluice"):
    return lambda point: point["servers"].get(server, {}).get(name)


def times_of(name, theirs):
    """The ratio of another metric, round by round; that of the medians where they added nothing in one of the rounds."""
    def place(point):
        ours, yardstick = [point["servers"].get(server, {}).get(name) for server in ("sluice", theirs)]
        if ours is None or yardstick is None or yardstick["median"] <= 0:
            return None  # what adds nothing has no multiple
        if yardstick["min"] <= 0:
            return stats.spread([ours["median"] / yardstick["median"]])
        return stats.spread(stats.ratios(ours["rounds"], yardstick["rounds"]))
    return place


@dataclasses.dataclass
class Goal:
    """`floor` and `goal` are at most; None: none was set."""

    what: str
    scenario: str
    place: object
    floor: float
    goal: float
    x: object = None

    def row(self, result):
        found = spread_at(result, self.scenario, self.x, self.place)
        if found is None:
            return None
        verdict = "above the floor" if self.floor is not None and found["median"] > self.floor else \
            "goal" if self.goal is not None and found["median"] <= self.goal else "floor" if self.floor is not None else ""
        limits = ["" if limit is None else f"{limit:g}" for limit in (self.floor, self.goal)]
        return table.row(self.what, table.words(found), *limits, verdict, f"`bench/run --scenario {self.scenario}`")


GOALS = (
    Goal("CPU of a request, h2c, 64 in flight, x nginx", "h2c-64", times("sluice", "nginx"), 0.75, 0.60),
    Goal("the same over HTTP/1.1", "h1-64", times("sluice", "nginx"), 1.2, 1.0),
    Goal("the same over TLS on both sides", "tls-both-64", times("sluice", "nginx"), None, None),
    Goal("with Redis, at 5,000 a second, x nginx", "redis", times("sluice-redis", "nginx"), 0.95, 0.80),
    Goal("CPU of a provider's event, 10,000 streams, us", "streams", metric("event_us"), 6, 4, 10000),
    Goal("memory of a request in flight, 2,000, kB", "waiting", metric("kb_each"), 10, 6, 2000),
    Goal("the same, 10,000", "waiting", metric("kb_each"), 10, 6, 10000),
    Goal("memory with nobody there, MB", "idle", metric("base_mb"), 16, 12),
    Goal("added at 2,000 a second by callers in step, p50, x what nginx adds", "rate-paced",
         times_of("added_p50_ms", "nginx"), 0.8, 0.5, 2000),
    Goal("the same, p99", "rate-paced", times_of("added_p99_ms", "nginx"), 1.0, 0.7, 2000),
    Goal("the same by callers who do not know of each other, p50", "rate", times_of("added_p50_ms", "nginx"), 0.8, 0.5, 2000),
    Goal("the same, p99", "rate", times_of("added_p99_ms", "nginx"), 1.0, 0.7, 2000),
    Goal("CPU with 10,000 tenants, x with one", "tenants", lambda point: point.get("times_first", {}).get("sluice"), 1.1, None,
         10000),
    *(Goal(f"an attack running ({name}), % of a core", "attack", metric("attack_percent"), 10, None, name)
      for name in ("rapid_reset", "settings_flood", "header_bomb", "unfinished_bodies")),
)


def lines(result):
    """A table of those that the run has figures for; nothing where it has none."""
    rows = [row for row in (goal.row(result) for goal in GOALS) if row is not None]
    head = ["## What was wanted", "DESIGN 6, at most: *floor*, above which the product is not done, and *goal*, what it wants to be known for.", "",
            table.row("what", "figure", "floor", "goal", "reached", "command"), "|---" * 6 + "|"]
    return [*head, *rows, ""] if rows else []
