"""The providers' own APIs through the real binary: what a caller sends goes to a provider of the same format as it is, what
the provider says comes back as it is, but for what the gateway acts on. Who must not, is refused in the API's own words.

ctest: timeout=180
"""
import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
from direct_case import ANSWER, MODELS, PATHS, STREAM, USAGE, DirectCase, body_of

UNKNOWN = ",".join('"unknown_%d" : {"digits":12345678901234567890,"text":"\\u2028 \u2028 \\/","n":[1.50,null]}' % i for i in range(50))
BLOCKS = ",".join('{"type":"novel_%d","Payload":{"a":[]}}' % i for i in range(5))


class Direct(DirectCase):
    def test_unknown_members_and_blocks_pass_byte_for_byte(self):
        gateway = self.start()
        for api in PATHS:
            with self.subTest(api):
                more = ",%s" % UNKNOWN
                sent = body_of(api, MODELS[api], more).replace(b'"hi"}', b'"hi"},%s' % BLOCKS.encode())
                self.provider.says(ANSWER[api].replace(b"MODEL", MODELS[api].encode()))
                answer = gateway.post(sent, path=PATHS[api])
                self.assertEqual(answer.status, 200, answer)
                got = self.provider.seen[-1][2]
                if api == "chat":  # the bound is written in
                    got = got.replace(b'{"max_tokens":4096, "model"', b'{ "model"').replace(b'{"max_tokens":4096,', b'{', 1)
                self.assertEqual(hashlib.sha256(got).hexdigest(), hashlib.sha256(sent).hexdigest(), got[:300])
                self.assertEqual(answer.body, ANSWER[api].replace(b"MODEL", MODELS[api].encode()))
                self.assertEqual(answer.headers["sluice-model"], MODELS[api])
                self.assertEqual(answer.headers["sluice-provider-request-id"], "req_up")
                line = gateway.log(answer.headers["request-id"])
                self.assertEqual((line["front"], line["tenant"], line["status"]), (api, "acme", 200))
                self.assertGreater(float(answer.headers["sluice-usd"]), 0)

    def test_the_caller_gets_its_own_name_of_the_model(self):
        model = harness.model("big", "anthropic", name="claude-real-20250929")
        settings = harness.config(self.provider, models=[model, harness.model("other", "anthropic")])
        settings["plans"]["standard"]["models"]["default"] = "other"
        gateway = self.gateway(settings)
        for name in ("big", "claude-real-20250929", "claude-real", "anthropic/claude-real"):
            self.provider.says(ANSWER["messages"].replace(b"MODEL", b"claude-real-20250929"))
            answer = gateway.post(body_of("messages", name), path=PATHS["messages"])
            self.assertEqual(answer.json()["model"], name)
            self.assertEqual(answer.headers["sluice-model"], "big")
            self.assertEqual(json.loads(self.provider.seen[-1][2])["model"], "claude-real-20250929")
        for name in ("claude", "bi", "claude-real-20260101"):
            answer = gateway.post(body_of("messages", name), path=PATHS["messages"])
            self.assert_refused("messages", answer, 404, "not_found_error", "model: " + name)
        self.assertEqual(len(self.provider.seen), 4)

    def test_a_stream_passes_event_by_event(self):
        gateway = self.start()
        for api in PATHS:
            for step in (0, 1, 7):
                with self.subTest("%s, %d" % (api, step)):
                    said = STREAM[api].replace(b"USAGE", USAGE).replace(b"MODEL", b"p-real")
                    self.provider.streams(said, step=step)
                    answer = gateway.post(body_of(api, MODELS[api], ',"stream":true'), path=PATHS[api])
                    self.assertEqual(answer.status, 200, answer)
                    self.assertEqual(answer.headers["content-type"], "text/event-stream")
                    wanted = STREAM[api].replace(b"USAGE", b"").replace(b"MODEL", MODELS[api].encode())
                    self.assertEqual(answer.body, wanted)
                    sent = json.loads(self.provider.seen[-1][2])
                    self.assertTrue(sent["stream"])
                    if api == "chat":
                        self.assertEqual(sent["stream_options"], {"include_usage": True})
                    line = gateway.log(answer.headers["request-id"])
                    self.assertEqual((line["input_tokens"], line["output_tokens"]), (7, 3), line)

    def test_usage_that_was_asked_for_stays(self):
        gateway = self.start()
        said = STREAM["chat"].replace(b"USAGE", USAGE).replace(b"MODEL", b"gpt-test")
        self.provider.streams(said)
        more = ',"stream":true,"stream_options":{"include_usage":true}'
        answer = gateway.post(body_of("chat", "gpt-test", more), path=PATHS["chat"])
        self.assertEqual(answer.body, said)

    def test_a_stream_that_breaks_never_ends_cleanly(self):
        gateway = self.start()
        ends = {"messages": b"event: message_stop", "chat": b"data: [DONE]"}
        marks = {"messages": b"event: content_block_stop", "chat": b'data: {"id":"c1","object":"chat.completion.chunk",'
                                                                   b'"created":1,"model":"gpt-test","choices":[{"index":0,"delta":{},'}
        for api in PATHS:
            said = STREAM[api].replace(b"USAGE", b"").replace(b"MODEL", MODELS[api].encode())
            front = said[:said.index(marks[api])]
            for broken, whole in ((front, False), (front, True), (front + said[said.index(ends[api]):], True)):
                with self.subTest("%s %d %s" % (api, len(broken), whole)):
                    self.provider.streams(broken, whole=whole)
                    answer = gateway.post(body_of(api, MODELS[api], ',"stream":true'), path=PATHS[api])
                    self.assertEqual(answer.status, 200)
                    self.assertTrue(answer.body.startswith(front), answer)
                    last = answer.body[len(front):]
                    self.assertNotIn(ends[api], answer.body)
                    self.assertTrue(last.startswith(b"event: error\ndata: {" if api == "messages" else b'data: {"error":'), last)

    def test_what_must_not_pass_is_refused(self):
        gateway = self.start()
        rows = [
            ("chat", ',"route":"x"', 403, "route"), ("messages", ',"fallbacks":[]', 403, "fallbacks"),
            ("chat", ',"Model":"x"', 400, "model"), ("messages", ',"max_to\u212aens":1', 400, "max_tokens"),
            ("chat", ',"n":2', 403, "n: "), ("chat", ',"service_tier":"priority"', 403, "service_tier"),
            ("messages", ',"tools":[{"type":"web_search_20250305","name":"web_search"}]', 403, "tools.0"),
            ("messages", ',"thread":{"type":"create"}', 400, "capability_rejected: beta_header:message-threads-2026-08-12"),
            ("chat", ',"stream":"yes"', 400, "stream"),
        ]
        for api, more, status, words in rows:
            with self.subTest(more):
                answer = gateway.post(body_of(api, MODELS[api], more), path=PATHS[api])
                kind = {("messages", 403): "permission_error"}.get((api, status), "invalid_request_error")
                self.assert_refused(api, answer, status, kind, words)
        body = body_of("chat", "gpt-test").replace(b'{"type":"text","text":"hi"}',
                                                   b'{"type":"image_url","image_url":{"url":"http://169.254.169.254/"}}')
        self.assert_refused("chat", gateway.post(body, path=PATHS["chat"]), 403, "invalid_request_error",
                            "messages[0].content[0].image_url.url")
        answer = gateway.post(body_of("messages", "claude-test").replace(b'"max_tokens": 99,', b""), path=PATHS["messages"])
        self.assert_refused("messages", answer, 400, "invalid_request_error", "max_tokens: Field required")
        self.assertEqual(self.provider.seen, [])

    def test_keys_come_in_either_header(self):
        gateway = self.start()
        for headers, key, status in (({"x-api-key": harness.KEY}, None, 200), ({}, harness.KEY, 200),
                                     ({"x-api-key": harness.KEY}, harness.KEY, 200),
                                     ({"x-api-key": "another"}, harness.KEY, 401), ({"x-api-key": "another"}, None, 401),
                                     ({}, None, 401)):
            with self.subTest("%s %s" % (headers, key)):
                self.provider.answers.clear()
                self.provider.says(ANSWER["messages"])
                answer = gateway.post(body_of("messages", "claude-test"), path=PATHS["messages"], headers=headers, key=key)
                if status == 200:
                    self.assertEqual(answer.status, 200, answer)
                    seen = self.provider.seen[-1][1]
                    self.assertEqual(seen["x-api-key"], harness.PROVIDER_KEY)
                    self.assertNotIn("authorization", seen)
                else:
                    self.assert_refused("messages", answer, 401, "authentication_error", "")
                    self.assertEqual(answer.headers["x-should-retry"], "false")

    def test_versions_and_betas_pass_and_accounts_do_not(self):
        gateway = self.start()
        self.provider.says(ANSWER["messages"])
        gateway.post(body_of("messages", "claude-test"), path=PATHS["messages"],
                     headers={"anthropic-version": "2023-06-01", "anthropic-beta": "a-2026,b-2026",
                              "anthropic-workspace-id": "w", "cookie": "c", "x-stainless-lang": "python"})
        seen = self.provider.seen[-1][1]
        self.assertEqual((seen["anthropic-version"], seen["anthropic-beta"]), ("2023-06-01", "a-2026,b-2026"))
        for name in ("anthropic-workspace-id", "cookie", "x-stainless-lang"):
            self.assertNotIn(name, seen)

    def test_a_providers_own_words_pass_without_its_account(self):
        gateway = self.start()
        words = "prompt is too long: 201000 tokens > 200000 maximum"
        self.provider.says(('{"type":"error","error":{"type":"invalid_request_error","message":"%s, org-abc"},"x":1.50}'
                            % words).encode(), status=400)
        answer = gateway.post(body_of("messages", "claude-test"), path=PATHS["messages"])
        self.assertEqual(answer.status, 400)
        self.assertEqual(answer.body, ('{"type":"error","error":{"type":"invalid_request_error","message":"%s, [redacted]"},'
                                       '"x":1.50}' % words).encode())
        self.provider.says(b'{"error":{"message":"Incorrect API key: k","type":"x"}}', status=401)
        answer = gateway.post(body_of("chat", "gpt-test"), path=PATHS["chat"])
        self.assert_refused("chat", answer, 500, "server_error", "operator")
        self.assertEqual(answer.headers["x-should-retry"], "false")

    def test_bounds_are_lowered_and_written(self):
        gateway = self.start()
        self.provider.says(ANSWER["messages"])
        body = body_of("messages", "claude-test").replace(b": 99", b": 999999")
        answer = gateway.post(body, path=PATHS["messages"])
        self.assertEqual(json.loads(self.provider.seen[-1][2])["max_tokens"], 4096)
        self.assertEqual(answer.headers["sluice-adjustments"], "max_tokens_clamped")
        thinking = body.replace(b'"messages"', b'"thinking":{"type":"enabled","budget_tokens":8000},"messages"')
        answer = gateway.post(thinking, path=PATHS["messages"])
        self.assert_refused("messages", answer, 400, "invalid_request_error", "maximum of 4096")

    def test_only_post_in_json_is_taken(self):
        gateway = self.start()
        answer = harness.request("GET", gateway.url + "/v1/messages")
        self.assert_refused("messages", answer, 405, "invalid_request_error", "")
        answer = gateway.post(b"{}", path=PATHS["chat"], headers={"Content-Type": "text/plain"})
        self.assert_refused("chat", answer, 415, "invalid_request_error", "")

    def test_a_plan_may_keep_callers_out(self):
        settings = harness.config(self.provider)
        settings["plans"]["standard"]["fronts"] = ["sampling"]
        gateway = self.gateway(settings)
        answer = gateway.post(body_of("chat", "gpt-test"), path=PATHS["chat"])
        self.assert_refused("chat", answer, 403, "invalid_request_error", "Policy")


if __name__ == "__main__":
    harness.main()
