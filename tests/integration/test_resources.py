"""What the machine gives, runs out: open files, memory for bodies, a stderr that nobody reads.

ctest: timeout=300
"""

import concurrent.futures
import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import struct
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
import h2_client  # noqa: E402
import harness  # noqa: E402
import upstream  # noqa: E402
from suite import machine  # noqa: E402

from edge_client import DATA, END_HEADERS, HEADERS, PREFACE, block, frame, settings  # noqa: E402


SHORT = (b'{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hi"}],'
         b'"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}')


class ResourceCase(harness.Case):
    def launcher(self, text):
        """A program that is started instead of sluice and becomes it."""
        path = os.path.join(self.directory(), "launcher")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("BIN", harness.BIN))
        os.chmod(path, stat.S_IRWXU)
        return path

    @staticmethod
    def connect(gateway):
        host, port = gateway.settings["listen"][0]["address"].split(":")
        return socket.create_connection((host, int(port)), harness.PATIENCE_S)

    def kills(self, gateway, cause):
        return gateway.metrics().sum("sluice_guard_kills_total", cause=cause)


class Nobody(ResourceCase):
    @unittest.skipIf(os.environ.get("SLUICE_SANITIZE"), "a sanitizer's shadow is not the gateway's memory")
    def test_tables_that_nobody_uses_take_no_memory(self):
        """DESIGN 6 allows 16 MB in all; 6 MB of it would be tables, if their empty places were written to."""
        gateway = self.gateway(harness.config(self.sim()))
        self.assert_result(gateway.sample())
        kb = sum(harness.memory_kb(process, "RssAnon") for process in machine.family(gateway.pid))
        self.assertLess(kb, 4 << 10)


class Faults(ResourceCase):
    @unittest.skipIf(os.environ.get("SLUICE_SANITIZE"), "a sanitizer has an allocator of its own")
    def test_memory_of_a_body_is_not_faulted_in_anew_for_the_next(self):
        """A buffer of 2 MiB would be 512 pages each time: far_too_large took 19 % of a core by that."""
        gateway = self.gateway(harness.config(self.sim()))
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"%b"}}' % (b"x" * 1_200_000)
        fields = {"content-type": "application/json", "authorization": "Bearer " + harness.KEY}

        def ask(times):
            for _ in range(times):
                with h2_client.Client(gateway.url) as client:
                    client.request(1, "/v1/sampling", fields, body)
                    self.assertEqual(client.answer(1), b'{"jsonrpc":"2.0","id":1,"result":{}}')

        def faults():
            with open(f"/proc/{gateway.server_pid()}/stat", encoding="ascii") as file:
                return int(file.read().rsplit(")", 1)[1].split()[7])

        ask(5)
        before = faults()
        ask(20)
        self.assertLess(faults() - before, 20 * 100)


class Answers(ResourceCase):
    def test_answers_that_have_not_ended_have_a_bound_together(self):
        """Two answers of 12 MB that do not end: one of them is given up, and nobody's breaker hears of it."""
        go_on = threading.Event()

        def serve(peer, _):
            _, body = peer.request()
            if b"short" in body:
                peer.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(SHORT), SHORT))
            else:
                peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 15000000\r\n\r\n" + b" " * 12_000_000)
                go_on.wait(harness.PATIENCE_S)

        server = upstream.Server(serve)
        server.url = f"http://127.0.0.1:{server.port}"
        self.addCleanup(server.close)
        self.addCleanup(go_on.set)
        gateway = self.gateway({**harness.config(server), "limits": {"unfinished_bytes": "1MiB"}, "retries": {"attempts": 1}})
        with concurrent.futures.ThreadPoolExecutor() as pool:
            calls = [pool.submit(gateway.sample) for _ in range(2)]
            done, rest = concurrent.futures.wait(calls, harness.PATIENCE_S, concurrent.futures.FIRST_COMPLETED)
            self.assertEqual((len(done), len(rest)), (1, 1))
            self.assert_error(done.pop().result(), 503, 503, "overloaded")
            self.assert_result(gateway.sample("short"))
            self.assertEqual(gateway.metrics().sum("sluice_breaker_state"), 0)
            self.assertFalse(list(rest)[0].done())
            go_on.set()
            self.assert_error(rest.pop().result(), 502, -32011)


