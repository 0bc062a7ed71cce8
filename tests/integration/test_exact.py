#!/usr/bin/env python3
"""Exact costs of a request, as the difference of two run lengths, against the table exact.json.

ctest: serial once timeout=400

The table holds the present values; only a deliberate commit changes it. A value that is worse than
its row by more than the row's tolerance fails, and so does one that is better by more: then the
table is out of date. `test_exact.py --print` prints what was measured, in the table's form.
"""
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import exact_case
import harness
import redis_fleet
import redis_server

SHORT, LONG = 400, 1400
# 2 KB in, 1 KB out: DESIGN 6.
BODY = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
    "messages": [{"role": "user", "content": {"type": "text", "text": ("Tell me about gateways. " * 80)[:1850]}}],
    "systemPrompt": "You are brief.", "temperature": 1, "maxTokens": 300,
    "modelPreferences": {"hints": [{"name": "claude-test"}]}}}, separators=(",", ":")).encode()


class Exact(exact_case.Case):
    def settings(self, sim, redis=None):
        """Redis has all the time that it needs: each request asks it."""
        store = {} if redis is None else {"store": {"kind": "redis", "url": redis.url, "deadline": "10s"}}
        settings = harness.config(sim, **store)
        settings["plans"]["standard"]["limits"].update(
            requests_per_minute=6000000000, requests_burst=1000000, concurrent=1000)
        return settings

    def load(self, gateway, count, clients, streams, http2=True, body=BODY, fields=()):
        self.h2load(gateway.url + "/v1/sampling", count, clients, streams, body, fields, http2)

    # ---- instructions and allocations, by callgrind ----
    def profile(self, count, clients, streams, redis=None):
        """The profile of the worker's thread after `count` requests."""
        return self.profiled(self.settings(self.sim("--default", "size-1024"), redis),
                             lambda gateway: self.load(gateway, count, clients, streams))

    def per_request(self, clients, streams, redis=None):
        short, long = (self.profile(count, clients, streams, redis) for count in (SHORT, LONG))
        count = LONG - SHORT
        return ((long.instructions - short.instructions) / count,
                (long.allocations - short.allocations) / count)

    def test_instructions_and_allocations_one_at_a_time(self):
        instructions, allocations = self.per_request(1, 1)
        self.check("instructions, h2c, 1 in flight", instructions)
        self.check("allocations of ours, h2c, 1 in flight", allocations)

    def test_instructions_and_allocations_64_in_flight(self):
        instructions, allocations = self.per_request(8, 8)
        self.check("instructions, h2c, 64 in flight", instructions)
        self.check("allocations of ours, h2c, 64 in flight", allocations)

    LINES = 22  # that the simulator adds

    def test_instructions_of_a_header_line(self):
        """Of a provider's answer: real ones have many, the simulator's three unless it is told otherwise."""
        few, many = (self.profiled(self.settings(self.sim("--default", words)), lambda gateway: self.load(gateway, LONG, 1, 1))
                     for words in ("size-1024", "size-1024-lines"))
        self.check("instructions, header line of a provider", (many.instructions - few.instructions) / (LONG * self.LINES))

    # What Node's fetch and a mesh's sidecar add.
    CALLER_LINES = ("accept: */*", "accept-language: *", "sec-fetch-mode: cors", "user-agent: node",
                    "accept-encoding: gzip, deflate", "x-forwarded-for: 10.1.2.3", "x-forwarded-proto: https",
                    "x-request-id: 7b1a9c8e-2f4d-4e6a-9b0c-1d2e3f4a5b6c", "x-envoy-attempt-count: 1",
                    "x-envoy-expected-rq-timeout-ms: 15000")

    def test_instructions_of_a_callers_header_line(self):
        """h2load has next to none; over HTTP/2 those of a connection's first request are referred to by all others."""
        for name, http2 in (("h2c", True), ("HTTP/1.1", False)):
            few, many = (self.profiled(self.settings(self.sim("--default", "size-1024")),
                                       lambda gateway, f=fields: self.load(gateway, LONG, 1, 1, http2, fields=f))
                         for fields in ((), self.CALLER_LINES))
            self.check(f"instructions, header line of a caller, {name}",
                       (many.instructions - few.instructions) / (LONG * len(self.CALLER_LINES)))

    # ---- an event of a provider's stream ----
    STREAMS, FEW, MANY = 8, 100, 500

    def stream_body(self, events):
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Tell me about gateways."}}],
            "maxTokens": 4000, "_meta": {"progressToken": 1},
            "modelPreferences": {"hints": [{"name": self.stream_model(events)}]}}}).encode()

    def stream_model(self, events):
        return f"sim-pace-10ms-chunk-20-size-{20 * events}"  # slow enough for each to be a read of its own

    def stream_settings(self, sim):
        settings = self.settings(sim)
        settings["models"] = [harness.model(self.stream_model(events), "anthropic") for events in (self.FEW, self.MANY)]
        settings["plans"]["standard"]["models"] = {"allow": ["*"]}
        return settings

    def per_event(self, few, many):
        return (many - few) / (self.STREAMS * (self.MANY - self.FEW))

    def stream(self, gateway, events):
        self.load(gateway, self.STREAMS, 1, self.STREAMS, body=self.stream_body(events),
                  fields=["accept: application/json, text/event-stream"])

    def test_instructions_and_allocations_of_an_event(self):
        profiles = [self.profiled(self.stream_settings(self.sim()), lambda gateway, n=events: self.stream(gateway, n))
                    for events in (self.FEW, self.MANY)]
        self.check("instructions, event of a stream", self.per_event(*[p.instructions for p in profiles]))
        self.check("allocations of ours, event of a stream", self.per_event(*[p.allocations for p in profiles]))

    def test_syscalls_of_an_event(self):
        gateway = self.gateway(self.stream_settings(self.sim()))
        self.stream(gateway, self.FEW)
        thread = self.worker_thread(gateway.pid)
        counts = [sum(self.traced(thread, lambda n=events: self.stream(gateway, n)).values())
                  for events in (self.FEW, self.MANY)]
        self.check("syscalls, event of a stream", self.per_event(*counts))

    # ---- syscalls, by strace ----
    def syscalls(self, clients, streams, http2=True, redis=None):
        sim = self.sim("--default", "size-1024")
        gateway = self.started(self.settings(sim, redis))
        self.load(gateway, 2 * clients * streams, clients, streams, http2)  # connections to the provider
        thread = self.worker_thread(gateway.pid)
        counts = [self.traced(thread, lambda: self.load(gateway, count, clients, streams, http2))
                  for count in (SHORT, LONG * 4)]
        return sum((counts[1] - counts[0]).values()) / (LONG * 4 - SHORT)

    def test_syscalls(self):
        self.check("syscalls, h2c, 1 in flight", self.syscalls(1, 1))
        self.check("syscalls, h2c, 64 in flight", self.syscalls(8, 8))
        self.check("syscalls, HTTP/1.1, 64 in flight", self.syscalls(64, 1, http2=False))

    # ---- with Redis ----
    def scripts(self, redis):
        """Round trips of a request, by Redis's own count of scripts: what comes before its provider, and what is told
        afterwards for as many requests as have ended by then. A machine that is busy adds some: what waits for the
        next request's write goes by itself 2 ms later."""
        gateway = self.started(self.settings(self.sim("--default", "size-1024"), redis))
        counts = []
        for count in (SHORT, LONG):
            redis.ask("CONFIG", "RESETSTAT")
            self.load(gateway, count, 1, 1)
            harness.wait_for(lambda: not gateway.metrics().sum("sluice_in_flight"), "nothing in flight")
            stats = redis.ask("INFO", "commandstats")
            counts.append(sum(int(calls) for calls in re.findall(r"cmdstat_evalsha:calls=(\d+)", stats)))
        return (counts[1] - counts[0]) / (LONG - SHORT)

    @unittest.skipIf(redis_fleet.missing(), redis_fleet.missing())
    def test_with_redis(self):
        redis = redis_server.Redis(self)
        instructions, allocations = self.per_request(8, 8, redis)
        self.check("instructions, h2c, 64 in flight, Redis", instructions)
        self.check("allocations of ours, h2c, 64 in flight, Redis", allocations)
        self.check("syscalls, h2c, 1 in flight, Redis", self.syscalls(1, 1, redis=redis))
        self.check("syscalls, h2c, 64 in flight, Redis", self.syscalls(8, 8, redis=redis))
        self.check("scripts, h2c, 1 in flight, Redis", min(self.scripts(redis) for _ in range(3)))


if __name__ == "__main__":
    exact_case.main(Exact)
