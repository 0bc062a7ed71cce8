"""Answers that were paid for and whose form is not the one that was asked for: event streams under any Content-Type
and to requests without `stream`, and bodies with a content-encoding."""

import gzip
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import streams  # noqa: E402


def data(value):
    return "data: " + (value if isinstance(value, str) else json.dumps(value)) + "\n\n"


def chunk(delta, reason=None, **more):
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **more}


def event(type, **members):
    return f"event: {type}\n" + data({"type": type, **members})


USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
OPENAI = data(chunk({"content": "hel"})) + data(chunk({"content": "lo"})) + \
    data(chunk({}, "stop", usage=USAGE)) + data("[DONE]")
ANTHROPIC = event("message_start", message={"id": "m", "model": "m", "usage": {"input_tokens": 10, "output_tokens": 1}}) + \
    event("content_block_start", index=0, content_block={"type": "text", "text": "hel"}) + \
    event("content_block_delta", index=0, delta={"type": "text_delta", "text": "lo"}) + \
    event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 5}) + event("message_stop")
RESPONSES = event("response.output_text.delta", output_index=0, delta="hello") + \
    event("response.completed", response={"id": "r", "model": "m", "status": "completed",
                                          "usage": {"input_tokens": 10, "output_tokens": 5}})
STREAMS = {"openai": OPENAI, "anthropic": ANTHROPIC, "openai-responses": RESPONSES}
FRONTS = {"as it is": "", "a mark": "\ufeff", "comments": ": ping\n\n: ping\n\n", "blank lines": "\r\n\n",
          "a mark and blank lines": "\ufeff\n", "an id": "id: 1\n", "retry": "retry: 5\n\n"}
TYPES = ["application/json", "application/json; charset=utf-8", "text/plain", "application/octet-stream", None,
         "text/event-stream"]
PLAIN = json.dumps({"id": "c", "model": "m", "choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}],
                    "usage": USAGE}).encode()


class Forms(streams.Case):
    def with_answers(self, answers, dialect_of=lambda name: "openai", **changes):
        """A gateway in front of a provider that has an answer for each model: headers and body by the model's name."""
        self.fields = []

        def serve(peer, _):
            while (request := peer.request()) is not None:
                self.fields.append(peer.fields)
                headers, body = answers[json.loads(request[1])["model"]]
                peer.send(b"HTTP/1.1 200 OK\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers.items()).encode()
                          + b"content-length: %d\r\n\r\n" % len(body) + body)
        server = self.server(serve)
        server.url = f"http://127.0.0.1:{server.port}"
        settings = harness.config(server, **changes)
        settings["providers"] = {name: harness.provider(server, dialect_of(name)) for name in answers}
        settings["models"] = [harness.model(name, name) for name in answers]
        settings["plans"]["standard"]["models"] = {"allow": ["*"]}
        return self.gateway(settings)

    def ask(self, gateway, hint, streamed):
        if not streamed:
            return gateway.sample(modelPreferences={"hints": [{"name": hint}]}).json()
        with streams.Call(gateway, hint=hint, token=1) as call:
            if call.headers["content-type"] == "application/json":
                return json.loads(call.reply.read())
            return call.split()[1]

    def test_an_event_stream_is_read_whatever_it_is_called_and_whoever_asked_for_it(self):
        answers = {}
        for dialect, body in STREAMS.items():
            for i, type in enumerate(TYPES):
                answers[f"{dialect}:type-{i}"] = ({} if type is None else {"content-type": type}, body.encode())
            for i, front in enumerate(FRONTS.values()):
                answers[f"{dialect}:front-{i}"] = ({"content-type": "application/json"}, (front + body).encode())
        gateway = self.with_answers(answers, lambda name: name.split(":")[0], retries={"attempts": 1})
        for name in answers:
            for streamed in (False, True):
                with self.subTest(name, streamed=streamed):
                    answer = self.ask(gateway, name, streamed)
                    self.assertEqual(answer["result"]["content"], {"type": "text", "text": "hello"}, answer)
                    usage = answer["result"]["_meta"]["sluice/usage"]
                    self.assertEqual((usage["input_tokens"], usage["output_tokens"]), (10, 5))

    def test_a_stream_that_is_cut_or_an_error_is_not_taken_for_an_answer(self):
        answers = {"cut": ({"content-type": "application/json"}, data(chunk({"content": "hel"})).encode()),
                   "overloaded": ({"content-type": "application/json"},
                                  data({"error": {"message": "x", "type": "overloaded_error"}}).encode())}
        gateway = self.with_answers(answers, retries={"attempts": 1})
        self.assertEqual(self.ask(gateway, "cut", False)["error"]["code"], -32015)
        self.assertEqual(self.ask(gateway, "overloaded", False)["error"]["code"], -32011)

    def test_a_coded_answer_is_one_clear_error_and_is_not_paid_twice(self):
        answers = {"plain": ({"content-type": "application/json", "content-encoding": "identity"}, PLAIN)}
        for coding in ("gzip", "br", "deflate", "zstd"):
            answers[coding] = ({"content-type": "application/json", "content-encoding": coding}, gzip.compress(PLAIN))
            answers[coding + "-stream"] = ({"content-type": "text/event-stream", "content-encoding": coding},
                                           gzip.compress(OPENAI.encode()))
        gateway = self.with_answers(answers)
        for name in answers:
            with self.subTest(name):
                self.fields.clear()
                answer = self.ask(gateway, name, name.endswith("-stream"))
                self.assertEqual([fields.get("accept-encoding") for fields in self.fields], ["identity"])
                if name == "plain":
                    self.assertEqual(answer["result"]["content"]["text"], "hello")
                    continue
                error = answer["error"]
                self.assertEqual((error["code"], error["data"]["reason"]), (-32015, "provider_answer_invalid"))
                self.assertIn("content-encoding", error["message"])
                self.assertIs(error["data"]["retryable"], False)

    def test_what_an_answer_counts_is_what_it_costs(self):
        openai = {"id": "c", "model": "m", "choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}
        xai = {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 273,
               "prompt_tokens_details": {"cached_tokens": 6}, "completion_tokens_details": {"reasoning_tokens": 232}}
        kimi = {"prompt_tokens": 2989, "completion_tokens": 5, "total_tokens": 2994, "cached_tokens": 2048}
        hour = {"input_tokens": 10, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 0, "output_tokens": 5,
                "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200}}
        answers = {"openai:xai": {**openai, "usage": xai},
                   "openai:kimi": {**openai, "choices": [{**openai["choices"][0], "usage": kimi}]},
                   "anthropic:hour": {"id": "m", "model": "m", "content": [{"type": "text", "text": "ok"}],
                                      "stop_reason": "end_turn", "usage": hour}}
        # 3 in, 15 out, 0.3 read, 3.75 written, 6 for an hour
        costs = {"openai:xai": 26 * 3 + 6 * 0.3 + 241 * 15, "openai:kimi": 941 * 3 + 2048 * 0.3 + 5 * 15,
                 "anthropic:hour": 10 * 3 + 100 * 3.75 + 200 * 6 + 5 * 15}
        gateway = self.with_answers({name: ({"content-type": "application/json"}, json.dumps(body).encode())
                                     for name, body in answers.items()}, lambda name: name.split(":")[0])
        for name, cost in costs.items():
            with self.subTest(name):
                usage = self.ask(gateway, name, False)["result"]["_meta"]["sluice/usage"]
                self.assertAlmostEqual(usage["usd"], cost / 1e6, places=9)


if __name__ == "__main__":
    harness.main()
