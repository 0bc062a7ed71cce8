"""An MCP server by hand, over HTTP on loopback: what it answers is up to the test, byte for byte. Standard library only.

    server = Server()                              # initialize, GET, DELETE and notifications are answered by it
    call = server.take()                           # the next request that is the test's to answer
    stream = call.stream()
    stream.send(event({"jsonrpc": "2.0", ...}))
    server.answer()                                # the next response that was posted to it
    stream.finish(event(result))

Every request is recorded as it came, in `requests`. A handler that the test sets with on() replaces what the server does by
itself; it runs on a thread of its own. Nothing is waited for by the clock.
"""

import json
import queue
import socket
import struct
import threading

import harness


def bytes_of(message):
    return message if isinstance(message, bytes) else json.dumps(message).encode()


def event(message, id=None, name="message", eol=b"\n"):
    """One event as an SDK writes it; `name` None: without an event line."""
    lines = []
    if name is not None:
        lines.append(b"event: " + name.encode())
    if id is not None:
        lines.append(b"id: " + id.encode())
    lines.append(b"data: " + bytes_of(message))
    return eol.join(lines) + eol + eol


def sampling(id, text="hello", **params):
    return {"jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 50, **params}}


def result(id, text="done", **more):
    return {"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}], **more}}


def error(id, code, message="no", **more):
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, **more}}


def note(text="hello", method="notifications/message"):
    return {"jsonrpc": "2.0", "method": method, "params": {"level": "info", "data": text}}


def ask(id, method="elicitation/create", **params):
    """A request of the server that is not sampling."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


class Request:
    """As it came. `headers` are pairs in order, names as they were written."""

    def __init__(self, head, body, connection):
        lines = head.decode("latin-1").split("\r\n")
        self.head, self.body, self.connection = head, body, connection
        self.method, self.path, self.version = lines[0].split(" ")
        self.headers = [tuple(part.strip(" \t") for part in line.split(":", 1)) for line in lines[1:]]

    def all(self, name):
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def header(self, name):
        """Its value; None: it was not sent. Sent twice is the test's failure."""
        values = self.all(name)
        if len(values) > 1:
            raise harness.Failure(f"{name} was sent {len(values)} times: {values}")
        return values[0] if values else None

    @property
    def message(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.method} {self.path} {self.body[:200]!r}>"


class Stream:
    """An answer in pieces. Each send() is one chunk and one segment of TCP."""

    def __init__(self, exchange):
        self.exchange = exchange

    def send(self, data):
        if data:
            self.exchange.raw(b"%x\r\n" % len(data) + data + b"\r\n")
        return self

    def end(self):
        self.exchange.raw(b"0\r\n\r\n")

    def finish(self, data):
        self.send(data)
        self.end()

    def cut(self):
        """The connection ends, the answer does not."""
        self.exchange.close()

    def reset(self):
        self.exchange.reset()

    def wait_gone(self):
        self.exchange.wait_gone()


class Exchange:
    """A request, and the connection to answer on."""

    def __init__(self, server, request, link):
        self.server, self.request, self.link = server, request, link
        self.session = request.header("mcp-session-id")

    def __getattr__(self, name):
        return getattr(self.request, name)

    def raw(self, data):
        try:
            self.link.sock.sendall(data)
        except OSError:
            self.link.gone.set()  # what the other side did is judged by the test

    def answer(self, status, body=b"", headers=(), content_type="application/json"):
        fields = [("Content-Type", content_type)] if body else []
        fields += [*headers, ("Content-Length", str(len(body)))]
        self.raw(head_of(status, fields) + body)

    def json(self, message, status=200, headers=()):
        self.answer(status, bytes_of(message), headers)

    def accept(self):
        self.answer(202)

    def stream(self, headers=(), status=200, content_type="text/event-stream"):
        fields = [("Content-Type", content_type)] if content_type else []
        fields += [*headers, ("Transfer-Encoding", "chunked")]
        self.raw(head_of(status, fields))
        return Stream(self)

    def close(self):
        """Orderly, whatever was sent."""
        try:
            self.link.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def reset(self):
        """By RST."""
        try:
            self.link.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            return  # the other side was first
        self.link.drop = True
        self.close()

    @property
    def gone(self):
        return self.link.gone.is_set()

    def wait_gone(self):
        """Until the other side has closed the connection."""
        if not self.link.gone.wait(harness.PATIENCE_S):
            raise harness.Failure(f"the connection of {self.request} is still there")


