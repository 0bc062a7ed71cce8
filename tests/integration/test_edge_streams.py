"""What one request does wrong over HTTP/2 ends its stream, and the others of its connection live (RFC 9113).
ctest: timeout=300
"""

import os
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))

from edge_client import (  # noqa: E402
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PREFACE, PRIORITY, RST, WINDOW, Client, EdgeCase,
    block, frame, h2_answers, h2_frames, h2_request, literal, main, reset, settings, window)

PROTOCOL_ERROR, FRAME_SIZE_ERROR, ENHANCE_YOUR_CALM = 1, 6, 11

HEAD = {b":method": b"POST", b":scheme": b"http", b":path": b"/echo", b":authority": b"edge"}


def head(**changes):
    """Of a request; a name with _ for : is left out for None."""
    fields = dict(HEAD)
    for name, value in changes.items():
        name = name.replace("_", ":", 1).encode()
        if value is None:
            del fields[name]
        else:
            fields[name] = value
    return b"".join(literal(*field) for field in fields.items())


ENTERED = b"\x40\7x-enter\5later"  # behind what is malformed: later heads refer to it

MALFORMED = {
    "te: gzip": head() + literal(b"te", b"gzip"),
    "connection": head() + literal(b"connection", b"close"),
    "keep-alive": head() + literal(b"keep-alive", b"timeout=5"),
    "proxy-connection": head() + literal(b"proxy-connection", b"close"),
    "transfer-encoding": head() + literal(b"transfer-encoding", b"chunked"),
    "upgrade": head() + literal(b"upgrade", b"h2c"),
    "an upper-case name": head() + literal(b"X-Upper", b"1"),
    "an upper-case name that is entered": head() + b"\x40\7X-Upper\1v",
    "an empty path": head(_path=b""),
    "no path": head(_path=None),
    "no method": head(_method=None),
    "no scheme": head(_scheme=None),
    "two paths": head() + literal(b":path", b"/echo"),
    "an unknown pseudo header": head() + literal(b":status", b"200"),
    "a pseudo header behind a field": literal(b"a", b"b") + head(),
    "no length": head() + literal(b"content-length", b"x"),
    "two lengths": head() + literal(b"content-length", b"1") + literal(b"content-length", b"2"),
}


def resets(data):
    return [(stream, int.from_bytes(payload, "big")) for kind, _, stream, payload in h2_frames(data) if kind == RST]


class StreamErrors(EdgeCase):
    def begin(self, edge, client):
        """With a request in flight, which is to be answered whatever happens, and the window that bodies want."""
        client.send(PREFACE + settings() + window(0, 1 << 20) + frame(HEADERS, END_HEADERS, 1, block("/b/3"))
                    + frame(DATA, 0, 1, b"x"))
        client.read_until(lambda data: [f for f in h2_frames(data) if f[0] == WINDOW], "the connection's window")

    def end(self, client, *streams):
        """The one in flight is answered, and another that refers to what was entered."""
        client.send(frame(DATA, END_STREAM, 1))
        client.send(frame(HEADERS, END_HEADERS | END_STREAM, 99, block("/now/2") + b"\xbe"))
        self.assertEqual(client.read_until(h2_answers(1, 99, *streams), "the others")[:2], [b"xxx", b"xx"])
        self.assertNotIn(GOAWAY, [kind for kind, *_ in h2_frames(client.input)])

    def test_a_head_that_is_malformed(self):
        edge = self.edge()
        for name, fields in MALFORMED.items():
            for flags in (END_HEADERS | END_STREAM, END_HEADERS):
                with self.subTest(name, flags=flags), Client(edge) as client:
                    self.begin(edge, client)
                    client.send(frame(HEADERS, flags, 3, fields + ENTERED))
                    if not flags & END_STREAM:  # what was on its way, to the end, is no error of its own
                        client.send(frame(DATA, 0, 3, b"a" * 9000) * 3
                                    + frame(HEADERS, END_HEADERS | END_STREAM, 3, literal(b"trailer", b"1")))
                    self.end(client)
                    self.assertEqual(resets(client.input), [(3, PROTOCOL_ERROR)])
        self.assert_at_rest(edge)

    def test_many_heads_that_are_malformed(self):
        edge = self.edge()
        with Client(edge) as client:
            self.begin(edge, client)
            client.send(b"".join(frame(HEADERS, END_HEADERS, stream, MALFORMED["te: gzip"] + ENTERED)
                                 + frame(DATA, 0, stream, b"x") for stream in range(3, 99, 2)))
            self.end(client)
            self.assertEqual(resets(client.input), [(stream, PROTOCOL_ERROR) for stream in range(3, 99, 2)])
        self.assert_at_rest(edge)

    def test_a_trailer_that_is_malformed(self):
        edge = self.edge()
        for name, trailer in (("te: gzip", literal(b"te", b"gzip")), ("a pseudo header", literal(b":path", b"/")),
                              ("an upper-case name", literal(b"X-Upper", b"1"))):
            with self.subTest(name), Client(edge) as client:
                self.begin(edge, client)
                client.send(frame(HEADERS, END_HEADERS, 3, block("/echo")) + frame(DATA, 0, 3, b"a")
                            + frame(HEADERS, END_HEADERS | END_STREAM, 3, trailer + ENTERED))
                self.end(client)
                self.assertEqual(resets(client.input), [(3, PROTOCOL_ERROR)])
        self.assert_at_rest(edge)

    def test_a_body_of_another_length(self):
        edge = self.edge("-b", 100000)
        for name, length, body in (("shorter", b"5", b"1234"), ("longer", b"3", b"1234"),
                                   ("shorter than one too large", b"99999999", b"1234"), ("none", b"5", b"")):
            with self.subTest(name), Client(edge) as client:
                self.begin(edge, client)
                client.send(frame(HEADERS, END_HEADERS, 3, block("/echo") + literal(b"content-length", length) + ENTERED)
                            + frame(DATA, END_STREAM, 3, body))
                self.end(client)
                self.assertEqual(resets(client.input), [(3, PROTOCOL_ERROR)])
        self.assert_at_rest(edge)

    def test_more_streams_than_there_may_be(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings() + b"".join(
                frame(HEADERS, END_HEADERS, stream, block("/now/1") + ENTERED) for stream in range(1, 221, 2)))
            client.send(b"".join(frame(DATA, END_STREAM, stream, b"x") for stream in range(1, 221, 2)))
            client.read_until(h2_answers(*range(1, 201, 2)), "100 answers")
            client.send(h2_request(301, "/now/2"))
            self.assertEqual(client.read_until(h2_answers(301), "one more"), [b"xx"])
            self.assertEqual(resets(client.input), [(stream, 7) for stream in range(201, 221, 2)])
        self.assert_at_rest(edge)


