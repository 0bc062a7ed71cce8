"""The header lines of the direct APIs: what is left of the caller's own limits, and what a client says of itself.

ctest: timeout=180
"""
import datetime
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import redis_server
from direct_case import ANSWER, MODELS, PATHS, STREAM, DirectCase, body_of

PROVIDERS = {"anthropic-ratelimit-requests-limit": "7777", "x-ratelimit-remaining-tokens": "7777", "retry-after": "7777",
             "anthropic-organization-id": "org", "openai-organization": "org", "set-cookie": "a=b"}
RATES = ("limit", "remaining", "reset")


def rates(answer):
    """{kind: (limit, remaining)}, the same in both families."""
    found = {}
    for kind in ("requests", "tokens"):
        ours = tuple(answer.headers["anthropic-ratelimit-%s-%s" % (kind, what)] for what in RATES)
        theirs = tuple(answer.headers["x-ratelimit-%s-%s" % (what, kind)] for what in RATES)
        assert ours[:2] == theirs[:2], answer.headers
        when = datetime.datetime.strptime(ours[2], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc)
        assert abs((when - datetime.datetime.now(datetime.timezone.utc)).total_seconds()) < 200, ours
        assert theirs[2][-1] == "s" and theirs[2].rstrip("ms")[-1:].isdigit(), theirs
        found[kind] = tuple(int(n) for n in ours[:2])
    return found


