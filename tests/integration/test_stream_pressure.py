"""Streams and those who are slow, leave, or send too much.
ctest: serial timeout=300
"""

import os
import queue
import socket
import struct
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import h2_client  # noqa: E402
import harness  # noqa: E402
import streams  # noqa: E402

MEGABYTE = 1 << 20
WARM = 10  # megabytes of a request that comes first


def thinking(size):
    """Output that is counted and not kept."""
    return streams.anthropic("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "t" * size})


def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))


@unittest.skipIf(os.environ.get("SLUICE_SANITIZE"), "the sanitizer keeps what is freed: memory means nothing")
class Pressure(streams.Case):
    def flood(self, megabytes):
        """A provider that sends so much, a hundred megabytes a second at most; `sent` has how much is away."""
        piece = streams.chunk(thinking(16000) * 64)
        sent, pause = [0], threading.Event()

        def serve(peer, _):
            peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
            while (request := peer.request()) is not None:
                count = WARM if b"warm" in request[1] else megabytes * MEGABYTE // len(piece)
                peer.send(streams.HEAD + streams.chunk(streams.begin().replace(b'"type": "text", "text"',
                                                                               b'"type": "thinking", "thinking"')))
                for _ in range(count):
                    peer.send(piece)
                    sent[0] += len(piece)
                    if count != WARM:  # which piles up, as the other does on a busy machine
                        pause.wait(0.01)
                peer.send(streams.chunk(streams.anthropic("content_block_stop", index=0)
                                        + streams.anthropic("content_block_start", index=1,
                                                            content_block={"type": "text", "text": ""})
                                        + streams.text("done").replace(b'"index": 0', b'"index": 1')
                                        + streams.end().replace(b'"index": 0', b'"index": 1')) + streams.END)
        _, gateway = self.scripted(serve)
        for _ in range(3):  # what stays after the first requests is not growth
            with streams.Call(gateway, text="warm") as call:
                self.assertIn("result", call.split()[1])
        sent[0] = 0
        return sent, gateway

    def test_a_hundred_megabytes_go_through_a_bounded_room(self):
        sent, gateway = self.flood(100)
        pid = gateway.server_pid()
        before = pss(pid)
        going = threading.Event()
        peaks = []

        def watch():
            while not going.wait(0.01):
                peaks.append(pss(pid))
        watcher = threading.Thread(target=watch)
        watcher.start()
        with streams.Call(gateway, timeout_s=120) as call:
            told, answer = call.split()
        going.set()
        watcher.join()
        most = max(peaks)
        self.assertGreater(sent[0], 98 * MEGABYTE)
        self.assertGreater(told[-1][1]["params"]["progress"], 0)
        self.assertEqual(harness.text_of(answer["result"]), "done")
        print(f"PSS grew by {(most - before) / 1024:.0f} KiB of 100 MB")
        self.assertLess(most - before, MEGABYTE)

    def test_a_caller_that_takes_nothing_stops_the_provider_and_goes_on_when_he_does(self):
        sent, gateway = self.flood(100)
        pid = gateway.server_pid()
        before = pss(pid)
        with h2_client.Client(gateway.url, windows=False) as client:
            client.socket.sendall(h2_client.frame(h2_client.SETTINGS, 0, 0, struct.pack(">HI", 4, 0)))
            client.request(1, "/v1/sampling", streams.fields(), streams.message())
            seen = []

            def held_up():
                seen.append(sent[0])
                return sent[0] > 0 and len(seen) > 100 and len(set(seen[-100:])) == 1
            harness.wait_for(held_up, "the provider is held up")
            self.assertLess(sent[0], 70 * MEGABYTE)
            grown = pss(pid) - before
            client.socket.sendall(h2_client.frame(h2_client.WINDOW_UPDATE, 0, 1, struct.pack(">I", 1 << 20)))
            *told, answer = streams.events_of(client.answer(1))
        print(f"held up after {sent[0] / MEGABYTE:.0f} MB in all; PSS had grown by {grown / 1024:.0f} KiB")
        self.assertLess(grown, MEGABYTE)
        self.assertEqual(harness.text_of(answer["result"]), "done")
        numbers = [event["params"]["progress"] for event in told]
        self.assertEqual(numbers, sorted(set(numbers)))


    def test_large_events_of_many_streams_have_a_bound_together_and_those_beyond_it_are_told_why(self):
        # the least that there may be is one answer in one piece, 16 MiB
        open_event = streams.chunk(streams.begin() + streams.text("@" * 900_000)[:-4])
        silent = threading.Event()
        self.addCleanup(silent.set)

        def serve(peer, _):
            while (request := peer.request()) is not None:
                if b"small" in request[1]:
                    peer.send(streams.HEAD + streams.chunk(streams.begin() + streams.text("fine") + streams.end())
                              + streams.END)
                else:
                    peer.send(streams.HEAD + open_event)
                    silent.wait(harness.PATIENCE_S)
                    return
        server = self.server(serve)
        server.url = f"http://127.0.0.1:{server.port}"
        settings = harness.config(server)
        settings["workers"] = 1
        settings["limits"] = {"unfinished_bytes": "1MiB"}
        settings["plans"]["standard"]["limits"]["concurrent"] = 100
        gateway = self.gateway(settings)
        with streams.Call(gateway, text="small") as call:
            self.assertIn("result", call.split()[1])
        before = pss(gateway.server_pid())
        calls = [streams.Call(gateway) for _ in range(40)]
        for call in calls:
            self.addCleanup(call.connection.close)
        harness.wait_for(lambda: gateway.metrics().sum("sluice_requests_total", outcome="overloaded") >= 20,
                         "those beyond the bound are refused")
        self.assertLess(pss(gateway.server_pid()) - before, 24 * MEGABYTE)
        self.assertEqual(gateway.metrics().sum("sluice_breaker_state"), 0)
        with streams.Call(gateway, text="small") as call:
            self.assertEqual(harness.text_of(call.split()[1]["result"]), "fine")
        silent.set()
        ends = [call.split()[1]["error"] for call in calls]
        refused = [end for end in ends if end["data"]["reason"] == "overloaded"]
        self.assertGreaterEqual(len(refused), 20)
        self.assertLess(len(refused), 30)  # 16 MiB and a head, of 1 MiB each

    def test_an_event_of_66000_bytes_is_paid_once(self):
        sim = self.sim("--default", "size-66000-chunk-66000-calls-1")
        gateway = self.gateway(harness.config(sim))
        tool = {"name": "get_weather", "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}}}
        for hint in ("claude-test", "gpt-test"):
            with streams.Call(gateway, hint=hint, tools=[tool]) as call:
                _, answer = call.split()
            self.assertEqual(answer["result"]["stopReason"], "toolUse")
            self.assertEqual(answer["result"]["_meta"]["sluice/route"]["attempts"], 1)
        self.assertEqual(gateway.metrics().sum("sluice_provider_attempts_total"), 2)


class Leaving(streams.Case):
    def soonest(self, leave):
        """Milliseconds until the provider notices that its caller has gone; of five, the best."""
        left = queue.Queue()

        def serve(peer, _):
            peer.request()
            peer.send(streams.HEAD + streams.chunk(streams.begin() + streams.text("x" * 100)))
            left.put(peer.wait_end())
        _, gateway = self.scripted(serve)
        times = []
        for _ in range(5):
            gone_at = leave(gateway)
            times.append(left.get(timeout=harness.PATIENCE_S) - gone_at)
        harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 0, "nothing is in flight")
        self.assertLess(min(times), 0.1)
        self.assertEqual(gateway.metrics().sum("sluice_requests_total", outcome="cancelled"), 5)

    def test_over_http1_the_call_is_cancelled_at_once(self):
        def leave(gateway):
            call = streams.Call(gateway)
            next(iter(call))
            call.reply.close()
            call.connection.close()
            return time.monotonic()
        self.soonest(leave)

    def test_over_http2_too(self):
        def leave(gateway):
            with h2_client.Client(gateway.url) as client:
                client.request(1, "/v1/sampling", streams.fields(), streams.message())
                client.wait(lambda c: c.count(h2_client.DATA), "the first event")
                client.socket.sendall(h2_client.frame(h2_client.RST_STREAM, 0, 1, struct.pack(">I", 8)))
                return time.monotonic()
        self.soonest(leave)


if __name__ == "__main__":
    harness.main()
