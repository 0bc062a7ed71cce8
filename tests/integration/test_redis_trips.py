#!/usr/bin/env python3
"""One round trip with Redis before the provider, whatever a request has to ask: its session, its tool loop, its key, its
limits; and what is left where one of them says no. ctest: once timeout=120"""

import itertools
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import redis_server
import test_state_loops
import test_tool_loop

DEADLINE_S = 1


class Gate(redis_server.Proxy):
    """Shut, it keeps back what Redis says; what Redis is told is noted, a piece for each write."""

    def __init__(self, case, port):
        self.told = []
        self.opened = threading.Event()
        self.opened.set()
        super().__init__(case, port)
        case.addCleanup(self.opened.set)

    def _pump(self, source, sink, delayed):
        try:
            while data := source.recv(1 << 20):
                if delayed:
                    self.told.append(data)
                else:
                    self.opened.wait()
                sink.sendall(data)
        except OSError:
            pass
        super()._pump(source, sink, delayed)  # the end of a connection

    def scripts(self):
        """How many scripts came with each write that had some."""
        counts = [piece.count(b"EVAL") for piece in list(self.told)]
        return [count for count in counts if count]


class TripsCase(test_state_loops.SharedLoopCase):
    def setUp(self):
        super().setUp()
        self.real, self.gate = self.redis, Gate(self, self.redis.port)
        self.at_provider, self.ids = [], itertools.count(1)
        self.provider = self.thinker()
        check_head = self.provider.check_head

        def note(handler):
            self.at_provider.append(self.gate.scripts())
            check_head(handler)
        self.provider.check_head = note

    def start(self, gated=False, limits=None):
        settings = self.settings(self.provider, limits=limits, workers=1)
        settings["store"] = {"kind": "redis", "url": self.gate.url if gated else self.real.url, "deadline": f"{DEADLINE_S}s"}
        settings["plans"]["standard"]["on_store_failure"] = {"rates": "local", "budget": {"local": 100}}
        gateway = self.gateway(settings)
        harness.wait_for(lambda: gateway.metrics().sum("sluice_limiter_mode", mode="shared") == 1, "it has its Redis")
        return gateway

    def ask(self, gateway, messages, headers=None):
        """By an id of its own, which is a request's name in its session."""
        params = {"messages": messages, "maxTokens": 1000, "tools": test_tool_loop.TOOLS}
        return gateway.post({"jsonrpc": "2.0", "id": next(self.ids), "method": "sampling/createMessage",
                             "params": params}, headers)

    def begin(self, gateway):
        answer = gateway.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
        self.assertEqual(answer.status, 200, answer)
        return answer.headers["mcp-session-id"]

    def nothing_left(self):
        harness.wait_for(lambda: self.real.tenant()["places"] == 0, "no place is taken")


