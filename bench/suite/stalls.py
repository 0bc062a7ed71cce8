"""What medians hide: rounds in which the 99th percentile was far from that of the others."""

import collections

from suite import table

TIMES = 10  # the median of the point's rounds


def rounds_of(result):
    """Of every p99 that was found more than once: (scenario, point, server), its rounds and their median."""
    for name, scenario in result["scenarios"].items():
        for point in scenario.get("points", ()):
            for server, of in point["servers"].items():
                if len(of.get("p99_ms", {}).get("rounds", ())) > 1:
                    yield (name, point["x"], server), of["p99_ms"]["rounds"], of["p99_ms"]["median"]


def lines(result):
    """Which they were, and how many of each server's; nothing where no p99 was found more than once."""
    rows, stalled, all_of = [], collections.Counter(), collections.Counter()
    for place, rounds, median in rounds_of(result):
        all_of[place[2]] += len(rounds)
        for number, ms in enumerate(rounds, 1):
            if ms > TIMES * median:
                stalled[place[2]] += 1
                rows.append(table.row(*place, number, table.short(ms), table.short(median)))
    if not all_of:
        return []
    counts = ", ".join(f"{server} {stalled[server]} of {count}" for server, count in all_of.items())
    head = ["| scenario | point | server | round | p99, ms | median of the rounds, ms |", "|---" * 6 + "|"] if rows else []
    return ["## Stalls", f"Rounds whose p99 was more than {TIMES} times the median of the point's rounds: {counts}.", "", *head, *rows,
            *([""] if rows else [])]
