"""gateway/upstream/upstream.h against providers that are slow, broken or hostile, through upstream_probe."""

import os
import queue
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import upstream  # noqa: E402
from upstream import LONG_MS, OK, answering, once  # noqa: E402


class Answers(upstream.Case):
    def test_an_answer_is_handed_over_with_its_headers_and_the_connection_is_used_again(self):
        head = (b"HTTP/1.1 429 Slow\r\nDate: Mon, 05 Jan 2026 00:00:00 GMT\r\nRetry-After: 3\r\n"
                b"retry-after-ms: 2500\r\nx-should-retry: true\r\nrequest-id: req_7\r\n"
                b"Content-Length: 2\r\n\r\n{}")
        server, probe = self.both(answering(head))
        for _ in range(5):
            event = probe.call()
            self.assert_ok(event, b"{}", 429)
            self.assertEqual([event[key] for key in ("date", "retry_after", "retry_after_ms",
                                                     "should_retry", "request_id")],
                             ["Mon, 05 Jan 2026 00:00:00 GMT", "3", "2500", "true", "req_7"])
            self.assertLess(abs(event["wall_s"] - time.time()), 60)
        self.assertEqual(server.accepted, 1)
        self.assertEqual(probe.count(), {"idle": 1, "busy": 0, "connecting": 0, "queued": 0})

    def test_the_form_of_the_body_does_not_matter_nor_how_it_arrives(self):
        chunked = (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                   b"5;ext=\"a b\"\r\nhello\r\n001\r\n \r\n5 \r\nworld\r\n0;last\r\nX-Sum: 1\r\n\r\n")
        interim = (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n"
                   b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world")

        def whole(peer, data):
            peer.send(data)

        def dribbled(peer, data):
            for i in range(len(data)):
                peer.send(data[i:i + 1])

        for answer in (chunked, interim):
            for send in (whole, dribbled):
                def serve(peer, _, send=send, answer=answer):
                    while peer.request() is not None:
                        send(peer, answer)
                with self.subTest(send=send.__name__, answer=answer[:30]):
                    server, probe = self.both(serve)
                    for _ in range(3):
                        self.assert_ok(probe.call(), b"hello world")
                    self.assertEqual(server.accepted, 1)

    def test_a_body_until_close_ends_with_the_connection(self):
        server, probe = self.both(once(b"HTTP/1.1 200 OK\r\n\r\nhello", close=True))
        self.assert_ok(probe.call(), b"hello")
        self.assert_ok(probe.call(), b"hello")
        self.assertEqual(server.accepted, 2)

    def test_a_body_of_a_megabyte_arrives_whole(self):
        body = os.urandom(1 << 20)
        pieces = b"".join(b"%x\r\n%b\r\n" % (len(body[i:i + 9999]), body[i:i + 9999])
                          for i in range(0, len(body), 9999))
        _, probe = self.both(answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                       + pieces + b"0\r\n\r\n"))
        self.assert_ok(probe.call(), body)

    def test_what_is_not_proper_http_is_refused_and_the_connection_closed(self):
        ok = b"HTTP/1.1 200 OK\r\n"
        rows = {
            "te": (ok + b"Transfer-Encoding: gzip\r\n\r\n", "not chunked"),
            "a coding": (ok + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", "content-encoding"),
            "cl": (ok + b"Content-Length: abc\r\n\r\n", "not a number"),
            "hdrs": (ok + b"".join(b"x%d: y\r\n" % i for i in range(120))
                     + b"Content-Length: 2\r\n\r\nok", "too many header lines"),
            "a flood of 1xx": (b"HTTP/1.1 100 Continue\r\n\r\n" * 10000,
                              "too many header lines"),
            "an endless header": (ok + b"X: " + b"y" * 100000, "too large"),
            "a body over the limit": (ok + b"Content-Length: 1048577\r\n\r\n", "body is too large"),
            "a chunk over the limit": (ok + b"Transfer-Encoding: chunked\r\n\r\n100001\r\n",
                                       "body is too large"),
            "until close over the limit": (ok + b"\r\n" + b"x" * 1048577, "body is too large"),
            "another protocol": (b"SSH-2.0-x\r\n", "not HTTP"),
            "TLS": (b"\x15\x03\x01\x00\x02\x02\x46", "not HTTP"),
        }
        for name, (answer, problem) in rows.items():
            with self.subTest(name):
                closed = queue.Queue()

                def serve(peer, _, answer=answer, closed=closed):
                    peer.request()
                    try:
                        peer.send(answer)
                    except ConnectionError:
                        pass  # it had read enough
                    closed.put(peer.wait_end())
                server, probe = self.both(serve)
                self.assert_err(probe.call(), "provider_answer_invalid", problem)
                closed.get(timeout=harness.PATIENCE_S)
                self.assertEqual(server.accepted, 1)


class Keeping(upstream.Case):
    def test_an_error_stands_without_a_body_over_the_limit(self):
        head = b"HTTP/1.1 429 X\r\nRetry-After: 7\r\n"
        rows = {
            "a length": (head + b"Content-Length: 1048577\r\n\r\nabc", b""),
            "a chunk": (head + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n100001\r\n", b"ab"),
        }
        for name, (answer, body) in rows.items():
            with self.subTest(name):
                closed = queue.Queue()

                def serve(peer, _, answer=answer, closed=closed):
                    peer.request()
                    peer.send(answer)
                    closed.put(peer.wait_end())
                _, probe = self.both(serve)
                self.assert_ok(probe.call(), body, 429)
                closed.get(timeout=harness.PATIENCE_S)

    def test_bytes_behind_an_answer_close_the_connection(self):
        rows = (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdefgh",
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + OK,
                b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n" + OK)
        for answer in rows:
            server, probe = self.both(once(answer))
            for _ in range(2):
                event = probe.call()
                self.assertEqual(event["err"], "ok")
                self.assertEqual(event["body"], "" if b"204" in answer else b"abc".hex())
            self.assertEqual(server.accepted, 2)
            self.assertEqual(probe.count()["idle"], 0)

    def test_an_answer_that_says_close_is_believed(self):
        for answer in (b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                       b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"):
            server, probe = self.both(once(answer))
            for _ in range(2):
                self.assertEqual(probe.call()["err"], "ok")
            self.assertEqual(server.accepted, 2)

    def test_bytes_on_an_idle_connection_close_it(self):
        go, closed = threading.Event(), queue.Queue()

        def serve(peer, n):
            peer.request()
            peer.send(OK)
            if n == 0:
                go.wait(harness.PATIENCE_S)
                peer.send(OK)
            closed.put(peer.wait_end())
        server, probe = self.both(serve)
        self.assert_ok(probe.call())
        probe.wait_count(idle=1)
        go.set()
        probe.wait_count(idle=0)
        closed.get(timeout=harness.PATIENCE_S)
        self.assert_ok(probe.call())
        self.assertEqual(server.accepted, 2)

    def test_an_idle_connection_that_the_provider_closes_is_forgotten_at_once(self):
        go = threading.Event()

        def serve(peer, _):
            peer.request()
            peer.send(OK)
            go.wait(harness.PATIENCE_S)
        _, probe = self.both(serve)
        self.assert_ok(probe.call())
        probe.wait_count(idle=1)
        go.set()
        probe.wait_count(idle=0)

    def test_a_kept_connection_that_was_closed_is_retried_once_on_a_new_one(self):
        def serve(peer, n):
            peer.request()
            peer.send(OK)
            if n == 0:
                peer.request()  # and close without a word
            else:
                peer.wait_end()
        server, probe = self.both(serve)
        self.assert_ok(probe.call())
        event = probe.call()
        self.assert_ok(event)
        self.assertTrue(event["bytes_sent"])
        self.assertEqual(server.accepted, 2)

    def test_the_retry_takes_no_other_kept_connection_and_happens_once_only(self):
        first_two = threading.Barrier(2)

        def serve(peer, n):
            if n < 2:
                peer.request()
                first_two.wait(harness.PATIENCE_S)
                peer.send(OK)
                if peer.request() is None:
                    return
            else:
                peer.request()
        server, probe = self.both(serve)
        calls = [probe.start(), probe.start()]
        for call in calls:
            self.assert_ok(probe.wait_done(call))
        probe.wait_count(idle=2)
        self.assert_err(probe.call(), "provider_unavailable", "before any answer byte")
        self.assertEqual(server.accepted, 3)

    def test_nothing_is_retried_once_an_answer_byte_was_seen_or_on_a_new_connection(self):
        def cut(peer, n):
            peer.request()
            peer.send(OK)
            peer.request()
            peer.send(b"HTTP/1.1 2")
        server, probe = self.both(cut)
        self.assert_ok(probe.call())
        self.assert_err(probe.call(), "provider_unavailable", "cut short")
        self.assertEqual(server.accepted, 1)

        server, probe = self.both(lambda peer, _: peer.request())
        self.assert_err(probe.call(), "provider_unavailable", "before any answer byte")
        self.assertEqual(server.accepted, 1)

    def test_an_answer_cut_short_is_never_taken_for_a_whole_one(self):
        for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
                       b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
                       b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP/1.1 100 Continue\r\n\r\n"):
            _, probe = self.both(once(answer, close=True))
            self.assert_err(probe.call(), "provider_unavailable", "cut short")

    def test_idle_connections_are_bounded_and_the_last_used_goes_first(self):
        together = threading.Barrier(3)
        asked = queue.Queue()

        def serve(peer, n):
            first = True
            while peer.request() is not None:
                asked.put(n)
                if first:
                    together.wait(harness.PATIENCE_S)
                first = False
                peer.send(OK)
        server, probe = self.both(serve, idle=2)
        for call in [probe.start() for _ in range(3)]:
            self.assert_ok(probe.wait_done(call))
        probe.wait_count(idle=2, busy=0)
        for _ in range(3):
            asked.get(timeout=harness.PATIENCE_S)
        for _ in range(5):
            self.assert_ok(probe.call())
        self.assertEqual(server.accepted, 3)
        self.assertEqual(len({asked.get(timeout=harness.PATIENCE_S) for _ in range(5)}), 1)

    def test_an_idle_connection_is_closed_after_its_time(self):
        closed = queue.Queue()

        def serve(peer, _):
            peer.request()
            peer.send(OK)
            sent = time.monotonic()
            closed.put(peer.wait_end() - sent)
        _, probe = self.both(serve, idle_for_ms=150)
        self.assert_ok(probe.call())
        self.assertGreater(closed.get(timeout=harness.PATIENCE_S), 0.1)
        self.assertEqual(probe.count()["idle"], 0)

    def test_an_answer_that_comes_before_the_request_is_read_counts_and_closes(self):
        closed, answered = queue.Queue(), threading.Event()
        answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno"

        def serve(peer, _):
            while b"\r\n\r\n" not in peer.held:
                peer.held += peer.sock.recv(1024)
            peer.send(answer)
            answered.wait(harness.PATIENCE_S)  # who reads on at once may have it all before the answer is looked at
            closed.put(peer.wait_end())
        _, probe = self.both(serve)
        self.assert_ok(probe.call(body=64 << 20), b"no", 413)
        answered.set()
        closed.get(timeout=harness.PATIENCE_S)
        self.assertEqual(probe.count(), {"idle": 0, "busy": 0, "connecting": 0, "queued": 0})


class Timeouts(upstream.Case):
    def hanging(self, first=b"", **limits):
        """A provider that sends `first` and no more; a queue tells when the client has closed."""
        closed = queue.Queue()

        def serve(peer, _):
            peer.request()
            peer.send(first)
            closed.put(peer.wait_end())
        server, probe = self.both(serve, **limits)
        return server, probe, closed

    def test_each_timeout_ends_the_attempt_and_says_which_it_was(self):
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"
        rows = (
            (b"", {"first_byte": 200}, "provider_unavailable", "first_byte"),
            (b"HTTP/1.1 100 Continue\r\n\r\n", {"first_byte": 200}, "provider_unavailable",
             "first_byte"),
            (b"HTTP/1.1 200", {"idle": 200}, "provider_unavailable", "idle"),
            (head, {"idle": 200}, "provider_unavailable", "idle"),
            (head, {"total": 200}, "provider_unavailable", "total"),
            (b"", {"total": 200}, "provider_unavailable", "total"),
            (b"", {"deadline": 200}, "deadline", "before the provider answered"),
            (head, {"deadline": 200}, "deadline", "within the provider's answer"),
        )
        for first, timeout, err, detail in rows:
            with self.subTest(first=first, timeout=timeout):
                server, probe, closed = self.hanging(first)
                event = probe.call(**timeout)
                self.assert_err(event, err, detail)
                if "deadline" not in timeout and "total" not in timeout:
                    self.assert_took(event, 200)
                closed.get(timeout=harness.PATIENCE_S)
                self.assertEqual(server.accepted, 1)
                self.assertEqual(probe.count()["idle"], 0)

    def test_a_dribbled_answer_keeps_its_idle_timeout_but_not_its_total(self):
        closed = queue.Queue()

        def serve(peer, _):
            peer.request()
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            peer.sock.settimeout(0.05)
            while True:
                try:
                    peer.send(b"x")
                    if not peer.sock.recv(1):
                        break
                except TimeoutError:
                    pass
                except ConnectionError:
                    break
            closed.put(True)
        _, probe = self.both(serve)
        event = probe.call(idle=LONG_MS // 2, total=600)
        self.assert_err(event, "provider_unavailable", "total")
        closed.get(timeout=harness.PATIENCE_S)

    def test_a_deadline_that_has_passed_sends_nothing(self):
        server, probe = self.both(answering())
        event = probe.call(deadline=0)
        self.assert_err(event, "deadline", "when the call began")
        self.assertFalse(event["bytes_sent"])
        self.assertEqual(probe.count(), {"idle": 0, "busy": 0, "connecting": 0, "queued": 0})
        self.assertEqual(server.accepted, 0)

    def test_a_long_first_wait_is_no_stall(self):
        go = threading.Event()

        def serve(peer, _):
            while peer.request() is not None:
                go.wait(harness.PATIENCE_S)
                peer.send(OK)
        _, probe = self.both(serve)
        call = probe.start(idle=1)  # counts from the first byte on
        probe.wait_state(call, "sent")
        go.set()
        self.assert_ok(probe.wait_done(call))


if __name__ == "__main__":
    harness.main()
