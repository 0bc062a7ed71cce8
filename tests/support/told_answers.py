"""Answers of the providers' own APIs, whole and as the event streams that say the same."""

import json

USAGE = {"input_tokens": 11, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 5, "output_tokens": 17}


def message(model, content, stop_reason="end_turn", **more):
    """An answer of Messages."""
    return {"id": "msg_01", "type": "message", "role": "assistant", "model": model, "content": content, "stop_reason": stop_reason,
            "stop_sequence": None, "usage": USAGE, **more}


def completion(model, content, finish_reason="stop", **more):
    """An answer of Chat Completions; `more` are members of its message."""
    return {"id": "chatcmpl-01", "object": "chat.completion", "created": 1790000000, "model": model, "system_fingerprint": "fp_1",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": content, "refusal": None, **more}, "logprobs": None,
                         "finish_reason": finish_reason}],
            "usage": {"prompt_tokens": 19, "completion_tokens": 17, "total_tokens": 36, "prompt_tokens_details": {"cached_tokens": 5}}}


def pieces(text, size=7):
    return [text[i:i + size] for i in range(0, len(text), size)]


def _event(kind, **data):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data}, ensure_ascii=False)}\n\n".encode()


def _deltas(block):
    """What a block begins as, and the deltas that it becomes whole by."""
    kind = block["type"]
    if kind == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": text} for text in pieces(block["text"])]
    if kind == "thinking":
        return {**block, "thinking": "", "signature": ""}, [
            *({"type": "thinking_delta", "thinking": text} for text in pieces(block["thinking"])),
            {"type": "signature_delta", "signature": block["signature"]}]
    if kind == "tool_use":
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": text}
                                        for text in ["", *pieces(json.dumps(block["input"]))]]
    return block, []


def message_events(whole):
    """The events of an answer of Messages, one after the other."""
    usage = whole["usage"]
    yield _event("message_start", message={**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}})
    yield _event("ping")
    for index, block in enumerate(whole["content"]):
        start, deltas = _deltas(block)
        yield _event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    yield _event("message_delta", delta={"stop_reason": whole["stop_reason"], "stop_sequence": whole["stop_sequence"]},
                 usage={"output_tokens": usage["output_tokens"]})
    yield _event("message_stop")


def chat_events(whole, usage=True):
    """The events of an answer of Chat Completions; `usage`: with what was counted, which a caller has to ask for."""
    head = {**{name: whole[name] for name in ("id", "created", "model", "system_fingerprint")}, "object": "chat.completion.chunk"}

    def event(choices, **more):
        return f"data: {json.dumps({**head, 'choices': choices, **more}, ensure_ascii=False)}\n\n".encode()

    def delta(part, finish_reason=None):
        return event([{"index": 0, "delta": part, "logprobs": None, "finish_reason": finish_reason}], **({"usage": None} if usage else {}))

    choice, = whole["choices"]
    said = choice["message"]
    yield delta({"role": "assistant", "content": "" if said["content"] is not None else None, "refusal": None})
    for text in pieces(said["content"] or ""):
        yield delta({"content": text})
    for index, call in enumerate(said.get("tool_calls", ())):
        function = call["function"]
        yield delta({"tool_calls": [{"index": index, **call, "function": {**function, "arguments": ""}}]})
        for text in pieces(function["arguments"]):
            yield delta({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
    yield delta({}, choice["finish_reason"])
    if usage:
        yield event([], usage=whole["usage"])
    yield b"data: [DONE]\n\n"
