"""One program per measure: what a hostile client does, and what shows that it was held off.

A program takes a Target and returns what the client saw, in a word or two; CAPITALS mean that the
server let itself be used. PROGRAMS at the end is the list, with what is expected of each.
"""

import dataclasses
import os
import signal
import socket
import subprocess
import time
from typing import Callable

from wire import (
    CONTINUATION, Connection, DATA, END_HEADERS, END_STREAM, FRAME_MAX, GOAWAY, HEADERS, PING,
    PREFACE, PRIORITY, PUSH_PROMISE, WINDOW_DEFAULT, WINDOW_MAX,
    frame, frames, literal, priority, reset, settings, window)

MEG = 1 << 20
BATCH = 50  # streams sent at once
PATIENCE_S = 10  # of the guard; who is slow is closed a second or two later


def always():
    """A function with a name: a target goes to another process."""
    return True


@dataclasses.dataclass
class Target:
    """A server, and how to ask it for things. An ask is (path, body)."""
    host: str
    port: int
    way: str
    quick: tuple  # answered after about 20 ms with `size` bytes of body
    hang: tuple   # not answered for a long time
    large: tuple  # answered with about a megabyte
    size: int
    key: str = ""
    never: tuple = ()  # not answered at all
    fails: tuple = ()  # answered with a failure
    keys: tuple = ()  # of several tenants, where a program is that of more than one
    pid: int = 0  # of the process to stop, for the programs that attack a shutdown
    seen_enough: Callable = always  # whoever watches an attack has; it goes on until then
    body_max: int = MEG
    calls: tuple = ()  # answered with 64 tool calls

    def open(self, first=b"", **more):
        return Connection(self.host, self.port, self.way, first, **more)

    def headers(self, stream, ask=None, end=False, extra=b"", path=None):
        scheme = b"http" if self.way == "clear" else b"https"
        block = (literal(b":method", b"POST") + literal(b":scheme", scheme)
                 + literal(b":path", path or (ask or self.quick)[0].encode()) + literal(b":authority", b"x"))
        if self.key:
            block += literal(b"authorization", b"Bearer " + self.key.encode())
        block += literal(b"content-type", b"application/json") + extra
        return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block)

    def request(self, stream, ask=None):
        return self.headers(stream, ask) + frame(DATA, END_STREAM, stream, (ask or self.quick)[1])

    def http1(self, ask=None, *fields):
        path, body = ask or self.quick
        head = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json",
                f"Content-Length: {len(body)}", *fields]
        if self.key:
            head.append("Authorization: Bearer " + self.key)
        return "\r\n".join(head).encode() + b"\r\n\r\n" + body


# ---- what is seen ------------------------------------------------------------------------------

def ending(connection, most_s=1.5):
    _, ended = connection.read_for(most_s)
    return "closed" if ended else "OPEN"


def answered_streams(data):
    return {f[2] for f in frames(data) if f[0] == HEADERS}


def stream_batches(last=20000):
    for first in range(1, 2 * last, 2 * BATCH):
        yield range(first, first + 2 * BATCH, 2)


# ---- floods of frames --------------------------------------------------------------------------

def flood(one, before=lambda target: b"", count=2000):
    """All in one flight, which is the first."""
    def run(target):
        with target.open(PREFACE + settings() + before(target) + one * count) as connection:
            return ending(connection)
    return run


def single(one):
    return flood(one, count=1)


def window_updates(target):
    """Costs the client 13 bytes each, and h2o a little: millions a second."""
    one = window(0, 1) * 5000
    with target.open(PREFACE + settings()) as connection:
        try:
            for _ in range(200):
                connection.send(one)
                connection.drain()
        except OSError:
            return "closed"
        return "closed" if ending(connection, 1) == "closed" else "1000000 updates TAKEN"


# ---- streams that end too soon -----------------------------------------------------------------

