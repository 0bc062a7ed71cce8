"""Idempotency-Key in the providers' own APIs, by the real binary: a JSON answer is bought once, and copies get it byte for byte;
streams pass without copies. ctest: timeout=120"""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import redis_server

PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions"}
MODELS = {"messages": "claude-test", "chat": "gpt-test"}
SHARED = ("sluice-model", "sluice-adjustments", "sluice-provider-request-id", "content-type")


class OnceCase(harness.Case):
    def settings(self, *sim, **changes):
        self.provider = self.sim(*sim)
        settings = harness.config(self.provider, **{"retries": {"attempts": 1}, "workers": 2, "drain": "100ms", **changes})
        settings["plans"]["standard"]["on_store_failure"] = {"rates": "local", "budget": {"local": 100}}
        return settings

    def start(self, *sim, **changes):
        return self.gateway(self.settings(*sim, **changes))

    def once(self, gateway, api, key="k", text="hello", headers=None, http2=False, **members):
        body = {"model": MODELS[api], "max_tokens": 99, "messages": [{"role": "user", "content": text}], **members}
        return gateway.post(body, path=PATHS[api], headers={"Idempotency-Key": key, **(headers or {})}, http2=http2)

    def asked(self):
        return self.provider.stats()["requests"]

    def assert_copy(self, copy, first):
        self.assertEqual((copy.status, copy.body), (first.status, first.body))
        self.assertEqual([copy.headers.get(name) for name in SHARED], [first.headers.get(name) for name in SHARED])
        self.assertEqual(float(copy.headers["sluice-usd"]), 0)
        self.assertEqual(copy.headers["request-id"], copy.headers["x-request-id"])
        self.assertNotEqual(copy.headers["request-id"], first.headers["request-id"])

    def assert_refused(self, api, answer, status, words):
        self.assertEqual(answer.status, status, answer)
        error = answer.json()["error"]
        self.assertEqual(error["type"], "invalid_request_error")
        self.assertIn(words, error["message"])
        self.assertEqual(answer.headers["x-should-retry"], "false")
        if api == "messages":
            self.assertEqual(answer.json()["request_id"], answer.headers["request-id"])


class OneProcess(OnceCase):
    def test_a_copy_is_the_first_answer_byte_for_byte_and_costs_nothing(self):
        gateway = self.start()
        for number, api in enumerate(PATHS):
            with self.subTest(api):
                first = self.once(gateway, api, max_tokens=999999)
                self.assertEqual(first.status, 200, first)
                self.assertEqual(first.headers["sluice-adjustments"], "max_tokens_clamped")
                spent = gateway.metrics_after(2 * number + 1).sum("sluice_usd_total")
                self.assertGreater(spent, 0)
                copy = self.once(gateway, api, max_tokens=999999, http2=True)
                self.assert_copy(copy, first)
                line = gateway.log(copy.headers["request-id"])
                self.assertEqual((line["front"], line["status"], line.get("usd", 0)), (api, 200, 0), line)
                self.assertEqual(gateway.metrics_after(2 * number + 2).sum("sluice_usd_total"), spent)
        self.assertEqual(self.asked(), 2)
        self.assertEqual(gateway.metrics().sum("sluice_once_requests_total", result="answered"), 2)

    def test_another_request_under_the_key_is_a_conflict(self):
        gateway = self.start()
        for api in PATHS:
            self.assertEqual(self.once(gateway, api).status, 200)
            self.assert_refused(api, self.once(gateway, api, text="other"), 409, "Idempotency-Key")
            self.assertEqual(self.once(gateway, api, key="l", text="other").status, 200)
        beta = self.once(gateway, "messages", headers={"anthropic-beta": "new-2026-01-01"})
        self.assert_refused("messages", beta, 409, "Idempotency-Key")
        self.assertEqual(self.once(gateway, "chat", "auto", headers={"Sluice-Preferences": "cost=1"}, model="auto").status, 200)
        other = self.once(gateway, "chat", "auto", headers={"Sluice-Preferences": "speed=1"}, model="auto")
        self.assert_refused("chat", other, 409, "Idempotency-Key")
        self.assertEqual(self.asked(), 5)

    def test_a_key_is_its_fronts(self):
        gateway = self.start()
        for api in PATHS:
            self.assertEqual(self.once(gateway, api).status, 200)
            for key in ("%s:k" % api, "k"):
                self.assertEqual(gateway.sample("another", {"Idempotency-Key": key}).status, 200)
        self.assertEqual(self.asked(), 5)

    def test_many_at_once_are_one_call_and_one_charge(self):
        gateway = self.start("--latency", "400ms")
        for api in PATHS:
            calls = [self.background(lambda: self.once(gateway, api)) for _ in range(20)]
            for _, thread in calls:
                thread.join()
            answers = [answer for answers, _ in calls for answer in answers]
            self.assertEqual(len({answer.body for answer in answers}), 1)
            self.assertEqual({answer.status for answer in answers}, {200})
            self.assertEqual(sum(float(answer.headers["sluice-usd"]) > 0 for answer in answers), 1)
        self.assertEqual(self.asked(), 2)

    def test_a_failure_is_everybodys_and_then_forgotten(self):
        gateway = self.start("--default", "error-529-retry-7-first-1-latency-400ms")
        for api in PATHS:
            self.provider.reset()
            calls = [self.background(lambda: self.once(gateway, api)) for _ in range(6)]
            for _, thread in calls:
                thread.join()
            for answers, _ in calls:
                answer = answers[0]
                self.assertEqual(answer.status, 529 if api == "messages" else 503, answer)
                self.assertEqual(answer.headers["retry-after"], "7")
                self.assertNotIn("sluice-usd", answer.headers)
                if api == "messages":
                    self.assertEqual(answer.json()["request_id"], answer.headers["request-id"])
            self.assertEqual(self.asked(), 1)

    def test_after_an_error_it_is_tried_anew(self):
        gateway = self.start()
        for api in PATHS:
            self.provider.default("error-400")
            self.assertEqual(self.once(gateway, api).status, 400)
            self.provider.default("")
            self.assertEqual(self.once(gateway, api).status, 200)
        self.assertEqual(self.asked(), 4)

    def test_streams_pass_without_copies(self):
        gateway = self.start()
        for api in PATHS:
            for _ in range(2):
                answer = self.once(gateway, api, stream=True)
                self.assertEqual((answer.status, answer.headers["content-type"]), (200, "text/event-stream"), answer)
            self.assertEqual(self.once(gateway, api, stream=False).status, 200)
        self.assertEqual(self.asked(), 6)

    def test_what_is_too_long_is_not_kept(self):
        gateway = self.start("--size", "70000")
        for api in PATHS:
            self.assertEqual(self.once(gateway, api, max_tokens=4000).status, 200)
            self.assert_refused(api, self.once(gateway, api, max_tokens=4000), 409, "not kept")
        self.assertEqual(self.asked(), 2)

    def test_a_key_has_to_look_like_one(self):
        gateway = self.start()
        for api in PATHS:
            for key in ("x" * 129, "two words", ""):
                self.assert_refused(api, self.once(gateway, api, key), 400, "Idempotency-Key must be 1 to 128")
            self.assertEqual(self.once(gateway, api, "x" * 128).status, 200)
        self.assertEqual(self.asked(), 2)


