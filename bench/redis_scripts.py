#!/usr/bin/env python3
"""CPU of Redis for each script that the gateway asks it to run, by what requests ask for.

    bench/redis_scripts.py [--calls 20000] [--rounds 3]

A gateway is given one request of each kind, Redis shows which commands it got (MONITOR), and each of them is then sent
again, a thousand at a time, to a Redis with nothing else to do. CPU is Redis's own count of it (INFO cpu, user and
system), so that whatever else runs on the machine slows it but is not counted. SLUICE_BIN names the binary.
"""

import argparse
import ast
import hashlib
import os
import re
import socket
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/support"))
import harness  # noqa: E402
import redis_server  # noqa: E402
import thinkers  # noqa: E402

TOOLS = [{"name": "look", "description": "looks", "inputSchema": {"type": "object"}}]
BATCH = 1000
GATEWAY = os.path.join(HERE, "../gateway")
SCRIPTS = {"limits": "limits/limits", "state_load": "state/state_load", "state_save": "state/state_save", "idempotency": "state/idempotency"}


class Monitor:
    """The commands of a Redis from now on, as lists of bytes."""

    def __init__(self, redis):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(harness.PATIENCE_S)
        self.sock.connect(redis.socket)
        self.sock.sendall(b"MONITOR\r\n")
        self.stream = self.sock.makefile("rb")
        assert self.stream.readline() == b"+OK\r\n"
        self.redis = redis

    def close(self):
        """Redis pays for each command that it shows."""
        self.stream.close()
        self.sock.close()
        harness.wait_for(lambda: "flags=O" not in self.redis.ask("CLIENT", "LIST"), "nobody looks on")

    def take(self):
        """All commands so far."""
        mark = "mark-" + os.urandom(8).hex()
        self.redis.ask("ECHO", mark)
        commands = []
        for line in self.stream:
            words = [ast.literal_eval('b"' + word + '"')
                     for word in re.findall(r'"((?:[^"\\]|\\.)*)"', line.decode())]
            if mark.encode() in words:
                return commands
            if " lua]" not in line.decode():  # what scripts call
                commands.append(words)
        raise harness.Failure("Redis has gone")


