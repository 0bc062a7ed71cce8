"""HTTP/2 frames, and connections on which an attack can choose the segment that its bytes travel in.

Ways to begin a connection:
    clear     TCP
    tls       TLS; the first bytes follow once the handshake is over on both sides
    finished  TLS; the first bytes travel in the same segment as the client's Finished
"""

import socket
import ssl
import struct
import time

WAYS = ("clear", "tls", "finished")
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS = 1, 4
WINDOW_MAX = 0x7fffffff
WINDOW_DEFAULT = 65535
FRAME_MAX = 16384


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def integer(value, bits, first=0):
    """RFC 7541, 5.1."""
    top = (1 << bits) - 1
    if value < top:
        return bytes([first | value])
    out, value = [first | top], value - top
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes(out + [value])


def string(value):
    return integer(len(value), 7) + value


def literal(name, value, first=0):
    """Without indexing; 0x40: entered into the dynamic table."""
    return bytes([first]) + string(name) + string(value)


def settings(*pairs):
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *pair) for pair in pairs))


def reset(stream):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", 8))


def window(stream, by):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", by))


def priority(stream):
    return frame(PRIORITY, 0, stream, struct.pack(">IB", 0, 9))


class Connection:
    """One client. Reading never raises at the end of the stream, sending does (OSError)."""

    def __init__(self, host, port, way, first=b"", alpn="h2", receive_buffer=None):
        assert way in WAYS
        self.tls = None
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(20)
        self.socket.connect((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if way != "clear":
            self._shake_hands(host, alpn)
        if way == "tls":
            self._flush()
            self.read(0.05)  # tickets, and over HTTP/2 the server's SETTINGS: it has finished too
        self.send(first)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def _shake_hands(self, host, alpn):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols([alpn])
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._in, self._out, server_hostname=host)
        while True:
            try:
                self.tls.do_handshake()
                return  # our Finished is in _out still
            except ssl.SSLWantReadError:
                self._flush()
                data = self.socket.recv(65536)
                if data == b"":
                    raise ConnectionResetError("closed during the handshake") from None
                self._in.write(data)

    def _flush(self):
        self.socket.sendall(self._out.read())

    def send(self, data):
        if self.tls is None:
            self.socket.sendall(data)
            return
        if data:
            self.tls.write(data)
        self._flush()

    def read(self, wait_s):
        """The next bytes; b"" at the end of the stream, None when nothing came in time."""
        self.socket.settimeout(max(wait_s, 1e-4))
        try:
            while True:
                if self.tls is None:
                    return self.socket.recv(65536)
                try:
                    return self.tls.read(65536)
                except ssl.SSLWantReadError:
                    data = self.socket.recv(65536)
                    if data == b"":
                        return b""
                    self._in.write(data)
        except (TimeoutError, BlockingIOError):
            return None
        except (ssl.SSLError, OSError):
            return b""
        finally:
            self.socket.settimeout(20)

    def read_for(self, most_s, enough=lambda data: False):
        """All that comes until the end of the stream, `enough`, or `most_s`; and whether it ended."""
        data, deadline = b"", time.monotonic() + most_s
        while (left := deadline - time.monotonic()) > 0 and not enough(data):
            piece = self.read(left)
            if piece == b"":
                return data, True
            data += piece or b""
        return data, False

    def drain(self):
        """Takes what is there; raises when that is the end of the stream."""
        while (data := self.read(0)) is not None:
            if data == b"":
                raise ConnectionResetError("end of stream")

    def close_notify(self):
        try:
            self.tls.unwrap()
        except ssl.SSLError:
            self._flush()


def frames(data):
    """(type, flags, stream, payload) of the whole frames in `data`."""
    found = []
    while len(data) >= 9:
        size = int.from_bytes(data[:3], "big")
        if len(data) < 9 + size:
            break
        found.append((data[3], data[4], int.from_bytes(data[5:9], "big") & WINDOW_MAX, data[9:9 + size]))
        data = data[9 + size:]
    return found
