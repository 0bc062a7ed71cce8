"""Pools of gateway/upstream/upstream.h: bounds, queue, cancelling, addresses, snapshots; through upstream_probe."""

import os
import queue
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import upstream  # noqa: E402
from upstream import OK, answering, once  # noqa: E402


class Bounds(upstream.Case):
    def held(self, **limits):
        """Answers each request when its path is put into `go`; what arrived is in `asked`."""
        asked, changed, go = [], threading.Condition(), set()

        def serve(peer, _):
            while (request := peer.request()) is not None:
                with changed:
                    asked.append(request[0])
                    changed.notify_all()
                    changed.wait_for(lambda: request[0] in go or "all" in go, harness.PATIENCE_S)
                peer.send(OK)

        def let(path):
            with changed:
                go.add(path)
                changed.notify_all()

        def wait_asked(count):
            with changed:
                self.assertTrue(changed.wait_for(lambda: len(asked) >= count, harness.PATIENCE_S))
        server, probe = self.both(serve, **limits)
        self.addCleanup(let, "all")
        return server, probe, asked, let, wait_asked

    def test_calls_over_the_cap_wait_in_line_and_one_too_many_is_refused(self):
        server, probe, asked, let, wait_asked = self.held(connections=1, waiting=3)
        calls = [probe.start() for _ in range(4)]
        wait_asked(1)
        self.assertEqual(probe.count(), {"idle": 0, "busy": 1, "connecting": 0, "queued": 3})
        refused = probe.call()
        self.assert_err(refused, "overloaded", "too many calls wait")
        self.assertFalse(refused["bytes_sent"])
        let("all")
        for call in calls:
            self.assert_ok(probe.wait_done(call))
        self.assertEqual(asked, calls)
        self.assertEqual(server.accepted, 1)
        self.assertEqual(probe.wait_done(calls[0])["queued_ms"], 0)
        self.assertGreater(probe.wait_done(calls[3])["queued_ms"], 0)

    def test_the_queue_goes_on_when_the_connection_before_it_breaks(self):
        def serve(peer, n):
            if peer.request() is None or n == 0:
                return
            peer.send(OK)
            peer.wait_end()
        server, probe = self.both(serve, connections=1)
        calls = [probe.start(), probe.start()]
        self.assert_err(probe.wait_done(calls[0]), "provider_unavailable", "before any answer byte")
        self.assert_ok(probe.wait_done(calls[1]))
        self.assertEqual(server.accepted, 2)

    def test_a_call_in_the_queue_keeps_its_deadline_and_leaves_the_others_theirs(self):
        _, probe, _, let, wait_asked = self.held(connections=1)
        first = probe.start()
        wait_asked(1)
        second, third = probe.start(deadline=100), probe.start()
        event = probe.wait_done(second)
        self.assert_err(event, "deadline", "waited for a connection")
        self.assertFalse(event["bytes_sent"])
        let("all")
        self.assert_ok(probe.wait_done(first))
        self.assert_ok(probe.wait_done(third))

    def test_many_calls_over_few_connections_are_all_answered(self):
        def serve(peer, n):
            count = 0
            while peer.request() is not None:
                count += 1
                if (n + count) % 7 == 0:
                    peer.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
                    peer.wait_end()
                    return
                peer.send(OK)
        _, probe = self.both(serve, connections=8, waiting=1000, idle=4)
        calls = [probe.start() for _ in range(500)]
        for call in calls:
            self.assert_ok(probe.wait_done(call))
        probe.wait_count(busy=0, connecting=0, queued=0)
        self.assertLessEqual(probe.count()["idle"], 4)