def given_up(spoil, pause_s=0.0):
    """20,000 streams; `spoil` ends each at once, or after a pause in which the work begins."""
    def run(target):
        with target.open(PREFACE + settings()) as connection:
            for streams in stream_batches():
                asks, ends = map(target.request, streams), map(spoil, streams)
                try:
                    if pause_s:
                        connection.send(b"".join(asks))
                        time.sleep(pause_s)
                        connection.send(b"".join(ends))
                    else:
                        connection.send(b"".join(a + e for a, e in zip(asks, ends)))
                    connection.drain()
                except OSError:
                    return f"closed after {streams[-1] // 2 + 1} streams"
        return "20000 streams TAKEN"
    return run


def streams_over_the_limit(target):
    with target.open(PREFACE + settings()) as connection:
        for streams in stream_batches():
            try:
                connection.send(b"".join(target.request(s, target.hang) for s in streams))
                connection.drain()
            except OSError:
                return "closed"
    return "20000 streams TAKEN"


def overflow(stream):
    return window(stream, WINDOW_MAX)


# ---- header blocks -----------------------------------------------------------------------------

def split_block(target):
    block = target.headers(1)[9:]
    first = (PREFACE + settings() + frame(HEADERS, END_STREAM, 1, block[:20])
             + frame(CONTINUATION, END_HEADERS, 1, block[20:]))
    with target.open(first) as connection:
        data, ended = connection.read_for(1.5, answered_streams)
        return "answered" if answered_streams(data) else "closed" if ended else "OPEN"


def endless_block(target):
    first = PREFACE + settings() + frame(HEADERS, END_STREAM, 1, b"") + frame(CONTINUATION, 0, 1) * 20000
    with target.open(first) as connection:
        return ending(connection)


def bombs(target, end):
    """A field of 3 KB in the dynamic table, then blocks of 13,000 references to it, one byte each."""
    fill = target.headers(1, end=end, extra=literal(b"x-fill", b"a" * 3000, 0x40))
    return fill, [target.headers(s, end=end, extra=b"\xbe" * 13000) for s in range(3, 197, 2)]


def header_bomb(target):
    """Half a megabyte of pointers for each 13 KB, and time to look through them."""
    fill, blocks = bombs(target, end=True)
    with target.open(PREFACE + settings() + fill) as connection:
        try:
            connection.send(b"".join(blocks[:50]))
        except OSError:
            return "closed"
        data, ended = connection.read_for(3, lambda d: len(answered_streams(d)) > 50)
        return "closed" if ended else f"{len(answered_streams(data))} of 51 ANSWERED"


def header_bomb_held(target):
    """The same without an end, by a client that has no key: the memory stays for as long as a body may take."""
    fill, blocks = bombs(dataclasses.replace(target, key=""), end=False)
    with target.open(PREFACE + settings() + fill) as connection:
        try:
            for block in blocks:
                connection.send(block)
        except OSError:
            return "closed"
        return "closed" if ending(connection, 0.5) == "closed" else "98 blocks HELD"


def repeated_accept(target):
    """A list of 4 KB, entered once, 120 times in each of a hundred requests: 3 GB for who puts the lines together."""
    fill = target.headers(1, end=True, extra=literal(b"accept", b"a" * 4058, 0x40))
    streams = range(3, 201, 2)
    with target.open(PREFACE + settings() + fill) as connection:
        connection.send(b"".join(target.headers(s, end=True, extra=b"\xbe" * 120) for s in streams))
        data, ended = connection.read_for(10, lambda d: len(answered_streams(d)) > len(streams))
        return "closed" if ended else f"{len(answered_streams(data))} of 100 answered"


# ---- answers that cannot leave -----------------------------------------------------------------

def blocked_write(target):
    """Updates the window of streams whose last bytes wait in a blocked write."""
    first = PREFACE + settings((4, target.size)) + window(0, WINDOW_MAX - WINDOW_DEFAULT)
    with target.open(first, receive_buffer=4096) as connection:
        connection.socket.settimeout(PATIENCE_S + 5)
        for streams in stream_batches():
            try:
                connection.send(b"".join(map(target.request, streams)))
                time.sleep(0.05)
                connection.send(b"".join(window(s, 10) for s in streams))
            except OSError:
                return "closed"
        return "20000 streams TAKEN"


