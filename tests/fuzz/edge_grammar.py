#!/usr/bin/env python3
"""Speaks almost HTTP/2 and almost HTTP/1.1 to a running gateway, best one with sanitizers.

    tests/fuzz/edge_grammar.py [--seconds N] [--cpu-seconds N] [--seed S] [--first I] [--count N]

A connection's bytes, their splits and its manners (reads or not, closes how) come from "SEED:INDEX"
alone; only the timing differs from run to run. Most frames are right, because the guard ends a
connection at the first that is plainly wrong, and what lies behind it would never be seen. Every
second an honest request must be answered, no server process may have died and no read callback been
left to h2o; every minute the gateway is stopped in the midst of it all and must end well, which is
when leaks are reported. Whatever goes wrong is told with the seed and the connections of that time.
SLUICE_BIN and SLUICE_SIM say what is run (tests/support/harness.py).
"""

import argparse
import os
import random
import signal
import socket
import struct
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
sys.path.insert(0, os.path.join(HERE, "../../bench/attacks"))
import harness  # noqa: E402
import servers  # noqa: E402
import wire  # noqa: E402
from wire import (  # noqa: E402
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PREFACE, PRIORITY,
    PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_MAX, WINDOW_UPDATE, frame, integer, literal, string)

THREADS = 24
LOG_KEPT = 2000      # lines of the gateway that stay in memory
RESTART_EVERY_S = 120
BODY_MAX = 30000     # so that bodies become too large now and then: 95,536 bytes, after which the guard refuses them
PING_BODY = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


# ---- HTTP/2 ------------------------------------------------------------------------------------

