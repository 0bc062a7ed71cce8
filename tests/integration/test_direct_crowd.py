"""Many streams of a provider's own API at once, a tenth of whose readers are slow: what is held for them has a bound, the others
do not notice, and nobody loses a byte. And a provider that dies while they are open. A thousand streams; with SLUICE_LONG in the
environment (.ci/nightly streams) ten thousand.

ctest: serial once timeout=180
"""
import collections
import json
import os
import re
import signal
import struct
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import h2_client
import harness

PATH = "/v1/messages"
LONG = bool(os.environ.get("SLUICE_LONG"))
CONNECTIONS, OF_EACH = (100, 100) if LONG else (10, 100)
COUNT = CONNECTIONS * OF_EACH
EVENTS = 20
ADDRESSES = 4  # of the provider: each has 4,096 connections at most
STEADY = f"sim-pace-{'2s' if LONG else '100ms'}-chunk-1000-size-{1000 * EVENTS}-input-7"
LARGE = "sim-chunk-4000-size-1000000-input-7"  # all at once: it waits in the gateway, or in front of it
WINDOW = 4000                          # of a slow reader, and how much more it takes at a time
MEGABYTE = 1 << 20
HELD_MAX = 256 << 10                   # of a stream whose reader is slow; it is to get 1 MB
OPEN_MAX = 40 << 10                    # of one that is read
PATIENCE_S = 120 if LONG else None     # until all streams are open; None: the usual
FIELDS = {"content-type": "application/json", "authorization": "Bearer " + harness.KEY, "anthropic-version": "2023-06-01"}


def body_of(model):
    return json.dumps({"model": model, "max_tokens": 4096, "stream": True,
                       "messages": [{"role": "user", "content": "hello"}]}).encode()


def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))


class Reader:
    """A connection with its streams: what came of each, and which of them have ended or were reset."""

    def __init__(self, gateway, model, slow=False):
        self.client = h2_client.Client(gateway.url, windows=not slow)
        self.slow, self.bodies = slow, collections.defaultdict(bytearray)
        self.ended, self.reset = set(), set()
        self.streams = range(1, 2 * OF_EACH, 2)
        if slow:
            self.client.socket.sendall(h2_client.frame(h2_client.SETTINGS, 0, 0, struct.pack(">HI", 4, WINDOW)))
        for stream in self.streams:
            self.client.request(stream, PATH, FIELDS, body_of(model))
        self.thread = None

    def give(self, size):
        """Each of its streams may send so much more."""
        pieces = [h2_client.frame(h2_client.WINDOW_UPDATE, 0, stream, struct.pack(">I", count))
                  for stream, count in ((0, size * OF_EACH), *((stream, size) for stream in self.streams if stream not in self.ended))]
        self.client.socket.sendall(b"".join(pieces))

    def sort(self):
        for kind, flags, stream, payload in self.client.frames:
            if kind == h2_client.DATA:
                self.bodies[stream] += payload
            if kind == h2_client.RST_STREAM:
                self.reset.add(stream)
            if kind in (h2_client.DATA, h2_client.HEADERS) and flags & h2_client.END_STREAM:
                self.ended.add(stream)
        self.client.frames.clear()

    def read(self, timeout_s=None):
        came = self.client.read(timeout_s)
        self.sort()
        return came and not self.client.closed

    def read_all(self):
        """Until all of its streams are over, or nothing comes any more."""
        while len(self.ended | self.reset) < OF_EACH and self.read():
            pass

    def start(self, work):
        self.thread = threading.Thread(target=work)
        self.thread.start()


