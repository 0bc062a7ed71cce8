#!/usr/bin/env python3
"""/mcp/{server}: generated streams come out as they went in, but for the samplings: compared as bytes.

A stream is built of parts whose meaning is known by how they were built, so nothing here reads SSE or JSON. SLUICE_SEED
repeats a run.

ctest: timeout=180
"""
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_rig
from mcp_server import event, result, sampling

SEED = int(os.environ.get("SLUICE_SEED") or random.randrange(1 << 32))


class Maker:
    """Parts of streams: (bytes in, bytes out, ids as they are written of the samplings in it)."""

    def __init__(self, chance, revision):
        self.chance, self.batches, self.count = chance, revision == "2025-03-26", 0

    # ---- JSON

    def space(self):
        return self.chance.choice(("", "", "", " ", "\t", "  "))

    def text(self, text):
        """A string in one of its spellings."""
        out = []
        for char in text:
            way = self.chance.random()
            if way < 0.05:
                out.append(f"\\u{ord(char):04x}")
            elif char == "/" and way < 0.5:
                out.append("\\/")
            else:
                out.append(char)
        return '"' + "".join(out) + '"'

    def object(self, members):
        """Of (name, JSON text), in any order."""
        members = list(members)
        self.chance.shuffle(members)
        inside = ",".join(f"{self.space()}{self.text(name)}{self.space()}:{self.space()}{value}{self.space()}" for name, value in members)
        return "{" + (inside or self.space()) + "}"

    def id(self):
        """Another one each time, by value."""
        self.count += 1
        n = self.count
        return self.chance.choice((str(n), str(n), f"{n}.0", f"{n}e0", f"-{n}", f'"{n}"', self.text(f"id/{n}"), str(2 ** 53 + 2 * n), f"1{n:030}", f'"\u00fc{n}"'))

    def junk(self, strict=False):
        """Members that nobody reads. `strict`: of what is read as JSON must be, not only passed."""
        values = ("-0.0", "null", '{"method":"sampling/createMessage","id":1}', "[[[]]]", '"sampling/createMessage"', "1.0", "{}")
        if not strict:
            values += ("1e400", '"\\ud800"')
        return [("x" + str(n), self.chance.choice(values)) for n in range(self.chance.randrange(3))]

    def sampling(self, id=None):
        """JSON text, and the id in it."""
        id = id or self.id()
        params = json.dumps(sampling(0)["params"])
        members = [("jsonrpc", '"2.0"'), ("id", id), ("method", self.text("sampling/createMessage")), ("params", params), *self.junk(strict=True)]
        return self.object(members), id

    def other(self):
        """A message that is not sampling."""
        kind = self.chance.randrange(9)
        two = ("jsonrpc", '"2.0"')
        if kind == 0:
            return self.object([two, ("method", self.text("notifications/message")), ("params", '{"level":"info","data":"sampling/createMessage"}'), *self.junk()])
        if kind == 1:
            return self.object([two, ("id", self.id()), ("method", self.text("elicitation/create")), ("params", "{}"), *self.junk()])
        if kind == 2:
            return self.object([two, ("id", "1"), ("result", '{"method":"sampling/createMessage","id":7,"params":{}}')])
        if kind == 3:
            return self.object([two, ("method", self.text("sampling/createMessage"))])  # without an id
        if kind == 4:
            return self.object([two, ("id", "null"), ("method", self.text("sampling/createMessage"))])
        if kind == 5:
            return self.object([two, ("method", self.text("notifications/progress")), ("params", '{"progressToken":0,"progress":0.10}')])
        if kind == 6:
            return self.object([two, ("id", self.id()), ("method", self.text("sampling/createMessag"))])
        if kind == 7:
            return self.chance.choice(("not json", "{", "[1", '"sampling/createMessage"', "1", "[]", "{}", '{"method":}', "\u00fc\u20ac\U0001f600"))
        return self.object([two, ("method", self.text("notifications/cancelled")), ("params", '{"requestId":"nobody\'s"}')])

    # ---- SSE

    def lines(self, fields, eol):
        return b"".join(line.encode() + eol for line in fields) + eol

    def fields(self):
        """Of an event beside its data."""
        out = []
        for line in ("event: message", "event:message", f"id: e_{self.count}", "id", "retry: 3000", ": a comment", ":", "foo: bar", "dataset: x", "foo"):
            if self.chance.random() < 0.15:
                out.append(line)
        return out

    def data(self, text):
        """Its data lines; split where JSON has white space between tokens, or between any two outside of strings."""
        name = self.chance.choice(("data:", "data: "))
        if self.chance.random() < 0.3 and text.startswith("{") and text.endswith("}") and len(text) > 2:
            return [name + "{", self.chance.choice(("data:", "data: ", "data:  ")) + text[1:-1], name + "}"]
        return [name + text]

    def event(self, text, eol):
        """The bytes, and those of the comments in front of it, which are no part of the event."""
        before, after = self.fields(), self.fields()
        data = self.data(text)
        if self.chance.random() < 0.2 and len(data) == 3:
            data.insert(1, ": between")
        return self.lines(before + data + after, eol), self.comments(before, eol)

    @staticmethod
    def comments(fields, eol):
        first = next((at for at, line in enumerate(fields) if not line.startswith(":")), len(fields))
        return b"".join(line.encode() + eol for line in fields[:first])

    def array(self, eol):
        """An array, perhaps with samplings in it. What is left of it has its data behind the other fields, as the gateway
        writes it."""
        members = [self.sampling() if self.chance.random() < 0.5 else (self.message(), None) for _ in range(self.chance.randrange(1, 5))]
        left = [text for text, id in members if id is None]
        ids = [id for _, id in members if id is not None]
        fields = [line for line in self.fields() if not line.startswith("data")]
        whole = self.lines(fields + ["data: [" + ",".join(text for text, _ in members) + "]"], eol)
        if not ids:
            return whole, whole, ids
        kept = b"".join(line.encode() + eol for line in fields) + b"data: [" + ",".join(left).encode() + b"]\n" + eol
        return whole, kept if left else self.comments(fields, eol), ids

    def message(self):
        """An object that is a message."""
        while not (text := self.other()).startswith("{") or len(text) < 20:
            pass
        return text

    def part(self):
        eol = self.chance.choice((b"\n", b"\n", b"\r\n", b"\r"))
        kind = self.chance.randrange(10)
        if kind < 3:
            text, id = self.sampling()
            return *self.event(text, eol), [id]
        if kind == 3:
            lines = self.chance.choice(([": a comment"], ["retry: 10"], [f"id: p_{self.count}", "data: "], ["event: ping"], [": a", ": b"], ["data"]))
            data = self.lines(lines, eol)
            return data, data, []
        if kind == 4 and self.batches:
            return self.array(eol)
        data, _ = self.event(self.other(), eol)
        return data, data, []

    def stream(self):
        """Whole: what goes in, what comes out, and which ids are answered."""
        parts = [self.part() for _ in range(self.chance.randrange(1, 12))]
        bom = b"\xef\xbb\xbf" if self.chance.random() < 0.1 else b""
        last = event(result(1))
        data, out = bom + b"".join(part[0] for part in parts) + last, bom + b"".join(part[1] for part in parts) + last
        return data, out, [id for part in parts for id in part[2]]


