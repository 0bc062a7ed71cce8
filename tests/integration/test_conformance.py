"""RFC 9113 (HTTP/2) and RFC 7541 (HPACK) as a client can test them on a server, case by case.

Modelled on h2spec: each row says which section, what is sent, and what the RFC allows as the answer.
An answer is one word: "200" (the status of the request's response), "ignored" (the connection goes on
and nothing came back), "rst:CODE", "goaway:CODE" (both by name, and the connection closed behind a
GOAWAY), "closed" (without one). The rows that the gateway breaks are in EXCEPTIONS, each with what the
peer sees instead; one of them that is kept after all fails the test, so that the list stays true.
Frames and header blocks are made by Debian's python3-hyperframe and python3-hpack where these are
willing to write what is wrong; python3-h2 is a strict client for what is right.
ctest: timeout=300
"""

import os
import socket
import ssl
import struct
import subprocess
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
from h2_client import PREFACE, frame, literal  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/attacks"))
import servers  # noqa: E402

sys.path.append("/usr/lib/python3/dist-packages")  # where Debian's are, whichever python3 runs this
import h2.config  # noqa: E402
import h2.connection  # noqa: E402
import h2.events  # noqa: E402
import hpack  # noqa: E402
import hpack.huffman  # noqa: E402
import hpack.huffman_constants  # noqa: E402
import hyperframe.frame as hf  # noqa: E402
from h2.errors import ErrorCodes  # noqa: E402

DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, WITH_PRIORITY = 1, 1, 4, 8, 32
WINDOW_MAX = 0x7fffffff
SYNC = b"in order"
BODY = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
HUFFMAN = hpack.huffman.HuffmanEncoder(hpack.huffman_constants.REQUEST_CODES, hpack.huffman_constants.REQUEST_CODES_LENGTH)
SIZE = len(b'{"jsonrpc":"2.0","id":1,"result":{}}')


# ---- what is sent ------------------------------------------------------------------------------

FIELDS = [(":method", "POST"), (":scheme", "http"), (":path", "/v1/sampling"), (":authority", "localhost"),
          ("content-type", "application/json"), ("authorization", "Bearer " + harness.KEY)]


def fields(*more, without=(), instead=None):
    """Those of an honest request, changed."""
    return [(name, (instead or {}).get(name, value)) for name, value in FIELDS if name not in without] + list(more)


def block(pairs=FIELDS):
    return hpack.Encoder().encode(pairs)


def plain_block(pairs=FIELDS):
    """Without tables and Huffman: what hpack's encoder would correct stays as it is."""
    return b"".join(literal(name, value) for name, value in pairs)


def packed(name, value):
    """A header field whose value is in Huffman's code."""
    text = HUFFMAN.encode(value)
    length = hpack.hpack.encode_integer(len(text), 7)
    length[0] |= 0x80
    return b"\x00" + bytes([len(name)]) + name.encode() + bytes(length) + text


def headers(stream=1, data=None, flags=END_HEADERS):
    return frame(HEADERS, flags, stream, block() if data is None else data)


def data(stream=1, payload=BODY, flags=END_STREAM):
    return frame(DATA, flags, stream, payload)


def request(stream=1, pairs=FIELDS, body=BODY):
    return headers(stream, plain_block(pairs)) + data(stream, body)


def get(stream=1, pairs=None, extra=b""):
    """Without a body; 405 from the gateway."""
    return headers(stream, plain_block(pairs or fields(instead={":method": "GET"})) + extra, END_HEADERS | END_STREAM)


def rst(stream=1, code=ErrorCodes.CANCEL):
    return hf.RstStreamFrame(stream, error_code=int(code)).serialize()


def settings(*pairs):
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *pair) for pair in pairs))


def window(stream, by):
    return frame(WINDOW, 0, stream, struct.pack(">I", by))


def priority(stream, depends=0, weight=15):
    return frame(PRIORITY, 0, stream, struct.pack(">IB", depends, weight))


def continuation(stream, fragment, flags=END_HEADERS):
    return frame(CONTINUATION, flags, stream, fragment)


def padded(payload, claimed):
    return bytes([claimed]) + payload


WHOLE = block()
START = b""  # the preface and empty SETTINGS come before every case that does not begin with a preface itself


# ---- what is allowed ---------------------------------------------------------------------------

def connection_error(*codes):
    """5.4.1: GOAWAY should be sent, the connection must be closed."""
    return {"goaway:" + code for code in codes} | {"closed"}


def stream_error(*codes):
    """5.4.2; 5.4: may be made a connection error."""
    return {"rst:" + code for code in codes} | connection_error(*codes)