class Http2:
    """Random frames that know which streams are open."""

    def __init__(self, rng, target):
        self.rng, self.target = rng, target
        self.next, self.open, self.seen, self.entered = 1, [], [], 0

    def any_stream(self):
        """One that was begun; now and then one that was not, which mostly ends the connection."""
        if self.rng.random() < 0.01:
            return self.rng.choice([0, self.next, self.rng.getrandbits(31)])
        return self.rng.choice(self.open * 3 + self.seen[-4:] or [self.next])

    def field(self, name, value):
        """One of the ways to write it."""
        way = self.rng.random()
        if way < 0.6:
            return literal(name, value)
        if way < 0.9:
            self.entered += 1
            return literal(name, value, 0x40)
        return literal(name, value, 0x10)

    def ask(self):
        kind = self.rng.random()
        if kind < 0.5:
            return servers.PATH, PING_BODY
        if kind < 0.8:
            return self.target.quick
        if kind < 0.88:
            return self.target.large
        if kind < 0.94:
            return self.target.hang
        return self.rng.choice(["/", "*", "/healthz", "/v1/sampling?x=1", "/" + "a" * 3000]), b"{"

    def oddity(self):
        """A field representation that a client would not write; most are errors."""
        rng = self.rng
        return rng.choice([
            integer(62 + rng.randrange(max(1, self.entered + 1)), 7, 0x80),
            integer(rng.randrange(1, 80), 7, 0x80),
            integer(rng.choice([0, 100, 4096, 4097]), 5, 0x20),
            b"\x00" + string(b"x") + integer(rng.randrange(1, 9), 7, 0x80) + rng.randbytes(8),
            self.field(b"x-" + b"n" * rng.choice([1, 200, 4000]), b"v" * rng.choice([0, 1, 200, 4000])),
            literal(rng.choice([b"", b"X", b"a b", b":x", b"connection", b"te", b"host", b"cookie", b"content-length",
                                b"expect", b"upgrade", b"transfer-encoding"]),
                    rng.choice([b"", b"1", b"trailers", b"100-continue", b"a\r\nb", b"\0", b"999999999999999999999"])),
            rng.randbytes(rng.randrange(1, 6)),
        ])

    def block(self, path, pseudo=True):
        rng = self.rng
        parts = []
        if pseudo:
            method = rng.choices([b"POST", b"GET", b"DELETE", b"HEAD", b"CONNECT", b"OPTIONS"], [60, 2, 1, 1, 1, 1])[0]
            parts = [self.field(b":method", method), self.field(b":scheme", b"http"),
                     self.field(b":path", path.encode()), self.field(b":authority", b"x")]
        parts += [self.field(b"content-type", b"application/json")]
        if rng.random() < 0.9:
            parts.append(self.field(b"authorization", b"Bearer " + servers.ATTACKER_KEY.encode()))
        if rng.random() < 0.02:
            parts.insert(rng.randrange(len(parts) + 1), self.oddity())
        if rng.random() < 0.005:
            rng.shuffle(parts)
        if rng.random() < 0.01:
            parts.pop(rng.randrange(len(parts)))
        return b"".join(parts)

    def continued(self, stream, block):
        """The rest of a block, mostly in a frame or two; some have no end, or something in between."""
        rng, frames = self.rng, b""
        while rng.random() < 0.3:
            cut = rng.choice([0, 1, rng.randrange(len(block) + 1)])
            frames += frame(CONTINUATION, 0, stream, block[:cut])
            block = block[cut:]
        if rng.random() < 0.02:
            frames += rng.choice([frame(PING, 0, 0, bytes(8)), self.priority(), frame(CONTINUATION, 0, self.any_stream(), b"")])
        if rng.random() < 0.01:
            frames += frame(CONTINUATION, 0, stream, literal(b"x-more", b"v" * 15000)) * rng.choice([1, 2])
        return frames + (frame(CONTINUATION, END_HEADERS, stream, block) if rng.random() < 0.98 else b"")

    def framed_block(self, stream, block, flags):
        """Perhaps with padding and a priority, and perhaps in several frames."""
        rng, rest = self.rng, None
        if flags & END_HEADERS and rng.random() < 0.15:
            cut = rng.randrange(len(block) + 1)
            block, rest, flags = block[:cut], block[cut:], flags & ~END_HEADERS
        if rng.random() < 0.1:
            depends = self.any_stream()
            if depends == stream and rng.random() < 0.95:
                depends = 0
            block = struct.pack(">IB", rng.choice([depends, depends | 0x80000000]), rng.randrange(256)) + block
            flags |= 0x20
        if rng.random() < 0.1:
            pad = rng.choice([0, 1, 255])
            block, flags = bytes([pad]) + block + bytes(pad if rng.random() < 0.98 else 0), flags | 8
        return frame(HEADERS, flags, stream, block) + (b"" if rest is None else self.continued(stream, rest))

    def length(self, body):
        """A content-length, which the guard looks for if its name is that of the static table."""
        rng = self.rng
        value = rng.choice([b"%d" % len(body), b"95537", b"1000000", b"9999999999999", b"0"])
        if rng.random() < 0.2:
            value = rng.choice([b"\x64\x4e\xba\xeb\xff", b"\x64\x02"])
            return rng.choice([b"\x5c", b"\x0f\x0d"]) + integer(len(value), 7, 0x80) + value
        return rng.choice([b"\x5c", b"\x0f\x0d", b"\x1f\x0d"]) + string(value)

    def flood(self):
        """A body that becomes too large."""
        stream = self.any_stream()
        return b"".join(frame(DATA, 0, stream, bytes(self.rng.choice([16384, 9000]))) for _ in range(12))

    def begin(self):
        stream = self.next
        self.next += 2 * self.rng.choice([1, 1, 1, 1, 2, 50])
        self.seen.append(stream)
        path, body = self.ask()
        if self.rng.random() < 0.1:
            return self.framed_block(stream, self.block(path), END_HEADERS | END_STREAM)
        length = self.length(body) if self.rng.random() < 0.1 else b""
        head = self.framed_block(stream, self.block(path) + length, END_HEADERS)
        if self.rng.random() < 0.75:
            return head + frame(DATA, END_STREAM, stream, body)
        self.open.append(stream)
        return head

    def more_data(self):
        rng, stream = self.rng, self.any_stream()
        payload = rng.randbytes(rng.choice([0, 1, 9, 100, 5000, 16384]))
        flags = END_STREAM if rng.random() < 0.3 else 0
        if flags and stream in self.open:
            self.open.remove(stream)
        if rng.random() < 0.1:
            pad = rng.choice([0, 3, 255])
            payload, flags = bytes([pad]) + payload[:16000] + bytes(pad if rng.random() < 0.97 else 0), flags | 8
        return frame(DATA, flags, stream, payload)

    def window(self):
        by = self.rng.choice([1, 10, 1000, 65535, 1 << 20] if self.rng.random() < 0.99 else [0, WINDOW_MAX])
        stream = 0 if self.rng.random() < 0.3 else self.any_stream()
        return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", by))

    def some_settings(self):
        rng = self.rng
        pairs = [(rng.choice([1, 3, 4, 4, 4, 6, 8, 99]), rng.choice([0, 0, 1, 100, self.target.size, 4096, 65535, WINDOW_MAX]))
                 for _ in range(rng.randrange(3))]
        if rng.random() < 0.02:
            pairs.append((rng.randrange(7), rng.choice([0, 2, 16383, 16384, 1 << 24, 1 << 31, 0xffffffff])))
        return wire.settings(*pairs)

    def priority(self):
        stream = self.any_stream() if self.rng.random() < 0.8 else self.next + 2 * self.rng.randrange(8)
        depends = self.any_stream()
        if depends == stream and self.rng.random() < 0.95:
            depends = 0
        depends |= 0x80000000 if self.rng.random() < 0.3 else 0
        return frame(PRIORITY, 0, stream, struct.pack(">IB", depends, self.rng.randrange(256)))

    def reset(self):
        stream = self.any_stream()
        if stream in self.open:
            self.open.remove(stream)
        return frame(RST_STREAM, 0, stream, struct.pack(">I", self.rng.randrange(16)))

    def trailers(self):
        if not self.open:
            return b""
        stream = self.open.pop(self.rng.randrange(len(self.open)))
        return self.framed_block(stream, self.block("/", pseudo=False), END_HEADERS | END_STREAM)

    def wrong(self):
        """What mostly ends the connection."""
        rng = self.rng
        return rng.choice([
            frame(CONTINUATION, rng.choice([0, 4]), self.any_stream(), b""),
            frame(PUSH_PROMISE, 4, self.any_stream(), bytes(4)),
            frame(GOAWAY, 0, 0, bytes(rng.choice([4, 8, 100]))),
            frame(rng.randrange(10, 256), rng.randrange(256), self.any_stream(), rng.randbytes(rng.randrange(64))),
            frame(rng.randrange(10), rng.randrange(256), self.any_stream(), rng.randbytes(rng.randrange(64))),
            frame(SETTINGS, rng.choice([0, 1]), rng.choice([0, 1]), bytes(rng.randrange(8))),
            self.framed_block(self.next, self.block("/"), 0),
            rng.randbytes(rng.randrange(40)),
        ])

    def script(self):
        rng = self.rng
        frames = [PREFACE + (self.some_settings() if rng.random() < 0.95 else b"")]
        makers = [self.begin, self.more_data, self.window, self.some_settings, self.priority, self.reset, self.trailers,
                  lambda: frame(PING, rng.choice([0, 0, 1]), 0, rng.randbytes(8)), self.wrong, self.flood]
        weights = [rng.choice([1, 5, 20]), 4, rng.choice([1, 4, 30]), 1, rng.choice([0, 1, 5]), rng.choice([0, 1, 4]), 1, 1,
                   rng.choice([0, 0, 0.1, 1]), rng.choice([0, 0, 0.3])]
        for _ in range(rng.choice([3, 10, 30, 100])):
            maker = rng.choices(makers, weights)[0] if self.seen else self.begin
            frames.append(maker())
        data = b"".join(frames)
        if rng.random() < 0.02:  # a bit falls over
            at = rng.randrange(len(data))
            data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]
        return data


