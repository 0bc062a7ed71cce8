"""Providers whose models think in a tool loop and want their thoughts back (contract/providers.md 0.3, 0.8, 2.1, 4).

A Thinker is a real HTTP server. It calls the first tool until its `rounds` are over, or calls are forbidden,
and then answers with a text that says how many rounds it has seen. Each call comes with thoughts that only
its provider can read; every later request has to have them back, as they were and where they were: else 400.
"""

import hashlib
import json

import hosts


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


class Thinker(hosts.Host):
    key = "sk-provider-0123456789"
    gone = "a block is missing"  # what a missing one is refused with

    def __init__(self, rounds=10, needs_all=True, length=0):
        super().__init__()
        self.rounds, self.needs_all = rounds, needs_all
        self.length = length  # of what each thought has to say besides, in bytes
        self.thoughts = {}  # by id of the call: what has to come back, and the digest of what was before
        self.given_back = []  # of each request: how many of its turns had their thoughts
        self.made = 0
        self.deaf = None  # one of REFUSALS: thoughts are refused with it, whosever they are
        self.sulks = False  # and so is what has none

    def key_of(self, handler):
        return handler.headers.get("x-api-key") or handler.headers.get("authorization", "").removeprefix("Bearer ")

    def check_head(self, handler):
        hosts.need(handler.path == self.path, f"no such path: {handler.path}", status=404)
        hosts.need(self.key_of(handler) == self.key, "no API key", status=401)

    def check_thoughts(self, turns):
        """turns: of each turn with calls its id, its thoughts (or None), and what is before it."""
        back = [thoughts for _, thoughts, _ in turns if thoughts]
        self.given_back.append(len(back))
        if self.deaf and (back or self.sulks):
            raise self.deaf
        if self.needs_all:
            hosts.need(len(back) == len(turns), self.gone)
        else:
            there = [bool(thoughts) for _, thoughts, _ in turns]
            hosts.need(there == sorted(there), "only some blocks are there")  # a turn's are bound to those before it
        for id, thoughts, before in turns:
            if thoughts:
                hosts.need(self.thoughts[id] == (thoughts, digest(before)),
                           "The block is bound to a different conversation")

    def think(self, before):
        """A new call's id, and a thought for it; remember() keeps what it became."""
        self.made += 1
        return f"call_{self.made}", f"thought {self.made}: \"{digest(before)[:8]}\" é\n" + "m" * self.length

    def remember(self, id, thoughts, before):
        self.thoughts[id] = (thoughts, digest(before))


class Anthropic(Thinker):
    path = "/v1/messages"

    def check(self, body):
        turns = []
        for i, message in enumerate(body["messages"]):
            calls = [block for block in message["content"] if block["type"] == "tool_use"]
            if calls:
                thoughts = [block for block in message["content"] if block["type"].endswith("thinking")]
                turns.append((calls[0]["id"], thoughts or None,
                              [body.get("system"), body.get("tools"), body["messages"][:i]]))
        self.check_thoughts(turns)

    def respond(self, body):
        before = [body.get("system"), body.get("tools"), body["messages"]]
        turns = self.given_turns(body)
        id, thought = self.think(before)
        thoughts = [{"type": "thinking", "thinking": thought, "signature": "sig+/" + id},
                    {"type": "redacted_thinking", "data": "data" + id}]
        if turns < self.rounds and body.get("tool_choice", {}).get("type") != "none":
            self.remember(id, thoughts, before)
            content = thoughts + [{"type": "tool_use", "id": id, "name": body["tools"][0]["name"],
                                   "input": {"round": turns, "b": {"z": 1.0, "a": "é"}}}]
        else:
            content = [{"type": "text", "text": f"{turns} rounds"}]
        stop = "tool_use" if content[-1]["type"] == "tool_use" else "end_turn"
        answer = {"id": f"msg_{self.made}", "type": "message", "role": "assistant", "model": body["model"],
                  "content": content, "stop_reason": stop, "stop_sequence": None,
                  "usage": {"input_tokens": 100, "output_tokens": 20}}
        if body.get("stream"):
            return 200, {"content-type": "text/event-stream"}, "".join(self.events(answer))
        return 200, {}, json.dumps(answer)

    def given_turns(self, body):
        return sum(any(block["type"] == "tool_use" for block in message["content"]) for message in body["messages"])

    def error(self, refused):
        return {"type": "error", "error": {"type": "invalid_request_error", "message": str(refused)}}

    def events(self, answer):
        def event(type, **members):
            return f"event: {type}\ndata: {json.dumps({'type': type, **members})}\n\n"

        yield event("message_start", message={**answer, "content": [], "stop_reason": None})
        for i, block in enumerate(answer["content"]):
            empty = {**block}
            deltas = []
            if block["type"] == "thinking":
                empty.update(thinking="", signature="")
                half = len(block["thinking"]) // 2
                deltas = [{"type": "thinking_delta", "thinking": block["thinking"][:half]},
                          {"type": "thinking_delta", "thinking": block["thinking"][half:]},
                          {"type": "signature_delta", "signature": block["signature"]}]
            elif block["type"] == "tool_use":
                empty.update(input={})
                deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
            elif block["type"] == "text":
                empty.update(text="")
                deltas = [{"type": "text_delta", "text": block["text"]}]
            yield event("content_block_start", index=i, content_block=empty)
            for delta in deltas:
                yield event("content_block_delta", index=i, delta=delta)
            yield event("content_block_stop", index=i)
        yield event("message_delta", delta={"stop_reason": answer["stop_reason"], "stop_sequence": None},
                    usage=answer["usage"])
        yield event("message_stop")


