"""Header blocks in several frames (HEADERS and CONTINUATION), as clients send heads over 16 KiB; and what is done with them.

Each case runs in clear text and under TLS.
ctest: timeout=300
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
from h2_client import FRAME_MAX, literal  # noqa: E402

sys.path.append("/usr/lib/python3/dist-packages")  # where Debian's are, whichever python3 runs this
import hpack  # noqa: E402

from edge_client import (  # noqa: E402
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PREFACE, PRIORITY, RST, Client, EdgeCase, block,
    frame, h2_answers, h2_frames, h2_request, main, reset, settings, window)

PADDED, WITH_PRIORITY = 8, 32
BLOCK_MAX = 32 << 10
LIMIT = 100_000  # of a body; the guard takes 65,536 more


def split(stream, block, *sizes, flags=0, first=(b"", b"")):
    """Frames of these sizes, and one of what is left; `first`: around the first part."""
    frames, kind = b"", HEADERS
    for size in [*sizes, len(block)]:
        part, block = block[:size], block[size:]
        flags |= 0 if block else END_HEADERS
        frames += frame(kind, flags, stream, first[0] + part + first[1])
        if not block:
            return frames
        kind, flags, first = CONTINUATION, 0, (b"", b"")
    return frames


def head(path="/echo", *fields):
    return block(path) + b"".join(literal(*field) for field in fields)


class Split(EdgeCase):
    def answers(self, client, *streams):
        bodies = client.read_until(h2_answers(*streams), f"answers of {streams}")
        self.assertNotIn(GOAWAY, [kind for kind, *_ in h2_frames(client.input)])
        self.assertNotIn(RST, [kind for kind, *_ in h2_frames(client.input)])
        return bodies

    def test_it_is_answered_however_it_is_cut(self):
        edge = self.edge()
        whole = head("/now/5")
        with Client(edge) as client:
            client.send(PREFACE + settings())
            streams = range(1, 2 * len(whole), 2)
            for stream in streams:
                client.send(split(stream, whole, stream // 2 + 1, flags=END_STREAM))
                client.read_until(h2_answers(stream), f"the answer to {stream}")
            client.send(split(999, whole, *[1] * len(whole), flags=END_STREAM) + split(1001, head(), 0, 9, 0, 9)
                        + frame(DATA, END_STREAM, 1001, b"body"))
            self.assertEqual(self.answers(client, *streams, 999, 1001), [b"xxxxx"] * (len(whole) + 1) + [b"body"])
        self.assert_at_rest(edge)

    def test_it_is_answered_however_it_comes(self):
        edge = self.edge()
        sent = split(1, head("/now/5"), 20, 0, 20, flags=END_STREAM)
        with Client(edge) as client:
            client.send(PREFACE + settings())
            for byte in sent:
                client.send(bytes([byte]))
            self.assertEqual(self.answers(client, 1), [b"xxxxx"])
        self.assert_at_rest(edge)

    def test_what_stands_around_the_block_in_its_first_frame(self):
        edge = self.edge()
        depends = b"\0\0\0\0\x10"
        with Client(edge) as client:
            client.send(PREFACE + settings())
            for stream, flags, first in ((1, PADDED, (b"\x05", bytes(5))), (3, PADDED, (b"\0", b"")),
                                         (5, WITH_PRIORITY, (depends, b"")),
                                         (7, PADDED | WITH_PRIORITY, (b"\xff" + depends, bytes(255)))):
                client.send(split(stream, head("/now/3"), 9, 9, flags=flags | END_STREAM, first=first))
            self.assertEqual(self.answers(client, 1, 3, 5, 7), [b"xxx"] * 4)
        self.assert_at_rest(edge)

    def test_the_table_of_fields_is_one(self):
        edge = self.edge()
        encoder = hpack.Encoder()
        fields = [(":method", "POST"), (":scheme", "http"), (":path", "/now/7"), (":authority", "edge"), ("x-long", "v" * 900)]
        with Client(edge) as client:
            client.send(PREFACE + settings())
            for stream in range(1, 9, 2):  # the later ones refer to the first
                client.send(split(stream, encoder.encode(fields), 2, flags=END_STREAM))
            self.assertEqual(self.answers(client, 1, 3, 5, 7), [b"x" * 7] * 4)
        self.assert_at_rest(edge)

    def test_a_head_of_up_to_32_kib(self):
        edge = self.edge()
        for more, end in ((0, None), (1, "flood")):
            start = head("/now/5", ("x-0", "v" * 12000), ("x-1", "v" * 12000))
            whole = start + literal("x-2", "v" * (BLOCK_MAX - len(start) - len(literal("x-2", "v" * 8000)) + 8000 + more))
            self.assertEqual(len(whole), BLOCK_MAX + more)
            with Client(edge) as client:
                client.send(PREFACE + settings() + split(1, whole, FRAME_MAX, 16000, flags=END_STREAM))
                if end is None:
                    self.assertEqual(self.answers(client, 1), [b"xxxxx"])
                    continue
                kinds = [kind for kind, *_ in h2_frames(client.read_to_end())]
                self.assertIn(GOAWAY, kinds)
                self.assertNotIn(DATA, kinds)
        self.assertEqual(self.assert_at_rest(edge)["flood"], 1)

    def test_trailers(self):
        edge = self.edge("-b", LIMIT)
        trailer = literal("x-trailer", "1" * 30)
        with Client(edge) as client:
            client.send(PREFACE + settings() + window(0, 1 << 20) + frame(HEADERS, END_HEADERS, 1, head())
                        + frame(DATA, 0, 1, b"body") + split(1, trailer, 5, flags=END_STREAM))
            self.assertEqual(self.answers(client, 1), [b"body"])
            # Of a body that is too large, which was answered, in pieces: its block must be read for the table's sake.
            client.send(frame(HEADERS, END_HEADERS, 3, head())
                        + frame(DATA, 0, 3, bytes(FRAME_MAX)) * ((LIMIT + 65536) // FRAME_MAX + 1))
            client.read_until(lambda data: [f for f in h2_frames(data) if f[0] == HEADERS and f[2] == 3], "refused")
            entered = b"\x40\7x-enter\5later"
            sent = split(3, entered + trailer, 5, 10, flags=END_STREAM)
            for byte in sent:
                client.send(bytes([byte]))
            client.send(frame(HEADERS, END_HEADERS | END_STREAM, 5, head("/now/2") + b"\xbe"))
            client.read_until(h2_answers(5), "another's answer")
            self.assertNotIn(GOAWAY, [kind for kind, *_ in h2_frames(client.input)])
        self.assert_at_rest(edge)

    def test_a_malformed_head_ends_its_stream_alone(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings() + split(1, head("/now/5", ("te", "gzip")), 30, flags=END_STREAM)
                        + h2_request(3, "/now/2"))
            client.read_until(h2_answers(3), "the other's answer")
            resets = [(f[2], f[3]) for f in h2_frames(client.input) if f[0] == RST]
            self.assertEqual(resets, [(1, b"\0\0\0\1")])
        self.assert_at_rest(edge)

    def refused(self, sent, cause):
        edge = self.edge()
        with Client(edge) as client:
            try:
                client.send(PREFACE + settings() + sent)
            except (BrokenPipeError, ConnectionResetError):
                pass
            kinds = [kind for kind, *_ in h2_frames(client.read_to_end())]
        self.assertNotIn(DATA, kinds)
        stats = self.assert_at_rest(edge)
        self.assertEqual((stats[cause], stats["begun"]), (1, 0), stats)

    def test_nothing_may_come_in_between(self):
        end = frame(CONTINUATION, END_HEADERS, 1, b"")
        begun = frame(HEADERS, END_STREAM, 1, head("/now/9"))
        for between in (frame(PING, 0, 0, bytes(8)), frame(DATA, 0, 1, b"x"), frame(PRIORITY, 0, 1, bytes(5)), reset(1),
                        settings(), window(0, 1), frame(0x77, 0, 0, b""), frame(HEADERS, END_HEADERS, 3, head("/now/9")),
                        frame(CONTINUATION, END_HEADERS, 3, b"")):
            self.refused(begun + between + end, "forbidden_frame")

    def test_one_that_does_not_end(self):
        begun = frame(HEADERS, END_STREAM, 1, head("/now/9"))
        self.refused(begun + frame(CONTINUATION, 0, 1, b"") * 1000, "flood")
        self.refused(begun + frame(CONTINUATION, 0, 1, b"\0") * 2000, "flood")
        self.refused(begun + frame(CONTINUATION, 0, 1, literal("n", "v" * 16000)) * 3, "flood")

    def test_one_that_is_slow(self):
        edge = self.edge("-t", 1000)
        with Client(edge) as client:
            client.send(PREFACE + settings() + frame(HEADERS, END_STREAM, 1, head("/now/9")))
            self.assertTrue(client.send_until_closed(frame(CONTINUATION, 0, 1, b"\0")))
        stats = self.assert_at_rest(edge)
        self.assertEqual((stats["slow"], stats["begun"]), (1, 0))

    def test_one_that_is_open_when_a_shutdown_begins(self):
        """On a CONTINUATION behind the second GOAWAY libh2o 2.2.5 unguarded spins for ever."""
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings() + h2_request(1, "/hang") + frame(HEADERS, END_STREAM, 3, head("/now/9")))
            edge.wait_stats(lambda s: s["in_flight"] == 2, "begun")
            edge.send(15)
            client.read_until(lambda data: len([f for f in h2_frames(data) if f[0] == GOAWAY]) == 2, "the second GOAWAY")
            client.send(frame(CONTINUATION, 0, 3, b"") + frame(CONTINUATION, END_HEADERS, 3, b"") + reset(1))
            client.read_to_end()
        edge.stop()


class Clients(EdgeCase):
    """Those that split heads over 16 KiB by themselves."""
    clear_only = True

    def test_curl(self):
        edge = self.edge()
        fields = [option for n in range(3) for option in ("-H", f"x-{n}: " + "~" * 7000)]  # which Huffman makes longer
        run = subprocess.run(["curl", "-sS", "--http2-prior-knowledge", "--max-time", str(harness.PATIENCE_S), "-d", "body",
                              *fields, edge.url + "/echo"], capture_output=True, check=True)
        self.assertEqual(run.stdout, b"body")
        self.assert_at_rest(edge)

    def test_h2load(self):
        edge = self.edge()
        fields = [option for n in range(4) for option in ("-H", f"x-{n}: " + "~" * 7000)]
        run = subprocess.run(["h2load", "-n", "20", "-c", "2", "-m", "5", *fields, edge.url + "/now/5"],
                             capture_output=True, text=True, check=True)
        self.assertIn("status codes: 20 2xx", run.stdout)
        self.assert_at_rest(edge)


if __name__ == "__main__":
    main()
