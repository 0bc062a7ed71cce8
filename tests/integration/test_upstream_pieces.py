"""gateway/upstream/upstream.h, answers in pieces: through upstream_probe, against providers made of functions."""

import os
import queue
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import upstream  # noqa: E402
from upstream import LONG_MS, OK, answering  # noqa: E402

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def chunk(data):
    return b"%x\r\n%b\r\n" % (len(data), data)


class Pieces(upstream.Case):
    def assert_pieces(self, event, body):
        self.assertEqual((event["err"], event.get("status"), event.get("taken"), event.get("body")),
                         ("ok", 200, body.hex(), ""), event)

    def test_every_form_of_a_body_comes_in_pieces_however_it_was_cut(self):
        body = b"event: a\ndata: " + b"x" * 300 + b"\n\n"
        forms = {
            "chunked": CHUNKED + chunk(body[:7]) + chunk(body[7:200]) + chunk(body[200:]) + b"0\r\nX: y\r\n\r\n",
            "length": HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body,
            "until close": HEAD + b"\r\n" + body,
            "behind 1xx": b"HTTP/1.1 103 Early\r\n\r\n" + HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body,
        }
        for name, answer in forms.items():
            for step in (len(answer), 1, 50):
                with self.subTest(name, step=step):
                    def serve(peer, _, answer=answer, step=step, closes=name == "until close"):
                        while peer.request() is not None:
                            for at in range(0, len(answer), step):
                                peer.send(answer[at:at + step])
                            if closes:
                                return
                    server, probe = self.both(serve)
                    for _ in range(2):
                        self.assert_pieces(probe.pieces(), body)
                    self.assertEqual(server.accepted, 2 if name == "until close" else 1)

    def test_what_is_no_200_is_collected_whole(self):
        answer = b"HTTP/1.1 429 Slow\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\n{}"
        server, probe = self.both(answering(answer))
        for _ in range(2):
            event = probe.pieces()
            self.assert_ok(event, b"{}", 429)
            self.assertEqual(event["retry_after"], "3")
            self.assertNotIn("pieces", event)
        self.assertEqual(server.accepted, 1)

    def test_a_body_has_no_limit_in_pieces_and_has_one_whole(self):
        body = bytes(range(256)) * 8192  # twice what the probe collects

        def serve(peer, _):
            while peer.request() is not None:
                peer.send(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        _, probe = self.both(serve)
        self.assert_pieces(probe.pieces(), body)
        self.assert_err(probe.call(), "provider_answer_invalid", "too large")

    def test_one_turn_brings_no_more_than_the_kernel_was_asked_to_keep(self):
        def serve(peer, _):
            while peer.request() is not None:
                peer.send(CHUNKED + chunk(b"first") + b"0\r\n\r\n")
                peer.request()
                peer.send(CHUNKED + chunk(b"y" * 8000000) + b"0\r\n\r\n")
        _, probe = self.both(serve)
        self.assert_pieces(probe.pieces(), b"first")
        event = probe.pieces()
        self.assertEqual(event["bytes"], 8000000)
        self.assertLess(event["largest"], 300000, "more than the receive buffer came at once")

    def test_the_idle_timeout_begins_anew_with_every_byte_and_the_total_does_not_count(self):
        go = threading.Event()

        def serve(peer, _):
            peer.request()
            peer.send(CHUNKED)
            for _ in range(8):
                peer.send(chunk(b": ping\n\n"))
                go.wait(0.05)  # the provider's pace
            peer.send(b"0\r\n\r\n")
            peer.wait_end()
        _, probe = self.both(serve)
        self.assert_pieces(probe.pieces(total=200, idle=LONG_MS), b": ping\n\n" * 8)

        def stall(peer, _):
            peer.request()
            peer.send(CHUNKED + chunk(b"x"))
            peer.wait_end()
        _, probe = self.both(stall)
        event = probe.pieces(idle=150, total=100)
        self.assert_err(event, "provider_unavailable", "stalled")
        self.assert_took(event, 150)
        self.assert_err(probe.pieces(deadline=150), "deadline", "within the provider's answer")

    def test_an_answer_that_is_cut_off_says_so_after_its_pieces(self):
        def serve(peer, _):
            peer.request()
            peer.send(CHUNKED + chunk(b"abc") + b"5\r\nde")
        _, probe = self.both(serve)
        event = probe.pieces()
        self.assert_err(event, "provider_unavailable", "cut short")
        self.assertEqual(bytes.fromhex(event["taken"]), b"abcde")

    def test_framing_that_goes_wrong_later_is_refused(self):
        def serve(peer, _):
            peer.request()
            peer.send(CHUNKED + chunk(b"abc") + b"zz\r\n")
            peer.wait_end()
        _, probe = self.both(serve)
        self.assert_err(probe.pieces(), "provider_answer_invalid", "chunk size")


class Pausing(upstream.Case):
    def test_while_paused_nothing_is_read_nor_timed_out_and_then_all_of_it_comes(self):
        piece, sent, paused = b"z" * 65536, queue.Queue(), threading.Event()

        def serve(peer, _):
            peer.request()
            peer.send(CHUNKED + chunk(b"first"))
            paused.wait(harness.PATIENCE_S)
            for number in range(160):  # 10 MB: more than both kernels keep
                peer.send(chunk(piece))
                sent.put(number)
            peer.send(b"0\r\n\r\n")
            peer.wait_end()
        _, probe = self.both(serve)
        call = probe.start_pieces(idle=200)
        harness.wait_for(lambda: probe.got(call) == 5, "the first piece")
        probe.ask("pause", call)
        paused.set()
        sizes = []

        def at_rest():
            sizes.append(sent.qsize())
            return len(sizes) > 40 and len(set(sizes[-40:])) == 1  # longer than the idle timeout
        harness.wait_for(at_rest, "the provider is held up")
        self.assertEqual(probe.got(call), 5)
        self.assertLess(sizes[-1], 150)
        probe.ask("resume", call)
        event = probe.wait_done(call)
        self.assertEqual((event["err"], event["bytes"]), ("ok", 5 + 160 * len(piece)))

    def test_a_paused_call_meets_its_deadline_and_can_be_cancelled(self):
        gone = queue.Queue()

        def serve(peer, _):
            peer.request()
            peer.send(CHUNKED + chunk(b"x"))
            gone.put(peer.wait_end())
        _, probe = self.both(serve)
        call = probe.start_pieces(deadline=300)
        harness.wait_for(lambda: probe.got(call) == 1, "a piece")
        probe.ask("pause", call)
        self.assert_err(probe.wait_done(call), "deadline", "deadline passed")
        gone.get(timeout=harness.PATIENCE_S)
        call = probe.start_pieces()
        harness.wait_for(lambda: probe.got(call) == 1, "a piece")
        probe.ask("pause", call)
        probe.ask("cancel", call)
        gone.get(timeout=harness.PATIENCE_S)


class Enough(upstream.Case):
    """The call is over before its answer is."""

    def test_a_rest_that_comes_soon_saves_the_connection(self):
        go = threading.Event()

        def serve(peer, _):
            while peer.request() is not None:
                peer.send(CHUNKED + chunk(b"abc"))
                go.wait(harness.PATIENCE_S)
                peer.send(chunk(b"later") + b"0\r\n\r\n")
        server, probe = self.both(serve)
        event = probe.pieces(enough=3)
        self.assertEqual((event["err"], event["bytes"]), ("ok", 3))
        self.assertEqual(probe.count(), {"idle": 0, "busy": 1, "connecting": 0, "queued": 0})
        go.set()
        probe.wait_count(idle=1, busy=0)
        self.assertEqual(probe.pieces(enough=3)["err"], "ok")
        self.assertEqual(server.accepted, 1)

    def test_a_rest_in_the_same_read_saves_it_at_once(self):
        server, probe = self.both(answering(CHUNKED + chunk(b"abc") + b"0\r\n\r\n"))
        for _ in range(5):
            self.assertEqual(probe.pieces(enough=2)["err"], "ok")
            self.assertEqual(probe.count()["idle"], 1)
        self.assertEqual(server.accepted, 1)

    def test_other_rests_end_it_by_a_reset_and_a_whole_answer_orderly(self):
        rows = {
            "told to": (CHUNKED + chunk(b"abc"), -3),
            "until close": (HEAD + b"\r\nabc", 3),
            "says close": (HEAD + b"Connection: close\r\nContent-Length: 9\r\n\r\nabc", 3),
            "too long": (CHUNKED + chunk(b"abc") + chunk(b"y" * 200000), 3),
            "never": (CHUNKED + chunk(b"abc"), 3),
            "not HTTP": (CHUNKED + chunk(b"abc") + b"zz\r\n", 3),
            "more than the answer": (CHUNKED + chunk(b"abc") + b"0\r\n\r\n" + OK, 3),
        }
        for name, (answer, enough) in rows.items():
            with self.subTest(name):
                orderly = queue.Queue()

                def serve(peer, _, answer=answer, orderly=orderly):
                    peer.request()
                    try:
                        peer.send(answer)
                        orderly.put(peer.ending())
                    except ConnectionError:
                        orderly.put(False)
                _, probe = self.both(serve)
                event = probe.pieces(enough=enough)
                self.assertEqual((event["err"], event["bytes"] >= 3), ("ok", True), event)
                self.assertEqual(orderly.get(timeout=harness.PATIENCE_S), name == "more than the answer")
                probe.wait_count(idle=0, busy=0)

    def test_a_drained_connection_is_given_to_who_waits_and_outlives_its_pool(self):
        go = threading.Event()

        def serve(peer, _):
            while peer.request() is not None:
                peer.send(CHUNKED + chunk(b"abc"))
                go.wait(harness.PATIENCE_S)
                peer.send(b"0\r\n\r\n")
        server, probe = self.both(serve, connections=1)
        self.assertEqual(probe.pieces(enough=3)["err"], "ok")
        waiting = probe.start_pieces(enough=3)
        probe.wait_count(queued=1)
        go.set()
        self.assertEqual(probe.wait_done(waiting)["err"], "ok")
        self.assertEqual(server.accepted, 1)
        probe.wait_count(idle=1)
        go.clear()
        self.assertEqual(probe.pieces(enough=3)["err"], "ok")
        probe.ask("sweep")  # the pool goes when its connection is through
        go.set()


if __name__ == "__main__":
    harness.main()