class Held(ResourceCase):
    def test_bodies_of_requests_that_wait_have_a_bound_together_which_follows_a_reload(self):
        """Of three with 700 kB each two fit; what is refused, and what was answered, holds nothing."""
        go_on, waiting = threading.Event(), threading.Semaphore(0)

        def serve(peer, _):
            peer.request()
            waiting.release()
            go_on.wait(harness.PATIENCE_S)
            peer.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(SHORT), SHORT))

        server = upstream.Server(serve)
        server.url = f"http://127.0.0.1:{server.port}"
        self.addCleanup(server.close)
        self.addCleanup(go_on.set)
        gateway = self.gateway({**harness.config(server), "limits": {"held_bytes": "1536KiB"}})
        large = "x" * 700_000
        with concurrent.futures.ThreadPoolExecutor() as pool:
            calls = [pool.submit(gateway.sample, large) for _ in range(2)]
            for _ in calls:
                self.assertTrue(waiting.acquire(timeout=harness.PATIENCE_S))
            for _ in range(3):
                self.assert_error(gateway.sample(large), 503, 503, "overloaded")
            gateway.write_config({**gateway.settings, "limits": {"held_bytes": "4MiB"}})
            self.assertEqual(gateway.reload().status, 200)
            calls.append(pool.submit(gateway.sample, large))
            self.assertTrue(waiting.acquire(timeout=harness.PATIENCE_S))
            go_on.set()
            for call in calls:
                self.assert_result(call.result())
        gateway.write_config({**gateway.settings, "limits": {"held_bytes": "1MiB"}})
        self.assertEqual(gateway.reload().status, 200)
        for _ in range(4):
            self.assert_result(gateway.sample(large))


@unittest.skipUnless(shutil.which("prlimit"), "no prlimit")
class OpenFiles(ResourceCase):
    def test_connections_that_do_not_fit_are_not_accepted(self):
        sim = self.sim()
        gateway = self.gateway({**harness.config(sim), "limits": {"connections": 1000}}, binary=self.launcher(
            '#!/bin/sh\nexec prlimit --nofile=400 BIN "$@"\n'))
        line = gateway.wait_stderr("limits.connections: 1000 callers")
        cap = int(line.split("at most ")[1].split()[0])
        self.assertLess(cap, 400)
        self.assertGreater(cap, 100)
        crowd = [self.connect(gateway) for _ in range(500)]
        try:
            harness.wait_for(lambda: gateway.metrics().sum("sluice_connections") == cap, "as many as fit")
            # There are files left for the rest: admin, providers.
            self.assertEqual(gateway.get("/readyz").status, 200)
        finally:
            for peer in crowd:
                peer.close()
        self.assert_result(gateway.sample())

    def test_where_all_fit_nothing_is_said(self):
        gateway = self.gateway({**harness.config(self.sim()), "limits": {"connections": 100}})
        self.assertFalse([line for line in gateway.stderr if "open files" in line])


FULL_STDERR = '''#!%s
import fcntl, os, socket, sys
kind = %r
if kind == "pipe":
    reader, writer = os.pipe()
else:
    pair = socket.socketpair()
    reader, writer = (end.detach() for end in pair)
os.set_inheritable(reader, True)  # somebody has it, and never reads
os.set_blocking(writer, False)
try:
    while True:
        os.write(writer, b"x" * 1000)
except BlockingIOError:
    pass
try:
    while True:
        os.write(writer, b"x")
except BlockingIOError:
    pass
os.set_blocking(writer, True)
os.dup2(writer, 2)
os.execv("BIN", ["BIN", *sys.argv[1:]])
'''


class Stderr(ResourceCase):
    """libh2o prints a line for each frame of an unknown type."""

    def serves(self, kind):
        gateway = self.gateway(harness.config(self.sim()), binary=self.launcher(FULL_STDERR % (sys.executable, kind)))
        for _ in range(20):
            with self.connect(gateway) as peer:
                peer.sendall(PREFACE + settings() + frame(0x77, 0, 0, b"abc") * 15 + frame(6, 0, 0, b"12345678"))
                answer = b""
                while b"12345678" not in answer:  # all of it was read
                    data = peer.recv(65536)
                    self.assertNotEqual(data, b"")
                    answer += data
        self.assert_result(gateway.sample())
        self.assertEqual(gateway.reload().status, 200)  # has something to say, too
        self.assertEqual(gateway.get("/healthz").status, 200)

    def test_a_full_pipe_stalls_nobody(self):
        self.serves("pipe")

    def test_a_full_socket_stalls_nobody(self):
        self.serves("socket")

    def test_lines_reach_who_reads(self):
        gateway = self.gateway(harness.config(self.sim()))
        with self.connect(gateway) as peer:
            peer.sendall(PREFACE + settings() + frame(0x77, 0, 0))
            gateway.wait_stderr("skipping frame")


