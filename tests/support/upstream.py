"""Upstream connections by hand: the program upstream_probe, and servers made of functions.

Every server is a function on a connection: what it reads and sends, byte for byte. Nothing is waited
for by the clock except where a timeout itself is under test.
"""

import json
import os
import queue
import socket
import ssl
import subprocess
import threading
import time

import harness

PROBE = os.path.join(os.path.dirname(harness.BIN), "upstream_probe")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LONG_MS = int(harness.PATIENCE_S * 1000)


class Probe(harness.Process):
    """upstream_probe with one command out and one line of JSON back; `done` lines go by call."""

    def __init__(self, connections=16, idle=16, waiting=16, idle_for_ms=60000, head_max=4096,
                 body_max=1 << 20):
        argv = [PROBE, *map(str, (connections, idle, waiting, idle_for_ms, head_max, body_max))]
        self.argv, self.stdout, self.stderr, self.killed = argv, [], [], False
        self._changed = threading.Condition()
        self._replies, self._done, self._ids = queue.Queue(), {}, 0
        self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)
        self._readers = [
            threading.Thread(target=self._sort, daemon=True),
            threading.Thread(target=self._collect, args=(self.child.stderr, self.stderr), daemon=True)]
        for reader in self._readers:
            reader.start()

    def _sort(self):
        for line in self.child.stdout:
            self.stdout.append(line.rstrip("\n"))
            event = json.loads(line)
            if event["event"] != "done":
                self._replies.put(event)
                continue
            with self._changed:
                if event["id"] in self._done:
                    self._done[event["id"]] = {"err": "done twice"}
                else:
                    self._done[event["id"]] = event
                self._changed.notify_all()
        self.child.stdout.close()

    def _write(self, *words):
        self.child.stdin.write(" ".join(map(str, words)) + "\n")
        self.child.stdin.flush()

    def ask(self, *words):
        self._write(*words)
        try:
            return self._replies.get(timeout=harness.PATIENCE_S)
        except queue.Empty:
            raise harness.Failure(f"no reply to {words}\n{self.report()}") from None

    def pool(self, server, name="p", host="127.0.0.1", ca=None):
        """Returns what is wrong with it, or None."""
        words = ["pool", name, "https" if ca else "http", host, server.port]
        return self.ask(*words, *([ca] if ca else []))["problem"]

    def start(self, name="p", body=10, deadline=LONG_MS, connect=LONG_MS, first_byte=LONG_MS,
              idle=LONG_MS, total=LONG_MS, kind="call"):
        self._ids += 1
        self._write(kind, self._ids, name, body, deadline, connect, first_byte, idle, total)
        return str(self._ids)

    def start_pieces(self, name="p", body=10, deadline=LONG_MS, connect=LONG_MS, first_byte=LONG_MS,
                     idle=LONG_MS, total=LONG_MS, enough=0):
        """The same for an answer in pieces; see upstream_probe.c for `enough`."""
        self._ids += 1
        self._write("pieces", self._ids, name, body, deadline, connect, first_byte, idle, total, enough)
        return str(self._ids)

    def pieces(self, *args, **options):
        return self.wait_done(self.start_pieces(*args, **options))

    def got(self, call):
        """Bytes of its pieces so far."""
        return self.ask("got", call)["bytes"]

    def is_done(self, call):
        return call in self._done

    def wait_done(self, call):
        with self._changed:
            if not self._changed.wait_for(lambda: call in self._done, harness.PATIENCE_S):
                raise harness.Failure(f"call {call} is not done\n{self.report()}")
            return self._done[call]

    def call(self, *args, **options):
        return self.wait_done(self.start(*args, **options))

    def wait_state(self, call, state):
        harness.wait_for(lambda: self.ask("state", call)["state"] == state, f"{call} is {state}")

    def count(self, name="p"):
        event = self.ask("count", name)
        return {key: event[key] for key in ("idle", "busy", "connecting", "queued")}

    def wait_count(self, name="p", **want):
        harness.wait_for(lambda: want.items() <= self.count(name).items(),
                         f"{want}, not {self.count(name)}")

    def stop(self, *_):
        if self.killed:
            return
        self.killed = True
        self.child.stdin.close()
        code = self.wait()
        if code != 0 or self.stderr:
            raise harness.Failure(f"ended with {code}\n{self.report()}")


