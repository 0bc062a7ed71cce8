"""More clients than the edge has places for, or descriptors.
ctest: timeout=300
"""

import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

from edge_client import (  # noqa: E402
    DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, Client, EdgeCase, block, frame, h1, h1_answers, h2_answers, h2_request, main,
    settings)


class Listener(EdgeCase):
    clear_only = True  # who waits for a place waits for his handshake

    def test_connections_over_the_cap_wait_for_a_place(self):
        edge = self.edge("-c", 3)
        clients = [Client(edge) for _ in range(6)]
        try:
            for client in clients:
                client.send(h1("/now/1"))
            for client in clients[:3]:
                client.read_until(h1_answers(1), "an answer")
            before = edge.cpu_ms()
            clients[3].socket.settimeout(0.3)
            with self.assertRaises(TimeoutError):
                clients[3].socket.recv(1)
            self.assertLess(edge.cpu_ms() - before, 100, "the loop turns for nothing")
            for i in range(3):
                clients[i].socket.close()
                clients[i + 3].socket.settimeout(harness.PATIENCE_S)
                clients[i + 3].read_until(h1_answers(1), "an answer")
        finally:
            for client in clients:
                client.socket.close()
        self.assert_at_rest(edge)

    @unittest.skipUnless(shutil.which("prlimit"), "no prlimit")
    def test_no_descriptors_left_is_waited_out(self):
        edge = self.edge(files_max=24)
        clients = [Client(edge) for _ in range(40)]
        try:
            for client in clients:
                client.send(h1("/now/1"))
            clients[0].read_until(h1_answers(1), "an answer")
            before = edge.cpu_ms()
            clients[39].socket.settimeout(0.5)
            with self.assertRaises(TimeoutError):
                clients[39].socket.recv(1)
            self.assertLess(edge.cpu_ms() - before, 150, "the loop turns for nothing")
            for client in clients[:25]:
                client.socket.close()
            for client in clients[25:]:
                client.socket.settimeout(harness.PATIENCE_S)
                client.read_until(h1_answers(1), "an answer")
        finally:
            for client in clients:
                client.socket.close()
        self.assert_at_rest(edge)


class Crowd(EdgeCase):
    """Places are taken by those who do nothing; others want to be served."""

    PATIENCE_MS = 2500  # idle for a fifth of it: may be evicted

    def client(self, edge, data=b""):
        client = Client(edge)
        self.addCleanup(lambda: client.socket.close())  # before the edge is stopped
        if data:
            client.send(data)
        return client

    def ask(self, client, size=1):
        client.input = b""
        client.send(h1(f"/now/{size}"))
        self.assertEqual(client.read_until(h1_answers(1), "an answer"), [b"x" * size])

    def idle_crowd(self, edge, count):
        for i in range(count):
            http2, wanted = PREFACE + settings() + h2_request(1, "/now/1"), h2_answers(1)
            client = self.client(edge, http2 if i % 2 else h1("/now/1"))
            client.read_until(wanted if i % 2 else h1_answers(1), "an answer")

    def test_who_is_idle_makes_room_for_who_asks(self):
        edge = self.edge("-c", 20, "-t", self.PATIENCE_MS)
        self.idle_crowd(edge, 20)
        for _ in range(30):  # each is idle as soon as it is answered
            self.ask(self.client(edge))
        stats = edge.stats()
        self.assertGreaterEqual(stats["evicted"], 30)
        self.assertLessEqual(stats["open"], 20)
        self.assertEqual(stats["slow"], 0)

    def test_who_has_been_idle_for_longest_goes_first(self):
        edge = self.edge("-c", 3, "-t", self.PATIENCE_MS)
        first, second, busy = (self.client(edge) for _ in range(3))
        for client in (first, second, busy):
            self.ask(client)
        late = self.client(edge)
        self.ask(busy)
        self.ask(late)  # waits until somebody has gone
        self.ask(busy, 2)
        self.ask(second, 3)
        self.assertEqual(first.read(), b"")

    def test_who_waits_for_an_answer_or_uploads_keeps_his_place(self):
        edge = self.edge("-c", 5, "-t", self.PATIENCE_MS)
        body = b"a" * 16000
        waits = self.client(edge, h1("/hang"))
        uploads = self.client(edge, PREFACE + settings() + frame(HEADERS, END_HEADERS, 1, block("/echo"))
                              + frame(DATA, 0, 1, body) * 4)
        asks = self.client(edge, h1("/echo", body * 5)[:-1])
        for _ in range(6):  # 60 KB are worth 4 s beyond the patience
            self.ask(self.client(edge))
        uploads.send(frame(DATA, END_STREAM, 1, b"z"))
        self.assertEqual(uploads.read_until(h2_answers(1), "an answer"), [body * 4 + b"z"])
        asks.send(b"a")
        self.assertEqual(asks.read_until(h1_answers(1), "an answer"), [body * 5])
        stats = edge.stats()
        self.assertGreaterEqual(stats["evicted"], 4)
        self.assertEqual(stats["cancelled"], 0)
        self.assertEqual(stats["in_flight"], 2)
        waits.socket.close()
        edge.wait_stats(lambda s: s["cancelled"] == 1, "the one that waited")


if __name__ == "__main__":
    main()