def head_of(status, fields):
    return (f"HTTP/1.1 {status} Status\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n").encode("latin-1")


class _Link:
    """One connection, read on its own thread."""

    def __init__(self, server, sock, number):
        self.server, self.sock, self.number = server, sock, number
        self.gone, self.held, self.drop = threading.Event(), b"", False
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _read(self, enough):
        while not enough():
            piece = self.sock.recv(1 << 16)
            if not piece:
                return False
            self.held += piece
        return True

    def _request(self):
        if not self._read(lambda: b"\r\n\r\n" in self.held):
            return None
        head, _, self.held = self.held.partition(b"\r\n\r\n")
        request = Request(head, b"", self.number)
        if request.all("transfer-encoding"):
            raise harness.Failure(f"a body without a length: {head!r}")
        length = int(request.header("content-length") or 0)
        if not self._read(lambda: len(self.held) >= length):
            return None
        request.body, self.held = self.held[:length], self.held[length:]
        return request

    def _run(self):
        try:
            while (request := self._request()) is not None:
                self.server._came(request, self)
        except OSError:
            pass
        except Exception as failure:  # a thread's failure must not be lost
            self.server.failures.append(failure)
        finally:
            self.gone.set()
            if not self.drop:
                try:
                    self.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self.sock.close()


class Server:
    """`revision`: that it negotiates. `sessions`: it gives ids, and answers `unknown` to those it does not know.
    `strict`: it refuses an initialize that declares sampling.tools ("tools") or any sampling ("sampling"), by `refusal`: a
    status, and a code of JSON-RPC. `get`: "stream", a second one at once is 409; a status: every GET is answered so;
    "take": the test answers. `hello`: initialize is answered as "json", "sse", or "primed", SSE with a priming event; "modern":
    with an error, as a server of 2026-07-28 alone does. `discover`: server/discover is answered ("answer"), as by a server that
    speaks 2026-07-28, or refused ("refuse"); "take": the test answers."""

    def __init__(self, revision="2025-11-25", sessions=True, unknown=404, strict=None, refusal=(400, -32600), get="stream",
                 hello="json", discover="refuse", delete=200, path="/mcp", port=0):
        self.revision, self.sessions, self.unknown, self.strict = revision, sessions, unknown, strict
        self.refusal, self.get, self.hello, self.delete, self.path = refusal, get, hello, delete, path
        self.discover = discover
        self.requests, self.failures, self.known = [], [], set()
        self.gets = {}  # session: the stream of its GET
        self.last_ids = []  # Last-Event-ID of each GET
        self.logs = {}  # name: Log
        self._taken, self._answers, self._got = queue.Queue(), queue.Queue(), queue.Queue()
        self._handlers, self._links, self._threads, self._issued = {}, [], [], 0
        self._lock = threading.Lock()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port or harness.free_port()))
        self.listener.listen(512)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}{path}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    # ---- what the test does

    def on(self, what, handler):
        """`handler(exchange)` answers: a method of JSON-RPC, "GET", "DELETE", "response", "array", or "*", what nobody else does."""
        self._handlers[what] = handler
        return self

    @staticmethod
    def _next(of, what):
        try:
            return of.get(timeout=harness.PATIENCE_S)
        except queue.Empty:
            raise harness.Failure(f"no {what} came to the MCP server") from None

    def take(self):
        """The next exchange that nobody has answered."""
        return self._next(self._taken, "request")

    def take_call(self):
        """As take(), but for GETs."""
        while (one := self.take()).method == "GET":
            pass
        return one

    def answer(self):
        """The next response that was posted, as a Request; it was answered 202."""
        return self._next(self._answers, "response")

    def answers(self, count):
        return [self.answer() for _ in range(count)]

    def idle(self):
        """Nothing is there that take() or answer() would give."""
        return self._taken.empty() and self._answers.empty()

    def get_stream(self):
        """The next GET's stream."""
        return self._next(self._got, "GET")

    def has_stream(self):
        """Whether there is one that get_stream() would give."""
        return not self._got.empty()

    def seen(self, method):
        """The requests so far of that method of HTTP or JSON-RPC."""
        with self._lock:
            return [one for one in self.requests if one.method == method or _name_of(one) == method]

    def wait_seen(self, method, count=1):
        return harness.wait_for(lambda: len(self.seen(method)) >= count and self.seen(method), f"{count} times {method}")

    def forget(self, session=None):
        """As if it were started anew: the session is not known any more; without one, all."""
        with self._lock:
            self.known = {one for one in self.known if session is not None and one != session}

    def log(self, name):
        """An event store's stream of that name."""
        return self.logs.setdefault(name, Log(name))

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self._thread.join()
        for link in self._links:
            try:
                link.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in [*(link.thread for link in self._links), *self._threads]:
            thread.join(harness.PATIENCE_S)
        if self.failures:
            raise self.failures[0]

    # ---- what it does by itself

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self._links.append(_Link(self, sock, len(self._links)))

    def _came(self, request, link):
        with self._lock:
            self.requests.append(request)
        exchange = Exchange(self, request, link)
        handler = self._handlers.get(_name_of(request))
        if handler is not None:
            thread = threading.Thread(target=self._handle, args=(handler, exchange), daemon=True)
            self._threads.append(thread)
            thread.start()
        else:
            self._serve(exchange)

    def _handle(self, handler, exchange):
        try:
            handler(exchange)
        except Exception as failure:
            self.failures.append(failure)

    def _serve(self, exchange):
        name = _name_of(exchange.request)
        if name == "initialize":
            self.initialize(exchange)
        elif exchange.session is None and self.sessions:
            exchange.json(error(None, -32000, "Bad Request: Mcp-Session-Id header is required"), 400)
        elif self.sessions and exchange.session not in self.known:
            exchange.json(error(None, -32001, "Session not found"), self.unknown)
        elif name == "GET":
            self.serve_get(exchange)
        elif name == "DELETE":
            with self._lock:
                self.known.discard(exchange.session)
            exchange.answer(self.delete)
        elif name == "response":
            exchange.accept()
            self._answers.put(exchange.request)
        elif name.startswith("notifications/"):
            exchange.accept()
        elif name == "server/discover" and self.discover != "take":
            self.discovered(exchange)
        elif name == "ping":
            exchange.json({"jsonrpc": "2.0", "id": exchange.message["id"], "result": {}})
        elif "*" in self._handlers:
            self._handlers["*"](exchange)
        else:
            self._taken.put(exchange)

    def initialize(self, exchange):
        message = exchange.message
        if self.hello == "modern":
            asked = message["params"]["protocolVersion"]
            exchange.json(error(message["id"], -32022, "Unsupported protocol version", data={"supported": ["2026-07-28"], "requested": asked}), 400)
            return
        declared = message["params"].get("capabilities", {}).get("sampling")
        if (self.strict == "tools" and declared and "tools" in declared) or (self.strict == "sampling" and declared is not None):
            status, code = self.refusal
            exchange.json(error(message["id"], code, 'Unrecognized field "tools"'), status)
            return
        headers = [("Mcp-Session-Id", self.issue())] if self.sessions else []
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": {
            "protocolVersion": self.revision, "capabilities": {"tools": {}}, "serverInfo": {"name": "raw", "version": "1"}}}
        if self.hello == "json":
            exchange.json(answer, headers=headers)
            return
        stream = exchange.stream(headers)
        if self.hello == "primed":
            stream.send(b"id: p-0\ndata: \n\n").send(b": hello\n\n")
        stream.finish(event(answer))

    def discovered(self, exchange):
        id = exchange.message["id"]
        if self.discover == "refuse":
            exchange.json(error(id, -32601, "Method not found"), 404)
            return
        exchange.json({"jsonrpc": "2.0", "id": id, "result": {
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "resources": {"subscribe": True, "listChanged": False}}, "instructions": "Ask.",
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "2"}}}})

    def issue(self):
        with self._lock:
            self._issued += 1
            session = f"session-{self.port}-{self._issued}"
            self.known.add(session)
        return session

    def serve_get(self, exchange):
        last_id = exchange.header("last-event-id")
        self.last_ids.append(last_id)
        name = last_id.rpartition("_")[0] if last_id else None
        if name in self.logs:
            self.logs[name].attach(exchange.stream(), last_id)
        elif self.get == "take":
            self._taken.put(exchange)
        elif self.get != "stream":
            exchange.json(error(None, -32000, "Method not allowed."), self.get)
        elif exchange.session in self.gets and not self.gets[exchange.session].exchange.gone:
            exchange.json(error(None, -32000, "Conflict: Only one SSE stream is allowed per session"), 409)
        else:
            stream = self.gets[exchange.session] = exchange.stream()
            self._got.put(stream)


