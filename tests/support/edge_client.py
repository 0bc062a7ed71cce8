"""The edge by itself (edge_echo.c), and clients that speak to it byte by byte.

    import edge_client
    from edge_client import Client, EdgeCase, h1, h1_answers

Edge is the server, Client a bare connection; the functions make and read messages of HTTP/1.1 and frames
of HTTP/2. main() runs every EdgeCase twice, the second time with clients that speak TLS, but for cases
that say `clear_only`.
"""

import contextlib
import os
import re
import socket
import ssl
import struct
import subprocess
import sys
import time

import harness

EDGE = os.environ.get(
    "SLUICE_EDGE_ECHO", os.path.join(os.path.dirname(harness.BIN), "edge_echo"))
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS = 1, 4


# ---- the server under test ----------------------------------------------------------------------

class Edge(harness.Process):
    """edge_echo with its options; what it counts is at /stats. With a certificate (paths of it and its key)
    clients speak TLS, but for `url`."""

    def __init__(self, *options, files_max=None, certificate=None):
        argv = [EDGE, *map(str, options)]
        if certificate is not None:
            argv += ["-C", certificate[0], "-K", certificate[1]]
        if files_max is not None:
            argv = ["prlimit", f"--nofile={files_max}", *argv]
        super().__init__(argv)
        self.port = int(self.wait_line(lambda l: l.startswith("listening "), "listens").split()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.tls = None
        if certificate is not None:
            self.tls = ssl.create_default_context(cafile=certificate[0])
            self.port = int(self.wait_line(lambda l: l.startswith("tls "), "listens").split()[1])

    def stats(self):
        text = harness.request("GET", self.url + "/stats").body.decode()
        return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", text)}

    def wait_stats(self, condition, what):
        last = {}

        def holds():
            last.update(self.stats())
            return condition(last)
        try:
            harness.wait_for(holds, what)
            return last
        except harness.Failure as failure:
            raise harness.Failure(f"{failure}; stats are {last}\n{self.report()}") from None

    def resident_kb(self):
        return harness.memory_kb(self.pid, "VmRSS")

    def cpu_ms(self):
        with open(f"/proc/{self.pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0]) / 1e6


# ---- clients ------------------------------------------------------------------------------------

class Client:
    """A socket; `read` returns b"" at the end of the stream. Under TLS it shakes hands when it first sends,
    for HTTP/2 if told so or by what it sends, else for HTTP/1.1."""

    def __init__(self, edge, receive_buffer=None, http2=False):
        self.tls = edge.tls
        self.http2 = http2
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(harness.PATIENCE_S)
        self.socket.connect(("127.0.0.1", edge.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        if self.tls is not None and not isinstance(self.socket, ssl.SSLSocket):
            self.tls.set_alpn_protocols(["h2" if self.http2 or data.startswith(PREFACE[:2]) else "http/1.1"])
            self.socket = self.tls.wrap_socket(self.socket, server_hostname="127.0.0.1")
        try:
            self.socket.sendall(data)
        except ssl.SSLEOFError as error:
            raise BrokenPipeError(*error.args) from None

    def read(self):
        try:
            return self.socket.recv(65536)
        except (ConnectionResetError, ssl.SSLEOFError):
            return b""

    def read_until(self, condition, what):
        """Reads until `condition(self.input)` holds, and returns what it returned."""
        while not condition(self.input):
            data = self.read()
            if data == b"":
                raise harness.Failure(f"the connection ended before {what}: {self.input[-200:]!r}")
            self.input += data
        return condition(self.input)

    def read_to_end(self):
        while (data := self.read()) != b"":
            self.input += data
        return self.input

    def wait_read(self):
        """Until the other side has read all that was sent, or has closed: the kernel keeps none of it."""
        port = self.socket.getsockname()[1]

        def is_read():
            with open("/proc/net/tcp", encoding="ascii") as file:
                rows = [line.split() for line in file.readlines()[1:]]
            unsent = [row[4].split(":")[0] for row in rows if int(row[1].split(":")[1], 16) == port]
            unread = [row[4].split(":")[1] for row in rows if int(row[2].split(":")[1], 16) == port]
            return all(int(count, 16) == 0 for count in unsent + unread)
        harness.wait_for(is_read, "all that was sent being read")

    def send_until_closed(self, data):
        """Over and over; True once the other side has closed."""
        deadline = time.monotonic() + harness.PATIENCE_S
        try:
            while time.monotonic() < deadline:
                self.send(data)
                self.socket.settimeout(0.02)
                try:
                    if self.socket.recv(65536) == b"":
                        return True
                except TimeoutError:
                    pass
        except (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
            return True
        return False


def h1(path, body=b"", *fields):
    head = [f"POST {path} HTTP/1.1", "Host: edge", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def h1_answers(count):
    """A condition: so many answers with content-length are there, as their bodies."""
    def condition(data):
        bodies = []
        while len(bodies) < count:
            head, gap, rest = data.partition(b"\r\n\r\n")
            length = re.search(rb"ontent-[Ll]ength: (\d+)", head)
            if not gap or length is None or len(rest) < int(length[1]):
                return None
            bodies.append(rest[:int(length[1])])
            data = rest[int(length[1]):]
        return bodies
    return condition


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def block(path):
    return (literal(b":method", b"POST") + literal(b":scheme", b"http") + literal(b":path", path.encode())
            + literal(b":authority", b"edge"))


def h2_request(stream, path, body=b"{}"):
    return frame(HEADERS, END_HEADERS, stream, block(path)) + frame(DATA, END_STREAM, stream, body)


def reset(stream):
    return frame(RST, 0, stream, struct.pack(">I", 8))


def window(stream, by):
    return frame(WINDOW, 0, stream, struct.pack(">I", by))


def settings(*pairs):
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *pair) for pair in pairs))


def h2_frames(data):
    frames = []
    while len(data) >= 9:
        length = int.from_bytes(data[:3], "big")
        if len(data) < 9 + length:
            break
        stream = int.from_bytes(data[5:9], "big") & 0x7fffffff
        frames.append((data[3], data[4], stream, data[9:9 + length]))
        data = data[9 + length:]
    return frames


def h2_answers(*streams):
    """A condition: these streams have ended; their bodies."""
    def condition(data):
        bodies, ended = {}, set()
        for kind, flags, stream, payload in h2_frames(data):
            if kind == DATA:
                bodies[stream] = bodies.get(stream, b"") + payload
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                ended.add(stream)
        return [bodies.get(stream, b"") for stream in streams] if ended.issuperset(streams) else None
    return condition


def curl_upload(edge, path, beginning):
    """curl over HTTP/2, with a body that does not end; its exit code, the answer's body with the status behind it, and what
    curl says went wrong."""
    clear = edge.tls is None
    sender = subprocess.Popen(
        ["curl", "-sS", "--no-progress-meter", "-w", "%{http_code}", "-T", ".",
         *(["--http2-prior-knowledge"] if clear else ["--http2", "-k"]),
         f"{'http' if clear else 'https'}://127.0.0.1:{edge.port}{path}"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        with contextlib.suppress(BrokenPipeError):
            sender.stdin.write(beginning)
            sender.stdin.flush()
        harness.wait_for(lambda: sender.poll() is not None, "curl's end while its input is open")
        return sender.returncode, *sender.communicate()
    finally:
        sender.kill()
        sender.communicate()


class EdgeCase(harness.Case):
    clear_only = False
    tls = False

    def edge(self, *options, **more):
        if self.tls:
            more["certificate"] = self.certificate()
        process = Edge(*options, **more)
        self.addCleanup(process.stop)
        return process

    def assert_at_rest(self, edge):
        """Nothing is left of what the clients did; the one exchange is the asker's."""
        stats = edge.wait_stats(lambda s: (s["open"], s["jobs"], s["in_flight"]) == (1, 1, 1), "rest")
        self.assertEqual(stats["foreign_reads"], 0)
        return stats


def main():
    if not os.path.exists(EDGE):
        print(f"{EDGE} is not there: build it first, or name another by SLUICE_EDGE_ECHO")
        sys.exit(1)
    module = sys.modules["__main__"]
    for name, case in list(vars(module).items()):
        if isinstance(case, type) and issubclass(case, EdgeCase) and case is not EdgeCase and not case.clear_only:
            setattr(module, name + "Tls", type(name + "Tls", (case,), {"tls": True, "__module__": "__main__"}))
    harness.main()
