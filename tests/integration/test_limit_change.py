#!/usr/bin/env python3
"""Limits that change by a reload: a raised one is in force at once, and no debt is forgotten. ctest: serial timeout=120"""

import os
import struct
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import redis_server

FEW = {"requests_per_minute": 1, "requests_burst": 10}
MANY = {"requests_per_minute": 60000, "requests_burst": 6000}


class Changing:
    """Behaviour of both stores."""

    def setUp(self):
        super().setUp()
        self.provider = self.sim("--default", "nousage")

    def begin(self, limits):
        settings = harness.config(self.provider, workers=2, store=self.store())
        settings["plans"]["standard"]["limits"].update(limits)
        return self.gateway(settings)

    def change(self, gateway, limits):
        plan = gateway.settings["plans"]["standard"]["limits"]
        for name in [name for name in plan if name.startswith(("requests", "tokens", "per_"))]:
            del plan[name]
        plan.update(limits)
        gateway.write_config(gateway.settings)
        self.assertEqual(gateway.reload().status, 200)

    def granted(self, gateway, most):
        """How many of `most` in a row are granted, and what the first one is told that is not."""
        for count in range(most):
            answer = gateway.sample("hello")
            if answer.status != 200:
                error = self.assert_error(answer, 429, 429, "rate_limited")
                return count, error["data"]
        return most, None

    def remaining(self, gateway, limit="requests_per_minute"):
        return gateway.get("/tenants/acme").json()["scopes"][0]["limits"][limit]["remaining"]

    def test_requests_raised(self):
        gateway = self.begin(FEW)
        self.assertEqual(self.granted(gateway, 20)[0], 10)
        self.assertEqual(self.remaining(gateway), 0)
        self.change(gateway, MANY)
        self.assertGreaterEqual(self.remaining(gateway), 5990)
        self.assertEqual(self.granted(gateway, 50)[0], 50)

    def test_tokens_raised(self):
        gateway = self.begin({"tokens_per_minute": 1, "tokens_burst": 2000})
        count, refusal = self.granted(gateway, 50)
        self.assertEqual(refusal["limit"], "tokens_per_minute")
        self.assertGreater(refusal["retryAfterMs"], 60000)
        left = self.remaining(gateway, "tokens_per_minute")
        self.change(gateway, {**MANY, "tokens_per_minute": 1, "tokens_burst": 4000})
        self.assertAlmostEqual(self.remaining(gateway, "tokens_per_minute"), left + 2000, delta=1)
        self.change(gateway, {**MANY, "tokens_per_minute": 60000000})
        self.assertGreaterEqual(self.remaining(gateway, "tokens_per_minute"), 60000000 - 2000)
        self.assertEqual(self.granted(gateway, 2 * count)[0], 2 * count)

    def test_lowered_debt_stays_debt(self):
        gateway = self.begin({"requests_per_minute": 20, "requests_burst": 40})
        self.assertGreaterEqual(self.granted(gateway, 60)[0], 40)
        self.change(gateway, FEW)
        count, refusal = self.granted(gateway, 1)
        self.assertEqual((count, self.remaining(gateway)), (0, 0))
        self.assertGreater(refusal["retryAfterMs"], 25 * 60000)
        self.assertLessEqual(refusal["retryAfterMs"], 31 * 60000)  # 40 are owed, and 10 may be
        self.change(gateway, {"requests_per_minute": 20, "requests_burst": 40})
        self.assertLess(self.granted(gateway, 40)[0], 15)  # what has refilled meanwhile

    def test_of_a_part_that_comes_goes_and_comes_back(self):
        gateway = self.begin({})
        self.change(gateway, {**MANY, "per_model": {"*": FEW}})
        self.assertEqual(self.granted(gateway, 20)[0], 10)
        self.change(gateway, MANY)
        self.assertEqual(self.granted(gateway, 20)[0], 20)
        self.change(gateway, {**MANY, "per_model": {"*": FEW}})
        self.assertEqual(self.granted(gateway, 1)[0], 0)
        self.change(gateway, {**MANY, "per_model": {"*": MANY}})
        self.assertEqual(self.granted(gateway, 20)[0], 20)

    def test_that_only_count_and_then_refuse(self):
        gateway = self.begin({**FEW, "enforce": False})
        self.assertEqual(self.granted(gateway, 30)[0], 30)
        self.change(gateway, {**MANY, "enforce": False})
        self.assertEqual(self.granted(gateway, 30)[0], 30)
        self.change(gateway, {**MANY, "enforce": True})
        self.assertEqual(self.granted(gateway, 30)[0], 30)
        self.change(gateway, {**FEW, "enforce": True})
        self.assertLess(self.granted(gateway, 30)[0], 11)


