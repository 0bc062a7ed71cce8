"""What each kind of failure is in each direct API: status, type, and when SDKs are to try again.

ctest: timeout=180
"""
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
from direct_case import ANSWER, MODELS, PATHS, DirectCase, body_of

API = {"messages": "anthropic", "chat": "openai"}
DOWN = {"messages": (500, "api_error"), "chat": (503, "server_error")}
OPERATOR = {"messages": (500, "api_error"), "chat": (500, "server_error")}
OVERLOADED = {"messages": (529, "overloaded_error"), "chat": (503, "server_error")}
RATE = {"messages": (429, "rate_limit_error"), "chat": (429, "rate_limit_exceeded")}
BAD = {"messages": (400, "invalid_request_error"), "chat": (400, "invalid_request_error")}
SECRET = ("of org-secret1 in projects/secret2 of proj_secret3, wrkspc_secret4, arn:aws:iam::123456789012:role/secret5, 123456789012, with "
          + harness.PROVIDER_KEY + " at %s")

# what a provider says: status, headers; what its caller gets, and which hints
PROVIDERS = [
    (401, {}, OPERATOR, {"x-should-retry": "false"}),
    (402, {}, OPERATOR, {"x-should-retry": "false"}),
    (403, {}, OPERATOR, {"x-should-retry": "false"}),
    (429, {"retry-after": "30"}, RATE, {"retry-after": "30", "retry-after-ms": "30000"}),
    (429, {"retry-after": "60"}, RATE, {"retry-after": "60", "retry-after-ms": "60000"}),
    (429, {"retry-after": "61"}, RATE, {"retry-after": "61", "x-should-retry": "false"}),
    (429, {"retry-after-ms": "2500", "retry-after": "3"}, RATE, {"retry-after": "3", "retry-after-ms": "2500"}),
    (500, {"x-should-retry": "false"}, DOWN, {}),
    (503, {"retry-after": "7"}, OVERLOADED, {"retry-after": "7", "retry-after-ms": "7000"}),
    (529, {"retry-after": "7"}, OVERLOADED, {"retry-after": "7", "retry-after-ms": "7000"}),
]
HINTS = ("retry-after", "retry-after-ms", "x-should-retry")


def error_body(api, message, kind="some_error"):
    error = {"type": kind, "message": message}
    return {"type": "error", "error": error} if api == "messages" else {"error": {**error, "param": None, "code": None}}