def reset_before_the_first_byte(target):
    """Header out, no window for the body, then RST and an update at once: kills who sends a header alone."""
    with target.open(PREFACE + settings((4, 0))) as connection:
        for stream in range(1, 41, 2):
            connection.send(target.request(stream))
            data, ended = connection.read_for(1, lambda d, s=stream: s in answered_streams(d))
            if ended:
                return "closed"
            connection.send(window(stream, 5) + reset(stream) + window(stream, 5) + window(0, 5))
        return "served" if ending(connection, 0.2) == "OPEN" else "closed"


def unread_answers(target):
    wide = settings((4, WINDOW_MAX)) + window(0, WINDOW_MAX - WINDOW_DEFAULT)
    first = PREFACE + wide + b"".join(target.request(s, target.large) for s in range(1, 21, 2))
    with target.open(first, receive_buffer=4096) as connection:
        time.sleep(PATIENCE_S + 3)
        return ending(connection, 8)


def unread_http1(target):
    with target.open(target.http1(target.large) * 4, alpn="http/1.1", receive_buffer=4096) as connection:
        time.sleep(PATIENCE_S + 3)
        return ending(connection, 8)


def window_never_opened(target):
    with target.open(PREFACE + settings((4, 0)) + target.request(1)) as connection:
        return ending(connection, PATIENCE_S + 4)


# ---- bodies that do not end --------------------------------------------------------------------

