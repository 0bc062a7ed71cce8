"""A provider with three endpoints, some of which fail under load: nobody notices as long as one is well, and no outage is
multiplied by retries. bench/provider_outage.py is the long form; with SLUICE_LONG in the environment (.ci/nightly outage)
all rows are played. ctest: serial once timeout=300"""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import provider_outage  # noqa: E402
import redis_fleet  # noqa: E402

CALM_S, FAULT_S = 2, 4
long_form = unittest.skipUnless(os.environ.get("SLUICE_LONG"), "a quarter of a minute: .ci/nightly outage plays it")
# An endpoint that failed is tried again 1, 2 and 4 s later: with 4 s of fault once more within 4 s of its end.
BACK_S = 4
BREAKER = {"slow_start": "2s"}
AFTER_S = BACK_S + 2 + 2  # what it takes to see that, on a busy machine
AMPLIFICATION = 1.2


@unittest.skipIf(redis_fleet.missing(), redis_fleet.missing())
class Outage(harness.Case):
    def suffer(self, name):
        result = provider_outage.run(self, provider_outage.FAULTS[name], CALM_S, FAULT_S, AFTER_S, breaker=BREAKER)
        print(f"\n{result}", flush=True)
        self.assertGreater(result.requests, provider_outage.RATE * FAULT_S * 0.8)
        self.assertLessEqual(result.amplification(result.both), AMPLIFICATION)
        self.assertLessEqual(result.well_after_s, BACK_S)
        return result

    def unnoticed(self, name, most_share, back=True):
        """`most_share`: of the fault's requests, at the endpoint that fails; `back`: it has its share again in time. How
        long a call took is forgotten by half in seven seconds: who made callers wait gets his share later."""
        result = self.suffer(name)
        self.assertEqual(result.lost, 0, result.statuses())
        self.assertLess(result.share(result.during), most_share)
        self.assertLess(result.added_ms(0.5)[1], provider_outage.LATENCY_MS)
        if back:
            self.assertIsNotNone(result.shared_after_s)

    def test_one_dead(self):
        self.unnoticed("one dead", 0.1)

    @long_form
    def test_one_slow(self):
        self.unnoticed("one slow", 0.15, back=False)

    @long_form
    def test_one_limited(self):
        self.unnoticed("one limited", 0.3)

    @long_form
    def test_one_overloaded(self):
        self.unnoticed("one overloaded", 0.1)

    @long_form
    def test_one_half_dead(self):
        self.unnoticed("one half dead", 0.15, back=False)

    def test_a_storm(self):
        result = self.suffer("storm")
        self.assertLessEqual(set(result.statuses()), {200, 502, 503})

    @long_form
    def test_all_overloaded(self):
        result = self.suffer("all overloaded")
        self.assertLessEqual(set(result.statuses()), {200, 502, 503})

    @long_form
    def test_all_dead(self):
        result = self.suffer("all dead")
        self.assertLessEqual(set(result.statuses()), {200, 502, 503})
        self.assertGreater(result.lost, 0)


@unittest.skipIf(redis_fleet.missing(), redis_fleet.missing())
class Balance(harness.Case):
    @long_form
    def test_shares_follow_weights_at_equal_latency(self):
        for ratio in provider_outage.shares(self, (1, 2, 3), 6000):
            self.assertAlmostEqual(ratio, 1, delta=0.05)

    @long_form
    def test_a_slow_endpoint_is_not_asked_as_often(self):
        """In turn, it would have a third of the requests. That answers come sooner for it shows on a quiet machine only."""
        _, counts = provider_outage.unequal(self, (20, 20, 1000), 1500, 150)
        self.assertLess(counts[2], 1500 / 10)


if __name__ == "__main__":
    harness.main()