# ---- HTTP/1.1 ----------------------------------------------------------------------------------

class Http1:
    def __init__(self, rng, target):
        self.rng, self.target = rng, target

    def chunked(self, body):
        rng, out = self.rng, b""
        if rng.random() < 0.03:
            body = bytes(200000)
        while body:
            size = rng.randrange(1, len(body) + 1)
            extension = b";x=y" if rng.random() < 0.1 else b""
            out += b"%x%s\r\n%s\r\n" % (size, extension, body[:size])
            body = body[size:]
        end = rng.choices([b"0\r\n\r\n", b"0\r\nx: y\r\n\r\n", b"00000\r\n\r\n", b"-1\r\n\r\n", b"fffffffffffffffff\r\n",
                           b"0\n\n", b""], [20, 2, 1, 1, 1, 1, 1])[0]
        return out + end

    def request(self):
        rng = self.rng
        path, body = rng.choice([(servers.PATH, PING_BODY), self.target.quick, self.target.quick, self.target.large,
                                 self.target.hang, ("/x", b"")])
        line = rng.choices([b"POST %s HTTP/1.1", b"GET %s HTTP/1.1", b"HEAD %s HTTP/1.1", b"POST %s HTTP/1.0", b"POST %s HTTP/9.9",
                            b"PRI %s HTTP/2.0", b"post  %s  HTTP/1.1", b"%s"], [20, 2, 1, 2, 0.2, 0.2, 0.2, 0.2])[0]
        fields = [b"Host: x", b"Content-Type: application/json", b"Authorization: Bearer " + servers.ATTACKER_KEY.encode()]
        shape = rng.random()
        if shape < 0.6:
            fields.append(b"Content-Length: %d" % len(body))
        elif shape < 0.85:
            fields.append(b"Transfer-Encoding: chunked")
            body = self.chunked(body)
        elif shape < 0.95:
            fields.append(b"Content-Length: " + rng.choice([b"0", b"-1", b"1", b"99999999999999999999", b"5, 5", b"", b"abc"]))
        if rng.random() < 0.2:
            fields.append(rng.choice([
                b"Expect: 100-continue", b"Connection: close", b"Connection: keep-alive", b"Upgrade: h2c",
                b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
                b"Content-Length: 3", b"Transfer-Encoding: gzip, chunked", b"X: " + b"a" * rng.choice([10, 9000, 70000]),
                b"X\0: y", b" folded: x", b"NoColon", b": empty", b"Host: y", b"Sluice-Timeout: 50"]))
        rng.shuffle(fields)
        end = b"\r\n" if rng.random() < 0.95 else b"\n"
        return end.join([line.replace(b"%s", path.encode()), *fields]) + end + end + body

    def script(self):
        rng = self.rng
        data = b"".join(self.request() for _ in range(rng.choice([1, 1, 2, 5, 20])))
        if rng.random() < 0.05:
            data += PREFACE + wire.settings()
        if rng.random() < 0.05:
            at = rng.randrange(len(data))
            data = data[:at] + rng.randbytes(1) + data[at + 1:]
        if rng.random() < 0.1:
            data = data[:rng.randrange(len(data))]
        return data


