#!/usr/bin/env python3
"""Sessions in Redis: two gateways are one, and what happens while it is gone. ctest: once timeout=120"""

import os
import shlex
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import documents
import harness
import redis_server


@unittest.skipUnless(redis_server.available(), "redis-server is not installed")
class StateCase(harness.Case):
    def setUp(self):
        super().setUp()
        self.redis = redis_server.Redis(self)
        self.provider = self.sim()

    def start(self):
        settings = harness.config(self.provider, workers=2,
                                  store={"kind": "redis", "url": self.redis.url, "deadline": "1s"})
        settings["plans"]["standard"]["on_store_failure"] = {"rates": "local", "budget": {"local": 10}}
        gateway = self.gateway(settings)
        self.wait_mode(gateway, "shared")
        return gateway

    def wait_mode(self, gateway, mode):
        harness.wait_for(lambda: gateway.metrics().sum("sluice_limiter_mode", mode=mode) == 2,
                         f"both workers are {mode}")

    def pair(self):
        return self.start(), self.start()

    def begin(self, gateway, revision="2025-11-25"):
        answer = gateway.post({"jsonrpc": "2.0", "id": 1, "method": "initialize",
                               "params": {"protocolVersion": revision}})
        self.assertEqual(answer.status, 200, answer)
        return answer.headers["mcp-session-id"]

    def end(self, gateway, session):
        return harness.request("DELETE", gateway.url + "/v1/sampling", None,
                               {"Authorization": "Bearer " + harness.KEY, "Mcp-Session-Id": session}).status

    def ping(self, gateway, session, **headers):
        return gateway.post({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}},
                            {"Mcp-Session-Id": session, **headers}).status

    def known(self, gateway, session):
        """By whichever worker; all of them say the same."""
        found = {self.ping(gateway, session) for _ in range(8)}
        self.assertEqual(len(found), 1, found)
        self.assertLessEqual(found, {200, 404})
        return found == {200}


