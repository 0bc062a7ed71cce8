"""Clients of the edge that take their time: requests that are dripped, answers that are not taken.
ctest: timeout=300
"""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

from edge_client import (  # noqa: E402
    DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, RST, Client, EdgeCase, block, curl_upload, frame, h1, h1_answers, h2_answers,
    h2_frames, h2_request, main, settings, window)


class Slow(EdgeCase):
    def closed_in_time(self, data, drop, cause="slow", receive_buffer=None):
        """`drop` dripped for ever."""
        edge = self.edge("-t", 1000)
        with Client(edge, receive_buffer) as client:
            client.send(data)
            started = time.monotonic()
            self.assertTrue(client.send_until_closed(drop))
            self.assertGreater(time.monotonic() - started, 0.9)
        self.assertEqual(self.assert_at_rest(edge)[cause], 1)

    def test_http1_header(self):
        self.closed_in_time(b"POST / HTTP/1.1\r\n", b"X: y\r\n")

    def test_http1_body(self):
        self.closed_in_time(h1("/echo").replace(b"Content-Length: 0", b"Content-Length: 100000"), b"x")

    def test_first_bytes(self):
        self.closed_in_time(PREFACE[:10], b"")

    def test_http2_body(self):
        """Its stream ends alone, with an answer; who goes on with it is asked to stop, and at last closed."""
        edge = self.edge("-t", 1000)
        with Client(edge) as client:
            client.send(PREFACE + settings() + frame(HEADERS, END_HEADERS, 1, block("/echo")))
            started = time.monotonic()
            client.read_until(h2_answers(1), "the stream's answer")
            self.assertGreater(time.monotonic() - started, 0.9)
            answer = [f for f in h2_frames(client.input) if f[2] == 1]
            self.assertEqual([kind for kind, *_ in answer], [HEADERS, DATA])
            self.assertIn(b"408", answer[0][3])
            self.assertIn(b"too slowly", answer[1][3])
            client.send(frame(DATA, 0, 1, b"x") + h2_request(3, "/now/5"))
            client.read_until(h2_answers(3), "another's answer")
            self.reset_later(client, 1, started + 1.4)
            client.send(h2_request(5, "/now/5"))
            client.read_until(h2_answers(5), "another's answer")
            self.assertTrue(client.send_until_closed(frame(DATA, 0, 1, b"x")))
        self.assertEqual(self.assert_at_rest(edge)["slow"], 2)

    def test_curl_shows_the_answer_though_it_has_not_sent_all(self):
        edge = self.edge("-t", 1000)
        code, said, wrong = curl_upload(edge, "/echo", "x")
        self.assertEqual((code, said[-3:], wrong), (0, "408", ""))
        self.assertIn("too slowly", said)
        self.assert_at_rest(edge)

    def reset_later(self, client, stream, after):
        """It is asked to send no more, which is no error."""
        client.read_until(lambda data: [f for f in h2_frames(data) if f[0] == RST], "a reset")
        self.assertGreater(time.monotonic(), after)
        self.assertEqual([(f[2], f[3]) for f in h2_frames(client.input) if f[0] == RST], [(stream, bytes(4))])

    def test_http2_body_that_was_refused(self):
        """A client that waits for its window to open hears that it never will."""
        edge = self.edge("-t", 1000, "-b", 100000)
        with Client(edge) as client:
            started = time.monotonic()
            client.send(PREFACE + settings() + frame(HEADERS, END_HEADERS, 1, block("/echo") + b"\x0f\x0d\x06200000")
                        + frame(DATA, 0, 1, b"x" * 1000))
            client.read_until(h2_answers(1), "the stream's answer")
            self.reset_later(client, 1, started + 0.4)
            client.send(h2_request(3, "/now/5"))
            client.read_until(h2_answers(3), "another's answer")
        self.assert_at_rest(edge)

    def test_http2_body_that_ends_behind_its_answer_is_not_reset(self):
        edge = self.edge("-t", 1000)
        with Client(edge) as client:
            client.send(PREFACE + settings() + frame(HEADERS, END_HEADERS, 1, block("/echo")))
            client.read_until(h2_answers(1), "the stream's answer")
            client.send(frame(DATA, END_STREAM, 1, b"x") + frame(HEADERS, END_HEADERS, 3, block("/echo")))
            client.read_until(h2_answers(3), "another's, which is as slow")
            client.send(h2_request(5, "/now/5"))
            client.read_until(h2_answers(5), "another's answer")
            self.assertEqual([f for f in h2_frames(client.input) if f[0] == RST], [])
        self.assertEqual(self.assert_at_rest(edge)["slow"], 2)

    def test_http2_frame(self):
        self.closed_in_time(PREFACE + settings() + frame(HEADERS, END_HEADERS, 1, block("/echo"))
                            + frame(DATA, END_STREAM, 1, b"x" * 5000)[:9], b"x")

    def test_a_kept_connection_that_rests_is_not_slow(self):
        edge = self.edge("-t", 1000)
        with Client(edge) as kept:
            for request in (h1("/now/1"), h1("/b/1"), h1("/echo", b"x", "Expect: 100-continue")):
                kept.input = b""
                kept.send(request)
                kept.read_until(lambda data: data.endswith(b"\r\n\r\nx"), "an answer")
            for _ in range(2):  # given up after they have waited as long
                with Client(edge) as clock:
                    clock.send(PREFACE[:5])
                    clock.read_to_end()
            kept.input = b""
            kept.send(h1("/now/2"))
            self.assertEqual(kept.read_until(h1_answers(1), "an answer"), [b"xx"])
        self.assertEqual(self.assert_at_rest(edge)["slow"], 2)

    def test_a_window_that_never_opens(self):
        self.closed_in_time(PREFACE + settings((4, 0)) + h2_request(1, "/now/10"), b"", "stalled")

    def test_an_http1_reader_that_does_not_read(self):
        edge = self.edge("-t", 1000)
        with Client(edge, receive_buffer=4096) as client:
            client.send(h1("/now/4000000") * 10)
            edge.wait_stats(lambda s: s["stalled"] == 1, "given up")
        self.assert_at_rest(edge)

    def test_a_slow_but_steady_reader_is_served(self):
        edge = self.edge("-t", 1000)
        size, step = 200000, 4000
        with Client(edge) as client:
            client.send(PREFACE + settings((4, 0)) + h2_request(1, f"/now/{size}"))
            started = time.monotonic()
            for number in range(size // step):
                client.send(window(1, step) + window(0, step))
                client.read_until(lambda data, n=number: len(data) > (n + 1) * step, "as much as was asked for")
                self.pause(client, 0.06)
            client.read_until(h2_answers(1), "an answer")
            self.assertGreater(time.monotonic() - started, 2)
        self.assertEqual(self.assert_at_rest(edge)["stalled"], 0)

    @staticmethod
    def pause(client, seconds):
        """The reader's own pace; whatever comes in the meantime is kept."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            client.socket.settimeout(left)
            try:
                data = client.socket.recv(65536)
            except TimeoutError:
                break
            if data == b"":
                raise ConnectionResetError
            client.input += data
        client.socket.settimeout(harness.PATIENCE_S)

    def given_up(self, edge, client, take):
        """A reader who goes on taking with take() is cut off while he does so."""
        deadline = time.monotonic() + harness.PATIENCE_S
        try:
            while not edge.stats()["stalled"]:
                self.assertLess(time.monotonic(), deadline, "still held")
                take(client)
        except (BrokenPipeError, ConnectionResetError):
            pass
        edge.wait_stats(lambda s: s["stalled"] == 1, "given up")

    def test_a_steady_trickle_over_http1_holds_no_answer(self):
        """Each read makes the kernel take a little more: there is always progress."""
        edge = self.edge("-t", 1000)
        with Client(edge, receive_buffer=4096) as client:
            client.send(h1("/now/4000000") * 4)

            def take(client):
                if client.socket.recv(100) == b"":
                    raise ConnectionResetError
                time.sleep(0.05)  # the reader's own pace
            self.given_up(edge, client, take)
        self.assert_at_rest(edge)

    def test_a_steady_trickle_over_http2_holds_no_answer(self):
        edge = self.edge("-t", 1000)
        with Client(edge) as client:
            client.send(PREFACE + settings((4, 0)) + h2_request(1, "/now/100000"))

            def take(client):
                client.send(window(1, 1))
                self.pause(client, 0.05)
            self.given_up(edge, client, take)
        self.assert_at_rest(edge)

    def others_flow(self, edge, size, trickle):
        """One answer is held, beside many that are taken at once; the seconds until it is given up."""
        stream = 3
        with Client(edge) as client:
            client.send(PREFACE + settings((4, 0)) + h2_request(1, "/now/50000") + window(0, 1 << 30))
            client.read_until(lambda data: [f for f in h2_frames(data) if f[0] == HEADERS], "its beginning")
            started = time.monotonic()

            def take(client):
                nonlocal stream
                client.send(h2_request(stream, f"/now/{size}") + window(stream, size)
                            + (window(1, 1) if trickle else b""))
                try:
                    client.read_until(h2_answers(stream), "the next answer")
                except harness.Failure:  # cut off in the middle
                    raise ConnectionResetError from None
                client.input = b""
                stream += 2
            self.given_up(edge, client, take)
        self.assert_at_rest(edge)
        return time.monotonic() - started

    def test_one_answer_is_not_held_beside_others_that_flow(self):
        edge = self.edge("-t", 300)
        self.others_flow(edge, 60000, trickle=False)

    def test_nor_by_a_trickle_of_its_own(self):
        edge = self.edge("-t", 100)  # an answer may take 60 times as long
        self.assertGreater(self.others_flow(edge, 1000, trickle=True), 5)


if __name__ == "__main__":
    main()
