"""What tests of the direct APIs have in common: requests and answers of both, and a gateway in front of a provider that says
what it is told (told_provider)."""

import harness
from told_provider import Provider

ANSWER = {
    "messages": b'{"id":"msg_1", "type":"message","role":"assistant","model":"MODEL","content":[{"type":"text","text":"Hi"},'
                b'{"type":"thinking","thinking":"","signature":"s"}],"stop_reason":"end_turn","novel":{"x":1.50},'
                b'"usage":{"input_tokens":7,"output_tokens":3}}\n',
    "chat": b'{"id":"c1","object":"chat.completion","created":1,"model":"MODEL","choices":[{"index":0,"message":{"role":'
            b'"assistant","content":"Hi"},"finish_reason":"stop"}],"novel":[12345678901234567890],'
            b'"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}',
}
STREAM = {
    "messages": b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant",'
                b'"model":"MODEL","content":[],"usage":{"input_tokens":7,"output_tokens":1}}}\n\n'
                b'event: novel\ndata: {"x":1}\n\n: comment\n\n'
                b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
                b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}\n\n'
                b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
                b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}\n\n'
                b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    "chat": b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"MODEL","choices":[{"index":0,"delta":'
            b'{"role":"assistant","content":"Hi"},"finish_reason":null}]}\n\n'
            b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"MODEL","choices":[{"index":0,"delta":{},'
            b'"finish_reason":"stop"}]}\n\nUSAGEdata: [DONE]\n\n',
}
USAGE = (b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"MODEL","choices":[],"usage":'
         b'{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}\n\n')
PATHS = {"messages": "/v1/messages?beta=true", "chat": "/v1/chat/completions"}
MODELS = {"messages": "claude-test", "chat": "gpt-test"}


def body_of(api, model, more=""):
    bound = '"max_tokens": 99,' if api == "messages" else ""
    return ('{ "model" :"%s",%s"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]%s}'
            % (model, bound, more)).encode()


class DirectCase(harness.Case):
    def setUp(self):
        self.provider = Provider()
        self.addCleanup(self.provider.stop)

    def start(self, **changes):
        changes.setdefault("retries", {"attempts": 1})
        return self.gateway(harness.config(self.provider, **changes))

    def assert_refused(self, api, answer, status, kind, words):
        self.assertEqual(answer.status, status, answer)
        error = answer.json()["error"]
        self.assertEqual(error["type"], kind, answer)
        self.assertIn(words, error["message"])
        if api == "messages":
            self.assertEqual(answer.json()["type"], "error")
            self.assertEqual(answer.json()["request_id"], answer.headers["request-id"])
        else:
            self.assertIn("param", error)
        self.assertEqual(answer.headers["request-id"], answer.headers["x-request-id"])