def send_pieces(connection, stream, size):
    for _ in range(size // FRAME_MAX):
        connection.send(frame(DATA, 0, stream, b"x" * FRAME_MAX))


def unfinished_bodies(target):
    with target.open(PREFACE + settings()) as connection:
        try:
            for stream in range(1, 201, 2):
                connection.send(target.headers(stream))
                send_pieces(connection, stream, MEG // 2)
        except OSError:
            return "closed"
        return "50 MB TAKEN" if ending(connection, 0.5) == "OPEN" else "closed"


def unfinished_below_the_highest(target):
    """PRIORITY opens streams that take their headers later, below the highest number."""
    low = range(1, 31, 2)
    with target.open(PREFACE + settings() + b"".join(map(priority, low)) + target.request(101)) as connection:
        try:
            for stream in low:
                connection.send(target.headers(stream) + frame(PRIORITY, END_STREAM, stream, b"\0\0\0\0\t"))
                send_pieces(connection, stream, MEG - FRAME_MAX)
        except OSError:
            return "closed"
        return "15 MB TAKEN" if ending(connection, 0.5) == "OPEN" else "closed"


def unfinished_over_connections(target):
    """Each below what one connection may have. Streams end with an answer, and the connections go on."""
    held, ended = [], 0
    try:
        for _ in range(8):
            connection = target.open(PREFACE + settings())
            held.append(connection)
            for stream in range(1, 7, 2):
                connection.send(target.headers(stream))
                send_pieces(connection, stream, MEG - FRAME_MAX)
            time.sleep(0.1)
        for connection in held:
            data, _ = connection.read_for(0.5)
            ended += len(answered_streams(data))
        return f"{ended} of 24 streams ended" if ended else "24 MB TAKEN"
    except OSError:
        return "closed"
    finally:
        for connection in held:
            connection.socket.close()


def far_too_large(target):
    """It is answered where it passes the limit, and goes on beyond the stream's window (16 MiB)."""
    with target.open(PREFACE + settings() + target.headers(1)) as connection:
        try:
            send_pieces(connection, 1, max(10 * target.body_max, 24 << 20))
        except OSError:
            return "closed"
        return "10 times the limit TAKEN" if ending(connection, 0.5) == "OPEN" else "closed"


# ---- slowness ----------------------------------------------------------------------------------

def drip(first, drop, alpn="h2", most_s=PATIENCE_S + 6):
    """`drop`, three times a second."""
    def run(target):
        started = time.monotonic()
        with target.open(first(target), alpn=alpn) as connection:
            try:
                while time.monotonic() - started < most_s:
                    if connection.read(0.3) == b"":
                        return "closed"
                    connection.send(drop)
            except OSError:
                return "closed"
        return "OPEN"
    return run


def silence(target):
    with target.open() as connection:
        return ending(connection, PATIENCE_S + 4)


def half_a_handshake(target):
    with socket.create_connection((target.host, target.port)) as half:
        half.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        half.settimeout(PATIENCE_S + 4)
        try:
            while half.recv(4096):
                pass
        except TimeoutError:
            return "OPEN"
        except OSError:
            pass
        return "closed"


# ---- HTTP/1.1 ----------------------------------------------------------------------------------

def preface_later(target):
    """The HTTP/2 preface as second request: a guard that watches HTTP/1.1 must not miss it."""
    with target.open(target.http1(), alpn="http/1.1") as connection:
        connection.read_for(10, lambda d: b"\r\n\r\n" in d)
        connection.send(PREFACE + settings() + frame(PING, 0, 0, b"12345678"))
        data, _ = connection.read_for(10, lambda d: b"12345678" in d)
        return "SWITCHED" if b"12345678" in data else "refused"


def upgrade(target):
    ask = target.http1(None, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    with target.open(ask, alpn="http/1.1") as connection:
        data, _ = connection.read_for(1, lambda d: b"\r\n\r\n" in d)
        return "SWITCHED" if b" 101 " in data[:16] else "not followed"


def pipelined(target):
    """300 requests in one flight: each waits for the one before."""
    with target.open(target.http1() * 300, alpn="http/1.1") as connection:
        data, ended = connection.read_for(0.5)
        return "closed" if ended else f"{'some' if data.count(b'HTTP/1.1 ') else 'NONE'} answered in turn"


def leave(how, alpn):
    """Leaves with a request in flight."""
    def run(target):
        first = (target.http1(target.hang) if alpn != "h2" else
                 PREFACE + settings() + target.request(1, target.hang))
        connection = target.open(first, alpn=alpn)
        time.sleep(0.1)
        if how == "half":
            connection.socket.shutdown(socket.SHUT_WR)
            connection.read_for(0.5)
        if how == "notify":
            connection.close_notify()
            connection.read_for(0.5)
        connection.socket.close()
        return "left"
    return run


# ---- TLS ---------------------------------------------------------------------------------------

def after_notify(first, alpn):
    """After close_notify nothing takes what is sent, unless somebody looks."""
    def run(target):
        record = b"\x17\x03\x03\x40\x00" + bytes(16384)
        with target.open(first, alpn=alpn) as connection:
            connection.close_notify()
            try:
                for _ in range(50):
                    connection.socket.sendall(record * 64)
            except OSError:
                return "closed"
        return "50 MB TAKEN"
    return run


def key_update(target):
    """No attack: both kinds of KeyUpdate between three requests."""
    argv = ["openssl", "s_client", "-connect", f"{target.host}:{target.port}", "-alpn", "http/1.1"]
    ask = b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n"
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as client:
        said = b""

        def hear(words, times):
            nonlocal said
            while said.count(words) < times:  # ends at the latest when the server ends the connection
                more = os.read(client.stdout.fileno(), 65536)
                if not more:
                    return
                said += more

        hear(b"Verify return code", 1)  # the handshake is over
        for answers, line in enumerate((b"", b"K\n", b"k\n"), 1):
            client.stdin.write(line)
            client.stdin.flush()
            if line:
                hear(b"KEYUPDATE", answers - 1)
            client.stdin.write(ask)
            client.stdin.flush()
            hear(b"HTTP/1.1 ", answers)
        client.stdin.write(b"Q\n")
        client.stdin.flush()
        said += client.stdout.read()
        return f"{said.count(b'HTTP/1.1 ')} answers"


# ---- shutdown ----------------------------------------------------------------------------------

def continuation_in_a_shutdown(target):
    """A header block that is open at the second GOAWAY: on its CONTINUATION h2o spins for ever."""
    first = (PREFACE + settings() + target.request(1, target.hang)
             + frame(HEADERS, 0, 3, target.headers(3)[9:]))
    with target.open(first) as connection:
        _, ended = connection.read_for(0.3)
        os.kill(target.pid, signal.SIGTERM)
        if ended:
            return "closed"
        connection.read_for(5, lambda data: sum(1 for f in frames(data) if f[0] == GOAWAY) >= 2)
        connection.send(frame(CONTINUATION, END_HEADERS, 3, literal(b"a", b"b")))
        return ending(connection)


# ---- the list ----------------------------------------------------------------------------------

@dataclasses.dataclass
class Program:
    name: str
    run: Callable
    seen: str           # what a client of the gateway sees, as a regular expression
    causes: tuple = ()  # the guard counts one of these for each run; (): none; None: that depends
    plain: str = ""     # what a client of libh2o alone sees; DEAD: it aborts; "": nothing to see there
    slow: bool = False  # lasts as long as the guard's patience
    ways: tuple = ("clear", "tls", "finished")
    stops: bool = False  # ends the server
    several: bool = False  # has several connections, each of which may be counted
    needs: str = ""     # a setting under "limits" without which the gateway is not expected to care
    limits: dict = dataclasses.field(default_factory=dict)  # other ones than the gateway has that all attack
    listen: dict = dataclasses.field(default_factory=dict)  # likewise, settings of its listeners


CLOSED = "^closed"
WITHOUT_FINISHED = ("clear", "tls")
TLS_ALONE = ("tls",)
PROGRAMS = [
    Program("ping_flood", flood(frame(PING, 0, 0, b"12345678")), CLOSED, ("flood",), "OPEN"),
    Program("settings_flood", flood(settings((4, 70000))), CLOSED, ("flood",), "OPEN"),
    Program("priority_flood", flood(priority(1), count=5000), CLOSED, ("flood",), "OPEN"),
    Program("unknown_flood", flood(frame(0x77, 0, 0)), CLOSED, ("flood",), "OPEN"),
    Program("goaway_flood", flood(frame(GOAWAY, 0, 0, bytes(8))), CLOSED, ("flood",), "OPEN"),
    Program("empty_data_flood", flood(frame(DATA, 0, 1), lambda t: t.headers(1)), CLOSED, ("flood",), "OPEN"),
    Program("reset_idle_flood", flood(reset(1), lambda t: t.request(1) + reset(1)), CLOSED, ("flood",), "OPEN"),
    Program("push_promise", single(frame(PUSH_PROMISE, END_HEADERS, 1, bytes(4))), CLOSED, ("forbidden_frame",)),
    Program("frame_too_long", single(frame(DATA, 0, 1, bytes(FRAME_MAX + 1))), CLOSED, ("forbidden_frame",)),
    Program("window_updates", window_updates, CLOSED, ("flood",), "TAKEN"),
    Program("rapid_reset", given_up(reset), CLOSED, ("flood", "aborted_requests"), "TAKEN"),
    Program("late_reset", given_up(reset, 0.003), CLOSED, ("flood", "aborted_requests"), "TAKEN"),
    Program("made_you_reset", given_up(overflow), CLOSED, ("aborted_requests", "flood"), "TAKEN"),
    Program("streams_over_the_limit", streams_over_the_limit, CLOSED, ("flood",), "TAKEN"),
    Program("split_block", split_block, "^answered", (), ""),
    Program("endless_block", endless_block, CLOSED, ("flood",), "OPEN"),
    Program("header_bomb", header_bomb, CLOSED, ("flood", "forbidden_frame"), "ANSWERED"),
    Program("header_bomb_held", header_bomb_held, CLOSED, ("flood", "forbidden_frame"), "HELD"),
    Program("repeated_accept", repeated_accept, "^100 of 100 answered"),
    Program("blocked_write", blocked_write, CLOSED, ("stalled", "flood"), "DEAD", slow=True),
    Program("reset_before_the_first_byte", reset_before_the_first_byte, "served|closed", (), ""),
    Program("unread_answers", unread_answers, CLOSED, ("stalled",), "OPEN", slow=True),
    Program("unread_http1", unread_http1, CLOSED, ("stalled",), "OPEN", slow=True),
    Program("window_never_opened", window_never_opened, CLOSED, ("stalled",), "OPEN", slow=True),
    # Each stream that ends for the others counts, and at last the connection.
    Program("unfinished_bodies", unfinished_bodies, CLOSED, ("unfinished_bytes",), "TAKEN", several=True),
    Program("unfinished_below_the_highest", unfinished_below_the_highest, CLOSED, ("unfinished_bytes",), "TAKEN",
            several=True),
    Program("unfinished_over_connections", unfinished_over_connections, r"^\d+ of 24 streams ended", ("unfinished_bytes",), "TAKEN",
            needs="unfinished_bytes", several=True),
    Program("far_too_large", far_too_large, CLOSED, ("body_too_large",), "TAKEN"),
    # Its stream is answered after the patience; who goes on with it is asked to stop, and closed after as long again.
    Program("drip_body", drip(lambda t: PREFACE + settings() + t.headers(1), frame(DATA, 0, 1, b"x"), most_s=2 * PATIENCE_S + 6),
            CLOSED, ("slow",), "OPEN", slow=True),
    Program("drip_frame", drip(lambda t: PREFACE + settings() + t.headers(1) + frame(DATA, 0, 1, bytes(5000))[:9], b"x"),
            CLOSED, ("slow",), "OPEN", slow=True),
    Program("drip_http1_header", drip(lambda t: b"POST / HTTP/1.1\r\n", b"X: y\r\n", "http/1.1"),
            CLOSED, ("slow",), "", slow=True),
    Program("drip_http1_body", drip(lambda t: t.http1((t.quick[0], b" " * 5000))[:-4990], b" ", "http/1.1"),
            CLOSED, ("slow",), "", slow=True),
    Program("silence", silence, CLOSED, None, "", slow=True, ways=WITHOUT_FINISHED),
    Program("half_a_preface", drip(lambda t: PREFACE[:10], b""), CLOSED, None, "", slow=True),
    Program("half_a_handshake", half_a_handshake, CLOSED, None, "", slow=True, ways=TLS_ALONE),
    Program("preface_later", preface_later, "^refused", (), "SWITCHED"),
    Program("upgrade", upgrade, "not followed", (), ""),
    Program("pipelined", pipelined, "some answered", None, ""),
    Program("http1_close", leave("close", "http/1.1"), "left", (), "left"),
    Program("http1_half_close", leave("half", "http/1.1"), "left", (), "left"),
    Program("http1_close_notify", leave("notify", "http/1.1"), "left", (), "left", ways=("tls", "finished")),
    Program("http2_close", leave("close", "h2"), "left", (), "left"),
    Program("http2_half_close", leave("half", "h2"), "left", (), "left"),
    Program("http2_close_notify", leave("notify", "h2"), "left", (), "left", ways=("tls", "finished")),
    Program("after_notify_http2", after_notify(PREFACE + settings(), "h2"), CLOSED, None, "TAKEN", ways=TLS_ALONE),
    Program("after_notify_http1", after_notify(b"POST / HTTP/1.1\r\n", "http/1.1"), CLOSED, None, "TAKEN", ways=TLS_ALONE),
    Program("key_update", key_update, "^3 answers", (), "3 answers", ways=TLS_ALONE),
    Program("continuation_in_a_shutdown", continuation_in_a_shutdown, CLOSED, (), "OPEN", stops=True,
            ways=WITHOUT_FINISHED),
]
BY_NAME = {program.name: program for program in PROGRAMS}
