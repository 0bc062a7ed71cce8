#!/usr/bin/env python3
"""What one gateway carries, and what 1, 10 and 100 of them do, from measured parts: deploy/docs/sizing.md is made by this.

    bench/sizing.py bench/results/DATE.json                     # prints the page's tables
    bench/sizing.py bench/results/DATE.json --write deploy/docs/sizing.md    # puts them between its marks
    bench/sizing.py ... --workers 8 --answer-s 20 --events 400 --gateways 1 4 # another installation

The file has to have the scenarios tls-both-64, redis, streams, waiting and idle; what is missing is named. Of rate and
h2c-64 the page says what a request costs a server that is nearly idle. Every bound is a rate that a gateway cannot
exceed; the least of them is the first bottleneck.
"""

import argparse
import dataclasses
import math
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from suite import results  # noqa: E402
from suite.table import row, short, words  # noqa: E402

PARTS = {  # name: scenario, server, metric, what it is
    "cpu_tls_us": ("tls-both-64", "sluice", "cpu_us", "CPU of a request, TLS on both sides, limits in memory, us"),
    "cpu_memory_us": ("redis", "sluice", "cpu_us", "CPU of a request at 5,000 a second, limits in memory, us"),
    "cpu_redis_us": ("redis", "sluice-redis", "cpu_us", "the same with limits in Redis, us"),
    "redis_us": ("redis", "sluice-redis", "redis_us", "CPU of Redis a request, us"),
    "scripts": ("redis", "sluice-redis", "scripts", "calls of Redis a request"),
    "event_us": ("streams", "sluice", "event_us", "CPU of a provider's event, us"),
    "request_kb": ("waiting", "sluice", "kb_each", "memory of a request in flight, 2 KB body, in clear text, kB"),
    "request_tls_kb": ("waiting", "sluice", "kb_each", "the same, TLS on both sides, kB"),
    "stream_tls_kb": ("waiting", "sluice", "kb_each", "memory of an open stream, TLS on both sides, kB"),
    "caller_kb": ("idle", "sluice", "kb_each", "memory of a caller's idle connection, TLS, HTTP/2, kB"),
    "base_mb": ("idle", "sluice", "base_mb", "memory with nobody there, a TLS listener, MB"),
}
POINTS = {  # of the scenario, where it is not the first
    "caller_kb": "tls-h2", "base_mb": "tls-h2", "request_tls_kb": "2000 over TLS", "stream_tls_kb": "2000 streams over TLS"}
LATER = {"request_tls_kb", "stream_tls_kb"}  # files up to 2026-11-26-0153 have them not
FIRST, LAST = "<!-- made by bench/sizing.py -->", "<!-- end -->"

# Of the gateway itself: gateway/base/bounds.h, upstream_limits_default, and Linux's usual range of ports.
REQUESTS_OF_A_WORKER = 32768
STREAMS_OF_A_WORKER = 12288
PROVIDER_CONNECTIONS_OF_A_WORKER = 4096  # to an endpoint
PORTS = 60999 - 32768 + 1  # local ports to one address


@dataclasses.dataclass
class Installation:
    """What is assumed; times in seconds, sizes in MB."""

    workers: int = 4
    busy: float = 0.6         # of a CPU; the rest is for the minutes that are not average
    memory_mb: float = 2048.0
    answer_s: float = 8.0     # how long a provider takes, all of the answer
    streamed: float = 0.5     # share of the answers
    events: float = 150.0     # of a streamed answer
    callers: int = 2000       # connections that stay, at each gateway
    endpoints: int = 2        # of the provider, each with an address of its own
    redis_busy: float = 0.7   # of Redis's one CPU


class Missing(Exception):
    """Figures that a results file has not."""


def parts_of(result):
    """Without those of LATER that the file has not."""
    found = {}
    for name, (scenario, server, metric, _) in PARTS.items():
        found[name] = results.figure(result, scenario, metric, server, POINTS.get(name))
    missing = sorted({PARTS[name][0] for name, value in found.items() if value is None and name not in LATER})
    if missing:
        raise Missing("not in the file, or void: " + ", ".join(missing) + "; bench/run --scenario " + " ".join(missing))
    return {name: value for name, value in found.items() if value is not None}


def request_us(parts, place):
    """CPU of a request with everything: TLS on both sides, Redis, and the events of those that stream."""
    of_redis = max(0.0, parts["cpu_redis_us"] - parts["cpu_memory_us"])
    return parts["cpu_tls_us"] + of_redis + place.streamed * place.events * parts["event_us"]


def flying_kb(parts, place):
    """Memory of a request in flight, of those that stream and those that do not."""
    plain = parts.get("request_tls_kb", parts["request_kb"])
    return plain + place.streamed * (parts.get("stream_tls_kb", plain) - plain)


def in_flight_bounds(parts, place):
    """What bounds the requests in flight at a gateway: name to their number."""
    free_kb = (place.memory_mb - parts["base_mb"]) * 1024 - place.callers * parts["caller_kb"]
    streams = place.workers * STREAMS_OF_A_WORKER / place.streamed if place.streamed else math.inf
    return {"memory": max(0.0, free_kb) / flying_kb(parts, place),
            "requests in flight": min(place.workers * REQUESTS_OF_A_WORKER, streams),
            "connections to providers": min(place.workers * PROVIDER_CONNECTIONS_OF_A_WORKER, PORTS) * place.endpoints}


