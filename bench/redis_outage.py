#!/usr/bin/env python3
"""What callers notice when Redis fails: bench/README.md says what and how.

    bench/redis_outage.py [--seconds 60] [--calm 60] [FAULT...]

Prints a Markdown table, row by row, so that a run can be cut short. SLUICE_BIN and SLUICE_SIM name the binaries.
"""

import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/support"))
import harness  # noqa: E402
import redis_fleet  # noqa: E402
import redis_outage  # noqa: E402

COLUMNS = ("Redis is", "requests", "failed", "p99 calm, ms", "added", "waited for Redis: p99, most, ms",
           "requests too much", "places too much", "USD too much: local", "closed", "back after, s")


def usd(nano):
    return f"{nano / 1e9:g}"


def row_of(result):
    calm, added = result.added_ms(0.99)
    waits = result.waits_ms()
    return (result.fault.name, result.requests, result.failed, f"{calm:.1f}", f"{added:+.1f}",
            f"{redis_outage.percentile(waits, 0.99):.1f}, {max(waits):.1f}",
            f"{result.rates.had} of {result.rates.bound}", f"{result.places.had} of {result.places.bound}",
            f"{usd(result.money.had)} of {usd(result.money.bound)}",
            f"{usd(result.strict_money.had)} of {usd(result.strict_money.bound)}", f"{result.recovery_s:.2f}")


def note_of(result):
    """What makes a row worth nothing."""
    if result.calm_high > redis_outage.PLACES:
        return (f"{result.fault.name}: {result.calm_high} places at once in the calm: Redis was late before it was "
                "touched, so this machine was busy with something else")
    return None


def measure(fault, calm_s, fault_s):
    case = harness.Case()
    try:
        return redis_outage.run(case, fault, calm_s, fault_s)
    finally:
        case.doCleanups()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="of each fault")
    parser.add_argument("--calm", type=float, help="before it; as long as the fault")
    parser.add_argument("faults", nargs="*", metavar="FAULT", choices=(*redis_outage.FAULTS, []),
                        help=", ".join(redis_outage.FAULTS))
    options = parser.parse_args()
    if redis_fleet.missing():
        sys.exit(redis_fleet.missing())
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|", flush=True)
    notes = []
    for name in options.faults or redis_outage.FAULTS:
        result = measure(redis_outage.FAULTS[name], options.seconds if options.calm is None else options.calm,
                         options.seconds)
        print("| " + " | ".join(map(str, row_of(result))) + " |", flush=True)
        notes.append(note_of(result))
    for note in filter(None, notes):
        print("\n" + note)


if __name__ == "__main__":
    main()
