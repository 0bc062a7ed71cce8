"""Stand-ins of the hosts in deploy/docs/providers.md, each with the rules and quirks of contract/providers.md 5.

A Host is a real HTTP server. It refuses with its own error form what the host would refuse, and answers
in the host's own way: what is asked for is told by the last user message or by the tools:
  "say:TEXT"   that text          "stop:TEXT:WORD"   the text, stopped by WORD
  "fail:NAME"  the host's error NAME (Host.errors)
With tools it calls the first one with {"city": "Paris"} (`__schema__`: {"answer": "42"}), unless results are last: then it quotes them.
"""

import http.server
import json
import threading

ANSWER_ID = "chatcmpl-1"
STANDARD = {"model", "messages", "max_tokens", "stream", "stream_options", "temperature", "stop", "tools",
            "tool_choice", "parallel_tool_calls", "response_format"}


class Refused(Exception):
    """A request that the host does not take."""

    def __init__(self, message, status=400, **more):
        super().__init__(message)
        self.status, self.more = status, more


def need(condition, message, **more):
    if not condition:
        raise Refused(message, **more)


class Host:
    path = "/v1/chat/completions"
    query = ""
    key_header, key_prefix = "authorization", "Bearer "
    key = "sk-host-0123456789"  # None: any request is taken
    members = STANDARD
    user_ids = {"safety_identifier", "user"}  # members that may say who the user is: ignored where they mean nothing
    stop_max = 4
    errors = {}  # name: (status, body, headers)

    def __init__(self):
        self.requests, self.problems = [], []
        host = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                host.serve(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        # looks whether it is to end that often: half a second, the default, would be most of a short test
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    # ---- one request

    def serve(self, handler):
        raw = handler.rfile.read(int(handler.headers["content-length"]))
        body = json.loads(raw)
        self.requests.append(body)
        try:
            self.check_head(handler)
            self.check(body)
            status, headers, text = self.respond(body)
        except Refused as refused:
            self.problems.append(str(refused))
            status, headers, text = refused.status, {}, json.dumps(self.error(refused))
        data = text.encode()
        handler.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def check_head(self, handler):
        path, _, query = handler.path.partition("?")
        need(path == self.path, f"no such path: {path}", status=404)
        need(query == self.query, f"query: {query}", status=404)
        if self.key is not None:
            need(handler.headers.get(self.key_header) == self.key_prefix + self.key, "no API key", status=401)

    def respond(self, body):
        order = self.order(body)
        if order[0] == "fail":
            status, error, headers = self.errors[order[1]]
            return status, headers, error if isinstance(error, str) else json.dumps(error)
        answer = self.answer(body, order)
        if body.get("stream"):
            return 200, {"content-type": "text/event-stream", **self.headers}, self.stream(body, answer)
        return 200, self.headers, self.before + json.dumps(answer)

    headers = {}
    before = ""  # of the JSON

    # ---- what is refused

    def error(self, refused):
        return {"error": {"message": str(refused), "type": "invalid_request_error", "param": None, "code": None,
                          **refused.more}}

    def check(self, body):
        unknown = set(body) - self.members - self.user_ids
        need(not unknown, f"Unsupported parameter: {', '.join(sorted(unknown))}")
        need(len(body.get("stop", [])) <= self.stop_max, "stop: too many")
        need(body.get("tools") != [], "tools: an empty array")
        need("tools" in body or "tool_choice" not in body, "tool_choice is only allowed when tools are specified")
        for tool in body.get("tools", []):
            need("properties" in tool["function"]["parameters"], "object schema missing properties")
        self.check_messages(body["messages"])

    def check_messages(self, messages):
        open_calls = []
        for message in messages:
            role, content = message["role"], message.get("content")
            need(role in ("system", "user", "assistant", "tool"), f"role {role}")
            if role == "tool":
                need(message["tool_call_id"] in open_calls, "tool_call_id not found in 'tool_calls' before it")
                need(isinstance(content, str), "content of role tool is no string")
                open_calls.remove(message["tool_call_id"])
                continue
            need(not open_calls, "tool_calls must be followed by tool messages for each 'tool_call_id'")
            open_calls = [call["id"] for call in message.get("tool_calls", [])]
            if role != "user" and isinstance(content, list):
                need(all(part["type"] == "text" for part in content), "image_url is for role 'user' only")
        need(not open_calls, "tool_calls must be followed by tool messages for each 'tool_call_id'")

    # ---- what is answered

    @staticmethod
    def text_of(message):
        content = message.get("content") or ""
        return content if isinstance(content, str) else "\n".join(p.get("text", "") for p in content)

    def order(self, body):
        users = [m for m in body["messages"] if m["role"] == "user"]
        words = self.text_of(users[-1]).split(":")
        if words[0] in ("say", "stop", "fail"):
            return words
        results = [m for m in body["messages"] if m["role"] == "tool"]
        if "tools" in body and not results and body.get("tool_choice") != "none":
            return ["call"]
        if "response_format" in body:
            return ["schema"]
        return ["say", "results: " + ", ".join(self.text_of(m) for m in results)]

    def usage(self):
        return {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30,
                "prompt_tokens_details": {"cached_tokens": 5},
                "completion_tokens_details": {"reasoning_tokens": 4}}

    def given(self, name):
        """What the tool of that name is called with."""
        return {"answer": "42"} if name == "__schema__" else {"city": "Paris"}

    def arguments(self, name):
        return json.dumps(self.given(name))

    call_id = "call_abc"

    def call(self, body):
        name = body["tools"][0]["function"]["name"]
        return {"id": self.call_id, "type": "function", "function": {"name": name, "arguments": self.arguments(name)}}

    call_reason = "tool_calls"

    def answer(self, body, order):
        message, reason = {"role": "assistant", "content": None}, "stop"
        if order[0] == "call":
            message["tool_calls"], reason = [self.call(body)], self.call_reason
        elif order[0] == "schema":
            message["content"] = json.dumps({"answer": "42"})
        else:
            message["content"] = order[1]
        choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
        answer = {"id": ANSWER_ID, "object": "chat.completion", "created": 1763750000, "model": body["model"],
                  "choices": [choice], "usage": self.usage()}
        self.adapt(answer, choice, message, order)
        return answer

    def adapt(self, answer, choice, message, order):
        """Where a host's answers differ from this."""

    # ---- the same as a stream

    def chunks(self, body, answer):
        """The data of the events: the text in two pieces, then the reason, then the usage."""
        choice = answer["choices"][0]
        message = choice["message"]
        front = {"id": answer["id"], "object": "chat.completion.chunk", "model": answer["model"]}

        def chunk(delta, reason=None, **more):
            return {**front, "choices": [{"index": 0, "delta": delta, "finish_reason": reason, **more}]}

        yield chunk({"role": "assistant", "content": ""})
        content = message["content"]
        if isinstance(content, str):
            half = len(content) // 2
            yield chunk({"content": content[:half]})
            yield chunk({"content": content[half:]})
        for index, call in enumerate(message.get("tool_calls") or []):
            yield chunk({"tool_calls": [{"index": index, **call}]})
        more = {"stop_reason": choice["stop_reason"]} if "stop_reason" in choice else {}
        yield chunk({}, choice["finish_reason"], **more)
        yield {**front, "choices": [], "usage": answer["usage"]}

    before_events = ""
    done = "data: [DONE]\n\n"

    def stream(self, body, answer):
        return self.before_events + "".join(
            f"data: {json.dumps(chunk)}\n\n" for chunk in self.chunks(body, answer)) + self.done


class OpenAI(Host):
    members = (STANDARD - {"max_tokens"}) | {"max_completion_tokens"}
    errors = {
        "minute": (429, {"error": {"message": "Request too large for gpt-4.1 in organization org-x on tokens per min "
                                   "(TPM): Limit 30000, Requested 30601. The input or output tokens must be reduced.",
                                   "type": "tokens", "param": None, "code": "rate_limit_exceeded"}}, {"retry-after": "2"}),
    }

    def check(self, body):
        need("max_tokens" not in body, "Unsupported parameter: 'max_tokens' is not supported with this model. "
             "Use 'max_completion_tokens' instead.", param="max_tokens", code="unsupported_parameter")
        super().check(body)


class Reasoner(OpenAI):
    """A model that takes neither a temperature nor stop sequences."""

    def check(self, body):
        super().check(body)
        for name in ("temperature", "stop"):
            need(name not in body, f"Unsupported parameter: '{name}' is not supported with this model.", param=name)


class Azure(OpenAI):
    user_ids = {"user"}
    path = "/openai/deployments/chat/chat/completions"
    query = "api-version=2024-10-21"
    key_header, key_prefix = "api-key", ""
    errors = {
        "filter": (400, {"error": {"code": "content_filter", "message": "The response was filtered", "param": "prompt",
                                   "type": None, "status": 400, "innererror": {
                                       "code": "ResponsibleAIPolicyViolation", "content_filter_result": {}}}}, {}),
        "busy": (429, {"error": {"code": "429", "message": "Requests have exceeded the rate limit."}},
                 {"retry-after-ms": "1500", "retry-after": "2"}),
        "deployment": (404, {"error": {"code": "DeploymentNotFound", "message": "x"}}, {}),
    }

    def adapt(self, answer, choice, message, order):
        answer["prompt_filter_results"] = [{"prompt_index": 0, "content_filter_results": {}}]
        choice["content_filter_results"] = {"hate": {"filtered": False, "severity": "safe"}}

    def chunks(self, body, answer):
        yield {"id": "", "object": "", "model": "", "choices": [],
               "prompt_filter_results": answer["prompt_filter_results"]}
        yield from super().chunks(body, answer)


class OpenRouter(Host):
    path = "/api/v1/chat/completions"
    members = (STANDARD - {"max_tokens"}) | {"max_completion_tokens", "provider"}
    user_ids = {"user"}
    headers = {"x-generation-id": "gen-1"}
    errors = {
        "in-200": (200, {"id": "gen-1", "error": {"code": 502, "message": "Upstream error"}, "choices": []}, {}),
        "credits": (402, {"error": {"code": 402, "message": "Insufficient credits"}}, {}),
        "afford": (402, {"error": {"code": 402, "message": "This request requires more credits, or fewer max_tokens. "
                                   "You requested up to 65536 tokens, but can only afford 30104."}}, {}),
        "reason": (200, {"id": "gen-1", "model": "x", "choices": [{
            "index": 0, "message": {"role": "assistant", "content": "half"}, "finish_reason": "error",
            "error": {"code": 502, "message": "Provider disconnected"}}]}, {}),
    }
    before_events = ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n"

    def check(self, body):
        super().check(body)
        need(body.get("provider") == {"require_parameters": True}, "provider: no route")

    def adapt(self, answer, choice, message, order):
        answer["provider"] = "Together"
        choice["native_finish_reason"] = choice["finish_reason"]
        message["reasoning"] = "hm"
        message["reasoning_details"] = [{"type": "reasoning.text", "text": "hm"}]


class Vllm(Host):
    key = None
    errors = {
        "context": (400, {"object": "error", "message": "This model's maximum context length is 9 tokens.",
                          "type": "BadRequestError", "param": None, "code": 400}, {}),
        "length": (400, {"error": {"message": "The decoder prompt (length 12345) is longer than the maximum model length "
                                   "of 8192.", "type": "BadRequestError", "param": None, "code": 400}}, {}),
        "parser": (400, {"object": "error", "message": '"auto" tool choice requires --enable-auto-tool-choice',
                         "type": "BadRequestError", "param": None, "code": 400}, {}),
    }
    call_reason = "stop"

    def error(self, refused):
        return {"object": "error", "message": str(refused), "type": "BadRequestError", "code": refused.status}

    def arguments(self, name):
        return json.dumps(json.dumps(self.given(name)))

    def adapt(self, answer, choice, message, order):
        message["reasoning_content"] = "hm"
        choice["stop_reason"] = order[2] if order[0] == "stop" else None


class LlamaCpp(Host):
    key = None
    errors = {
        "loading": (503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, {}),
        "context": (400, {"error": {"code": 400, "message": "the request exceeds the available context size",
                                    "type": "exceed_context_size_error", "n_ctx": 8192}}, {}),
    }

    def check(self, body):
        super().check(body)
        need(not isinstance(body.get("tool_choice"), dict), "a named tool_choice becomes auto")
        for message in body["messages"]:
            need(message.get("content") is None or isinstance(message["content"], str), "unsupported content[].type")

    def adapt(self, answer, choice, message, order):
        answer["timings"] = {"prompt_n": 20, "predicted_per_second": 31.5}


class Ollama(Host):
    key = None
    errors = {"model": (404, {"error": "model 'qwen3:8b' not found"}, {})}
    call_reason = "stop"

    def error(self, refused):
        return {"error": str(refused)}

    def order(self, body):
        order = super().order(body)
        if order == ["call"] and self.text_of(body["messages"][-1]).startswith("no call"):
            return ["say", "<think>not now</think>I would rather not."]  # tool_choice is ignored
        return order

    def adapt(self, answer, choice, message, order):
        if isinstance(message["content"], str) and "<think>" not in message["content"]:
            message["content"] = "<think>\nhm\n</think>\n\n" + message["content"]


class Mistral(Host):
    members = (STANDARD - {"stream_options"}) | {"random_seed", "safe_prompt"}
    user_ids = set()
    stop_max = 1000
    errors = {
        "invalid": (422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "x"], "msg": "x"}]}, {}),
        "length": (200, {"id": "m", "model": "x", "choices": [{
            "index": 0, "message": {"role": "assistant", "content": "half"}, "finish_reason": "model_length"}]}, {}),
    }
    call_id = "D681PevKs"

    def error(self, refused):
        return {"object": "error", "message": str(refused), "type": "invalid_request_message_order", "code": "3230"}

    def check(self, body):
        super().check(body)
        need(body.get("temperature", 0) <= 1.5, "temperature: Input should be less than or equal to 1.5", status=422)

    def check_messages(self, messages):
        super().check_messages(messages)
        for message in messages:
            need(message["role"] != "assistant" or message.get("content") or message.get("tool_calls"),
                 "Assistant message must have either content or tool_calls, but not none")
            for part in message["content"] if isinstance(message.get("content"), list) else []:
                need(part["type"] != "input_audio" or isinstance(part["input_audio"], str), "input_audio", status=422)
        for before, message in zip([{"role": None}] + messages, messages):
            need((before["role"], message["role"]) != ("tool", "user"), "Unexpected role 'user' after role 'tool'")
            for call in message.get("tool_calls", []):
                need(len(call["id"]) == 9 and call["id"].isalnum(), "Tool call id has to be a-z, A-Z, 0-9, length 9")
        last = messages[-1]
        need(last["role"] in ("user", "tool") or last.get("prefix") is True, "Expected last role User or Tool")

    def arguments(self, name):
        return self.given(name)

    def adapt(self, answer, choice, message, order):
        if isinstance(message["content"], str):
            message["content"] = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                                  {"type": "text", "text": message["content"]}]

    def chunks(self, body, answer):
        content = answer["choices"][0]["message"]["content"]
        for chunk in super().chunks(body, answer):
            yield {**chunk, "p": "abcd"}
            if content is not None and chunk["choices"] and chunk["choices"][0]["delta"].get("content") == "":
                yield {**chunk, "choices": [{"index": 0, "delta": {"content": content}, "finish_reason": None}]}


