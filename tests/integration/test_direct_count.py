"""POST /v1/messages/count_tokens: a provider's number passes as it is, an estimate says that it is one, and what becomes of a
count is nothing to any other request.

ctest: timeout=120
"""
import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import redis_server
from told_provider import Provider

PATH = "/v1/messages/count_tokens"
COUNTED = b'{ "input_tokens": 12345678901234567890, "novel":[1.50] }\n'
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "stop_reason": "end_turn",
           "content": [{"type": "text", "text": "Hi"}], "usage": {"input_tokens": 7, "output_tokens": 3}}


def body_of(model="claude-test", text="hi", more=""):
    return ('{ "novel":1.50,"model" :"%s","messages":[{"role":"user","content":"%s"}]%s}' % (model, text, more)).encode()


def message_of(model="claude-test"):
    return json.dumps({"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}).encode()


def error_of(kind, message):
    return {"type": "error", "error": {"type": kind, "message": message}}


class CountTokens(harness.Case):
    def setUp(self):
        self.provider = Provider()
        self.addCleanup(self.provider.stop)

    def start(self, limits=None, **changes):
        settings = harness.config(self.provider, **changes)
        settings["plans"]["standard"]["limits"].update(limits or {})
        return self.gateway(settings)

    def count(self, gateway, body=None, **options):
        return gateway.post(body_of() if body is None else body, path=PATH, **options)

    def assert_estimated(self, answer, body=None):
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.headers["sluice-estimated"], "1")
        self.assertEqual(answer.json(), {"input_tokens": len(body_of() if body is None else body) // 4})
        self.assertEqual(answer.headers["content-type"], "application/json")

    def assert_refused(self, answer, status, kind):
        self.assertEqual((answer.status, answer.json()["type"], answer.json()["error"]["type"]), (status, "error", kind), answer)
        self.assertEqual(answer.headers["request-id"], answer.headers["x-request-id"])

    def test_bytes_pass_both_ways_and_nothing_is_charged(self):
        model = harness.model("big", "anthropic", name="claude-real", profile={"body": '{"speed": "fast"}'})
        gateway = self.start({"usd_per_day": 0, "tokens_per_minute": 1}, models=[model, harness.model("claude-test", "anthropic")])
        self.provider.says(COUNTED)
        answer = self.count(gateway, body_of("big"), headers={"anthropic-beta": "b-1", "anthropic-version": "2023-06-01"})
        self.assertEqual((answer.status, answer.body), (200, COUNTED))
        path, headers, sent = self.provider.seen[0]
        self.assertEqual((path, sent), (PATH, body_of("claude-real")))
        self.assertEqual((headers["anthropic-beta"], headers["anthropic-version"]), ("b-1", "2023-06-01"))
        self.assertEqual(headers["x-api-key"], harness.PROVIDER_KEY)
        self.assertEqual(answer.headers["request-id"], answer.headers["x-request-id"])
        self.assertEqual((answer.headers["sluice-model"], answer.headers["sluice-provider-request-id"]), ("big", "req_up"))
        self.assertNotIn("sluice-estimated", answer.headers)
        self.assertNotIn("sluice-usd", answer.headers)
        line = gateway.log(answer.headers["request-id"])
        self.assertEqual((line["front"], line["method"], line["status"], line["model"]), ("messages", "count_tokens", 200, "big"))
        self.assertFalse({"usd", "input_tokens", "estimated_tokens", "error"} & line.keys(), line)
        metrics = gateway.metrics_after(1)
        self.assertEqual((metrics.sum("sluice_usd_total"), metrics.sum("sluice_tokens_total")), (0, 0))
        self.provider.says(COUNTED)  # more than any model's window
        body = body_of(text="x" * 1000000)
        answer = self.count(gateway, body, headers={"x-api-key": harness.KEY}, key=None, http2=True)
        self.assertEqual((answer.body, self.provider.seen[-1][2]), (COUNTED, body))

    def test_the_policys_system_prompt_is_counted(self):
        settings = harness.config(self.provider)
        settings["plans"]["standard"]["policy"] = {"system": {"prefix": "Be brief."}}
        gateway = self.gateway(settings)
        self.provider.says(COUNTED)
        answer = self.count(gateway)
        self.assertEqual(json.loads(self.provider.seen[0][2])["system"], "Be brief.")
        self.assertEqual(answer.headers["sluice-adjustments"], "system_prompt_prefixed")

    def test_what_a_plan_grants_can_be_counted_and_is_free(self):
        model = harness.model("claude-test", "anthropic")
        model["price"]["server_tool"] = 0.01
        settings = harness.config(self.provider, models=[model])
        settings["plans"]["standard"]["direct"] = {"server_tools": ["web_search"], "tool_rounds": 1}
        gateway = self.gateway(settings)
        self.provider.says(COUNTED)
        turns = [{"role": "user", "content": "hi"}]
        for i in range(3):  # more rounds than an answer may have
            turns += [{"role": "assistant", "content": [{"type": "tool_use", "id": "t%d" % i, "name": "f", "input": {}}]},
                      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t%d" % i, "content": "x"}]}]
        tools = [{"name": "f", "input_schema": {"type": "object"}},
                 {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}]
        body = json.dumps({"model": "claude-test", "messages": turns, "tools": tools}).encode()
        answer = self.count(gateway, body, headers={"Idempotency-Key": "k-1"})
        self.assertEqual((answer.status, answer.body), (200, COUNTED), answer)
        self.assertEqual(self.provider.seen[0][2], body)
        self.assertNotIn("usd", gateway.log(answer.headers["request-id"]))
        self.assertEqual(gateway.metrics_after(1).sum("sluice_usd_total"), 0)

    def test_a_host_that_counts_nothing_is_left_alone_for_a_while(self):
        hosts = {"s%d" % status: Provider() for status in (404, 405, 501)}
        for host in hosts.values():
            self.addCleanup(host.stop)
        gateway = self.start(providers={name: harness.provider(host, "anthropic") for name, host in hosts.items()},
                             models=[harness.model("claude-test", "s404")] + [harness.model("of-" + name, name) for name in hosts])
        for name, host in hosts.items():
            with self.subTest(name):
                host.says(error_of("not_found_error", "Not Found"), status=int(name[1:]))
                for _ in range(3):
                    self.assert_estimated(self.count(gateway, body_of("of-" + name)), body_of("of-" + name))
                self.assertEqual(len(host.seen), 1)
                host.says(MESSAGE)
                self.assertEqual(gateway.post(message_of("of-" + name), path="/v1/messages").status, 200)

    def test_what_cannot_be_counted_is_estimated(self):
        other = Provider()
        self.addCleanup(other.stop)
        gone = harness.provider(self.provider, "anthropic", endpoints=[{"url": "http://127.0.0.1:1"}])
        two = harness.provider(self.provider, "anthropic", endpoints=[{"url": self.provider.url}, {"url": other.url}])
        models = [harness.model("claude-test", "anthropic"), harness.model("never", "anthropic", profile={"count_tokens": False, "image": True}),
                  harness.model("far", "gone")]
        gateway = self.start(providers={"anthropic": two, "gone": gone}, models=models, retries={"floor": 1000})
        self.assert_estimated(self.count(gateway, body_of("never")), body_of("never"))
        self.assert_estimated(self.count(gateway, body_of("far")), body_of("far"))
        self.assertEqual(self.provider.seen + other.seen, [])
        failures = [(200, b'{"input_tokens":0}'), (200, b"<html>"), (200, b"{}"), (529, error_of("overloaded_error", "x")),
                    (500, b""), (401, error_of("authentication_error", "x")), (429, error_of("rate_limit_error", "x")),
                    (404, error_of("not_found_error", "model: claude-test"))]
        for status, said in failures:
            with self.subTest("%d %s" % (status, said)):
                for provider in (self.provider, other):
                    provider.forget()
                    provider.says(said, status=status)
                answer = self.count(gateway)
                self.assert_estimated(answer)
                line = gateway.log(answer.headers["request-id"])
                self.assertNotIn("error", line)
                tries = 1 if status == 404 else 2  # of the model: no other endpoint will do
                self.assertEqual((line["attempts"], len(self.provider.seen + other.seen)), (tries, tries))
        for _ in range(8):  # whoever is asked first
            for provider, said in ((self.provider, (500, b"")), (other, (200, COUNTED))):
                provider.forget()
                provider.says(said[1], status=said[0])
            answer = self.count(gateway)
            self.assertEqual((answer.status, answer.body), (200, COUNTED))
        image = '{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}' % ("A" * 100000)
        body = body_of("never").replace(b'"hi"', b"[%s]" % image.encode())
        self.assertEqual(self.count(gateway, body).json()["input_tokens"], 1600 + (len(body) - 100000) // 4)

    def test_failures_of_counts_are_nothing_to_messages(self):
        gateway = self.start(retries={"attempts": 1})
        for i in range(30):  # far more than open a circuit
            self.provider.says(error_of("rate_limit_error", "x"), status=429 if i % 2 else 500, fields={"retry-after": "60"})
            self.assert_estimated(self.count(gateway))
        self.provider.says(MESSAGE)
        self.assertEqual(gateway.post(message_of(), path="/v1/messages").status, 200)
        answer = self.count(gateway, body_of("gpt-test"))  # of a format that has no counts
        self.assert_estimated(answer, body_of("gpt-test"))
        self.assertEqual((answer.headers["sluice-model"], len(self.provider.seen)), ("gpt-test", 31))
        metrics = gateway.metrics()
        self.assertEqual(metrics.sum("sluice_breaker_state"), 0)
        self.assertEqual(metrics.sum("sluice_key_cooldown_seconds"), 0)

    def test_a_refused_request_gets_the_providers_words(self):
        gateway = self.start()
        for status, kind in ((400, "invalid_request_error"), (413, "request_too_large"), (422, "invalid_request_error")):
            self.provider.says(error_of(kind, "messages.0: no; org-0123456789abcdef"), status=status)
            answer = self.count(gateway)
            self.assert_refused(answer, status, kind)
            self.assertIn("messages.0: no", answer.json()["error"]["message"])
            self.assertNotIn("org-0123456789abcdef", answer.body.decode())
        self.assertEqual(len(self.provider.seen), 3)

    def test_who_must_not_ask_is_refused_as_for_messages(self):
        models = [harness.model(name, "anthropic") for name in ("claude-test", "secret")]
        settings = harness.config(self.provider, models=models)
        settings["plans"]["standard"]["models"]["deny"] = ["secret"]
        gateway = self.gateway(settings)
        tool = ',"tools":[{"type":"web_search_20250305","name":"web_search"}]'
        rows = [(body_of("secret"), 404, "not_found_error"), (body_of("nobody"), 404, "not_found_error"),
                (body_of(more=tool), 403, "permission_error"), (body_of(more=',"Model":"x"'), 400, "invalid_request_error"),
                (body_of(more=',"model":"x"'), 400, "invalid_request_error"), (b"{}", 400, "invalid_request_error"),
                (body_of(more=',"thread":{"type":"create"}'), 400, "invalid_request_error")]
        for body, status, kind in rows:
            with self.subTest(body):
                self.assert_refused(self.count(gateway, body), status, kind)
        self.assert_refused(self.count(gateway, key="sk-wrong"), 401, "authentication_error")
        self.assertEqual(harness.request("GET", gateway.url + PATH).status, 405)
        self.assertEqual(self.provider.seen, [])

    def test_counts_have_a_rate_and_a_place(self):
        gateway = self.start({"count_tokens_per_minute": 2, "concurrent": 1})
        for left in ("1", "0"):
            self.provider.says(COUNTED)
            answer = self.count(gateway)
            self.assertEqual((answer.status, answer.headers["anthropic-ratelimit-requests-limit"]), (200, "2"))
            self.assertEqual(answer.headers["anthropic-ratelimit-requests-remaining"], left)
        answer = self.count(gateway)
        self.assert_refused(answer, 429, "rate_limit_error")
        self.assertTrue(20 < int(answer.headers["retry-after"]) <= 30, answer.headers)
        metrics = gateway.metrics_after(3)
        self.assertEqual(metrics.sum("sluice_limit_decisions_total", limit="count_tokens_per_minute", decision="refused"), 1)
        self.provider.says(MESSAGE)
        self.assertEqual(gateway.post(message_of(), path="/v1/messages").status, 200)
        gateway.stop()

        gateway = self.start({"requests_per_minute": 1, "requests_burst": 1, "concurrent": 1})
        self.provider.forget()
        go = threading.Event()
        self.provider.answers.append((200, "application/json", [go, json.dumps(MESSAGE).encode()], True))
        waits = threading.Thread(target=gateway.post, args=(message_of(),), kwargs={"path": "/v1/messages"})
        waits.start()
        harness.wait_for(lambda: self.provider.seen and self.provider.seen[-1][0] == "/v1/messages", "a message in flight")
        self.assert_refused(self.count(gateway), 429, "rate_limit_error")
        go.set()
        waits.join()
        for _ in range(10):  # ten times as many as messages
            self.provider.says(COUNTED)
            answer = self.count(gateway)
            self.assertEqual((answer.status, answer.body), (200, COUNTED))
        self.assert_refused(self.count(gateway), 429, "rate_limit_error")

    def test_two_gateways_share_the_rate_and_messages_have_theirs(self):
        store = {"kind": "redis", "url": redis_server.Redis(self).url}
        self.provider.otherwise = lambda path, headers, body: (
            200, "application/json", [COUNTED if path == PATH else json.dumps(MESSAGE).encode()], True)
        limits = {"count_tokens_per_minute": 4, "requests_per_minute": 6, "requests_burst": 6}
        gateways = [self.start(limits, store=store) for _ in range(2)]
        got = []
        for i in range(7):  # by turns, so that the tenant's state in Redis has both figures
            message = gateways[i % 2].post(message_of(), path="/v1/messages")
            got.append((self.count(gateways[i % 2]).status, message.status))
        self.assertEqual(got, [(200, 200)] * 4 + [(429, 200)] * 2 + [(429, 429)])

    def test_the_simulated_provider_counts(self):
        sim = self.sim()
        gateway = self.gateway(harness.config(sim))
        answer = self.count(gateway, body_of(more=',"tools":[{"name":"t","input_schema":{"type":"object"}}]'))
        self.assertEqual(answer.json(), {"input_tokens": sim.last()["body"] and len(sim.last_body()) // 4}, answer)
        self.assertEqual(sim.last()["path"], PATH)


if __name__ == "__main__":
    harness.main()
