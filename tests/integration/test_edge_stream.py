"""The edge's answers in pieces (http.h under support/edge_echo.c): event streams, over both versions.
ctest: timeout=300
"""

import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

from edge_client import (  # noqa: E402
    DATA, GOAWAY, PREFACE, Client, EdgeCase, h1, h1_answers, h2_answers, h2_frames, h2_request, main, reset,
    settings, window)


def chunked(data):
    """A condition: a whole chunked answer is there; its head and its body, and what is behind it."""
    head, gap, rest = data.partition(b"\r\n\r\n")
    body = b""
    while gap and b"\r\n" in rest:
        size, _, rest = rest.partition(b"\r\n")
        size = int(size, 16)
        if len(rest) < size + 2:
            return None
        body, rest = body + rest[:size], rest[size + 2:]
        if size == 0:
            return head, body, rest
    return None


class Whole(EdgeCase):
    def test_http1_has_chunks_and_the_connection_goes_on(self):
        edge = self.edge()
        with Client(edge) as client:
            for path, body in (("/drip/3", b"x" * 30), ("/pieces/50", b"x" * 50000), ("/drip/1", b"x" * 10)):
                client.input = b""
                client.send(h1(path))
                head, got, rest = client.read_until(chunked, "the end")
                self.assertEqual((got, rest), (body + b"end", b""))
                self.assertIn(b"content-type: text/event-stream", head.lower())
                self.assertNotIn(b"content-length", head.lower())
            client.input = b""
            client.send(h1("/echo", b"after"))
            self.assertEqual(client.read_until(h1_answers(1), "an answer"), [b"after"])
        self.assertEqual(self.assert_at_rest(edge)["sent"], 4)

    def test_requests_behind_a_stream_wait_for_its_end(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(h1("/drip/5") + h1("/echo", b"second") + h1("/drip/2"))
            client.read_until(lambda data: b"x" * 10 in data, "the first piece")
            client.send(h1("/echo", b"last"))
            _, body, rest = client.read_until(chunked, "the first end")
            self.assertEqual(body, b"x" * 50 + b"end")
            client.input = rest
            self.assertEqual(client.read_until(h1_answers(1), "the second"), [b"second"])
            client.input = client.input[client.input.index(b"second") + 6:]
            _, body, rest = client.read_until(chunked, "the third end")
            self.assertEqual(body, b"x" * 20 + b"end")
            client.input = rest
            self.assertEqual(client.read_until(h1_answers(1), "the last"), [b"last"])
        self.assert_at_rest(edge)

    def test_http10_ends_with_its_connection(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(h1("/drip/3", b"", "Connection: keep-alive").replace(b"HTTP/1.1", b"HTTP/1.0"))
            head, _, body = client.read_to_end().partition(b"\r\n\r\n")
            self.assertEqual(body, b"x" * 30 + b"end")
            self.assertNotIn(b"transfer-encoding", head.lower())
        self.assert_at_rest(edge)

    def test_http2_streams_share_a_connection(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings() + h2_request(1, "/drip/4") + h2_request(3, "/pieces/60")
                        + h2_request(5, "/echo", b"beside") + h2_request(7, "/drip/2"))
            bodies = client.read_until(h2_answers(1, 3, 5, 7), "all four")
            self.assertEqual(bodies, [b"x" * 40 + b"end", b"x" * 60000 + b"end", b"beside", b"x" * 20 + b"end"])
        self.assertEqual(self.assert_at_rest(edge)["sent"], 4)

    def test_the_first_piece_comes_before_the_end(self):
        edge = self.edge()
        with Client(edge) as one, Client(edge) as two:
            one.send(h1("/open"))
            one.read_until(lambda data: b"x" * 10 in data, "a piece")
            two.send(PREFACE + settings() + h2_request(1, "/open"))
            two.read_until(lambda data: [f for f in h2_frames(data) if f[0] == DATA], "a piece")
            self.assertEqual(edge.stats()["in_flight"], 3)
        self.assertEqual(self.assert_at_rest(edge)["cancelled"], 2)


class Gone(EdgeCase):
    """A stream that has nothing to say at the moment hears its client leave."""

    def soonest(self, first, how):
        edge = self.edge()
        times = []
        for _ in range(5):
            with Client(edge) as client:
                client.send(first)
                client.read_until(lambda data: b"x" * 10 in data, "the first piece")
                before = edge.stats()["cancelled"]
                started = time.monotonic()
                how(client)
                edge.wait_stats(lambda s, n=before: s["cancelled"] > n, "cancelled")
                times.append((time.monotonic() - started) * 1000)
        self.assertLess(min(times), 100)
        self.assertEqual(self.assert_at_rest(edge)["cancelled"], 5)

    def test_http1_close(self):
        self.soonest(h1("/open"), lambda client: client.socket.close())

    def test_http1_half_close(self):
        self.soonest(h1("/open"), lambda client: client.socket.shutdown(socket.SHUT_WR))

    def test_http1_close_behind_a_pipelined_request(self):
        self.soonest(h1("/open") + h1("/echo", b"never"), lambda client: client.socket.close())

    def test_http1_reset(self):
        def linger_zero(client):
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.socket.close()
        self.soonest(h1("/open"), linger_zero)

    def test_http2_close(self):
        self.soonest(PREFACE + settings() + h2_request(1, "/open"), lambda client: client.socket.close())

    def test_http2_stream_reset(self):
        self.soonest(PREFACE + settings() + h2_request(1, "/open"), lambda client: client.send(reset(1)))

    def test_leaving_at_any_moment_of_a_busy_stream(self):
        edge = self.edge()
        for version in (1, 2):
            for size in (1, 2000, 20000, 60000):  # within HTTP/2's first window
                with Client(edge, receive_buffer=4096) as client:
                    client.send(h1("/pieces/2000") if version == 1
                                else PREFACE + settings() + h2_request(1, "/pieces/2000"))
                    client.read_until(lambda data, n=size: len(data) >= n, "so much")
        stats = self.assert_at_rest(edge)
        self.assertEqual(stats["begun"], stats["cancelled"] + stats["answered"])


class Slow(EdgeCase):
    def test_a_stream_that_waits_for_us_is_not_a_slow_reader(self):
        edge = self.edge("-t", 1000)
        with Client(edge) as one, Client(edge) as two:
            one.send(h1("/open"))
            two.send(PREFACE + settings() + h2_request(1, "/open"))
            for client in (one, two):
                client.read_until(lambda data: b"x" * 10 in data, "the first piece")
            for _ in range(3):  # given up one after the other
                with Client(edge) as clock:
                    clock.send(PREFACE[:5])
                    clock.read_to_end()
            self.assertEqual(edge.stats()["in_flight"], 3)
            self.assertEqual(edge.stats()["stalled"], 0)
        self.assertEqual(self.assert_at_rest(edge)["cancelled"], 2)

    def test_a_stream_that_drips_for_longer_than_the_patience_goes_on(self):
        edge = self.edge("-t", 300)
        with Client(edge) as one, Client(edge) as two:
            one.send(h1("/drip/150"))  # 3 s
            two.send(PREFACE + settings() + h2_request(1, "/drip/150"))
            self.assertEqual(two.read_until(h2_answers(1), "the end"), [b"x" * 1500 + b"end"])
            _, body, _ = one.read_until(chunked, "the end")
            self.assertEqual(body, b"x" * 1500 + b"end")
        self.assertEqual(self.assert_at_rest(edge)["stalled"], 0)

    def test_a_reader_that_does_not_take_its_stream_is_given_up(self):
        for first in (h1("/pieces/20000"), PREFACE + settings((4, 100)) + h2_request(1, "/pieces/2")):
            edge = self.edge("-t", 1000)
            with Client(edge, receive_buffer=4096) as client:
                client.send(first)
                edge.wait_stats(lambda s: s["stalled"] == 1, "given up")
            self.assert_at_rest(edge)

    def test_a_slow_but_steady_reader_gets_all_of_it(self):
        edge = self.edge("-t", 1000)
        with Client(edge) as client:
            client.send(PREFACE + settings((4, 0)) + h2_request(1, "/pieces/40"))
            for number in range(41):
                client.send(window(1, 1000) + window(0, 1000))
                client.read_until(
                    lambda data, n=number: sum(len(f[3]) for f in h2_frames(data) if f[0] == DATA)
                    >= min(1000 * (n + 1), 40003), "as much as was asked for")
            self.assertEqual(client.read_until(h2_answers(1), "the end"), [b"x" * 40000 + b"end"])
        self.assertEqual(self.assert_at_rest(edge)["stalled"], 0)


class Shutdown(EdgeCase):
    def test_streams_end_before_their_connections_do(self):
        edge = self.edge()
        with Client(edge) as one, Client(edge) as two:
            one.send(h1("/drip/100"))
            two.send(PREFACE + settings() + h2_request(1, "/drip/100"))
            for client in (one, two):
                client.read_until(lambda data: b"x" * 10 in data, "the first piece")
            edge.send(15)
            two.read_until(lambda data: [f for f in h2_frames(data) if f[0] == GOAWAY], "GOAWAY")
            self.assertEqual(two.read_until(h2_answers(1), "the end"), [b"x" * 1000 + b"end"])
            _, body, _ = one.read_until(chunked, "the end")
            self.assertEqual(body, b"x" * 1000 + b"end")
            one.read_to_end()
            two.read_to_end()
        edge.stop()


if __name__ == "__main__":
    main()
