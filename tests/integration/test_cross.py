#!/usr/bin/env python3
"""A caller of one provider's API and a model whose provider speaks another format (codec/cross): requests, answers and streams
are translated, what cannot be said there is refused by name.

ctest: timeout=120
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
from told_provider import Provider

PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions"}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}


def chunk(delta=None, finish=None, **more):
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return "data: %s\n\n" % json.dumps({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-test",
                                        "choices": choices, **more})


def fragment(index, arguments, id=None, name=None):
    call = {"index": index, "function": {"arguments": arguments}}
    if id is not None:
        call |= {"id": id, "type": "function"}
        call["function"]["name"] = name
    return chunk({"tool_calls": [call]})


def event(type, **members):
    return "event: %s\ndata: %s\n\n" % (type, json.dumps({"type": type, **members}))


def begins(**usage):
    return event("message_start", message={"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test",
                                           "content": [], "usage": {"input_tokens": 7, "output_tokens": 1, **usage}})


def ends(reason, **usage):
    return (event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 3, **usage})
            + event("message_stop"))


USAGE = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25, "prompt_tokens_details": {"cached_tokens": 8}}


def assembled_chat(text):
    """What an SDK makes of a Chat stream: content, calls, finish reason, usage; each line judged."""
    content, calls, finish, usage = "", [], None, None
    blocks = text.split("\n\n")
    assert blocks[-1] == "" and blocks[-2] == "data: [DONE]", blocks[-3:]
    ids = set()
    for block in blocks[:-2]:
        assert block.startswith("data: ") and "\n" not in block, block
        data = json.loads(block[6:])
        ids.add((data["id"], data["created"], data["model"], data["object"]))
        for choice in data["choices"]:
            assert finish is None, "a choice behind the finish reason"
            content += choice["delta"].get("content") or ""
            for call in choice["delta"].get("tool_calls", ()):
                if call["index"] == len(calls):
                    calls.append([call["id"], call["function"]["name"], ""])
                calls[call["index"]][2] += call["function"]["arguments"]
            finish = choice["finish_reason"] or finish
        usage = data.get("usage") or usage
    assert len(ids) == 1, ids
    return content, calls, finish, usage


def assembled_messages(text):
    """The same of a Messages stream, whose grammar is judged."""
    blocks, open_at, reason, usage, types = [], None, None, {}, []
    for part in text.split("\n\n")[:-1]:
        name, data = part.split("\n")
        data = json.loads(data.removeprefix("data: "))
        assert name == "event: " + data["type"], part
        types.append(data["type"])
        if data["type"] == "message_start":
            usage |= data["message"]["usage"]
        elif data["type"] == "content_block_start":
            assert open_at is None and data["index"] == len(blocks), part
            open_at = data["index"]
            block = data["content_block"]
            blocks.append(block | ({"input": ""} if block["type"] == "tool_use" else {}))
        elif data["type"] == "content_block_delta":
            assert data["index"] == open_at, part
            delta = data["delta"]
            if delta["type"] == "text_delta":
                blocks[-1]["text"] += delta["text"]
            else:
                assert delta["type"] == "input_json_delta" and blocks[-1]["type"] == "tool_use", part
                blocks[-1]["input"] += delta["partial_json"]
        elif data["type"] == "content_block_stop":
            assert data["index"] == open_at, part
            open_at = None
        elif data["type"] == "message_delta":
            reason = data["delta"]["stop_reason"]
            usage |= data["usage"]
    assert types[0] == "message_start" and types[-2:] == ["message_delta", "message_stop"] and open_at is None, types
    for block in blocks:
        if block["type"] == "tool_use":
            block["input"] = json.loads(block["input"] or "{}")
    return blocks, reason, usage


class Cross(harness.Case):
    def setUp(self):
        self.provider = Provider()
        self.addCleanup(self.provider.stop)

    def start(self, **changes):
        changes.setdefault("retries", {"attempts": 1})
        changes.setdefault("models", [harness.model("claude-test", "anthropic", profile={"image": True}),
                                      harness.model("gpt-test", "openai", profile={"image": True})])
        return self.gateway(harness.config(self.provider, **changes))

    def messages(self, gateway, status=200, **members):
        """A Messages caller of an OpenAI model; what the provider was sent, and the answer."""
        body = {"model": "gpt-test", "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}], **members}
        return self.ask(gateway, "messages", body, status)

    def chat(self, gateway, status=200, **members):
        body = {"model": "claude-test", "messages": [{"role": "user", "content": "hi"}], **members}
        return self.ask(gateway, "chat", body, status)

    def ask(self, gateway, api, body, status):
        before = len(self.provider.seen)
        answer = gateway.post(json.dumps(body).encode(), path=PATHS[api])
        self.assertEqual(answer.status, status, answer)
        sent = json.loads(self.provider.seen[-1][2]) if len(self.provider.seen) > before else None
        self.assertEqual(sent is None, status in (400, 403, 404), answer)
        return sent, answer

    def says_chat(self, message=None, finish="stop", usage=None):
        message = {"role": "assistant", "content": "Hi", **(message or {})}
        self.provider.says(json.dumps({
            "id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-test",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage or USAGE}).encode())

    def says_messages(self, content=None, reason="end_turn", **usage):
        self.provider.says(json.dumps({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test",
            "content": content or [{"type": "text", "text": "Hi"}], "stop_reason": reason, "stop_sequence": None,
            "usage": {"input_tokens": 7, "output_tokens": 3, **usage}}).encode())

    def streams(self, text):
        self.provider.streams(text.encode())

    # ---- Messages in front of an OpenAI model ----

    def test_a_messages_request_goes_to_a_chat_provider(self):
        gateway = self.start()
        self.says_chat()
        sent, answer = self.messages(
            gateway, system=[{"type": "text", "text": "x-anthropic-billing-header: a"}, {"type": "text", "text": "Be\nbrief."}],
            stop_sequences=["STOP"], temperature=0.5, metadata={"user_id": "u-1"}, top_k=3, thinking={"type": "disabled"},
            tools=[{"name": "weather", "description": "d", "input_schema": SCHEMA}, {"name": "now", "input_schema": {}}],
            tool_choice={"type": "any", "disable_parallel_tool_use": True},
            messages=[
                {"role": "user", "content": [{"type": "text", "text": "look \u2028 \"there\""},
                                             {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}]},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": ""},
                                                  {"type": "text", "text": "Let me see."},
                                                  {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Rome", "n": 1.50}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "18 degrees"},
                                             {"type": "text", "text": "and now?"}]}])
        self.assertEqual(sent["model"], "gpt-test")
        roles = [message["role"] for message in sent["messages"]]
        self.assertEqual(roles, ["system", "user", "assistant", "tool", "user"], sent)
        self.assertEqual(sent["messages"][0]["content"], "Be\nbrief.")
        self.assertEqual(sent["messages"][1]["content"][0], {"type": "text", "text": "look \u2028 \"there\""})
        self.assertEqual(sent["messages"][1]["content"][1]["image_url"]["url"], "data:image/png;base64," + PIXEL)
        call = sent["messages"][2]["tool_calls"][0]
        self.assertEqual((call["id"], call["function"]["name"]), ("t1", "weather"))
        self.assertEqual(json.loads(call["function"]["arguments"]), {"city": "Rome", "n": 1.5})
        self.assertEqual((sent["messages"][3]["tool_call_id"], sent["messages"][3]["content"]), ("t1", "18 degrees"))
        self.assertEqual([tool["function"]["name"] for tool in sent["tools"]], ["weather", "now"])
        self.assertEqual(sent["tool_choice"], "required")
        self.assertIs(sent["parallel_tool_calls"], False)
        got = answer.json()
        self.assertEqual((got["type"], got["role"], got["model"], got["stop_reason"], got["stop_sequence"]),
                         ("message", "assistant", "gpt-test", "end_turn", None))
        self.assertTrue(got["id"].startswith("msg_"))
        self.assertEqual(got["content"], [{"type": "text", "text": "Hi"}])
        self.assertEqual(got["usage"], {"input_tokens": 12, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 8,
                                        "output_tokens": 5})
        adjustments = answer.headers["sluice-adjustments"]
        for code in ("members_dropped", "thinking_not_replayed"):
            self.assertIn(code, adjustments)
        self.assertEqual(answer.headers["sluice-model"], "gpt-test")
        line = gateway.log(answer.headers["request-id"])
        self.assertEqual((line["front"], line["status"]), ("messages", 200))
        self.assertGreater(float(answer.headers["sluice-usd"]), 0)

    def test_calls_lengths_and_refusals_have_the_stop_reasons_of_messages(self):
        gateway = self.start()
        call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Rome\"}"}}
        tools = [{"name": "weather", "input_schema": SCHEMA}]
        for message, finish, content, reason in (
                ({"content": None, "tool_calls": [call]}, "tool_calls",
                 [{"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Rome"}}], "tool_use"),
                ({"content": "See:", "tool_calls": [call]}, "stop",
                 [{"type": "text", "text": "See:"}, {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Rome"}}],
                 "tool_use"),
                ({"content": "cut"}, "length", [{"type": "text", "text": "cut"}], "max_tokens")):
            self.says_chat(message, finish)
            _, answer = self.messages(gateway, tools=tools)
            self.assertEqual((answer.json()["content"], answer.json()["stop_reason"]), (content, reason))
        self.says_chat({"content": None, "refusal": "No."}, "stop")
        _, answer = self.messages(gateway)
        self.assertEqual(answer.json()["stop_reason"], "refusal")

    def test_a_chat_stream_becomes_a_messages_stream(self):
        gateway = self.start()
        self.streams(chunk({"role": "assistant", "content": ""}) + chunk({"content": "Let me \u2028 see"}) + chunk({"content": "."})
                     + fragment(0, "", "call_1", "weather") + fragment(0, "{\"city\":") + fragment(1, "", "call_2", "now")
                     + fragment(0, "\"}{\"}") + fragment(1, "{}") + chunk({}, "tool_calls") + chunk(usage=USAGE) + "data: [DONE]\n\n")
        sent, answer = self.messages(gateway, stream=True, tools=[{"name": "weather", "input_schema": SCHEMA},
                                                                  {"name": "now", "input_schema": {}}])
        self.assertTrue(sent["stream"])
        blocks, reason, usage = assembled_messages(answer.body.decode())
        self.assertEqual([(block["type"], block.get("text"), block.get("name"), block.get("input")) for block in blocks],
                         [("text", "Let me \u2028 see.", None, None), ("tool_use", None, "weather", {"city": "}{"}),
                          ("tool_use", None, "now", {})])
        self.assertEqual(reason, "tool_use")
        self.assertEqual((usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]), (12, 8, 5))

    def test_a_stream_that_is_cut_ends_with_an_error(self):
        gateway = self.start()
        whole = chunk({"role": "assistant", "content": "Hello"}) + chunk({"content": " there"}) + chunk({}, "stop") + "data: [DONE]\n\n"
        self.streams(whole[:whole.index('" there"') - 20])
        body = {"model": "gpt-test", "max_tokens": 99, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        answer = gateway.post(json.dumps(body).encode(), path=PATHS["messages"])
        self.assertIn(b"Hello", answer.body)
        self.assertTrue(answer.body.split(b"\n\n")[-2].startswith(b"event: error\n"), answer.body)
        self.assertNotIn(b"message_stop", answer.body)

    # ---- Chat in front of Claude ----

    def test_a_chat_request_goes_to_anthropic(self):
        gateway = self.start()
        self.says_messages(cache_read_input_tokens=4, cache_creation_input_tokens=2)
        call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Rome\"}"}}
        sent, answer = self.chat(
            gateway, max_completion_tokens=77, stop="END", temperature=1.5, seed=4, user="u-1", parallel_tool_calls=False,
            tools=[{"type": "function", "function": {"name": "weather", "description": "d", "parameters": SCHEMA, "strict": True}},
                   {"type": "function", "function": {"name": "now"}}],
            tool_choice={"type": "function", "function": {"name": "weather"}},
            messages=[{"role": "system", "content": "Be brief."}, {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
                      {"role": "user", "content": [{"type": "text", "text": "look"},
                                                   {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PIXEL}}]},
                      {"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": "call_2", "function": {
                          "name": "now", "arguments": "no json"}}]},
                      {"role": "tool", "tool_call_id": "call_1", "content": "18"}, {"role": "tool", "tool_call_id": "call_2", "content": ""},
                      {"role": "user", "content": "and?"}])
        self.assertEqual((sent["model"], sent["max_tokens"], sent["stop_sequences"]), ("claude-test", 77, ["END"]))
        system = sent["system"] if isinstance(sent["system"], str) else sent["system"][0]["text"]
        self.assertEqual(system, "Be brief.\n\nBe kind.")
        self.assertEqual([message["role"] for message in sent["messages"]][:3], ["user", "assistant", "user"])
        image = sent["messages"][0]["content"][1]
        self.assertEqual((image["type"], image["source"]["media_type"], image["source"]["data"]), ("image", "image/png", PIXEL))
        uses = [block for block in sent["messages"][1]["content"] if block["type"] == "tool_use"]
        self.assertEqual([(use["id"], use["input"]) for use in uses], [("call_1", {"city": "Rome"}), ("call_2", {})])
        results = [block for block in sent["messages"][2]["content"] if block["type"] == "tool_result"]
        self.assertEqual([result["tool_use_id"] for result in results], ["call_1", "call_2"])
        self.assertIn("weather", [tool["name"] for tool in sent["tools"]])
        self.assertEqual(sent["tool_choice"]["type"], "any")
        self.assertIs(sent["tool_choice"]["disable_parallel_tool_use"], True)
        got = answer.json()
        self.assertEqual((got["object"], got["model"]), ("chat.completion", "claude-test"))
        self.assertTrue(got["id"].startswith("chatcmpl-"))
        self.assertGreater(got["created"], 1700000000)
        choice = got["choices"][0]
        self.assertEqual((choice["index"], choice["message"]["content"], choice["finish_reason"]), (0, "Hi", "stop"))
        self.assertNotIn("tool_calls", choice["message"])
        self.assertEqual((got["usage"]["prompt_tokens"], got["usage"]["completion_tokens"], got["usage"]["total_tokens"],
                          got["usage"]["prompt_tokens_details"]["cached_tokens"]), (13, 3, 16, 4))
        for code in ("members_dropped", "tool_arguments_replaced", "temperature_dropped"):
            self.assertIn(code, answer.headers["sluice-adjustments"])

    def test_calls_lengths_and_refusals_have_the_finish_reasons_of_chat(self):
        gateway = self.start()
        use = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "R\u00f6m"}}
        tools = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
        self.says_messages([{"type": "text", "text": "See:"}, use], "tool_use")
        _, answer = self.chat(gateway, tools=tools)
        message = answer.json()["choices"][0]["message"]
        self.assertEqual((message["content"], answer.json()["choices"][0]["finish_reason"]), ("See:", "tool_calls"))
        self.assertEqual(message["tool_calls"][0]["id"], "t1")
        self.assertEqual(json.loads(message["tool_calls"][0]["function"]["arguments"]), {"city": "R\u00f6m"})
        self.says_messages([use], "tool_use")
        _, answer = self.chat(gateway, tools=tools)
        self.assertIsNone(answer.json()["choices"][0]["message"]["content"])
        for reason, finish in (("max_tokens", "length"), ("refusal", "content_filter"), ("stop_sequence", "stop")):
            self.says_messages(reason=reason)
            _, answer = self.chat(gateway)
            self.assertEqual(answer.json()["choices"][0]["finish_reason"], finish)

    def test_a_messages_stream_becomes_a_chat_stream(self):
        gateway = self.start()
        text = (begins() + event("content_block_start", index=0, content_block={"type": "thinking", "thinking": "", "signature": ""})
                + event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "hm"})
                + event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "s"})
                + event("content_block_stop", index=0) + event("ping")
                + event("content_block_start", index=1, content_block={"type": "text", "text": ""})
                + event("content_block_delta", index=1, delta={"type": "text_delta", "text": "Let me"})
                + event("content_block_delta", index=1, delta={"type": "text_delta", "text": " \"see\""})
                + event("content_block_stop", index=1)
                + event("content_block_start", index=2, content_block={"type": "tool_use", "id": "t1", "name": "weather", "input": {}})
                + event("content_block_delta", index=2, delta={"type": "input_json_delta", "partial_json": "{\"city\":"})
                + event("content_block_delta", index=2, delta={"type": "input_json_delta", "partial_json": "\"Rome\"}"})
                + event("content_block_stop", index=2)
                + event("content_block_start", index=3, content_block={"type": "tool_use", "id": "t2", "name": "now", "input": {}})
                + event("content_block_stop", index=3) + ends("tool_use"))
        tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("weather", "now")]
        for asked in (True, False):
            self.streams(text)
            _, answer = self.chat(gateway, stream=True, tools=tools, **({"stream_options": {"include_usage": True}} if asked else {}))
            content, calls, finish, usage = assembled_chat(answer.body.decode())
            self.assertEqual((content, finish), ("Let me \"see\"", "tool_calls"))
            self.assertEqual([call[:2] for call in calls], [["t1", "weather"], ["t2", "now"]])
            self.assertEqual([json.loads(call[2]) for call in calls], [{"city": "Rome"}, {}])
            self.assertEqual(usage and usage["completion_tokens"], 3 if asked else None)

    def test_a_long_stream_takes_no_memory_for_each_of_its_pieces(self):
        gateway = self.start()
        pieces = ["%d " % n for n in range(120000)]
        self.streams(chunk({"role": "assistant", "content": ""}) + "".join(chunk({"content": piece}) for piece in pieces)
                     + chunk({}, "stop") + "data: [DONE]\n\n")
        _, answer = self.messages(gateway, stream=True)
        blocks, reason, _ = assembled_messages(answer.body.decode())
        self.assertEqual((blocks[0]["text"], reason), ("".join(pieces), "end_turn"))

    # ---- both ----

    def test_a_schema_of_the_answer_is_asked_for_and_its_json_is_the_text(self):
        gateway = self.start()
        self.says_messages([{"type": "tool_use", "id": "t1", "name": "__schema__", "input": {"city": "Rome"}}], "tool_use")
        _, answer = self.chat(gateway, response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}})
        choice = answer.json()["choices"][0]
        self.assertEqual((json.loads(choice["message"]["content"]), choice["finish_reason"]), ({"city": "Rome"}, "stop"))
        call = {"id": "c", "type": "function", "function": {"name": "__schema__", "arguments": "{\"city\":\"Rome\"}"}}
        self.says_chat({"content": None, "tool_calls": [call]}, "tool_calls")
        _, answer = self.messages(gateway, output_config={"format": {"type": "json_schema", "schema": SCHEMA}})
        self.assertEqual(json.loads(answer.json()["content"][0]["text"]), {"city": "Rome"})
        self.assertEqual(answer.json()["stop_reason"], "end_turn")

    def test_what_cannot_be_said_there_is_refused_by_name(self):
        gateway = self.start()
        for members, path in (
                ({"novel": 1}, "novel"), ({"messages": [{"role": "user", "content": [{"type": "novel"}]}]}, "messages.0.content.0"),
                ({"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "base64", "data": "aGk="}}]}]},
                 "messages.0.content.0"),
                ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools.0"),
                ({"tools": [{"name": "a", "input_schema": {}}], "tool_choice": {"type": "tool", "name": "b"}}, "tool_choice")):
            _, answer = self.messages(gateway, 400, **members)
            self.assertIn(path + ":", answer.json()["error"]["message"], members)
        for members, path in (
                ({"logprobs": True}, "logprobs"), ({"functions": [{"name": "f"}]}, "functions"),
                ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk="}}]}]},
                 "messages[0].content[0]"),
                ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0]"),
                ({"tools": [{"type": "function", "function": {"name": "x"}, "name": "y"}]}, "tools[0].name"),
                ({"messages": [{"role": "user", "content": "a"}, {"role": "tool", "tool_call_id": "x", "content": "y"}]}, "messages")):
            _, answer = self.chat(gateway, 400, **members)
            self.assertTrue(answer.json()["error"]["param"].startswith(path), (members, answer))

    def test_policy_and_its_system_prompt_hold(self):
        settings = harness.config(self.provider, retries={"attempts": 1})
        settings["plans"]["standard"]["policy"] = {"system": {"prefix": "House rule."}, "metadata": {"user_id": "drop"}}
        gateway = self.gateway(settings)
        self.says_messages()
        sent, _ = self.chat(gateway, user="u", messages=[{"role": "system", "content": "Mine."}, {"role": "user", "content": "hi"}])
        system = sent["system"] if isinstance(sent["system"], str) else sent["system"][0]["text"]
        self.assertEqual(system, "House rule.\n\nMine.")
        self.assertNotIn("metadata", sent)

    def test_a_model_that_is_disabled_hides_no_model_of_the_other_format(self):
        models = [harness.model("claude-test", "anthropic", enabled=False, aliases=["assistant"]),
                  harness.model("gpt-test", "openai", aliases=["assistant"])]
        gateway = self.start(models=models)
        self.says_chat()
        _, answer = self.messages(gateway, model="assistant")
        self.assertEqual((answer.headers["sluice-model"], answer.json()["model"]), ("gpt-test", "assistant"))

    def test_signed_thinking_stays_with_its_own_format(self):
        gateway = self.start()
        _, answer = self.messages(gateway, 404, messages=[
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "sealed"}, {"type": "text", "text": "a"}]},
            {"role": "user", "content": "and?"}])
        self.assertEqual(answer.json()["error"]["type"], "not_found_error")


if __name__ == "__main__":
    harness.main()
