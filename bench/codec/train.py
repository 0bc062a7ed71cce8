#!/usr/bin/env python3
"""Trains the codec: has it read and write requests, answers and streams, for gcc to learn what is common.

train.py PROGRAM DIRECTORY    PROGRAM is codec_drive, built to count its branches into DIRECTORY

The inputs are of the kinds that corpus.py and hostile.py make, but others than those that are measured: of another
seed, hostile bodies shorter; small, of which there is one, apart. Without the hostile ones gcc takes what only they
do for rare, and they cost up to 1.4 times as much. Last, DIRECTORY/trained.h is made: the profile's digest.
"""
import glob
import hashlib
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import corpus
import hostile

SEED, MIXED, HOSTILE_BYTES = 9001, 320, 2048
SHORT, TIMES = ("small", "typical", "pretty"), 24  # most requests are; the long ones are loops that are in all of them


def inputs():
    """Yields (task, bytes)."""
    writer = corpus.Writer(SEED)
    bodies = [corpus.mixed_request(writer, number) for number in range(MIXED)]
    bodies += [data for name, data in corpus.requests(writer) if name in SHORT] * TIMES
    for dialect in ("anthropic", "openai"):
        for data in bodies:
            yield f"request.{dialect}", data
    apart = corpus.Writer(SEED + 1)  # so that what follows stays what it was
    for api in ("messages", "chat"):
        for number in range(MIXED // 8):  # more would make the readers' loops theirs
            yield f"api.{api}", corpus.api_request(apart, number, api)
    for _, data in corpus.anthropic_answers(writer):
        yield "answer.anthropic", data
    for _, data in corpus.openai_answers(writer):
        yield "answer.openai", data
    yield "stream.anthropic", corpus.anthropic_stream(writer)
    yield "stream.openai", corpus.openai_stream(writer)
    for _, _, task, data in hostile.everything(HOSTILE_BYTES):
        yield task, data


def run(program):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GCOV_")}
    with tempfile.TemporaryDirectory() as directory:
        arguments = []
        for number, (task, data) in enumerate(inputs()):
            path = os.path.join(directory, str(number))
            with open(path, "wb") as file:
                file.write(data)
            arguments.append(f"{task}:{path}")
        done = subprocess.run([program, *arguments], capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{program} returned {done.returncode}:\n{done.stderr[-2000:]}")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, directory = sys.argv[1:]
    pattern = os.path.join(glob.escape(directory), "*.gcda")
    for path in glob.glob(pattern):
        os.remove(path)  # a run adds to what is there
    run(program)
    profile = sorted(glob.glob(pattern))
    if not profile:
        sys.exit(f"{program} left no profile in {directory}")
    digest = hashlib.sha256()
    for path in profile:
        with open(path, "rb") as file:
            digest.update(file.read())
    with open(os.path.join(directory, "trained.h"), "w", encoding="ascii") as file:
        file.write(f'_Static_assert(1, "{digest.hexdigest()}");\n')  # no comment: what caches objects has to see it


if __name__ == "__main__":
    main()
