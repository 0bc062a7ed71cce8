"""The figures that the project has set itself, beside what a run found."""

import dataclasses

from suite import table


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


def both(name, theirs):
    """Ours of another metric, and theirs."""
    def place(point):
        pair = [point["servers"].get(server, {}).get(name) for server in ("sluice", theirs)]
        return None if None in pair else pair
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
        limits = ["" if limit is None else f"{limit:g}" for limit in (self.floor, self.goal)]
        return table.row(self.what, self.words(found), *limits, self.verdict(found), f"`bench/run --scenario {self.scenario}`")

    def words(self, found):
        return table.words(found)

    def verdict(self, found):
        """By the median."""
        if self.floor is not None and found["median"] > self.floor:
            return "above the floor"
        if self.goal is not None and found["median"] <= self.goal:
            return "goal"
        return "floor" if self.floor is not None else ""


class Added(Goal):
    """What is added to a latency, over what another server adds; `place` is `both` in ms.

    What is added is the small difference of two latencies that jump, in some rounds less than nothing, so that a ratio
    within a round says nothing: the figure is the ratio of the medians. A limit is kept where ours is at most so many
    times theirs in each round, and exceeded where it is in none (no division, so whatever the sign); all else is not
    decided. Nor is a multiple of what cannot be told from nothing: where theirs was 0 or less in a round.
    """

    def words(self, found):
        ours, theirs = found
        ratio = f"{table.short(ours['median'] / theirs['median'])}: " if theirs["median"] > 0 else ""
        return f"{ratio}{table.words(ours)} of {table.words(theirs)} ms"

    def verdict(self, found):
        ours, theirs = found

        def kept(limit):
            return {a <= limit * b for a, b in zip(ours["rounds"], theirs["rounds"])}
        if theirs["min"] <= 0:
            return UNDECIDED
        if kept(self.goal) == {True}:
            return "goal"
        return {(True,): "floor", (False,): "above the floor"}.get(tuple(kept(self.floor)), UNDECIDED)


UNDECIDED = "not decided"
GOALS = (
    Goal("CPU of a request, h2c, 64 in flight, x nginx", "h2c-64", times("sluice", "nginx"), 0.75, 0.60),
    Goal("the same, x HAProxy", "h2c-64", times("sluice", "haproxy"), None, None),
    Goal("the same, x h2o", "h2c-64", times("sluice", "h2o"), None, None),
    Goal("with the header lines of a real provider, x nginx", "lines-64", times("sluice", "nginx"), None, None),
    Goal("over HTTP/1.1, x nginx", "h1-64", times("sluice", "nginx"), 1.2, 1.0),
    Goal("over TLS on both sides, x nginx", "tls-both-64", times("sluice", "nginx"), None, None),
    Goal("with Redis, at 5,000 a second, x nginx", "redis", times("sluice-redis", "nginx"), 0.95, 0.80),
    Goal("CPU of a request of a provider's own API, h2c, 64 in flight, x nginx", "api-h2c-64", times("sluice", "nginx"), 0.75, 0.60),
    Goal("the same, x HAProxy", "api-h2c-64", times("sluice", "haproxy"), None, None),
    Goal("CPU of a relayed event of it, 10,000 streams, x nginx", "api-streams", times("sluice", "nginx"), 0.8, 0.6, 10000),
    Goal("an event of it under way, 100 streams, 20 a second each, p99, ms", "api-ages", metric("age_p99_ms"), 1, 0.3, 100),
    Goal("CPU of an MCP message, HTTP/1.1, 64 in flight, x nginx", "mcp-h1-64", times("sluice", "nginx"), 1.1, 0.9),
    Goal("the same, h2c", "mcp-h2c-64", times("sluice", "nginx"), 0.9, 0.6),
    Goal("the same, HTTP/1.1, answered by three events", "mcp-events-64", times("sluice", "nginx"), 1.2, 0.9),
    Goal("memory of an MCP session with its two GET streams, kB", "mcp-sessions", metric("kb_each"), 16, 10),
    Goal("added to a provider's time by backfill, 500 samplings a second, p50, ms", "mcp-backfill", metric("added_p50_ms"), 1, 0.5, 500),
    Goal("the same, p99, ms", "mcp-backfill", metric("added_p99_ms"), 5, 2, 500),
    Goal("CPU of a provider's event, 10,000 streams, us", "streams", metric("event_us"), 6, 4, 10000),
    Goal("memory of a request in flight, 2,000, kB", "waiting", metric("kb_each"), 10, 6, 2000),
    Goal("the same, 10,000", "waiting", metric("kb_each"), 10, 6, 10000),
    Goal("memory with nobody there, MB", "idle", metric("base_mb"), 16, 12),
    *(Added(f"added at 2,000 a second by {callers}, {name}, x what nginx adds", of, both(f"added_{name}_ms", "nginx"), *limits, 2000)
      for of, callers in (("rate-paced", "callers in step"), ("rate", "independent callers"),
                          ("rate-h1", "independent callers over HTTP/1.1"))
      for name, limits in (("p50", (0.8, 0.5)), ("p99", (1.0, 0.7)))),
    Goal("CPU with 10,000 tenants, x with one", "tenants", lambda point: point.get("times_first", {}).get("sluice"), 1.1, None,
         10000),
    Goal("a configuration of 100,000 tenants read, s", "tenants-load", metric("load_s"), 2, None, 100000),
    *(Goal(f"an attack running ({name}), % of a core", "attack", metric("attack_percent"), 10, None, name)
      for name in ("rapid_reset", "settings_flood", "header_bomb", "unfinished_bodies")),
)


def lines(result):
    """A table of those that the run has figures for; nothing where it has none."""
    rows = [row for row in (goal.row(result) for goal in GOALS) if row is not None]
    head = ["## What was wanted", "DESIGN 6 and FRONTS 7, at most: *floor*, above which the product is not done, and *goal*, what it wants to be known for. "
            "What is added to a latency is a ratio of medians, with both behind it; *not decided*: rounds on both sides of the limit, or "
            "nginx added nothing that can be told from 0.", "",
            table.row("what", "figure", "floor", "goal", "reached", "command"), "|---" * 6 + "|"]
    return [*head, *rows, ""] if rows else []