@unittest.skipUnless(redis_server.available(), "redis-server is not installed")
class SeveralGateways(OnceCase):
    def pair(self, *sim):
        self.redis = redis_server.Redis(self)
        settings = self.settings(*sim, store={"kind": "redis", "url": self.redis.url, "deadline": "2s"})
        pair = [self.gateway(settings) for _ in range(2)]
        for gateway in pair:
            harness.wait_for(lambda: gateway.metrics().sum("sluice_limiter_mode", mode="shared"), "Redis in use")
        return pair

    def later(self, gateway, api):
        """When the end of the first, which is written to Redis behind its answer, has come there."""
        def ended():
            answer = self.once(gateway, api)
            return answer if b"under way" not in answer.body else None
        return harness.wait_for(ended, "the end of the first in Redis")

    def test_the_answer_is_known_elsewhere(self):
        first, second = self.pair()
        for api in PATHS:
            one = self.once(first, api)
            self.assertEqual(one.status, 200, one)
            self.assert_copy(self.later(second, api), one)
            self.assert_refused(api, self.once(second, api, text="other"), 409, "Idempotency-Key")
        self.assertEqual(self.asked(), 2)

    def test_what_is_in_flight_elsewhere_is_not_waited_for(self):
        first, second = self.pair("--latency", "1s")
        answers, thread = self.background(lambda: self.once(first, "chat"))
        self.provider.wait_stats(lambda s: s["requests"] == 1, "the first at the provider")
        self.assert_refused("chat", self.once(second, "chat"), 409, "under way at another gateway")
        thread.join()
        self.assert_copy(self.later(second, "chat"), answers[0])
        self.assertEqual(self.asked(), 1)

    def test_of_what_another_one_has_written_only_as_much_is_believed_as_could_be_ours(self):
        first, second = self.pair()
        self.assertEqual(self.once(first, "chat").status, 200)
        name = harness.wait_for(lambda: self.redis.ask("KEYS", "sluice:once:1:*"), "the record")[0]
        record = harness.wait_for(lambda: (lambda r: r if r.startswith("D") else None)(self.redis.ask("GET", name)), "its end")
        text = record[record.index('"result":'):]
        rest = text[text.index(',"status":'):]
        for wrong in ('"result":1', '"result":{"bytes":999999,"body":{}' + rest, '"result":{"bytes":2,"body":{} ' + rest,
                      '"result":{"bytes":2,"body":{},"status":99,"head":{}}', '"result":{"bytes":2,"body":{},"status":"200"}',
                      '"result":{"bytes":12345678901234567890,"body":{}' + rest, '"result":{"bytes":,"body":{}' + rest,
                      '"result":{"bytes":2,"body":{}}'):
            with self.subTest(wrong):
                self.redis.ask("SET", name, record[:record.index('"result":')] + wrong)
                self.assert_refused("chat", self.once(second, "chat"), 409, "not kept")
        self.redis.ask("SET", name, record[:record.index('"result":')] +
                       '"result":{"bytes":2,"body":{},"status":200,"head":{"sluice-model":"a\\r\\nset-cookie: b","set-cookie":"c"}}')
        answer = self.once(second, "chat")
        self.assertEqual((answer.status, answer.body), (200, b"{}"))
        self.assertNotIn("set-cookie", answer.headers)
        self.assertNotIn("sluice-model", answer.headers)
        self.assertEqual(self.asked(), 1)


if __name__ == "__main__":
    harness.main()
