"""The machine: which CPU does what, what processes have used, what all of it is."""

import json
import os
import platform
import re
import subprocess

GATEWAY_CPU, LOAD_CPU = 0, 1


def pinned(cpu, make):
    """What `make` starts runs on that CPU."""
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {cpu} & allowed or allowed)
        return make()
    finally:
        os.sched_setaffinity(0, allowed)


def family(pid):
    """A process and all below it."""
    pids, at = [pid], 0
    while at < len(pids):
        with open(f"/proc/{pids[at]}/task/{pids[at]}/children", encoding="ascii") as file:
            pids += map(int, file.read().split())
        at += 1
    return pids


def cpu_s(pid):
    """User and system time of a process and all below it, in all threads, to the nanosecond."""
    total = 0
    for process in family(pid):
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
    return total / 1e9


def stolen_ms():
    """What the host has kept from the two CPUs, of the time in which they had something to do."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = sum(int(line.split()[8]) for line in file if line.startswith((f"cpu{GATEWAY_CPU} ", f"cpu{LOAD_CPU} ")))
    return 1000 * ticks // os.sysconf("SC_CLK_TCK")


def pss_kb(pid):
    """Memory of a process and all below it, shared pages shared out."""
    total = 0
    for process in family(pid):
        with open(f"/proc/{process}/smaps_rollup", encoding="ascii") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return total


def open_files(pid):
    return sum(len(os.listdir(f"/proc/{process}/fd")) for process in family(pid))


# ---- what it is ---------------------------------------------------------------------------------

VERSIONS = {  # how each program says it
    "gcc": ["gcc", "--version"], "nginx": ["nginx", "-v"], "haproxy": ["haproxy", "-v"], "h2o": ["h2o", "--version"],
    "h2load": ["h2load", "--version"], "redis-server": ["redis-server", "--version"]}


def output(argv):
    """The first line a program prints; None where there is no such program."""
    try:
        run = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return ((run.stdout + run.stderr).strip().splitlines() or [""])[0]


def cpu_model():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        match = re.search(r"^model name\s*: (.*)$", file.read(), re.M)
    return match[1] if match else platform.machine()


def npm_versions(directory):
    """Those that a package.json pins."""
    with open(os.path.join(directory, "package.json"), encoding="utf-8") as file:
        return json.load(file)["dependencies"]


def describe(yardsticks):
    """`yardsticks`: the folder of what comes by npm."""
    with open("/proc/meminfo", encoding="ascii") as file:
        memory = int(re.search(r"MemTotal:\s+(\d+)", file.read())[1]) // 1024
    return {"cpu": cpu_model(), "cpus": os.cpu_count(), "memory_mb": memory, "kernel": platform.release(),
            "load_average_before": os.getloadavg()[0],
            "versions": {**{name: output(argv) for name, argv in VERSIONS.items()}, **npm_versions(yardsticks)}}


def commit(source):
    """What is measured: the commit, and whether files differ from it."""
    def git(*words):
        run = subprocess.run(["git", "-C", source, *words], capture_output=True, text=True, check=False)
        return run.stdout.strip() if run.returncode == 0 else ""
    found = git("rev-parse", "HEAD") or "unknown"
    return found + (" with changes" if git("status", "--porcelain", "--untracked-files=no") else "")