# 8.1.1: malformed requests are stream errors; the server may answer before it resets.
MALFORMED = stream_error("PROTOCOL_ERROR") | {"400"}
SERVED = {"200"}
NOT_ALLOWED = {"405"}
IGNORED = {"ignored"}
COMPRESSION = connection_error("COMPRESSION_ERROR")
PROTOCOL = connection_error("PROTOCOL_ERROR")
FRAME_SIZE = connection_error("FRAME_SIZE_ERROR")
FLOW = connection_error("FLOW_CONTROL_ERROR")
IDLE = connection_error("PROTOCOL_ERROR", "STREAM_CLOSED")  # 5.1
ENDED = stream_error("STREAM_CLOSED")
AFTER_RESET = ENDED | connection_error("PROTOCOL_ERROR") | IGNORED  # 5.1: "or ignored", for a while

# Section, what is sent (in words), the bytes, what is allowed. Stream 1 is the one looked at.
CASES = [
    ("3.4", "the preface and SETTINGS", START, IGNORED),
    ("3.4", "SETTINGS with values before the first request", settings((3, 100), (4, 65535)) + request(), SERVED),
    ("3.4", "no SETTINGS behind the preface", PREFACE + request(), PROTOCOL),
    ("4.1", "a frame of an unknown type", frame(0x16, 0, 0, bytes(8)) + request(), SERVED),
    ("4.1", "a frame with flags that mean nothing", frame(PING, 0x16, 0, b"whatever") + request(), SERVED),
    ("4.1", "a frame with the reserved bit set", frame(PING, 0, 0x80000000, b"whatever") + request(), SERVED),
    ("4.2", "DATA of 16,384 bytes", headers() + data(1, BODY.ljust(16384)), SERVED),
    ("4.2", "DATA over the maximum frame size", headers() + data(1, bytes(16385)), stream_error("FRAME_SIZE_ERROR")),
    ("4.2", "HEADERS over the maximum frame size", headers(1, WHOLE + literal("x", "a" * 16384)), FRAME_SIZE),
    ("4.3", "a header block that cannot be decoded", headers(1, b"\x82\x86\x84\xff\xff\xff\xff\xff\xff"), COMPRESSION),
    ("4.3", "PRIORITY inside a header block", headers(1, WHOLE, 0) + priority(1) + continuation(1, b""), PROTOCOL),
    ("4.3", "HEADERS of another stream inside a header block", headers(1, WHOLE, 0) + headers(3), PROTOCOL),
    ("5.1", "idle: DATA", data(), IDLE),
    ("5.1", "idle: RST_STREAM", rst(), PROTOCOL),
    ("5.1", "idle: WINDOW_UPDATE", window(1, 100), PROTOCOL),
    ("5.1", "idle: CONTINUATION", continuation(1, WHOLE), PROTOCOL),
    ("5.1", "idle: PRIORITY", priority(1) + request(), SERVED),
    ("5.1", "half-closed: DATA", request() + data(), ENDED),
    ("5.1", "half-closed: HEADERS", request() + headers(), ENDED | PROTOCOL),
    ("5.1", "half-closed: CONTINUATION", request() + continuation(1, WHOLE), ENDED | PROTOCOL),
    ("5.1", "half-closed: WINDOW_UPDATE", request() + window(1, 100), SERVED),
    ("5.1", "half-closed: PRIORITY", request() + priority(1), SERVED),
    ("5.1", "half-closed: RST_STREAM", request() + rst(), SERVED | IGNORED),
    ("5.1", "closed by RST_STREAM: DATA", headers() + rst() + data(), AFTER_RESET),
    ("5.1", "closed by RST_STREAM: HEADERS", headers() + rst() + headers(), AFTER_RESET),
    ("5.1", "closed by RST_STREAM: CONTINUATION", headers() + rst() + continuation(1, WHOLE), ENDED | PROTOCOL),
    ("5.1", "closed by RST_STREAM: PRIORITY", headers() + rst() + priority(1) + request(3), IGNORED),
    ("5.1.1", "a stream with an even number", headers(2), PROTOCOL),
    ("5.1.1", "a stream below the last one", request(5) + headers(3), PROTOCOL),
    ("5.3.1", "HEADERS that depend on themselves",
     headers(1, struct.pack(">IB", 1, 15) + WHOLE, END_HEADERS | WITH_PRIORITY) + data(),
     stream_error("PROTOCOL_ERROR") | SERVED),
    ("5.3.1", "PRIORITY that depends on itself", priority(1, 1) + request(), stream_error("PROTOCOL_ERROR") | SERVED),
    ("5.4.1", "after a connection error the connection is closed", frame(PING, 0, 0, b"short"), FRAME_SIZE),
    ("5.5", "an unknown frame inside a header block",
     headers(1, WHOLE, 0) + frame(0x16, 0, 0, b"") + continuation(1, b""), PROTOCOL),
    ("6.1", "DATA on stream 0", data(0), PROTOCOL),
    ("6.1", "DATA with padding", headers() + data(1, padded(BODY + bytes(8), 8), END_STREAM | PADDED), SERVED),
    ("6.1", "DATA with more padding than payload", headers() + data(1, padded(BODY, 255), END_STREAM | PADDED), PROTOCOL),
    ("6.1", "several DATA", headers() + data(1, BODY[:9], 0) + data(1, b"", 0) + data(1, BODY[9:]), SERVED),
    ("6.2", "HEADERS on stream 0", headers(0), PROTOCOL),
    ("6.2", "HEADERS with padding", headers(1, padded(WHOLE + bytes(8), 8), END_HEADERS | PADDED) + data(), SERVED),
    ("6.2", "HEADERS with more padding than payload",
     headers(1, padded(WHOLE, 255), END_HEADERS | PADDED), PROTOCOL),
    ("6.2", "HEADERS with a priority",
     headers(1, struct.pack(">IB", 0, 200) + WHOLE, END_HEADERS | WITH_PRIORITY) + data(), SERVED),
    ("6.2", "HEADERS with a priority and padding",
     headers(1, padded(struct.pack(">IB", 0x80000000, 9) + WHOLE + bytes(3), 3), END_HEADERS | PADDED | WITH_PRIORITY)
     + data(), SERVED),
    ("6.2", "HEADERS too short for their priority", headers(1, b"\0\0", END_HEADERS | WITH_PRIORITY),
     connection_error("FRAME_SIZE_ERROR", "PROTOCOL_ERROR")),
    ("6.3", "PRIORITY on stream 0", priority(0), PROTOCOL),
    ("6.3", "PRIORITY of 4 bytes", headers() + frame(PRIORITY, 0, 1, bytes(4)), stream_error("FRAME_SIZE_ERROR")),
    ("6.4", "RST_STREAM on stream 0", frame(RST, 0, 0, bytes(4)), PROTOCOL),
    ("6.4", "RST_STREAM of 3 bytes", headers() + frame(RST, 0, 1, bytes(3)), FRAME_SIZE),
    ("6.5", "SETTINGS with ACK and a payload", frame(SETTINGS, ACK, 0, bytes(6)), FRAME_SIZE),
    ("6.5", "SETTINGS on a stream", frame(SETTINGS, 0, 1, b""), PROTOCOL),
    ("6.5", "SETTINGS of 3 bytes", frame(SETTINGS, 0, 0, bytes(3)), FRAME_SIZE),
    ("6.5.2", "ENABLE_PUSH of 2", settings((2, 2)), PROTOCOL),
    ("6.5.2", "INITIAL_WINDOW_SIZE over the maximum", settings((4, 1 << 31)), FLOW),
    ("6.5.2", "MAX_FRAME_SIZE under the minimum", settings((5, 16383)), PROTOCOL),
    ("6.5.2", "MAX_FRAME_SIZE over the maximum", settings((5, 1 << 24)), PROTOCOL),
    ("6.5.2", "an unknown setting", settings((0xff, 1)) + request(), SERVED),
    ("6.5.2", "HEADER_TABLE_SIZE of 0", settings((1, 0)) + request(), SERVED),
    ("6.5.2", "MAX_HEADER_LIST_SIZE", settings((6, 100)) + request(), SERVED),
    ("6.5.3", "a setting given twice counts as given last", settings((4, 0), (4, 1000)) + request(), SERVED),
    ("6.6", "PUSH_PROMISE from a client", frame(PUSH, END_HEADERS, 1, struct.pack(">I", 2) + WHOLE), PROTOCOL),
    ("6.7", "PING with ACK is not answered", frame(PING, ACK, 0, b"unasked!") + request(), SERVED),
    ("6.7", "PING on a stream", frame(PING, 0, 1, bytes(8)), PROTOCOL),
    ("6.7", "PING of 6 bytes", frame(PING, 0, 0, bytes(6)), FRAME_SIZE),
    ("6.8", "GOAWAY on a stream", frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL),
    ("6.8", "GOAWAY too short", frame(GOAWAY, 0, 0, bytes(4)), FRAME_SIZE),
    ("6.9", "WINDOW_UPDATE by 0", window(0, 0), PROTOCOL),
    ("6.9", "WINDOW_UPDATE by 0 on a stream", headers() + window(1, 0), stream_error("PROTOCOL_ERROR")),
    ("6.9", "WINDOW_UPDATE of 3 bytes", frame(WINDOW, 0, 0, bytes(3)), FRAME_SIZE),
    ("6.9.1", "a connection window over the maximum", window(0, WINDOW_MAX) * 2, FLOW),
    ("6.9.1", "a stream window over the maximum", headers() + window(1, WINDOW_MAX) * 2,
     stream_error("FLOW_CONTROL_ERROR")),
    ("6.9.2", "a window that SETTINGS opens later", settings((4, 0)) + request() + settings((4, SIZE)), SERVED),
    ("6.9.2", "a window below 0 that opens again",
     settings((4, 5)) + request() + settings((4, 0)) + window(1, SIZE + 5), SERVED),
    ("6.9.2", "SETTINGS make a stream window too large", headers() + window(1, 100) + settings((4, WINDOW_MAX)), FLOW),
    ("6.10", "a header block in HEADERS and CONTINUATION",
     headers(1, WHOLE[:9], 0) + continuation(1, WHOLE[9:]) + data(), SERVED),
    ("6.10", "a header block in HEADERS and three CONTINUATION",
     headers(1, WHOLE[:9], 0) + continuation(1, WHOLE[9:19], 0) + continuation(1, b"", 0) + continuation(1, WHOLE[19:])
     + data(), SERVED),
    ("6.10", "DATA inside a header block", headers(1, WHOLE[:9], 0) + continuation(1, WHOLE[9:], 0) + data(), PROTOCOL),
    ("6.10", "CONTINUATION on stream 0", headers(1, WHOLE[:9], 0) + continuation(0, WHOLE[9:]), PROTOCOL),
    ("6.10", "CONTINUATION after END_HEADERS", headers() + continuation(1, WHOLE), PROTOCOL),
    ("6.10", "CONTINUATION after a CONTINUATION with END_HEADERS",
     headers(1, WHOLE[:9], 0) + continuation(1, WHOLE[9:]) + continuation(1, b""), PROTOCOL),
    ("6.10", "CONTINUATION after DATA", headers() + data(1, b"x", 0) + continuation(1, WHOLE), PROTOCOL),
    ("7", "GOAWAY with an unknown code", frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0xff)), IGNORED | {"closed"}),
    ("7", "RST_STREAM with an unknown code", headers() + rst(1, 0xff) + frame(PING, ACK, 0, bytes(8)), IGNORED),
    ("8.1", "trailers", headers() + data(1, BODY, 0)
     + headers(1, plain_block([("x-trailer", "1")]), END_HEADERS | END_STREAM), SERVED),
    ("8.1", "trailers behind no body", headers() + headers(1, plain_block([("x-trailer", "1")]), END_HEADERS | END_STREAM),
     {"400"}),
    ("8.1", "a key in the trailers", headers(1, plain_block(fields(without=("authorization",)))) + data(1, BODY, 0)
     + headers(1, plain_block([("authorization", "Bearer " + harness.KEY)]), END_HEADERS | END_STREAM), {"401"}),
    ("8.1", "trailers with NUL", headers() + data(1, BODY, 0)
     + headers(1, plain_block([("x-trailer", "a\0b")]), END_HEADERS | END_STREAM), SERVED | MALFORMED),
    ("8.1", "trailers without END_STREAM", headers() + data(1, BODY, 0) + headers(1, plain_block([("x-trailer", "1")])),
     MALFORMED),
    ("8.1.1", "content-length over the body",
     request(1, fields(("content-length", str(len(BODY) + 1)))), MALFORMED),
    ("8.1.1", "content-length under the body", request(1, fields(("content-length", "1"))), MALFORMED),
    ("8.1.1", "content-length of several DATA", headers(1, plain_block(fields(("content-length", "1"))))
     + data(1, BODY[:9], 0) + data(1, BODY[9:]), MALFORMED),
    ("8.1.1", "two content-lengths that differ",
     request(1, fields(("content-length", "1"), ("content-length", str(len(BODY))))), MALFORMED),
    ("8.1.1", "two content-lengths that are right",
     request(1, fields(("content-length", str(len(BODY))), ("content-length", str(len(BODY))))), SERVED),
    ("8.1.1", "content-length that is right", request(1, fields(("content-length", str(len(BODY))))), SERVED),
    ("8.2", "an upper-case field name", request(1, fields(("X-Upper", "1"))), MALFORMED),
    ("8.2.1", "a field name with a space", get(1, fields(("x upper", "1"), instead={":method": "GET"})), MALFORMED),
    ("8.2.1", "a field name with a control character", get(1, fields(("x\x01", "1"), instead={":method": "GET"})), MALFORMED),
    ("8.2.1", "a field name with a colon", get(1, fields(("x:y", "1"), instead={":method": "GET"})), MALFORMED),
    ("8.2.1", "an empty field name", get(1, fields(("", "1"), instead={":method": "GET"})), MALFORMED),
    ("8.2.1", "a field value with CR LF", get(1, fields(("x", "1\r\ny: 2"), instead={":method": "GET"})), MALFORMED),
    ("8.2.1", "a field value with NUL", get(1, fields(("x", "a\0b"), instead={":method": "GET"})), MALFORMED),
    ("8.2.1", "a field value with NUL, packed", get(1, fields(instead={":method": "GET"}), packed("x", b"a\0b")), MALFORMED),
    ("8.2.1", "a field value that ends with a tab", get(1, fields(("x", "1\t"), instead={":method": "GET"})), MALFORMED),
    ("8.2.1", "a field value with a space inside", get(1, fields(("x", "1 2"), instead={":method": "GET"})), NOT_ALLOWED),
    ("8.2.1", "a field value that begins with a space", get(1, fields(("x", " 1"), instead={":method": "GET"})), MALFORMED),
    ("8.2.2", "the connection field", request(1, fields(("connection", "keep-alive"))), MALFORMED),
    ("8.2.2", "transfer-encoding", request(1, fields(("transfer-encoding", "chunked"))), MALFORMED),
    ("8.2.2", "te other than trailers", request(1, fields(("te", "gzip"))), MALFORMED),
    ("8.2.2", "te: Trailers", request(1, fields(("te", "Trailers"))), SERVED),
    ("8.2.2", "te: trailers", request(1, fields(("te", "trailers"))), SERVED),
    ("8.2.3", "cookie in several fields", request(1, fields(("cookie", "a=b"), ("cookie", "c=d"))), SERVED),
    ("8.3", "an unknown pseudo-header", request(1, fields((":unknown", "1"))), MALFORMED),
    ("8.3", "a pseudo-header of responses", request(1, fields((":status", "200"))), MALFORMED),
    ("8.3", "a pseudo-header behind a field", request(1, fields((":path", "/v1/sampling"), without=(":path",))), MALFORMED),
    ("8.3", "a pseudo-header in trailers", headers() + data(1, BODY, 0)
     + headers(1, plain_block([(":method", "POST")]), END_HEADERS | END_STREAM), MALFORMED),
    ("8.3.1", "an empty :path", request(1, fields(instead={":path": ""})), MALFORMED),
    ("8.3.1", "no :method", request(1, fields(without=(":method",))), MALFORMED),
    ("8.3.1", "no :scheme", request(1, fields(without=(":scheme",))), MALFORMED),
    ("8.3.1", "no :path", request(1, fields(without=(":path",))), MALFORMED),
    ("8.3.1", ":method twice", request(1, [(":method", "POST"), *FIELDS]), MALFORMED),
    ("8.3.1", ":scheme twice", request(1, [(":scheme", "http"), *FIELDS]), MALFORMED),
    ("8.3.1", ":path twice", request(1, [(":path", "/v1/sampling"), *FIELDS]), MALFORMED),
    ("8.3.1", "no :authority", request(1, fields(without=(":authority",))), SERVED),
    ("8.5", "CONNECT with :scheme and :path", request(1, fields(instead={":method": "CONNECT"})), MALFORMED),
    ("9.1", "GET", get(), NOT_ALLOWED),
    ("9.1", "HEAD", get(1, fields(instead={":method": "HEAD"})), NOT_ALLOWED),
]