def _name_of(request):
    """What a request is: GET, DELETE, the method of its message, "response" or "array"."""
    if request.method != "POST":
        return request.method
    try:
        message = request.message
    except ValueError:
        return "?"
    if isinstance(message, list):
        one_way = message and all(isinstance(one, dict) and "method" not in one for one in message)
        return "response" if one_way else "array"
    if not isinstance(message, dict):
        return "?"
    method = message.get("method", "?" if "id" not in message else "response")
    return method if isinstance(method, str) else "?"


class Log:
    """A stream that can be resumed: its events are kept, and have ids NAME_0, NAME_1, …"""

    def __init__(self, name):
        self.name, self.events, self.stream, self.ended = name, [], None, False
        self.lock = threading.Lock()

    def attach(self, stream, after=None):
        """What comes from now on goes there, behind what came after that id."""
        with self.lock:
            self.stream = stream
            begin = int(after.rpartition("_")[2]) + 1 if after else 0
            for one in self.events[begin:]:
                stream.send(one)
            if self.ended:
                stream.end()

    def prime(self):
        """The priming event: an id, and no data."""
        self._add(b"id: %s\ndata: \n\n" % self._id().encode())

    def add(self, message):
        """Returns the event's bytes."""
        return self._add(event(message, self._id()))

    def _id(self):
        return f"{self.name}_{len(self.events)}"

    def _add(self, data):
        with self.lock:
            self.events.append(data)
            if self.stream is not None:
                self.stream.send(data)
        return data

    def leave(self):
        """The connection ends in good order; what comes is kept."""
        with self.lock:
            stream, self.stream = self.stream, None
        stream.end()
        stream.exchange.close()

    def end(self):
        with self.lock:
            self.ended = True
            if self.stream is not None:
                self.stream.end()