class Generator(mcp_rig.Case):
    def setUp(self):
        super().setUp()
        print(f"SLUICE_SEED={SEED} ", end="", file=sys.stderr, flush=True)

    def check(self, server, client, pieces, out, ids):
        reply = client.call()
        stream = server.take().stream()
        for piece in pieces:
            stream.send(piece)
        stream.end()
        got = reply.body()
        self.assertTrue(got == out, f"\n  in {b''.join(pieces)!r}\nwant {out!r}\n got {got!r}")
        answers = [answer.body for answer in server.answers(len(ids))]
        for id in ids:
            head = b'{"jsonrpc":"2.0","id":' + id.encode() + b","
            found = [answer for answer in answers if answer.startswith(head)]
            self.assertEqual(len(found), 1, (id, answers))
            self.assertIn("result", json.loads(found[0]), found)
        self.assertTrue(server.idle())

    def cuts(self, chance, data):
        """In pieces, cut anywhere."""
        count = chance.choice((0, 1, 3, 20))
        at = sorted(chance.randrange(len(data) + 1) for _ in range(count))
        return [data[a:b] for a, b in zip([0, *at], [*at, len(data)])]

    def test_generated_streams(self):
        for revision in ("2025-11-25", "2025-03-26"):
            chance = random.Random(f"{SEED} {revision}")
            server, client = self.pair(revision=revision)
            maker = Maker(chance, revision)
            for _ in range(250):
                data, out, ids = maker.stream()
                self.check(server, client, self.cuts(chance, data), out, ids)

    def test_a_cut_at_every_byte(self):
        server, client = self.pair()

        def stream(n):
            ask = json.dumps(sampling("ID", "\u00fc")).replace("sampling/", "sampling\\/").replace('"ID"', str(100000 + n)).encode()
            data = b"\xef\xbb\xbf: c\r\n\r\nid: 1\r\ndata:" + ask.replace(b', "params"', b',\r\ndata: "params"') + b"\r\n\r\n"
            rest = event("{\"jsonrpc\":\"2.0\",\"method\":\"\u20ac\"}".encode(), eol=b"\r") + event(result(1))
            return data + rest, b"\xef\xbb\xbf: c\r\n\r\n" + rest, [str(100000 + n)]
        length = len(stream(0)[0])
        for at in range(length):
            data, out, ids = stream(at)
            self.check(server, client, [data[:at], data[at:]], out, ids)
        data, out, ids = stream(length)
        self.check(server, client, [data[at:at + 1] for at in range(length)], out, ids)

    def test_generated_messages_both_ways(self):
        chance = random.Random(f"{SEED} messages")
        server, client = self.pair()
        maker = Maker(chance, "2025-11-25")
        for _ in range(150):
            sent, answered = maker.message().encode(), maker.other().encode()
            reply = client.post(sent)
            method = json.loads(sent).get("method", "")
            if method == "" or method.startswith("notifications/"):
                self.assertEqual((reply.status, reply.body()), (202, b""))
                self.assertEqual(server.requests[-1].body, sent)
                continue
            call = server.take()
            self.assertEqual(call.body, sent)
            call.answer(200, answered)
            self.assertEqual(reply.body(), answered)


class Relayed(Generator):
    """The same streams where nothing is taken out: nothing at all is changed."""

    def pair(self, **options):
        return super().pair(sampling="relay", **options)

    def check(self, server, client, pieces, out, ids):
        super().check(server, client, pieces, b"".join(pieces), [])


class Direct(Relayed):
    direct = True


if __name__ == "__main__":
    harness.main()