INDEXED = b"\x83\x86\x84"  # POST, http, /
HPACK_CASES = [
    ("2.3.3", "an index beyond the tables", headers(1, INDEXED + b"\xc6"), COMPRESSION),
    ("2.3.3", "a literal whose name's index is beyond the tables", headers(1, INDEXED + b"\x7f\x07\x01a"), COMPRESSION),
    ("4.2", "a size update at the end of a block", headers(1, plain_block() + b"\x20"), COMPRESSION),
    ("4.2", "a size update between fields", headers(1, INDEXED + b"\x20" + plain_block()), COMPRESSION),
    ("4.2", "a size update at the beginning", headers(1, b"\x20" + plain_block()) + data(), SERVED),
    ("4.2", "two size updates at the beginning", headers(1, b"\x20\x3f\xe1\x1f" + plain_block()) + data(), SERVED),
    ("5.1", "an integer that never ends", headers(1, INDEXED + b"\xff" + b"\x80" * 60), COMPRESSION),
    ("5.1", "an integer over 64 bits", headers(1, INDEXED + b"\xff" + b"\xff" * 12 + b"\x7f"), COMPRESSION),
    ("5.2", "a string beyond the block", headers(1, INDEXED + b"\x00\x7f\x20abc"), COMPRESSION),
    ("5.2", "Huffman padding over 7 bits", headers(1, INDEXED + b"\x00\x01x\x83\x1f\xff\xff"), COMPRESSION),
    ("5.2", "Huffman padding of zeros", headers(1, INDEXED + b"\x00\x01x\x81\x18"), COMPRESSION),
    ("5.2", "Huffman with EOS inside", headers(1, INDEXED + b"\x00\x01x\x84\xff\xff\xff\xfc"), COMPRESSION),
    ("5.2", "Huffman that is right",
     headers(1, plain_block() + b"\x00\x01x\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff") + data(), SERVED),
    ("5.2", "Huffman of every byte that a value may have",
     headers(1, plain_block() + packed("x", bytes(byte for byte in range(256) if byte >= 0x20 and byte != 0x7f)[::-1] + b".")
             ) + data(), SERVED),
    ("6.1", "index 0", headers(1, INDEXED + b"\x80"), COMPRESSION),
    ("6.1", "a field from the dynamic table",
     headers(1, plain_block() + b"\x40\x01x\x01y" + b"\xbe") + data(), SERVED),
    ("6.2.3", "a field that is never indexed", headers(1, plain_block() + b"\x10\x01x\x01y") + data(), SERVED),
    ("6.3", "a table larger than allowed", headers(1, b"\x3f\xe2\x1f" + plain_block()), COMPRESSION),
]