# ---- a connection ------------------------------------------------------------------------------

def pieces(rng, data):
    """The same bytes in few or many segments."""
    how = rng.random()
    if how < 0.4:
        return [data]
    if how < 0.5 and 0 < len(data) < 600:
        return [data[i:i + 1] for i in range(len(data))]
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.choice([1, 3, 10, 30])))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])]


def play(rng, target):
    """One connection from its first byte to its end. The server may end it at any time."""
    if rng.random() < 0.75:
        speaker, alpn = Http2(rng, target), "h2"
    else:
        speaker, alpn = Http1(rng, target), "http/1.1"
    parts = pieces(rng, speaker.script() if rng.random() < 0.98 else rng.randbytes(rng.randrange(1, 200)))
    reads, last = rng.random() < 0.7, rng.random()
    target.way = rng.choice(target.ways)
    with target.open(parts[0], alpn=alpn, receive_buffer=4096 if rng.random() < 0.3 else None) as connection:
        connection.socket.settimeout(0.5)
        for part in parts[1:]:
            if rng.random() < 0.1:
                time.sleep(rng.choice([0.001, 0.01, 0.03]))
            connection.send(part)
            if reads and connection.read(0) == b"":
                return
        if reads:
            connection.read_for(rng.choice([0.01, 0.05, 0.3]))
        if last < 0.2:
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif last < 0.4:
            connection.socket.shutdown(socket.SHUT_WR)
            connection.read_for(0.02)
        elif last < 0.5 and connection.tls is not None:
            connection.close_notify()


class Trouble(Exception):
    """What the fuzzer is there to find."""


