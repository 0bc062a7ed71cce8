#!/usr/bin/env python3
"""The codec's inputs, made of nothing but this file: the same bytes at every run.

corpus.py DIRECTORY    writes them all there and prints name, kind, size and digest of each

The order in which a maker asks for random numbers is part of the inputs: the per-byte gate compares
with figures that were measured on these very bytes. DIGEST in codec_cost.json says if they moved.
"""
import base64
import hashlib
import json
import os
import random
import sys

WORDS = ("the server should return an error when tool call fails because input was not valid and retry policy "
         "allows only three attempts per session while model context window keeps growing over long conversations "
         "please summarize this function explain how memory is managed write unit tests for parser module").split()
GERMAN = "über größe natürlich Prüfung Schlüssel Straße".split()
CJK = "模型上下文协议采样请求工具调用结果返回错误処理日本語한국어"
EMOJI = "🚀✅🔥💡"
CODE = '```c\nint f(const char *s) {\n\tprintf("value: %s\\n", s);\n\treturn s[0] == \'"\';\n}\n```\n'
PREFERENCES = {"hints": [{"name": "claude-3-5-sonnet"}, {"name": "claude"}],
               "costPriority": 0.3, "speedPriority": 0.5, "intelligencePriority": 0.8}


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def text(words):
    return {"type": "text", "text": words}


def request(params, number=1):
    return {"jsonrpc": "2.0", "id": number, "method": "sampling/createMessage", "params": params}


def anthropic_answer(content, stop="end_turn"):
    return {"id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant",
            "model": "claude-sonnet-4-5-20250929", "content": content, "stop_reason": stop, "stop_sequence": None,
            "usage": {"input_tokens": 2095, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                      "output_tokens": 503, "service_tier": "standard"}}


def openai_answer(message, finish="stop"):
    return {"id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion", "created": 1741569952,
            "model": "gpt-5.2-2025-12-11", "choices": [{"index": 0, "message": {
                "role": "assistant", **message, "refusal": None, "annotations": []},
                "logprobs": None, "finish_reason": finish}],
            "usage": {"prompt_tokens": 2095, "completion_tokens": 503, "total_tokens": 2598,
                      "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
                      "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0,
                                                    "accepted_prediction_tokens": 0,
                                                    "rejected_prediction_tokens": 0}},
            "service_tier": "default", "system_fingerprint": "fp_44709d6fcb"}


