"""`sluice wrap` between two scripts: a test is the client and the server at once.

The wrapped command is this file itself: it passes bytes between its standard streams and a UNIX socket on which the test
listens, and ends when the test closes that. Standard library only.
"""

import json
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading

import harness


class Lines:
    """The lines of a stream, read in the background: a test that reads too late blocks nobody."""

    def __init__(self, file):
        self.got = queue.Queue()
        self.thread = threading.Thread(target=self._read, args=(file,), daemon=True)
        self.thread.start()

    def _read(self, file):
        with file:
            try:
                for line in file:
                    self.got.put(line)
            except (OSError, ValueError):
                pass
        self.got.put(b"")

    def next(self, timeout_s):
        """Bytes of the next line, b"" at the end; queue.Empty if there is none in time."""
        return self.got.get(timeout=timeout_s)


class Case(harness.Case):
    def wrap(self, *options, gateway=None, **more):
        given = [] if gateway is None else ["--gateway", getattr(gateway, "url", gateway)]
        one = Wrapped(harness.BIN, [*given, *options], harness.PATIENCE_S, **more)
        self.addCleanup(self.end, one)
        return one

    def end(self, one):
        if one.process.poll() is None:
            one.close()
        else:
            one.release()
        self.assertNotIn("Sanitizer", "".join(one.errors))
        self.assertNotIn(harness.KEY, "".join(one.errors))


class Wrapped:
    """client_* is what the client does, server_* what the server does; messages are objects or bytes."""

    def __init__(self, binary, options, patience_s, env=None, key=None):
        self.patience_s = patience_s
        self.directory = tempfile.mkdtemp(prefix="wrapped-")
        path = os.path.join(self.directory, "server")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        listener.settimeout(patience_s)
        self.process = subprocess.Popen(
            [binary, "wrap", *options, "--", sys.executable, os.path.abspath(__file__), path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "SLUICE_KEY": key or harness.KEY, **(env or {})})
        self.errors = []
        self.stderr = threading.Thread(target=self._collect, daemon=True)
        self.stderr.start()
        self.server, _ = listener.accept()
        listener.close()
        os.unlink(path)
        os.rmdir(self.directory)
        self.client_lines = Lines(self.process.stdout)
        self.server_lines = Lines(self.server.makefile("rb"))

    def _collect(self):
        for line in self.process.stderr:
            self.errors.append(line.decode(errors="replace"))

    @staticmethod
    def _bytes(message):
        return message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"

    def client_send(self, message):
        self.process.stdin.write(self._bytes(message))
        self.process.stdin.flush()

    def server_send(self, message):
        self.server.sendall(self._bytes(message))

    def client_line(self):
        return self.client_lines.next(self.patience_s)

    def server_line(self):
        return self.server_lines.next(self.patience_s)

    def client_read(self):
        return json.loads(self.client_line())

    def server_read(self):
        return json.loads(self.server_line())

    def sync(self):
        """Whatever the client or the server was sent before this has come."""
        self.server_send(b'{"jsonrpc":"2.0","method":"sync"}\n')
        self.client_send(b'{"jsonrpc":"2.0","method":"sync"}\n')
        return self.client_read_until_sync(), self.server_read_until_sync()

    def client_read_until_sync(self):
        return self._until_sync(self.client_line)

    def server_read_until_sync(self):
        return self._until_sync(self.server_line)

    @staticmethod
    def _until_sync(line):
        lines = []
        while (one := line()) != b'{"jsonrpc":"2.0","method":"sync"}\n':
            if one == b"":
                raise AssertionError("the stream has ended")
            lines.append(one)
        return lines

    def wait(self):
        """The exit status, once it is there."""
        return self.process.wait(self.patience_s)

    def close(self):
        """The server ends by itself; returns the exit status."""
        self.server.shutdown(socket.SHUT_RDWR)
        try:
            return self.process.wait(self.patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.release()

    def release(self):
        """Once the process has ended."""
        self.stderr.join()
        self.server.close()
        for lines in (self.client_lines, self.server_lines):
            lines.thread.join()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except OSError:
                pass


def relay(path):
    """The wrapped command."""
    link = socket.socket(socket.AF_UNIX)
    link.connect(path)

    def forward():
        while data := os.read(0, 65536):
            link.sendall(data)
        link.shutdown(socket.SHUT_WR)

    threading.Thread(target=forward, daemon=True).start()
    while data := link.recv(65536):
        while data:
            data = data[os.write(1, data):]
    os._exit(0)


if __name__ == "__main__":
    relay(sys.argv[1])