class Together(StateCase):
    def test_a_session_begun_at_one_gateway_is_known_at_the_other_until_it_ends(self):
        a, b = self.pair()
        session = self.begin(a)
        self.assertTrue(self.known(b, session))
        self.assertTrue(self.known(a, session))
        self.assert_result(b.sample("hello", {"Mcp-Session-Id": session}))
        self.assertEqual(self.end(b, session), 204)
        self.assertFalse(self.known(a, session))
        self.assertFalse(self.known(b, session))
        self.assertEqual(self.end(a, session), 404)

    def test_its_revision_is_fixed_at_the_other_gateway_too(self):
        a, b = self.pair()
        session = self.begin(a, "2025-06-18")
        self.assertEqual(self.ping(b, session, **{"MCP-Protocol-Version": "2025-06-18"}), 200)
        answer = b.sample("hello", {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"})
        self.assert_error(answer, 400, -32602, "revision_unsupported")

    def test_it_outlives_its_gateway(self):
        a, b = self.pair()
        session = self.begin(a)
        a.stop()
        self.assertTrue(self.known(b, session))

    def test_it_ends_an_hour_after_its_last_request(self):
        a, b = self.pair()
        session = self.begin(a)
        (key,) = self.redis.ask("KEYS", "sluice:state:*}s:*")
        for gateway in (a, b):
            self.assertEqual(self.redis.ask("PEXPIRE", key, 60000), 1)
            self.assertEqual(self.ping(gateway, session), 200)
            self.assertGreater(self.redis.ask("PTTL", key), 3590000)
        self.assertLessEqual(self.redis.ask("PTTL", key), 3600000)
        self.assertEqual(self.redis.ask("PEXPIRE", key, 1), 1)
        harness.wait_for(lambda: not self.redis.ask("EXISTS", key), "the hour is over")
        self.assertFalse(self.known(a, session))  # whatever it remembers itself
        self.assertFalse(self.known(b, session))

    def test_what_it_has_used_is_counted_over_all_gateways(self):
        a, b = self.pair()
        session = self.begin(a)
        (key,) = self.redis.ask("KEYS", "sluice:state:*}s:*")
        used = {"requests": 0, "tokens": 0, "usd": 0}
        for id, gateway in enumerate((a, b, a)):
            answer = gateway.sample("hello", {"Mcp-Session-Id": session}, id=id)
            line = gateway.log(answer.headers["sluice-request-id"])
            self.assertEqual((line["session"]["requests"], line["session"]["tokens"]), (used["requests"], used["tokens"]))
            self.assertAlmostEqual(line["session"]["usd"], used["usd"], 9)
            used = {"requests": id + 1, "tokens": used["tokens"] + line["input_tokens"] + line["output_tokens"],
                    "usd": used["usd"] + line["usd"]}
            harness.wait_for(lambda: self.redis.ask("HGET", key, "requests") == str(used["requests"]), "it is counted")

    def test_every_key_expires_and_none_holds_a_word_of_the_callers(self):
        a = self.start()
        session = self.begin(a)
        self.assert_result(a.sample("a word of the caller's", {"Mcp-Session-Id": session}))
        keys = self.redis.ask("KEYS", "sluice:state:*")
        self.assertEqual(len([key for key in keys if "}s:" in key]), 1)
        for key in keys:
            self.assertGreater(self.redis.ask("PTTL", key), 0, key)
            self.assertNotIn(session, key)
            self.assertNotIn("acme", key)

    def test_a_user_may_do_what_the_documentation_says_and_no_more(self):
        command = documents.fence("deploy/docs/limits.md", "redis-cli -u $REDIS ACL SETUSER").text
        words = shlex.split(command.replace("\\\n", ""))
        self.redis.ask(*words[words.index("ACL"):])
        self.redis.url = self.redis.url.replace("redis://", "redis://sluice:its-password@")
        a, b = self.pair()
        session = self.begin(a)
        self.assertTrue(self.known(b, session))
        self.assert_result(b.sample("hello", {"Mcp-Session-Id": session}))
        self.assertEqual([gateway.sample("once", {"Idempotency-Key": "k"}).status for gateway in (a, b)], [200, 200])
        self.assertEqual(self.end(b, session), 204)
        self.assertFalse(self.known(a, session))
        self.assertEqual(self.redis.ask("PUBSUB", "NUMSUB", "sluice:1:calloff")[1], 2)
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        self.assertEqual(a.post(cancelled, {"Mcp-Session-Id": self.begin(a)}).status, 202)
        for gateway in (a, b):
            self.assertEqual(gateway.metrics().sum("sluice_store_commands_total", result="error"), 0)

    def test_what_is_kept_is_counted(self):
        a = self.start()
        sessions = {self.begin(a) for _ in range(5)}
        self.assertEqual(len(sessions), 5)
        metrics = a.metrics()
        self.assertEqual(metrics.sum("sluice_state_records", kind="session"), 5)
        self.assertEqual(metrics.sum("sluice_state_evictions_total"), 0)
        self.assertEqual(metrics.sum("sluice_state_away_total"), 0)


class Away(StateCase):
    def test_sessions_of_a_gateway_go_on_there_and_move_to_redis_when_it_is_back(self):
        a, b = self.pair()
        before = self.begin(a)
        self.redis.kill()
        self.wait_mode(a, "away")
        self.wait_mode(b, "away")
        during = self.begin(a)
        self.assertTrue(self.known(a, before))
        self.assertTrue(self.known(a, during))
        self.assertFalse(self.known(b, before))  # 404: its caller begins anew
        self.assertGreater(a.metrics().sum("sluice_state_away_total", what="recall"), 0)
        self.assertGreater(a.metrics().sum("sluice_state_away_total", what="note"), 0)
        self.redis.start()  # empty
        self.wait_mode(a, "shared")
        self.wait_mode(b, "shared")
        harness.wait_for(lambda: self.ping(b, during) == 200, "the session that began meanwhile is known there, too")
        self.assertFalse(self.known(a, before))
        self.assertTrue(self.known(a, during))
        self.assertEqual(self.end(b, during), 204)
        self.assertFalse(self.known(a, during))

    def test_a_session_that_ends_meanwhile_does_not_come_back(self):
        a = self.start()
        session = self.begin(a)
        self.redis.stop()
        try:
            self.assertTrue(self.known(a, session))
            self.wait_mode(a, "away")
            self.assertEqual(self.end(a, session), 204)
            self.assertFalse(self.known(a, session))
        finally:
            self.redis.go_on()
        self.wait_mode(a, "shared")
        harness.wait_for(lambda: not self.redis.ask("KEYS", "sluice:state:*}s:*"), "Redis has forgotten it")
        self.assertFalse(self.known(a, session))

    def test_a_flush_ends_all_sessions(self):
        a, b = self.pair()
        session = self.begin(a)
        self.assertTrue(self.known(b, session))
        self.redis.ask("FLUSHALL")
        self.assertFalse(self.known(a, session))
        self.assertFalse(self.known(b, session))
        self.assertTrue(self.known(b, self.begin(a)))

    def test_scripts_that_are_forgotten_are_told_again(self):
        a, b = self.pair()
        session = self.begin(a)
        self.assertTrue(self.known(b, session))
        self.redis.ask("SCRIPT", "FLUSH")
        self.assertTrue(self.known(a, session))
        self.assertTrue(self.known(b, self.begin(b)))
        self.assertEqual(a.metrics().sum("sluice_state_away_total"), 0)


if __name__ == "__main__":
    harness.main()
