"""Answers of the direct APIs as their providers write them: what is odd passes, what is broken never looks whole.

ctest: timeout=180
"""
import http.client
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
from direct_case import MODELS, PATHS, STREAM, DirectCase, body_of

USED = {"messages": b'"usage":{"input_tokens":7,"output_tokens":3}',
        "chat": b'"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}'}
MESSAGE = b'{"type":"message","id":"m","role":"assistant","model":"claude-test",%s,' + USED["messages"] + b"}"
CHAT = b'{"id":"c","object":"chat.completion","created":1,"model":"gpt-test",%s,' + USED["chat"] + b"}"
CALL = b'"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[%s]},"finish_reason":"tool_calls"}]'
ODD = [
    ("messages", MESSAGE % b'"content":[{"type":"novel"}],"stop_reason":"novel"'),
    ("messages", MESSAGE % b'"content":[],"stop_reason":null'),
    ("messages", MESSAGE % b'"content":[{"type":"tool_use","id":"i","name":"n","input":"{\\"a"}],"stop_reason":"tool_use"'),
    ("messages", MESSAGE % b'"content":[{"type":"text","text":"\\ud83d"}],"stop_reason":"error"'),
    ("chat", CHAT % b'"choices":[]'),
    ("chat", CHAT % (CALL % b'{"id":"i","type":"function","function":{"name":"n","arguments":"{\\"a"}}')),
    ("chat", CHAT % (CALL % b'{"id":"i","type":"novel","novel":{}}')),
    ("chat", CHAT % b'"choices":[{"index":0,"message":null,"finish_reason":"novel"}]'),
]
MALFORMED = {"messages": [b"<html>", b'{"type":"message","content":[]', b'{"usage":{}}'],
             "chat": [b"", b'{"choices":{}}', b"[]"]}


