#!/usr/bin/env python3
"""/mcp/{server} between a server and clients that do anything at any time: everybody has an answer or an end of the connection,
no request of the server is answered twice, and the gateway serves the next session. SLUICE_SEED repeats what is drawn.

ctest: timeout=180
"""
import collections
import os
import queue
import random
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_rig
from mcp_server import ask, error, event, note, result, sampling

SEED = int(os.environ.get("SLUICE_SEED") or random.randrange(1 << 32))
CLIENTS, SESSIONS = 12, 25
AGAIN = 7  # an id that is used many times in a session, and that clients answer, too


class Wild(mcp_rig.Case):
    def setUp(self):
        super().setUp()
        print(f"SLUICE_SEED={SEED} ", end="", file=sys.stderr, flush=True)
        self.numbers, self.lock = iter(range(1 << 30)), threading.Lock()

    def chance(self):
        with self.lock:
            return random.Random(f"{SEED} {next(self.numbers)}")

    def fresh(self):
        with self.lock:
            return next(self.numbers) + 1000

    def piece(self, chance):
        """Of a stream."""
        kind = chance.randrange(9)
        return (event(note()), event(sampling(self.fresh())), event(ask(self.fresh(), "ping")), b": c\n\n", b"id: e_1\ndata: \n\n",
                event([note(), sampling(self.fresh())]), event(sampling(AGAIN)),
                event({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": AGAIN}}), event(note("x" * 30000)))[kind]

    def serve(self, call):
        chance, id = self.chance(), call.message["id"]
        kind = chance.randrange(12)
        if kind == 0:
            call.close()
        elif kind == 1:
            call.reset()
        elif kind == 2:
            call.raw(b"HTTP/1.1 200 OK\r\nContent-")
            call.close()
        elif kind == 3:
            call.json(chance.choice((result(id), sampling(self.fresh()), [result(id), sampling(self.fresh())])))
        elif kind == 4:
            call.json(error(None, -32001, "Session not found"), 404)
        else:
            self.stream(call.stream(), chance, id, kind)

    def stream(self, stream, chance, id, kind):
        data = b"".join(self.piece(chance) for _ in range(chance.randrange(8))) + event(result(id))
        cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(6)))
        for begin, end in zip([0, *cuts], [*cuts, len(data)]):
            stream.send(data[begin:end])
        {5: stream.cut, 6: stream.reset}.get(kind, stream.end)()

    def feed(self):
        """What comes on the gateway's own streams."""
        while True:
            try:
                stream = self.wild._got.get(timeout=0.05)
            except queue.Empty:
                if self.over.is_set():
                    return
                continue
            chance = self.chance()
            for _ in range(chance.randrange(8)):
                stream.send(self.piece(chance))
            if chance.random() < 0.3:
                stream.cut()

    def act(self, client, chance):
        kind = chance.randrange(8)
        if kind < 4:
            reply = client.call(chance.randrange(5))
            if kind > 0 and reply.ends() and kind > 1:
                while reply._more():
                    pass
            reply.close()
        elif kind == 4:
            get = client.get()
            get.ends()
            get.close()
        elif kind == 5:
            client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": chance.randrange(5)}}).ends()
        elif kind == 6:
            client.post(result(AGAIN)).ends()
        else:
            client.post([note(), result(AGAIN)]).ends()

    def live(self):
        chance = self.chance()
        for _ in range(SESSIONS):
            client = self.client(self.url)
            client.hello()
            for _ in range(chance.randrange(6)):
                self.act(client, chance)
            if chance.random() < 0.7:
                client.delete().ends()
            client.close()

    def test_nobody_waits_in_vain(self):
        self.wild, self.over = self.server(), threading.Event()
        self.wild.on("tools/call", self.serve).on("array", lambda call: call.accept())
        self.url = self.front(self.wild, model="sim-latency-10ms")
        feeder = threading.Thread(target=self.feed)
        feeder.start()
        lives = [self.background(self.live) for _ in range(CLIENTS)]
        for _, thread in lives:
            thread.join()
        self.over.set()
        feeder.join()
        self.assertTrue(all(answers == [None] for answers, _ in lives), "a client has failed")  # its thread has said how
        answers = collections.Counter()
        for request in list(self.wild.requests):
            message = request.message if request.method == "POST" else None
            if isinstance(message, dict) and "method" not in message and message["id"] != AGAIN:
                answers[request.header("mcp-session-id"), message["id"]] += 1
        self.assertGreater(len(answers), 50)
        self.assertEqual([one for one, count in answers.items() if count > 1], [])
        client = self.client(self.url)
        client.hello()
        client.notify("notifications/x")


if __name__ == "__main__":
    harness.main()
