"""Arithmetic of measurements; no files, no clock."""

import random
import statistics


class Void(Exception):
    """Something failed while it was measured, so there is no figure."""


def percentile(values, share):
    """The smallest value that is not exceeded by `share` of them (nearest rank); NaN of none."""
    ordered = sorted(values)
    if not ordered:
        return float("nan")
    rank = -int(-share * len(ordered) // 1)  # rounded up
    return ordered[min(len(ordered), max(1, rank)) - 1]


def spread(values):
    """What is kept of some rounds."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "rounds": list(values)}


def ratios(ours, theirs):
    """Round by round, because what disturbs the machine for a while disturbs both."""
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} rounds against {len(theirs)}")
    return [a / b for a, b in zip(ours, theirs)]


def turns(names, number):
    """Their order in round `number`, by Williams' square: over as many rounds as there are names (twice as many where that
    is odd) each is at each place equally often, and comes behind each other one equally often, so that no one's
    disturbances always meet the same neighbour."""
    names, count = list(names), len(names)
    zigzag = [-(step // 2) if step % 2 == 0 else step // 2 + 1 for step in range(count)]  # 0, 1, -1, 2, -2, ...
    order = [names[(place + number) % count] for place in zigzag]
    return order[::-1] if count % 2 and number % 2 else order


def slope(points):
    """Of the line through (x, y) with the least squares; 0 where there is none."""
    if len(points) < 2:
        return 0.0
    mean_x = statistics.fmean(x for x, _ in points)
    mean_y = statistics.fmean(y for _, y in points)
    below = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / below if below else 0.0


def poisson(rate, seconds, seed):
    """When requests are due, in microseconds: independent callers, `rate` a second between them all."""
    chance = random.Random(seed)
    due, at = [], chance.expovariate(rate)
    while at < seconds:
        due.append(int(at * 1e6))
        at += chance.expovariate(rate)
    return due


def require_all(name, asked, answered, why=""):
    """The rule: one request without a good answer, and what was measured is void."""
    if asked == 0 or asked != answered:
        raise Void(f"{name}: {asked - answered} of {asked} requests failed" + (f" ({why})" if why else ""))


def require_ok(name, before, after, asked):
    """The same of what a gateway counts itself: how many requests had ended how, before and after."""
    ended = {outcome: count - before.get(outcome, 0) for outcome, count in after.items()}
    others = {outcome: int(count) for outcome, count in ended.items() if count and outcome != "ok"}
    failed = max(asked - int(ended.get("ok", 0)), sum(others.values()))
    if failed > 0:
        raise Void(f"{name}: {failed} of {asked} requests failed, as the gateway counts them ({others})")