def wire(words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def cpu_s(redis):
    found = dict(line.split(":", 1) for line in redis.ask("INFO", "cpu").splitlines() if ":" in line)
    return float(found["used_cpu_user_main_thread"]) + float(found["used_cpu_sys_main_thread"])


class Player:
    """Sends one command again and again."""

    def __init__(self, redis, calls):
        self.redis, self.calls = redis, calls
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(harness.PATIENCE_S)
        self.sock.connect(redis.socket)
        self.stream = self.sock.makefile("rwb")

    def read(self):
        line = self.stream.readline()
        kind, rest = line[:1], line[1:].strip()
        if kind == b"-":
            raise harness.Failure(rest.decode())
        if kind == b"$" and rest != b"-1":
            self.stream.read(int(rest) + 2)
        elif kind == b"*":
            for _ in range(int(rest)):
                self.read()

    def cost_us(self, words):
        """CPU of Redis for one call."""
        batch = wire(words) * BATCH
        before = cpu_s(self.redis)
        for _ in range(0, self.calls, BATCH):
            self.stream.write(batch)
            self.stream.flush()
            for _ in range(BATCH):
                self.read()
        return (cpu_s(self.redis) - before) / self.calls * 1e6


class Requests:
    """One request of each kind, by a gateway."""

    def __init__(self, case, redis):
        self.thinker = thinkers.Anthropic(rounds=1000)
        case.addCleanup(self.thinker.close)
        settings = harness.config(self.thinker, store={"kind": "redis", "url": redis.url, "deadline": "5s"})
        settings["providers"] = {"thinker": {**harness.provider(self.thinker, "anthropic"), "keys": [self.thinker.key]}}
        settings["models"] = [harness.model("thinking", "thinker")]
        plan = settings["plans"]["standard"]
        plan["models"] = {"allow": ["*"]}
        plan["limits"].update(tool_rounds=1000, loop_tokens=10**9)
        self.gateway = case.gateway(settings)
        harness.wait_for(lambda: self.gateway.metrics().sum("sluice_limiter_mode", mode="shared") == 1, "Redis decides")
        self.asked = 0

    def ask(self, messages=(), headers=None, **params):
        messages = [{"role": "user", "content": {"type": "text", "text": "look"}}, *messages]
        self.asked += 1
        answer = self.gateway.post({"jsonrpc": "2.0", "id": self.asked, "method": "sampling/createMessage", "params": {
            "messages": messages, "maxTokens": 100, **params}}, headers)
        if answer.status != 200:
            raise harness.Failure(str(answer))
        content = answer.json()["result"]["content"]
        results = [{"type": "tool_result", "toolUseId": block["id"], "content": [{"type": "text", "text": "nothing"}]}
                   for block in content if isinstance(content, list) and block["type"] == "tool_use"]
        return [{"role": "assistant", "content": content}, {"role": "user", "content": results}]

    def initialize(self):
        answer = self.gateway.post({"jsonrpc": "2.0", "id": 0, "method": "initialize",
                                    "params": {"protocolVersion": "2025-11-25"}})
        return {"Mcp-Session-Id": answer.headers["mcp-session-id"]}


def steps(requests):
    """Requests, each of which finds what it needs: a name, the scripts it makes Redis run, and the request."""
    loop = requests.ask(tools=TOOLS)
    for _ in range(9):
        loop += requests.ask(loop, tools=TOOLS)
    session = requests.initialize()
    last = {"tools": TOOLS, "toolChoice": {"mode": "none"}}
    requests.ask(headers={"Idempotency-Key": "first", **session}, **last)  # all scripts are known from here on
    yield "any", ["limits"], lambda: requests.ask(**last)
    yield "a call is issued, with its thoughts", ["limits", "state_save"], lambda: requests.ask(tools=TOOLS)
    yield "second round", ["limits", "state_load", "state_save"], lambda: requests.ask(loop[:2], tools=TOOLS)
    yield "eleventh round", ["limits", "state_load", "state_save"], lambda: requests.ask(loop, tools=TOOLS)
    yield "initialize", ["state_save"], requests.initialize
    yield "in a session", ["limits", "state_load", "idempotency", "state_save", "idempotency"], lambda: requests.ask(headers=session, **last)
    yield "Idempotency-Key", ["limits", "idempotency", "idempotency"], lambda: requests.ask(headers={"Idempotency-Key": "k"}, **last)


def scripts_by_sha1():
    found = {}
    for name in ("limits", "state_load", "state_save", "idempotency"):
        with open(os.path.join(GATEWAY, SCRIPTS[name] + ".lua"), "rb") as text:
            found[hashlib.sha1(text.read()).hexdigest().encode()] = name
    return found


def is_claim(words):
    """Of limits.lua: its first argument has worker, connection, and 1."""
    return words[3 + int(words[2])][12] == 1


def calls_of(monitor, ask, wanted):
    """The scripts' calls that a request makes, some of them after its answer, as (name, words).

    Of limits.lua claims only: what rides on them is another matter."""
    names, calls = scripts_by_sha1(), []

    def arrived():
        for words in monitor.take():
            name = names.get(words[1]) if words[0] == b"EVALSHA" else None
            if name and (name != "limits" or is_claim(words)):
                calls.append((name, words))
        return len(calls) >= len(wanted)
    monitor.take()
    ask()
    harness.wait_for(arrived, f"Redis is asked for {wanted}")
    if sorted(name for name, _ in calls) != sorted(wanted):
        raise harness.Failure(f"{wanted}, but Redis was asked for {[name for name, _ in calls]}")
    return calls


def label(name, words):
    """What a call is for: of idempotency.lua its first argument says."""
    keys = int(words[2])
    return f"{name} {words[3 + keys].decode()}" if name == "idempotency" else f"{name}, {keys} key{'s' if keys > 1 else ''}"


def measure(case, options):
    redis = redis_server.Redis(case)
    requests, player = Requests(case, redis), Player(redis, options.calls)
    collected = []
    monitor = Monitor(redis)
    for name, wanted, ask in steps(requests):
        collected += [(name, label(script, words), words) for script, words in calls_of(monitor, ask, wanted)
                      if script != "limits" or not collected]
    monitor.close()
    requests.gateway.stop()
    costs = [[player.cost_us(words) for _, _, words in collected] for _ in range(options.rounds)]
    claim = statistics.median(cost[0] for cost in costs)
    print("| request | script | us of CPU | range | x limits |\n|---|---|---|---|---|")
    for (name, script, _), of in zip(collected, map(sorted, zip(*costs))):
        middle = statistics.median(of)
        print(f"| {name} | {script} | {middle:.1f} | {of[0]:.1f}-{of[-1]:.1f} | {middle / claim:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=3)
    case = harness.Case()
    try:
        measure(case, parser.parse_args())
    finally:
        case.doCleanups()


if __name__ == "__main__":
    main()
