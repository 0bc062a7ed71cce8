"""The provider simulator itself: what other tests and the benchmarks rely on."""
# ctest: worker timeout=120
import datetime
import email.utils
import http.client
import json
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness

ANTHROPIC = {"Content-Type": "application/json", "anthropic-version": "2023-06-01"}
OPENAI = {"Content-Type": "application/json"}
TOOL_SCHEMA = {"type": "object", "properties": {
    "city": {"type": "string"}, "days": {"type": "integer"},
    "unit": {"enum": ["celsius", "kelvin"]}, "exact": {"type": "boolean"}}}


def messages(model="claude", **members):
    return {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}], **members}


def chat(model="gpt", **members):
    return {"model": model, "messages": [{"role": "user", "content": "hi"}], **members}


def ask(sim, body, path="/v1/messages", **options):
    headers = ANTHROPIC if path.endswith("messages") else OPENAI
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return harness.request("POST", sim.url + path, data, headers, insecure=True, **options)


def ask_chat(sim, body, **options):
    return ask(sim, body, "/openai/v1/chat/completions", **options)


def ask_responses(sim, model="gpt", input="hi", **members):
    return ask(sim, {"model": model, "input": input, **members}, "/v1/responses")


def events(body):
    """The data of every event of a stream; JSON where it is."""
    found = []
    for block in body.decode().split("\n\n"):
        for line in block.splitlines():
            if line.startswith("data: "):
                data = line[6:]
                found.append(data if data == "[DONE]" else json.loads(data))
    return found


class Responses(harness.Case):
    TOOL = {"type": "function", "name": "weather", "parameters": TOOL_SCHEMA, "strict": False}
    INPUT = {"city": "simulated", "days": 1, "unit": "celsius", "exact": True}

    def test_texts_and_calls_have_the_formats_own_form(self):
        sim = self.sim("--size", "77")
        answer = ask_responses(sim).json()
        self.assertEqual((answer["object"], answer["status"], answer["model"]), ("response", "completed", "gpt"))
        self.assertEqual(len(answer["output"][0]["content"][0]["text"]), 77)
        self.assertEqual(answer["usage"]["output_tokens"], 20)
        answer = ask_responses(sim, "sim-calls-2", tools=[self.TOOL]).json()
        self.assertEqual([(c["type"], c["name"], json.loads(c["arguments"])) for c in answer["output"]],
                         [("function_call", "weather", self.INPUT)] * 2)
        answer = ask_responses(sim, "sim-length").json()
        self.assertEqual((answer["status"], answer["incomplete_details"]),
                         ("incomplete", {"reason": "max_output_tokens"}))
        answer = ask_responses(sim, "sim-refusal").json()
        self.assertEqual(answer["output"][0]["content"], [{"type": "refusal", "refusal": "No."}])
        self.assertEqual(sim.stats()["responses"], 4)

    def test_a_stream_says_the_same_in_pieces_and_then_as_a_whole(self):
        sim = self.sim("--size", "50", "--chunk", "20")
        for model, members in ("gpt", {}), ("sim-calls-2", {"tools": [self.TOOL]}):
            parts = events(ask_responses(sim, model, stream=True, **members).body)
            self.assertEqual([part["sequence_number"] for part in parts], list(range(len(parts))))
            whole = parts[-1]["response"]
            self.assertEqual(parts[-1]["type"], "response.completed")
            pieces = {}
            for part in parts:
                if part["type"].endswith(".delta"):
                    pieces[part["output_index"]] = pieces.get(part["output_index"], "") + part["delta"]
            self.assertEqual(list(pieces.values()),
                             [item["arguments"] if members else item["content"][0]["text"]
                              for item in whole["output"]])

    def test_results_are_quoted_in_the_text_that_follows(self):
        call = {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"}
        history = [{"role": "user", "content": "hi"}, call,
                   {"type": "function_call_output", "call_id": "c", "output": "rain]}"},
                   {"type": "function_call_output", "call_id": "c",
                    "output": [{"type": "input_text", "text": "sun"}]}]
        answer = ask_responses(self.sim(), input=history, tools=[self.TOOL]).json()
        self.assertEqual(answer["output"][0]["content"][0]["text"], "The tools answered: rain]}, sun")

    def test_what_the_format_does_not_know_is_refused(self):
        sim = self.sim()
        said = {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}
        nested = {"type": "function", "function": {"name": "weather", "parameters": {}}}
        for name, members in {
                "messages": {"messages": []}, "stop": {"stop": ["x"]}, "max_tokens": {"max_tokens": 9},
                "strict": {"tools": [{k: v for k, v in self.TOOL.items() if k != "strict"}]},
                "tools[0].name": {"tools": [nested]}, "output_text": {"input": [said]},
                "No tool call": {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]},
                "at least one": {"input": []}}.items():
            with self.subTest(name):
                answer = ask_responses(sim, **members)
                self.assertEqual(answer.status, 400)
                self.assertIn(name, answer.json()["error"]["message"])