class Groq(OpenAI):
    user_ids = {"user"}
    path = "/openai/v1/chat/completions"
    errors = {
        "bad-call": (400, {"error": {"message": "Failed to call a function.", "type": "invalid_request_error",
                                     "code": "tool_use_failed", "failed_generation": "<function=x>"}}, {}),
        "capacity": (498, {"error": {"message": "Flex tier capacity exceeded", "type": "tokens"}}, {}),
    }

    def adapt(self, answer, choice, message, order):
        answer["x_groq"] = {"id": "req_1"}
        answer["usage"] |= {"queue_time": 0.01, "total_time": 0.2}

    def chunks(self, body, answer):
        for chunk in super().chunks(body, answer):
            if chunk["choices"]:
                yield chunk
            else:  # in the last chunk of the answer, and nowhere else
                yield {**chunk, "usage": None, "x_groq": {"id": "req_1", "usage": chunk["usage"]}}


class DeepSeek(Host):
    path = "/chat/completions"
    members = STANDARD | {"thinking"}
    stop_max = 16
    before = "\n\n\n"  # keeps the connection alive while the request is queued
    before_events = ": keep-alive\n\n\n"
    errors = {
        "balance": (402, {"error": {"message": "Insufficient Balance", "type": "unknown_error", "code": "invalid_request_error"}}, {}),
        "resources": (200, {"id": "d", "model": "x", "choices": [{
            "index": 0, "message": {"role": "assistant", "content": "half"},
            "finish_reason": "insufficient_system_resource"}]}, {}),
    }

    def check_messages(self, messages):
        super().check_messages(messages)
        if self.requests[-1].get("thinking") == {"type": "disabled"}:
            return
        for message in messages:
            need("tool_calls" not in message or "reasoning_content" in message,
                 "The reasoning_content in the thinking mode must be passed back to the API")

    def usage(self):
        return {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30, "prompt_cache_hit_tokens": 5,
                "prompt_cache_miss_tokens": 15, "prompt_tokens_details": {"cached_tokens": 5},
                "completion_tokens_details": {"reasoning_tokens": 4}}


