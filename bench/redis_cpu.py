#!/usr/bin/env python3
"""CPU of a request whose limits are in Redis, beside nginx that only forwards: bench/README.md says what and how.

    bench/redis_cpu.py [--rate 5000] [--seconds 5] [--rounds 5]

SLUICE_BIN and SLUICE_SIM name the binaries.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/support"))
import harness  # noqa: E402
import redis_server  # noqa: E402
from attack_table import GATEWAY_CPU, LOAD_CPU, cpu_s, pinned  # noqa: E402

CONNECTIONS, STREAMS = 20, 32
MODEL = "claude-test"
DEADLINE = "10s"  # a busy machine keeps it, so that every request takes its round trip
ANSWER_TEXT = 640  # bytes of text that make an answer of about 1 KB
BODY = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
    "messages": [{"role": "user", "content": {"type": "text", "text": ("Tell me about gateways. " * 80)[:1850]}}],
    "systemPrompt": "You are brief.", "temperature": 1, "maxTokens": 300,
    "modelPreferences": {"hints": [{"name": MODEL}]}}}, separators=(",", ":")).encode()
ENDLESS = {"requests_per_minute": 60000000, "requests_burst": 60000000, "tokens_per_minute": 60000000000,
           "tokens_burst": 60000000000, "concurrent": 100000, "usd_per_day": 1000000}

NGINX = """daemon off; user root; worker_processes 1; error_log stderr warn; pid {directory}/pid;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_buffer_size 16k; keepalive_requests 1000000000;
  client_body_temp_path {directory}/a; proxy_temp_path {directory}/b; fastcgi_temp_path {directory}/c;
  uwsgi_temp_path {directory}/d; scgi_temp_path {directory}/e;
  upstream provider {{ server 127.0.0.1:{provider}; keepalive 256; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} http2;
    location / {{ proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
}}
"""


# ---- servers -----------------------------------------------------------------------------------

class Gateway:
    """`sluice serve`; its log goes to a file, which costs it what a pipe would and nobody else anything."""

    def __init__(self, case, sim, store):
        self.name = "sluice, " + store["kind"]
        directory = case.directory()
        wrapper = os.path.join(directory, "sluice")
        with open(wrapper, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {harness.BIN} "$@" >{directory}/log\n')
        os.chmod(wrapper, 0o755)
        settings = harness.config(sim, store=store)
        settings["plans"]["standard"]["limits"].update(ENDLESS)
        self.process = pinned(GATEWAY_CPU, lambda: case.gateway(settings, binary=wrapper))
        self.pid, self.url, self.body = self.process.pid, self.process.url + "/v1/sampling", BODY
        self.fields = {"authorization": "Bearer " + harness.KEY}
        self.answer = len(self.process.post(BODY).body)

    def commands(self, *results):
        """To Redis, so far."""
        metrics = self.process.metrics()
        return sum(metrics.sum("sluice_store_commands_total", result=result) for result in results)


class Nginx:
    """Forwards what a gateway sent to its provider, byte for byte."""

    name = "nginx"

    def __init__(self, case, sim):
        directory, port = case.directory(), harness.free_port()
        config = os.path.join(directory, "nginx.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(NGINX.format(directory=directory, port=port, provider=sim.port))
        self.child = pinned(GATEWAY_CPU, lambda: subprocess.Popen(["nginx", "-c", config, "-p", directory]))
        case.addCleanup(self.end)
        self.pid, self.url, self.body = self.child.pid, f"http://127.0.0.1:{port}/v1/messages", sim.last_body()
        headers = sim.last()["headers"]
        self.fields = {name: headers[name] for name in ("x-api-key", "anthropic-version")}
        self.answer = len(harness.wait_for(self.ask, "nginx answers"))

    def ask(self):
        try:
            answer = harness.request_h2("POST", self.url, self.body,
                                        {**self.fields, "content-type": "application/json"})
        except harness.Failure:
            return None
        return answer.body if answer.status == 200 else None

    def end(self):
        self.child.terminate()
        self.child.wait()


# ---- measuring ---------------------------------------------------------------------------------

def load(case, server, rate, seconds):
    """At a fixed rate; how many were answered, which must be all, and the requests a second that came of it."""
    path = os.path.join(case.directory(), "body")
    with open(path, "wb") as file:
        file.write(server.body)
    argv = ["h2load", "-t", 1, "-c", CONNECTIONS, "-m", STREAMS, "--rps", rate / CONNECTIONS, "-n", int(rate * seconds),
            "-d", path, "-H", "content-type: application/json"]
    for field in server.fields.items():
        argv += ["-H", ": ".join(field)]
    run = pinned(LOAD_CPU, lambda: subprocess.run([*map(str, argv), server.url], capture_output=True, text=True,
                                                  check=True))
    count = int(rate * seconds)
    if f"status codes: {count} 2xx" not in run.stdout:
        raise harness.Failure(run.stdout)
    return count, float(re.search(r"finished in .*?, ([\d.]+) req/s", run.stdout)[1])


def script_us(redis):
    """Calls and microseconds of scripts since the last reset, and the CPU that Redis took in all."""
    calls = usec = 0
    for line in redis.ask("INFO", "commandstats").splitlines():
        match = re.match(r"cmdstat_(?:evalsha|eval|fcall):calls=(\d+),usec=(\d+)", line)
        if match:
            calls, usec = calls + int(match[1]), usec + int(match[2])
    return calls, usec, cpu_s(redis.child.pid) * 1e6


class Round:
    """One server for one stretch."""

    def __init__(self, case, server, redis, rate, seconds):
        redis.ask("CONFIG", "RESETSTAT")
        with_redis = server.name.endswith("redis")
        before, redis_before = cpu_s(server.pid), script_us(redis)
        missed = server.commands("late", "lost", "error") if with_redis else 0
        count, self.rate = load(case, server, rate, seconds)
        redis_after = script_us(redis)
        self.us = (cpu_s(server.pid) - before) * 1e6 / count
        self.scripts, self.script_us, self.redis_us = ((b - a) / count for a, b in zip(redis_before, redis_after))
        self.missed = (server.commands("late", "lost", "error") - missed) / count if with_redis else 0


def trips_before_provider(gateway, sim, redis):
    """Scripts that one request has run when its provider has it; and commands that were sent for that."""
    sim.default("latency-1s")
    harness.wait_for(lambda: not gateway.process.metrics().sum("sluice_in_flight"), "nothing in flight")
    redis.ask("CONFIG", "RESETSTAT")
    sent = gateway.commands("ok", "late", "lost", "error")
    asking = threading.Thread(target=gateway.process.post, args=(BODY,))
    asking.start()
    sim.wait_stats(lambda stats: stats["in_flight"] == 1, "the provider has it")
    result = script_us(redis)[0], gateway.commands("ok", "late", "lost", "error") - sent
    asking.join()
    sim.default("")
    return result


def words(values, digits=1):
    """Median and range."""
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f}-{max(values):.{digits}f}]"


def measure(case, options):
    sim = pinned(LOAD_CPU, lambda: case.sim("--default", f"size-{ANSWER_TEXT}"))
    redis = pinned(LOAD_CPU, lambda: redis_server.Redis(case))
    shared = Gateway(case, sim, {"kind": "redis", "url": redis.url, "deadline": DEADLINE})
    harness.wait_for(lambda: shared.process.metrics().sum("sluice_limiter_mode", mode="shared"), "Redis in use")
    servers = [shared, Gateway(case, sim, {"kind": "memory"}), Nginx(case, sim)]
    trips = trips_before_provider(shared, sim, redis)
    rounds = {server.name: [] for server in servers}
    for number in range(-1, options.rounds):  # one to warm up
        for server in servers:
            result = Round(case, server, redis, options.rate, options.seconds)
            if number >= 0:
                rounds[server.name].append(result)
    for server in servers:
        print(f"{server.name}: {words([r.us for r in rounds[server.name]])} us of CPU a request, at "
              f"{words([r.rate for r in rounds[server.name]], 0)} requests a second; {len(server.body)} bytes in, "
              f"{server.answer} out")
    report(rounds[shared.name], rounds["sluice, memory"], rounds["nginx"], trips)


def report(shared, memory, nginx, trips):
    ratios = [a.us / b.us for a, b in zip(shared, nginx)]
    print(f"with Redis, x nginx: {words(ratios, 2)}; floor 0.95, goal 0.80. With the memory store: "
          f"{words([a.us / b.us for a, b in zip(memory, nginx)], 2)}")
    print(f"Redis: {words([r.script_us for r in shared])} us of scripts a request, {words([r.redis_us for r in shared])} "
          f"us of CPU in all; {words([r.scripts for r in shared], 3)} scripts a request, settlements included")
    print(f"before the provider has a request: {trips[0]} script, {trips[1]:.0f} command")
    missed = max(r.missed for r in shared)
    print(f"late, lost or refused: {100 * missed:.2f} % of the requests at most"
          + ("; such a round measures what happens without Redis" if missed > 0.01 else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=int, default=5000, help="requests a second")
    parser.add_argument("--seconds", type=float, default=5, help="of each round of each server")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for program in ("nginx", "h2load", "redis-server"):
        if shutil.which(program) is None:
            sys.exit(program + " is not installed")
    case = harness.Case()
    try:
        measure(case, options)
    finally:
        case.doCleanups()


if __name__ == "__main__":
    main()