class Answers(harness.Case):
    def test_both_dialects_answer_with_text_of_the_size_asked_for(self):
        sim = self.sim("--size", "77")
        answer = ask(sim, messages()).json()
        self.assertEqual(len(answer["content"][0]["text"]), 77)
        self.assertEqual((answer["type"], answer["role"], answer["model"], answer["stop_reason"]),
                         ("message", "assistant", "claude", "end_turn"))
        self.assertEqual(answer["usage"]["output_tokens"], 20)
        answer = ask_chat(sim, chat("sim-size-1000")).json()
        choice = answer["choices"][0]
        self.assertEqual(len(choice["message"]["content"]), 1000)
        self.assertEqual((choice["finish_reason"], choice["message"]["role"]), ("stop", "assistant"))
        self.assertEqual(answer["usage"]["completion_tokens"], 250)

    def test_streams_carry_the_same_text_in_pieces(self):
        sim = self.sim("--size", "50", "--chunk", "20")
        whole = ask(sim, messages()).json()["content"][0]["text"]
        parts = events(ask(sim, messages(stream=True)).body)
        self.assertEqual([part["type"] for part in parts],
                         ["message_start", "content_block_start", "ping"] + ["content_block_delta"] * 3
                         + ["content_block_stop", "message_delta", "message_stop"])
        self.assertEqual("".join(part["delta"]["text"] for part in parts if "text" in part.get("delta", {})),
                         whole)
        parts = events(ask_chat(sim, chat(stream=True, stream_options={"include_usage": True})).body)
        self.assertEqual(parts[-1], "[DONE]")
        self.assertEqual(parts[-2]["usage"]["completion_tokens"], 13)
        self.assertEqual("".join(part["choices"][0]["delta"].get("content", "")
                                 for part in parts[:-2]), whole)
        self.assertNotIn("usage", events(ask_chat(sim, chat(stream=True)).body)[-2])

    def test_offered_tools_are_called_with_an_input_for_their_schema(self):
        sim = self.sim()
        want = {"city": "simulated", "days": 1, "unit": "celsius", "exact": True}
        tools = [{"name": "weather", "input_schema": TOOL_SCHEMA}, {"name": "clock", "input_schema": {}}]
        answer = ask(sim, messages(tools=tools)).json()
        self.assertEqual(answer["stop_reason"], "tool_use")
        self.assertEqual([(b["type"], b["name"], b["input"]) for b in answer["content"]],
                         [("tool_use", "weather", want)])
        answer = ask(sim, messages("sim-calls-3", tools=tools)).json()
        self.assertEqual([b["name"] for b in answer["content"]], ["weather", "clock", "weather"])
        self.assertEqual(len({b["id"] for b in answer["content"]}), 3)
        forced = ask(sim, messages(tools=tools, tool_choice={"type": "tool", "name": "clock"})).json()
        self.assertEqual(forced["content"][0]["name"], "clock")
        none = ask(sim, messages(tools=tools, tool_choice={"type": "none"})).json()
        self.assertEqual(none["stop_reason"], "end_turn")

        functions = [{"type": "function", "function": {"name": "weather", "parameters": TOOL_SCHEMA}}]
        choice = ask_chat(sim, chat(tools=functions)).json()["choices"][0]
        self.assertEqual(choice["finish_reason"], "tool_calls")
        call = choice["message"]["tool_calls"][0]
        self.assertEqual((call["type"], call["function"]["name"]), ("function", "weather"))
        self.assertEqual(json.loads(call["function"]["arguments"]), want)

    def test_streamed_tool_calls_put_together_are_the_whole_ones(self):
        sim = self.sim("--default", "calls-2")
        tools = [{"name": "weather", "input_schema": TOOL_SCHEMA}]
        whole = ask(sim, messages(tools=tools)).json()["content"][0]["input"]
        pieces = {}
        for part in events(ask(sim, messages(tools=tools, stream=True)).body):
            if part["type"] == "content_block_delta":
                pieces[part["index"]] = pieces.get(part["index"], "") + part["delta"]["partial_json"]
        self.assertEqual([json.loads(text) for text in pieces.values()], [whole, whole])
        functions = [{"type": "function", "function": {"name": "weather", "parameters": TOOL_SCHEMA}}]
        pieces = {}
        for part in events(ask_chat(sim, chat(tools=functions, stream=True)).body)[:-1]:
            for call in part["choices"][0]["delta"].get("tool_calls", []):
                pieces[call["index"]] = pieces.get(call["index"], "") + call["function"]["arguments"]
        self.assertEqual([json.loads(text) for text in pieces.values()], [whole, whole])

    def test_results_are_quoted_in_the_text_that_follows(self):
        sim = self.sim()
        tools = [{"name": "weather", "input_schema": TOOL_SCHEMA}]
        history = [{"role": "user", "content": "hi"},
                   {"role": "assistant", "content": [
                       {"type": "tool_use", "id": "a", "name": "weather", "input": {}},
                       {"type": "tool_use", "id": "b", "name": "weather", "input": {}}]},
                   {"role": "user", "content": [
                       {"type": "tool_result", "tool_use_id": "a", "content": 'say "22" \\ \u00e9\n'},
                       {"type": "tool_result", "tool_use_id": "b",
                        "content": [{"type": "text", "text": "rain]}"}, {"type": "text", "text": "sun"}]}]}]
        want = 'The tools answered: say "22" \\ \u00e9\n, rain]}, sun'
        answer = ask(sim, messages(tools=tools, messages=history)).json()
        self.assertEqual((answer["stop_reason"], answer["content"][0]["text"]), ("end_turn", want))
        parts = events(ask(sim, messages(tools=tools, messages=history, stream=True)).body)
        self.assertEqual("".join(p["delta"].get("text", "") for p in parts if "delta" in p), want)
        again = ask(sim, messages("sim-loop", tools=tools, messages=history)).json()
        self.assertEqual(again["stop_reason"], "tool_use")

        calls = [{"id": i, "type": "function", "function": {"name": "weather", "arguments": "{}"}} for i in "ab"]
        history = [{"role": "tool", "tool_call_id": "z", "content": "an old one"},
                   {"role": "assistant", "content": None, "tool_calls": calls},
                   {"role": "tool", "tool_call_id": "a", "content": 'say "22" \\ \u00e9\n'},
                   {"role": "tool", "tool_call_id": "b", "content": [
                       {"type": "text", "text": "rain]}"}, {"type": "text", "text": "sun"}]}]
        functions = [{"type": "function", "function": {"name": "weather", "parameters": TOOL_SCHEMA}}]
        choice = ask_chat(sim, chat(tools=functions, messages=history)).json()["choices"][0]
        self.assertEqual((choice["finish_reason"], choice["message"]["content"]), ("stop", want))

    def test_members_inside_strings_and_nested_objects_do_not_count(self):
        sim = self.sim()
        body = (b'{ "metadata" : {"model":"sim-error-500","stream":true,"tools":[{"name":"x"}]},'
                b'"messages":[{"role":"user","content":"\\",\\"model\\":\\"sim-error-500\\",'
                b'\\"stream\\":true,{[\\\\"}] , "max_tokens":7,\n"stream" :false,"model"\t:"claude"}')
        answer = ask(sim, body).json()
        self.assertEqual((answer["type"], answer["model"]), ("message", "claude"))

    def test_reasons_and_counts_can_be_dictated(self):
        sim = self.sim()
        cases = [("sim-length", "max_tokens", "length"), ("sim-refusal", "refusal", "content_filter"),
                 ("sim-obey-size-4000", "max_tokens", "length")]
        for model, anthropic, openai in cases:
            with self.subTest(model):
                self.assertEqual(ask(sim, messages(model)).json()["stop_reason"], anthropic)
                answer = ask_chat(sim, chat(model, max_completion_tokens=5)).json()
                self.assertEqual(answer["choices"][0]["finish_reason"], openai)
        usage = ask(sim, messages("sim-input-1234-output-99")).json()["usage"]
        self.assertEqual((usage["input_tokens"], usage["output_tokens"]), (1234, 99))
        self.assertNotIn("usage", ask_chat(sim, chat("sim-nousage")).json())


