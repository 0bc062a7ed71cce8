"""A real redis-server for one test, a client of a few lines, and a proxy that delays it.

    server = redis_server.Redis(self)            # a free port and a UNIX socket; ends with the test
    server.ask("SET", "key", "value")
    proxy = redis_server.Proxy(self, server.port)
    proxy.delay_s = 0.5
"""

import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import harness


class Error(Exception):
    """What Redis answered with a minus."""


class Redis:
    def __init__(self, case, *options, port=None, password=None, host="127.0.0.1"):
        self.host = host
        self.directory = case.directory()
        self.port = port or harness.free_port()
        self.socket = os.path.join(self.directory, "redis.sock")
        self.url = f"redis://{host}:{self.port}"
        self.options = options
        self.password = password
        self.child = None
        case.addCleanup(self.kill)
        self.start()

    def start(self):
        """Empty: nothing is kept on disk."""
        self.child = subprocess.Popen(
            ["redis-server", "--bind", self.host, "--port", str(self.port), "--unixsocket", self.socket,
             "--save", "", "--appendonly", "no", "--dir", self.directory, *self.options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def answers():
            try:
                return self.ask("PING")
            except OSError:
                return False
        harness.wait_for(answers, "redis-server answers")

    def kill(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
        self.child.wait()

    def stop(self):
        self.child.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.child.send_signal(signal.SIGCONT)

    def ask(self, *words):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(harness.PATIENCE_S)
            sock.connect(self.socket)
            stream = sock.makefile("rwb")
            if self.password:
                self._send(stream, "AUTH", self.password)
                self._read(stream)
            self._send(stream, *words)
            return self._read(stream)

    @staticmethod
    def _send(stream, *words):
        stream.write(b"*%d\r\n" % len(words))
        for word in words:
            data = str(word).encode(errors="surrogateescape")
            stream.write(b"$%d\r\n%s\r\n" % (len(data), data))
        stream.flush()

    def _read(self, stream):
        line = stream.readline()
        if not line:
            raise OSError("closed")
        kind, rest = line[:1], line[1:].strip()
        if kind == b"-":
            raise Error(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else stream.read(int(rest) + 2)[:-2].decode(errors="surrogateescape")
        if kind == b"*":
            return [self._read(stream) for _ in range(int(rest))]
        return rest.decode()

    def tenant(self, key="sluice:2:{*}"):
        """What limits.lua keeps of the tenant: of today and of this month nano-USD spent and topped up; places."""
        key = next(iter(self.ask("KEYS", key)), key)
        text = (self.ask("GET", key) or "").encode(errors="surrogateescape")
        state = struct.unpack_from("<8s18I8I", text.ljust(112, b"\0"))
        now = time.gmtime()
        day, month = int(time.time() // 86400), now.tm_year * 12 + now.tm_mon - 1
        found = {"places": sum(struct.unpack_from("<8xII4x", text, at)[1] for at in range(112, len(text), 20))}
        for name, at, period in (("day", 7 + day % 2 * 3, day), ("month", 13 + month % 2 * 3, month)):
            more = 19 + (at - 7) // 3 * 2
            current = state[at] == period
            found[name] = state[at + 1] * 10**9 + state[at + 2] if current else 0
            found[name + "_more"] = state[more] * 10**9 + state[more + 1] if current else 0
        return found

    def calls(self, command):
        """How often that command has been run since CONFIG RESETSTAT."""
        for line in self.ask("INFO", "commandstats").splitlines():
            if line.startswith(f"cmdstat_{command}:"):
                return int(line.split("calls=")[1].split(",")[0])
        return 0


class Proxy:
    """In front of a port; what passes waits `delay_s`."""

    def __init__(self, case, port):
        self.target = port
        self.delay_s = 0.0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        case.addCleanup(self.close)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            for source, sink in ((client, server), (server, client)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._pump, args=(source, sink, source is client), daemon=True).start()

    def _pump(self, source, sink, delayed):
        try:
            while data := source.recv(65536):
                if delayed and self.delay_s:
                    time.sleep(self.delay_s)  # this is the proxy's work, not a wait of the test
                sink.sendall(data)
        except OSError:
            pass
        for sock in (source, sink):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        source.close()  # the other direction closes the other one


def available():
    return shutil.which("redis-server") is not None