class ManyCallers(EdgeCase):
    """One caller behind a proxy cancels what it has in flight; the requests of the others go on."""

    def cancels(self, edge, client, first, count, begun):
        """Returns the next stream."""
        over = first + 2 * count
        client.send(b"".join(h2_request(stream, "/hang") for stream in range(first, over, 2)))
        edge.wait_stats(lambda s: s["begun"] == begun + count, "begun")
        client.send(b"".join(frame(RST, 0, stream, struct.pack(">I", 8)) for stream in range(first, over, 2)))
        return over

    def answered(self, client, first, count):
        over = first + 2 * count
        client.send(b"".join(h2_request(stream, "/now/2") for stream in range(first, over, 2)))
        client.read_until(h2_answers(*range(first, over, 2)), "answers")
        return over

    def begin(self, client):
        """With a request in flight, which others' cancels must not end."""
        client.send(PREFACE + settings() + frame(HEADERS, END_HEADERS, 1, block("/b/3")) + frame(DATA, 0, 1, b"x"))

    def end(self, client):
        client.send(frame(DATA, END_STREAM, 1))
        self.assertEqual(client.read_until(h2_answers(1), "the one in flight"), [b"xxx"])
        self.assertNotIn(GOAWAY, [kind for kind, *_ in h2_frames(client.input)])

    def test_sixty_cancels_through_a_trusted_proxy(self):
        edge = self.edge("-m")
        with Client(edge) as client:
            self.begin(client)
            self.cancels(edge, client, 3, 60, 0)
            self.end(client)
        self.assertEqual(self.assert_at_rest(edge)["cancelled"], 60)

    def test_six_hundred_cancels_between_answers_through_a_trusted_proxy(self):
        edge = self.edge("-m")
        with Client(edge) as client:
            self.begin(client)
            stream, begun = 3, 0
            for _ in range(10):
                stream = self.cancels(edge, client, stream, 60, begun)
                stream = self.answered(client, stream, 5)
                begun += 65
            self.end(client)
        self.assertEqual(self.assert_at_rest(edge)["cancelled"], 600)

    def test_a_trusted_proxy_is_closed_too_when_it_is_too_much(self):
        edge = self.edge("-m")
        with Client(edge) as client:
            client.send(PREFACE + settings())
            self.assertTrue(client.send_until_closed(frame(6, 0, 0, bytes(8)) * 400))
        self.assertEqual(self.assert_at_rest(edge)["flood"], 1)

    def test_sixty_cancels_behind_answers_by_default(self):
        edge = self.edge()
        with Client(edge) as client:
            self.begin(client)
            stream = self.answered(client, 3, 30)
            self.cancels(edge, client, stream, 60, 30)
            self.end(client)
        self.assertEqual(self.assert_at_rest(edge)["cancelled"], 60)