class Fuzzer:
    def __init__(self, seed, first, count):
        self.seed, self.next, self.last = seed, first, None if count is None else first + count
        self.lock, self.stopping = threading.Lock(), threading.Event()
        self.broken = None  # an error of the fuzzer's own
        self.recent = first
        self.sim = harness.Sim("--threads", "1")
        self.directory = tempfile.TemporaryDirectory(prefix="sluice-fuzz-")
        self.cert = self.certificate()
        self.tls = servers.has_tls(*self.cert)
        self.cpu = 0.0
        self.start()

    def certificate(self):
        case = harness.Case()
        paths = case.certificate()
        for number, path in enumerate(paths):
            os.rename(path, os.path.join(self.directory.name, str(number)))
        case.doCleanups()
        return [os.path.join(self.directory.name, str(number)) for number in range(2)]

    # The gateway.
    def start(self):
        settings = servers.settings(self.sim, *(self.cert if self.tls else ()), limits={"body_bytes": BODY_MAX})
        settings["drain"] = "8s"  # on a machine that does a lot besides; what waits 30 s is cut off all the same
        self.gateway = harness.Gateway(settings)
        self.size = servers.answer_size(self.gateway)

    def target(self):
        target = servers.gateway_target(self.gateway, "clear", self.size)
        target.ways = ["clear"]
        if not self.tls:
            return target
        clear, tls = target.port, servers.gateway_target(self.gateway, "tls", self.size).port
        target.ways = ["clear", "clear", "tls", "finished"]
        plain_open = target.open

        def open_by_way(*args, **more):
            target.port = clear if target.way == "clear" else tls
            return plain_open(*args, **more)
        target.open = open_by_way
        return target

    def check(self):
        """Raises Trouble unless all is well."""
        try:
            answer = self.gateway.post(PING_BODY, timeout_s=harness.PATIENCE_S)
            metrics = self.gateway.metrics()
        except (OSError, harness.Failure) as error:
            raise Trouble(f"an honest request was not answered: {error}") from None
        if answer.status != 200:
            raise Trouble(f"an honest request got {answer}")
        if metrics.sum("sluice_restarts_total"):
            raise Trouble("the server process died")
        foreign = sum(value for name, _, value in metrics.samples if "foreign" in name)
        if foreign:
            raise Trouble(f"the guard lost the read callback {foreign} times")
        if "Sanitizer" in "\n".join(self.gateway.stderr):
            raise Trouble("a sanitizer reports")
        if self.broken is not None:
            raise self.broken
        for lines in (self.gateway.stdout, self.gateway.stderr):
            del lines[:-LOG_KEPT]
        self.recent = self.next

    def stop(self):
        self.cpu += cpu_s(self.gateway.pid)
        try:
            self.gateway.stop()
        except harness.Failure as failure:
            raise Trouble(str(failure)) from None
        finally:
            self.gateway.remove()

    # The connections.
    def take(self):
        with self.lock:
            if self.last is not None and self.next >= self.last:
                return None
            self.next += 1
            return self.next - 1

    def work(self):
        target = self.target()
        while not self.stopping.is_set() and (index := self.take()) is not None:
            try:
                play(random.Random(f"{self.seed}:{index}"), target)
            except OSError:  # ssl.SSLError is one too
                pass
            except Exception as error:  # pylint: disable=broad-except
                self.broken = error
                return

    def round(self, deadline, cpu_limit):
        """Fuzzes one gateway until it is time to stop it. False: it was the last round."""
        workers = [threading.Thread(target=self.work) for _ in range(THREADS)]
        ends = min(deadline, time.monotonic() + RESTART_EVERY_S)
        for worker in workers:
            worker.start()
        try:
            while time.monotonic() < ends and any(worker.is_alive() for worker in workers):
                self.stopping.wait(1)
                self.check()
            self.stop()  # with clients in the midst of it
        finally:
            self.stopping.set()
            for worker in workers:
                worker.join()
            self.stopping.clear()
        done = self.last is not None and self.next >= self.last
        return not done and time.monotonic() < deadline and self.cpu + time.process_time() < cpu_limit

    def run(self, seconds, cpu_limit):
        started = time.monotonic()
        try:
            while self.round(started + seconds, cpu_limit):
                self.start()
        except (KeyboardInterrupt, SystemExit):
            self.gateway.kill()
            raise
        except BaseException:
            print(f"TROUBLE: seed {self.seed}, connections {max(0, self.recent - THREADS)} to {self.next}", flush=True)
            print("\n".join(self.gateway.stderr[-100:]), flush=True)
            self.gateway.kill()
            raise
        finally:
            self.sim.stop()
            self.directory.cleanup()
        print(f"seed {self.seed}: {self.next} connections, {time.monotonic() - started:.0f} s, CPU {self.cpu:.0f} s in the "
              f"gateway and {time.process_time():.0f} s here, {'clear text and TLS' if self.tls else 'clear text'}: no trouble")


def cpu_s(pid):
    """Of the supervisor and its children."""
    total = 0.0
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            for process in [str(pid), *file.read().split()]:
                for task in os.listdir(f"/proc/{process}/task"):
                    with open(f"/proc/{process}/task/{task}/schedstat", encoding="ascii") as stat:
                        total += int(stat.read().split()[0]) / 1e9
    except OSError:
        pass
    return total


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--cpu-seconds", type=float, default=float("inf"), help="of the gateway and this program")
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(1 << 32)))
    parser.add_argument("--first", type=int, default=0, help="index of the first connection")
    parser.add_argument("--count", type=int, help="so many connections and no more")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # and take the gateway along
    Fuzzer(options.seed, options.first, options.count).run(options.seconds, options.cpu_seconds)


if __name__ == "__main__":
    main()
