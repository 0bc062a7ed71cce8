#!/usr/bin/env python3
"""Times of hostile bodies, as a Markdown table: at most 2 ns a byte, and twice as much in 2.2 times the time.

hostile_table.py [--size BYTES] [--rounds N] [--set NAME] [GENERATOR...]    (65536, 5, the best, all)

One row a generator: its worst place, and its worst growth from n to 2n bytes, each the median of
rounds in which all sizes and places take turns; growth is the median of the rounds' own ratios.
On a shared machine a neighbour halves the speed for seconds. So every round begins and ends with an
ordinary request, and counts if both took less than 1.15 times the least that one took in the whole run;
rounds are made until N of each generator count. The last line says how many that took.
SLUICE_BIN says which build: its codec_drive is run. Ends with 1 when a row is out of bounds, and
when a generator had not its N rounds in 200 times as many.
"""
import argparse
import os
import statistics
import sys
import tempfile

import corpus
import drive
import hostile

NS_PER_BYTE, GROWTH = 2.0, 2.2
DISTURBED = 1.15
BATCH, PATIENCE = 5, 200  # rounds of one process; rounds made for one that counts


class Measured:
    """The rounds of one generator: what the two ordinary requests took, and {argument: ns}."""

    def __init__(self, places):
        self.places, self.errors, self.sizes, self.rounds = places, {}, {}, []

    def more(self, ordinary, name_of_set):
        first, last = ordinary
        costs = drive.run([first, *(argument for _, *both in self.places for argument in both), last], rounds=BATCH,
                          name=name_of_set)
        for argument, cost in costs.items():
            self.errors[argument], self.sizes[argument] = cost.error, cost.size
        for number in range(BATCH):
            ns = {argument: cost.ns[number] for argument, cost in costs.items()}
            self.rounds.append(((ns.pop(first), ns.pop(last)), ns))

    def undisturbed(self, least):
        return [ns for ordinary, ns in self.rounds if max(ordinary) < DISTURBED * least]

    def rows(self, least):
        """[(ns a byte, growth, place, error)]"""
        rounds, found = self.undisturbed(least), []
        for place, once, twice in self.places:
            longer = self.sizes[twice] / self.sizes[once]
            growth = statistics.median(ns[twice] / ns[once] for ns in rounds) / longer * 2
            per_byte = statistics.median(ns[twice] for ns in rounds) / self.sizes[twice]
            found.append((per_byte, growth, place, self.errors[twice]))
        return found


def least_of(measured):
    return min(min(ordinary) for generator in measured.values() for ordinary, _ in generator.rounds)


def measure(keep, options, directory):
    """({generator: Measured}, what an ordinary request took at the least)"""
    once, twice = hostile.write(directory, options.size), hostile.write(directory, 2 * options.size)
    ordinary = []
    for name in ("first", "last"):
        path = os.path.join(directory, name)
        with open(path, "wb") as file:
            file.write(next(data for name, _, data in corpus.everything() if name == "typical"))
        ordinary.append("request.anthropic:" + path)
    measured = {generator: Measured([(place, once[name, place], twice[name, place])
                                     for name, place in once if name == generator]) for generator in keep}
    wanting = list(measured.values())
    for _ in range(PATIENCE * options.rounds // BATCH):
        for generator in wanting:
            generator.more(ordinary, options.set)
        least = least_of(measured)
        wanting = [generator for generator in measured.values() if len(generator.undisturbed(least)) < options.rounds]
        if not wanting:
            return measured, least
    sys.exit(f"too noisy: {len(wanting)} generators have not {options.rounds} rounds undisturbed")


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
    with tempfile.TemporaryDirectory() as directory:
        measured, least = measure(options.generators or names, options, directory)
    print("| generator | ns a byte | where | said | time(2n) / time(n) | where |\n|---|---|---|---|---|---|")
    bad = 0
    for generator, rounds in measured.items():
        rows = rounds.rows(least)
        per_byte, _, place, error = max(rows)
        _, growth, steep, _ = max(rows, key=lambda row: row[1])
        wrong = per_byte > NS_PER_BYTE, growth > GROWTH
        bad += any(wrong)
        print(f"| {generator} | {'**' * wrong[0]}{per_byte:.2f}{'**' * wrong[0]} | {place} | {error} | "
              f"{'**' * wrong[1]}{growth:.2f}{'**' * wrong[1]} | {steep} |")
    counted = sum(len(rounds.undisturbed(least)) for rounds in measured.values())
    print(f"\n{counted} of {sum(len(rounds.rounds) for rounds in measured.values())} rounds count: those in which an "
          f"ordinary request took less than {DISTURBED * least:.0f} ns")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
