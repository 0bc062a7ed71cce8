"""An MCP client by hand: one connection per request, raw bytes both ways. Standard library only.

Where its address is one of several gateways (mcp_gates.py), each request goes to the next of them.

    client = Client(url, key=harness.KEY)
    client.hello()                                  # initialize, notifications/initialized
    reply = client.post({"jsonrpc": "2.0", ...})    # sent; nothing is read yet
    reply.expect(b"event: ...")                     # exactly these bytes come next
    reply.end()                                     # and that was all
"""

import copy
import itertools
import json
import re
import socket
import urllib.parse

import harness
from mcp_server import bytes_of

BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
BOTH = "application/json, text/event-stream"

# By the address of each of several gateways, where the next request to any of them goes: an iterator that they share.
turns = {}


class Reply:
    """The answer to one request, read as far as the test asks."""

    def __init__(self, sock, keeper=None):
        self.sock, self.keeper = sock, keeper
        self.held, self.data = b"", bytearray()  # the second grows to many MiB
        self._head = None
        self.over = self.was_cut = False

    # ---- its bytes

    def _receive(self):
        """False: the connection has ended."""
        try:
            piece = self.sock.recv(1 << 16)
        except ConnectionError:
            piece = b""
        except TimeoutError:
            raise harness.Failure(f"nothing comes any more; so far {self._head} {self.data[-500:]!r}") from None
        self.held += piece
        return bool(piece)

    def _read_head(self):
        if self._head is not None:
            return self._head
        while b"\r\n\r\n" not in self.held:
            if not self._receive():
                raise harness.Failure(f"no answer, but the end of the connection behind {self.held!r}")
        head, _, self.held = self.held.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self._head = int(lines[0].split()[1]), [tuple(part.strip(" \t") for part in line.split(":", 1)) for line in lines[1:]]
        self._left = self._length()
        if self._left == 0 and not self.chunked:
            self._finish()
        return self._head

    def ends(self):
        """Waits for the head, or the end of the connection; whether there is a head."""
        while b"\r\n\r\n" not in self.held and self._head is None:
            if not self._receive():
                return False
        return self._read_head() is not None

    def _length(self):
        """Bytes that come; None: as many as there are."""
        if self._head[0] in (204, 304):
            return 0
        length = self.header("content-length")
        return None if length is None else int(length)

    @property
    def chunked(self):
        return self.header("transfer-encoding") == "chunked"

    def _finish(self, cut=False):
        self.over, self.was_cut = True, cut
        if self.keeper is None or cut:
            self.sock.close()
        else:
            self.keeper.kept[self.sock.getpeername()] = self.sock

    def _chunk(self):
        """Moves what is there of the next chunk; False: it is not whole."""
        line, mark, rest = self.held.partition(b"\r\n")
        if not mark:
            return False
        size = int(line, 16)
        if len(rest) < size + 2:
            return False
        self.data += rest[:size]
        self.held = rest[size + 2:]
        if size == 0:
            self._finish()
        return True

    def _plain(self):
        if not self.held:
            return False
        size = len(self.held) if self._left is None else min(self._left, len(self.held))
        self.data += self.held[:size]
        self.held = self.held[size:]
        if self._left is not None:
            self._left -= size
            if self._left == 0:
                self._finish()
        return True

    def _more(self):
        """Waits for more of the body; False: there is none."""
        self._read_head()
        while not self.over:
            if self._chunk() if self.chunked else self._plain():
                return True
            if not self._receive():
                self._finish(cut=self.chunked or self._left is not None)
        return False

    def _take(self, size):
        got = bytes(self.data[:size])
        del self.data[:size]
        return got

    # ---- what a test asks for

    @property
    def status(self):
        return self._read_head()[0]

    @property
    def headers(self):
        return self._read_head()[1]

    def header(self, name):
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        if len(values) > 1:
            raise harness.Failure(f"{name} came {len(values)} times: {values}")
        return values[0] if values else None

    def body(self):
        """All of it."""
        while self._more():
            pass
        if self.was_cut:
            raise harness.Failure(f"the answer was cut behind {self.data[-500:]!r}")
        return bytes(self.data)

    def json(self):
        try:
            return json.loads(self.body())
        except ValueError:
            raise harness.Failure(f"{self.status}, not JSON: {self.data[:500]!r}") from None

    def expect(self, data):
        """Exactly these bytes come next."""
        while len(self.data) < len(data) and self._more():
            pass
        got = self._take(len(data))
        if got != data:
            raise harness.Failure(f"wanted {data[:2000]!r}\n   got {got[:2000]!r}")
        return self

    def event(self):
        """Bytes of the next event or comment, its blank line included."""
        while (found := BLANK_LINE.search(self.data)) is None:
            if not self._more():
                raise harness.Failure(f"the stream has ended behind {self.data!r}")
        return self._take(found.end())

    def shown(self):
        """Bytes of the next event that has data; comments, retry: and priming events before it are left out."""
        while True:
            event = self.event()
            if any(line[5:].strip() for line in event.splitlines() if line.startswith(b"data:")):
                return event

    def message(self):
        """The message of the next event that has data."""
        return json.loads(b"\n".join(line[5:].strip() for line in self.shown().splitlines() if line.startswith(b"data:")))

    def end(self):
        """Nothing more comes, and the end is in good order."""
        rest = self.body()
        if rest:
            raise harness.Failure(f"more came: {rest[:2000]!r}")

    def cut(self):
        """Nothing more comes, and one can see that it is not the end."""
        while self._more():
            pass
        if self.data or not self.was_cut:
            raise harness.Failure(f"{'ended in good order' if not self.was_cut else 'cut'} behind {self.data[:2000]!r}")

    def close(self):
        """The client leaves."""
        self.over = True
        self.sock.close()

    def __repr__(self):
        return f"<{self.status} {self.data[:300]!r}>"


