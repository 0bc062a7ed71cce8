"""Requests over HTTP/1.1 that two readers may cut in two ways: refused before libh2o reads them.

libh2o 2.2.5 by itself answers every head of SMUGGLED, most of them twice, and takes most of the chunks.
ctest: timeout=300
"""

import json
import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

from edge_client import Client, EdgeCase, h1, h1_answers, main  # noqa: E402

HEAD = b"POST /echo HTTP/1.1\r\nHost: edge\r\n"
CHUNKS = b"5\r\nhello\r\n0\r\n\r\n"
SMUGGLED = {  # name: (status, what follows HEAD)
    "length beside encoding": (400, b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS),
    "encoding beside length": (400, b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + CHUNKS),
    "two lengths": (400, b"Content-Length: 5\r\nContent-Length: 50\r\n\r\nhello"),
    "two equal lengths": (400, b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
    "two encodings": (400, b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS),
    "an unknown encoding first": (501, b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS),
    "a line that ends in LF": (400, b"X: y\nContent-Length: 5\r\n\r\nhello"),
    "a head that ends in LF": (400, b"Content-Length: 5\r\n\nhello"),
    "a folded length": (400, b"Content-Length: 5\r\n 0\r\n\r\nhello"),
    **{f"chunks: {name}": (400, b"Transfer-Encoding: chunked\r\n\r\n" + chunks) for name, chunks in {
        "a size that ends in LF": b"5\nhello\r\n0\r\n\r\n",
        "text behind a size": b"5 x\r\nhello\r\n0\r\n\r\n",
        "a size that is none": b"0x5\r\nhello\r\n0\r\n\r\n",
        "a size of (": b"(\r\nhello\r\n0\r\n\r\n",
        "a size with a sign": b"+5\r\nhello\r\n0\r\n\r\n",
        "no size": b"\r\nhello\r\n0\r\n\r\n",
        "an LF in an extension": b"5;a\nb\r\nhello\r\n0\r\n\r\n",
        "an LF in the last one's extension": b"5\r\nhello\r\n0;a\n\r\n",
        "a CR in an extension": b"5;a\rb\r\nhello\r\n0\r\n\r\n",
        "an extension without end": b"5;" + b"a" * 300 + b"\r\nhello\r\n0\r\n\r\n",
        "data that ends in LF": b"5\r\nhello\n0\r\n\r\n",
        "data that goes on": b"5\r\nhelloo\r\n0\r\n\r\n",
        "an end that ends in LF": b"5\r\nhello\r\n0\n\n",
        "a folded trailer": b"5\r\nhello\r\n0\r\nX: y\r\n z\r\n\r\n",
        "a trailer without a name": b"5\r\nhello\r\n0\r\nrubbish\r\n\r\n",
    }.items()},
    "two hosts": (400, b"Host: other\r\nContent-Length: 5\r\n\r\nhello"),
}


class Framing(EdgeCase):
    def assert_refused(self, answer, status, code=-32600, reason="invalid_request"):
        """One answer, a JSON-RPC error, then the end of the connection."""
        head, _, body = answer.partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"HTTP/1.1 %d " % status), answer)
        self.assertIn(b"\r\nConnection: close", head)
        error = json.loads(body)["error"]
        self.assertEqual((error["code"], error["data"]["reason"]), (code, reason))

    def test_requests_that_can_be_read_in_two_ways_are_refused(self):
        edge = self.edge()
        for name, (status, rest) in SMUGGLED.items():
            with self.subTest(name), Client(edge) as client:
                client.send(HEAD + rest)
                self.assert_refused(client.read_to_end(), status)
        stats = self.assert_at_rest(edge)
        self.assertEqual((stats["begun"], stats["bad_head"]), (0, len(SMUGGLED)))

    def test_however_they_are_cut(self):
        edge = self.edge()
        for name, (status, rest) in SMUGGLED.items():
            with self.subTest(name), Client(edge) as client:
                try:
                    for byte in HEAD + rest:
                        client.send(bytes([byte]))
                except (BrokenPipeError, ConnectionResetError):
                    pass
                self.assert_refused(client.read_to_end(), status)
        self.assertEqual(self.assert_at_rest(edge)["begun"], 0)

    def test_behind_an_honest_request_too(self):
        """Where libh2o goes on by itself: in the same segment, and while the first is in flight."""
        edge = self.edge()
        for first in (h1("/now/1"), h1("/echo", b"x"), HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"):
            for name, (_, rest) in SMUGGLED.items():
                with self.subTest(name), Client(edge) as client:
                    client.send(first + HEAD + rest)
                    self.assertNotIn(b"hello", client.read_to_end())
        stats = self.assert_at_rest(edge)
        self.assertEqual((stats["begun"], stats["bad_head"]), (3 * len(SMUGGLED), 3 * len(SMUGGLED)))

    def test_and_while_one_is_in_flight(self):
        edge = self.edge()
        for name, (status, rest) in SMUGGLED.items():
            with self.subTest(name), Client(edge) as client:
                before = edge.stats()["begun"]
                client.send(h1("/b/1"))
                edge.wait_stats(lambda s, n=before: s["begun"] > n, "the honest one")
                client.send(HEAD + rest)
                answers = client.read_to_end()
                self.assertTrue(answers.startswith(b"HTTP/1.1 200 "), answers)
                self.assertNotIn(b"hello", answers)
        stats = self.assert_at_rest(edge)
        self.assertEqual((stats["begun"], stats["bad_head"]), (len(SMUGGLED), len(SMUGGLED)))

    def test_honest_requests_in_a_row_are_each_judged_by_themselves(self):
        """Each head begins where the request before it ends, whatever kind of body that had."""
        edge = self.edge()
        kinds = (h1("/echo", b"a" * 3000), HEAD + b"Transfer-Encoding: chunked \r\n\r\n"
                 b"00005;name=\"a b\"; c\r\nhello\r\n0 ;last\r\nX-Sum: 1\r\n\r\n",
                 b"GET /now/2 HTTP/1.1\r\nHost: x\r\n\r\n", h1("/echo", b""), b"\r\n" + h1("/now/3"))
        wanted = [b"a" * 3000, b"hello", b"xx", b"", b"xxx"]
        for cut in (1 << 20, 1000, 7):
            data = b"".join(kinds) * 3
            with Client(edge) as client:
                for at in range(0, len(data), cut):
                    client.send(data[at:at + cut])
                self.assertEqual(client.read_until(h1_answers(15), "15 answers"), wanted * 3)
        stats = self.assert_at_rest(edge)
        self.assertEqual((stats["begun"], stats["bad_head"]), (45, 0))

    def test_an_endless_head_is_refused(self):
        edge = self.edge()
        for line in (b"X: " + b"y" * 1000 + b"\r\n", b"y" * 1000):
            with Client(edge) as client:
                client.send(HEAD + line * 40)
                self.assert_refused(client.read_to_end(), 431)
        self.assertEqual(self.assert_at_rest(edge)["bad_head"], 2)

    def test_what_is_no_http_is_left_to_h2o(self):
        edge = self.edge()
        for text in (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"GET /\r\n\r\n", b"\r\n\r\n\r\n", HEAD + b"X : y\r\n\r\n",
                     HEAD + b"X: a\rb\r\n\r\n", b"GET / HTTP/2.0\r\nHost: x\r\n\r\n"):
            with self.subTest(text), Client(edge) as client:
                client.send(text)
                self.assertNotIn(b" 200 ", client.read_to_end())
        self.assertEqual(self.assert_at_rest(edge)["begun"], 0)


class Lingering(EdgeCase):
    """A refused client that still sends can read why."""

    def refused_upload(self, edge, size, sent):
        with Client(edge) as client:
            client.send(h1("/echo").replace(b"Content-Length: 0", b"Content-Length: %d" % size))
            try:
                for _ in range(sent // 65536):
                    client.send(b"a" * 65536)
            except (BrokenPipeError, ConnectionResetError):
                return None
            return client.read_to_end()

    def test_the_answer_reaches_who_sends_his_body_first(self):
        edge = self.edge("-b", 100000)
        answer = self.refused_upload(edge, 20 << 20, 20 << 20)
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer)
        self.assertEqual(json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["data"]["reason"], "body_too_large")
        self.assertEqual(self.assert_at_rest(edge)["body_too_large"], 1)

    def test_not_for_ever(self):
        edge = self.edge("-b", 100000)
        self.refused_upload(edge, 1 << 40, 64 << 20)
        self.assertEqual(self.assert_at_rest(edge)["body_too_large"], 1)

    def test_nor_for_one_who_does_nothing(self):
        edge = self.edge("-b", 100000, "-t", 1000)
        with Client(edge) as client:
            client.send(h1("/echo").replace(b"Content-Length: 0", b"Content-Length: 1000000"))
            client.read_to_end()
            self.assert_at_rest(edge)
            self.assertRaises(OSError, self.push, client)

    @staticmethod
    def push(client):
        client.send(b"a")
        harness.wait_for(lambda: client.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0, "a reset")
        raise OSError("reset")


if __name__ == "__main__":
    main()