def rounds(*asked, states=None):
    """A handler of 2026-07-28: each member of `asked` is the inputRequests of a round; then the result. `states`: the
    requestState of each round, absent where None. What the client sends for a round is left in `handler.responses`."""
    def handler(exchange):
        message = exchange.message
        params = message["params"]
        with lock:
            if "inputResponses" in params or "requestState" in params:
                handler.responses.append((params.get("inputResponses"), params.get("requestState")))
            number = len(handler.responses)
        if number == len(asked):
            exchange.json(result(message["id"], resultType="complete"))
            return
        more = {} if states is None or states[number] is None else {"requestState": states[number]}
        exchange.json({"jsonrpc": "2.0", "id": message["id"], "result": {
            "resultType": "input_required", "inputRequests": asked[number], **more}})
    lock = threading.Lock()
    handler.responses = []
    return handler


class OldServer(Server):
    """HTTP+SSE of 2024-11-05: GET `path` is the session; what is posted to its endpoint is answered there. `endpoint`: what
    its first event says, with {session} in it."""

    def __init__(self, revision="2024-11-05", path="/sse", endpoint="/message?sessionId={session}", **options):
        super().__init__(revision, path=path, **options)
        self.endpoint = endpoint

    def serve_get(self, exchange):
        session = self.issue()
        stream = self.gets[session] = exchange.stream()
        stream.send(b"event: endpoint\ndata: " + self.endpoint.format(session=session).encode() + b"\n\n")
        self._got.put(stream)

    def _serve(self, exchange):
        if exchange.method == "GET":
            self.serve_get(exchange)
            return
        if exchange.path.split("?")[0] == self.path:
            exchange.answer(405)
            return
        session = exchange.path.rpartition("=")[2]
        if session not in self.known:
            exchange.answer(404)
            return
        exchange.answer(202, b"Accepted", content_type="text/plain")
        name = _name_of(exchange.request)
        if name == "initialize":
            self.gets[session].send(event({"jsonrpc": "2.0", "id": exchange.message["id"], "result": {
                "protocolVersion": self.revision, "capabilities": {}, "serverInfo": {"name": "old", "version": "1"}}}))
        elif name == "response":
            self._answers.put(exchange.request)
        elif not name.startswith("notifications/"):
            self._taken.put(exchange)
