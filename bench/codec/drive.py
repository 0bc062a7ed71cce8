#!/usr/bin/env python3
"""Runs codec_drive over inputs: instructions by callgrind, allocations, copies, times.

drive.py TASK:FILE    prints which functions a run's instructions are in (SLUICE_BIN: which build)
"""
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))


def binary(name="codec_drive"):
    """The program beside SLUICE_BIN (as ctest has it), or of build/."""
    sluice = os.environ.get("SLUICE_BIN", os.path.join(TOP, "build/sluice"))
    return os.path.join(os.path.dirname(sluice), name)


# error is the reason, "ok" when there was none; instructions None unless counted; ns: one per round
Cost = collections.namedtuple("Cost", "error size out entries allocations long borrowed ns instructions")


def by_function(path):
    """{function: its own instructions} of one dump; callgrind_annotate makes nothing of a part of a run."""
    found, names, function, of_call = collections.Counter(), {}, None, False
    with open(path, encoding="utf-8") as file:
        for line in file:
            name = re.match(r"(c?)fn=\((\d+)\)(?: (.*))?", line)
            cost = re.match(r"[-+*\d]+ (\d+)$", line)
            if name:
                if name[3]:
                    names[name[2]] = name[3]
                function = function if name[1] else name[2]
            elif line.startswith("calls="):
                of_call = True
            elif cost:
                found[function] += 0 if of_call else int(cost[1])
                of_call = False
    return collections.Counter({names.get(number, "?"): cost for number, cost in found.items()})


def instructions(directory):
    """{input's argument: instructions} of a run's dumps."""
    found = {}
    for path in glob.glob(os.path.join(directory, "out.*")):
        with open(path, encoding="utf-8") as file:
            dump = file.read()
        trigger = re.search(r"^desc: Trigger: Client Request: (.*)$", dump, re.MULTILINE)
        if trigger:
            found[trigger[1]] = int(re.search(r"^totals: (\d+)$", dump, re.MULTILINE)[1])
    return found


def environment():
    """Valgrind counts `rep movsb`, with which glibc copies from 2 KiB on, as an instruction for each byte."""
    return {**os.environ, "GLIBC_TUNABLES": "glibc.cpu.x86_rep_movsb_threshold=1073741824"}


def run(arguments, rounds=0, count=False, name=None):
    """{argument: Cost} of `arguments`, each "TASK:FILE", by the instruction set `name` or the best one."""
    command = [binary(), *(["--set", name] if name else [])]
    if rounds:
        command += ["--rounds", str(rounds)]
    with tempfile.TemporaryDirectory() as directory:
        if count:
            command = ["valgrind", "-q", "--tool=callgrind", "--collect-atstart=no",
                       f"--callgrind-out-file={directory}/out", *command]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment())
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} returned {done.returncode}:\n{done.stderr[-2000:]}")
        counted = instructions(directory) if count else {}
    rows = {}
    for line in done.stdout.splitlines()[1:]:
        argument, error, *numbers, times = line.split("\t")
        rows[argument] = Cost(error, *map(int, numbers), [float(ns) for ns in times.split(",") if ns],
                              counted.get(argument))
    if count and None in (row.instructions for row in rows.values()):
        raise RuntimeError("codec_drive was built without <valgrind/callgrind.h>")
    return rows


def ready(name):
    """None, or why nothing can be counted here for the instruction set `name`."""
    if not os.access(binary(), os.X_OK):
        return f"{binary()} was not built"
    if not shutil.which("valgrind"):
        return "there is no valgrind"
    if subprocess.run([binary(), "--set", name, "valid:/dev/null"], capture_output=True).returncode:
        return f"neither this machine nor this build has {name}"
    return None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["valgrind", "-q", "--tool=callgrind", "--collect-atstart=no",
                       f"--callgrind-out-file={directory}/out", binary(),
                        sys.argv[1]], check=True)
        for function, cost in by_function(directory + "/out.1").most_common(40):
            print(f"{cost:10} {function}")


if __name__ == "__main__":
    main()