class Unread(ResourceCase):
    """Answers that their readers do not take hold nothing but themselves."""

    FIELDS = {"content-type": "application/json"}

    def closed_windows(self, gateway):
        """A client to whom no body of an answer can be sent."""
        client = h2_client.Client(gateway.url, windows=False)
        self.addCleanup(client.socket.close)
        client.socket.sendall(h2_client.frame(h2_client.SETTINGS, 0, 0, struct.pack(">HI", 4, 0)))
        return client

    def test_who_has_no_key_takes_no_place(self):
        gateway = self.gateway(harness.config(self.sim()))
        client = self.closed_windows(gateway)
        for number in range(90):
            client.request(2 * number + 1, "/v1/sampling", self.FIELDS, b"{}")
        client.wait(lambda client: client.count(h2_client.HEADERS) == 90, "all refusals")
        # What a turn of the loop did is published after it, perhaps after its answers have arrived.
        harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 90, "all are in flight")
        self.assertLess(gateway.metrics().sum("sluice_requests_slab_high"), 10)
        self.assert_result(gateway.sample())

    def unread_bodies(self, body, **fields):
        """How many kB more the server has when answers to six such requests wait for their reader."""
        gateway = self.gateway(harness.config(self.sim()))
        client = self.closed_windows(gateway)
        before = harness.memory_kb(machine.family(gateway.pid)[-1], "VmRSS")
        for number in range(6):
            client.request(2 * number + 1, "/v1/sampling", {**self.FIELDS, **fields}, body)
            client.wait(lambda client, number=number: client.count(h2_client.HEADERS) == number + 1, "an answer")
        return harness.memory_kb(machine.family(gateway.pid)[-1], "VmRSS") - before

    @unittest.skipIf(os.environ.get("SLUICE_SANITIZE"), "a sanitizer keeps what was freed")
    def test_the_bodies_of_who_has_no_key_are_not_kept(self):
        self.assertLess(self.unread_bodies(b" " * (8 << 20)), 12 << 10)

    @unittest.skipIf(os.environ.get("SLUICE_SANITIZE"), "a sanitizer keeps what was freed")
    def test_nor_are_large_ones_behind_short_answers(self):
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"%b"}}' % (b"x" * (8 << 20))
        self.assertLess(self.unread_bodies(body, authorization="Bearer " + harness.KEY), 12 << 10)


class Turns(ResourceCase):
    def test_bodies_that_are_too_much_for_a_turn_of_the_loop_are_all_served(self):
        gateway = self.gateway(harness.config(self.sim()))
        fields = {"content-type": "application/json", "authorization": "Bearer " + harness.KEY}
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"%b"}' % (b"x" * (900 << 10))
        streams = [2 * number + 1 for number in range(8)]
        with h2_client.Client(gateway.url) as client:
            for stream in streams:
                client.request(stream, "/v1/sampling", fields, body, end=False)
            # All end in the same segment.
            client.socket.sendall(b"".join(h2_client.frame(h2_client.DATA, h2_client.END_STREAM, stream, b"}") for stream in streams))
            for stream in streams:
                self.assertEqual(client.answer(stream), b'{"jsonrpc":"2.0","id":1,"result":{}}')
        self.assert_result(gateway.sample())

    def test_who_leaves_while_they_wait_is_forgotten(self):
        gateway = self.gateway(harness.config(self.sim()))
        body = b'{"x":"%b"' % (b"x" * (900 << 10))
        streams = [2 * number + 1 for number in range(8)]
        with h2_client.Client(gateway.url) as client:
            for stream in streams:
                client.request(stream, "/v1/sampling", {"content-type": "application/json"}, body, end=False)
            client.socket.sendall(b"".join(h2_client.frame(h2_client.DATA, h2_client.END_STREAM, stream, b"}") for stream in streams)
                                  + h2_client.frame(h2_client.GOAWAY, 0, 0, bytes(8)))
        harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 0, "nobody left")
        self.assert_result(gateway.sample())


