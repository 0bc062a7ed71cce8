"""The charge for a stream that was cut, and the retry after progress was told.
ctest: timeout=300
"""

import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import redis_server  # noqa: E402
import streams  # noqa: E402

WORDS = "hello, world"
SEEN_USD = (7 * 3 + 4 * 15) / 1e6  # message_start's 7 tokens, and a third of the bytes


def beginning(peer):
    peer.request()
    peer.send(streams.HEAD + streams.chunk(streams.begin() + streams.text(WORDS)))


class Cost(streams.Case):
    def setUp(self):
        super().setUp()
        self.store = {"kind": "memory"}

    def start(self, serve, timeouts=None, **limits):
        server = self.server(serve)
        server.url = f"http://127.0.0.1:{server.port}"
        settings = harness.config(server, store=self.store)
        settings["retries"] = {"attempts": 1}
        settings["providers"]["anthropic"]["timeouts"] = timeouts or {}
        settings["plans"]["standard"]["limits"].update(limits)
        return self.gateway(settings)

    def until_left(self, peer, _):
        beginning(peer)
        peer.ending()

    def spent(self, gateway, count, usd):
        """Both what is counted and what the day's budget has left say so."""
        def settled():
            metrics = gateway.metrics()
            return metrics.sum("sluice_settled_without_usage_total") == count and metrics.sum("sluice_in_flight") == 0

        def budget():
            return gateway.get("/tenants/acme").json()["scopes"][0]["limits"]["usd_per_day"]["spent"]
        harness.wait_for(settled, f"{count} are settled")
        self.assertAlmostEqual(gateway.metrics().sum("sluice_usd_total", tenant="acme"), usd, 9)
        # Redis is told a moment later
        harness.wait_for(lambda: abs(budget() - usd) < 1e-9, "so is the budget")

    def line(self, gateway, call):
        line = gateway.log(call.headers["sluice-request-id"])
        self.assertEqual(line["estimated_tokens"], 7 + 4)
        self.assertAlmostEqual(line["usd"], SEEN_USD, 9)
        self.assertNotIn("output_tokens", line)
        return line

    def leave(self, gateway):
        """Behind a number that tells of the words, by closing the connection."""
        with streams.Call(gateway) as call:
            for _, event in call:
                if event["params"]["progress"] >= len(WORDS):
                    call.reply.close()
                    return call
        self.fail("the stream has ended")

    def test_a_caller_that_leaves_pays_what_was_seen(self):
        gateway = self.start(self.until_left)
        call = self.leave(gateway)
        self.spent(gateway, 1, SEEN_USD)
        self.assertEqual(self.line(gateway, call)["status"], 499)

    def test_fifty_one_that_leave_do_not_spend_the_budget(self):
        gateway = self.start(self.until_left, usd_per_day=50, max_tokens=64000)
        for _ in range(51):
            self.leave(gateway)
        self.spent(gateway, 51, 51 * SEEN_USD)

    def test_a_request_that_is_called_off_pays_what_was_seen(self):
        gateway = self.start(self.until_left)
        begun = gateway.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
        with streams.Call(gateway, id=7, headers=session) as call:
            for _, event in call:
                if event["params"]["progress"] >= len(WORDS):
                    break
            answer = gateway.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}},
                                  session)
            self.assertEqual(answer.status, 202)
            self.spent(gateway, 1, SEEN_USD)
        self.assertEqual(self.line(gateway, call)["status"], 499)

    def failed(self, gateway, code, headers=None):
        with streams.Call(gateway, headers=headers) as call:
            _, answer = call.split()
        self.assertEqual(answer["error"]["code"], code)
        self.spent(gateway, 1, SEEN_USD)
        self.line(gateway, call)

    def test_a_provider_that_cuts_its_stream_is_paid_what_was_seen(self):
        self.failed(self.start(lambda peer, _: beginning(peer)), -32015)

    def test_a_provider_that_falls_silent_is_paid_what_was_seen(self):
        self.failed(self.start(self.until_left, {"idle": "300ms"}), -32011)

    def test_a_deadline_that_passes_costs_what_was_seen(self):
        self.failed(self.start(self.until_left), -32001, {"Sluice-Timeout": "1500"})

    def test_a_count_of_the_whole_answer_is_exact_though_nobody_heard_its_end(self):
        def serve(peer, _):
            beginning(peer)
            whole = streams.end(5)
            peer.send(streams.chunk(whole[:whole.index(b"event: message_stop")]))
            peer.ending()
        gateway = self.start(serve, {"idle": "300ms"})
        with streams.Call(gateway) as call:
            call.split()
        self.assertAlmostEqual(gateway.log(call.headers["sluice-request-id"])["usd"], (7 * 3 + 5 * 15) / 1e6, 9)
        self.assertEqual(gateway.metrics().sum("sluice_settled_without_usage_total"), 0)

    def test_an_answer_in_one_piece_that_is_cut_is_paid_by_what_it_announced(self):
        body = b'{"id":"m","content":[{"type":"text","text":"' + b"x" * 258
        def serve(peer, _):
            peer.request()
            peer.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 324\r\n\r\n" + body)
        gateway = self.start(serve)
        answer = gateway.sample(maxTokens=500)
        self.assertEqual(answer.status, 502)
        line = gateway.log(answer.headers["sluice-request-id"])
        sent = line["estimated_tokens"] - 108  # 324 bytes are announced
        self.assertTrue(0 < sent < 100, line)
        self.spent(gateway, 1, (sent * 3 + 108 * 15) / 1e6)