class Streams(DirectCase):
    def test_an_odd_answer_passes_byte_for_byte_and_is_charged(self):
        gateway = self.start()
        for api, said in ODD:
            with self.subTest(said):
                self.provider.says(said)
                answer = gateway.post(body_of(api, MODELS[api]), path=PATHS[api])
                self.assertEqual((answer.status, answer.body), (200, said))
                line = gateway.log(answer.headers["request-id"])
                self.assertEqual((line["input_tokens"], line["output_tokens"]), (7, 3), line)
                self.assertGreater(float(answer.headers["sluice-usd"]), 0)

    def test_what_is_no_answer_is_the_providers_mistake(self):
        gateway = self.start()
        for api, bodies in MALFORMED.items():
            for said in bodies:
                with self.subTest(said):
                    self.provider.says(said)
                    answer = gateway.post(body_of(api, MODELS[api]), path=PATHS[api])
                    status, kind = {"messages": (500, "api_error"), "chat": (502, "server_error")}[api]
                    self.assert_refused(api, answer, status, kind, "malformed")

    def test_a_stream_that_fails_at_once_is_asked_for_as_a_stream_again(self):
        gateway = self.start(retries={"attempts": 2})
        said = STREAM["messages"].replace(b"MODEL", b"claude-test")
        self.provider.streams(said[:40])
        self.provider.streams(said)
        answer = gateway.post(body_of("messages", "claude-test", ',"stream":true'), path=PATHS["messages"])
        self.assertEqual((answer.status, answer.body), (200, said))
        self.assertEqual([b'"stream":true' in seen[2] for seen in self.provider.seen], [True, True])

    def test_a_refusal_is_not_sent_again_otherwise(self):
        gateway = self.start(retries={"attempts": 3})
        said = b'{"error":{"message":"Unsupported parameter: \'max_tokens\' is not supported with this model. Use ' \
               b'\'max_completion_tokens\' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}'
        for status in (400, 422):
            self.provider.says(said, status=status)
            answer = gateway.post(body_of("chat", "gpt-test"), path=PATHS["chat"])
            self.assertEqual((answer.status, answer.body), (status, said))
        self.assertEqual(len(self.provider.seen), 2)
        filtered = b'{"error":{"message":"filtered","type":null,"param":"prompt","code":"content_filter","status":400}}'
        self.provider.says(filtered, status=400)
        answer = gateway.post(body_of("chat", "gpt-test"), path=PATHS["chat"])
        self.assertEqual((answer.status, answer.body), (400, filtered))

    def test_the_head_of_a_stream_says_who_answers(self):
        gateway = self.start()
        for api in PATHS:
            self.provider.streams(STREAM[api].replace(b"USAGE", b"").replace(b"MODEL", b"m"))
            answer = gateway.post(body_of(api, MODELS[api], ',"stream":true').replace(b": 99", b": 99999"), path=PATHS[api])
            self.assertEqual(answer.status, 200, answer)
            self.assertEqual(answer.headers["sluice-model"], MODELS[api])
            self.assertEqual(answer.headers["sluice-provider-request-id"], "req_up")
            self.assertEqual(answer.headers["request-id"], answer.headers["x-request-id"])
            self.assertNotIn("sluice-usd", answer.headers)
            if api == "messages":
                self.assertEqual(answer.headers["sluice-adjustments"], "max_tokens_clamped")

    def broken_off(self, gateway, api, begun, error):
        """What a caller reads behind `begun` when the provider says `error` then."""
        seen = threading.Event()
        self.provider.answers.append((200, "text/event-stream", [begun, seen, error], True))
        connection = http.client.HTTPConnection(gateway.url.split("//")[1], timeout=harness.PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("POST", PATHS[api], body_of(api, MODELS[api], ',"stream":true'),
                           {"Content-Type": "application/json", "x-api-key": harness.KEY})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.read(len(begun)), begun)
        seen.set()
        return answer.read(), gateway.log(answer.getheader("request-id"))

    def test_a_providers_error_in_the_middle_passes_without_its_account(self):
        gateway = self.start()
        host = "127.0.0.1"
        rows = [
            ("messages", b'event: error\ndata: {"type":"error","error":{"type":"%s","message":"%s"}}\n\n', "overloaded_error", "Overloaded"),
            ("messages", b'event: error\ndata: {"type":"error","error":{"type":"%s","message":"%s"}}\n\n', "api_error", "org-1 at " + host),
            ("chat", b'data: {"error":{"message":"%s","type":"%s","param":null,"code":null}}\n\n', "server_error", "project proj_x"),
        ]
        for api, form, kind, words in rows:
            with self.subTest(words):
                said = STREAM[api].replace(b"MODEL", MODELS[api].encode())
                begun = said[:said.index(b"event: content_block_stop" if api == "messages" else b'data: {"id":"c1","object":"chat.'
                                         b'completion.chunk","created":1,"model":"gpt-test","choices":[{"index":0,"delta":{},')]
                texts = (kind, words) if api == "messages" else (words, kind)
                clean = words.replace("org-1", "[redacted]").replace(host, "[redacted]").replace("proj_x", "[redacted]")
                rest, line = self.broken_off(gateway, api, begun, form % tuple(t.encode() for t in texts))
                self.assertEqual(rest, form % tuple(t.replace(words, clean).encode() for t in texts))
                self.assertNotEqual(line.get("error", ""), "", line)
                self.assertGreater(line["usd"], 0)

    def test_an_operators_error_in_the_middle_is_told_in_our_words(self):
        gateway = self.start()
        said = STREAM["messages"].replace(b"MODEL", b"claude-test")
        begun = said[:said.index(b"event: content_block_stop")]
        rest, _ = self.broken_off(gateway, "messages", begun,
                                  b'event: error\ndata: {"type":"error","error":{"type":"authentication_error","message":"key k"}}\n\n')
        self.assertTrue(rest.startswith(b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"'), rest)
        self.assertNotIn(b"key k", rest)

    def test_lines_may_end_as_they_like_and_events_be_large(self):
        gateway = self.start()
        for api in PATHS:
            said = STREAM[api].replace(b"USAGE", b"").replace(b"MODEL", MODELS[api].encode())
            for name, stream in (("crlf", said.replace(b"\n", b"\r\n")), ("cr", said.replace(b"\n", b"\r")),
                                 ("separators", said.replace(b'"Hi"', '"\u2028\u2029\x85"'.encode())),
                                 ("large", said.replace(b'"Hi"', b'"%s"' % (b"0123456789" * 100000)))):
                for step in (1, 7) if name != "large" else (0, 60000):
                    for http2 in (False, True):
                        with self.subTest("%s %s %d %s" % (api, name, step, http2)):
                            self.provider.streams(stream, step=step)
                            answer = gateway.post(body_of(api, MODELS[api], ',"stream":true'), path=PATHS[api], http2=http2)
                            self.assertEqual(answer.status, 200, answer)
                            self.assertTrue(answer.body == stream, answer)  # a large difference takes minutes to print

    def test_a_stream_that_is_cut_never_looks_whole_over_http2(self):
        gateway = self.start()
        for api in PATHS:
            said = STREAM[api].replace(b"USAGE", b"").replace(b"MODEL", MODELS[api].encode())
            begun = said[:said.index(b"stop")]
            for whole in (False, True):
                self.provider.streams(begun, whole=whole)
                answer = gateway.post(body_of(api, MODELS[api], ',"stream":true'), path=PATHS[api], http2=True)
                self.assertEqual(answer.status, 200)
                last = answer.body.rstrip().rpartition(b"\n\n")[2]
                self.assertTrue(last.startswith(b"event: error\ndata: {" if api == "messages" else b'data: {"error":'), answer)

    def test_comments_in_front_of_the_first_event_do_not_begin_the_answer(self):
        gateway = self.start()
        said = b'data: {"error":{"message":"m","type":"server_error","code":503}}\n\n'
        go = threading.Event()
        self.provider.answers.append((200, "text/event-stream", [b": PROCESSING\n\n", go, said], True))
        answers, thread = self.background(
            lambda: gateway.post(body_of("chat", "gpt-test", ',"stream":true'), path=PATHS["chat"]))
        harness.wait_for(lambda: self.provider.seen, "it is asked")
        go.set()
        thread.join()
        self.assert_refused("chat", answers[0], 503, "server_error", "")

    def test_a_provider_that_thinks_for_long_is_not_taken_for_dead(self):
        gateway = self.start()
        waits = []
        for api, ping in (("messages", b'event: ping\ndata: {"type": "ping"}\n\n'), ("chat", b": ping\n\n")):
            said = STREAM[api].replace(b"USAGE", b"").replace(b"MODEL", MODELS[api].encode())
            split = said.index(b"Hi")  # within an event, which is not whole
            begun = said[:said[:split].rindex(b"\n\n") + 2] if api == "messages" else b""
            connection = http.client.HTTPConnection(gateway.url.split("//")[1], timeout=harness.PATIENCE_S)
            self.addCleanup(connection.close)
            go = threading.Event()
            first = begun or said[:said.index(b"\n\n") + 2]
            self.provider.answers.append((200, "text/event-stream", [first + said[len(first):len(first) + 9], go, said[len(first) + 9:]], True))
            connection.request("POST", PATHS[api], body_of(api, MODELS[api], ',"stream":true'),
                               {"Content-Type": "application/json", "x-api-key": harness.KEY})
            answer = connection.getresponse()
            self.assertEqual(answer.read(len(first)), first)
            waits.append((answer, go, ping, said[len(first):]))
        for answer, go, ping, rest in waits:  # both at once
            self.assertEqual(answer.read(len(ping)), ping)
            go.set()
            self.assertEqual(answer.read(), rest)


if __name__ == "__main__":
    harness.main()
