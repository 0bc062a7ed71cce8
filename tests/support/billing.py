"""A provider of both formats that bills, and what it has billed: the other side of the gateway's accounts.

What a request's answer is like, and costs, stands in the request: the text of its last message is an order, JSON:

    {"id": 17, "in": 100, "out": 50, "read": 20, "write": 10, "hour": 5, "tries": ["529", "ok"], "deltas": 8}

`in` tokens of input, of which the cache was read or written; `out` of output, in all answers together; `uses` of a tool that the
provider runs. `tries` says what becomes of
each attempt, the last of them of all that follow: "ok"; a status, an error; "filter", that of a content filter; "reset", closed without an answer; "bad", a whole answer
that is not JSON; "void", an answer without usage; "cut" and "hang", after `after` deltas of a stream (or in front of a JSON answer)
the connection breaks, or nothing comes any more until the caller leaves; "half", it breaks when the first of several answers has ended.
The last five are billed, and the gateway cannot know how
much: such an attempt is not `exact`.
"""

import asyncio
import collections
import json
import threading

import harness

EXACT = {"ok", "400", "filter", "429", "500", "503", "529"}
ERRORS = {"400": "invalid_request_error", "429": "rate_limit_error", "500": "api_error", "503": "api_error", "529": "overloaded_error",
          "filter": "invalid_request_error"}
BREAKS = {"cut", "hang", "half"}
DELTA = "word" * 3  # three tokens

Price = collections.namedtuple("Price", "input output read write hour")  # pico-USD a token, as settings in USD a million are
# `uses` of tools that the provider runs, of `uses_most` that were permitted; `tier`: "" the usual one.
Attempt = collections.namedtuple("Attempt", "kind model usage bytes output_most tier uses uses_most", defaults=("", 0, 0))
Usage = collections.namedtuple("Usage", "input output read write hour")
NOTHING = Usage(0, 0, 0, 0, 0)


def nano(pico):
    return -(-pico // 1000)


def cost(usage, price):
    """Nano-USD, rounded up as each attempt's is."""
    plain = usage.input - usage.read - usage.write
    return nano(plain * price.input + usage.read * price.read + (usage.write - usage.hour) * price.write + usage.hour * price.hour
                + usage.output * price.output)


def bound(attempt, price, window=0):
    """The most that an attempt may be charged (deploy/docs/limits.md). `window`: the model's, which is full of what a tool of the
    provider's finds."""
    prompt = max(attempt.bytes + 2000, window if attempt.uses_most else 0)
    return nano(prompt * max(price.input, price.write, price.hour) + attempt.output_most * price.output)


def times(price, factor):
    """The prices of a tier, whose factor is in millionths."""
    return Price(*(-(-each * factor // 1_000_000) for each in price))


def usage_of(order, out):
    return Usage(order["in"], out, order.get("read", 0), order.get("write", 0), order.get("hour", 0))


def text_of(body):
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[0]["text"]


def event(data, name=None):
    line = b"data: %s\n\n" % json.dumps(data).encode()
    return b"event: %s\n%s" % (name.encode(), line) if name else line


class Messages:
    """Writes the answers of the Messages API."""

    path = "/v1/messages"

    @staticmethod
    def counters(usage, uses=0):
        counters = {"input_tokens": usage.input - usage.read - usage.write, "cache_creation_input_tokens": usage.write,
                    "cache_read_input_tokens": usage.read, "output_tokens": usage.output,
                    "cache_creation": {"ephemeral_5m_input_tokens": usage.write - usage.hour, "ephemeral_1h_input_tokens": usage.hour}}
        return {**counters, "server_tool_use": {"web_search_requests": uses}} if uses else counters

    @classmethod
    def whole(cls, body, usage, uses):
        answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"],
                  "content": [{"type": "text", "text": DELTA}], "stop_reason": "end_turn", "stop_sequence": None}
        return {**answer, "usage": cls.counters(usage, uses)} if usage else answer

    @classmethod
    def front(cls, body, usage):
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [], "stop_reason": None}
        if usage:
            message["usage"] = cls.counters(usage._replace(output=1))
        return event({"type": "message_start", "message": message}, "message_start") + event(
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}, "content_block_start")

    @staticmethod
    def delta(body, number):
        return event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": DELTA}}, "content_block_delta")

    @staticmethod
    def rear(body, usage, uses):
        last = {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}}
        if usage:
            last["usage"] = {"output_tokens": usage.output, **({"server_tool_use": {"web_search_requests": uses}} if uses else {})}
        return event({"type": "content_block_stop", "index": 0}, "content_block_stop") + event(last, "message_delta") + event(
            {"type": "message_stop"}, "message_stop")

    @staticmethod
    def error(status):
        return {"type": "error", "error": {"type": ERRORS[status], "message": "no"}}


