"""Four gateways, a thousand callers at each, one Redis: limits hold exactly while it is there, and as far as
deploy/docs/limits.md says while it is not. bench/redis_outage.py is the long form. ctest: serial once timeout=180
Under ASan it is a section of .ci/nightly; the store's own tests run under it every time."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import redis_fleet
import redis_outage
import redis_server

SANITIZED = bool(os.environ.get("SLUICE_SANITIZE"))
CALLERS = 250 if SANITIZED else 1000  # at each gateway
GATEWAYS = 4
MODEL = "fleet"
REQUESTS, PLACES, BUDGET_USD = 500, 300, 5


@unittest.skipIf(redis_fleet.missing(), redis_fleet.missing())
class Crowd(harness.Case):
    """Redis is there, with a deadline that it meets however long the line: not one too many."""

    def setUp(self):
        self.sim = self.sim("--default", redis_fleet.USAGE_WORDS)
        tenants = [redis_fleet.Tenant("requests", {"requests_per_minute": 1, "requests_burst": REQUESTS}),
                   redis_fleet.Tenant("places", {"concurrent": PLACES}),
                   redis_fleet.Tenant("money", {"usd_per_day": BUDGET_USD})]
        redis = redis_fleet.favour(redis_server.Redis(self))
        self.fleet = redis_fleet.Fleet(self, redis.url, tenants, {MODEL: self.sim}, GATEWAYS, "10s")

    def storm(self, tenant, rounds=1, latency="2s"):
        """Every caller asks so many times; `latency`: of the provider, longer than it takes to ask Redis for all."""
        self.sim.reset()
        self.sim.default("latency-" + latency)
        rows = self.fleet.storm(tenant, MODEL, CALLERS * rounds, connections=CALLERS // 50, streams=50)
        self.fleet.settle()
        self.assertEqual(self.fleet.metric("sluice_store_commands_total", result="late"), 0)
        self.assertEqual(self.fleet.metric("sluice_store_commands_total", result="lost"), 0)
        return redis_fleet.statuses(rows)

    def spend_the_rest(self):
        """One after the other, until less is left than one may cost: answers."""
        for count in range(200):
            answer = self.fleet.gateways[count % GATEWAYS].sample("hello", key=self.fleet.tenants["money"].key,
                                                                  maxTokens=redis_fleet.MAX_TOKENS)
            if answer.status != 200:
                self.assert_error(answer, 402, 402)
                self.fleet.settle()
                return count
        self.fail("the budget has no end")

    def test_requests(self):
        self.assertEqual(self.storm("requests"), {200: REQUESTS, 429: GATEWAYS * CALLERS - REQUESTS})
        self.assertEqual(self.sim.stats()["requests"], REQUESTS)

    def test_places(self):
        self.assertEqual(self.storm("places"), {200: PLACES, 429: GATEWAYS * CALLERS - PLACES})
        self.assertEqual(self.sim.stats()["in_flight_high"], PLACES)

    def test_money(self):
        answers = self.storm("money", rounds=3, latency="300ms")
        self.assertEqual(set(answers), {200, 402})
        self.sim.default("latency-0ms")
        answers[200] += self.spend_the_rest()
        self.assertEqual(self.fleet.metric("sluice_log_dropped_total"), 0)
        spent = redis_fleet.spent_nano(self.fleet.lines("money"))
        self.assertEqual(spent, answers[200] * redis_fleet.COST_NANO)
        self.assertLessEqual(spent, BUDGET_USD * 10**9)
        self.assertGreater(spent, BUDGET_USD * 10**9 - 2 * redis_fleet.COST_NANO)


@unittest.skipIf(redis_fleet.missing(), redis_fleet.missing())
class Trips(harness.Case):
    def test_one_before_the_provider_whoever_asks(self):
        sim, redis = self.sim("--default", "hang"), redis_server.Redis(self)
        part = {"requests_per_minute": 60000, "usd_per_day": 1000}
        tenants = [redis_fleet.Tenant("plain"),
                   redis_fleet.Tenant("parted", {"per_server": part, "per_model": {"*": part, "fl*": part}})]
        fleet = redis_fleet.Fleet(self, redis.url, tenants, {MODEL: sim}, 1, "1s")
        for tenant in ("plain", "plain", "parted", "parted"):  # the first of each makes what the second finds
            redis.ask("CONFIG", "RESETSTAT")
            callers = fleet.callers(tenant, MODEL, 1, connections=1)
            sim.wait_stats(lambda stats: stats["in_flight"] == 1, "the provider has it")
            self.assertEqual(self.scripts(redis), 1)
            callers[0].kill()
            harness.wait_for(lambda: self.scripts(redis) == 2, "what it used is told")
            sim.wait_stats(lambda stats: stats["in_flight"] == 0, "the provider is left alone")

    @staticmethod
    def scripts(redis):
        return redis.calls("evalsha") + redis.calls("eval")


@unittest.skipIf(redis_fleet.missing(), redis_fleet.missing())
class Outage(harness.Case):
    """Redis goes, and comes back: nobody fails who need not, nobody waits, and the published bounds hold."""

    CALM_S, FAULT_S = 1, 2.5
    DEADLINE_MS, TIMER_MS = 20, 5  # store.deadline, and the loop's own lateness
    MOST = 0.9  # of the requests: whom a busy machine kept waiting is not Redis's matter, and they are fewer
    RECOVERY_S = 10 if SANITIZED else 2

    def suffer(self, name):
        result = redis_outage.run(self, redis_outage.FAULTS[name], self.CALM_S, self.FAULT_S)
        print(result)
        self.assertEqual(result.failed, 0)
        waits = result.waits_ms()
        self.assertLess(redis_outage.percentile(waits, 0.5), self.TIMER_MS, "every second request waits for nothing")
        self.assertLessEqual(redis_outage.percentile(waits, self.MOST), self.DEADLINE_MS + self.TIMER_MS)
        for over in (result.rates, result.places, result.money, result.strict_money):
            self.assertLessEqual(over.had, over.bound)
        self.assertLessEqual(result.recovery_s, self.RECOVERY_S)
        return result

    def test_killed(self):
        self.assertGreater(self.suffer("killed").refused, 0)

    def test_stopped(self):
        self.assertGreater(self.suffer("stopped").refused, 0)

    def test_half_a_second_slow(self):
        self.assertGreater(self.suffer("slow").refused, 0)

    def test_read_only(self):
        self.assertGreater(self.suffer("read-only").refused, 0)

    def test_flushed_every_second(self):
        self.suffer("flushed")

    def test_failing_over(self):
        self.assertGreater(self.suffer("failing over").refused, 0)


if __name__ == "__main__":
    harness.main()