class Writer:
    """Prose, code and tools from one source of random numbers."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def sentence(self, words):
        return " ".join(self.random.choice(WORDS) for _ in range(words)).capitalize() + "."

    def foreign(self):
        choice = self.random.choice
        return choice([" ".join(choice(GERMAN) for _ in range(6)) + ". ",
                       "".join(choice(CJK) for _ in range(20)) + "。",
                       choice(EMOJI) + " " + self.sentence(8) + " "])

    def prose(self, size, escapes=True, foreign=0.06, code=0.15):
        """About `size` bytes: sentences, every tenth in quotes, some code, some that is not ASCII."""
        parts, done, rng = [], 0, self.random
        while done < size:
            die = rng.random()
            if die < code and escapes:
                part = CODE
            elif die < code + foreign:
                part = self.foreign()
            else:
                part = self.sentence(rng.randint(6, 18)) + (" " if rng.random() < .8 else "\n\n")
                if escapes and rng.random() < .1:
                    part = '"' + part.strip() + '" '
            parts.append(part)
            done += len(part.encode())
        return "".join(parts)

    def tool(self, number):
        return {"name": f"tool_{number}_search_repository", "title": f"Tool {number}",
                "description": self.prose(260, True, 0, 0),
                "inputSchema": {"type": "object", "properties": {
                    "query": {"type": "string", "description": self.sentence(14), "minLength": 1, "maxLength": 512},
                    "path": {"type": "string", "description": self.sentence(9), "pattern": "^[a-z0-9_\\-/\\.]+$"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
                    "filters": {"type": "object", "properties": {
                        "lang": {"type": "string", "enum": ["c", "rust", "go", "python"]},
                        "since": {"type": "string", "format": "date-time"},
                        "labels": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}},
                        "additionalProperties": False},
                    "recursive": {"type": "boolean", "default": False}},
                    "required": ["query"], "additionalProperties": False},
                "annotations": {"readOnlyHint": True, "openWorldHint": False}}

    def odd_tool(self, number):
        """One whose properties are its own: no two schemas of the mix are alike."""
        tool, rng = self.tool(number), self.random
        properties = {rng.choice(WORDS) + str(rng.randint(0, 9)): {
            "type": rng.choice(["string", "integer", "boolean", "number"]),
            "description": self.sentence(rng.randint(3, 14))} for _ in range(rng.randint(1, 7))}
        tool["inputSchema"]["properties"] = properties
        tool["inputSchema"]["required"] = list(properties)[:1]
        tool["description"] = self.sentence(rng.randint(5, 40))
        return tool

    def turns(self, count, size):
        return [{"role": "user" if i % 2 == 0 else "assistant", "content": text(size())} for i in range(count)]

    def rounds(self, count):
        """Rounds of two parallel calls of tools, each answered with JSON in a text."""
        messages = []
        for i in range(count):
            ids = [f"toolu_{i}_{j}_01A2B3C4D5E6F7" for j in range(2)]
            messages.append({"role": "assistant", "content": [text(self.sentence(15))] + [
                {"type": "tool_use", "id": call, "name": f"tool_{i}_search_repository", "input": {
                    "query": self.sentence(4), "path": "src/lib/parser.c", "limit": 20,
                    "filters": {"lang": "c", "labels": ["bug", "p1"]}, "recursive": True}} for call in ids]})
            messages.append({"role": "user", "content": [
                {"type": "tool_result", "toolUseId": call, "content": [text(json.dumps({"items": [
                    {"file": f"src/f{k}.c", "line": k * 7, "text": self.sentence(5), "score": k / 7}
                    for k in range(4)]}, indent=1))], "isError": False} for call in ids]})
        return messages

    def call_input(self, number):
        return {"query": self.sentence(12), "path": "src/a.c", "limit": number,
                "filters": {"lang": "c", "labels": ["x", "y"]}, "patch": self.prose(300)}


SMALL = request({
    "messages": [{"role": "user", "content": text(
        "What is the capital of France? Please answer in one short sentence, and name your source.")}],
    "modelPreferences": {"hints": [{"name": "claude-3-sonnet"}], "intelligencePriority": 0.8, "speedPriority": 0.5},
    "systemPrompt": "You are a helpful assistant.", "includeContext": "none", "temperature": 0.7, "maxTokens": 100,
    "_meta": {"progressToken": "pt-1"}})


def requests(writer):
    """Yields (class, bytes), in the order of the random numbers."""
    rng = writer.random
    yield "small", compact(SMALL)
    messages = writer.turns(7, lambda: writer.prose(rng.randint(250, 520)))
    typical = request({
        "messages": messages, "modelPreferences": PREFERENCES, "systemPrompt": writer.prose(300),
        "includeContext": "none", "temperature": 0.2, "maxTokens": 1024, "stopSequences": ["\n\nHuman:", "END"],
        "metadata": {"user_id": "u-123"}}, "req-9f2c")
    yield "typical", compact(typical)
    yield "pretty", json.dumps(typical, ensure_ascii=False, indent=2).encode()
    messages = [{"role": "user", "content": [text(writer.prose(700))]}] + writer.rounds(6)
    yield "tool_loop", compact(request({
        "messages": messages, "tools": [writer.tool(i) for i in range(10)], "toolChoice": {"mode": "auto"},
        "modelPreferences": PREFERENCES, "systemPrompt": writer.prose(500), "maxTokens": 4096}, 77))
    yield "long_escapes", compact(request({
        "messages": [{"role": "user", "content": text(writer.prose(250000))},
                     {"role": "assistant", "content": text(writer.prose(2000))},
                     {"role": "user", "content": text(writer.prose(300))}],
        "maxTokens": 2048, "systemPrompt": writer.prose(400)}, 3))
    signs = "".join(rng.choice(CJK + "。\n") for _ in range(21000))
    yield "cjk", compact(request({"messages": [{"role": "user", "content": text(signs)}], "maxTokens": 2048}, 4))
    image = base64.b64encode(rng.randbytes(786432)).decode()
    yield "image", compact(request({"messages": [{"role": "user", "content": [
        text("Describe the image."), {"type": "image", "data": image, "mimeType": "image/png"}]}],
        "maxTokens": 300}, 5))
    yield "many", compact(request({"messages": writer.turns(720, lambda: writer.prose(60, True, .05, 0)),
                                   "maxTokens": 512, "systemPrompt": "Be brief."}, 6))


def anthropic_answers(writer):
    yield "answer_small", compact(anthropic_answer([text("The capital of France is Paris. " + writer.sentence(20))]))
    yield "answer_tools", compact(anthropic_answer([text(writer.prose(400))] + [
        {"type": "tool_use", "id": f"toolu_0{i}A09q90qw90lq917835lq9", "name": "tool_3_search_repository",
         "input": writer.call_input(i)} for i in range(4)], "tool_use"))
    yield "answer_long", compact(anthropic_answer([text(writer.prose(32000))]))


def openai_answers(writer):
    yield "answer_small", compact(openai_answer({"content": "The capital of France is Paris. " + writer.sentence(20)}))
    yield "answer_tools", compact(openai_answer({"content": writer.prose(400), "tool_calls": [
        {"id": f"call_0{i}A09q90qw90lq917835lq9", "type": "function", "function": {
            "name": "tool_3_search_repository",
            "arguments": compact(writer.call_input(i)).decode()}} for i in range(4)]}, "tool_calls"))
    yield "answer_long", compact(openai_answer({"content": writer.prose(32000)}))


def pieces(writer, words):
    """As a provider streams it: 3 to 40 characters at a time."""
    at = 0
    while at < len(words):
        size = writer.random.randint(3, 40)
        yield words[at:at + size]
        at += size


def anthropic_stream(writer):
    events = []

    def event(name, **members):
        events.append(f"event: {name}\ndata: ".encode() + compact({"type": name, **members}) + b"\n\n")

    event("message_start", message=dict(anthropic_answer([]), stop_reason=None))
    event("content_block_start", index=0, content_block=text(""))
    for piece in pieces(writer, writer.prose(12000)):
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
    event("content_block_stop", index=0)
    event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 15})
    event("message_stop")
    return b"".join(events)


def openai_stream(writer):
    events = []

    def chunk(choices, usage=None):
        whole = openai_answer({})
        events.append(b"data: " + compact({
            "id": whole["id"], "object": "chat.completion.chunk", "created": whole["created"],
            "model": whole["model"], "service_tier": "default", "system_fingerprint": whole["system_fingerprint"],
            "choices": choices, "usage": usage}) + b"\n\n")

    def delta(members, finish=None):
        chunk([{"index": 0, "delta": members, "logprobs": None, "finish_reason": finish}])

    delta({"role": "assistant", "content": "", "refusal": None})
    for piece in pieces(writer, writer.prose(12000)):
        delta({"content": piece})
    delta({}, "stop")
    chunk([], openai_answer({})["usage"])
    return b"".join(events) + b"data: [DONE]\n\n"


def mixed_request(writer, number):
    rng = writer.random
    count = rng.randint(1, 9)
    params = {"messages": writer.turns(count, lambda: writer.prose(rng.randint(20, 900))),
              "maxTokens": rng.randint(10, 9000)}
    if rng.random() < .7:
        params["systemPrompt"] = writer.prose(rng.randint(30, 400))
    if rng.random() < .5:
        params["modelPreferences"] = PREFERENCES
    if rng.random() < .5:
        params["temperature"] = rng.random()
    if rng.random() < .3:
        params["tools"] = [writer.odd_tool(i) for i in range(rng.randint(1, 6))]
        params["toolChoice"] = {"mode": "auto"}
    members = list(params.items())
    rng.shuffle(members)  # nobody promised an order
    return compact(request(dict(members), number))


def api_request(writer, number, api):
    """In a provider's own format, as its SDKs write one."""
    rng = writer.random
    anthropic = api == "messages"
    asked = {"model": f"model-{number}", "max_tokens": rng.randint(10, 9000)}
    if rng.random() < .5:
        asked["temperature"] = rng.random()
    messages = [{"role": message["role"], "content": message["content"] if rng.random() < .3 else message["content"]["text"]}
                for message in writer.turns(rng.randint(1, 9), lambda: writer.prose(rng.randint(20, 900)))]
    for message in messages:
        if isinstance(message["content"], dict):
            message["content"] = [message["content"]]
    if rng.random() < .7:
        system = writer.prose(rng.randint(30, 400))
        if anthropic:
            asked["system"] = system
        else:
            messages.insert(0, {"role": "system", "content": system})
    asked["messages"] = messages
    if rng.random() < .3:
        tools = [writer.odd_tool(i) for i in range(rng.randint(1, 6))]
        asked["tools"] = [{"name": tool["name"], "description": tool["description"], "input_schema": tool["inputSchema"]}
                          if anthropic else {"type": "function", "function": {
                              "name": tool["name"], "description": tool["description"], "parameters": tool["inputSchema"]}}
                          for tool in tools]
    if rng.random() < .5:
        asked["stream"] = True
    return compact(asked)


