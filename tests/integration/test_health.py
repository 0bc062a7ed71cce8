"""Endpoints and keys that fail, seen from outside: who is asked, what the metrics say, what a reload keeps.

Retries are off, so that every answer shows what one attempt met.
"""
import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness

KEY_A, KEY_B = "sk-provider-first", "sk-provider-second"
ODD_KEY = "sk-of-the-second-tenant"
BREAKER = {"failures": 3, "open": "60s", "open_max": "60s", "slow_start": "0s"}


class Health(harness.Case):
    def settings(self, sim, **anthropic):
        settings = harness.config(sim, retries={"attempts": 1})
        settings["providers"]["anthropic"].update(anthropic)
        return settings

    def two_endpoints(self, **breaker):
        """(well, ill, settings): the second one fails."""
        well, ill = self.sim(), self.sim()
        ill.default("error-500")
        return well, ill, self.settings(well, breaker={**BREAKER, **breaker},
                                        endpoints=[{"url": well.url}, {"url": ill.url}])

    def breaker(self, gateway, sim):
        return gateway.metrics().sum("sluice_breaker_state", provider="anthropic", endpoint=sim.url)

    def sample_until(self, gateway, condition, what):
        def once():
            gateway.sample()
            return condition()
        return harness.wait_for(once, what)

    def test_an_endpoint_that_fails_is_left_alone(self):
        well, ill, settings = self.two_endpoints()
        gateway = self.gateway(settings)
        self.sample_until(gateway, lambda: ill.stats()["requests"] == 3, "three failures")
        for _ in range(20):
            self.assert_result(gateway.sample())
        self.assertEqual(ill.stats()["requests"], 3)
        harness.wait_for(lambda: self.breaker(gateway, ill) == 2, "the metric shows it")
        self.assertEqual(self.breaker(gateway, well), 0)

    def test_it_comes_back_when_a_probe_succeeds(self):
        _, ill, settings = self.two_endpoints(open="50ms", open_max="100ms")
        gateway = self.gateway(settings)
        self.sample_until(gateway, lambda: ill.stats()["requests"] >= 5, "a probe has failed, too")
        ill.default("")
        before = ill.stats()["requests"]
        self.sample_until(gateway, lambda: ill.stats()["requests"] > before + 5, "it has its share again")
        harness.wait_for(lambda: self.breaker(gateway, ill) == 0, "the metric shows it")

    def test_a_reload_forgets_nothing_of_what_stays(self):
        well, ill, settings = self.two_endpoints()
        gateway = self.gateway(settings)
        self.sample_until(gateway, lambda: ill.stats()["requests"] == 3, "three failures")
        settings = {**gateway.settings}
        # At another place, beside a new one.
        settings["providers"]["anthropic"]["endpoints"] = [{"url": ill.url}, {"url": well.url}]
        settings["models"] = [harness.model("new", "openai"), *settings["models"]]
        gateway.write_config(settings)
        self.assertEqual(gateway.reload().status, 200)
        for _ in range(20):
            self.assert_result(gateway.sample())
        self.assertEqual(ill.stats()["requests"], 3)

    def test_when_every_endpoint_is_open_nobody_is_asked(self):
        ill = self.sim()
        ill.default("error-529")
        gateway = self.gateway(self.settings(ill, breaker=BREAKER))
        for _ in range(3):
            self.assert_error(gateway.sample(), 502, -32011)
        hints = {"hints": [{"name": "claude"}]}
        settings = {**gateway.settings}
        settings["models"] = settings["models"][:1]
        gateway.write_config(settings)
        self.assertEqual(gateway.reload().status, 200)
        error = self.assert_error(gateway.sample(modelPreferences=hints), 503, -32011, "provider_not_reached")
        self.assertIs(error["data"]["retryable"], True)
        self.assertEqual(ill.stats()["requests"], 3)

    def two_tenants(self, **breaker):
        """(sim, gateway): what the second tenant asks for makes the endpoint answer 500."""
        sim = self.sim()
        settings = self.settings(sim, breaker={**BREAKER, **breaker})
        settings["models"][1:] = [harness.model("sim-error-500", "anthropic")]
        settings["tenants"].append(harness.tenant("odd", ODD_KEY, models={"allow": ["sim-*"], "default": "sim-error-500"}))
        return sim, self.gateway(settings)

    def test_failures_that_one_tenant_is_answered_keep_that_one_away_alone(self):
        sim, gateway = self.two_tenants()
        for _ in range(5):
            for _ in range(3):
                self.assert_error(gateway.sample(key=ODD_KEY), 502, -32011)
            before = sim.stats()["requests"]
            for _ in range(2):  # the second one is decided without looking
                error = self.assert_error(gateway.sample(key=ODD_KEY), 503, -32011, "provider_not_reached")
                self.assertEqual(error["data"]["candidates"], [{"model": "sim-error-500", "reason": "unhealthy"}])
            self.assertEqual(sim.stats()["requests"], before)
            self.assert_result(gateway.sample())

    def test_failures_of_two_tenants_keep_everybody_away(self):
        sim, gateway = self.two_tenants()
        sim.default("error-500")
        for _ in range(3):
            self.assert_error(gateway.sample(key=ODD_KEY), 502, -32011)
        self.assert_error(gateway.sample(), 502, -32011)  # it decides
        before = sim.stats()["requests"]
        for key in (harness.KEY, ODD_KEY):
            self.assert_error(gateway.sample(key=key), 503, -32011, "provider_not_reached")
        self.assertEqual(sim.stats()["requests"], before)

    def test_another_model_is_picked_while_a_provider_is_down(self):
        ill, well = self.sim(), self.sim()
        ill.default("error-529")
        settings = self.settings(ill, breaker=BREAKER)
        settings["providers"]["openai"] = harness.provider(well, "openai")
        gateway = self.gateway(settings)
        for _ in range(3):
            self.assert_error(gateway.sample(), 502, -32011)
        result = self.assert_result(gateway.sample(modelPreferences={"hints": [{"name": "claude"}]}))
        self.assertEqual(result["_meta"]["sluice/route"]["model"], "gpt-test")

    def test_a_key_at_its_limit_cools_while_the_other_one_works(self):
        sim = self.sim()
        sim.default("error-429-retry-30-key-first")
        gateway = self.gateway(self.settings(sim, keys=[KEY_A, KEY_B]))
        answers = [gateway.sample() for _ in range(12)]
        self.assertEqual([answer.status for answer in answers].count(200), 11)
        def cools():
            metrics = gateway.metrics()
            return [metrics.sum("sluice_key_cooldown_seconds", provider="anthropic", key=key) for key in "01"]
        first, second = harness.wait_for(lambda: cools()[0] and cools(), "the metric shows it")
        self.assertTrue(0 < first <= 30, first)
        self.assertEqual(second, 0)

    def test_a_key_with_nothing_left_is_spared_before_it_is_refused(self):
        sim = self.sim()
        sim.default("quota-3-window-60s")
        for _ in range(2):  # somebody else uses the first key, too
            body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
            answer = harness.request("POST", sim.url + "/v1/messages", json.dumps(body).encode(),
                                     {"x-api-key": KEY_A, "anthropic-version": "2023-06-01",
                                      "content-type": "application/json"})
            self.assertEqual(answer.status, 200, answer)
        gateway = self.gateway(self.settings(sim, keys=[KEY_A, KEY_B]))
        for _ in range(4):  # one with the first, three with the second
            self.assert_result(gateway.sample())
        self.assert_error(gateway.sample(), 503, -32010, "provider_rate_limited")

    def test_an_endpoint_has_no_more_calls_and_waiting_ones_than_it_may(self):
        sim = self.sim()
        sim.default("latency-2000ms")
        settings = self.settings(sim, endpoints=[{
            "url": sim.url, "concurrent": 1, "queue": 1, "queue_deadline": "200ms"}])
        settings["providers"]["openai"] = harness.provider(self.sim(), "openai")  # shares no connections
        settings["plans"]["standard"]["models"]["allow"] = ["claude-*"]  # nowhere else to go
        settings["providers"]["openai"] = harness.provider(self.sim(), "openai")  # shares no connections
        gateway = self.gateway(settings)
        answers = []
        def ask():
            answers.append(gateway.sample())
        threads = []
        for in_flight in range(2):
            threads.append(threading.Thread(target=ask))
            threads[-1].start()
            harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == in_flight + 1, "it is there")
        self.assert_error(gateway.sample(), 503, reason="overloaded")  # no place, not even to wait
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(answer.status for answer in answers), [200, 503])  # one waited too long
        self.assertEqual(sim.stats()["requests"], 1)

    def test_connections_to_a_shared_endpoint_are_counted_once(self):
        sim = self.sim()  # of both providers
        gateway = self.gateway(self.settings(sim))
        for name in ("claude-test", "gpt-test"):
            self.assert_result(gateway.sample(modelPreferences={"hints": [{"name": name}]}))
        harness.wait_for(lambda: gateway.metrics().sum("sluice_pool_connections") != 0, "gauges are published")
        self.assertEqual(gateway.metrics().sum("sluice_pool_connections", state="idle"), 1)


if __name__ == "__main__":
    harness.main()
