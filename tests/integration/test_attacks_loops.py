"""Tool loops with large private blocks: they go back to the model, and a tenant that must wait pays for them before they are read.

The attack is bench/attacks/loops.py; bench/loop_refusals.py measures it. ctest: timeout=240
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support"), os.path.join(HERE, "../../bench/attacks"), HERE]
import harness  # noqa: E402
import loops  # noqa: E402
import redis_server  # noqa: E402
import thinkers  # noqa: E402

LARGE = 150000  # two of them are more than is read before limits are asked


class Loops(harness.Case):
    def start(self, store=None, **limits):
        self.thinker = thinkers.Anthropic(rounds=5, length=LARGE)
        self.addCleanup(self.thinker.close)
        settings = harness.config(self.thinker, workers=1)
        settings["providers"] = {"thinker": {**harness.provider(self.thinker, "anthropic"), "keys": [self.thinker.key]}}
        settings["models"] = [harness.model("thinking", "thinker", context=10000000)]
        plan = settings["plans"]["standard"]
        plan["models"] = {"allow": ["*"]}
        plan["limits"] = {**plan["limits"], "tool_rounds": 100, "loop_tokens": 10**9, "tokens_per_minute": 1000000,
                          "usd_per_day": 100000, **limits}
        if store is not None:
            settings["store"] = store
        gateway = self.gateway(settings)
        if store is not None:
            harness.wait_for(lambda: gateway.metrics().sum("sluice_limiter_mode", mode="shared") == 1, "Redis is in use")
        return gateway

    def stores(self):
        yield None
        if redis_server.available():
            yield {"kind": "redis", "url": redis_server.Redis(self).url, "deadline": "1s"}

    def build(self, gateway, rounds):
        return loops.build(lambda body: self.result_of(gateway.post(body)), rounds)

    def result_of(self, answer):
        self.assertEqual(answer.status, 200, answer)
        return answer.json()["result"]

    def change(self, gateway, **limits):
        gateway.settings["plans"]["standard"]["limits"].update(limits)
        with open(gateway.config_path, "w", encoding="utf-8") as file:
            json.dump(gateway.settings, file)
        self.assertEqual(gateway.reload().status, 200)

    def refused(self, gateway, limit):
        return gateway.metrics().sum("sluice_limit_decisions_total", limit=limit, decision="refused")

    def test_large_thoughts_go_back_to_the_model_and_cost_one_request_each(self):
        for store in self.stores():
            with self.subTest(store):
                gateway = self.start(store, requests_per_minute=6, requests_burst=6)
                result = self.result_of(gateway.post(self.build(gateway, 5)))
                self.assertEqual(harness.text_of(result), "5 rounds")
                self.assertEqual((self.thinker.given_back, self.thinker.problems), (list(range(6)), []))
                self.assertEqual(gateway.post(loops.body_of([loops.ASK])).status, 429)
                gateway.stop()

    def test_a_tenant_that_must_wait_is_refused_the_same_each_time_and_served_when_it_may_be(self):
        for store in self.stores():
            with self.subTest(store):
                gateway = self.start(store, requests_per_minute=60, requests_burst=5)
                body = self.build(gateway, 5)
                waits, answer = [], gateway.post(body)
                while answer.status == 200:  # what has come back to it meanwhile
                    answer = gateway.post(body)
                before = self.refused(gateway, "requests_per_minute")
                for _ in range(30):
                    answer = gateway.post(body)
                    if answer.status == 200:
                        break
                    data = answer.json()["error"]["data"]
                    self.assertEqual((answer.status, data["reason"], data["limit"], data["scope"], answer.headers["retry-after"]),
                                     (429, "rate_limited", "requests_per_minute", "tenant", "1"))
                    waits.append(data["retryAfterMs"])
                self.assertEqual(waits, sorted(waits, reverse=True))
                self.assertEqual(self.refused(gateway, "requests_per_minute"), before + len(waits))
                harness.wait_for(lambda: gateway.post(body).status == 200, "it is served again")
                self.assertEqual((self.thinker.given_back[-1], self.thinker.problems), (5, []))
                gateway.stop()

    def test_a_raised_limit_counts_at_once(self):
        for store in self.stores():
            with self.subTest(store):
                gateway = self.start(store, requests_per_minute=1, requests_burst=5)
                body = self.build(gateway, 5)
                self.assertEqual(gateway.post(body).status, 429)
                self.change(gateway, requests_per_minute=6000, requests_burst=600)
                self.result_of(gateway.post(body))
                gateway.stop()

    def test_what_is_read_is_paid_for_with_a_request_and_passes_no_limit(self):
        for store in self.stores():
            with self.subTest(store):
                gateway = self.start(store, requests_per_minute=1, requests_burst=9)
                body = self.build(gateway, 5)
                asked = len(self.thinker.given_back)
                self.change(gateway, tokens_per_minute=1000, tokens_burst=100000)  # the thoughts alone are 187,500
                limits = []
                for _ in range(5):
                    answer = gateway.post(body)
                    limits.append((answer.status, answer.json()["error"]["data"]["limit"]))
                self.assertEqual([limit for _, limit in limits],
                                 ["tokens_per_minute"] * 4 + ["requests_per_minute"], limits)
                self.assertEqual(len(self.thinker.given_back), asked)
                harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 0, "nothing in flight")
                self.change(gateway, concurrent=1, requests_per_minute=6000, requests_burst=600,
                            tokens_per_minute=10000000, tokens_burst=10000000)
                for _ in range(2):  # no place is held
                    self.result_of(gateway.post(body))
                gateway.stop()


if __name__ == "__main__":
    harness.main()