def mix(count=160):
    """Requests of 0.3 to 14 KB, no two alike, so that no branch predictor learns one by heart."""
    writer = Writer(99)
    return [mixed_request(writer, number) for number in range(count)]


def everything():
    """Yields (name, kind, bytes); the kind is what codec_drive has to do with it."""
    writer = Writer(7)
    for name, data in requests(writer):
        yield name, "request", data
    for name, data in anthropic_answers(writer):
        yield name + ".anthropic", "answer.anthropic", data
    yield "stream.anthropic", "stream.anthropic", anthropic_stream(writer)
    writer = Writer(8)
    for name, data in openai_answers(writer):
        yield name + ".openai", "answer.openai", data
    yield "stream.openai", "stream.openai", openai_stream(writer)
    for number, data in enumerate(mix()):
        yield f"mix{number:03d}", "request", data


def write(directory):
    """Writes every input as DIRECTORY/NAME; {name: (kind, path, size)} and the digest of all."""
    os.makedirs(directory, exist_ok=True)
    found, digest = {}, hashlib.sha256()
    for name, kind, data in everything():
        path = os.path.join(directory, name)
        with open(path, "wb") as file:
            file.write(data)
        digest.update(f"{name} {kind} {len(data)}\n".encode() + data)
        found[name] = (kind, path, len(data))
    return found, digest.hexdigest()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    inputs, digest_of_all = write(sys.argv[1])
    for input_name, (input_kind, _, input_size) in inputs.items():
        print(f"{input_name:28} {input_kind:18} {input_size:9}")
    print("digest", digest_of_all)