class Chat:
    """Likewise of Chat Completions."""

    path = "/v1/chat/completions"

    @staticmethod
    def counters(usage):
        return {"prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.input + usage.output,
                "prompt_tokens_details": {"cached_tokens": usage.read, "cache_write_tokens": usage.write}}

    @classmethod
    def whole(cls, body, usage, uses):
        answer = {"id": "c1", "object": "chat.completion", "created": 1, "model": body["model"], **cls.tier(body), "choices": [
            {"index": index, "message": {"role": "assistant", "content": DELTA}, "finish_reason": "stop"} for index in range(body.get("n", 1))]}
        return {**answer, "usage": cls.counters(usage)} if usage else answer

    @staticmethod
    def tier(body):
        return {"service_tier": body["service_tier"]} if "service_tier" in body else {}

    @classmethod
    def chunk(cls, body, choices, **more):
        return event({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": body["model"], **cls.tier(body), "choices": choices, **more})

    @classmethod
    def front(cls, body, usage):
        return b"".join(cls.chunk(body, [{"index": index, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
                        for index in range(body.get("n", 1)))

    @classmethod
    def delta(cls, body, number):
        return cls.chunk(body, [{"index": number % body.get("n", 1), "delta": {"content": DELTA}, "finish_reason": None}])

    @classmethod
    def end(cls, body, index):
        return cls.chunk(body, [{"index": index, "delta": {}, "finish_reason": "stop"}])

    @classmethod
    def rear(cls, body, usage, uses):
        ends = b"".join(cls.end(body, index) for index in range(body.get("n", 1)))
        asked = body.get("stream_options", {}).get("include_usage")
        counted = cls.chunk(body, [], usage=cls.counters(usage)) if usage and asked else b""
        return ends + counted + b"data: [DONE]\n\n"

    @staticmethod
    def error(status):
        return {"error": {"type": ERRORS[status], "message": "no", "code": None, "param": None}}


async def read_head(reader):
    """The first line of an HTTP/1.1 message, and its fields."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    return head[0], {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:]) if name}


async def read_message(reader):
    """The first line of the next message, its fields and its body; None at the end."""
    try:
        line, fields = await read_head(reader)
        return line, fields, await reader.readexactly(int(fields.get("content-length", 0)))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def answer_bytes(status, body, kind="application/json", headers=()):
    lines = "".join("%s: %s\r\n" % header for header in headers)
    return ("HTTP/1.1 %s X\r\ncontent-type: %s\r\n%scontent-length: %d\r\n\r\n" % (status, kind, lines, len(body))).encode() + body


STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


class Server:
    """HTTP/1.1 on the loop that opens it; `_answer` takes each message, and says whether its connection goes on."""

    def __init__(self):
        self.connections, self.failures = {}, []

    async def open(self):
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 20, backlog=1024)
        self.url = "http://127.0.0.1:%d" % self.server.sockets[0].getsockname()[1]

    async def close(self):
        self.server.close()
        for writer in self.connections.values():
            writer.close()
        await asyncio.gather(*self.connections)

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self.connections[task] = writer
        try:
            while (message := await read_message(reader)) is not None and await self._answer(message, reader, writer):
                pass
        except ConnectionError:
            pass  # who asked has left: what that cost is noted
        except Exception as failure:  # a test looks at it
            self.failures.append(failure)
        finally:
            del self.connections[task]
            writer.close()


class Biller(Server):
    """The provider. `attempts`: by the order's id, what each cost; `hanging`: ids of those that hang."""

    def __init__(self):
        super().__init__()
        self.attempts, self.hanging = collections.defaultdict(list), set()
        self.on_hang = lambda id: None

    async def _answer(self, message, reader, writer):
        """False: the connection ends."""
        api = Messages if message[0].split()[1].endswith("/messages") else Chat
        body = json.loads(message[2])
        order = json.loads(text_of(body))
        tries, number = order.get("tries", ["ok"]), len(self.attempts[order["id"]])
        kind = tries[min(number, len(tries) - 1)]
        deltas = order.get("deltas", 4)
        written = order.get("after", 0) if kind in BREAKS else deltas
        out = order["out"] if written == deltas else 3 * written if body.get("stream") else order["out"]
        usage = NOTHING if kind in ERRORS else usage_of(order, out)
        most = body.get("max_completion_tokens", body.get("max_tokens")) * body.get("n", 1)
        uses = 0 if kind in ERRORS else order.get("uses", 0)
        uses_most = sum(tool.get("max_uses", 0) for tool in body.get("tools", []))
        self.attempts[order["id"]].append(Attempt(kind, body["model"], usage, len(message[2]), most, body.get("service_tier", ""), uses, uses_most))
        if kind in ERRORS:
            error = api.error(kind)
            if kind == "filter":
                error["error"]["code"] = "content_filter"
            writer.write(answer_bytes("400" if kind == "filter" else kind, json.dumps(error).encode()))
            return True
        if kind == "reset":
            return False
        if kind == "bad":
            writer.write(answer_bytes(200, b'{"id":"x","broken":'))
            return True
        told = None if kind == "void" else usage
        if not body.get("stream"):
            return await self._whole(api.whole(body, told, uses), kind, order, reader, writer)
        pieces = [api.front(body, told)] + [api.delta(body, number) for number in range(written)]
        if kind == "half":
            pieces.append(api.end(body, 0))
        if kind in BREAKS:
            writer.write(STREAM_HEAD + chunk(b"".join(pieces)))
            await writer.drain()
            return await self._breaks(kind, order, reader)
        writer.write(STREAM_HEAD + chunk(b"".join(pieces)) + chunk(api.rear(body, told, uses)) + b"0\r\n\r\n")
        return True

    async def _whole(self, answer, kind, order, reader, writer):
        data = answer_bytes(200, json.dumps(answer).encode())
        if kind == "cut":
            writer.write(data[:-20])
            await writer.drain()
        if kind in ("cut", "hang"):
            return await self._breaks(kind, order, reader)
        writer.write(data)
        return True

    async def _breaks(self, kind, order, reader):
        if kind == "hang":
            self.hanging.add(order["id"])
            self.on_hang(order["id"])
            await reader.read()
        return False


class Threaded(Biller):
    """The same on a thread of its own."""

    def __init__(self):
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        asyncio.run_coroutine_threadsafe(self.open(), self.loop).result(harness.PATIENCE_S)

    def stop(self):
        asyncio.run_coroutine_threadsafe(self.close(), self.loop).result(harness.PATIENCE_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(harness.PATIENCE_S)
        if self.failures:
            raise self.failures[0]
