#!/usr/bin/env python3
"""One command that takes long in Redis is the matter of who waits for it: the gateway goes on asking for all others.
Redis stands still while it is at it. ctest: serial once timeout=120"""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import redis_server
import test_redis

DEADLINE_MS = 1000


@unittest.skipUnless(redis_server.available(), "redis-server is not installed")
class SlowCommand(test_redis.RedisCase):
    def setUp(self):
        self.redis = redis_server.Redis(self)
        self.provider = self.sim()
        self.spent_nano = 0
        self.limited = self.start(self.redis.url, self.provider, {"budget": {"local": 10}}, deadline=f"{DEADLINE_MS}ms")

    def sample(self):
        answer = self.limited.sample("hello")
        self.spent_nano += round(self.assert_result(answer)["_meta"]["sluice/usage"]["usd"] * 1e9)
        return answer

    def local(self):
        return self.limited.metrics().sum("sluice_away_decisions_total", function="rates", decision="local")

    def assert_prompt(self):
        """Redis decides. It has been told all of it by then: the next request finds nothing on its way."""
        self.assert_shared()
        harness.wait_for(lambda: self.redis.tenant()["day"] == self.spent_nano and self.redis.tenant()["places"] == 0,
                         "all is told")

    def assert_shared(self):
        before = self.local()
        self.sample()
        self.assertEqual(self.local(), before)

    def assert_late(self):
        """A request that is decided here, once its answer is late."""
        before = self.local()
        answer = self.sample()
        self.assertEqual(self.local(), before + 1)
        self.assertGreater(answer.elapsed_s, DEADLINE_MS * 0.0009)

    def test_it_takes_redis_from_nobody_else(self):
        for _ in range(5):
            self.assert_prompt()
            self.redis.stop()
            self.assert_late()
            self.redis.go_on()
        self.assert_prompt()
        self.assertEqual(self.mode(self.limited), "shared")
        self.assertGreaterEqual(self.limited.metrics().sum("sluice_store_commands_total", result="late"), 5)
        self.assertNotIn("answers too late", "\n".join(self.limited.stderr))

    def test_when_redis_says_nothing_at_all_nobody_waits_any_more(self):
        self.assert_prompt()
        self.redis.stop()
        self.assert_late()
        self.limited.wait_stderr("answers too late")
        self.assertLess(self.sample().elapsed_s, DEADLINE_MS * 0.0005)
        self.assertEqual(self.mode(self.limited), "away")
        self.redis.go_on()
        self.wait_mode(self.limited, "shared")
        self.assert_shared()


if __name__ == "__main__":
    harness.main()
