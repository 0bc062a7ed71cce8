"""One tenant's requests never cool a key for another tenant: through the real binary.

ctest: timeout=120
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import hosts

OTHER = "sk-test-other-0123456789"
KEYS = ["sk-provider-one-0123456789", "sk-provider-two-0123456789"]


class Moderated(hosts.Host):
    """A host that takes any key, and notes which."""
    key = None
    errors = {
        "xai": (403, {"code": "permission-denied", "error": "Content violates usage guidelines. "}, {}),
        "openrouter": (403, {"error": {
            "message": "Your input was flagged", "code": 403,
            "metadata": {"reasons": ["violence"], "flagged_input": "Your API key is not valid"}}}, {}),
        "dashscope": (400, {"code": "DataInspectionFailed", "message": "Input data may contain inappropriate content."}, {}),
        "forbidden": (403, "<html><title>403 Forbidden</title></html>", {}),
        "quoted": (403, {"error": {"message": "The tool 'API key not valid, your credit balance' is not allowed"}}, {}),
        "endpoints": (404, {"error": {"message": "No endpoints found that support tool use.", "code": 404}}, {}),
        "key": (403, {"error": {"message": "Your API key does not have permission for this"}}, {}),
        "limited": (429, {"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}},
                    {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s",
                     "x-ratelimit-remaining-tokens": "9999", "x-ratelimit-reset-tokens": "1s"}),
    }

    def __init__(self):
        super().__init__()
        self.keys = []

    def check_head(self, handler):
        super().check_head(handler)
        self.keys.append(handler.headers["authorization"].removeprefix("Bearer "))


class Blame(harness.Case):
    def setUp(self):
        super().setUp()
        self.host, self.second = Moderated(), Moderated()
        for host in (self.host, self.second):
            self.addCleanup(host.close)

    def start(self, models):
        """Two keys at the host; the second host is another provider's."""
        chosen = [harness.model("first", "host", intelligence=0.9), harness.model("small", "host", intelligence=0.1),
                  harness.model("second", "other", intelligence=0.5)]
        return self.gateway(harness.config(
            self.host,
            providers={"host": harness.provider(self.host, "openai", keys=KEYS),
                       "other": harness.provider(self.second, "openai")},
            models=[model for model in chosen if model["id"] in models],
            plans={"standard": {"models": {"allow": ["*"], "default": "first"}}},
            tenants=[harness.tenant("acme", harness.KEY), harness.tenant("other", OTHER)]))

    def ask(self, gateway, text, key=harness.KEY):
        return gateway.sample(text, key=key, modelPreferences={"hints": [{"name": "first"}]})

    def cooling(self, gateway):
        return gateway.metrics().sum("sluice_key_cooldown_seconds", provider="host")

    def assert_both_keys_serve(self, gateway):
        before = len(self.host.keys)
        for _ in range(2):
            self.assert_result(self.ask(gateway, "say:hello", OTHER), "endTurn")
        self.assertEqual(set(self.host.keys[before:]), set(KEYS))

    def test_a_flagged_prompt_is_a_refusal_that_costs_nobody_a_key(self):
        for name in ("xai", "openrouter", "dashscope"):
            with self.subTest(name):
                gateway = self.start({"first", "second"})
                before = len(self.host.requests), len(self.second.requests)
                for _ in range(3):
                    result = self.assert_result(self.ask(gateway, "fail:" + name), "refusal")
                    self.assertEqual(result["_meta"]["sluice/route"]["attempts"], 1)
                self.assertEqual((len(self.host.requests), len(self.second.requests)), (before[0] + 3, before[1]))
                self.assertEqual(self.cooling(gateway), 0)
                self.assert_both_keys_serve(gateway)

    def test_whatever_else_is_forbidden_costs_nobody_a_key_either(self):
        for name in ("forbidden", "quoted", "endpoints"):
            with self.subTest(name):
                gateway = self.start({"first"})
                for _ in range(3):
                    error = self.assert_error(self.ask(gateway, "fail:" + name), 422, -32013, "provider_rejected")
                    self.assertEqual(error["data"]["attempts"], 1)
                self.assertEqual(self.cooling(gateway), 0)
                self.assert_both_keys_serve(gateway)

    def test_a_key_without_permission_is_left_alone(self):
        gateway = self.start({"first"})
        error = self.assert_error(self.ask(gateway, "fail:key"), 502, -32012, "provider_configuration")
        self.assertEqual(error["data"]["attempts"], 2)
        self.assertEqual(set(self.host.keys), set(KEYS))
        harness.wait_for(lambda: self.cooling(gateway) > 0, "the keys cool")

    def test_a_limit_whose_headers_alone_tell_its_end_is_one_models(self):
        gateway = self.start({"first", "small"})
        answer = self.ask(gateway, "fail:limited")
        error = self.assert_error(answer, 503, -32010, "provider_rate_limited")
        self.assertEqual(error["data"]["retryAfterMs"], 360000)
        self.assertEqual(answer.headers["retry-after"], "360")
        self.assertEqual(error["data"]["attempts"], len(self.host.requests))
        self.assertEqual({(body["model"], key) for body, key in zip(self.host.requests, self.host.keys)},
                         {(model, key) for model in ("first", "small") for key in KEYS})


if __name__ == "__main__":
    harness.main()