class Client:
    """`session` and `revision` are sent once hello() has them. `keep`: requests share a connection where they can."""

    def __init__(self, url, key=harness.KEY, keep=False, revision="2025-11-25"):
        parts = urllib.parse.urlsplit(url)
        self.address, self.target = (parts.hostname, parts.port), parts.path + ("?" + parts.query if parts.query else "")
        self.turns = turns.get(self.address) or itertools.repeat(self.address)
        self.key, self.keep, self.asked = key, keep, revision
        self.session = self.revision = None
        self.kept = {}  # by address
        self.open = []

    def at(self, url):
        """The same client, whose requests go to the gateway of that URL alone."""
        parts = urllib.parse.urlsplit(url)
        one = copy.copy(self)
        one.turns = itertools.repeat((parts.hostname, parts.port))
        return one

    def fields(self, method, headers):
        """Of a request; a header of the test's that is None is left out."""
        fields = {"Host": f"{self.address[0]}:{self.address[1]}"}
        if self.key is not None:
            fields["Authorization"] = "Bearer " + self.key
        if self.session is not None:
            fields["Mcp-Session-Id"] = self.session
        if self.revision is not None and self.revision >= "2025-06-18":
            fields["MCP-Protocol-Version"] = self.revision
        if method == "POST":
            fields["Accept"], fields["Content-Type"] = BOTH, "application/json"
        elif method == "GET":
            fields["Accept"] = "text/event-stream"
        fields.update(headers or {})
        return {name: value for name, value in fields.items() if value is not None}

    def _connect(self):
        if self.address in self.kept:
            return self.kept.pop(self.address)
        sock = socket.create_connection(self.address, harness.PATIENCE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.open.append(sock)
        return sock

    def send(self, method, body=b"", headers=None):
        self.address = next(self.turns)
        fields = self.fields(method, headers)
        if method == "POST" or body:
            fields["Content-Length"] = len(body)
        head = f"{method} {self.target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
        sock = self._connect()
        sock.sendall(head.encode("latin-1") + body)
        return Reply(sock, self if self.keep else None)

    def post(self, message, headers=None):
        return self.send("POST", bytes_of(message), headers)

    def get(self, last_id=None, headers=None):
        return self.send("GET", headers={"Last-Event-ID": last_id, **(headers or {})})

    def delete(self, headers=None):
        return self.send("DELETE", headers=headers)

    def call(self, id=1, name="t", **params):
        """tools/call, sent."""
        return self.post({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": {}, **params}})

    def notify(self, method, **params):
        """A notification, and that it was taken."""
        reply = self.post({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})
        if reply.status != 202:
            raise harness.Failure(f"{method}: {reply.status} {reply.body()!r}")
        reply.end()

    def initialize(self, capabilities=None, id=0):
        return self.post({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
            "protocolVersion": self.asked, "capabilities": capabilities or {}, "clientInfo": {"name": "c", "version": "1"}}})

    def hello(self, capabilities=None, initialized=True):
        """The whole handshake; returns the result of initialize."""
        reply = self.initialize(capabilities)
        if reply.status != 200:
            raise harness.Failure(f"initialize: {reply.status} {reply.body()!r}")
        events = (reply.header("content-type") or "").startswith("text/event-stream")
        message = reply.message() if events else reply.json()
        self.session = reply.header("mcp-session-id")
        self.revision = message["result"]["protocolVersion"]
        if events:
            reply.body()
        if initialized:
            self.notify("notifications/initialized")
        return message["result"]

    def close(self):
        for sock in self.open:
            sock.close()
