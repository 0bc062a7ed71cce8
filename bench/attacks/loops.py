"""A tenant that is over its rate repeats a short tool loop, whose turns have large private blocks in the store.

Each request is a few hundred bytes; what is kept of its turns is megabytes. All answers are 429. It needs a provider
that thinks, so it has a bench of its own: bench/loop_refusals.py.
"""

import json
import socket
import time

ASK = {"role": "user", "content": {"type": "text", "text": "look around"}}
TOOLS = [{"name": "look", "inputSchema": {"type": "object"}}]


def body_of(messages):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
        "messages": messages, "maxTokens": 1000, "tools": TOOLS}}).encode()


def build(post, rounds):
    """The body of the request that goes on after so many rounds. `post` sends a body and returns the result."""
    messages = [ASK]
    for _ in range(rounds):
        content = post(body_of(messages))["content"]
        messages += [{"role": "assistant", "content": content}, {"role": "user", "content": [
            {"type": "tool_result", "toolUseId": block["id"], "content": [{"type": "text", "text": "nothing"}]}
            for block in content if block["type"] == "tool_use"]}]
    return body_of(messages)


def repeat(host, port, key, body, per_s, seconds):
    """Sends it so often over one connection, whatever the answers are; their number by status."""
    ask = (f"POST /v1/sampling HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer {key}\r\n"
           f"Content-Length: {len(body)}\r\n\r\n").encode() + body
    seen, begun, sent = {}, time.monotonic(), 0
    with socket.create_connection((host, port)) as connection:
        connection.settimeout(30)
        reader = connection.makefile("rb")
        while (elapsed := time.monotonic() - begun) < seconds:
            due = min(int(elapsed * per_s) + 1 - sent, 16)  # one that was held up catches up
            if due <= 0:
                time.sleep(max(0.0, (sent / per_s) - elapsed))
                continue
            connection.sendall(ask * due)
            sent += due
            for _ in range(due):
                status = int(reader.readline().split()[1])
                length = 0
                while (line := reader.readline()) not in (b"\r\n", b""):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                reader.read(length)
                seen[status] = seen.get(status, 0) + 1
    return seen
