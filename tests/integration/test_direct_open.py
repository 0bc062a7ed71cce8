"""The open list of the direct APIs: fifty members, five block types and three events that nobody knows pass both ways, JSON
and streams, and the SHA-256 is the same at both ends. The same bodies with a tool or a model that is forbidden, or a budget
that is spent, go nowhere.

ctest: once timeout=60
"""
import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
from told_provider import Provider

PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions"}
MODELS = {"messages": "claude-test", "chat": "gpt-test"}
SPENT = "key-of-spent-0123456789"
# white space, digits, escapes, line ends and names that programs like to change
ODD = ['12345678901234567890', '1.50', '-0', '1E+2', '"\\u2028 \u2028 \\/ \\ud83d\\ude00 \U0001f600"', '[ ]', '{ "A":1,"a" :2}', 'null', '""',
       '[[1.0,{"b":"\\u0000"}],\r\n\ttrue]']
MEMBERS = ",\r\n ".join('"novel_%d" :%s' % (i, ODD[i % len(ODD)]) for i in range(50))
BLOCKS = ",".join('{"type":"novel_%d", "Payload":%s}' % (i, ODD[i]) for i in range(5))
EVENTS = ["event: novel_%d\r\ndata: {\"type\":\"novel_%d\",\"x\":%s}\r\n\r\n" % (i, i, ODD[i]) for i in range(3)]


def request_of(api, model, stream=False, tool=None):
    """What is sent as it is: the provider's name of the model, a bound below the maximum, usage asked for."""
    more = ""
    if stream:
        more += ',"stream":true' + (',"stream_options":{"include_usage":true}' if api == "chat" else "")
    if tool:
        more += ',"tools":[%s]' % ('{"name":"%s","input_schema":{"type":"object"}}' % tool if api == "messages"
                                   else '{"type":"function","function":{"name":"%s"}}' % tool)
    return ('{ "model" :"%s","max_tokens": 99,%s,"messages":[{"role":"user","content":[{"type":"text","text":"hi"},%s]}]%s}\n'
            % (model, MEMBERS, BLOCKS, more)).encode()


def answer_of(api):
    if api == "messages":
        return ('{"id":"m","type":"message","role":"assistant","model":"claude-test","content":[{"type":"text","text":"Hi"},%s],'
                '"stop_reason":"end_turn",%s,"usage":{"input_tokens":7,"output_tokens":3}}\n' % (BLOCKS, MEMBERS)).encode()
    return ('{"id":"c","object":"chat.completion","created":1,"model":"gpt-test","choices":[{"index":0,"message":{"role":"assistant",'
            '"content":"Hi","novel":[%s]},"finish_reason":"stop"}],%s,"usage":{"prompt_tokens":7,"completion_tokens":3,'
            '"total_tokens":10}}' % (BLOCKS, MEMBERS)).encode()


def stream_of(api):
    if api == "messages":
        blocks = "".join('event: content_block_start\ndata: {"type":"content_block_start","index":%d,"content_block":{"type":"novel_%d"}}\n\n'
                         'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"novel_%d","x":%s}}\n\n'
                         'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n' % (i, i, i, i, ODD[i], i)
                         for i in range(5))
        return ('event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant",'
                '"model":"claude-test","content":[],%s,"usage":{"input_tokens":7,"output_tokens":1}}}\n\n' % MEMBERS.replace("\r\n", "")
                + EVENTS[0] + blocks + EVENTS[1]
                + 'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}\n\n'
                + EVENTS[2] + 'event: message_stop\ndata: {"type":"message_stop"}\n\n').encode()
    head = '{"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-test","choices":'
    return ('data: %s[{"index":0,"delta":{"role":"assistant","content":"Hi","novel":[%s]},"finish_reason":null}],%s}\n\n'
            % (head, BLOCKS.replace("\r\n", ""), MEMBERS.replace("\r\n", ""))
            + EVENTS[0] + EVENTS[1] + 'data: %s[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n' % head
            + 'data: %s[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}\n\n' % head
            + EVENTS[2] + "data: [DONE]\n\n").encode()


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Open(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.provider = Provider()
        cls.addClassCleanup(cls.provider.stop)
        settings = harness.config(cls.provider, retries={"attempts": 1})
        plan = settings["plans"]["standard"]
        plan["policy"] = {"tools": {"deny": ["forbidden"]}}
        plan["models"] = {"allow": ["*-test"], "default": "claude-test"}
        settings["models"] += [harness.model("claude-dear", "anthropic"), harness.model("gpt-dear", "openai")]
        settings["tenants"].append(harness.tenant("spent", SPENT, limits={"usd_per_day": 0.000001}))
        cls.gate = harness.Gateway(settings)
        cls.addClassCleanup(cls.gate.remove)
        cls.addClassCleanup(cls.gate.stop)

    def setUp(self):
        self.provider.forget()

    def passes(self, api, stream, step=0):
        sent, said = request_of(api, MODELS[api], stream=stream), (stream_of if stream else answer_of)(api)
        if stream:
            self.provider.streams(said, step=step)
        else:
            self.provider.says(said)
        answer = self.gate.post(sent, path=PATHS[api])
        self.assertEqual(answer.status, 200, answer)
        got = self.provider.seen[-1][2]
        self.assertEqual(digest(got), digest(sent), got[:400])
        self.assertEqual(digest(answer.body), digest(said), answer.body[:400])
        line = self.gate.log(answer.headers["request-id"])
        self.assertEqual((line["input_tokens"], line["output_tokens"]), (7, 3))

    def test_what_nobody_knows_passes_both_ways(self):
        for api in PATHS:
            json.loads(answer_of(api))
            with self.subTest(api):
                self.passes(api, stream=False)

    def test_events_that_nobody_knows_pass_however_they_are_cut(self):
        for api in PATHS:
            for step in (0, 11):
                with self.subTest("%s %d" % (api, step)):
                    self.passes(api, stream=True, step=step)

    def test_the_same_is_refused_with_what_is_forbidden(self):
        spent = {"messages": 402, "chat": 429}
        for api in PATHS:
            dear = MODELS[api].replace("-test", "-dear")
            for stream in (False, True):
                rows = [(request_of(api, MODELS[api], stream, tool="forbidden"), harness.KEY, 403),
                        (request_of(api, dear, stream), harness.KEY, 404), (request_of(api, MODELS[api], stream), SPENT, spent[api])]
                for body, key, status in rows:
                    with self.subTest("%s %d %s" % (api, status, stream)):
                        answer = self.gate.post(body, path=PATHS[api], key=key)
                        self.assertEqual(answer.status, status, answer)
                        self.assertEqual(answer.headers["content-type"], "application/json")
                        self.assertIn("error", answer.json())
                        self.assertEqual(answer.headers["x-should-retry"], "false")
        self.assertEqual(self.provider.seen, [])


if __name__ == "__main__":
    harness.main()
