#!/usr/bin/env python3
"""Tool loops in Redis: a loop goes on at another gateway, with its thoughts and its limits; and what is left of it
when Redis is gone, or has forgotten. ctest: once timeout=120"""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import redis_server
import test_tool_loop
import thinkers


@unittest.skipUnless(redis_server.available(), "redis-server is not installed")
class SharedLoopCase(test_tool_loop.LoopCase):
    def setUp(self):
        super().setUp()
        self.redis = redis_server.Redis(self)

    def start(self, thinker, dialect="anthropic", limits=None, plan=None, **changes):
        plan = {"on_store_failure": {"rates": "local", "budget": {"local": 100}}, **(plan or {})}
        gateway = super().start(thinker, dialect, limits, plan, workers=2,
                                store={"kind": "redis", "url": self.redis.url, "deadline": "1s"}, **changes)
        self.wait_mode(gateway, "shared")
        return gateway

    def wait_mode(self, gateway, mode):
        harness.wait_for(lambda: gateway.metrics().sum("sluice_limiter_mode", mode=mode) == 2,
                         f"both workers are {mode}")


class Together(SharedLoopCase):
    def test_a_gateway_is_killed_in_mid_loop_and_another_goes_on(self):
        for dialect in thinkers.KINDS:
            with self.subTest(dialect=dialect):
                thinker = self.thinker(dialect)
                a, b = self.start(thinker, dialect), self.start(thinker, dialect)
                messages, _ = self.loop(a, rounds=4)
                a.kill()
                _, result = self.loop(b, messages)
                self.assertEqual(harness.text_of(result), "10 rounds")
                self.assertEqual(thinker.problems, [])
                self.assertEqual(thinker.given_back, list(range(11)))
                self.assertEqual(self.adjustments(result), [])
                b.stop()

    def test_every_round_may_be_at_another_gateway(self):
        thinker = self.thinker()
        gateways = [self.start(thinker) for _ in range(2)]
        messages = [test_tool_loop.ASK]
        for turn in range(11):
            longer, result = self.round(gateways[turn % 2], messages)
            messages = longer or messages
        self.assertEqual(harness.text_of(result), "10 rounds")
        self.assertEqual(thinker.given_back, list(range(11)))

    def test_its_tokens_are_those_of_all_gateways(self):
        thinker = self.thinker(rounds=100)
        a, b = (self.start(thinker, limits={"loop_tokens": 400}) for _ in range(2))
        messages, _ = self.loop(a, rounds=3)
        self.result_of(self.ask(b, messages))  # 360 were spent
        for gateway in (a, b):
            self.assert_error(self.ask(gateway, messages), 403, 403, "loop_tokens")

    def test_its_rounds_are_known_whatever_is_left_of_its_history(self):
        thinker = self.thinker(rounds=100, needs_all=False)
        limits = {"tool_rounds": 4, "tool_rounds_action": "refuse"}
        a, b = (self.start(thinker, limits=limits) for _ in range(2))
        messages, _ = self.loop(a, rounds=4)
        self.assert_error(self.ask(b, [test_tool_loop.ASK] + messages[-2:]), 403, 403, "tool_rounds")

    def test_calls_of_another_gateway_are_no_forgeries(self):
        thinker = self.thinker(needs_all=False)
        a, b = (self.start(thinker, plan={"unknown_tool_calls": "refuse"}) for _ in range(2))
        messages, _ = self.loop(a, rounds=1)
        self.assertEqual(self.ask(b, messages).status, 200)
        self.assert_error(self.ask(b, messages, key=test_tool_loop.OTHER_KEY), 403, 403, "unknown_tool_calls")


class Away(SharedLoopCase):
    def test_its_own_gateway_goes_on_with_its_thoughts(self):
        thinker = self.thinker()
        gateway = self.start(thinker)
        messages, _ = self.loop(gateway, rounds=3)
        self.redis.kill()
        self.wait_mode(gateway, "away")
        messages, result = self.loop(gateway, messages, rounds=3)
        self.assertIn("reasoning_not_saved", self.adjustments(result))  # for others
        self.redis.start()  # empty
        self.wait_mode(gateway, "shared")
        _, result = self.loop(gateway, messages)
        self.assertEqual(harness.text_of(result), "10 rounds")
        self.assertEqual(thinker.problems, [])
        self.assertEqual(thinker.given_back, list(range(11)))

    def test_another_gateway_goes_on_without(self):
        thinker = self.thinker(needs_all=False)
        a, b = self.start(thinker), self.start(thinker)
        messages, _ = self.loop(a, rounds=2)
        self.redis.kill()
        self.wait_mode(b, "away")
        result = self.result_of(self.ask(b, messages))
        self.assertEqual(result["stopReason"], "toolUse")
        self.assertIn("reasoning_not_saved", self.adjustments(result))
        self.assertEqual((thinker.given_back[-1], thinker.problems), (0, []))
        self.assertGreater(b.metrics().sum("sluice_state_away_total", what="recall"), 0)

    def test_rounds_are_those_of_the_history_after_a_flush(self):
        thinker = self.thinker(rounds=100, needs_all=False)
        limits = {"tool_rounds": 4, "tool_rounds_action": "refuse"}
        a, b = (self.start(thinker, limits=limits) for _ in range(2))
        messages, _ = self.loop(a, rounds=4)
        self.redis.ask("FLUSHALL")
        self.assert_error(self.ask(b, messages), 403, 403, "tool_rounds")
        shortened = [test_tool_loop.ASK] + messages[-2:]
        self.assertEqual(self.ask(b, shortened).status, 200)
        self.assert_error(self.ask(a, shortened), 403, 403, "tool_rounds")  # which issued the calls itself


if __name__ == "__main__":
    harness.main()
