#!/usr/bin/env python3
"""Our codec against simdjson: parse, validate and translate, as a Markdown table of ratios.

compare_table.py [--rounds N] [--turn-ms N] [--sets avx2,portable] [CLASS...]    (9 rounds, 3 ms, both, all)

Installs Debian's libsimdjson-dev when it is missing (as root), builds codec_compare into build/ or where
SLUICE_BIN is, checks that all competitors wrote the same JSON, and measures. A ratio is theirs to ours:
2.0 means that we take half the time. A round counts if nothing disturbed the machine (codec_compare.cc);
rounds are made until N of each class count. The README beside this folder says what is compared.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import corpus
import drive

RIVALS = ["On-Demand, raw spans", "On-Demand, all validated", "DOM"]
# The floors of issue 5, for the mix of requests and for each class: against raw spans, and the DOM.
MIX, MIX_FLOORS, CLASS_FLOORS = "mix of 160", (1.6, None, 3.0), (1.0, None, None)


def classes(directory):
    """[(class, ["TASK:FILE"])]"""
    inputs, _ = corpus.write(directory)
    found = {}
    for name, (kind, path, _) in inputs.items():
        if kind.startswith("stream"):
            continue
        task = "request.anthropic" if kind == "request" else kind
        found.setdefault(MIX if name.startswith("mix") else name, []).append(f"{task}:{path}")
    for name in ("typical", "tool_loop"):
        found[name + " to OpenAI"] = ["request.openai:" + inputs[name][1]]
    return found


def build(sets):
    if subprocess.run(["dpkg-query", "-W", "libsimdjson-dev"], capture_output=True).returncode:
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "libsimdjson-dev", "g++"],
                       check=True)
    directory = os.path.dirname(drive.binary())
    subprocess.run(["cmake", "-S", drive.TOP, "-B", directory, "-DCMAKE_BUILD_TYPE=Release", "-DSLUICE_TESTS=ON"],
                   check=True, stdout=subprocess.DEVNULL)
    targets = [f"codec_compare_{name}" for name in sets]
    subprocess.run(["cmake", "--build", directory, "--parallel", "2", "--target", *targets],
                   check=True, stdout=subprocess.DEVNULL)


def check_outputs(directory):
    """What the competitors wrote, as JSON values: the order of members and the spelling may differ."""
    outputs = {}
    for name in sorted(os.listdir(directory)):
        job, number, rival = name.rsplit(".", 2)
        with open(os.path.join(directory, name), "rb") as file:
            outputs.setdefault((job, number), {})[rival] = json.load(file)
    for key, values in outputs.items():
        for rival, value in values.items():
            if value != values["ours"]:
                sys.exit(f"{'.'.join(key)}: {rival} and we wrote different JSON")
    return len(outputs)


def arguments(jobs):
    return [f"{job}:{argument}" for job, some in jobs.items() for argument in some]


def outputs_checked(name, jobs):
    """How many inputs became the same JSON by all competitors; ends the process when one did not."""
    with tempfile.TemporaryDirectory() as outputs:
        subprocess.run([drive.binary(f"codec_compare_{name}"), "--rounds", "1", "--outputs", outputs, *arguments(jobs)],
                       check=True, stdout=subprocess.DEVNULL)
        return check_outputs(outputs)


def run(name, jobs, rounds, turn_ms):
    """Yields [class, inputs, bytes, rounds made, rounds that count, ns, ratio...]"""
    print(f"\n{name}: {outputs_checked(name, jobs)} inputs, the same JSON from all\n")
    done = subprocess.run([drive.binary(f"codec_compare_{name}"), "--rounds", str(rounds), "--turn-ms",
                           str(turn_ms), *arguments(jobs)], check=True, stdout=subprocess.PIPE, text=True)
    for line in done.stdout.splitlines()[1:]:
        job, inputs, size, made, counted, ns, *ratios = line.split("\t")
        yield job, int(inputs), int(size), int(made), int(counted), float(ns), *map(float, ratios)


def cell(ratio, floor):
    return f"{ratio:.2f}" if floor is None or ratio >= floor else f"**{ratio:.2f}**"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--turn-ms", type=float, default=3, help="how long each competitor stays at a class")
    parser.add_argument("--sets", default="avx2,portable")
    parser.add_argument("classes", nargs="*")
    options = parser.parse_args()
    sets = options.sets.split(",")
    build(sets)
    directory = tempfile.mkdtemp()
    try:
        jobs = classes(directory)
        for name in options.classes:
            if name not in jobs:
                parser.error(f"{name} is none of {', '.join(jobs)}")
        jobs = {name: some for name, some in jobs.items() if name in (options.classes or jobs)}
        below = 0
        for name in sets:
            rows = run(name, jobs, options.rounds, options.turn_ms)
            for number, (job, inputs, size, made, counted, ns, *ratios) in enumerate(rows):
                if number == 0:
                    print(f"| class | bytes | rounds | ours, ns | {' | '.join(RIVALS)} |\n" + "|---" * 7 + "|")
                floors = MIX_FLOORS if job == MIX else CLASS_FLOORS
                below += any(floor is not None and ratio < floor for ratio, floor in zip(ratios, floors))
                print(f"| {job} | {size // inputs} | {counted} of {made} | {ns:.0f} | "
                      f"{' | '.join(map(cell, ratios, floors))} |", flush=True)
    finally:
        shutil.rmtree(directory)
    sys.exit(below != 0)


if __name__ == "__main__":
    main()
