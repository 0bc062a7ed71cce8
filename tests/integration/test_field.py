"""Requests and providers' answers from public bug reports, through the real binary.

Each row of ROWS is one case: what the caller asks, what the provider answers, and what must come of it. A provider that
`refuses` a member answers with its error for as long as a request has that member. ctest: timeout=180"""

import http.server
import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

JSON, SSE = "application/json", "text/event-stream"
TOOL = {"name": "get_weather", "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}}}
SCHEMA_TOOL = {"name": "__schema__", "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}},
                                                     "required": ["city"]}}
REQUIRED = {"tools": [TOOL], "toolChoice": {"mode": "required"}}
CALL_ARGUMENTS = '{"city":"Paris"}'


# ---- what providers answer

def chat(content="ok", finish="stop", usage=None, calls=None, **message):
    """A whole answer of Chat Completions."""
    message = {"role": "assistant", "content": content, **message}
    if calls:
        message["tool_calls"] = calls
    return json.dumps({"id": "cc-1", "object": "chat.completion", "created": 1, "model": "m-x", "choices": [
        {"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage or {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})


def call(arguments=CALL_ARGUMENTS, id="call_1", name="get_weather"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def claude(*content, stop="end_turn", usage=None):
    """A whole answer of Messages."""
    return json.dumps({"id": "msg_1", "type": "message", "role": "assistant", "model": "m-x",
                       "content": list(content) or [{"type": "text", "text": "ok"}], "stop_reason": stop,
                       "stop_sequence": None, "usage": usage or {"input_tokens": 10, "output_tokens": 5}})


def chunks(*choices, usage=None, done=True):
    """A stream of Chat Completions; each choice is (delta, finish_reason or None, more members of it)."""
    text = ""
    for delta, finish, *more in choices:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, **(more[0] if more else {})}
        text += "data: " + json.dumps({"id": "cc-1", "object": "chat.completion.chunk", "created": 1, "model": "m-x",
                                       "choices": [choice]}) + "\n\n"
    if usage is not None:
        text += "data: " + json.dumps({"id": "cc-1", "object": "chat.completion.chunk", "created": 1, "model": "m-x",
                                       "choices": [], "usage": usage}) + "\n\n"
    return text + ("data: [DONE]\n\n" if done else "")


def events(*list_of_events):
    """A stream of Messages."""
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in list_of_events)


MESSAGE_START = {"type": "message_start", "message": {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m-x", "content": [], "stop_reason": None,
    "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1}}}
MESSAGE_END = [{"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                "usage": {"output_tokens": 5}}, {"type": "message_stop"}]


def block(index, text):
    return [{"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}},
            {"type": "content_block_stop", "index": index}]


class Refuses:
    """Answers `error` for as long as a request has the member, then `answer`."""

    def __init__(self, member, error, status=400, answer=None):
        self.member, self.error, self.status, self.answer = member, error, status, answer or chat()

    def reply(self, body, number):
        value = body
        for part in self.member.split("="):
            if isinstance(value, dict):
                value = value.get(part)
            else:
                value = value if value == part else None
        if value is not None:
            return self.status, {}, json.dumps(self.error)
        return 200, {}, self.answer


class Says:
    """Answers each of `replies` in turn, (status, headers, body) or a body of a 200; the last one again and again."""

    def __init__(self, *replies):
        self.replies = [reply if isinstance(reply, tuple) else (200, {}, reply) for reply in replies]

    def reply(self, body, number):
        return self.replies[min(number, len(self.replies) - 1)]


class CallsByItsKeys:
    """Calls the first tool with the first property, by the name that the request gave it."""

    def reply(self, body, number):
        tool = body["tools"][0]
        key = next(iter(tool["input_schema"]["properties"]))
        return 200, {}, claude({"type": "tool_use", "id": "toolu_1", "name": tool["name"], "input": {key: "x"}},
                               stop="tool_use")


def error_of(message, type="invalid_request_error", param=None, code=None):
    return {"error": {"message": message, "type": type, "param": param, "code": code}}


def fails(status, body, headers=None):
    return Says((status, headers or {}, body if isinstance(body, str) else json.dumps(body)))


class Row:
    """`want`: what must come of it; see Field.judge."""

    def __init__(self, name, answers, params=None, dialect="openai", profile=None, stream=False, **want):
        self.name, self.dialect, self.profile, self.stream = name, dialect, profile or {}, stream
        self.answers = answers if hasattr(answers, "reply") else Says(answers)
        self.params, self.want = params or {}, want
        self.seen, self.heads = [], []


def usage(input=10, output=5, cache_read=0, cache_write=0, reasoning=0):
    return {"input_tokens": input, "output_tokens": output, "cache_read_tokens": cache_read,
            "cache_write_tokens": cache_write, "reasoning_tokens": reasoning}


TEMPERATURE, STOP = {"temperature": 0.7}, {"stopSequences": ["END"]}
OVERFLOW = {"code": -32014, "calls": 1}
REFUSED = {"stop": "refusal", "calls": 1}

ROWS = [
    # ---- what a refusal teaches
    Row("Kimi takes temperature 1 only", Refuses("temperature", error_of(
        "invalid temperature: only 1 is allowed for this model")), TEMPERATURE, adjusted="temperature_dropped"),
    Row("OpenAI names an unsupported value", Refuses("temperature", error_of(
        "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is supported.",
        param="temperature", code="unsupported_value")), TEMPERATURE, adjusted="temperature_dropped"),
    Row("pydantic wants no temperature", Refuses("temperature", {"detail": [
        {"type": "extra_forbidden", "loc": ["body", "temperature"], "msg": "Extra inputs are not permitted"}]}, 422),
        TEMPERATURE, adjusted="temperature_dropped"),
    Row("xAI takes no stop", Refuses("stop", {"code": "Client specified an invalid argument",
                                              "error": "Argument not supported on this model: stop"}), STOP,
        adjusted="stop_sequences_emulated"),
    Row("DeepSeek thinks, so that no tool can be forced", Refuses("tool_choice=required", error_of(
        "Thinking mode does not support this tool_choice"), answer=chat(None, "tool_calls", calls=[call()])), REQUIRED,
        stop="toolUse", adjusted="tool_choice_required_downgraded"),
    Row("Claude thinks, so that no tool can be forced", Refuses("tool_choice=type=any", {
        "type": "error", "error": {"type": "invalid_request_error", "message":
                                   "Thinking may not be enabled when tool_choice forces tool use."}},
        answer=claude({"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"}},
                      stop="tool_use")), REQUIRED, "anthropic", stop="toolUse",
        adjusted="tool_choice_required_downgraded"),
    Row("a host takes no response_format", Refuses("response_format", error_of(
        "This model does not support response_format: json_schema", param="response_format"),
        answer=chat(None, "tool_calls", calls=[call(name="__schema__")])),
        {"tools": [SCHEMA_TOOL], "toolChoice": {"mode": "required"}}, profile={"structured_output": True},
        stop="toolUse"),
    Row("a quoted prompt teaches nothing", fails(400, error_of(
        "messages[0].content: cannot parse \"temperature is not supported\"")), TEMPERATURE, code=-32013, calls=1),
    Row("a member that was not sent teaches nothing", fails(400, error_of("stop is not supported")), code=-32013, calls=1),

    # ---- blame
    Row("xAI's content rules", fails(403, {"code": "permission-denied", "error": "Content violates usage guidelines. "}),
        **REFUSED),
    Row("OpenRouter's moderation", fails(403, {"error": {"code": 403, "message": "Input was flagged", "metadata": {
        "reasons": ["violence"], "flagged_input": "kill", "provider_name": "OpenAI", "model_slug": "x"}}}), **REFUSED),
    Row("DashScope's inspection", fails(400, error_of("Input data may contain inappropriate content.",
                                                      "data_inspection_failed", code="data_inspection_failed")),
        **REFUSED),
    Row("a 403 of one request", fails(403, error_of("This request is not allowed here", "forbidden")), calls=1,
        other_can=True),
    Row("OpenRouter has no endpoint that can do it", fails(404, {"error": {
        "code": 404, "message": "No endpoints found that support tool use. To learn more about provider routing, visit"}}),
        {"tools": [TOOL]}, calls=1, other_can=True),

    # ---- paid answers
    Row("a member twice in a message", chat().replace('"content": "ok"', '"reasoning_content": "1", "reasoning_content": '
                                                      '"1", "content": "ok"'), calls=1, text="ok"),
    Row("a member twice in arguments", chat(None, "tool_calls", calls=[call('{"city":"Rome","city":"Paris"}')]),
        {"tools": [TOOL]}, calls=1, stop="toolUse", input={"city": "Paris"}, adjusted="duplicate_key_removed"),
    Row("a member twice in an input", claude({"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {
        "CITY": 1}}, stop="tool_use").replace('"CITY": 1', '"city": {"a": 1, "\\u0061": 2}, "city": "Paris"'),
        {"tools": [TOOL]}, "anthropic", calls=1, stop="toolUse", input={"city": "Paris"},
        adjusted="duplicate_key_removed"),
    Row("a stream called JSON", (200, {"content-type": JSON}, chunks(({"content": "ok"}, None), ({}, "stop"))),
        stream=True, calls=1, text="ok"),
    Row("a stream called text", (200, {"content-type": "text/plain; charset=utf-8"}, chunks(
        ({"content": "ok"}, None), ({}, "stop"))), stream=True, calls=1, text="ok"),
    Row("a stream that nobody asked for", (200, {"content-type": SSE}, chunks(({"content": "ok"}, None), ({}, "stop"))),
        calls=1, text="ok"),
    Row("a stream that nobody asked for, called JSON", (200, {"content-type": JSON}, events(
        MESSAGE_START, *block(0, "ok"), *MESSAGE_END)), dialect="anthropic", calls=1, text="ok"),
    Row("a byte order mark", "\ufeff" + chat(), calls=1, text="ok"),
    Row("a byte order mark before a stream", (200, {"content-type": SSE}, "\ufeff" + chunks(
        ({"content": "ok"}, None), ({}, "stop"))), stream=True, calls=1, text="ok"),
    Row("an index that is used again", (200, {"content-type": SSE}, events(
        MESSAGE_START, *block(0, "one "), *block(0, "two"), *MESSAGE_END)), dialect="anthropic", stream=True, calls=1,
        text="one two"),
    Row("an answer cut inside a surrogate pair", chat("abc", "length").replace('"abc"', '"abc\\ud83d"'), calls=1,
        stop="maxTokens", begins="abc"),
    Row("a finish that is repeated", (200, {"content-type": SSE}, chunks(({"content": "ok"}, None), ({}, "stop"),
                                                                         ({}, "stop"))), stream=True, calls=1, text="ok"),
    Row("a coded answer", (200, {"content-type": JSON, "content-encoding": "gzip"}, "\x1f\x8b\x08 not for us"),
        code=-32015, calls=1),
    Row("text in one choice, calls in the next", json.dumps({
        "id": "cc-1", "object": "chat.completion", "created": 1, "model": "m-x", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Let me see."}, "finish_reason": "tool_calls"},
            {"index": 1, "message": {"role": "assistant", "content": None, "tool_calls": [call()]},
             "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}),
        {"tools": [TOOL]}, calls=1, stop="toolUse", input={"city": "Paris"}),

    # ---- usage
    Row("xAI counts reasoning beside the completion", chat(usage={
        "prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 273,
        "prompt_tokens_details": {"cached_tokens": 6}, "completion_tokens_details": {"reasoning_tokens": 232}}),
        usage=usage(32, 241, 6, 0, 232)),
    Row("cache that the prompt excludes", chat(usage={
        "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 115,
        "prompt_tokens_details": {"cached_tokens": 100}}), usage=usage(110, 5, 100)),
    Row("no total", chat(usage={"prompt_tokens": 10, "completion_tokens": 5}), usage=usage()),
    Row("a total of 0", chat(usage={"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 0}), usage=usage()),
    Row("fractions", chat(usage={"prompt_tokens": 10.2, "completion_tokens": 4.5, "total_tokens": 14.7}),
        usage=usage(11, 5)),
    Row("usage in a choice", (200, {"content-type": SSE}, chunks(({"content": "ok"}, None), ({}, "stop", {"usage": {
        "prompt_tokens": 2989, "completion_tokens": 5, "total_tokens": 2994, "cached_tokens": 2048}}))), stream=True,
        usage=usage(2989, 5, 2048)),
    Row("cache writes that last an hour", claude(usage={
        "input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 1000, "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 1000}}), dialect="anthropic",
        usage=usage(1010, 5, 0, 1000), usd=10 * 3e-6 + 1000 * 6e-6 + 5 * 15e-6),

    # ---- why it ended
    *[Row(f"ended by {finish}", chat("par", finish), stop=stop, calls=1) for finish, stop in (
        ("sensitive", "refusal"), ("SAFETY", "refusal"), ("Content_Filter", "refusal"),
        ("content-filter", "refusal"), ("PROHIBITED_CONTENT", "refusal"), ("model_context_window_exceeded", "maxTokens"),
        ("LENGTH", "maxTokens"), ("MAX_TOKENS", "maxTokens"), ("STOP", "endTurn"))],
    *[Row(f"{finish} is no answer", Says(chat("par", finish), chat("whole")), text="whole", calls=2)
      for finish in ("network_error", "abort")],
    Row("a stream that ends in network_error", Says((200, {"content-type": SSE}, chunks(
        ({"content": "par"}, None), ({}, "network_error"))), (200, {"content-type": SSE}, chunks(
            ({"content": "whole"}, None), ({}, "stop")))), stream=True, text="whole", calls=2),
    *[Row(f"{finish} is asked for again", Says(chat(None, finish), chat("whole")), {"tools": [TOOL]}, text="whole", calls=2)
      for finish in ("function_call_filter: MALFORMED_FUNCTION_CALL", "malformed_function_call")],
    Row("a malformed call twice", chat(None, "MALFORMED_FUNCTION_CALL"), {"tools": [TOOL]}, code=-32015, calls=2),

    # ---- requests that are too long
    *[Row(f"too long: {name}", fails(status, body), **OVERFLOW) for name, status, body in (
        ("SGLang", 400, {"object": "error", "message": "Input length (70000 tokens) exceeds the maximum allowed length "
                         "(32763 tokens). Use a shorter input or enable --allow-auto-truncate.", "type":
                         "BadRequestError", "param": None, "code": 400}),
        ("SGLang before", 400, {"object": "error", "message": "The input (40000 tokens) is longer than the model's "
                                "context length (32768 tokens).", "type": "BadRequestError", "code": 400}),
        ("TGI", 422, error_of("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 "
                              "`inputs` tokens and 500 `max_new_tokens`", param="max_tokens")),
        ("TGI flat", 422, {"error": "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
                           "error_type": "validation"}),
        ("Moonshot", 400, error_of("Invalid request: Your request exceeded model token limit: 262144 (requested: 300001)")),
        ("z.ai", 400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}),
        ("Copilot", 400, {"error": {"message": "prompt token count of 138392 exceeds the limit of 128000", "code":
                                    "model_max_prompt_tokens_exceeded"}}),
        ("DashScope", 400, error_of("Range of input length should be [1, 129024]", code="invalid_parameter_error")),
        ("DashScope through its own words", 400, error_of(
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]")),
        ("Cohere", 400, {"id": "x", "message": "too many tokens: total number of tokens in the prompt cannot exceed 4081 - "
                         "received 9265. Try using a shorter prompt or enabling prompt truncating."}),
        ("Perplexity", 400, error_of("Context length exceeded: the prompt has 140000 tokens, at most 127072 are allowed",
                                     "invalid_message")),
        ("Bedrock", 400, {"message": "Input is too long for requested model."}),
        ("Bedrock, longer", 400, {"message": "The model returned the following errors: Input is too long for requested "
                                  "model."}))],

    # ---- waits
    Row("the family that is used up says how long", fails(429, error_of(
        "Rate limit reached for requests. Limit 200 / day.", "requests", code="rate_limit_exceeded"), {
            "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s",
            "x-ratelimit-remaining-tokens": "9999", "x-ratelimit-reset-tokens": "1s"}), code=-32010, wait_ms=360000),

    # ---- what is sent
    Row("keys that Claude does not take", CallsByItsKeys(), {"tools": [{"name": "list_apps", "inputSchema": {
        "type": "object", "properties": {"filter[name]": {"type": "string"}, "$top": {"type": "integer"},
                                         "ok_key": {"type": "string"}}, "required": ["filter[name]"]}}]},
        "anthropic", keys_are_plain=True, stop="toolUse", input={"filter[name]": "x"}),
    Row("arrays without items", chat(), {"tools": [{"name": "t", "inputSchema": {"type": "object", "properties": {
        "tags": {"type": "array"}, "deep": {"type": "object", "properties": {"x": {"type": ["array", "null"]}}},
        "free": {"type": "object", "default": {"type": "array"}, "enum": [{"type": "array"}]}}}}]}, items_everywhere=True),
    Row("a JPEG that is called PNG", claude(), {"messages": [{"role": "user", "content": {
        "type": "image", "data": "/9j/4AAQSkZJRgABAQAAAQABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "mimeType": "image/png"}}]},
        "anthropic", profile={"image": True}, adjusted="image_type_corrected", media_type="image/jpeg"),
    Row("arguments of 66,000 bytes in one event", (200, {"content-type": SSE}, chunks(({"tool_calls": [
        {"index": 0, **call(json.dumps({"city": "x" * 66000}))}]}, None), ({}, "tool_calls"))), {"tools": [TOOL]},
        stream=True, calls=1, stop="toolUse"),
]


class Provider:
    """One server for all rows: the first part of the path says which it plays."""

    def __init__(self):
        rows = {f"r{number}": row for number, row in enumerate(ROWS)}
        lock = threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                name = self.path.split("/")[1]
                if name not in rows:
                    status, headers, text = 200, {}, chat("from elsewhere")
                else:
                    with lock:
                        number = len(rows[name].seen)
                        rows[name].seen.append(body)
                        rows[name].heads.append(self.headers)
                    status, headers, text = rows[name].answers.reply(body, number)
                data = text.encode("latin-1" if "content-encoding" in headers else "utf-8")
                self.send_response(status)
                for field, value in {"content-type": JSON, **headers}.items():
                    self.send_header(field, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def arrays_without_items(schema):
    """Of a schema, where an array says nothing of its items."""
    kind = schema.get("type")
    found = [] if "items" in schema or not (kind == "array" or isinstance(kind, list) and "array" in kind) else [schema]
    for part in schema.get("properties", {}).values():
        found += arrays_without_items(part)
    return found


class Field(harness.Case):
    @classmethod
    def settings(cls, provider):
        settings = {**harness.config(provider), "providers": {}, "models": []}
        for number, row in enumerate(ROWS):
            path = f"{provider.url}/r{number}" + ("/v1" if row.dialect.startswith("openai") else "")
            settings["providers"][f"p{number}"] = {"dialect": row.dialect, "endpoints": [{"url": path}],
                                                   "keys": ["sk-first", "sk-second"]}
            settings["models"].append(harness.model(f"row-{number:03}", f"p{number}", name="m-x", profile=row.profile,
                                                    intelligence=0.9))
        settings["providers"]["other"] = {"dialect": "openai", "endpoints": [{"url": provider.url + "/other/v1"}], "keys": ["sk"]}
        settings["models"].append(harness.model("elsewhere", "other", intelligence=0.1))
        settings["plans"]["standard"]["models"] = {"allow": []}
        settings["tenants"] = [harness.tenant(f"t{number}", f"{harness.KEY}-{number}", models={
            "allow": [f"row-{number:03}"] + ["elsewhere"] * ("other_can" in row.want)}) for number, row in enumerate(ROWS)]
        return settings

    def ask(self, gateway, number, row):
        params = {"modelPreferences": {"hints": [{"name": f"row-{number:03}"}]}, **row.params}
        headers = {}
        if row.stream:
            params["_meta"] = {"progressToken": 7}
            headers["Accept"] = f"{JSON}, {SSE}"
        answer = gateway.sample("hi", headers, f"{harness.KEY}-{number}", **params)
        if answer.headers.get("content-type", "").startswith(SSE):
            lines = [line for line in answer.body.decode().split("\n") if line.startswith("data:")]
            return json.loads(lines[-1][5:])
        return answer.json()

    def judge(self, row, body):
        """Yields what is wrong with an answer."""
        want, result, error = row.want, body.get("result"), body.get("error")
        if "code" in want:
            if error is None or error["code"] != want["code"]:
                yield f"not the error {want['code']}"
            elif "wait_ms" in want and not want["wait_ms"] - 5000 <= error["data"].get("retryAfterMs", 0) <= want["wait_ms"]:
                yield f"a wait of {error['data'].get('retryAfterMs')} ms"
        elif "other_can" in want:
            if result is not None and result["content"].get("text") != "from elsewhere":
                yield "an answer from nowhere"
        elif result is None:
            yield "no result"
        else:
            yield from self.judge_result(row, result)
        if "calls" in want and len(row.seen) != want["calls"]:
            yield f"{len(row.seen)} calls, not {want['calls']}"
        yield from self.judge_sent(row)

    def judge_result(self, row, result):
        want = row.want
        blocks = result["content"] if isinstance(result["content"], list) else [result["content"]]
        text = "".join(item.get("text", "") for item in blocks)
        uses = [item for item in blocks if item["type"] == "tool_use"]
        if "text" in want and text != want["text"]:
            yield f"text {text!r}"
        if "begins" in want and not text.startswith(want["begins"]):
            yield f"text {text!r}"
        if "stop" in want and result["stopReason"] != want["stop"]:
            yield f"stopReason {result['stopReason']}"
        if "input" in want and [use["input"] for use in uses] != [want["input"]]:
            yield f"calls {uses}"
        meta = result["_meta"]
        if "adjusted" in want and want["adjusted"] not in meta["sluice/adjustments"]:
            yield f"adjustments {meta['sluice/adjustments']}"
        got = dict(meta.get("sluice/usage", {}))
        usd = got.pop("usd", None)
        if "usage" in want and got != want["usage"]:
            yield f"usage {got}"
        if "usd" in want and abs(usd - want["usd"]) > 1e-9:
            yield f"{usd} USD, not {want['usd']}"

    def judge_sent(self, row):
        want = row.want
        sent = row.seen[-1] if row.seen else {}
        if "media_type" in want:
            kind = sent["messages"][0]["content"][0]["source"]["media_type"]
            if kind != want["media_type"]:
                yield f"sent as {kind}"
        if "items_everywhere" in want:
            schema = sent["tools"][0]["function"]["parameters"]
            if arrays_without_items(schema):
                yield f"sent {schema}"
            if "items" in schema["properties"]["free"]["default"] or "items" in schema["properties"]["free"]["enum"][0]:
                yield "a value was taken for a schema"
        if "keys_are_plain" in want:
            schema = sent["tools"][0]["input_schema"]
            plain = all(part.replace("_", "").replace(".", "").replace("-", "").isalnum() for part in schema["properties"])
            if not plain or not set(schema["required"]) <= set(schema["properties"]):
                yield f"sent {schema}"

    def test_each_answer_gives_the_right_result_or_the_right_error(self):
        provider = Provider()
        self.addCleanup(provider.close)
        gateway = self.gateway(self.settings(provider))
        for number, row in enumerate(ROWS):
            with self.subTest(row.name):
                body = self.ask(gateway, number, row)
                self.assertEqual(list(self.judge(row, body)), [], json.dumps(body)[:600])
        self.assertEqual({head["accept-encoding"] for row in ROWS for head in row.heads}, {"identity"})


if __name__ == "__main__":
    harness.main()