class Spread(Anthropic):
    """The same with several endpoints, told apart by the beginning of the path."""

    def __init__(self, endpoints, **options):
        super().__init__(**options)
        self.urls = [f"{self.url}/{n}" for n in range(endpoints)]
        self.went = []  # of each request: its endpoint, its model
        self.down = set()  # endpoints that are overloaded

    def check_head(self, handler):
        number, _, path = handler.path[1:].partition("/")
        hosts.need("/" + path == self.path, f"no such path: {handler.path}", status=404)
        hosts.need(self.key_of(handler) == self.key, "no API key", status=401)
        self.went.append((int(number), self.requests[-1]["model"]))
        hosts.need(int(number) not in self.down, "overloaded", status=529)


class DeepSeek(Thinker):
    path = "/v1/chat/completions"
    gone = "The reasoning_content in the thinking mode must be passed back to the API"

    def check(self, body):
        turns = []
        for i, message in enumerate(body["messages"]):
            if message.get("tool_calls"):
                turns.append((message["tool_calls"][0]["id"], message.get("reasoning_content"),
                              [body.get("tools"), body["messages"][:i]]))
        self.check_thoughts(turns)

    def respond(self, body):
        before = [body.get("tools"), body["messages"]]
        turns = sum(bool(message.get("tool_calls")) for message in body["messages"])
        id, thought = self.think(before)
        message = {"role": "assistant", "content": None, "reasoning_content": thought}
        if turns < self.rounds and body.get("tool_choice") != "none":
            self.remember(id, thought, before)
            message["tool_calls"] = [{"id": id, "type": "function", "function": {
                "name": body["tools"][0]["function"]["name"],
                "arguments": json.dumps({"round": turns, "b": {"z": 1.0, "a": "é"}})}}]
        else:
            message["content"] = f"{turns} rounds"
        reason = "tool_calls" if "tool_calls" in message else "stop"
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        whole = {"id": f"chatcmpl-{self.made}", "object": "chat.completion", "model": body["model"]}
        if body.get("stream"):
            return 200, {"content-type": "text/event-stream"}, "".join(self.chunks(whole, message, reason, usage))
        return 200, {}, json.dumps({**whole, "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                                    "usage": usage})

    def chunks(self, whole, message, reason, usage):
        def chunk(delta, finish=None, **more):
            return "data: " + json.dumps({**whole, "choices": [
                {"index": 0, "delta": delta, "finish_reason": finish}], **more}) + "\n\n"

        thought = message["reasoning_content"]
        yield chunk({"role": "assistant", "content": None, "reasoning_content": thought[:9]})
        yield chunk({"content": None, "reasoning_content": thought[9:]})
        for i, call in enumerate(message.get("tool_calls", [])):
            yield chunk({"tool_calls": [{"index": i, **call}]})
        if message["content"]:
            yield chunk({"content": message["content"]})
        yield chunk({}, reason, usage=usage)
        yield "data: [DONE]\n\n"


class OpenRouter(DeepSeek):
    """A model that thinks in signed texts, behind OpenRouter: streamed, they come in fragments of one list."""
    gone = "reasoning_details are missing"

    def check(self, body):
        turns = []
        for i, message in enumerate(body["messages"]):
            if message.get("tool_calls"):
                turns.append((message["tool_calls"][0]["id"], message.get("reasoning_details"),
                              [body.get("tools"), body["messages"][:i]]))
        self.check_thoughts(turns)

    def remember(self, id, thoughts, before):
        super().remember(id, self.details(id, thoughts), before)

    def details(self, id, thought):
        return [{"type": "reasoning.text", "text": thought, "signature": "sig+/" + id, "format": "claude-v1", "index": 0},
                {"type": "reasoning.encrypted", "data": "data" + id, "id": "rs_" + id, "format": "claude-v1", "index": 1}]

    def respond(self, body):
        status, headers, text = super().respond(body)
        return status, headers, text if body.get("stream") else json.dumps(self.told(json.loads(text)))

    def told(self, answer):
        for choice in answer["choices"]:
            self.tell(choice["message"])
        return answer

    def tell(self, message):
        thought = message.pop("reasoning_content")
        message["reasoning"] = thought
        message["reasoning_details"] = self.details(f"call_{self.made}", thought)

    def chunks(self, whole, message, reason, usage):
        def chunk(delta):
            return "data: " + json.dumps({**whole, "choices": [
                {"index": 0, "delta": delta, "finish_reason": None}]}) + "\n\n"

        text, encrypted = self.details(f"call_{self.made}", message["reasoning_content"])
        signature, thought = text.pop("signature"), text["text"]
        for part in (thought[:5], thought[5:9], thought[9:]):
            yield chunk({"role": "assistant", "content": "", "reasoning": part,
                         "reasoning_details": [{**text, "text": part, "id": None}]})
        yield chunk({"content": "", "reasoning_details": [
            {"type": "reasoning.text", "signature": signature, "format": "claude-v1", "index": 0}, encrypted]})
        yield from list(super().chunks(whole, message, reason, usage))[2:]


class Responses(Thinker):
    path = "/v1/responses"

    def check(self, body):
        hosts.need(body.get("include") == ["reasoning.encrypted_content"], "not asked for what it needs")
        turns = []
        for i, item in enumerate(body["input"]):
            if item.get("type") != "function_call":
                continue
            before = body["input"][i - 1] if i > 0 else {}
            reasoned = before.get("type") == "reasoning"
            turns.append((item["call_id"], before if reasoned else None,
                          [body.get("tools"), body["input"][:i - 1 if reasoned else i]]))
        self.check_thoughts(turns)

    def respond(self, body):
        before = [body.get("tools"), body["input"]]
        turns = sum(item.get("type") == "function_call" for item in body["input"])
        id, thought = self.think(before)
        reasoning = {"type": "reasoning", "id": "rs_" + id, "summary": [],
                     "encrypted_content": hashlib.sha256(thought.encode()).hexdigest()}
        if turns < self.rounds and body.get("tool_choice") != "none":
            self.remember(id, reasoning, before)
            output = [reasoning, {"type": "function_call", "id": "fc_" + id, "call_id": id, "status": "completed",
                                  "name": body["tools"][0]["name"],
                                  "arguments": json.dumps({"round": turns, "b": {"z": 1.0, "a": "é"}})}]
        else:
            output = [{"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [
                {"type": "output_text", "text": f"{turns} rounds", "annotations": []}]}]
        response = {"id": f"resp_{self.made}", "object": "response", "status": "completed", "model": body["model"],
                    "output": output, "usage": {"input_tokens": 100, "output_tokens": 20}}
        if body.get("stream"):
            return 200, {"content-type": "text/event-stream"}, "".join(self.events(response))
        return 200, {}, json.dumps(response)

    def events(self, response):
        def event(type, **members):
            return f"event: {type}\ndata: {json.dumps({'type': type, **members})}\n\n"

        yield event("response.created", response={**response, "status": "in_progress", "output": []})
        for i, item in enumerate(response["output"]):
            begun = {**item}
            if item["type"] == "function_call":
                begun.update(arguments="", status="in_progress")
            elif item["type"] == "message":
                begun.update(content=[])
            else:
                begun.update(encrypted_content="")
            yield event("response.output_item.added", output_index=i, item=begun)
            if item["type"] == "function_call":
                yield event("response.function_call_arguments.delta", output_index=i, delta=item["arguments"])
            elif item["type"] == "message":
                yield event("response.output_text.delta", output_index=i, content_index=0,
                            delta=item["content"][0]["text"])
            yield event("response.output_item.done", output_index=i, item=item)
        yield event("response.completed", response=response)


KINDS = {"anthropic": Anthropic, "openai": DeepSeek, "openai-responses": Responses}

# What they say of thoughts that they did not have in this place (contract/providers.md 2.1), or cannot read.
REFUSALS = {
    "anthropic": [hosts.Refused("messages.1: The block is bound to a different conversation"),
                  hosts.Refused("messages.1.content.0: Invalid `signature` in `thinking` block")],
    "openai": [hosts.Refused("Corrupted thought signature.")],
    "openai-responses": [hosts.Refused("The encrypted content gAAA...DQ== could not be verified.",
                                       code="invalid_encrypted_content")],
}
