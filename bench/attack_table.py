#!/usr/bin/env python3
"""Measures attacks on libh2o alone and on the gateway: bench/README.md says what and how.

    bench/attack_table.py [--seconds N] [--ways clear,tls,finished] [--servers plain,sluice,nginx] [NAME...]

NAME is a program of bench/attacks (every.py) or shared:NAME of attacks_tls.py (SLUICE_SHARED/attacks).
Installs what is missing (as root). Prints a Markdown table, row by row; a row is written when it is known, so that a run can be cut short.
"""

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "attacks")]
import servers  # noqa: E402  (finds harness)
import harness  # noqa: E402
import every  # noqa: E402
import programs  # noqa: E402
from suite import install  # noqa: E402
from suite.machine import GATEWAY_CPU, LOAD_CPU, cpu_s, family, pinned  # noqa: E402

CALLERS, RATE = 4, 50  # honest callers, and requests a second of each
SHARED = os.path.join(harness.SHARED, "attacks")
SHARED_NAMES = [
    "winassert", "rst", "myr", "rstlate", "firstcont", "firstrst", "bodies", "idlebodies", "drip", "dripframe", "slow",
    "bytewise", "unknown", "ping", "settings", "emptydata", "outstop", "latepri", "silent", "h1close", "h1half",
    "h1pipelined", "h2close", "h2half", "h2pipelined"]
SHARED_TLS_NAMES = ["h1notify", "h2notify", "afternotify", "afternotify1", "keyupdate", "renegotiate"]


# ---- processes ---------------------------------------------------------------------------------

def forget_peak(pid):
    for process in family(pid):
        with open(f"/proc/{process}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")


def memory_mb(pid, row):
    """VmRSS or VmHWM of the process that serves."""
    return harness.memory_kb(family(pid)[-1], row) / 1024


class Server:
    """One that is attacked. `process` has pid, target(way), gone() and kill(); `honest` is url, body and fields."""

    ways = programs.Program("", None, "").ways

    def __init__(self, process, honest):
        self.process, self.honest, self.pid = process, honest, process.pid

    def target(self, way):
        return self.process.target(way)

    def dead(self):
        return self.process.gone()

    def kills(self):
        return {}

    def end(self):
        self.process.kill()


class Plain(Server):
    def __init__(self, _sim, cert, key, _program):
        process = pinned(GATEWAY_CPU, lambda: servers.Plain(cert, key))
        super().__init__(process, (f"http://127.0.0.1:{process.port}/b/1024", b"{}", []))


class Nginx(Server):
    def __init__(self, sim, cert, key, _program):
        process = pinned(GATEWAY_CPU, lambda: servers.Nginx(sim, cert, key))
        super().__init__(process, (process.url(), process.ask(servers.MODELS["quick"])[1], process.fields))

    def end(self):
        super().end()
        self.process.remove()


class Gateway(Server):
    def __init__(self, sim, cert, key, program):
        certificate = (cert, key) if servers.has_tls(cert, key) else ()
        settings = servers.settings(sim, *certificate, limits=program.limits, listen=program.listen)
        process = pinned(GATEWAY_CPU, lambda: harness.Gateway(settings))
        super().__init__(process, (process.url + servers.PATH, servers.message(servers.MODELS["quick"]),
                                   ["authorization: Bearer " + harness.KEY, "content-type: application/json"]))
        self.ways = self.ways if certificate else ("clear",)
        self.size = servers.answer_size(process)

    def target(self, way):
        return servers.gateway_target(self.process, way, self.size)

    def dead(self):
        """The gateway's server process is replaced when it dies; that counts as dead too."""
        return not self.process.running or self.process.metrics().sum("sluice_restarts_total") > 0

    def kills(self):
        return {labels["cause"]: value for name, labels, value in self.process.metrics().samples
                if name == "sluice_guard_kills_total"}

    def end(self):
        super().end()
        self.process.remove()


KINDS = {"plain": Plain, "sluice": Gateway, "nginx": Nginx}


# ---- measuring ---------------------------------------------------------------------------------

def asked_in(seconds):
    """How many requests the honest callers send."""
    return int(CALLERS * RATE * seconds)


def start_callers(server, seconds, log):
    """h2load at a fixed rate; each caller has its own connection."""
    url, body, fields = server.honest
    with open(log + ".body", "wb") as file:
        file.write(body)
    argv = ["h2load", "-c", CALLERS, "-t", 1, "-m", 16, "--rps", RATE, "-n", asked_in(seconds), "-d",
            log + ".body", "--log-file", log]
    for field in fields:
        argv += ["-H", field]
    return pinned(LOAD_CPU, lambda: subprocess.Popen([*map(str, argv), url], stdout=subprocess.DEVNULL,
                                                     stderr=subprocess.DEVNULL))


def p99_ms(log, asked):
    """And how many requests were not answered with 200: one that did not come to its end has no line."""
    times, good = [], 0
    with open(log, encoding="ascii") as file:
        for line in file:
            _, status, us = line.split()[:3]
            good += status == "200"
            times.append(int(us) / 1000)
    return (sorted(times)[int(len(times) * 0.99)] if times else float("nan")), asked - good