class Memory(Changing, harness.Case):
    def store(self):
        return {"kind": "memory"}


@unittest.skipUnless(redis_server.available(), "redis-server is not installed")
class Redis(Changing, harness.Case):
    def setUp(self):
        super().setUp()
        self.redis = redis_server.Redis(self)

    def store(self):
        return {"kind": "redis", "url": self.redis.url, "deadline": "1s"}

    def begin(self, limits):
        gateway = super().begin(limits)
        harness.wait_for(lambda: gateway.metrics().sum("sluice_limiter_mode", mode="shared") == 2, "it has its Redis")
        return gateway

    def test_two_gateways_with_other_figures_get_no_more_than_the_larger(self):
        small, large = {"requests_per_minute": 30, "requests_burst": 5}, {"requests_per_minute": 120, "requests_burst": 40}
        gateways = [self.begin(limits) for limits in (large, small)]
        begun, granted = time.monotonic(), [0, 0]
        while sum(granted) < 44 or time.monotonic() - begun < 5:  # what refills counts too
            for i, gateway in enumerate(gateways):
                granted[i] += self.granted(gateway, 1)[0]
                self.assertLessEqual(sum(granted), 40 + 120 * (time.monotonic() - begun) / 60 + 1, granted)
            for gateway in gateways:
                self.assertLess(self.remaining(gateway), 41)
        self.assertGreaterEqual(sum(granted), 40)

    def test_one_of_two_gateways_raises_it(self):
        gateways = [self.begin(FEW) for _ in range(2)]
        self.assertEqual(sum(self.granted(gateways[i % 2], 1)[0] for i in range(20)), 10)
        self.change(gateways[0], MANY)
        self.assertEqual(self.granted(gateways[0], 50)[0], 50)
        self.assertEqual(self.granted(gateways[1], 1)[0], 0)
        self.assertEqual(self.granted(gateways[0], 50)[0], 50)

    def former_state(self, requests_s):
        """As the version before this one has written it, with so much of requests owed and 0.5 USD spent."""
        now = int(time.time())
        day, month = now // 86400, time.gmtime(now).tm_year * 12 + time.gmtime(now).tm_mon - 1
        money = [(period if period % 2 == parity else 0, 0, 500_000_000)
                 for period in (day, month) for parity in range(2)]
        return struct.pack("<8s18I", b"former--", now + requests_s, 0, now, 0, 0, now + 30,
                           *[number for row in money for number in row]) + bytes(32)

    def put_former_state(self, requests_s):
        key = self.redis.ask("KEYS", "sluice:2:{*}")[0]
        self.redis.ask("SET", key, self.former_state(requests_s).decode(errors="surrogateescape"))

    def test_a_state_of_the_version_before_is_read(self):
        gateway = self.begin(FEW)
        self.assertEqual(self.granted(gateway, 1)[0], 1)
        self.put_former_state(580)
        self.assertEqual(self.remaining(gateway), 0)
        count, refusal = self.granted(gateway, 1)
        self.assertEqual(count, 0)
        self.assertIn(refusal["retryAfterMs"], range(20000, 41000))
        self.assertGreaterEqual(self.redis.tenant()["day"], 500_000_000)
        self.put_former_state(575)
        self.change(gateway, MANY)
        self.assertLessEqual(self.granted(gateway, 1)[1]["retryAfterMs"], 1)


if __name__ == "__main__":
    harness.main()
