"""HTTP/2 frame by frame, for tests that stop in the middle of something.

    with h2_client.Client(gateway.url) as client:
        client.request(1, "/v1/sampling", fields, body[:10], end=False)
        client.data(1, body[10:])
        answer = client.answer(1)
"""

import socket
import struct
import urllib.parse

import harness

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_MAX = 16384


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """A header field without indexing and without Huffman coding (RFC 7541, 6.2.2)."""
    def string(text):
        text = text.encode()
        head, rest = min(len(text), 127), len(text) - 127
        if head < 127:
            return bytes([head]) + text
        length = bytes([127])
        while rest >= 128:
            length += bytes([rest % 128 + 128])
            rest //= 128
        return length + bytes([rest]) + text
    return b"\0" + string(name) + string(value)


class Client:
    """One connection. `frames` are those that have come: (type, flags, stream, payload)."""

    def __init__(self, url, windows=True, context=None):
        """`windows`: answers may be as long as they like. With an ssl `context` under TLS, which must offer h2."""
        parts = urllib.parse.urlsplit(url)
        self.authority = parts.netloc
        self.socket = socket.create_connection((parts.hostname, parts.port), harness.PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.frames, self.closed = [], False
        self._rest = b""
        settings = struct.pack(">HI", 4, 0x7fffffff) if windows else b""
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0, settings))
        if windows:
            self.socket.sendall(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0x7fff0000)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def request(self, stream, path, fields, body=b"", end=True):
        """POST. Without `end` the body goes on with data()."""
        pairs = [(":method", "POST"), (":scheme", "http"), (":path", path),
                 (":authority", self.authority), *((k.lower(), v) for k, v in fields.items())]
        block = b"".join(literal(name, value) for name, value in pairs)
        self.socket.sendall(frame(HEADERS, END_HEADERS, stream, block))
        self.data(stream, body, end)

    def data(self, stream, body, end=True):
        pieces = [body[at:at + FRAME_MAX] for at in range(0, len(body), FRAME_MAX)] or [b""]
        for piece in pieces[:-1]:
            self.socket.sendall(frame(DATA, 0, stream, piece))
        if pieces[-1] or end:
            self.socket.sendall(frame(DATA, END_STREAM if end else 0, stream, pieces[-1]))

    def read(self, timeout_s=None):
        """What comes next; False when nothing came in time. At the end `closed` is set."""
        self.socket.settimeout(harness.PATIENCE_S if timeout_s is None else timeout_s)
        try:
            data = self.socket.recv(65536)
        except TimeoutError:
            return False
        except ConnectionResetError:
            data = b""
        self.closed = data == b""
        self._rest += data
        while len(self._rest) >= 9:
            size = int.from_bytes(self._rest[:3], "big")
            if len(self._rest) < 9 + size:
                break
            kind, flags, stream = struct.unpack(">BBI", self._rest[3:9])
            self.frames.append((kind, flags, stream & 0x7fffffff, self._rest[9:9 + size]))
            self._rest = self._rest[9 + size:]
        return True

    def wait(self, condition, what):
        """Reads until `condition(self)` holds, and returns what it returned."""
        while not condition(self):
            if self.closed:
                raise harness.Failure(f"closed before {what}: {self.frames}")
            if not self.read():
                raise harness.Failure(f"waited in vain for {what}: {self.frames}")
        return condition(self)

    def count(self, kind):
        return sum(1 for f in self.frames if f[0] == kind)

    def answer(self, stream):
        """The whole body of an answer; a stream that was reset is a failure."""
        def ended(client):
            if any(f[0] == RST_STREAM and f[2] == stream for f in client.frames):
                raise harness.Failure(f"stream {stream} was reset: {client.frames}")
            return any(f[2] == stream and f[0] in (DATA, HEADERS) and f[1] & END_STREAM
                       for f in client.frames)
        self.wait(ended, f"the answer on stream {stream}")
        return b"".join(f[3] for f in self.frames if f[0] == DATA and f[2] == stream)

    def read_to_end(self):
        self.wait(lambda client: client.closed, "the end of the connection")