class Faults(harness.Case):
    def test_errors_have_the_dialects_body_and_headers(self):
        sim = self.sim()
        answer = ask(sim, messages("sim-error-429-retry-7-code-enforced_spend_limit_reached"))
        self.assertEqual((answer.status, answer.headers["retry-after"]), (429, "7"))
        error = answer.json()["error"]
        self.assertEqual((error["type"], error["details"]["error_code"]),
                         ("rate_limit_error", "enforced_spend_limit_reached"))
        answer = ask_chat(sim, chat("sim-error-429"))
        self.assertEqual((answer.status, answer.json()["error"]["code"]), (429, "rate_limit_exceeded"))
        self.assertNotIn("retry-after", answer.headers)
        answer = ask_chat(sim, chat("sim-error-500-retryms-1500ms"))
        self.assertEqual((answer.status, answer.headers["retry-after-ms"]), (500, "1500"))
        for status, kind in [(400, "invalid_request_error"), (401, "authentication_error"),
                             (500, "api_error"), (529, "overloaded_error")]:
            answer = ask(sim, messages(f"sim-error-{status}"))
            self.assertEqual((answer.status, answer.json()["error"]["type"]), (status, kind))
        self.assertIn("prompt is too long", ask(sim, messages("sim-error-400-context")).json()["error"]["message"])
        self.assertEqual(ask_chat(sim, chat("sim-error-400-context")).json()["error"]["code"],
                         "context_length_exceeded")
        self.assertEqual(sim.stats()["behaviours"],
                         {"error-400": 3, "error-401": 1, "error-429": 2, "error-500": 2, "error-529": 1})

    def test_connections_break_where_told(self):
        sim = self.sim()
        for model, exception in [("sim-close", http.client.RemoteDisconnected),
                                 ("sim-reset", ConnectionResetError),
                                 ("sim-cut", http.client.IncompleteRead),
                                 ("sim-cuthead", http.client.IncompleteRead),
                                 ("sim-garbage", http.client.BadStatusLine)]:
            with self.subTest(model):
                if model == "sim-cuthead":
                    body = json.dumps(messages(model)).encode()
                    head = (b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nanthropic-version: 1\r\nContent-Type: "
                            b"application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
                    got = harness.raw(sim.url, head + body)
                    self.assertTrue(got.startswith(b"HTTP/1.1 200") and b"\r\n\r\n" not in got, got)
                    continue
                with self.assertRaises(exception):
                    ask(sim, messages(model))
        with self.assertRaises(http.client.IncompleteRead) as caught:
            ask(sim, messages("sim-cut", stream=True))
        self.assertIn(b"content_block_delta", caught.exception.partial)
        self.assertNotIn(b"message_stop", caught.exception.partial)
        self.assertEqual(sim.stats()["cancelled"], 0)
        self.assertEqual(sim.stats()["in_flight"], 0)

    def test_broken_bodies_are_complete_as_http(self):
        sim = self.sim()
        with self.assertRaises(ValueError):
            json.loads(ask(sim, messages("sim-badjson")).body)
        self.assertEqual(ask(sim, messages("sim-empty")).body, b"")
        self.assertEqual(ask(sim, messages("sim-html")).status, 502)
        with self.assertRaises(ValueError):
            events(ask(sim, messages("sim-badjson", stream=True)).body)
        parts = events(ask_chat(sim, chat("sim-midway", stream=True)).body)
        self.assertIn("error", parts[-1])
        self.assertIn("content", parts[-2]["choices"][0]["delta"])
        self.assertEqual(len(ask(sim, messages("sim-chunked-size-300")).json()["content"][0]["text"]), 300)

    def test_a_hanging_request_is_counted_as_cancelled_when_its_client_leaves(self):
        sim = self.sim()
        body = json.dumps(messages("sim-hang")).encode()
        peer = http.client.HTTPConnection("127.0.0.1", sim.port)
        peer.request("POST", "/v1/messages", body, ANTHROPIC)
        sim.wait_stats(lambda s: s["in_flight"] == 1, "one in flight")
        peer.close()
        sim.wait_stats(lambda s: s["cancelled"] == 1 and s["in_flight"] == 0, "one cancelled")

    def test_faults_can_be_limited_to_some_requests(self):
        sim = self.sim()
        got = [ask(sim, messages("sim-error-529-first-2")).status for _ in range(4)]
        self.assertEqual(got, [529, 529, 200, 200])
        sim.reset()
        got = [ask(sim, messages("sim-error-500-every-3")).status for _ in range(6)]
        self.assertEqual(got, [200, 200, 500, 200, 200, 500])

    def test_a_stalled_answer_stays_half_as_long_as_its_client_waits(self):
        sim = self.sim()
        for body, want, never in [(messages("sim-stall-size-400"), b"This text", b"stop_reason"),
                                  (messages("sim-stall", stream=True), b"content_block_delta", b"message_stop")]:
            data = json.dumps(body).encode()
            head = (b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nanthropic-version: 1\r\nContent-Type: "
                    b"application/json\r\nContent-Length: %d\r\n\r\n" % len(data))
            with socket.create_connection(("127.0.0.1", sim.port), harness.PATIENCE_S) as peer:
                peer.sendall(head + data)
                got = b""
                while want not in got:
                    got += peer.recv(65536)
                sim.wait_stats(lambda s: s["in_flight"] == 1, "it to be busy with this one alone")
                peer.setblocking(False)
                try:
                    got += peer.recv(65536)
                except BlockingIOError:
                    pass
                self.assertNotIn(never, got)
            sim.wait_stats(lambda s: s["in_flight"] == 0, "the client's leaving to be noticed")
        stats = sim.stats()
        self.assertEqual((stats["behaviours"], stats["cancelled"]), ({"stall": 2}, 2))

    def test_a_fault_may_have_its_time(self):
        sim = self.sim("--default", "error-529-for-300ms")
        harness.wait_for(lambda: ask(sim, messages()).status == 200, "the end of the storm")
        sim.default("error-529-for-3600s")
        self.assertEqual(ask(sim, messages()).status, 529)
        sim.default("error-529-after-300ms")
        self.assertEqual(ask(sim, messages()).status, 200)
        harness.wait_for(lambda: ask(sim, messages()).status == 529, "its begin")

    def test_a_fault_may_have_its_connections_and_keys(self):
        sim = self.sim()
        peers = [http.client.HTTPConnection("127.0.0.1", sim.port) for _ in range(4)]
        got = []
        for peer in peers * 2:
            peer.request("POST", "/v1/messages", json.dumps(messages("sim-error-500-conns-2")), ANTHROPIC)
            answer = peer.getresponse()
            answer.read()
            got.append(answer.status)
        for peer in peers:
            peer.close()
        self.assertEqual(sorted(got[:4]), [200, 200, 500, 500])
        self.assertEqual(got[4:], got[:4])
        for key, status in [("sk-one", 200), ("sk-two", 503), ("two", 503), ("wo", 200)]:
            answer = harness.request("POST", sim.url + "/v1/messages",
                                     json.dumps(messages("sim-error-503-key-two")).encode(),
                                     {**ANTHROPIC, "x-api-key": key})
            self.assertEqual(answer.status, status, key)

    def test_retry_after_comes_in_every_form(self):
        sim = self.sim()
        headers = ask(sim, messages("sim-error-529-retrydate-90s-shouldretry-1")).headers
        ahead = email.utils.parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time()
        self.assertTrue(88 < ahead <= 91, ahead)
        self.assertEqual(headers["x-should-retry"], "true")
        headers = ask(sim, messages("sim-error-529-shouldretry-0")).headers
        self.assertEqual((headers["x-should-retry"], headers.get("retry-after")), ("false", None))

    def test_requests_that_no_provider_would_take_are_refused(self):
        sim = self.sim()
        cases = [("not JSON", b"{", 400), ("behind it", json.dumps(messages()).encode() + b"x", 400),
                 ("no model", {"max_tokens": 1, "messages": [{}]}, 400),
                 ("no messages", messages(messages=[]), 400),
                 ("no max_tokens", {"model": "m", "messages": [{}]}, 400),
                 ("empty tools", messages(tools=[]), 400),
                 ("choice without tools", messages(tool_choice={"type": "auto"}), 400),
                 ("unknown word", messages("sim-eror-500"), 404),
                 ("bad argument", messages("sim-latency-soon"), 404)]
        for name, body, status in cases:
            with self.subTest(name):
                self.assertEqual(ask(sim, body).status, status)
        answer = harness.request("POST", sim.url + "/v1/messages", json.dumps(messages()).encode(), OPENAI)
        self.assertIn("anthropic-version", answer.json()["error"]["message"])
        sim = self.sim("--api-key", "right")
        self.assertEqual(ask(sim, messages()).status, 401)
        for headers, status in [({"x-api-key": "right"}, 200), ({"x-api-key": "wrong"}, 401),
                                ({"Authorization": "Bearer right"}, 200)]:
            answer = harness.request("POST", sim.url + "/v1/messages", json.dumps(messages()).encode(),
                                     {**ANTHROPIC, **headers})
            self.assertEqual(answer.status, status)


class Quotas(harness.Case):
    """What a key has left is told with every answer, and a key with nothing left is refused until its window ends."""

    def ask(self, sim, key, model="claude", path="/v1/messages"):
        header = {"x-api-key": key} if path.endswith("messages") else {"Authorization": "Bearer " + key}
        return harness.request("POST", sim.url + path, json.dumps(messages(model)).encode(), {**ANTHROPIC, **header})

    def test_requests_of_each_key_count_down_until_none_is_left(self):
        sim = self.sim("--default", "quota-2-window-3600s")
        answers = [self.ask(sim, "a") for _ in range(3)]
        self.assertEqual([answer.status for answer in answers], [200, 200, 429])
        self.assertEqual([answer.headers["anthropic-ratelimit-requests-remaining"] for answer in answers],
                         ["1", "0", "0"])
        self.assertEqual(answers[0].headers["anthropic-ratelimit-requests-limit"], "2")
        self.assertTrue(3590 < int(answers[2].headers["retry-after"]) <= 3600)
        self.assertNotIn("retry-after", answers[1].headers)
        reset = datetime.datetime.fromisoformat(answers[0].headers["anthropic-ratelimit-requests-reset"])
        self.assertTrue(3590 < reset.timestamp() - time.time() <= 3601)
        self.assertEqual(self.ask(sim, "b").status, 200)
        self.assertEqual(sim.stats()["keys"],
                         {"a": {"requests": 3, "refused": 1}, "b": {"requests": 1, "refused": 0}})
        sim.reset()
        self.assertEqual((self.ask(sim, "a").status, sim.stats()["keys"]["a"]["requests"]), (200, 1))

    def test_a_window_ends(self):
        sim = self.sim("--default", "quota-1-window-300ms")
        self.assertEqual(self.ask(sim, "a").status, 200)
        harness.wait_for(lambda: self.ask(sim, "a").status == 200, "the next window")

    def test_tokens_count_too(self):
        sim = self.sim("--default", "tokenquota-100-window-3600s-size-200")
        first = self.ask(sim, "a")
        left = int(first.headers["anthropic-ratelimit-tokens-remaining"])
        self.assertTrue(0 < left < 100, left)
        harness.wait_for(lambda: self.ask(sim, "a").status == 429, "the last token")

    def test_an_answer_may_have_the_header_lines_of_a_real_one(self):
        """Each once, and limits that hold nobody back; the connection stays, or does not."""
        for path, lines, left in [("/v1/messages", 25, "anthropic-ratelimit-output-tokens-remaining"),
                                  ("/v1/chat/completions", 23, "x-ratelimit-remaining-tokens")]:
            answer = self.ask(self.sim("--default", "lines"), "a", path=path)
            self.assertEqual((answer.status, len(answer.headers)), (200, lines), path)
            self.assertGreater(int(answer.headers[left]), 100000)
            self.assertEqual(answer.headers["connection"], "keep-alive")
        self.assertEqual(self.ask(self.sim("--default", "once-lines"), "a").headers["connection"], "close")

    def test_the_other_dialect_has_headers_of_its_own(self):
        sim = self.sim("--default", "quota-9-tokenquota-1000")
        path = "/v1/chat/completions"
        for window, form in [("5ms", r"\dms"), ("30s", r"(29|30)(\.\d{3})?s"), ("400s", r"6m\d+(\.\d{3})?s"),
                             ("7200s", r"(1h59m\d+(\.\d{3})?s|2h0m0s)")]:
            headers = self.ask(sim, "key of " + window, "sim-window-" + window, path).headers
            self.assertEqual((headers["x-ratelimit-limit-requests"], headers["x-ratelimit-remaining-requests"]),
                             ("9", "8"))
            self.assertRegex(headers["x-ratelimit-reset-tokens"], f"^{form}$")
        self.assertNotIn("x-ratelimit-limit-tokens", ask_chat(self.sim(), chat()).headers)


class Health(harness.Case):
    def test_it_tells_the_truth_unless_told_otherwise(self):
        sim = self.sim()
        for words, status in [("", 200), ("error-529", 529), ("badjson", 503), ("sick", 503), ("error-500-well", 200),
                              ("error-500-after-3600s", 200)]:
            sim.default(words)
            self.assertEqual(harness.request("GET", sim.url + "/health").status, status, words)
        for words in ("close", "reset"):
            sim.default(words)
            with self.assertRaises(OSError):
                harness.request("GET", sim.url + "/health")
        sim.default("hang")
        peer = http.client.HTTPConnection("127.0.0.1", sim.port)
        peer.request("GET", "/health")
        sim.wait_stats(lambda s: s["in_flight"] == 1, "the question")
        peer.close()
        sim.wait_stats(lambda s: s["in_flight"] == 0, "its end")
        self.assertEqual((sim.stats()["health"], sim.stats()["requests"]), (9, 0))


class Timing(harness.Case):
    def test_latency_pace_and_dribble_take_their_time(self):
        sim = self.sim()
        self.assertGreaterEqual(ask(sim, messages("sim-latency-80ms")).elapsed_s, 0.08)
        answer = ask(sim, messages("sim-pace-10ms-size-64-chunk-8", stream=True))
        self.assertEqual(events(answer.body)[-1]["type"], "message_stop")
        self.assertGreaterEqual(answer.elapsed_s, 0.09)
        deltas = sum(event["type"] == "content_block_delta" for event in events(answer.body))
        self.assertGreaterEqual(sim.stats()["pauses"], deltas)
        answer = ask(sim, messages("sim-dribble-200us-size-0"))
        self.assertEqual(answer.json()["content"][0]["text"], "")
        self.assertGreaterEqual(answer.elapsed_s, 0.04)

    def test_waiting_requests_do_not_hold_up_others(self):
        sim = self.sim()
        done = []
        waiting = [threading.Thread(target=lambda: done.append(ask(sim, messages("sim-latency-1s")).status))
                   for _ in range(20)]
        for thread in waiting:
            thread.start()
        sim.wait_stats(lambda s: s["in_flight"] == 20, "20 in flight")
        self.assertEqual(ask(sim, messages()).status, 200)
        for thread in waiting:
            thread.join()
        self.assertEqual(done, [200] * 20)
        self.assertEqual(sim.stats()["in_flight"], 0)


class Connections(harness.Case):
    def head(self, body, extra=b""):
        return (b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                + extra + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def test_pipelined_requests_are_answered_in_order(self):
        sim = self.sim()
        bodies = [json.dumps(chat(f"sim-size-{10 + i}" + ("-latency-20ms" if i % 3 == 0 else ""))).encode()
                  for i in range(12)]
        data = b"".join(self.head(body) for body in bodies[:-1])
        data += self.head(bodies[-1], b"Connection: close\r\n")
        for step in (len(data), 1, 700):
            with self.subTest(step=step), socket.create_connection(("127.0.0.1", sim.port)) as peer:
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for at in range(0, len(data), step):
                    peer.sendall(data[at:at + step])
                got = b""
                while piece := peer.recv(65536):
                    got += piece
                sizes = [len(json.loads(part.split(b"\r\n\r\n", 1)[1])["choices"][0]["message"]["content"])
                         for part in got.split(b"HTTP/1.1 200 OK\r\n")[1:]]
                self.assertEqual(sizes, [10 + i for i in range(12)])

    def test_chunked_bodies_are_put_together(self):
        sim = self.sim()
        body = json.dumps(messages("claude", system="x" * 5000)).encode()
        peer = http.client.HTTPConnection("127.0.0.1", sim.port)
        pieces = (body[at:at + 700] for at in range(0, len(body), 700))
        peer.request("POST", "/v1/messages", pieces, ANTHROPIC, encode_chunked=True)
        self.assertEqual(peer.getresponse().read()[:12], b'{"id":"msg_s')
        peer.close()
        self.assertEqual(sim.last_body(), body)
        last = sim.last()
        self.assertEqual((last["body"]["model"], last["headers"]["transfer-encoding"], last["path"]),
                         ("claude", "chunked", "/v1/messages"))

    def test_large_bodies_and_answers_pass(self):
        sim = self.sim()
        body = json.dumps(messages("sim-size-3000000", system="x" * 5000000)).encode()
        self.assertEqual(len(ask(sim, body).json()["content"][0]["text"]), 3000000)
        self.assertEqual(len(sim.last_body()), len(body))

    def test_connections_are_kept_and_counted(self):
        sim = self.sim()
        peer = http.client.HTTPConnection("127.0.0.1", sim.port)
        for position in range(1, 4):
            peer.request("POST", "/v1/messages", json.dumps(messages()), ANTHROPIC)
            peer.getresponse().read()
            self.assertEqual(sim.last()["position"], position)
        peer.close()
        self.assertEqual((sim.stats()["connections"], sim.stats()["requests"]), (1, 3))
        sim.reset()
        self.assertEqual(sim.stats()["requests"], 0)

    def test_a_connection_may_wear_out(self):
        sim = self.sim("--default", "uses-2")
        peer = http.client.HTTPConnection("127.0.0.1", sim.port)
        ends = []
        for _ in range(5):  # reconnects by itself
            peer.request("POST", "/v1/messages", json.dumps(messages()), ANTHROPIC)
            answer = peer.getresponse()
            answer.read()
            ends.append(answer.will_close)
        peer.close()
        self.assertEqual(ends, [False, True, False, True, False])
        self.assertEqual(sim.stats()["connections"], 3)

    def test_ambiguous_framing_is_refused(self):
        sim = self.sim()
        for name, head in [("both lengths", b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
                           ("two lengths", b"Content-Length: 3\r\nContent-Length: 3\r\n"),
                           ("signed length", b"Content-Length: +3\r\n"),
                           ("space in a name", b"Content-Length : 3\r\n"),
                           ("bare LF", b"Content-Length: 3\nX: y\r\n"),
                           ("bad chunk", b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")]:
            with self.subTest(name):
                got = harness.raw(sim.url, b"POST /v1/messages HTTP/1.1\r\n" + head + b"\r\n{}\n")
                self.assertTrue(got.startswith(b"HTTP/1.1 400 "), got)

    def test_the_default_behaviour_can_be_changed_while_it_runs(self):
        sim = self.sim("--threads", "2", "--latency", "1ms")
        self.assertEqual({ask(sim, messages()).status for _ in range(8)}, {200})
        sim.default("error-503")
        self.assertEqual({ask(sim, messages()).status for _ in range(8)}, {503})
        sim.default("")
        self.assertEqual({ask(sim, messages()).status for _ in range(8)}, {200})
        self.assertEqual(sim.stats()["requests"], 24)

    def test_tls_speaks_the_versions_allowed(self):
        cert, key = self.certificate()
        for version in ("1.2", "1.3"):
            sim = self.sim("--cert", cert, "--key", key, "--tls-min", version, "--tls-max", version)
            self.assertEqual(ask(sim, messages("sim-latency-1ms-size-100000")).status, 200)
            self.assertEqual(sim.last()["tls"]["version"], "TLSv" + version)
            with self.assertRaises((http.client.IncompleteRead, OSError)):
                ask(sim, messages("sim-cut"))


if __name__ == "__main__":
    harness.main()