class Errors(DirectCase):
    def each_its_own(self, count, **changes):
        """A gateway with `count` providers of each format, so that no failure is another one's; named m-0, ..., c-0, ..."""
        providers, models = {}, []
        for api, dialect in API.items():
            for n in range(count):
                name = "%s-%d" % (api, n)
                providers[name] = harness.provider(self.provider, dialect)
                models.append(harness.model(name, name))
        settings = harness.config(self.provider, providers=providers, models=models, **changes)
        settings["plans"]["standard"]["models"]["default"] = "messages-0"
        return self.gateway(settings)

    def hints(self, answer):
        return {name: answer.headers[name] for name in HINTS if name in answer.headers}

    def test_what_a_provider_says_becomes_what_the_api_says(self):
        gateway = self.each_its_own(len(PROVIDERS), retries={"attempts": 4})
        host = self.provider.url.split("//")[1]
        for n, (status, headers, wanted, hints) in enumerate(PROVIDERS):
            for api in API:
                with self.subTest("%s %d %s" % (api, status, headers)):
                    self.provider.forget()
                    self.provider.says(error_body(api, SECRET % host), status=status, fields=headers)
                    answer = gateway.post(body_of(api, "%s-%d" % (api, n)), path=PATHS[api])
                    self.assert_refused(api, answer, *wanted[api], "")
                    self.assertNotIn(b"secret", answer.body)
                    self.assertEqual(self.hints(answer), hints)
                    self.assertEqual(len(self.provider.seen), 1, "it is the caller who waits")
                    self.assertEqual(answer.headers["sluice-provider-request-id"], "req_up")

    def test_a_short_wait_is_made_here_and_another_key_needs_none(self):
        settings = harness.config(self.provider, retries={"attempts": 3})
        settings["providers"]["openai"]["keys"] = ["first-key", "second-key"]
        gateway = self.gateway(settings)
        self.provider.says(error_body("messages", "m"), status=429, fields={"retry-after-ms": "50"})
        self.provider.says(ANSWER["messages"])
        answer = gateway.post(body_of("messages", "claude-test"), path=PATHS["messages"])
        self.assertEqual(answer.status, 200, answer)
        self.provider.says(error_body("chat", "m"), status=429, fields={"retry-after": "40"})
        self.provider.says(ANSWER["chat"])
        answer = gateway.post(body_of("chat", "gpt-test"), path=PATHS["chat"])
        self.assertEqual(answer.status, 200, answer)
        keys = {seen[1]["authorization"] for seen in self.provider.seen[-2:]}
        self.assertEqual(keys, {"Bearer first-key", "Bearer second-key"})

    def test_a_key_that_cools_is_told_at_once(self):
        gateway = self.start(retries={"attempts": 3})
        self.provider.says(error_body("messages", "m"), status=429, fields={"retry-after": "6"})
        for _ in range(2):
            answer = gateway.post(body_of("messages", "claude-test"), path=PATHS["messages"])
            self.assert_refused("messages", answer, 429, "rate_limit_error", "")
            self.assertIn(answer.headers["retry-after"], ("5", "6", "7", "8"))
            self.assertLess(answer.elapsed_s, 3)
        self.assertEqual(len(self.provider.seen), 1)

    def test_own_words_of_a_provider_pass_only_in_the_apis_shape(self):
        gateway = self.start()
        for api in API:
            for status in (400, 413, 422):
                said = error_body(api, "messages.0: so not, " + SECRET % self.provider.url.split("//")[1], "invalid_request_error")
                self.provider.says(said, status=status, fields={"x-ratelimit-remaining-tokens": "7777", "x-should-retry": "true"})
                answer = gateway.post(body_of(api, MODELS[api]), path=PATHS[api])
                self.assertEqual(answer.status, status, answer)
                self.assertTrue(answer.json()["error"]["message"].startswith("messages.0: so not, of [redacted] in [redacted] of [redacted], "), answer)
                for word in (b"secret", b"123456789012", harness.PROVIDER_KEY.encode(), b"127.0.0.1"):
                    self.assertNotIn(word, answer.body)
                self.assertNotIn("7777", answer.headers.values())
            for body in (b"<html>secret</html>", b'{"error":"secret"}', b'{"error":{"message":"secret%s"}}' % (b"x" * 70000)):
                self.provider.says(body, status=400)
                answer = gateway.post(body_of(api, MODELS[api]), path=PATHS[api])
                self.assert_refused(api, answer, *BAD[api], "rejected")
                self.assertNotIn(b"secret", answer.body)
            self.provider.says(b"<html>secret</html>", status=413)
            answer = gateway.post(body_of(api, MODELS[api]), path=PATHS[api])
            self.assertEqual(answer.status, 413, answer)

    def test_what_the_gateway_refuses_itself(self):
        settings = harness.config(self.provider, retries={"attempts": 1})
        settings["plans"]["poor"] = {**settings["plans"]["standard"],
                                     "limits": {**settings["plans"]["standard"]["limits"], "usd_per_day": 0.0001}}
        settings["plans"]["small"] = {**settings["plans"]["standard"],
                                      "limits": {**settings["plans"]["standard"]["limits"], "tokens_burst": 10, "tokens_per_minute": 10}}
        for plan in ("poor", "small"):
            settings["tenants"].append({"id": plan, "plan": plan, "keys": [{"sha256": harness.sha256("acme-key-of-the-plan-" + plan), "server": "s"}]})
        settings["limits"] = {"body_bytes": "64KiB"}
        gateway = self.gateway(settings)
        never = {"x-should-retry": "false"}
        rows = [
            ("no key", {"key": None}, 401, "authentication_error", "invalid_request_error", "invalid_api_key", never),
            ("budget", {"key": "acme-key-of-the-plan-poor"}, (402, 429), "billing_error", "insufficient_quota", "insufficient_quota", never),
            ("over burst", {"key": "acme-key-of-the-plan-small"}, 413, "request_too_large", "invalid_request_error", None, never),
            ("no model", {"model": "nobody"}, 404, "not_found_error", "invalid_request_error", "model_not_found", never),
            ("policy", {"more": ',"service_tier":"priority"'}, 403, "permission_error", "invalid_request_error", None, never),
            ("too large", {"more": ',"x":"%s"' % ("y" * 70000)}, 413, "request_too_large", "invalid_request_error", None, never),
            ("no JSON", {"more": ","}, 400, "invalid_request_error", "invalid_request_error", None, never),
            ("method", {"method": "DELETE"}, 405, "invalid_request_error", "invalid_request_error", None, never),
        ]
        for name, how, status, messages, chat, code, hints in rows:
            for api in API:
                with self.subTest("%s %s" % (api, name)):
                    body = body_of(api, how.get("model", MODELS[api]), how.get("more", ""))
                    if "method" in how:
                        answer = harness.request(how["method"], gateway.url + PATHS[api])
                    else:
                        answer = gateway.post(body, path=PATHS[api], key=how.get("key", harness.KEY))
                    ours = status if isinstance(status, int) else status[api == "chat"]
                    self.assert_refused(api, answer, ours, messages if api == "messages" else chat, "")
                    self.assertEqual(self.hints(answer), hints)
                    if api == "chat":
                        self.assertEqual(answer.json()["error"]["code"], code)
        self.assertEqual(self.provider.seen, [])

    def test_who_is_over_its_places_may_come_back(self):
        settings = harness.config(self.provider)
        settings["plans"]["standard"]["limits"]["concurrent"] = 1
        gateway = self.gateway(settings)
        go = threading.Event()
        self.provider.answers.append((200, "application/json", [go, ANSWER["messages"]], True))
        answers, thread = self.background(lambda: gateway.post(body_of("messages", "claude-test"), path=PATHS["messages"]))
        harness.wait_for(lambda: self.provider.seen, "the first one is there")
        for api in API:
            answer = gateway.post(body_of(api, MODELS[api]), path=PATHS[api])
            self.assert_refused(api, answer, *RATE[api], "concurrent")
            self.assertEqual(self.hints(answer), {"retry-after": "1", "retry-after-ms": "1000"})
        go.set()
        thread.join()
        self.assertEqual(answers[0].status, 200)

    def test_a_provider_that_is_away(self):
        settings = harness.config(self.provider, retries={"attempts": 1})
        for provider in settings["providers"].values():
            provider["endpoints"] = [{"url": "http://127.0.0.1:%d" % harness.free_port()}]
        gateway = self.gateway(settings)
        for api in API:
            answer = gateway.post(body_of(api, MODELS[api]), path=PATHS[api])
            self.assertIn((answer.status, answer.json()["error"]["type"]), (OVERLOADED[api], DOWN[api]), answer)


if __name__ == "__main__":
    harness.main()
