"""A gateway under DHAT in copy mode: the bytes that its own code has libc copy (memcpy, memmove and their kind).

Copies of a few bytes, which the compiler writes out itself, are not seen; nor are those of the libraries, which are not ours."""

import glob
import json
import os

import callgrind
import harness


def is_copier(frame):
    return "vgpreload_dhat" in frame or "vg_replace_strmem" in frame


def is_of_a_library(frame):
    return "(in /usr/lib" in frame or "(in /lib" in frame


def ours(path):
    """Bytes, of one process's file."""
    with open(path, encoding="utf-8") as file:
        run = json.load(file)
    frames, total = run["ftbl"], 0
    for point in run["pps"]:
        callers = [frames[number] for number in point["fs"] if not is_copier(frames[number])]
        if callers and not is_of_a_library(callers[0]):
            total += point["tb"]
    return total


def by_gateway(case, settings, work):
    """Of the process with the workers, of a gateway that did `work`, a function of it."""
    directory = case.directory()
    wrapper = os.path.join(directory, "sluice")
    with open(wrapper, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexec valgrind -q --tool=dhat --mode=copy --trace-children=yes "
                   f"--dhat-out-file={directory}/out.%p {harness.BIN} \"$@\"\n")
    os.chmod(wrapper, 0o755)
    gateway = case.gateway(settings, binary=wrapper, patience_s=callgrind.SLOWER * harness.PATIENCE_S)
    work(gateway)
    gateway.stop()
    return max(map(ours, glob.glob(directory + "/out.*")))