class Goodbye(EdgeCase):
    """What ends the connection says why, and which requests may be sent again."""

    def goodbye(self, after, cause, code, begun=()):
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings())
            client.read_until(lambda data: h2_frames(data), "settings")
            for stream in begun:
                client.send(h2_request(stream, "/hang"))
            edge.wait_stats(lambda s: s["begun"] == len(begun), "begun")
            client.send(after)
            frames = h2_frames(client.read_to_end())
        self.assertEqual([payload for kind, _, _, payload in frames if kind == GOAWAY],
                         [struct.pack(">II", max(begun, default=0), code)])
        stats = self.assert_at_rest(edge)
        self.assertEqual((stats[cause], stats["cancelled"]), (1, len(begun)))

    def test_a_frame_that_no_client_may_send(self):
        self.goodbye(frame(CONTINUATION, END_HEADERS, 5, b""), "forbidden_frame", PROTOCOL_ERROR, (1, 3))

    def test_a_frame_that_is_too_long(self):
        self.goodbye(frame(DATA, 0, 1, bytes(16385))[:99], "forbidden_frame", FRAME_SIZE_ERROR, (1,))

    def test_a_flood(self):
        self.goodbye(frame(6, 0, 0, bytes(8)) * 300, "flood", ENHANCE_YOUR_CALM, (1,))

    def test_a_flood_of_priorities_and_nothing_begun(self):
        self.goodbye(frame(PRIORITY, 0, 1, bytes(5)) * 2000, "flood", ENHANCE_YOUR_CALM)

    def test_requests_that_came_behind_what_ended_it_may_be_sent_again(self):
        """In one flight: more are given up than a connection bears, and behind these there are others."""
        edge = self.edge()
        first, given_up, behind = range(1, 65, 2), range(65, 205, 2), range(205, 225, 2)
        with Client(edge) as client:
            client.send(PREFACE + settings() + b"".join(h2_request(stream, "/hang") for stream in first))
            edge.wait_stats(lambda s: s["begun"] == len(first), "begun")
            client.send(b"".join(map(reset, first)) + b"".join(h2_request(s, "/now/1") + reset(s) for s in given_up)
                        + b"".join(h2_request(stream, "/now/2") for stream in behind))
            frames = h2_frames(client.read_to_end())
        (payload,) = [payload for kind, _, _, payload in frames if kind == GOAWAY]
        last, code = struct.unpack(">II", payload)
        self.assertEqual(code, ENHANCE_YOUR_CALM)
        self.assertLess(last, behind[0])
        stats = self.assert_at_rest(edge)
        self.assertEqual((stats["aborted_requests"], stats["begun"]), (1, len(first)))

    def flooded_with_an_answer_on_its_way(self, edge, client):
        client.send(PREFACE + settings((4, 1 << 24)) + window(0, 1 << 24) + h2_request(1, "/now/8000000"))
        client.read_until(lambda data: len(data) > 9000, "the answer's beginning")
        client.send(frame(6, 0, 0, bytes(8)) * 300)
        edge.wait_stats(lambda s: s["flood"] == 1, "seen")

    def test_behind_an_answer_that_is_on_its_way(self):
        edge = self.edge()
        with Client(edge, receive_buffer=4096) as client:
            self.flooded_with_an_answer_on_its_way(edge, client)
            frames = h2_frames(client.read_to_end())
        self.assertEqual([payload for kind, _, _, payload in frames if kind == GOAWAY],
                         [struct.pack(">II", 1, ENHANCE_YOUR_CALM)])
        self.assert_at_rest(edge)

    def test_not_to_a_client_that_does_not_read(self):
        edge = self.edge()
        with Client(edge, receive_buffer=4096) as client:
            started = time.monotonic()
            self.flooded_with_an_answer_on_its_way(edge, client)
            self.assert_at_rest(edge)
            self.assertLess(time.monotonic() - started, 6)  # its patience with readers is 10 s

    def test_in_the_first_flight(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings() + frame(6, 0, 0, bytes(8)) * 300)
            frames = h2_frames(client.read_to_end())
        self.assertEqual([payload for kind, _, _, payload in frames if kind == GOAWAY],
                         [struct.pack(">II", 0, ENHANCE_YOUR_CALM)])
        self.assertEqual(self.assert_at_rest(edge)["flood"], 1)


if __name__ == "__main__":
    main()
