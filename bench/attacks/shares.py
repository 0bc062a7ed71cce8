"""Attacks by one tenant with a valid key on what all tenants share: room for bodies, and what is remembered.

The interface is that of programs.py. Over HTTP/1.1 and clear text: nothing here depends on how bytes travel.
"""

import http.client
import threading

from programs import MEG, Program, Target

HELD_S = 3.0  # what was taken is held so long
LEAST = 256   # bytes: less than that is not fought for


class Hoard:
    """Requests whose answers are long in coming, each with as large a body as is still taken."""

    def __init__(self, target: Target, *fields, most=2000):
        self.target, self.fields, self.most = target, fields, most
        self.kept, self.refused = [], 0  # connections with the bodies that they have sent

    def __enter__(self):
        self.fill()
        return self

    def __exit__(self, *_):
        for connection, _ in self.kept:
            connection.socket.close()

    def fill(self):
        path, body = self.target.hang
        padding = self.target.body_max - len(body)
        while padding > LEAST and len(self.kept) < self.most:
            connection = self.target.open(self.target.http1((path, body + b" " * padding), *self.fields),
                                          alpn="http/1.1")
            self.kept.append((connection, len(body) + padding))
            if self.lost_of(self.kept[-1:], 0.03):
                padding //= 2

    def lost_of(self, some, wait_s=0):
        """How many of these have an answer, and are kept no more: who is refused is answered at once."""
        lost = [kept for kept in some if kept[0].read(wait_s) is not None]
        for kept in lost:
            kept[0].socket.close()
            self.kept.remove(kept)
        self.refused += len(lost)
        return len(lost)

    def all_wait(self, in_flight):
        """Whether so many are all that are left, once those have gone that were refused too late to be seen."""
        self.lost_of(list(self.kept))
        return len(self.kept) == in_flight

    @property
    def sizes(self):
        return [size for _, size in self.kept]

    def __str__(self):
        return f"{len(self.kept)} bodies of {sum(self.sizes) / MEG:.1f} MB held, {self.refused} refused"


def held_for_a_while(target, *fields):
    with Hoard(target, *fields) as hoard:
        hoard.kept[0][0].read_for(HELD_S)
        hoard.lost_of(list(hoard.kept))
        return str(hoard)


def hoarded_bodies(target):
    """As many requests in flight as there is room for their bodies."""
    return held_for_a_while(target)


def hoarded_by_copies(target):
    """One request, and copies of it that wait: a plan with `concurrent: 1` permits as many."""
    return held_for_a_while(target, "Idempotency-Key: the-same")


# ---- what is remembered ------------------------------------------------------------------------

def asked_often(target, ask, times, callers=8):
    """How many of them were answered with 200."""
    counts = [0] * callers

    def call(which):
        peer = http.client.HTTPConnection(target.host, target.port, timeout=20)
        for _ in range(which, times, callers):
            peer.request("POST", *ask, {"Authorization": "Bearer " + target.key, "Content-Type": "application/json"})
            answer = peer.getresponse()
            answer.read()
            counts[which] += answer.status == 200
        peer.close()
    threads = [threading.Thread(target=call, args=(which,)) for which in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts)


def flood_of_calls(target):
    """Answers with many tool calls each, which nobody comes back to: all are remembered for an hour."""
    return f"{asked_often(target, target.calls, 100)} answers"


HELD = {"held_bytes": "24MiB"}  # what takes a minute with the default, in a second
PROGRAMS = [
    Program("hoarded_bodies", hoarded_bodies, "held", ways=("clear",), limits=HELD),
    Program("hoarded_by_copies", hoarded_by_copies, "held", ways=("clear",), limits=HELD),
    Program("flood_of_calls", flood_of_calls, "^100 answers", ways=("clear",)),
]
BY_NAME = {program.name: program for program in PROGRAMS}