@unittest.skipUnless(redis_server.available(), "redis-server is not installed")
class CostInRedis(Cost):
    def setUp(self):
        super().setUp()
        self.store = {"kind": "redis", "url": redis_server.Redis(self).url}


class Again(streams.Case):
    """Text leaves whole or not at all, so a stream that breaks is asked for elsewhere, whatever numbers were told."""

    def start(self, serve, attempts=3):
        server = self.server(serve)
        server.url = f"http://127.0.0.1:{server.port}"
        settings = harness.config(server, models=[harness.model("claude-test", "anthropic")])
        settings["providers"]["anthropic"]["keys"] = ["a" * 20, "b" * 20]
        settings["retries"] = {"attempts": attempts}
        return self.gateway(settings)

    def rises(self, told):
        numbers = [event["params"]["progress"] for _, event in told]
        self.assertEqual(numbers, sorted(set(numbers)))
        return numbers

    def test_a_stream_that_breaks_after_progress_is_retried_and_both_are_paid(self):
        told = threading.Event()

        def serve(peer, n):
            if n == 0:
                beginning(peer)
                told.wait(harness.PATIENCE_S)
                return
            peer.request()
            peer.send(streams.HEAD + streams.chunk(streams.begin() + streams.text("second") + streams.end(5))
                      + streams.END)
        gateway = self.start(serve)
        events = []
        with streams.Call(gateway) as call:
            for event in call:
                events.append(event)
                if event[1].get("params", {}).get("progress", 0) >= len(WORDS):
                    told.set()
        self.assertIn("result", events[-1][1])
        self.assertEqual(harness.text_of(events[-1][1]["result"]), "second")
        self.assertIn(len(WORDS), self.rises(events[:-1]))
        result = events[-1][1]["result"]
        self.assertEqual(result["_meta"]["sluice/route"]["attempts"], 2)
        line = gateway.log(call.headers["sluice-request-id"])
        self.assertEqual((line["input_tokens"], line["output_tokens"], line["estimated_tokens"]), (7, 5, 11))
        self.assertAlmostEqual(line["usd"], SEEN_USD + (7 * 3 + 5 * 15) / 1e6, 9)

    def test_the_simulator_cuts_and_the_next_attempt_is_whole(self):
        sim = self.sim()
        settings = harness.config(sim)
        settings["providers"]["anthropic"]["keys"] = settings["providers"]["openai"]["keys"] = ["a" * 20, "b" * 20]
        settings["retries"] = {"attempts": 3}
        gateway = self.gateway(settings)
        for model in ("claude-test", "gpt-test"):
            sim.reset()
            sim.default("cut-first-1-size-400-chunk-4-pace-10ms")
            with streams.Call(gateway, hint=model) as call:
                told, answer = call.split()
            self.rises(told)
            self.assertGreater(told[-1][1]["params"]["progress"], 0)
            self.assertEqual(len(harness.text_of(answer["result"])), 400, answer)
            self.assertEqual(answer["result"]["_meta"]["sluice/route"]["attempts"], 2)

    def test_one_that_breaks_every_time_ends_in_an_error_after_as_many_attempts_as_others(self):
        gateway = self.start(lambda peer, _: beginning(peer), attempts=4)
        with streams.Call(gateway) as call:
            told, answer = call.split()
        self.rises(told)
        self.assertEqual(answer["error"]["code"], -32015)
        line = gateway.log(call.headers["sluice-request-id"])
        self.assertEqual(line["attempts"], 2)  # a malformed answer is paid for: one more is enough
        self.assertAlmostEqual(line["usd"], 2 * SEEN_USD, 9)


if __name__ == "__main__":
    harness.main()
