#!/usr/bin/env python3
"""CPU of a provider's event while many answers stream, beside nginx that only relays: bench/README.md.

    bench/stream_cost.py [--streams 10000] [--events 30] [--pace 500] [--rounds 3]

SLUICE_BIN and SLUICE_SIM name the binaries.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/support"))
import harness  # noqa: E402
from attack_table import GATEWAY_CPU, LOAD_CPU, cpu_s, pinned  # noqa: E402

PER_CONNECTION = 100  # h2's streams
ADDRESSES = 4         # of the provider: a pool of connections each
CHUNK = 20            # bytes of text in an event
FEW = 2               # events of the short run
ENDLESS = {"requests_per_minute": 60000000, "requests_burst": 60000000, "tokens_per_minute": 60000000000,
           "tokens_burst": 60000000000, "concurrent": 100000, "usd_per_day": 1000000}

NGINX = """daemon off; user root; worker_processes 1; error_log stderr warn; pid {directory}/pid;
worker_rlimit_nofile 20000;
events {{ worker_connections 20000; }}
http {{
  access_log off; keepalive_requests 1000000000;
  client_body_temp_path {directory}/a; proxy_temp_path {directory}/b; fastcgi_temp_path {directory}/c;
  uwsgi_temp_path {directory}/d; scgi_temp_path {directory}/e;
  upstream provider {{ {servers} keepalive 16384; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} http2;
    location / {{ proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_read_timeout 600s; }}
  }}
}}
"""


def model(events, pace_ms):
    return f"sim-pace-{pace_ms}ms-chunk-{CHUNK}-size-{CHUNK * events}"


class Gateway:
    name = "sluice"

    def __init__(self, case, sim, options):
        self.options = options
        names = [model(events, options.pace) for events in (FEW, options.events)]
        settings = harness.config(sim, models=[harness.model(name, "anthropic") for name in names])
        settings["providers"]["anthropic"]["endpoints"] = [
            {"url": f"http://127.0.0.{n + 1}:{sim.port}"} for n in range(ADDRESSES)]
        # All connections are opened at once: that takes its time, and nobody is to be left out for it.
        settings["providers"]["anthropic"].update(
            timeouts={"connect": "60s", "first_byte": "60s"}, breaker={"failures": 1000, "ratio": 0})
        settings["plans"]["standard"]["models"] = {"allow": ["*"]}
        settings["plans"]["standard"]["limits"].update(ENDLESS)
        self.process = pinned(GATEWAY_CPU, lambda: case.gateway(settings))
        self.pid, self.url = self.process.pid, self.process.url + "/v1/sampling"
        self.fields = {"authorization": "Bearer " + harness.KEY, "accept": "application/json, text/event-stream"}

    def complaint(self):
        return "\n".join(line for line in self.process.metrics().text.splitlines()
                         if line.startswith("sluice_provider_attempts_total"))

    def body(self, events):
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Tell me about gateways."}}],
            "maxTokens": 1000, "_meta": {"progressToken": 1},
            "modelPreferences": {"hints": [{"name": model(events, self.options.pace)}]}}}).encode()


class Nginx:
    name = "nginx"

    def __init__(self, case, sim, options):
        self.options = options
        directory, port = case.directory(), harness.free_port()
        config = os.path.join(directory, "nginx.conf")
        servers = " ".join(f"server 127.0.0.{n + 1}:{sim.port};" for n in range(ADDRESSES))
        with open(config, "w", encoding="utf-8") as file:
            file.write(NGINX.format(directory=directory, port=port, servers=servers))
        self.child = pinned(GATEWAY_CPU, lambda: subprocess.Popen(["nginx", "-c", config, "-p", directory]))
        case.addCleanup(self.end)
        self.pid, self.url = self.child.pid, f"http://127.0.0.1:{port}/v1/messages"
        self.fields = {"x-api-key": harness.PROVIDER_KEY, "anthropic-version": "2026-10-21"}

    def complaint(self):
        return ""

    def body(self, events):
        return json.dumps({"model": model(events, self.options.pace), "max_tokens": 1000, "stream": True, "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Tell me about gateways."}]}]}).encode()

    def end(self):
        self.child.terminate()
        self.child.wait()


def run(case, server, streams, events):
    """All streams at once; CPU seconds of the server until the last is answered."""
    path = os.path.join(case.directory(), "body")
    with open(path, "wb") as file:
        file.write(server.body(events))
    argv = ["h2load", "-t", 1, "-c", -(-streams // PER_CONNECTION), "-m", PER_CONNECTION, "-n", streams, "-d", path,
            "-H", "content-type: application/json"]
    for field in server.fields.items():
        argv += ["-H", ": ".join(field)]
    before = cpu_s(server.pid)
    done = pinned(LOAD_CPU, lambda: subprocess.run([*map(str, argv), server.url], capture_output=True, text=True,
                                                   check=True))
    if f"status codes: {streams} 2xx" not in done.stdout:
        raise harness.Failure(done.stdout + server.complaint())
    return cpu_s(server.pid) - before


def words(values):
    return f"{statistics.median(values):.2f} [{min(values):.2f}-{max(values):.2f}]"


def measure(case, options):
    sim = pinned(LOAD_CPU, lambda: case.sim("--address", "0.0.0.0"))
    servers = [Gateway(case, sim, options), Nginx(case, sim, options)]
    costs = {server.name: [] for server in servers}
    more = options.streams * (options.events - FEW)
    for number in range(-1, options.rounds):  # one to warm up
        for server in servers:
            few = run(case, server, options.streams, FEW)
            many = run(case, server, options.streams, options.events)
            if number >= 0:
                costs[server.name].append((many - few) * 1e6 / more)
    for name, values in costs.items():
        print(f"{name}: {words(values)} us of CPU an event; {options.streams} streams, {1000 / options.pace:.1f} events "
              "a second each")
    print(f"x nginx: {words([a / b for a, b in zip(costs['sluice'], costs['nginx'])])}; floor 6 us, goal 4 us")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=10000)
    parser.add_argument("--events", type=int, default=30, help="of each stream")
    parser.add_argument("--pace", type=int, default=500, help="milliseconds between two of them")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for program in ("nginx", "h2load"):
        if shutil.which(program) is None:
            sys.exit(program + " is not installed")
    case = harness.Case()
    try:
        measure(case, options)
    finally:
        case.doCleanups()


if __name__ == "__main__":
    main()
