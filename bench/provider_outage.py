#!/usr/bin/env python3
"""What callers notice when a provider fails: bench/README.md says what and how.

    bench/provider_outage.py [--seconds 30] [--calm 10] [--after 20] [FAULT...]
    bench/provider_outage.py --balance [--before BINARY]

Prints a Markdown table, row by row, so that a run can be cut short. SLUICE_BIN and SLUICE_SIM name the binaries.
"""

import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/support"))
import harness  # noqa: E402
import provider_outage  # noqa: E402
import redis_fleet  # noqa: E402
import redis_outage  # noqa: E402

COLUMNS = ("endpoints", "requests", "lost", "attempts a request", "p50, ms", "added", "p99, ms", "added",
           "share of the first", "well again after, s", "share back after, s")
WEIGHTS = (1, 2, 3)
LATENCIES_MS = (20, 20, 200)


def alone(work, *arguments, **options):
    case = harness.Case()
    try:
        return work(case, *arguments, **options)
    finally:
        case.doCleanups()


def print_row(*cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def row_of(result):
    medians, tails = result.added_ms(0.5), result.added_ms(0.99)
    back = result.shared_after_s
    added = ["none answered" if one != one else f"{one:+.1f}" for one in (medians[1], tails[1])]  # NaN
    return (result.fault.name, result.requests, result.lost, f"{result.amplification(result.during):.2f}", f"{medians[0]:.1f}",
            added[0], f"{tails[0]:.1f}", added[1], f"{result.share(result.during):.2f}",
            f"{result.well_after_s:.2f}", "more than this run" if back is None else f"{back:.2f}")


def outages(options):
    print_row(*COLUMNS)
    print("|---" * len(COLUMNS) + "|")
    for name in options.faults or provider_outage.FAULTS:
        print_row(*row_of(alone(provider_outage.run, provider_outage.FAULTS[name], options.calm, options.seconds,
                                options.after)))


def balance(options):
    ratios = alone(provider_outage.shares, WEIGHTS, 12000)
    print("Shares over weights, at equal latency: " +
          ", ".join(f"weight {weight}: {ratio:.3f}" for weight, ratio in zip(WEIGHTS, ratios)) + "\n", flush=True)
    print_row(f"latencies of {', '.join(map(str, LATENCIES_MS))} ms", "p50, ms", "p90", "p99", "mean", "requests")
    print("|---" * 6 + "|")
    for name, binary in (("this gateway", harness.BIN), ("the one before", options.before)):
        if binary is not None:
            times, counts = alone(provider_outage.unequal, LATENCIES_MS, 6000, 150, binary=binary)
            print_row(name, *(f"{redis_outage.percentile(times, share):.1f}" for share in (0.5, 0.9, 0.99)),
                      f"{sum(times) / len(times):.1f}", ", ".join(map(str, counts)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30, help="of each fault")
    parser.add_argument("--calm", type=float, default=10, help="seconds before it")
    parser.add_argument("--after", type=float, default=20, help="seconds behind it")
    parser.add_argument("--balance", action="store_true", help="how requests are shared instead, without faults")
    parser.add_argument("--before", metavar="BINARY", help="another gateway to compare with")
    parser.add_argument("faults", nargs="*", metavar="FAULT", choices=(*provider_outage.FAULTS, []),
                        help=", ".join(provider_outage.FAULTS))
    options = parser.parse_args()
    if redis_fleet.missing():
        sys.exit(redis_fleet.missing())
    balance(options) if options.balance else outages(options)


if __name__ == "__main__":
    main()