H2O = "libh2o 2.2.5 does not check it"
# (section, case): what the peer sees, and why.
EXCEPTIONS = {
    ("3.4", "no SETTINGS behind the preface"): ("200", H2O),
    ("5.1.1", "a stream below the last one"): ("goaway:STREAM_CLOSED", "libh2o 2.2.5 closes with another code"),
    ("6.9.2", "SETTINGS make a stream window too large"): ("ignored", H2O + "; its windows have 64 bits"),
    ("8.5", "CONNECT with :scheme and :path"): ("405", H2O + "; the gateway knows no such method"),
}


# ---- what comes back ---------------------------------------------------------------------------

class Peer:
    """Sends a case and says in one word what came back."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port), harness.PATIENCE_S)
        self.decoder = hpack.Decoder()
        self.status, self.over, self.goaway = {}, {}, None
        self.synced, self.closed, self.rest = False, False, b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, bytes_):
        try:
            self.socket.sendall(bytes_)
        except OSError:
            pass  # reading tells

    def take(self, kind, flags, stream, payload):
        if kind == HEADERS:
            self.status[stream] = dict(self.decoder.decode(payload)).get(":status")
        if kind in (HEADERS, DATA) and flags & END_STREAM:
            self.over.setdefault(stream, self.status[stream])
        if kind == RST:
            self.over.setdefault(stream, "rst:" + name_of(payload))
        if kind == GOAWAY and payload[4:8] != bytes(4):
            self.goaway = name_of(payload[4:8])
        if kind == PING and flags & ACK:
            self.synced = self.synced or payload == SYNC

    def read(self):
        try:
            piece = self.socket.recv(65536)
        except ConnectionResetError:
            piece = b""
        self.closed = piece == b""
        self.rest += piece
        while len(self.rest) >= 9 and len(self.rest) >= 9 + int.from_bytes(self.rest[:3], "big"):
            size = int.from_bytes(self.rest[:3], "big")
            kind, flags, stream = struct.unpack(">BBI", self.rest[3:9])
            self.take(kind, flags, stream & WINDOW_MAX, self.rest[9:9 + size])
            self.rest = self.rest[9 + size:]

    def wait(self, condition):
        while not self.closed and not condition():
            self.read()

    def word(self, stream, answered):
        """`answered`: the case allows an answer, so there must be one, or an end of another kind."""
        self.send(frame(PING, 0, 0, SYNC))
        self.wait(lambda: self.goaway or self.synced)
        if answered:
            self.wait(lambda: self.goaway or stream in self.over)
        if self.goaway:
            self.wait(lambda: False)  # 5.4.1: closed, or this never returns
            return "goaway:" + self.goaway
        if self.closed:
            return "closed"
        return self.over.get(stream, "ignored")


def name_of(payload):
    code = int.from_bytes(payload, "big")
    try:
        return ErrorCodes(code).name
    except ValueError:
        return str(code)


class Tables(harness.Case):
    def setUp(self):
        self.server = self.gateway(harness.config(self.sim()))

    def say(self, bytes_, answered=True):
        with Peer(self.server.url) as peer:
            peer.send(bytes_ if bytes_.startswith(PREFACE) else PREFACE + settings() + bytes_)
            return peer.word(1, answered)

    def judge(self, cases):
        """Every row, and that the gateway is well after it."""
        for section, what, bytes_, allowed in cases:
            with self.subTest(section=section, what=what):
                exception = EXCEPTIONS.get((section, what))
                awaited = [exception[0]] if exception else allowed
                # "ignored" cannot be waited for: the PING behind the case tells.
                seen = self.say(bytes_, any(word.isdigit() for word in awaited) and "ignored" not in awaited)
                if exception:
                    self.assertNotIn(seen, allowed, "is kept now: take it off the list of exceptions")
                    self.assertEqual(seen, exception[0])
                else:
                    self.assertIn(seen, allowed)
        self.assertEqual(self.say(request()), "200")
        self.assertEqual(self.server.metrics().sum("sluice_restarts_total"), 0)

    def test_rfc_9113(self):
        self.judge(CASES)

    def test_rfc_7541(self):
        self.judge(HPACK_CASES)

    def test_the_list_of_exceptions_names_cases(self):
        names = [row[:2] for row in CASES + HPACK_CASES]
        self.assertEqual(len(set(names)), len(names), "two cases have one name")
        self.assertEqual(set(EXCEPTIONS) - set(names), set())


class Conversations(harness.Case):
    """What a table cannot say."""

    def setUp(self):
        self.server = self.gateway(harness.config(self.sim()))

    def test_3_4_the_first_frame_is_settings_and_ours_are_acknowledged(self):
        with Peer(self.server.url) as peer:
            kinds = []
            peer.take = lambda kind, flags, stream, payload: kinds.append((kind, flags & ACK))
            peer.send(PREFACE + settings((3, 7)))
            peer.wait(lambda: (SETTINGS, ACK) in kinds)
            self.assertEqual(kinds[0], (SETTINGS, 0))

    def test_5_1_2_a_body_more_than_there_may_be_streams_is_reset(self):
        with Peer(self.server.url) as peer:
            peer.send(PREFACE + settings() + b"".join(map(headers, range(1, 203, 2))))
            peer.wait(lambda: peer.over)
            self.assertIn(peer.over, ({201: "rst:REFUSED_STREAM"}, {201: "rst:PROTOCOL_ERROR"}))

    def test_3_4_another_preface_is_refused(self):
        with Peer(self.server.url) as peer:
            kinds = []
            peer.take = lambda kind, flags, stream, payload: kinds.append((kind, payload))
            peer.send(b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n" + settings())
            peer.wait(lambda: False)
            self.assertEqual(kinds, [(SETTINGS, b""), (GOAWAY, struct.pack(">II", 0, ErrorCodes.PROTOCOL_ERROR))])

    def test_3_4_what_is_no_http_is_closed_without_an_answer(self):
        for sent in (b"INVALID CONNECTION PREFACE\r\n\r\n", b"OPTIONS rtsp://x RTSP/1.0\r\nCSeq: 1\r\n\r\n"):
            for pieces in ([sent], [sent[:5], sent[5:]]):
                with Peer(self.server.url) as peer:
                    for piece in pieces:
                        peer.send(piece)
                    peer.wait(lambda: False)
                    self.assertEqual(peer.rest, b"")

    def test_3_4_what_is_meant_for_http_1_is_a_bad_request(self):
        for line in (b"@@@ @@@ HTTP/1.1", b"GET /", b"hello", b"GET / HTTP/7.7", b"GET / http/1.1"):
            with Peer(self.server.url) as peer:
                peer.send(line + b"\r\nHost: x\r\n\r\n")
                peer.wait(lambda: False)
                self.assertEqual(peer.rest[:13], b"HTTP/1.1 400 ", line)

    def test_5_1_2_a_stream_too_many_is_refused_and_the_others_go_on(self):
        slow = self.gateway(harness.config(self.sim("--latency", "1s")))
        with Peer(slow.url) as peer:
            peer.send(PREFACE + settings() + b"".join(request(s, body=servers.message("")) for s in range(1, 203, 2)))
            peer.wait(lambda: len(peer.over) == 101)
            self.assertEqual(peer.over.pop(201), "rst:REFUSED_STREAM")
            self.assertEqual(set(peer.over.values()), {"200"})

    def test_6_7_ping_is_answered_with_its_payload(self):
        with Peer(self.server.url) as peer:
            answers = []
            peer.take = lambda kind, flags, stream, payload: answers.append((kind, flags, stream, payload))
            peer.send(PREFACE + settings() + frame(PING, 0, 0, b"12345678"))
            peer.wait(lambda: (PING, ACK, 0, b"12345678") in answers)
            self.assertIn((PING, ACK, 0, b"12345678"), answers)

    def test_6_5_2_who_keeps_no_dynamic_table_can_read_every_answer(self):
        with Peer(self.server.url) as peer:
            take = peer.take
            def without_memory(kind, *rest):
                peer.decoder = hpack.Decoder()
                take(kind, *rest)
            peer.take = without_memory
            peer.send(PREFACE + settings((1, 0)))
            for stream in range(1, 9, 2):
                peer.send(request(stream))
                peer.wait(lambda stream=stream: stream in peer.over)
            self.assertEqual(peer.over, {1: "200", 3: "200", 5: "200", 7: "200"})

    def test_6_5_2_who_makes_its_dynamic_table_smaller_is_told_that_it_is_not_used(self):
        """RFC 7541 4.2: a client that is strict, as h2load's nghttp2, fails where the first block does not say so."""
        with Peer(self.server.url) as peer:
            blocks = []
            take = peer.take
            def note(kind, flags, stream, payload):
                if kind == HEADERS:
                    blocks.append(payload)
                take(kind, flags, stream, payload)
            peer.take = note
            peer.send(PREFACE + settings((1, 0)) + request(1) + request(3))
            peer.wait(lambda: len(peer.over) == 2)
            self.assertEqual([block[:2] for block in blocks], [b"\x20\x88", b"\x88\x0f"])
        for size in (0, 1000, 4096, 65536):
            run = subprocess.run(["h2load", "-n", "4", "-c", "1", f"--header-table-size={size}", self.server.url + "/nowhere"],
                                 capture_output=True, text=True, check=True)
            self.assertIn("status codes: 0 2xx, 0 3xx, 4 4xx", run.stdout, size)

    def test_6_9_1_no_byte_more_than_the_window(self):
        with Peer(self.server.url) as peer:
            sizes = []
            take = peer.take
            def note(kind, flags, stream, payload):
                if kind == DATA:
                    sizes.append(len(payload))
                take(kind, flags, stream, payload)
            peer.take = note
            peer.send(PREFACE + settings((4, 1)) + request() + frame(PING, 0, 0, SYNC))
            peer.wait(lambda: sizes and peer.synced)
            self.assertEqual(sizes, [1])
            for n in range(2, SIZE + 1):
                peer.send(window(1, 1))
                peer.wait(lambda n=n: len(sizes) == n)
            peer.wait(lambda: 1 in peer.over)
            self.assertEqual([size for size in sizes if size], [1] * SIZE)