def start_attack(name, target, seconds):
    driver = pinned(LOAD_CPU, lambda: subprocess.Popen(
        [sys.executable, os.path.join(HERE, "attacks", "drive.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    pickle.dump({"program": name, "target": target, "seconds": seconds, "shared": SHARED}, driver.stdin)
    driver.stdin.close()
    return driver


def attacked(name, victim, called, way, seconds):
    """The attack runs at `victim` while `called` has honest callers: cpu (of a core), p99, seen."""
    with tempfile.TemporaryDirectory(prefix="sluice-attack-") as directory:
        log = os.path.join(directory, "log")
        driver = start_attack(name, victim.target(way), seconds)
        callers = start_callers(called, seconds, log)
        started, before = time.monotonic(), cpu_s(called.pid)
        time.sleep(seconds)  # the window that is measured
        died = called.dead()
        cpu = None if died else (cpu_s(called.pid) - before) / (time.monotonic() - started)
        out = driver.stdout.read()
        driver.wait()
        try:
            callers.wait(0 if died else 20)
        except subprocess.TimeoutExpired:
            callers.kill()
            callers.wait()
        runs, _, seen = out.decode().strip().partition("\t")
        asked = asked_in(seconds)
        p99, failed = p99_ms(log, asked) if os.path.exists(log) else (float("nan"), asked)
        return {"cpu": cpu, "p99": p99, "failed": failed, "runs": runs or "0", "seen": seen,
                "dead": died or called.dead()}


def row_of(name, way, pair, seconds):
    """The words of a row's half: seen, kills, CPU, p99, memory."""
    server, idle = pair
    calm = attacked(name, idle, server, way, seconds)
    before, memory = server.kills(), memory_mb(server.pid, "VmRSS")
    forget_peak(server.pid)
    hit = attacked(name, server, server, way, seconds)
    if hit["dead"]:
        return f"**dead** ({hit['seen']})", "", "", "", ""
    counted = {cause: value - before.get(cause, 0) for cause, value in server.kills().items()}
    causes = ", ".join(f"{value:.0f} {cause}" for cause, value in counted.items() if value)
    return (f"{hit['seen']}, {hit['runs']} runs", causes, f"{100 * (hit['cpu'] - calm['cpu']):+.1f} %",
            f"{calm['p99']:.1f} → {hit['p99']:.1f}" + (f", {hit['failed']} failed" if hit["failed"] else ""),
            f"{memory_mb(server.pid, 'VmHWM') - memory:+.0f}")


def shutdown_row(name, way, server):
    """No honest callers at a server that stops: only whether it ends, and what it burns if not."""
    seen = every.BY_NAME[name].run(server.target(way))
    try:
        harness.wait_for(lambda: not server.process.running, "its end", 3)
        return f"{seen}; ended with {server.process.wait()}", "", "", "", ""
    except harness.Failure:
        before = cpu_s(server.pid)
        time.sleep(2)
        return f"{seen}; does not end", "", f"{50 * (cpu_s(server.pid) - before):+.1f} %", "", ""


def table(names, ways, kinds, seconds, make, pairs):
    """`make(kind, program)` starts a server with the program's settings; `pairs` are those that run."""
    print("| attack | way | server | client sees | guard counts | CPU | honest p99, ms | peak MB |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        program = every.BY_NAME.get(name, programs.Program("", None, ""))
        for way in ways:
            if not possible(name, way):
                continue
            for kind in kinds:
                mine = (kind, *sorted(program.limits.items()), *sorted(program.listen.items()))
                if mine not in pairs:
                    pairs[mine] = [make(kind, program) for _ in range(2)]
                if way not in pairs[mine][0].ways:
                    continue
                if program.stops:
                    words = shutdown_row(name, way, pairs[mine][0])
                else:
                    words = row_of(name, way, pairs[mine], seconds)
                print("| " + " | ".join([name, way, kind, *words]) + " |", flush=True)
                if words[0].startswith("**dead") or program.stops:
                    for server in pairs.pop(mine):
                        server.end()


def possible(name, way):
    if not name.startswith("shared:"):
        return way in every.BY_NAME[name].ways
    return way == "tls" or (way == "clear" and name.partition(":")[2] not in SHARED_TLS_NAMES)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=3, help="measured for each cell")
    parser.add_argument("--ways", default="clear,tls,finished")
    parser.add_argument("--servers", default="plain,sluice")
    options = parser.parse_args()
    kinds = options.servers.split(",")
    if not set(kinds) <= set(KINDS):
        parser.error(f"--servers: some of {', '.join(KINDS)}")
    ours = [program.name for program in every.PROGRAMS]
    shared = ["shared:" + name for name in SHARED_NAMES + SHARED_TLS_NAMES] if os.path.isdir(SHARED) else []
    wrong = [name for name in options.names if name not in ours + shared]
    if wrong:
        parser.error(f"no attack {', '.join(wrong)}; there are {', '.join(ours + shared)}")
    if not options.names and not shared:
        print(f"NOT RUN: the attack programs at {SHARED}", file=sys.stderr)
    names = options.names or ours + shared
    for kind, why in install.debian(kinds, lambda what: print(what, file=sys.stderr)).items():
        parser.error(f"{kind}: {why}")
    case = harness.Case()
    pairs = {}
    try:
        cert, key = case.certificate()
        sim = pinned(LOAD_CPU, harness.Sim)
        case.addCleanup(sim.stop)
        table(names, options.ways.split(","), kinds, options.seconds,
              lambda kind, program: KINDS[kind](sim, cert, key, program), pairs)
    finally:
        for pair in pairs.values():
            for server in pair:
                server.end()
        case.doCleanups()


if __name__ == "__main__":
    main()
