"""Bodies without a key that stop one byte before their end, beside honest bodies that come to theirs.

Each program fills more than limits.unfinished_bytes holds, which is 16 bodies of the largest size by default, and then asks
as honest callers do: 2 MB over HTTP/1.1, 2 MB over HTTP/2 beside a short request on the same connection, 150 KB in segments.
It returns how many of those were not answered.
"""

import contextlib
import dataclasses
import threading
import time

from programs import Program
from wire import DATA, END_STREAM, FRAME_MAX, PREFACE, frame, frames, settings

ROOM = 16          # largest bodies that there is room for
LITTLE = 64 << 10  # bytes of a body for which the last part of the room is kept
ROUNDS = 10
SEGMENTS, SEGMENT, SEGMENT_EVERY_S = 5, 30000, 0.1
ANSWER_S = 20


# ---- attackers: no key, and no end -------------------------------------------------------------

class Hoarder:
    """One connection that brings a body of `size` bytes, but for the last one."""

    def __init__(self, target, size, alpn):
        self.target, self.size, self.alpn = dataclasses.replace(target, key=""), size, alpn
        self.connection = None
        self.bring()

    def bring(self):
        if self.connection is not None:
            self.connection.socket.close()
        self.connection = self.target.open(PREFACE + settings() if self.alpn == "h2" else b"", alpn=self.alpn)
        self.connection.socket.settimeout(ANSWER_S)
        with contextlib.suppress(OSError):
            if self.alpn == "h2":
                self.connection.send(self.target.headers(1))
                whole = frame(DATA, 0, 1, b" " * FRAME_MAX)
                for _ in range((self.size - 1) // FRAME_MAX):
                    self.connection.send(whole)
                self.connection.send(frame(DATA, 0, 1, b" " * ((self.size - 1) % FRAME_MAX)))
            else:
                head = self.target.http1((self.target.quick[0], b"")).replace(
                    b"Content-Length: 0", b"Content-Length: %d" % self.size)
                self.connection.send(head)
                for at in range(0, self.size - 1, 1 << 20):
                    self.connection.send(b" " * min(1 << 20, self.size - 1 - at))

    def drip(self):
        with contextlib.suppress(OSError):
            self.connection.send(frame(DATA, 0, 1, b" ") if self.alpn == "h2" else b"")

    def has_ended(self):
        """Whether the server has answered, or closed."""
        return self.connection.read(0) is not None


# ---- honest callers ----------------------------------------------------------------------------

def padded(ask, size):
    path, body = ask
    return path, body + b" " * (size - len(body))


class Honest:
    def __init__(self, target):
        self.target = target
        self.large = padded(target.quick, min(2 << 20, target.body_max // 4))
        self.segmented = padded(target.quick, SEGMENTS * SEGMENT)
        self.asked, self.lost, self.times, self.whys = 0, 0, [], []

    def note(self, name, ask, pauses_s=0.0):
        self.asked += 1
        started = time.monotonic()
        try:
            status = ask()
        except OSError as error:
            status = type(error).__name__
        self.times.append(time.monotonic() - started - pauses_s)
        if status != 200:
            self.lost += 1
            self.whys.append(f"{name} {status}")

    def http1(self, ask, piece=None, every_s=0.0):
        whole = self.target.http1(ask)
        with self.target.open(alpn="http/1.1") as connection:
            piece = piece or len(whole)
            for at in range(0, len(whole), piece):
                connection.send(whole[at:at + piece])
                time.sleep(every_s)
            data, _ = connection.read_for(ANSWER_S, lambda d: b"\r\n\r\n" in d)
        return int(data[9:12]) if data.startswith(b"HTTP/1.1 ") else "closed"

    def http2(self, asks):
        """All on one connection, the short ones last; the worst status."""
        with self.target.open(PREFACE + settings()) as connection:
            for stream, (path, body) in enumerate(asks):
                connection.send(self.target.headers(2 * stream + 1, (path, body)))
            for at in range(0, max(len(body) for _, body in asks), FRAME_MAX):
                for stream, (_, body) in enumerate(asks):
                    if at < len(body):
                        last = END_STREAM if at + FRAME_MAX >= len(body) else 0
                        connection.send(frame(DATA, last, 2 * stream + 1, body[at:at + FRAME_MAX]))
            heads = lambda data: {f[2]: f[3] for f in frames(data) if f[0] == 1}
            data, _ = connection.read_for(ANSWER_S, lambda d: len(heads(d)) == len(asks))
        answered = [block.startswith((b"\x88", b"\x20\x88")) for block in heads(data).values()]
        if len(answered) < len(asks):
            return "closed"
        return 200 if all(answered) else "refused"

    def ask_all(self):
        self.note("2 MB over HTTP/1.1", lambda: self.http1(self.large))
        self.note("2 MB over HTTP/2", lambda: self.http2([self.large, self.target.quick]))
        self.note("150 KB in segments", lambda: self.http1(self.segmented, SEGMENT, SEGMENT_EVERY_S),
                  (SEGMENTS + 1) * SEGMENT_EVERY_S)

    def said(self):
        times = sorted(self.times)
        why = f" ({', '.join(sorted(set(self.whys)))})" if self.whys else ""
        return f"{self.lost} of {self.asked} lost{why}, p99 {1000 * times[int(len(times) * 0.99)]:.0f} ms"


# ---- the programs ------------------------------------------------------------------------------

def hoards(alpn, little=False, drips=False, anew=False):
    """`anew`: who has been answered or closed comes again at once, for as long as the others ask."""
    def run(target):
        largest = LITTLE - 1024 if little else target.body_max
        sizes = [largest] * (ROOM * target.body_max // largest)
        if not little:  # and to the brim
            sizes += [target.body_max >> half for half in range(1, 6) for _ in range(4)]
        hoarders, over = [], threading.Event()
        honest = Honest(target)

        def go_on():
            while not over.wait(0.01):
                for hoarder in hoarders:
                    if drips:
                        hoarder.drip()
                    if anew and hoarder.has_ended() and not over.is_set():
                        hoarder.bring()
        attack = threading.Thread(target=go_on)
        try:
            for size in sizes:
                hoarders.append(Hoarder(target, size, alpn))
            attack.start()
            for _ in range(ROUNDS):
                honest.ask_all()
        finally:
            over.set()
            if attack.ident is not None:
                attack.join()
            for hoarder in hoarders:
                hoarder.connection.socket.close()
        return honest.said()
    return run


NONE_LOST = r"^0 of \d+ lost"
PROGRAMS = [
    Program("hoarded_http1", hoards("http/1.1"), NONE_LOST, ("unfinished_bytes",), several=True, needs="unfinished_bytes"),
    Program("hoarded_http2", hoards("h2"), NONE_LOST, ("unfinished_bytes",), several=True, needs="unfinished_bytes"),
    Program("hoarded_drips", hoards("h2", drips=True), NONE_LOST, ("unfinished_bytes",), several=True,
            needs="unfinished_bytes"),
    Program("hoarded_little", hoards("http/1.1", little=True), NONE_LOST, ("unfinished_bytes",), several=True,
            needs="unfinished_bytes", ways=("clear",)),
    Program("hoarded_anew", hoards("http/1.1", anew=True), NONE_LOST, ("unfinished_bytes",), several=True,
            needs="unfinished_bytes"),
]
BY_NAME = {program.name: program for program in PROGRAMS}
