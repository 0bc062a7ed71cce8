"""A gateway under callgrind: what its worker's thread ran."""

import glob
import http.client
import os
import urllib.parse

import harness

SLOWER = 10  # than the machine itself, with the caches simulated
OURS = "sluice"  # the object whose calls into malloc are ours


class Profile:
    """One thread of a run: counts of events ("Ir" is instructions), and calls from our code into libc's allocator."""

    ALLOCATORS = {"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"}

    def __init__(self, path):
        self.events, self.allocations = {}, 0
        self.functions = set()
        names, order = {}, []

        def name(text):
            number, _, word = text.partition(" ")
            if word:
                names[number] = word
            return names.get(number, text)

        def function(text):
            return name("f" + text).split("'")[0]  # recursion levels are the same function

        obj = callee = None
        with open(path, encoding="latin-1") as file:
            for line in file:
                line = line.rstrip("\n")
                if line.startswith("ob="):
                    obj = name("o" + line[3:])
                elif line.startswith("fn="):
                    self.functions.add(function(line[3:]))
                elif line.startswith("cob="):
                    name("o" + line[4:])
                elif line.startswith("cfn="):
                    callee = function(line[4:])
                elif line.startswith("calls="):
                    if callee in self.ALLOCATORS and os.path.basename(obj or "") == OURS:
                        self.allocations += int(line[6:].split()[0])
                elif line.startswith("events:"):
                    order = line.split()[1:]
                elif line.startswith(("totals:", "summary:")):
                    for event, count in zip(order, line.split()[1:]):
                        self.events[event] = max(self.events.get(event, 0), int(count))

    @property
    def instructions(self):
        return self.events["Ir"]


MARK = "http_refuse"  # what the worker runs for a request that is refused


def mark(gateway):
    """Ends a part of the counts, where MARK does."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(gateway.url).netloc, timeout=SLOWER * harness.PATIENCE_S)
    connection.request("POST", "/nothing-is-here", b"{}")
    connection.getresponse().read()
    connection.close()


def run(case, settings, work, options, started):
    """The directory of what callgrind wrote of a gateway that did `work`."""
    directory = case.directory()
    wrapper = os.path.join(directory, "sluice")
    with open(wrapper, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\nexec valgrind -q --tool=callgrind --trace-children=yes --separate-threads=yes {options} "
                   f"--callgrind-out-file={directory}/out.%p {harness.BIN} \"$@\"\n")
    os.chmod(wrapper, 0o755)
    gateway = (started or case.gateway)(settings, binary=wrapper, patience_s=SLOWER * harness.PATIENCE_S)
    work(gateway)
    gateway.stop()
    return directory


def worker(case, settings, work, options="", started=None):
    """The profile of the worker of a gateway that did `work`, a function of it; `started` starts one as case.gateway does."""
    directory = run(case, settings, work, options, started)
    found = [profile for profile in map(Profile, glob.glob(directory + "/out.*-*")) if "worker_main" in profile.functions]
    case.assertEqual(len(found), 1, os.listdir(directory))
    return found[0]


def worker_parts(case, settings, works, options=""):
    """The profiles of the worker during each of `works`, functions of a gateway, which is one for all of them."""
    def all_works(gateway):
        for work in works:
            work(gateway)
            mark(gateway)

    directory = run(case, settings, all_works, f"{options} --dump-before={MARK}", None)
    profiles = []
    for number in range(1, len(works) + 1):
        found = [profile for profile in map(Profile, glob.glob(f"{directory}/out.*.{number}-*")) if "worker_main" in profile.functions]
        case.assertEqual(len(found), 1, os.listdir(directory))
        profiles += found
    return profiles


def worker_between(case, settings, before, work, options=""):
    """The profile of the worker during `work`, which follows `before`: functions of a gateway, which is one for both."""
    return worker_parts(case, settings, (before, work), options)[1]
