"""What one caller does wrong on an HTTP/2 connection that honest callers share, as behind a proxy that multiplexes.

Each program keeps honest requests in flight on the attacker's connection and returns how many of them were lost. It does
what a proxy does: a request that the server says it has not processed (RST_STREAM with REFUSED_STREAM, or a stream above
GOAWAY's last one) is sent again on a new connection. Any other request without a 200 is lost.
"""

import time

from programs import PATIENCE_S, Program
from wire import (
    DATA, END_STREAM, FRAME_MAX, GOAWAY, HEADERS, PREFACE, RST_STREAM, WINDOW_DEFAULT, WINDOW_MAX, frame, frames,
    literal, reset, settings, window)

ROUNDS = 5
HONEST = 10        # requests in flight when the attacker begins, and as many behind it
CANCELS = 60
WORKED_ON_S = 0.1  # before they are cancelled
STALLED = 1000     # bytes of a body that goes no further
EVERY_S = 0.01     # an honest request beside bodies that stall
ANSWER_S = 20
REFUSED_STREAM = 7
OK = (b"\x88", b"\x20\x88")  # :status 200, perhaps behind a change of the table's size


class Shared:
    """The proxy: one connection at a time, and the honest requests that are in flight on it."""

    def __init__(self, target):
        self.target = target
        self.asked, self.lost, self.repeated, self.opened = 0, 0, 0, 0
        self.times, self.whys = [], []
        self.connection = None
        self.open()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.socket.close()

    def open(self):
        if self.connection is not None:
            self.connection.socket.close()
        self.opened += 1
        self.connection = self.target.open(
            PREFACE + settings((4, WINDOW_MAX)) + window(0, WINDOW_MAX - WINDOW_DEFAULT))
        self.data, self.next, self.last, self.waiting, self.ok = b"", 1, None, {}, set()

    def stream(self):
        """The number of a new stream."""
        self.next += 2
        return self.next - 2

    def send(self, data):
        """Of the attacker. On a connection that has ended nothing is sent; `take` sees that it has."""
        try:
            self.connection.send(data)
        except OSError:
            pass

    # ---- honest requests -----------------------------------------------------------------------

    def ask(self, count=1):
        self.asked += count
        self._ask([time.monotonic()] * count)

    def _ask(self, begun):
        asks = []
        for since in begun:
            stream = self.stream()
            self.waiting[stream] = since
            asks.append(self.target.request(stream))
        self.send(b"".join(asks))

    def _lose(self, stream, why):
        self.times.append(time.monotonic() - self.waiting.pop(stream))
        self.lost += 1
        self.whys.append(why)

    def _end(self, stream):
        if stream not in self.ok:
            self._lose(stream, "refused")
            return
        self.times.append(time.monotonic() - self.waiting.pop(stream))

    def _repeat(self, streams):
        begun = [self.waiting.pop(stream) for stream in streams]
        self.repeated += len(begun)
        self._ask(begun)

    # ---- what comes ----------------------------------------------------------------------------

    def _take_frame(self, kind, flags, stream, payload):
        if kind == GOAWAY:
            self.last = int.from_bytes(payload[:4], "big")
        if stream not in self.waiting:
            return
        if kind == RST_STREAM:
            if int.from_bytes(payload, "big") == REFUSED_STREAM:
                self._repeat([stream])
            else:
                self._lose(stream, "reset")
            return
        if kind == HEADERS and payload.startswith(OK):
            self.ok.add(stream)
        if kind in (HEADERS, DATA) and flags & END_STREAM:
            self._end(stream)

    def _anew(self):
        """The connection has ended, or will take nothing new."""
        waiting, last = self.waiting, self.last
        again = [] if last is None else [waiting[stream] for stream in waiting if stream > last]
        for stream in list(waiting):
            if last is None or stream <= last:
                self._lose(stream, "closed without GOAWAY" if last is None else "closed")
        self.open()
        self.repeated += len(again)
        self._ask(again)

    def take(self, wait_s=0.0):
        """What has come within that time."""
        piece = self.connection.read(wait_s)
        self.data += piece or b""
        whole = frames(self.data)
        self.data = self.data[sum(9 + len(payload) for *_, payload in whole):]
        for one in whole:
            self._take_frame(*one)
        if piece == b"":
            self._anew()

    def pause(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.take(left)

    def settle(self):
        """Waits for all answers; those that do not come are lost."""
        end = time.monotonic() + ANSWER_S
        while self.waiting and (left := end - time.monotonic()) > 0:
            self.take(left)
        for stream in list(self.waiting):
            self._lose(stream, "no answer")

    def said(self):
        times = sorted(self.times)
        why = f" ({', '.join(sorted(set(self.whys)))})" if self.whys else ""
        return (f"{self.lost} of {self.asked} lost{why}, p99 {1000 * times[int(len(times) * 0.99)]:.0f} ms, "
                f"{self.opened} connections, {self.repeated} repeated")


# ---- wrong things ------------------------------------------------------------------------------

def cancels(shared):
    streams = [shared.stream() for _ in range(CANCELS)]
    shared.send(b"".join(shared.target.request(stream, shared.target.hang) for stream in streams))
    shared.pause(WORKED_ON_S)
    shared.send(b"".join(map(reset, streams)))


def malformed(extra):
    def wrong(shared):
        stream = shared.stream()
        shared.send(shared.target.headers(stream, extra=extra) + frame(DATA, 0, stream, b"x" * STALLED))
    return wrong


def stalls(shared):
    stream = shared.stream()
    shared.send(shared.target.headers(stream) + frame(DATA, 0, stream, b" " * STALLED))


def too_large(shared):
    """Twice as long as any may be, and says so."""
    stream, size = shared.stream(), 2 * shared.target.body_max
    shared.send(shared.target.headers(stream, extra=literal(b"content-length", str(size).encode())))
    for at in range(0, size, FRAME_MAX):
        shared.send(frame(DATA, 0, stream, b" " * min(FRAME_MAX, size - at)))


def goes_on_too_large(shared):
    """The same, and it does not say so."""
    stream, size = shared.stream(), 2 * shared.target.body_max
    shared.send(shared.target.headers(stream))
    for at in range(0, size, FRAME_MAX):
        shared.send(frame(DATA, 0, stream, b" " * min(FRAME_MAX, size - at)))


# ---- the programs ------------------------------------------------------------------------------

def beside(wrong):
    def run(target):
        with Shared(target) as shared:
            for _ in range(ROUNDS):
                shared.ask(HONEST)
                wrong(shared)
                shared.ask(HONEST)
                shared.settle()
            return shared.said()
    return run


def beside_stalled(target):
    """For longer than the guard has patience."""
    with Shared(target) as shared:
        for _ in range(HONEST):
            stalls(shared)
        end = time.monotonic() + PATIENCE_S + 2
        while time.monotonic() < end:
            shared.ask()
            shared.pause(EVERY_S)
        shared.settle()
        return shared.said()


NONE_LOST = r"^0 of \d+ lost"
TRUSTED = {"trusted_proxy": True}  # what deploying.md says of such a listener
PROGRAMS = [
    Program("shared_cancels", beside(cancels), NONE_LOST, listen=TRUSTED),
    Program("shared_te", beside(malformed(literal(b"te", b"gzip"))), NONE_LOST),
    Program("shared_upper_case", beside(malformed(literal(b"X-Upper", b"1"))), NONE_LOST),
    Program("shared_too_large", beside(too_large), NONE_LOST),
    Program("shared_goes_on_too_large", beside(goes_on_too_large), NONE_LOST),
    Program("shared_stalled", beside_stalled, NONE_LOST, ("slow",), slow=True, several=True),
]
BY_NAME = {program.name: program for program in PROGRAMS}