class Heads(DirectCase):
    def limited(self, **changes):
        settings = harness.config(self.provider, retries={"attempts": 1}, **changes)
        settings["plans"]["standard"]["limits"].update(
            requests_per_minute=60, requests_burst=4, tokens_per_minute=100000, tokens_burst=100000,
            per_server={"requests_per_minute": 3, "requests_burst": 3})
        return self.gateway(settings)

    def say(self, api, stream):
        if stream:
            self.provider.streams(STREAM[api].replace(b"USAGE", b""))
        else:
            self.provider.says(ANSWER[api], fields=PROVIDERS)

    def check_rates(self, gateway):
        """Three requests pass, the fourth does not."""
        rows = [("messages", False), ("messages", True), ("chat", False)]
        for left, (api, stream) in zip((2, 1, 0), rows):
            self.say(api, stream)
            answer = gateway.post(body_of(api, MODELS[api], ',"stream":true' if stream else ""), path=PATHS[api])
            self.assertEqual(answer.status, 200, answer)
            found = rates(answer)
            self.assertEqual(found["requests"], (3, left), "the tightest scope's")
            self.assertEqual(found["tokens"][0], 100000)
            self.assertTrue(90000 < found["tokens"][1] < 100000, found)
            self.assertNotIn("7777", answer.headers.values())
            for name in ("anthropic-organization-id", "openai-organization", "set-cookie", "retry-after"):
                self.assertNotIn(name, answer.headers)
        for _ in range(2):  # the second is not asked of the limiter
            for api, kind in (("messages", "rate_limit_error"), ("chat", "rate_limit_exceeded")):
                answer = gateway.post(body_of(api, MODELS[api]), path=PATHS[api])
                self.assert_refused(api, answer, 429, kind, "requests_per_minute of the per_server")
                self.assertEqual(answer.headers["anthropic-ratelimit-requests-remaining"], "0")
                self.assertEqual(answer.headers["x-ratelimit-limit-requests"], "3")
                wait_ms = int(answer.headers["retry-after-ms"])
                self.assertTrue(0 < wait_ms <= 20000, answer.headers)
                self.assertEqual(int(answer.headers["retry-after"]), (wait_ms + 999) // 1000)
                self.assertNotIn("x-should-retry", answer.headers)

    def test_every_answer_says_what_is_left_of_the_callers_limits(self):
        self.check_rates(self.limited())

    def test_redis_says_it_too(self):
        redis = redis_server.Redis(self)
        gateway = self.limited(store={"kind": "redis", "url": redis.url})
        self.check_rates(gateway)
        sampled = gateway.sample()  # which is not told, and not let through
        self.assert_error(sampled, 429)

    def test_what_is_refused_before_a_claim_says_nothing_of_limits(self):
        gateway = self.limited()
        for answer in (gateway.post(b"{", path=PATHS["messages"]), gateway.post(b"{}", path=PATHS["chat"], key="another"),
                       gateway.post(body_of("chat", "nobody"), path=PATHS["chat"])):
            self.assertGreaterEqual(answer.status, 400)
            self.assertFalse([name for name in answer.headers if "ratelimit" in name], answer.headers)
            self.assertEqual(answer.headers["request-id"], answer.headers["x-request-id"])

    def test_a_client_that_waits_for_less_gets_less(self):
        gateway = self.start()
        rows = [({"Sluice-Timeout": "300"}, True), ({"x-stainless-timeout": "1"}, True),
                ({"x-stainless-read-timeout": "0.4"}, True), ({"x-stainless-read-timeout": "None"}, False),
                ({"x-stainless-timeout": "100000000"}, False)]
        for headers, late in rows:
            with self.subTest(headers):
                go = threading.Event()
                self.provider.answers.append((200, "application/json", [go, ANSWER["messages"]], True))
                answers, thread = self.background(
                    lambda: gateway.post(body_of("messages", "claude-test"), path=PATHS["messages"], headers=headers))
                if not late:
                    go.set()
                thread.join()
                go.set()
                if late:
                    self.assert_refused("messages", answers[0], 504, "timeout_error", "deadline")
                else:
                    self.assertEqual(answers[0].status, 200, answers[0])
        answer = gateway.post(body_of("messages", "claude-test"), path=PATHS["messages"], headers={"Sluice-Timeout": "soon"})
        self.assert_refused("messages", answer, 400, "invalid_request_error", "Sluice-Timeout")

    def test_a_stream_that_has_begun_is_not_bound_by_what_the_sdk_waits_for_a_byte(self):
        gateway = self.start()
        said = STREAM["messages"].replace(b"MODEL", b"claude-test")
        split = said.index(b"event: content_block_stop")
        late = threading.Event()
        self.provider.answers.append((200, "text/event-stream", [said[:split], late, said[split:]], True))
        threading.Timer(0.8, late.set).start()  # after the client's time
        answer = gateway.post(body_of("messages", "claude-test", ',"stream":true'), path=PATHS["messages"],
                              headers={"x-stainless-read-timeout": "0.4"})
        self.assertEqual(answer.body, said)

    def test_first_byte_bounds_no_json_answer(self):
        settings = harness.config(self.provider, retries={"attempts": 1})
        for provider in settings["providers"].values():
            provider["timeouts"] = {"first_byte": "300ms", "total": "30s"}
        gateway = self.gateway(settings)
        for stream in (False, True):
            late = threading.Event()
            said = STREAM["messages"].replace(b"MODEL", b"claude-test") if stream else ANSWER["messages"]
            whole = (200, "text/event-stream" if stream else "application/json", [said], True)
            self.provider.otherwise = lambda *_: late.wait(harness.PATIENCE_S) and whole
            threading.Timer(0.7, late.set).start()
            answer = gateway.post(body_of("messages", "claude-test", ',"stream":true' if stream else ""), path=PATHS["messages"])
            self.assertEqual(answer.status, 500 if stream else 200, answer)

    def test_the_log_has_what_a_client_says_of_itself(self):
        gateway = self.start()
        self.provider.says(ANSWER["messages"])
        answer = gateway.post(body_of("messages", "claude-test"), path=PATHS["messages"],
                              headers={"x-stainless-retry-count": "2", "x-claude-code-session-id": "s-1", "x-claude-code-agent-id": "a\"b",
                                       "x-claude-code-parent-agent-id": "p" * 500})
        line = gateway.log(answer.headers["request-id"])
        self.assertEqual((line["retry"], line["agent_session"], line["agent"], line["parent_agent"]), ("2", "s-1", 'a"b', "p" * 128))


if __name__ == "__main__":
    harness.main()