class Peer:
    """The server's end of one connection."""

    def __init__(self, sock):
        self.sock = sock
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.held = b""

    def request(self):
        """The path and body of the next request, whose fields are in `fields` then; None at the end."""
        while b"\r\n\r\n" not in self.held:
            piece = self.sock.recv(65536)
            if not piece:
                return None
            self.held += piece
        head, _, self.held = self.held.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        self.fields = dict(line.lower().split(": ") for line in lines[1:])
        length = int(self.fields["content-length"])
        while len(self.held) < length:
            piece = self.sock.recv(65536)
            if not piece:
                return None
            self.held += piece
        body, self.held = self.held[:length], self.held[length:]
        return lines[0].split()[1][1:], body

    def send(self, data):
        self.sock.sendall(data)

    def wait_end(self):
        """Reads until the other side closes; the time when it did."""
        self.ending()
        return time.monotonic()

    def ending(self):
        """Reads until the other side closes; whether it did so orderly, by a FIN."""
        try:
            while self.sock.recv(65536):
                pass
        except (ConnectionError, ssl.SSLError):
            return False
        return True


class Server:
    """Runs `serve(peer, n)` for the n-th connection (from 0), each on its own thread."""

    def __init__(self, serve, host="127.0.0.1", port=0, context=None, backlog=128):
        self.serve, self.context = serve, context
        self.accepted, self.ended = 0, queue.Queue()
        self.failures = []
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((host, port))
        self.listener.listen(backlog)
        self.port = self.listener.getsockname()[1]
        self._threads = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._run, args=(sock, self.accepted), daemon=True)
            self.accepted += 1
            self._threads.append(thread)
            thread.start()

    def _run(self, sock, n):
        try:
            sock.settimeout(harness.PATIENCE_S)
            if self.context:
                sock = self.context.wrap_socket(sock, server_side=True)
            self.serve(Peer(sock), n)
        except (ConnectionError, ssl.SSLError):
            pass  # what the client did is judged by the test
        except Exception as failure:  # a thread's failure must not be lost
            self.failures.append(failure)
        finally:
            sock.close()

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self._thread.join()
        for thread in self._threads:
            thread.join(harness.PATIENCE_S)
        if self.failures:
            raise self.failures[0]


def answering(answer=OK):
    """Serves every request with the same answer."""
    def serve(peer, _):
        while peer.request() is not None:
            peer.send(answer)
    return serve


def once(answer, close=False):
    """Answers one request and waits for the client to close, or closes itself."""
    def serve(peer, _):
        if peer.request() is not None:
            peer.send(answer)
            if not close:
                peer.wait_end()
    return serve


class Case(harness.Case):
    def probe(self, **limits):
        probe = Probe(**limits)
        self.addCleanup(probe.stop)
        return probe

    def server(self, serve, **options):
        server = Server(serve, **options)
        self.addCleanup(server.close)
        return server

    def both(self, serve, **limits):
        """A server, and a probe with pool `p` on it."""
        server, probe = self.server(serve), self.probe(**limits)
        self.assertIsNone(probe.pool(server))
        return server, probe

    def assert_ok(self, event, body=b"ok", status=200):
        self.assertEqual((event["err"], event.get("status"), event.get("body")),
                         ("ok", status, body.hex()), event)

    def assert_err(self, event, err, detail):
        self.assertEqual(event["err"], err, event)
        self.assertIn(detail, event["detail"])

    def assert_took(self, event, ms):
        """The timeout was kept: never early; late only as far as a busy machine explains."""
        self.assertGreaterEqual(event["sent_to_done_ms"], ms)
        self.assertLess(event["sent_to_done_ms"], ms + harness.PATIENCE_S * 500)