class StrictClient(harness.Case):
    """python3-h2 complains of whatever a server may not do."""

    def converse(self, sock):
        """60 requests, 20 at a time; their bodies, by stream."""
        strict = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        strict.initiate_connection()
        sock.sendall(strict.data_to_send())
        bodies, statuses, open_streams, left = {}, {}, set(), 60
        while left or open_streams:
            while left and len(open_streams) < 20:
                stream = strict.get_next_available_stream_id()
                strict.send_headers(stream, FIELDS)
                strict.send_data(stream, BODY, end_stream=True)
                open_streams.add(stream)
                left -= 1
            sock.sendall(strict.data_to_send())
            received = sock.recv(65536)
            self.assertNotEqual(received, b"")
            for event in strict.receive_data(received):  # raises ProtocolError
                if isinstance(event, h2.events.ResponseReceived):
                    statuses[event.stream_id] = dict(event.headers)[":status"]
                elif isinstance(event, h2.events.DataReceived):
                    bodies[event.stream_id] = bodies.get(event.stream_id, b"") + event.data
                    strict.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    open_streams.discard(event.stream_id)
                self.assertNotIsInstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated))
        sock.sendall(strict.data_to_send())
        self.assertEqual(set(statuses.values()), {"200"})
        self.assertEqual({len(body) for body in bodies.values()}, {SIZE})
        self.assertEqual(len(bodies), 60)

    def test_clear(self):
        server = self.gateway(harness.config(self.sim()))
        parts = urllib.parse.urlsplit(server.url)
        with socket.create_connection((parts.hostname, parts.port), harness.PATIENCE_S) as sock:
            self.converse(sock)

    def test_tls(self):
        cert, key = self.certificate()
        if not servers.has_tls(cert, key):
            self.skipTest("NOT RUN: this version of the gateway has no TLS listeners")
        port = harness.free_port()
        listen = [{"address": f"127.0.0.1:{harness.free_port()}"},
                  {"address": f"127.0.0.1:{port}", "tls": {"cert": cert, "key": key}}]
        self.gateway(harness.config(self.sim(), listen=listen))
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = ssl.create_default_context(cafile=cert)
            context.minimum_version = context.maximum_version = version
            context.set_alpn_protocols(["h2"])
            with socket.create_connection(("127.0.0.1", port), harness.PATIENCE_S) as sock:
                with context.wrap_socket(sock, server_hostname="localhost") as tls:
                    self.assertEqual(tls.selected_alpn_protocol(), "h2")
                    self.converse(tls)


if __name__ == "__main__":
    harness.main()
