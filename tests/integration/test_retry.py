"""A failed attempt is made again where it may do better: through the real binaries.

ctest: timeout=180
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness

TRANSIENT = ("error-500", "error-529", "error-503", "close", "reset", "cut", "cuthead", "html", "badjson", "empty",
             "garbage")


def hint(model):
    return {"hints": [{"name": model}]}


def settings(sim, endpoints=None, keys=None, **changes):
    """One model of anthropic, and gpt-test of the other provider, which only test of candidates may use."""
    result = harness.config(sim, **changes)
    anthropic = result["providers"]["anthropic"]
    if endpoints:
        anthropic["endpoints"] = [{"url": endpoint.url} for endpoint in endpoints]
    if keys:
        anthropic["keys"] = keys
    result["plans"]["standard"]["models"]["allow"] = ["claude-*"]
    return result


class Retry(harness.Case):
    def attempts(self, gateway, answer):
        """Of the log line of that answer: number, classes of all but a single one."""
        line = gateway.log(answer.headers["sluice-request-id"])
        classes = line.get("attempt_classes", [line.get("error", "ok")])
        self.assertEqual(len(classes), line["attempts"], line)
        return classes

    def test_one_failure_is_not_told_to_the_caller(self):
        for fault in TRANSIENT:
            with self.subTest(fault):
                sim = self.sim()
                gateway = self.gateway(settings(sim))
                sim.default(fault + "-first-1")
                answer = gateway.sample()
                result = self.assert_result(answer, "endTurn")
                self.assertEqual(result["_meta"]["sluice/route"]["attempts"], 2)
                self.assertEqual(self.attempts(gateway, answer)[1], "ok")
                self.assertEqual(sim.stats()["requests"], 2)

    def test_the_other_endpoint_answers_at_once(self):
        bad, good = self.sim("--default", "error-500"), self.sim()
        gateway = self.gateway(settings(bad, endpoints=[bad, good]))
        retried = []
        for _ in range(12):
            answer = gateway.sample()
            if self.assert_result(answer)["_meta"]["sluice/route"]["attempts"] > 1:
                retried.append(answer.elapsed_s)
        self.assert_nobody_waited(retried)
        self.assertEqual(good.stats()["requests"], 12)
        self.assertGreaterEqual(bad.stats()["requests"], 1)

    def test_a_host_that_is_gone_costs_nobody_anything(self):
        good = self.sim()
        config = settings(good, endpoints=[good])
        config["providers"]["anthropic"]["endpoints"].append({"url": f"http://127.0.0.1:{harness.free_port()}"})
        gateway = self.gateway(config)
        for _ in range(12):
            self.assert_result(gateway.sample())
        self.assertEqual(good.stats()["requests"], 12, "one each: what was never sent is not doubled")

    def assert_nobody_waited(self, retried):
        """Of several requests one at least was quick, however busy the machine: a wait is 375 ms at least."""
        self.assertGreater(len(retried), 1)
        self.assertLess(min(retried), 0.35, retried)

    def test_the_other_key_is_taken(self):
        sim = self.sim()
        for fault in ("error-429-retry-30", "error-401"):
            with self.subTest(fault):
                retried = []
                for _ in range(3):  # each time both keys are well
                    gateway = self.gateway(settings(sim, keys=["sk-one-0123456789", "sk-two-0123456789"]))
                    sim.reset()
                    sim.default(fault + "-first-1")
                    answer = gateway.sample()
                    self.assert_result(answer)
                    retried.append(answer.elapsed_s)
                    self.assertEqual(sim.stats()["requests"], 2)
                self.assert_nobody_waited(retried)

    def test_the_next_candidate_is_asked(self):
        bad, good = self.sim("--default", "error-529"), self.sim()
        config = settings(bad)
        config["providers"]["openai"] = harness.provider(good, "openai")
        config["plans"]["standard"]["models"]["allow"] = ["*"]
        gateway = self.gateway(config)
        answer = gateway.sample(modelPreferences=hint("claude"))
        route = self.assert_result(answer)["_meta"]["sluice/route"]
        self.assertEqual(route, {"model": "gpt-test", "provider": "openai", "attempts": 2})
        self.assertEqual(self.attempts(gateway, answer), ["provider_unavailable", "ok"])
        metrics = gateway.metrics()
        self.assertEqual(metrics.sum("sluice_provider_attempts_total", provider="anthropic",
                                     **{"class": "provider_unavailable"}), 1)
        self.assertEqual(metrics.sum("sluice_provider_attempts_total", provider="openai", **{"class": "ok"}), 1)

    def test_retry_after_is_waited_out(self):
        sim = self.sim()
        gateway = self.gateway(settings(sim))
        sim.default("error-429-retryms-1200-first-1")
        answer = gateway.sample()
        self.assert_result(answer)
        self.assertGreaterEqual(answer.elapsed_s, 1.0)

    def test_what_does_not_fit_the_deadline_is_told(self):
        sim = self.sim("--default", "error-429-retry-40")
        gateway = self.gateway(settings(sim))
        answer = gateway.sample(headers={"Sluice-Timeout": "5000"})
        error = self.assert_error(answer, 503, -32010, "provider_rate_limited")
        self.assertEqual(error["data"]["retryAfterMs"], 40000)
        self.assertEqual(error["data"]["attempts"], 1)
        self.assertLess(answer.elapsed_s, 3)

    def test_the_deadline_covers_all_attempts(self):
        sim = self.sim("--default", "latency-700ms-error-500")
        gateway = self.gateway(settings(sim))
        answer = gateway.sample(headers={"Sluice-Timeout": "3000"})
        self.assert_error(answer, 502, -32011, "provider_unavailable")
        self.assertLess(answer.elapsed_s, 5, "four attempts and their waits take 6 s")

    def test_every_attempt_is_paid_for_and_nothing_stays_reserved(self):
        sim = self.sim()
        gateway = self.gateway(settings(sim))
        sim.default("cut-first-1-input-1000-output-100")
        self.assert_result(gateway.sample())
        state = gateway.get("/tenants/acme").json()
        self.assertEqual(gateway.metrics().sum("sluice_settled_without_usage_total"), 1)
        spent = gateway.metrics().sum("sluice_usd_total", tenant="acme")
        self.assertGreater(spent, (1000 * 3 + 100 * 15) / 1e6, "the answer, and the one that was cut in full")
        self.assertIn("acme", str(state))
        sim.default("")
        self.assert_result(gateway.sample())

    def test_a_caller_that_leaves_during_the_wait_ends_it(self):
        sim = self.sim("--default", "error-429-retry-20")
        gateway = self.gateway(settings(sim))
        with self.assertRaises((TimeoutError, OSError)):
            gateway.sample(timeout_s=1)
        harness.wait_for(lambda: any('"status":499' in line.replace(" ", "") for line in gateway.stdout), "499")
        self.assertEqual(gateway.metrics().sum("sluice_in_flight"), 0)
        self.assertEqual(sim.stats()["requests"], 1)

    def test_a_reload_during_the_wait_decides_where_the_next_attempt_goes(self):
        bad, good = self.sim("--default", "error-429-retryms-2000"), self.sim()
        gateway = self.gateway(settings(bad))
        load = harness.Load(gateway, threads=1)
        try:
            harness.wait_for(lambda: bad.stats()["requests"] == 1, "the first attempt")
            changed = dict(gateway.settings)
            changed["providers"] = {"anthropic": harness.provider(good, "anthropic", keys=["sk-new-0123456789"]),
                                    "openai": harness.provider(good, "openai")}
            gateway.write_config(changed)
            self.assertEqual(gateway.reload().status, 200)
            load.wait(1)
        finally:
            load.stop()
        self.assertEqual([r[2] for r in load.snapshot()][0], 200)
        self.assertGreaterEqual(good.stats()["requests"], 1)

    def test_an_outage_is_not_multiplied(self):
        sim = self.sim("--default", "badjson")  # no breaker opens for what a model writes
        gateway = self.gateway(settings(sim))
        load = harness.Load(gateway, threads=4)
        try:
            harness.wait_for(lambda: len(load.snapshot()) >= 400, "400 requests")
        finally:
            requests = len(load.stop())
        asked = sim.stats()["requests"]
        # Retries are a share of the requests, beside the floor of a few in ten seconds.
        self.assertLessEqual(asked, requests * 1.2 + 10, (asked, requests))
        self.assertGreater(asked, requests, "some were tried again")


if __name__ == "__main__":
    harness.main()
