#!/usr/bin/env python3
"""What a tenant that is over its rate costs the others by repeating a tool loop with large private blocks.

    bench/loop_refusals.py [--before BINARY] [--redis] [--per-s N] [--seconds N]

An honest tenant asks 25 times a second, first alone and then beside the attack (bench/attacks/loops.py): how many of its
requests were lost, their p50 and p99, and the gateway's CPU in % of a core. --before measures another binary as well.
With --redis limits and blocks are there, and money is refused while it is away. The gateway has one worker.
"""

import argparse
import json
import os
import statistics
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "attacks"), os.path.join(HERE, "../tests/support")]
import harness  # noqa: E402
import loops  # noqa: E402
import redis_server  # noqa: E402
import thinkers  # noqa: E402
from suite.machine import cpu_s, family  # noqa: E402

ATTACKER_KEY = "sk-attacker-0123456789abcdef"
ROUNDS, HONEST_PER_S = 12, 25
THOUGHT, THOUGHT_REDIS = 900000, 150000  # bytes; larger ones do not come from Redis in time even alone


class Bench(harness.Case):
    """A case, for what it starts and stops."""

    def runTest(self):
        pass

    def settings(self, thinker, sim, redis):
        settings = harness.config(sim, workers=1)
        settings["providers"]["thinker"] = {**harness.provider(thinker, "anthropic"), "keys": [thinker.key]}
        settings["models"].append(harness.model("thinking", "thinker", context=100000000))
        plan = settings["plans"]["standard"]
        plan["limits"].update(requests_per_minute=1000000, tokens_per_minute=10**10, usd_per_day=100000)
        narrow = json.loads(json.dumps(plan))
        narrow["models"] = {"allow": ["thinking"]}
        # a request in five seconds is granted, the others are not
        narrow["limits"].update(requests_per_minute=12, requests_burst=ROUNDS, loop_tokens=10**9, tool_rounds=100)
        settings["plans"]["narrow"] = narrow
        settings["tenants"].append({"id": "mallory", "plan": "narrow",
                                    "keys": [{"sha256": harness.sha256(ATTACKER_KEY), "server": "hostile"}]})
        if redis is not None:
            settings["store"] = {"kind": "redis", "url": redis.url}
        return settings

    def honest(self, gateway, seconds):
        """[(seconds, status)] of requests at a fixed rate, each by a thread, so that none waits for another."""
        seen, threads, begun = [], [], time.monotonic()

        def one():
            at = time.monotonic()
            try:
                status = gateway.sample("hello").status
            except OSError:
                status = 0
            seen.append((time.monotonic() - at, status))
        for i in range(int(seconds * HONEST_PER_S)):
            time.sleep(max(0.0, begun + i / HONEST_PER_S - time.monotonic()))
            threads.append(threading.Thread(target=one))
            threads[-1].start()
        for thread in threads:
            thread.join()
        return seen

    def measured(self, gateway, seconds, attack=None):
        before, begun = sum(cpu_s(pid) for pid in family(gateway.pid)), time.monotonic()
        answers = {}
        attacker = threading.Thread(target=lambda: answers.update(attack() if attack else {}))
        attacker.start()
        seen = self.honest(gateway, seconds)
        cpu = (sum(cpu_s(pid) for pid in family(gateway.pid)) - before) / (time.monotonic() - begun)
        attacker.join()
        times = sorted(taken * 1000 for taken, _ in seen)
        return (f"| {sum(status != 200 for _, status in seen)} of {len(seen)} | {statistics.median(times):.1f} "
                f"| {times[int(len(times) * 0.99)]:.1f} | {cpu * 100:.0f} | {answers or ''} |")

    def patient(self, gateway, body):
        """The result, once there is one: large answers of Redis may be late."""
        answers = []

        def ask():
            answers.append(gateway.post(body, key=ATTACKER_KEY).json())
            return "result" in answers[-1]
        harness.wait_for(ask, "a round of the loop", 30)
        return answers[-1]["result"]

    def run_one(self, binary, options):
        thinker, sim = thinkers.Anthropic(rounds=1000, length=THOUGHT_REDIS if options.redis else THOUGHT, needs_all=False), self.sim("--latency", "1ms")
        redis = redis_server.Redis(self) if options.redis else None
        gateway = self.gateway(self.settings(thinker, sim, redis), binary=binary)
        gateway.sample("hello")
        body = loops.build(lambda ask: self.patient(gateway, ask), ROUNDS)
        host, port = gateway.settings["listen"][0]["address"].split(":")
        alone = self.measured(gateway, options.seconds)
        beside = self.measured(gateway, options.seconds, lambda: loops.repeat(
            host, int(port), ATTACKER_KEY, body, options.per_s, options.seconds))
        gateway.stop()
        thinker.close()
        return alone, beside


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before")
    parser.add_argument("--redis", action="store_true")
    parser.add_argument("--per-s", type=float, default=70)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    bench = Bench()
    print("| binary | attack | honest lost | p50, ms | p99, ms | CPU, % of a core | attacker's answers |\n|---|---|---|---|---|---|---|")
    try:
        for name, binary in (("before", options.before), ("now", harness.BIN)):
            if binary is not None:
                alone, beside = bench.run_one(binary, options)
                print(f"| {name} | none {alone}\n| {name} | {options.per_s:g} a second {beside}", flush=True)
    finally:
        bench.doCleanups()


if __name__ == "__main__":
    main()
