#!/usr/bin/env python3
"""Limits that change by a reload: a raised one is in force at once, and no debt is forgotten. ctest: timeout=120"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness

FEW = {"requests_per_minute": 1, "requests_burst": 10}
MANY = {"requests_per_minute": 60000, "requests_burst": 6000}


class Changing(harness.Case):
    def begin(self, limits, **store):
        self.provider = self.sim("--default", "nousage")
        return self.started(limits, **store)

    def started(self, limits, **store):
        settings = harness.config(self.provider, workers=2, **store)
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


class Memory(Changing):
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


if __name__ == "__main__":
    harness.main()
