#!/usr/bin/env python3
"""Times of hostile bodies, as a Markdown table: at most 2 ns a byte, and twice as much in 2.2 times the time.

hostile_table.py [--size BYTES] [--rounds N] [--set NAME] [GENERATOR...]    (65536, 5, the best, all)

One row a generator: its worst place, and its worst growth from n to 2n bytes, each the median of
rounds in which all sizes and places take turns; growth is the median of the rounds' own ratios.
SLUICE_BIN says which build: its codec_drive is run. Ends with 1 when a row is out of bounds.
"""
import argparse
import statistics
import sys
import tempfile

import drive
import hostile

NS_PER_BYTE, GROWTH = 2.0, 2.2


def measure(keep, size, rounds, name_of_set):
    """Yields a generator and its [(ns a byte, growth, place, error)]."""
    with tempfile.TemporaryDirectory() as directory:
        once, twice = hostile.write(directory, size), hostile.write(directory, 2 * size)
        for generator in keep:
            pairs = [(place, once[name, place], twice[name, place]) for name, place in once if name == generator]
            costs = drive.run([argument for _, *both in pairs for argument in both], rounds=rounds,
                              name=name_of_set)
            rows = []
            for place, small, large in pairs:
                small, large = costs[small], costs[large]
                growth = statistics.median(b / a for a, b in zip(small.ns, large.ns)) / (large.size / small.size) * 2
                per_byte = statistics.median(large.ns) / large.size
                rows.append((per_byte, growth, place, large.error))
            yield generator, rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=65536)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--set")
    parser.add_argument("generators", nargs="*")
    options = parser.parse_args()
    names = [made.__name__ for made in hostile.VALUES + hostile.REQUESTS + hostile.STREAMS]
    for name in options.generators:
        if name not in names:
            parser.error(f"{name} is none of {', '.join(names)}")
    print("| generator | ns a byte | where | said | time(2n) / time(n) | where |\n|---|---|---|---|---|---|")
    bad = 0
    for generator, rows in measure(options.generators or names, options.size, options.rounds, options.set):
        per_byte, _, place, error = max(rows)
        _, growth, steep, _ = max(rows, key=lambda row: row[1])
        wrong = per_byte > NS_PER_BYTE, growth > GROWTH
        bad += any(wrong)
        print(f"| {generator} | {'**' * wrong[0]}{per_byte:.2f}{'**' * wrong[0]} | {place} | {error} | "
              f"{'**' * wrong[1]}{growth:.2f}{'**' * wrong[1]} | {steep} |", flush=True)
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