@unittest.skipUnless(redis_server.available(), "redis-server is not installed")
class Trips(TripsCase):
    def one(self, gateway, scripts, messages, headers=None):
        """Everything is asked before anything is answered, and nothing more once it is."""
        self.nothing_left()
        self.gate.opened.clear()
        self.gate.told.clear()
        self.at_provider.clear()
        answers, thread = self.background(lambda: self.ask(gateway, messages, headers=headers))
        harness.wait_for(lambda: sum(self.gate.scripts()) >= scripts, "all is asked")
        self.assertEqual(self.at_provider, [])
        self.gate.opened.set()
        thread.join()
        result = self.result_of(answers[0])
        self.assertEqual(self.at_provider, [[scripts]], "one write, before the provider and no other")
        return result

    def test_one_whoever_asks(self):
        here, there = self.start(gated=True), self.start()
        for gateway in (here, there):  # Redis knows the scripts from now on, and the gateway that it does
            session = {"Mcp-Session-Id": self.begin(gateway)}
            self.loop(gateway, rounds=2, headers=session)
        ask = [test_tool_loop.ASK]
        session = {"Mcp-Session-Id": self.begin(here)}
        known, _ = self.loop(here, rounds=1)
        other, _ = self.loop(there, rounds=1)
        in_session, _ = self.loop(there, rounds=1, headers=session)
        cases = [("plain", 1, ask, {}),
                 ("session", 3, ask, session),
                 ("another gateway's session", 3, ask, {"Mcp-Session-Id": self.begin(there)}),
                 ("key", 2, ask, {"Idempotency-Key": "one"}),
                 ("loop", 2, known, {}),
                 ("another gateway's loop", 2, other, {}),
                 ("all", 3, in_session, {**session, "Idempotency-Key": "two"})]
        for name, scripts, messages, headers in cases:
            with self.subTest(name):
                self.provider.given_back.clear()
                result = self.one(here, scripts, messages, headers)
                self.assertEqual(self.provider.given_back, [len(messages) // 2])
                self.assertEqual(self.adjustments(result), [])
        self.assertEqual(self.provider.problems, [])
        self.nothing_left()


@unittest.skipUnless(redis_server.available(), "redis-server is not installed")
class Stopped(TripsCase):
    def test_it_is_waited_for_once(self):
        gateway = self.start()
        session = {"Mcp-Session-Id": self.begin(gateway)}
        messages, _ = self.loop(gateway, rounds=1, headers=session)
        self.real.stop()
        self.addCleanup(self.real.go_on)
        answer = self.ask(gateway, messages, headers={**session, "Idempotency-Key": "k"})
        self.result_of(answer)
        self.assertGreater(answer.elapsed_s, DEADLINE_S * 0.9)
        self.assertLess(answer.elapsed_s, DEADLINE_S * 1.9)
        self.assertEqual((self.provider.given_back, self.provider.problems), ([0, 1], []))


@unittest.skipUnless(redis_server.available(), "redis-server is not installed")
class Refused(TripsCase):
    """Who is refused for another reason than limits has taken nothing of them."""

    LIMITS = {"requests_per_minute": 1, "requests_burst": 3, "concurrent": 2}

    def spend_the_rest(self, gateway, requests):
        self.nothing_left()
        statuses = [self.ask(gateway, [test_tool_loop.ASK]).status for _ in range(requests + 1)]
        self.assertEqual(statuses, [200] * requests + [429])

    def test_a_session_that_nobody_knows(self):
        gateway = self.start(limits=self.LIMITS)
        for _ in range(5):
            answer = self.ask(gateway, [test_tool_loop.ASK],
                              headers={"Mcp-Session-Id": "0" * 32, "Idempotency-Key": "k"})
            self.assert_error(answer, 404, 404, "session_unknown")
            self.nothing_left()
        self.assertEqual(self.provider.given_back, [])
        answer = self.ask(gateway, [test_tool_loop.ASK], headers={"Idempotency-Key": "k"})
        self.assertEqual(answer.status, 200, "its key is not taken")
        self.spend_the_rest(gateway, 2)

    def test_a_copy_at_another_gateway(self):
        a, b = self.start(limits=self.LIMITS), self.start(limits=self.LIMITS)
        key = {"Idempotency-Key": "k"}
        go_on = threading.Event()
        self.addCleanup(go_on.set)
        self.provider.check_head, check_head = lambda handler: (go_on.wait(), check_head(handler)), self.provider.check_head
        answers, thread = self.background(lambda: self.ask(a, [test_tool_loop.ASK], headers=key))
        harness.wait_for(lambda: self.real.tenant()["places"] == 1, "the first is on its way")
        for _ in range(5):
            self.assert_error(self.ask(b, [test_tool_loop.ASK], headers=key), 409, 409, "duplicate_in_flight")
            harness.wait_for(lambda: self.real.tenant()["places"] == 1, "its place alone is taken")
        go_on.set()
        thread.join()
        self.result_of(answers[0])
        harness.wait_for(lambda: self.ask(b, [test_tool_loop.ASK], headers=key).status == 200, "its answer is told")
        self.assertEqual(len(self.provider.given_back), 1)
        self.spend_the_rest(b, 2)

    def test_a_loop_that_is_spent(self):
        a, b = (self.start(limits={**self.LIMITS, "loop_tokens": 100}) for _ in range(2))
        messages, _ = self.loop(a, rounds=1)
        for gateway in (a, b, a):
            self.assert_error(self.ask(gateway, messages), 403, 403, "loop_tokens")
        self.spend_the_rest(b, 2)


if __name__ == "__main__":
    harness.main()