class Streams(harness.Case):
    def gateway_at(self, sim):
        settings = harness.config(sim, models=[harness.model(name, "anthropic") for name in (STEADY, LARGE)],
                                  retries={"attempts": 1})
        settings["providers"]["anthropic"].update(
            endpoints=[{"url": sim.url.replace("127.0.0.1", f"127.0.0.{n}")} for n in range(1, ADDRESSES + 1)],
            # on a busy machine connections by the thousand take their time
            timeouts={"connect": "60s", "first_byte": "120s"}, breaker={"failures": 1000, "ratio": 0})
        settings["plans"]["standard"]["models"] = {"allow": ["*"]}
        settings["plans"]["standard"]["limits"].update(concurrent=2 * COUNT)
        return self.gateway(settings)

    def open(self, gateway, model, connections, slow=False):
        readers = [Reader(gateway, model, slow) for _ in range(connections)]
        for reader in readers:
            self.addCleanup(reader.client.socket.close)
        return readers

    def wait_open(self, sim, condition):
        harness.wait_for(lambda: condition(sim.stats()), f"{COUNT} streams are open at once", PATIENCE_S)

    def expected(self, sim, model):
        """All that a caller gets but the first event, which has the answer's id; asked for without the pauses."""
        answer = harness.request("POST", sim.url + PATH, body_of(re.sub("pace-[^-]+-", "", model)), headers={
            "x-api-key": harness.PROVIDER_KEY, "anthropic-version": "2023-06-01", "content-type": "application/json"})
        return answer.body.partition(b"\n\n")[2]

    def assert_whole(self, readers, expected):
        ids = set()
        for reader in readers:
            self.assertEqual((len(reader.ended), reader.reset), (OF_EACH, set()))
            for body in reader.bodies.values():
                first, _, rest = bytes(body).partition(b"\n\n")
                ids.add(re.search(rb'"id":"(\w+)"', first)[1])
                self.assertEqual(rest == expected, True, f"{len(rest)} bytes, wanted {len(expected)}: {rest[-300:]!r}")
        self.assertEqual(len(ids), len(readers) * OF_EACH, "each has an answer of its own")

    def test_a_slow_tenth_of_the_readers_costs_little_and_loses_nothing(self):
        sim = self.sim("--address", "0.0.0.0")
        gateway = self.gateway_at(sim)
        wanted = {model: self.expected(sim, model) for model in (STEADY, LARGE)}
        before, peaks, over = pss(gateway.server_pid()), [], threading.Event()

        def watch():
            while not over.wait(0.2):
                peaks.append(pss(gateway.server_pid()))
        watcher = threading.Thread(target=watch)
        watcher.start()
        self.addCleanup(over.set)

        def trickle(reader):
            while not over.is_set():
                reader.give(WINDOW)
                while reader.read(0.3):
                    pass
        slow = self.open(gateway, LARGE, CONNECTIONS // 10, slow=True)
        for reader in slow:
            reader.start(lambda r=reader: trickle(r))
        fast = self.open(gateway, STEADY, CONNECTIONS - len(slow))
        for reader in fast:
            reader.start(reader.read_all)
        self.wait_open(sim, lambda seen: seen["in_flight"] >= OF_EACH * len(fast))
        for reader in fast:
            reader.thread.join()
        over.set()
        for thread in (watcher, *(reader.thread for reader in slow)):
            thread.join()
        self.assertFalse(any(reader.ended for reader in slow), "they were slow enough to be held back")
        held = max(peaks) - before
        print(f"{COUNT} streams, {OF_EACH * len(slow)} of them slow: PSS grew by {held / MEGABYTE:.1f} MB")
        self.assertLess(held, OF_EACH * (len(slow) * HELD_MAX + len(fast) * OPEN_MAX))
        self.assert_whole(fast, wanted[STEADY])
        for reader in slow:
            reader.give(1 << 24)
            reader.read_all()
        self.assert_whole(slow, wanted[LARGE])
        metrics = gateway.metrics_after(COUNT)
        self.assertEqual(metrics.sum("sluice_requests_total", outcome="ok"), COUNT)

    def test_no_stream_of_a_provider_that_dies_looks_whole(self):
        sim = self.sim("--address", "0.0.0.0")
        gateway = self.gateway_at(sim)
        readers = self.open(gateway, STEADY, CONNECTIONS)
        self.wait_open(sim, lambda seen: seen["in_flight"] == COUNT and seen["pauses"] >= 2 * COUNT)
        sim.kill()
        for reader in readers:
            reader.start(reader.read_all)
        for reader in readers:
            reader.thread.join()
            self.assertEqual(len(reader.ended | reader.reset), OF_EACH)
            for stream, body in reader.bodies.items():
                self.assertNotIn(b"message_stop", body)
                self.assertEqual(stream in reader.reset or b"\n\nevent: error\ndata: " in body, True, bytes(body[-300:]))
        metrics = gateway.metrics_after(COUNT)
        harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 0, "nothing is in flight")
        self.assertEqual(metrics.sum("sluice_requests_total", outcome="ok"), 0)
        self.assertGreater(metrics.sum("sluice_usd_total"), 0)
        self.assertTrue(gateway.running)


if __name__ == "__main__":
    harness.main()