class Gemini(Host):
    path = "/v1beta/openai/chat/completions"
    members = STANDARD | {"reasoning_effort"}
    user_ids = set()
    errors = {
        "rate": (429, [{"error": {"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED", "details": [
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "36s"}]}}], {}),
        "overloaded": (503, [{"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}], {}),
        "context": (400, [{"error": {"code": 400, "message": "The input token count (2845475) exceeds the maximum number of "
                                     "tokens allowed (1048576).", "status": "INVALID_ARGUMENT"}}], {}),
        "key": (400, [{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.",
                                 "status": "INVALID_ARGUMENT"}}], {}),
    }

    def error(self, refused):
        return [{"error": {"code": refused.status, "message": str(refused), "status": "INVALID_ARGUMENT"}}]

    def check_messages(self, messages):
        super().check_messages(messages)
        if self.requests[-1].get("reasoning_effort") == "none":
            return
        for message in messages:
            for call in message.get("tool_calls", []):
                need("extra_content" in call, "Function call is missing a thought_signature")

    def call(self, body):
        return {**super().call(body), "extra_content": {"google": {"thought_signature": "c2ln"}}}

    def answer(self, body, order):
        answer = super().answer(body, order)
        message = answer["choices"][0]["message"]
        if "tool_calls" in message:  # two at once
            message["tool_calls"] = [{**call, "id": f"{call['id']}{i}"} for i in (1, 2) for call in message["tool_calls"]]
        return answer

    def chunks(self, body, answer):
        for chunk in super().chunks(body, answer):
            for choice in chunk["choices"]:
                for call in choice["delta"].get("tool_calls", []):
                    call["index"] = 0  # whichever it is
            yield chunk


class Messages(Host):
    """Anthropic's format at another host."""
    path = "/anthropic/v1/messages"
    members = {"model", "max_tokens", "messages", "system", "temperature", "stop_sequences", "tools", "tool_choice",
               "stream"}
    user_ids = {"metadata"}
    errors = {"overloaded": (529, {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, {})}

    def check_head(self, handler):
        super().check_head(handler)
        need(handler.headers.get("anthropic-version") == "2023-06-01", "anthropic-version")

    def check_messages(self, messages):
        roles = [message["role"] for message in messages]
        need(all(a != b for a, b in zip(roles, roles[1:])) and roles[0] == "user", "roles must alternate")

    def check(self, body):
        need(not set(body) - self.members - self.user_ids, "Extra inputs are not permitted")
        self.check_messages(body["messages"])

    def order(self, body):
        blocks = body["messages"][-1]["content"]
        words = [block["text"] for block in blocks if block["type"] == "text"][-1:]
        words = words[0].split(":") if words else [""]
        if words[0] in ("say", "stop", "fail"):
            return words
        results = [part["text"] for message in body["messages"] for block in message["content"]
                   if block["type"] == "tool_result" for part in block["content"]]
        if results:
            return ["say", "results: " + ", ".join(results)]
        return ["call"]

    def answer(self, body, order):
        if order[0] == "call":
            name = body["tools"][0]["name"]
            content = [{"type": "tool_use", "id": "toolu_1", "name": name, "input": self.given(name)}]
        else:
            content = [{"type": "text", "text": order[1]}]
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": content,
                "stop_reason": "tool_use" if order[0] == "call" else "end_turn", "stop_sequence": None,
                "usage": {"input_tokens": 15, "cache_read_input_tokens": 5, "output_tokens": 10,
                          "output_tokens_details": {"thinking_tokens": 4}}}

    done = ""

    def chunks(self, body, answer):
        block = answer["content"][0]
        yield {"type": "message_start", "message": {**answer, "content": [], "stop_reason": None}}
        if block["type"] == "text":
            yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
            yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": block["text"]}}
        else:
            yield {"type": "content_block_start", "index": 0, "content_block": {**block, "input": {}}}
            yield {"type": "content_block_delta", "index": 0, "delta": {
                "type": "input_json_delta", "partial_json": json.dumps(block["input"])}}
        yield {"type": "content_block_stop", "index": 0}
        yield {"type": "message_delta", "delta": {"stop_reason": answer["stop_reason"]},
               "usage": {"output_tokens": 10}}
        yield {"type": "message_stop"}
