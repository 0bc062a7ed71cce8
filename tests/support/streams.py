"""Callers that take event streams, and providers made of functions that send them.

    with streams.Call(gateway, hint="slow") as call:
        for event in call: ...          # (when it came, the JSON in it)
"""

import http.client
import json
import time
import urllib.parse

import harness
import upstream

BOTH = "application/json, text/event-stream"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def message(text="hello", id=1, token=0, hint=None, **params):
    params = {"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 100, **params}
    if token is not None:
        params["_meta"] = {"progressToken": token}
    if hint is not None:
        params["modelPreferences"] = {"hints": [{"name": hint}]}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": params}).encode()


def fields(accept=BOTH, **more):
    return {"Content-Type": "application/json", "Authorization": "Bearer " + harness.KEY, "Accept": accept, **more}


def events_of(body):
    """The JSON of each event of a whole body; every line of it must be known."""
    found = []
    for event in body.decode().split("\n\n")[:-1]:
        name, data = event.split("\n")
        if name != "event: message" or not data.startswith("data: "):
            raise harness.Failure(f"not an event of ours: {event!r}")
        found.append(json.loads(data[len("data: "):]))
    if not body.endswith(b"\n\n"):
        raise harness.Failure(f"the last event has no end: {body[-200:]!r}")
    return found


class Call:
    """One request over HTTP/1.1 whose answer is read as it comes. `status` and `headers` are there once it has
    begun, which is what the constructor waits for."""

    def __init__(self, gateway, accept=BOTH, timeout_s=None, headers=None, **options):
        parts = urllib.parse.urlsplit(gateway.url)
        self.started = time.monotonic()
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port,
                                                     timeout=timeout_s or harness.PATIENCE_S)
        self.connection.request("POST", "/v1/sampling", message(**options), {**fields(accept), **(headers or {})})
        self.reply = self.connection.getresponse()
        self.began = time.monotonic()
        self.status = self.reply.status
        self.headers = {name.lower(): value for name, value in self.reply.getheaders()}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def __iter__(self):
        lines = []
        for line in self.reply:
            if line != b"\n":
                lines.append(line)
                continue
            (event,) = events_of(b"".join(lines) + b"\n")
            yield time.monotonic(), event
            lines = []
        if lines:
            raise harness.Failure(f"ended within an event: {lines}")

    def split(self):
        """All of it: the notifications, with the times when they came, and the last event."""
        events = list(self)
        if not events or any("method" not in event for _, event in events[:-1]) or "method" in events[-1][1]:
            raise harness.Failure(f"not notifications and an answer: {events}")
        return events[:-1], events[-1][1]


def chunk(data):
    return b"%x\r\n%b\r\n" % (len(data), data)


def anthropic(kind, **members):
    return b"event: " + kind.encode() + b"\ndata: " + json.dumps({"type": kind, **members}).encode() + b"\n\n"


def begin():
    return anthropic("message_start", message={
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
        "usage": {"input_tokens": 7, "output_tokens": 1}}) + anthropic(
            "content_block_start", index=0, content_block={"type": "text", "text": ""})


def text(words):
    return anthropic("content_block_delta", index=0, delta={"type": "text_delta", "text": words})


def end(tokens=5):
    return (anthropic("content_block_stop", index=0)
            + anthropic("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None},
                        usage={"output_tokens": tokens})
            + anthropic("message_stop"))


class Case(upstream.Case):
    """`serve(peer, n)` is the provider: see upstream.Server."""

    def scripted(self, serve, **changes):
        server = self.server(serve)
        server.url = f"http://127.0.0.1:{server.port}"
        settings = harness.config(server)
        settings["retries"] = {"attempts": 1}
        settings.update(changes)
        return server, self.gateway(settings)
