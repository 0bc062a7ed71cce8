"""What is asked: MCP sampling requests, and the settings of a gateway that takes any number of them."""

import json
import os

import harness
import redis_fleet

ENDLESS = {**redis_fleet.ENDLESS, "tool_rounds": 100, "loop_tokens": 1000000000000, "max_tokens": 100000}
MODEL = "claude-test"
ANSWER_TEXT = 640  # bytes of text that make an answer of about 1 KB
TOOL_TEXT = 960    # the same of a tool's
TOOL = {"name": "get_weather", "description": "Weather of a city",
        "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}


def text(size):
    sentence = "Tell me about gateways. "
    return (sentence * (size // len(sentence) + 1))[:size]


def message(params):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": params},
                      separators=(",", ":")).encode()


def sampling(size=2048, model=MODEL, **more):
    """A request of `size` bytes, or the least that one has; most of them prompt."""
    def with_prompt(length):
        return message({"messages": [{"role": "user", "content": {"type": "text", "text": text(length)}}],
                        "systemPrompt": "You are brief.", "temperature": 1, "maxTokens": 300,
                        "modelPreferences": {"hints": [{"name": model}]}, **more})
    return with_prompt(max(1, size - len(with_prompt(0))))


def messages(size=2048, model=MODEL, **more):
    """A request of Anthropic's Messages of `size` bytes, or the least that one has; most of them prompt."""
    def with_prompt(length):
        return json.dumps({"model": model, "max_tokens": 300, "temperature": 1, "system": "You are brief.",
                           "messages": [{"role": "user", "content": text(length)}], **more}, separators=(",", ":")).encode()
    return with_prompt(max(1, size - len(with_prompt(0))))


def tool_call(tool, size=1024):
    """A call of an MCP server's tool, of `size` bytes."""
    def with_text(length):
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool, "arguments": {"text": text(length)}}}, separators=(",", ":")).encode()
    return with_text(size - len(with_text(0)))


def first_turn():
    """Of a tool loop: the answer is a call."""
    return sampling(tools=[TOOL])


def second_turn(answer):
    """The same with the call and its result, which is what a caller sends next."""
    content = answer["result"]["content"]
    content = content if isinstance(content, list) else [content]
    params = json.loads(first_turn())["params"]
    params["messages"] += [
        {"role": "assistant", "content": content},
        {"role": "user", "content": [{"type": "tool_result", "toolUseId": block["id"],
                                      "content": [{"type": "text", "text": "18 degrees"}]}
                                     for block in content if block["type"] == "tool_use"]}]
    return message(params)


def tenant_key(number):
    """The first tenant is harness.config's."""
    return harness.KEY if number == 0 else f"sk-bench-tenant-{number:08d}"


def settings(provider_url, tenants=1, models=1, ca=None, **changes):
    """One provider at `provider_url`; `tenants` and `models` of the one plan."""
    provider = {"dialect": "anthropic", "endpoints": [{"url": provider_url}], "keys": [harness.PROVIDER_KEY],
                # On a busy machine connections that are opened by the thousand take their time.
                "timeouts": {"connect": "60s", "first_byte": "60s"}, "breaker": {"failures": 1000, "ratio": 0}}
    if ca is not None:
        provider["ca"] = ca
    names = [MODEL, *(f"other-model-{number}" for number in range(1, models))]
    entries = [{"id": "acme" if number == 0 else f"tenant-{number}", "plan": "standard",
                "keys": [{"sha256": harness.sha256(tenant_key(number))}]} for number in range(tenants)]
    return {
        "workers": 1, "drain": "1s", "store": {"kind": "memory"}, "metrics": {"tenants": max(1000, tenants)},
        "providers": {"anthropic": provider},
        "models": [harness.model(name, "anthropic", context=10000000) for name in names],
        "plans": {"standard": {"capabilities": {"tools": True, "images": True},
                               "models": {"allow": ["*"], "default": MODEL}, "limits": dict(ENDLESS)}},
        "tenants": entries, **changes}


def tenants_yaml(directory, count):
    """A file with so many tenants of one plan, a line each."""
    rest = settings("http://127.0.0.1:9", tenants=1)
    del rest["tenants"]
    path = os.path.join(directory, "sluice.yaml")
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"{key}: {json.dumps(value)}\n" for key, value in rest.items())
        file.write("tenants:\n")
        file.writelines(f"  - {{id: tenant-{number}, plan: standard, keys: [{{sha256: {harness.sha256(tenant_key(number))}}}]}}\n"
                        for number in range(count))
    return path