class Cancelling(upstream.Case):
    def check(self, first, state, ca=None):
        """Cancels in `state`; three tries for a machine that is busy with other things."""
        closed = queue.Queue()

        def serve(peer, _):
            if peer.request() is not None:
                if first:  # nothing is sent to one that may have cancelled already
                    peer.send(first)
                closed.put(peer.wait_end())

        def silent(peer, _):
            peer.sock.recv(65536)  # ClientHello, and not a word back
            closed.put(peer.wait_end())
        server = self.server(silent if ca else serve)
        probe = self.probe()
        self.assertIsNone(probe.pool(server, ca=ca))
        late = []
        for _ in range(3):
            call = probe.start()
            probe.wait_state(call, state)
            asked = time.monotonic()
            probe.ask("cancel", call)
            late.append(closed.get(timeout=harness.PATIENCE_S) - asked)
            self.assertFalse(probe.is_done(call))
            self.assertEqual(probe.count(), {"idle": 0, "busy": 0, "connecting": 0, "queued": 0})
            if late[-1] < 0.1:
                return
        self.fail(f"the provider saw it after {late} s")

    def test_while_connecting(self):
        self.check(b"", "connect", ca=self.certificate()[0])

    def test_while_the_answer_is_awaited(self):
        self.check(b"", "sent")

    def test_within_the_answer(self):
        self.check(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "body")

    def is_orderly(self, answer, end):
        """How the connection ends for a provider that answers so and whose call ends so."""
        asked, orderly = threading.Event(), queue.Queue()

        def serve(peer, _):
            try:
                peer.request()
                asked.set()
                if answer:
                    peer.send(answer)
                orderly.put(peer.ending())
            except ConnectionError:
                orderly.put(False)
        _, probe = self.both(serve)
        call = probe.start()
        self.assertTrue(asked.wait(harness.PATIENCE_S))
        end(probe, call)
        return orderly.get(timeout=harness.PATIENCE_S)

    def test_by_a_reset_which_leaves_no_port_behind(self):
        def cancel(state):
            def end(probe, call):
                probe.wait_state(call, state)
                probe.ask("cancel", call)
            return end
        self.assertFalse(self.is_orderly(b"", cancel("sent")))
        self.assertFalse(self.is_orderly(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", cancel("body")))
        whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
        self.assertTrue(self.is_orderly(whole, lambda probe, call: self.assert_ok(probe.wait_done(call))))

    def test_in_the_queue_nothing_else_is_touched(self):
        go = threading.Event()

        def serve(peer, _):
            while peer.request() is not None:
                go.wait(harness.PATIENCE_S)
                peer.send(OK)
        server, probe = self.both(serve, connections=1)
        calls = [probe.start() for _ in range(3)]
        probe.wait_state(calls[1], "queued")
        probe.ask("cancel", calls[1])
        go.set()
        self.assert_ok(probe.wait_done(calls[0]))
        self.assert_ok(probe.wait_done(calls[2]))
        self.assertFalse(probe.is_done(calls[1]))
        self.assertEqual(server.accepted, 1)

    def test_the_next_in_line_gets_the_place(self):
        def serve(peer, n):
            peer.request()
            if n == 0:
                peer.wait_end()
            else:
                peer.send(OK)
                peer.wait_end()
        _, probe = self.both(serve, connections=1)
        first, second = probe.start(), probe.start()
        probe.wait_state(first, "sent")
        probe.ask("cancel", first)
        self.assert_ok(probe.wait_done(second))

    def test_of_a_call_that_is_over_does_no_harm(self):
        _, probe = self.both(answering())
        call = probe.start()
        self.assert_ok(probe.wait_done(call))
        probe.ask("cancel", call)
        self.assert_ok(probe.call())


class Addresses(upstream.Case):
    def named(self, probe, server, *addresses, name="p", **options):
        self.assertIsNone(probe.pool(server, name=name, host="provider.test", **options))
        if addresses:
            probe.ask("resolve", name, *addresses)

    def silent(self, port, host="127.0.0.3"):
        """An address whose host answers nothing: its backlog is full."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(0)
        self.addCleanup(listener.close)

        def full():
            filler = socket.socket()
            filler.settimeout(0.3)
            self.addCleanup(filler.close)
            try:
                filler.connect((host, port))
            except TimeoutError:
                return True
            return False
        harness.wait_for(full, "the backlog is full")

    def test_a_dead_address_costs_nothing_but_its_turn(self):
        server, probe = self.server(once(OK)), self.probe(idle=0)
        self.named(probe, server, "127.0.0.2", "127.0.0.1")
        for _ in range(4):
            self.assert_ok(probe.call())
        self.assertEqual(server.accepted, 4)

    def test_all_addresses_are_used_in_turn(self):
        first = self.server(once(OK))
        second = self.server(once(OK), host="127.0.0.2", port=first.port)
        probe = self.probe(idle=0)
        self.named(probe, first, "127.0.0.1", "127.0.0.2")
        for _ in range(6):
            self.assert_ok(probe.call())
        self.assertEqual((first.accepted, second.accepted), (3, 3))

    def test_a_silent_address_costs_its_share_once_and_is_tried_last_then(self):
        server, probe = self.server(once(OK)), self.probe(idle=0)
        self.silent(server.port)
        self.named(probe, server, "127.0.0.3", "127.0.0.1")
        started = time.monotonic()
        self.assert_ok(probe.call(connect=1000))
        self.assertGreaterEqual(time.monotonic() - started, 0.5)
        # were it dialled again, this would take half a minute
        for _ in range(3):
            self.assert_ok(probe.call(connect=60000))

    def test_a_host_that_is_silent_altogether_costs_the_connect_timeout(self):
        server, probe = self.server(answering()), self.probe()
        self.silent(server.port)
        self.named(probe, server, "127.0.0.3")
        event = probe.call(connect=200)
        self.assert_err(event, "provider_unavailable", "connect timeout")
        self.assertFalse(event["bytes_sent"])
        event = probe.call(deadline=200)
        self.assert_err(event, "deadline", "while connecting")

    def test_when_all_refuse_the_reason_is_told(self):
        server, probe = self.server(answering()), self.probe()
        self.named(probe, server, "127.0.0.2", "127.0.0.3")
        event = probe.call()
        self.assert_err(event, "provider_unavailable", "Connection refused")
        self.assertFalse(event["bytes_sent"])
        probe.ask("resolve", "p", "127.0.0.1")
        self.assert_ok(probe.call())

    def test_calls_wait_for_the_name_and_fail_while_it_was_never_resolved(self):
        server, probe = self.server(answering()), self.probe()
        self.named(probe, server)
        call = probe.start()
        probe.wait_state(call, "queued")
        probe.ask("resolve", "p")
        self.assert_err(probe.wait_done(call), "provider_not_reached", "could not be resolved")
        self.assert_err(probe.call(), "provider_not_reached", "could not be resolved")
        probe.ask("resolve", "p", "127.0.0.1")
        self.assert_ok(probe.call())
        probe.ask("resolve", "p")  # a failure later on leaves the old ones in use
        self.assert_ok(probe.call())

    def test_a_name_that_comes_late_is_waited_for_as_long_as_for_a_connection(self):
        server, probe = self.server(answering()), self.probe()
        self.named(probe, server)
        call = probe.start(connect=100)
        self.assert_err(probe.wait_done(call), "provider_not_reached", "no address")
        call = probe.start()
        probe.wait_state(call, "queued")
        probe.ask("resolve", "p", "127.0.0.1")
        self.assert_ok(probe.wait_done(call))


class Snapshots(upstream.Case):
    def test_a_pool_that_is_not_asked_for_closes_when_its_last_call_has_ended(self):
        go, closed = threading.Event(), queue.Queue()

        def serve(peer, n):
            peer.request()
            if n == 0:
                go.wait(harness.PATIENCE_S)
            peer.send(OK)
            peer.wait_end()
            closed.put(n)
        other = self.server(answering())
        server, probe = self.both(serve)
        self.assertIsNone(probe.pool(other, name="q"))
        self.assert_ok(probe.call("q"))
        busy = probe.start()
        harness.wait_for(lambda: server.accepted == 1, "the first call has its connection")
        self.assert_ok(probe.call())
        probe.wait_count(idle=1, busy=1)
        probe.ask("sweep", "q")
        self.assertEqual(closed.get(timeout=harness.PATIENCE_S), 1)  # the idle one, at once
        self.assertFalse(probe.is_done(busy))
        go.set()
        self.assert_ok(probe.wait_done(busy))
        self.assertEqual(closed.get(timeout=harness.PATIENCE_S), 0)
        self.assert_ok(probe.call("q"))
        self.assertEqual(other.accepted, 1)

    def test_a_pool_that_is_asked_for_again_keeps_its_connections(self):
        server, probe = self.both(answering())
        self.assert_ok(probe.call())
        probe.ask("sweep", "p")
        self.assert_ok(probe.call())
        self.assertEqual(server.accepted, 1)


if __name__ == "__main__":
    harness.main()