class UnfinishedBytes(ResourceCase):
    def fill(self, gateway, count, each):
        """Bodies of `each` bytes that do not end, one a connection; how many streams end for the others. No connection does."""
        peers, before = [self.connect(gateway) for _ in range(count)], self.kills(gateway, "unfinished_bytes")
        try:
            for peer in peers:
                body = b"".join(frame(DATA, 0, 1, b"a" * 16384) for _ in range(each // 16384))
                peer.sendall(PREFACE + settings() + frame(HEADERS, END_HEADERS, 1, block("/v1/sampling"))
                             + body + frame(6, 0, 0, b"12345678"))
                answer = b""
                while b"12345678" not in answer:
                    data = peer.recv(65536)
                    self.assertNotEqual(data, b"")
                    answer += data
            return self.kills(gateway, "unfinished_bytes") - before
        finally:
            for peer in peers:
                peer.close()

    def test_the_setting_bounds_all_connections_together_and_follows_a_reload(self):
        # Four bodies and what their requests cost beside them; the last sixteenth is not for those.
        settings_ = {**harness.config(self.sim()), "limits": {"unfinished_bytes": "4608KiB", "body_bytes": "1MiB"}}
        gateway = self.gateway(settings_)
        self.assertEqual(self.fill(gateway, 6, 1 << 20), 2)  # what has ended gives its bytes back
        settings_ = {**gateway.settings, "limits": {"unfinished_bytes": "64MiB", "body_bytes": "1MiB"}}
        gateway.write_config(settings_)
        self.assertEqual(gateway.reload().status, 200)
        harness.wait_for(lambda: self.fill(gateway, 6, 1 << 20) == 0, "room")
        self.assert_result(gateway.sample())

    def test_who_sends_a_few_bytes_is_not_closed_for_what_others_have(self):
        """Three have 3.9 MB, and a fourth would leave 4 kB of the 4 MiB: the last sixteenth is not for those."""
        gateway = self.gateway({**harness.config(self.sim()), "limits": {"unfinished_bytes": "4MiB", "body_bytes": "1MiB"}})
        with contextlib.ExitStack() as peers:
            for pieces in [16384] * 79, [16384] * 79, [16384] * 79, [16384] * 17 + [3000]:
                peer = peers.enter_context(self.connect(gateway))
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    peer.sendall(PREFACE + settings() + frame(HEADERS, END_HEADERS, 1, block("/v1/sampling"))
                                 + b"".join(frame(DATA, 0, 1, b"a" * piece) for piece in pieces) + frame(6, 0, 0, b"12345678"))
                    answer = b""
                    while b"12345678" not in answer and (data := peer.recv(65536)):
                        answer += data
            for _ in range(5):
                self.assert_result(gateway.sample())
        self.assertEqual(self.kills(gateway, "unfinished_bytes"), 1)

    def test_who_is_closed_for_what_it_pipelines_gives_up_what_it_has_in_flight(self):
        """Even where so much comes at once that nothing more is read, and the connection's end not seen."""
        settings_ = {**harness.config(self.sim("--default", "hang")), "limits": {"unfinished_bytes": "2176KiB", "body_bytes": "1MiB"}}
        gateway = self.gateway(settings_)
        ask = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 9}}).encode()
        head = (f"POST /v1/sampling HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {harness.KEY}\r\n"
                "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n")
        with self.connect(gateway) as one, self.connect(gateway) as other, self.connect(gateway) as peer:
            for filler in one, other:
                filler.sendall(PREFACE + settings() + frame(HEADERS, END_HEADERS, 1, block("/v1/sampling"))
                               + frame(DATA, 0, 1, b"a" * 16384) * 62 + frame(6, 0, 0, b"12345678"))
                answer = b""
                while b"12345678" not in answer:
                    answer += filler.recv(65536)
            peer.sendall((head % len(ask)).encode() + ask)
            harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 1, "a request in flight")
            os.kill(gateway.server_pid(), signal.SIGSTOP)
            try:
                peer.sendall((head % 200000).encode() + b"x" * 200000)
            finally:
                os.kill(gateway.server_pid(), signal.SIGCONT)
            harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 0, "nothing in flight")
        self.assertEqual(self.kills(gateway, "unfinished_bytes"), 1)


if __name__ == "__main__":
    harness.main()