def bounds(parts, place, gateways):
    """Requests a second of one of so many gateways that share a Redis, by what would be used up."""
    rates = {name: most / place.answer_s for name, most in in_flight_bounds(parts, place).items()}
    rates["CPU"] = place.workers * place.busy * 1e6 / request_us(parts, place)
    rates["Redis's CPU"] = place.redis_busy * 1e6 / parts["redis_us"] / gateways
    return rates


def use_of(parts, place, gateways):
    """What is used of everything where the first bottleneck is reached."""
    rates = bounds(parts, place, gateways)
    first = min(rates, key=rates.get)
    rate = rates[first]
    flying = rate * place.answer_s
    return {"gateways": gateways, "requests a second, each": rate, "all": rate * gateways, "first bottleneck": first,
            "CPUs, each": rate * request_us(parts, place) / 1e6, "in flight, and connections to providers, each": flying,
            "MB, each": parts["base_mb"] + (place.callers * parts["caller_kb"] + flying * flying_kb(parts, place)) / 1024,
            "calls of Redis a second, all": rate * gateways * parts["scripts"],
            "CPU of Redis, %": 100 * rate * gateways * parts["redis_us"] / 1e6,
            "connections to Redis": gateways * place.workers}


def cell(value):
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else short(value)


def table(rows):
    heads = list(rows[0])
    return [row(*heads), "|---" * len(heads) + "|", *(row(*(cell(one[head]) for head in heads)) for one in rows)]


def caveats(result, parts):
    """What the figures leave out, or depend on."""
    if not LATER <= set(parts):
        yield ("Memory of a request in flight is that of one in clear text: the file has none over TLS, nor that of an open stream, "
               "which take several times as much.")
    points = result["scenarios"].get("rate", {}).get("points", ())
    costs = [f"{words(point['servers']['sluice']['cpu_us'])} at {point['x']:,} a second" for point in (points[:1] + points[-1:])]
    busy = results.spread(result, "h2c-64", "cpu_us")
    if costs and busy:
        yield (f"CPU of a request is that of a server that is never idle. One that sleeps between requests takes more: in clear text, us, "
               f"{', '.join(costs)}, {words(busy)} with 64 in flight (`bench/run --scenario rate h2c-64`). So a gateway far below its bound "
               "uses more CPU than its share of the bound.")
    else:
        yield ("CPU of a request is that of a server that is never idle. One that sleeps between requests takes more, which is not in "
               "the file (`bench/run --scenario rate h2c-64`).")
    yield (f"CPU of Redis is as the host let it: {words(results.spread(result, 'redis', 'redis_us', 'sluice-redis'))} us a request with a load "
           f"average of {result['machine']['load_average_before']:.2f} before. One machine gave 25 us on a quiet day and 43 on a busy one, so "
           "the bound moves by as much: measure on yours.")


def page(result, place, counts):
    """The part of the page that is made."""
    parts = parts_of(result)
    of_parts = [{"part": PARTS[name][3], "figure": value, "measured by": f"`bench/run --scenario {PARTS[name][0]}`"}
                for name, value in parts.items()]
    limits = [{"gateways": count, **{f"{name}": rate for name, rate in bounds(parts, place, count).items()}}
              for count in counts]
    machine = result["machine"]
    return "\n".join([
        FIRST, f"Measured {result['date']} on {machine['cpu']}, load average {machine['load_average_before']:.2f} before; "
        f"commit {result['commit'].replace(result['commit'][12:40], '')}.", "", *table(of_parts), "",
        *(line for caveat in caveats(result, parts) for line in (caveat, "")),
        f"Assumed: {place.workers} workers that are {place.busy:.0%} busy, {place.memory_mb:g} MB, answers of "
        f"{place.answer_s:g} s, {place.streamed:.0%} of them streamed in {place.events:g} events, {place.callers} callers' "
        f"connections a gateway, {place.endpoints} endpoints of the provider, a Redis that is {place.redis_busy:.0%} busy. A "
        f"request takes {short(request_us(parts, place))} us of CPU.", "",
        "Requests a second that one gateway cannot exceed, by what is used up:", "", *table(limits), "",
        "Where the first of them is reached:", "", *table([use_of(parts, place, count) for count in counts]), LAST])


def put(path, text):
    """Between the marks of a file that has them."""
    with open(path, encoding="utf-8") as file:
        old = file.read()
    new, count = re.subn(re.escape(FIRST) + ".*" + re.escape(LAST), lambda _: text, old, flags=re.S)
    if count != 1:
        raise Missing(f"{path} has not one place between {FIRST} and {LAST}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(new)


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("--write", metavar="PAGE")
    parser.add_argument("--gateways", type=int, nargs="+", default=[1, 10, 100])
    for field in dataclasses.fields(Installation):
        parser.add_argument("--" + field.name.replace("_", "-"), type=field.type, default=field.default,
                            help=f"{field.default:g}")
    options = vars(parser.parse_args(argv))
    place = Installation(**{field.name: options[field.name] for field in dataclasses.fields(Installation)})
    try:
        text = page(results.read(options["results"]), place, options["gateways"])
        if options["write"]:
            put(options["write"], text)
        else:
            print(text)
    except (Missing, OSError) as problem:
        sys.exit(f"bench/sizing.py: {problem}")


if __name__ == "__main__":
    main(sys.argv[1:])
