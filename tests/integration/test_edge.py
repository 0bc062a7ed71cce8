"""The edge by itself (http.h and net.h under support/edge_echo.c) against clients that speak byte by byte.

What hostile clients do is in here frame by frame where it is short; the longer attacks are programs
beside the checkout (SLUICE_SHARED/attacks), and skipped aloud where there are none.
ctest: timeout=300
"""

import contextlib
import json
import os
import random
import socket
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import h2_client  # noqa: E402
import harness  # noqa: E402
from h2_client import FRAME_MAX  # noqa: E402

sys.path.append("/usr/lib/python3/dist-packages")  # where Debian's are, whichever python3 runs this
import hpack  # noqa: E402

from edge_client import (  # noqa: E402
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PREFACE, RST, WINDOW, Client, EdgeCase,
    block, frame, h1, h1_answers, h2_answers, h2_frames, h2_request, main, reset, settings, window)

ATTACKS = os.path.join(harness.SHARED, "attacks", "attacks_tls.py")


# ---- honest clients -----------------------------------------------------------------------------

class Http1(EdgeCase):
    def test_connections_are_kept(self):
        edge = self.edge()
        with Client(edge) as client:
            for i in range(5):
                client.input = b""
                client.send(h1("/echo", b"body %d" % i))
                self.assertEqual(client.read_until(h1_answers(1), "an answer"), [b"body %d" % i])
        self.assertEqual(self.assert_at_rest(edge)["sent"], 5)

    def test_pipelined_requests_are_answered_in_order(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(h1("/b/3") + h1("/now/1") + h1("/echo", b"second") + h1("/b/2") + h1("/echo", b"last"))
            self.assertEqual(client.read_until(h1_answers(5), "five answers"),
                             [b"xxx", b"x", b"second", b"xx", b"last"])
        self.assert_at_rest(edge)

    def test_an_answer_from_a_timer_lets_the_next_request_in_at_once(self):
        edge = self.edge()
        started = time.monotonic()
        with Client(edge) as client:
            client.send(h1("/b/1") * 15)  # 20 ms each; a turn of the loop may wait for a second
            client.read_until(h1_answers(15), "15 answers")
        self.assertLess(time.monotonic() - started, 7)

    def test_requests_that_come_while_another_is_in_flight_are_kept(self):
        edge = self.edge()
        with Client(edge) as client:
            later = h1("/echo", b"e" * 5000) + h1("/b/1") + h1("/echo", b"end")
            client.send(h1("/b/10"))
            edge.wait_stats(lambda s: s["begun"] == 1, "the first request")
            for at in range(0, len(later), 1000):
                client.send(later[at:at + 1000])
            self.assertEqual(client.read_until(h1_answers(4), "four answers"),
                             [b"x" * 10, b"e" * 5000, b"x", b"end"])
        self.assert_at_rest(edge)

    def test_a_request_may_come_byte_by_byte(self):
        edge = self.edge()
        with Client(edge) as client:
            for byte in h1("/echo", b"slowly"):
                client.send(bytes([byte]))
            self.assertEqual(client.read_until(h1_answers(1), "an answer"), [b"slowly"])

    def test_a_chunked_body_arrives_whole(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                        b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n" + h1("/now/1"))
            self.assertEqual(client.read_until(h1_answers(2), "two answers"), [b"hello world", b"x"])

    def test_expect_100_continue_is_answered_before_the_body(self):
        edge = self.edge()
        with Client(edge) as client:
            head, body = h1("/echo", b"after", "Expect: 100-continue").split(b"\r\n\r\n")
            client.send(head + b"\r\n\r\n")
            client.read_until(lambda data: data == b"HTTP/1.1 100 Continue\r\n\r\n", "100")
            client.input = b""
            client.send(body)
            self.assertEqual(client.read_until(h1_answers(1), "an answer"), [b"after"])
        self.assert_at_rest(edge)

    def test_other_methods_reach_the_handler_and_head_has_no_body(self):
        edge = self.edge()
        for method in ("GET", "DELETE", "PUT", "OPTIONS"):
            self.assertEqual(harness.request(method, edge.url + "/now/3").body, b"xxx", method)
        with Client(edge) as client:
            client.send(b"HEAD /now/3 HTTP/1.1\r\nHost: x\r\n\r\n" + h1("/now/1"))
            answers = client.read_until(lambda data: data.endswith(b"\r\n\r\nx") and data, "both answers")
        self.assertIn(b"Content-Length: 3\r\n", answers)
        self.assertNotIn(b"xxx", answers)

    def test_no_server_header_and_the_query_is_no_part_of_the_path(self):
        edge = self.edge()
        answer = harness.request("GET", edge.url + "/now/3?a=b")
        self.assertEqual((answer.status, answer.body), (200, b"xxx"))
        self.assertNotIn("server", answer.headers)

    def test_a_handler_that_refuses_makes_503(self):
        edge = self.edge()
        for ask in (harness.request, harness.request_h2):
            answer = ask("POST", edge.url + "/refuse", b"{}")
            self.assertEqual((answer.status, answer.body), (503, b'{"busy":true}'))
        self.assert_at_rest(edge)


class Heads(EdgeCase):
    """Of answers over HTTP/2, which override_hpack_flatten.c writes."""

    def test_one_that_is_longer_than_a_frame_is_continued(self):
        edge = self.edge()
        last = set()
        # Of some 47 bytes beside the field's value: up to one frame, exactly one, and more; the same of three.
        for size in [*range(FRAME_MAX - 55, FRAME_MAX - 40), 2 * FRAME_MAX, *range(3 * FRAME_MAX - 55, 3 * FRAME_MAX - 40)]:
            with h2_client.Client(edge.url) as client:
                client.socket.sendall(h2_request(1, "/h/%d" % size))
                client.wait(lambda c: any(f[0] == DATA and f[1] & END_STREAM or f[0] in (HEADERS, CONTINUATION) and
                                          f[1] & END_HEADERS for f in c.frames), "the head")
            frames = [f for f in client.frames if f[0] in (HEADERS, CONTINUATION)]
            self.assertEqual([f[0] for f in frames], [HEADERS] + [CONTINUATION] * (len(frames) - 1))
            self.assertEqual([f[1] & END_HEADERS for f in frames], [0] * (len(frames) - 1) + [END_HEADERS])
            self.assertEqual([len(f[3]) for f in frames[:-1]], [FRAME_MAX] * (len(frames) - 1))
            last.add((len(frames), len(frames[-1][3])))
            fields = dict(hpack.Decoder(2 ** 20).decode(b"".join(f[3] for f in frames)))
            self.assertEqual((fields[":status"], fields["x-big"]), ("200", "x" * size))
        self.assertLess({(1, FRAME_MAX), (2, 1), (3, FRAME_MAX), (4, 1)}, last)
        self.assertLess(max(length for _, length in last), FRAME_MAX + 1)
        self.assert_at_rest(edge)


class Room(EdgeCase):
    """What h2o's memory for a request has left is the handler's: edge_echo fills it and looks at it at the end."""

    def test_there_is_enough_beside_the_usual_fields(self):
        edge = self.edge()
        for ask in (harness.request, harness.request_h2):
            self.assertGreater(int(ask("GET", edge.url + "/room").body), 2400)
        self.assert_at_rest(edge)

    def test_fields_of_any_number_and_paths_of_any_length_leave_what_there_is(self):
        edge, seen = self.edge(), set()
        for ask in (harness.request, harness.request_h2):
            for count in range(0, 60, 3):
                fields = {f"x-{n}": "v" * n for n in range(count)}
                answer = ask("GET", edge.url + "/room?" + "q" * 57 * count, headers=fields)
                self.assertEqual(answer.status, 200)
                seen.add(int(answer.body))
        self.assertIn(0, seen)
        self.assertGreater(len(seen), 5)
        self.assert_at_rest(edge)


class Http2(EdgeCase):
    def test_prior_knowledge_may_come_byte_by_byte(self):
        edge = self.edge()
        with Client(edge, http2=True) as client:
            for byte in PREFACE + settings() + h2_request(1, "/echo", b"slowly") + h2_request(3, "/b/4"):
                client.send(bytes([byte]))
            self.assertEqual(client.read_until(h2_answers(1, 3), "answers"), [b"slowly", b"xxxx"])
        self.assert_at_rest(edge)

    def test_a_hundred_streams_at_once(self):
        edge = self.edge()
        streams = range(1, 201, 2)
        with Client(edge) as client:
            client.send(PREFACE + settings() + b"".join(h2_request(s, "/b/100") for s in streams))
            self.assertEqual(client.read_until(h2_answers(*streams), "100 answers"), [b"x" * 100] * 100)
        self.assertEqual(self.assert_at_rest(edge)["sent"], 100)

    def test_bodies_of_any_size_come_back_whole_in_one_frame_or_several(self):
        """Short ones are moved out of h2o's buffer: half of it is where that ends."""
        edge = self.edge()
        sizes = [0, 1, 1000, 1023, 1024, 4090, 4096, 4097, 8191, 8192, 8193, 16000]
        bodies = [bytes(random.Random(size).randbytes(size)) for size in sizes]
        cuts = [lambda body: [body], lambda body: [body[:1], body[1:]],
                lambda body: [body[at:at + 3000] for at in range(0, len(body) + 1, 3000)]]
        for cut in cuts:
            with Client(edge, http2=True) as client:
                streams = range(1, 2 * len(bodies), 2)
                requests = [
                    frame(HEADERS, END_HEADERS, stream, block("/echo")) +
                    b"".join(frame(DATA, 0, stream, piece) for piece in cut(body)) + frame(DATA, END_STREAM, stream)
                    for stream, body in zip(streams, bodies)]
                client.send(PREFACE + settings() + window(0, 1 << 20))
                for request in requests:
                    client.send(request)
                self.assertEqual(client.read_until(h2_answers(*streams), "all answers"), bodies)
        self.assert_at_rest(edge)

    def test_large_answers_wait_for_the_window(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings() + h2_request(1, "/now/200000"))
            client.read_until(lambda data: len(data) > 65535, "the first window")
            client.send(window(0, 1 << 20) + window(1, 1 << 20))
            self.assertEqual(client.read_until(h2_answers(1), "an answer"), [b"x" * 200000])
        self.assert_at_rest(edge)

    def test_an_empty_answer_ends_its_stream(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings((4, 0)) + h2_request(1, "/now/0") + h2_request(3, "/now/0"))
            client.send(window(1, 5) + window(3, 5))
            client.read_until(h2_answers(1, 3), "answers")
        self.assert_at_rest(edge)

    def test_cancelled_and_answered_streams_do_not_get_in_each_others_way(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings())
            for stream in range(1, 161, 4):
                client.send(h2_request(stream, "/hang") + h2_request(stream + 2, "/b/5"))
                edge.wait_stats(lambda s, n=stream: s["begun"] == n // 2 + 2, "both begun")
                client.send(reset(stream))
            client.read_until(h2_answers(*range(3, 163, 4)), "the answers")
        stats = self.assert_at_rest(edge)
        self.assertEqual((stats["sent"], stats["cancelled"]), (40, 40))


class BodyLimits(EdgeCase):
    LIMIT = 100000

    def test_a_body_at_the_limit_passes_and_one_over_it_is_413_from_the_handler(self):
        edge = self.edge("-b", self.LIMIT)
        for ask in (harness.request, harness.request_h2):
            self.assertEqual(ask("POST", edge.url + "/echo", b"a" * self.LIMIT).body, b"a" * self.LIMIT)
            for size in (self.LIMIT + 1, self.LIMIT + 60000):
                answer = ask("POST", edge.url + "/echo", b"a" * size)
                self.assertEqual((answer.status, answer.body), (413, b"too large\n"), ask)
        self.assert_at_rest(edge)

    def test_a_far_larger_body_is_413_over_http1(self):
        edge = self.edge("-b", self.LIMIT)
        with Client(edge) as client:
            client.send(h1("/echo", b"", "X: y").replace(b"Content-Length: 0", b"Content-Length: 10000000"))
            self.assertTrue(client.read_to_end().startswith(b"HTTP/1.1 413 "))
        self.assert_at_rest(edge)

    def test_a_far_larger_body_in_chunks_is_413_over_http1(self):
        edge = self.edge("-b", self.LIMIT)
        for size in (10, 3000, 50000):
            with Client(edge) as client:
                client.send(b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
                chunk = b"%x\r\n%s\r\n" % (size, b"a" * size)
                client.send(chunk * (10 * self.LIMIT // size))
                head, _, body = client.read_to_end().partition(b"\r\n\r\n")
            self.assertTrue(head.startswith(b"HTTP/1.1 413 "), head)
            self.assertEqual(json.loads(body)["error"]["data"]["reason"], "body_too_large")
        self.assertEqual(self.assert_at_rest(edge)["body_too_large"], 3)

    def test_a_body_in_chunks_up_to_the_limit_is_no_larger_than_its_bytes(self):
        edge = self.edge("-b", self.LIMIT)
        with Client(edge) as client:
            client.send(b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                        + b"1\r\na\r\n" * self.LIMIT + b"0\r\n\r\n")
            self.assertEqual(client.read_until(h1_answers(1), "an answer"), [b"a" * self.LIMIT])
        self.assert_at_rest(edge)

    def refused_over_http2(self, edge, client, length, body):
        """A request whose body is too large, and one behind it that is served."""
        client.send(PREFACE + settings() + frame(HEADERS, END_HEADERS, 1, block("/echo") + length) + body)
        client.send(h2_request(3, "/echo", b"honest"))
        self.assertEqual(client.read_until(h2_answers(1, 3), "answers"), [b"too large\n", b"honest"])
        frames = h2_frames(client.input)
        self.assertLessEqual({payload for kind, _, _, payload in frames if kind == RST}, {bytes(4)})
        opened = [payload for kind, _, stream, payload in frames if (kind, stream) == (WINDOW, 0)]
        self.assertGreater(int.from_bytes(opened[0], "big"), 8 << 20, "there is room for other bodies")
        self.assertEqual(edge.stats()["body_too_large"], 0)

    def test_a_far_larger_body_is_413_over_http2(self):
        body = frame(DATA, 0, 1, b"a" * 16384) * 20 + frame(DATA, END_STREAM, 1, b"a" * 99)
        edge = self.edge("-b", self.LIMIT)
        for name, length in (("not told", b""), ("told", b"\x0f\x0d\x06327779"), ("told twice", b"\x0f\x0d\x06327779" * 2),
                             ("told in Huffman's code", b"\x0f\x0d\x85\x64\x4e\xba\xeb\xff")):
            with self.subTest(name), Client(edge) as client:
                self.refused_over_http2(edge, client, length, body)
        self.assert_at_rest(edge)

    def test_whose_client_resets_it_when_it_is_told(self):
        edge = self.edge("-b", self.LIMIT)
        with Client(edge) as client:
            client.send(PREFACE + settings())
            for stream in range(1, 101, 2):
                client.send(frame(HEADERS, END_HEADERS, stream, block("/echo") + b"\x0f\x0d\x06327779")
                            + frame(DATA, 0, stream, b"a" * 5000))
                client.read_until(h2_answers(stream), "its answer")
                client.send(reset(stream))
            client.send(h2_request(101, "/echo", b"honest"))
            self.assertEqual(client.read_until(h2_answers(101), "an answer"), [b"honest"])
        stats = self.assert_at_rest(edge)
        self.assertEqual((stats["sent"], stats["flood"]), (51, 0))

    def test_a_length_by_reference_is_413_where_it_becomes_too_large(self):
        """The guard cannot look it up, and h2o does not compare it."""
        edge = self.edge("-b", self.LIMIT)
        body = frame(DATA, 0, 3, b"a" * 16384) * 20 + frame(DATA, END_STREAM, 3, b"a" * 99)
        with Client(edge) as client:
            client.send(PREFACE + settings() + frame(HEADERS, END_HEADERS | END_STREAM, 1,
                                                     block("/now/1") + b"\x5c\x06327779"))
            client.read_until(h2_answers(1), "an answer")
            client.send(frame(HEADERS, END_HEADERS, 3, block("/echo") + b"\xbe") + body
                        + h2_request(5, "/echo", b"honest"))
            self.assertEqual(client.read_until(h2_answers(3, 5), "answers"), [b"too large\n", b"honest"])
            self.assertLessEqual({f[3] for f in h2_frames(client.input) if f[0] == RST}, {bytes(4)})  # NO_ERROR
        self.assert_at_rest(edge)

    def test_a_length_that_is_entered_has_its_own_size_in_the_table(self):
        """A field before it, itself and one behind it fill the table: the first is still there."""
        edge = self.edge("-b", self.LIMIT)
        first, fill = b"\x40\x01o\x01v", 4096 - (1 + 1 + 32) - (len("content-length327779") + 32) - (1 + 32)
        with Client(edge) as client:
            client.send(PREFACE + settings() + frame(HEADERS, END_HEADERS, 1, block("/echo") + first
                                                     + b"\x5c\x85\x64\x4e\xba\xeb\xff"))
            client.send(frame(DATA, 0, 1, b"a" * 16384))
            self.assertEqual(client.read_until(h2_answers(1), "an answer"), [b"too large\n"])
            number = fill - 127
            value = b"\x7f" + bytes([number & 127 | 128, number >> 7]) + b"f" * fill
            client.send(frame(HEADERS, END_HEADERS | END_STREAM, 3, block("/now/1") + b"\x40\x01f" + value))
            client.send(frame(HEADERS, END_HEADERS | END_STREAM, 5, block("/now/1") + b"\xc0"))
            client.read_until(h2_answers(3, 5), "answers")
        self.assert_at_rest(edge)

    @unittest.skipIf(os.environ.get("SLUICE_SANITIZE"), "a sanitizer keeps what is freed")
    def test_a_connection_at_rest_keeps_nothing_of_it(self):
        """Not of what the guard took out of h2o's buffer, nor of what came before a frame that is not whole yet."""
        edge, clients = self.edge("-b", self.LIMIT), 20
        for rest in (b"", frame(PING, 0, 0, bytes(8))[:5]):
            before = edge.resident_kb()
            with contextlib.ExitStack() as stack:
                for _ in range(clients):
                    client = stack.enter_context(Client(edge))
                    client.send(PREFACE + settings() + frame(HEADERS, END_HEADERS, 1, block("/echo"))
                                + frame(DATA, 0, 1, b"a" * 16384) * 110 + frame(PING, 0, 0, bytes(8)) + rest)
                    client.read_until(lambda data: PING in [kind for kind, *_ in h2_frames(data)], "a PING's answer")
                self.assertEqual(edge.stats()["open"], clients + 1)
                self.assertLess((edge.resident_kb() - before) / clients, 300)
        self.assert_at_rest(edge)

    def test_its_trailers_are_read_and_dropped(self):
        """What they enter into the table of fields, later heads refer to; h2o does not know their stream any more."""
        edge = self.edge("-b", self.LIMIT)
        with Client(edge) as client:
            client.send(PREFACE + settings() + frame(HEADERS, END_HEADERS, 1, block("/echo"))
                        + frame(DATA, 0, 1, b"a" * 16384) * 20)
            self.assertEqual(client.read_until(h2_answers(1), "an answer"), [b"too large\n"])
            client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x40\5:path\6/now/7"))
            client.send(frame(HEADERS, END_HEADERS | END_STREAM, 3,
                              block("/x").replace(b"\0\5:path\2/x", b"") + b"\xbe"))
            self.assertEqual(client.read_until(h2_answers(3), "an answer"), [b"x" * 7])
        self.assert_at_rest(edge)

    def test_who_is_refused_and_goes_on_past_the_window_is_closed(self):
        edge = self.edge("-b", self.LIMIT)
        with Client(edge) as client:
            client.send(PREFACE + settings() + frame(HEADERS, END_HEADERS, 1, block("/echo")))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.send(frame(DATA, 0, 1, b"a" * 16384) * 1100)
            frames = h2_frames(client.read_to_end())
        # Not reset: a client that is sending, as curl 7.88, would not see the answer.
        self.assertEqual([kind for kind, *_ in frames if kind == RST], [])
        self.assertEqual(self.assert_at_rest(edge)["body_too_large"], 1)


# ---- clients that leave -------------------------------------------------------------------------

class Gone(EdgeCase):
    def leave(self, edge, client, how):
        """The milliseconds until the handler has been told."""
        before = edge.wait_stats(lambda s: s["in_flight"] == 2, "the request in flight")["cancelled"]
        started = time.monotonic()
        how(client)
        edge.wait_stats(lambda s: s["cancelled"] > before, "cancelled")
        return (time.monotonic() - started) * 1000

    def soonest(self, first, how):
        """A loaded machine may be late once, not five times."""
        edge = self.edge()
        times = []
        for _ in range(5):
            with Client(edge) as client:
                client.send(first)
                times.append(self.leave(edge, client, how))
        self.assertLess(min(times), 100)
        self.assertEqual(self.assert_at_rest(edge)["cancelled"], 5)

    def test_http1_close(self):
        self.soonest(h1("/hang"), lambda client: client.socket.close())

    def test_http1_half_close(self):
        self.soonest(h1("/hang"), lambda client: client.socket.shutdown(socket.SHUT_WR))

    def test_http1_close_behind_a_pipelined_request(self):
        self.soonest(h1("/hang") + h1("/echo", b"never"), lambda client: client.socket.close())

    def test_http1_reset(self):
        def linger_zero(client):
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.socket.close()
        self.soonest(h1("/hang"), linger_zero)

    def test_http2_close(self):
        self.soonest(PREFACE + settings() + h2_request(1, "/hang"), lambda client: client.socket.close())

    def test_http2_half_close(self):
        self.soonest(PREFACE + settings() + h2_request(1, "/hang"),
                     lambda client: client.socket.shutdown(socket.SHUT_WR))

    def test_http2_stream_reset(self):
        self.soonest(PREFACE + settings() + h2_request(1, "/hang"), lambda client: client.send(reset(1)))

    def test_http1_leaving_while_the_answer_is_being_written(self):
        edge = self.edge()
        for _ in range(20):
            with Client(edge, receive_buffer=4096) as client:
                client.send(h1("/now/4000000") + h1("/now/4000000"))
                client.read()
        stats = self.assert_at_rest(edge)
        self.assertEqual(stats["begun"], stats["answered"])


# ---- hostile clients ----------------------------------------------------------------------------

class Hostile(EdgeCase):
    def refused(self, data, cause, begun=0):
        """A connection that is closed without an answer, and counted."""
        edge = self.edge()
        with Client(edge) as client:
            try:
                client.send(data)
            except (BrokenPipeError, ConnectionResetError):
                pass
            kinds = [kind for kind, *_ in h2_frames(client.read_to_end())]
        self.assertNotIn(DATA, kinds)
        stats = self.assert_at_rest(edge)
        self.assertEqual((stats[cause], stats["begun"]), (1, begun), stats)

    def test_the_first_flight_is_judged_as_a_whole(self):
        self.refused(PREFACE + settings() + h2_request(1, "/now/9") + frame(CONTINUATION, 4, 1),
                     "forbidden_frame")

    def test_rapid_resets_start_no_work(self):
        self.refused(PREFACE + settings() + b"".join(
            h2_request(s, "/hang") + reset(s) for s in range(1, 2001, 2)), "flood")

    def test_fewer_resets_cost_nothing_either(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings() + b"".join(
                h2_request(s, "/hang") + reset(s) for s in range(1, 101, 2)) + h2_request(101, "/echo", b"honest"))
            self.assertEqual(client.read_until(h2_answers(101), "the honest answer"), [b"honest"])
        self.assertEqual(self.assert_at_rest(edge)["begun"], 1)

    def test_streams_that_h2o_is_made_to_reset_start_no_work(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings())
            overflow = b"".join(h2_request(s, "/hang") + window(s, 0x7fffffff) for s in range(1, 601, 2))
            try:
                client.send(overflow)
            except (BrokenPipeError, ConnectionResetError):
                pass
            client.read_to_end()
        stats = self.assert_at_rest(edge)
        self.assertEqual((stats["aborted_requests"], stats["begun"]), (1, 0))

    def test_resets_after_the_start_are_counted(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings())
            try:
                for first in range(1, 20001, 100):
                    streams = range(first, first + 100, 2)
                    client.send(b"".join(h2_request(s, "/hang") for s in streams))
                    edge.wait_stats(lambda s: s["in_flight"] > 1 or s["open"] == 1, "begun or refused")
                    client.send(b"".join(map(reset, streams)))
            except (BrokenPipeError, ConnectionResetError):
                pass
            client.read_to_end()
        stats = self.assert_at_rest(edge)
        self.assertEqual(stats["aborted_requests"] + stats["flood"], 1)
        self.assertLessEqual(stats["begun"], 100)

    def test_a_new_connection_has_its_requests_begun_by_and_by_though_none_ends(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings() + b"".join(h2_request(s, "/hang") for s in range(1, 201, 2)))
            stats = edge.wait_stats(lambda s: s["begun"] == 100, "all of them")
            self.assertEqual((stats["in_flight"], stats["sent"], stats["cancelled"]), (101, 0, 0))  # with this question
        self.assert_at_rest(edge)

    def test_who_waits_for_others_has_his_turn_in_order(self):
        edge = self.edge()
        streams = range(1, 201, 2)
        with Client(edge) as client:
            client.send(PREFACE + settings() + b"".join(h2_request(s, "/now/5") for s in streams))
            client.read_until(h2_answers(*streams), "100 answers")
            answered = [stream for kind, _, stream, _ in h2_frames(client.input) if kind == HEADERS]
        self.assertEqual(answered, list(streams))

    def give_up_forty(self, edge, client):
        """Which leaves room for 60."""
        client.send(PREFACE + settings() + b"".join(h2_request(s, "/hang") for s in range(1, 81, 2)))
        edge.wait_stats(lambda s: s["begun"] == 40, "begun")
        client.send(b"".join(map(reset, range(1, 81, 2))))
        edge.wait_stats(lambda s: s["cancelled"] == 40, "given up")

    def test_who_has_given_up_many_is_served_all_the_same(self):
        edge = self.edge()
        streams = range(101, 301, 2)
        with Client(edge) as client:
            self.give_up_forty(edge, client)
            client.send(b"".join(h2_request(s, "/b/5") for s in streams))
            self.assertEqual(client.read_until(h2_answers(*streams), "100 answers"), [b"xxxxx"] * 100)
        self.assertEqual(self.assert_at_rest(edge)["sent"], 100)

    def test_but_may_have_fewer_at_once_and_the_others_wait(self):
        edge = self.edge()
        with Client(edge) as client:
            self.give_up_forty(edge, client)
            client.send(b"".join(h2_request(s, "/hang") for s in range(101, 301, 2)))
            edge.wait_stats(lambda s: s["begun"] >= 100, "60 at once")
            client.send(frame(PING, 0, 0, b"12345678"))  # its answer comes when the others have had their turn
            client.read_until(lambda data: [f for f in h2_frames(data) if f[0] == PING], "the PING's answer")
            self.assertLess(edge.stats()["begun"], 140)  # a few more each second
            self.assertNotIn(HEADERS, [kind for kind, *_ in h2_frames(client.input)])
        self.assert_at_rest(edge)

    def test_once_what_was_given_up_is_forgiven_the_others_have_their_turn(self):
        edge = self.edge()
        with Client(edge) as client:
            self.give_up_forty(edge, client)
            client.send(b"".join(h2_request(s, "/hang") for s in range(101, 301, 2)))
            edge.wait_stats(lambda s: s["begun"] >= 120, "five more each second, while none of the others ends")
        self.assert_at_rest(edge)

    def test_bodies_of_those_who_wait_count_as_unfinished(self):
        """4 MiB of a connection's: six of 800 kB are more."""
        edge = self.edge("-b", 1 << 20)
        with Client(edge) as client:
            self.give_up_forty(edge, client)
            # So many wait that none of the bodies begins, even if they take seconds: five a second may begin.
            client.send(window(0, 1 << 24) + b"".join(h2_request(s, "/hang") for s in range(101, 289, 2)))
            edge.wait_stats(lambda s: s["begun"] >= 100, "as many as may be")
            for stream in range(301, 313, 2):
                client.send(frame(HEADERS, END_HEADERS, stream, block("/hang")) +
                            b"".join(frame(DATA, 0, stream, bytes(16000)) for _ in range(50)) +
                            frame(DATA, END_STREAM, stream))
            # The fifth is refused if part of the sixth has arrived by the time the fifth ends. One that is whole by then is reset;
            # one of which a part is still to come is answered.
            refused = client.read_until(lambda data: [f for f in h2_frames(data) if f[0] in (RST, HEADERS)], "one that is refused")
            self.assertIn(refused[0][2], (309, 311))
            if refused[0][0] == RST:
                self.assertEqual(refused[0][3], b"\0\0\0\7")
            self.assertEqual(edge.stats()["unfinished_bytes"], 1)
        self.assert_at_rest(edge)

    def send_four_bodies(self, client, before=b""):
        """900 kB of each, in pieces by turns, on a new connection; their ends are missing."""
        streams = range(3, 11, 2)
        client.send(PREFACE + settings((4, 1 << 24)) + window(0, 1 << 24) + before
                    + b"".join(frame(HEADERS, END_HEADERS, stream, block("/now/5")) for stream in streams)
                    + b"".join(frame(DATA, 0, stream, bytes(15000)) for stream in streams) * 60)
        return streams

    def test_bodies_of_a_new_connection_come_by_and_by_and_are_all_answered(self):
        """3.6 MB of the 4 MiB that it may have: a quarter at once, and all after 300 ms."""
        edge = self.edge("-b", 1 << 20)
        since = time.monotonic()
        with Client(edge) as client:
            streams = self.send_four_bodies(client)
            client.send(frame(PING, 0, 0, b"12345678"))
            client.read_until(lambda data: [f for f in h2_frames(data) if f[0] == PING], "the PING's answer")
            client.send(b"".join(frame(DATA, END_STREAM, stream) for stream in streams))
            self.assertEqual(client.read_until(h2_answers(*streams), "four answers"), [b"xxxxx"] * 4)
        self.assertGreater(time.monotonic() - since, 0.24)
        self.assertEqual(self.assert_at_rest(edge)["sent"], 4)

    def test_they_come_beside_an_answer_that_cannot_leave(self):
        """It is on its way while nothing more of them is read, and still when that is over."""
        edge = self.edge("-b", 1 << 20)
        since = time.monotonic()
        with Client(edge) as client:
            streams = self.send_four_bodies(client, h2_request(1, "/b/4194304"))
            harness.wait_for(lambda: time.monotonic() - since > 0.35, "the end of the pause")
            client.send(b"".join(frame(DATA, END_STREAM, stream) for stream in streams))
            self.assertEqual([len(body) for body in client.read_until(h2_answers(1, *streams), "five answers")],
                             [4194304, 5, 5, 5, 5])
        self.assertEqual(self.assert_at_rest(edge)["sent"], 5)

    def test_who_leaves_while_nothing_more_of_them_is_read_is_gone(self):
        edge = self.edge("-b", 1 << 20)
        for _ in range(8):
            with Client(edge) as client:
                self.send_four_bodies(client)
        self.assertEqual(self.assert_at_rest(edge)["unfinished_bytes"], 0)  # it left, and was not closed for what it has

    def test_floods_of_control_frames_are_refused(self):
        for name, one in (("ping", frame(PING, 0, 0, b"12345678")), ("settings", settings((4, 70000))),
                          ("unknown", frame(0x77, 0, 0))):
            with self.subTest(name):
                self.refused(PREFACE + settings() + one * 2000, "flood")

    def test_upgrade_to_h2c_is_not_followed(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(h1("/now/3", b"", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c",
                           "HTTP2-Settings: AAMAAABkAAQAAP__"))
            self.assertEqual(client.read_until(h1_answers(1), "an answer"), [b"xxx"])
        self.assertTrue(client.input.startswith(b"HTTP/1.1 200 "))
        self.assert_at_rest(edge)

    def test_the_preface_as_second_request_is_refused(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(h1("/now/3") + PREFACE + settings() + frame(PING, 0, 0, b"12345678") * 10)
            answers = client.read_to_end()
        self.assertIn(b"HTTP/1.1 400 ", answers)
        self.assertNotIn(b"12345678", answers)
        self.assert_at_rest(edge)

    def test_window_update_on_streams_that_wait_for_a_blocked_write(self):
        """Kills libh2o 2.2.5 unguarded (an assertion in update_stream_output_window)."""
        edge = self.edge("-t", 1500)
        size = 1024
        with Client(edge, receive_buffer=4096) as client:
            client.send(PREFACE + settings((4, size)) + window(0, 0x7fffffff - 65535))
            for number in range(0, 20000, 50):
                streams = range(2 * number + 1, 2 * number + 101, 2)
                client.send(b"".join(h2_request(s, f"/now/{size}") for s in streams))
                stats = edge.wait_stats(lambda s, n=number: s["begun"] == n + 50 or s["stalled"], "begun or given up")
                if stats["stalled"]:
                    break
                client.send(b"".join(window(s, 10) for s in streams))
        stats = self.assert_at_rest(edge)
        self.assertEqual(stats["stalled"], 1)

    def test_streams_over_the_limit_are_not_refused_for_ever(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings())
            try:
                for first in range(1, 20001, 100):
                    client.send(b"".join(h2_request(s, "/hang") for s in range(first, first + 100, 2)))
            except (BrokenPipeError, ConnectionResetError):
                pass
            client.read_to_end()
        stats = self.assert_at_rest(edge)
        self.assertEqual(stats["flood"], 1)
        self.assertLess(stats["begun"], 100)  # 32 at once, and a few more until it is closed


# ---- the end ------------------------------------------------------------------------------------

class Shutdown(EdgeCase):
    def test_what_is_in_flight_is_answered_and_the_rest_closed(self):
        edge = self.edge()
        with Client(edge) as idle, Client(edge) as opening, Client(edge) as busy, Client(edge) as h2:
            idle.send(h1("/now/1"))
            idle.read_until(h1_answers(1), "an answer")
            opening.send(PREFACE[:5])
            h2.send(PREFACE + settings() + h2_request(1, "/hang"))
            edge.wait_stats(lambda s: s["in_flight"] == 2 and s["open"] == 5, "begun")
            busy.send(h1("/b/7"))
            edge.wait_stats(lambda s: s["begun"] == 3, "begun")
            edge.send(15)
            self.assertEqual(idle.read(), b"")
            self.assertNotIn(HEADERS, [kind for kind, *_ in h2_frames(opening.read_to_end())])
            answer = busy.read_to_end()
            self.assertTrue(answer.endswith(b"x" * 7), answer)
            h2.read_until(lambda data: [f for f in h2_frames(data) if f[0] == GOAWAY], "GOAWAY")
            self.assertTrue(edge.running)
            with self.assertRaises(OSError):
                for _ in range(2):  # the first may be queued by the kernel; nobody takes it
                    with socket.create_connection(("127.0.0.1", edge.port), 0.2) as late:
                        late.sendall(h1("/now/1"))
                        late.recv(1)
            h2.send(reset(1))
            h2.read_to_end()
        edge.stop()

    def test_continuation_during_shutdown(self):
        """libh2o 2.2.5 unguarded spins on it for ever."""
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings() + h2_request(1, "/hang"))
            edge.wait_stats(lambda s: s["in_flight"] == 2, "begun")
            edge.send(15)
            goaways = lambda data: len([f for f in h2_frames(data) if f[0] == GOAWAY]) == 2
            client.read_until(goaways, "the second GOAWAY")
            client.send(frame(HEADERS, 0, 3, block("/x")) + frame(CONTINUATION, END_HEADERS, 3, b"") + reset(1))
            client.read_to_end()
        edge.stop()


# ---- outgoing connections -----------------------------------------------------------------------

class Relay(EdgeCase):
    clear_only = True

    def test_bodies_come_back_whole(self):
        upstream = self.edge()
        edge = self.edge("-u", upstream.port)
        for size in (1, 2048, 1 << 20):
            body = os.urandom(size)
            for ask in (harness.request, harness.request_h2):
                self.assertEqual(ask("POST", edge.url + "/relay", body).body, body)
        self.assertEqual(upstream.stats()["accepted"], 2)  # one kept connection, and the asker
        self.assert_at_rest(edge)

    def test_nobody_listens_there(self):
        edge = self.edge("-u", harness.free_port())
        answer = harness.request("POST", edge.url + "/relay", b"{}")
        self.assertEqual((answer.status, answer.body), (502, b"Connection refused"))
        self.assert_at_rest(edge)

    def test_a_kept_connection_that_ends_is_noticed(self):
        upstream = self.edge()
        edge = self.edge("-u", upstream.port)
        self.assertEqual(harness.request("POST", edge.url + "/relay", b"{}").body, b"{}")
        upstream.stop()
        answer = harness.request("POST", edge.url + "/relay", b"{}")
        self.assertEqual((answer.status, answer.body), (502, b"Connection refused"))


# ---- the attack programs ------------------------------------------------------------------------

@unittest.skipUnless(os.path.exists(ATTACKS), f"NOT RUN: the attack programs are not at {ATTACKS}")
class Attacks(EdgeCase):
    clear_only = True  # test_attacks.py has them for TLS

    def attack(self, name, wanted):
        edge = self.edge("-t", 2000)
        run = subprocess.run([sys.executable, ATTACKS, "127.0.0.1", str(edge.port), "clear:" + name, str(edge.pid),
                              str(edge.port)], capture_output=True, text=True, timeout=100, check=False)
        self.assertRegex(run.stdout, wanted, run.stderr)
        self.assertNotIn("DEAD", run.stdout)
        self.assert_at_rest(edge)

    def test_attacks(self):
        for name, wanted in (
                ("winassert", "closed"), ("rst", "closed after"), ("myr", "closed after"),
                ("rstlate", "closed after"), ("firstcont", "ANSWERED"), ("firstrst", "closed;"),
                ("unknown", "closed;"), ("ping", "closed;"), ("settings", "closed;"), ("emptydata", "closed;"),
                ("bodies", "closed"), ("idlebodies", "closed"), ("drip", "closed"),
                ("dripframe", "closed"), ("slow", "closed;"), ("bytewise", "answered"),
                ("outstop", "STILL OPEN;"), ("latepri", "refused"), ("h1close", "1 request"), ("h1half", "1 request"),
                ("h1pipelined", "1 request"), ("h2close", "1 request"), ("h2half", "1 request")):
            with self.subTest(name):
                self.attack(name, wanted)


if __name__ == "__main__":
    main()
