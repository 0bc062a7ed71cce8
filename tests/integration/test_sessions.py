#!/usr/bin/env python3
"""Sessions by the real binary: initialize, DELETE, whose they are, what they fix, who is called off. ctest: timeout=240"""

import json
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import redis_server

OTHER_KEY, THIRD_KEY = "sk-other-0123456789abcdef", "sk-third-0123456789abcdef"


def message(method, id=1, **params):
    whole = {"jsonrpc": "2.0", "method": method, "params": params}
    return whole if id is None else {**whole, "id": id}


class SessionCase(harness.Case):
    def start(self, sim=None, **changes):
        self.provider = sim or self.sim()
        settings = harness.config(self.provider, drain="8s", **changes)
        acme = settings["tenants"][0]
        acme["keys"].append({"sha256": harness.sha256(OTHER_KEY), "server": "another-server"})
        settings["tenants"].append(harness.tenant("third", THIRD_KEY))
        return self.gateway(settings)

    def begin(self, gateway, revision="2025-11-25", **options):
        answer = gateway.post(message("initialize", protocolVersion=revision), **options)
        self.assertEqual(answer.status, 200, answer)
        session = answer.headers["mcp-session-id"]
        self.assertRegex(session, "^[0-9a-f]{32}$")
        return session

    def end(self, gateway, session, key=harness.KEY):
        return harness.request("DELETE", gateway.url + "/v1/sampling", None,
                               {"Authorization": "Bearer " + key, "Mcp-Session-Id": session})

    def sample(self, gateway, session, headers=None, **options):
        return gateway.sample("hello", {"Mcp-Session-Id": session, **(headers or {})}, **options)

    def cancel(self, gateway, session, id, key=harness.KEY, **headers):
        answer = gateway.post(message("notifications/cancelled", None, requestId=id, reason="for a test"),
                              {"Mcp-Session-Id": session, **headers}, key=key)
        self.assertEqual(answer.status, 202)

    def unknown(self, answer):
        self.assert_error(answer, 404, 404, "session_unknown")


class Life(SessionCase):
    def test_a_session_lasts_from_initialize_to_delete(self):
        gateway = self.start()
        session = self.begin(gateway)
        self.assertNotEqual(session, self.begin(gateway))
        initialized = gateway.post(message("notifications/initialized", None), {"Mcp-Session-Id": session})
        self.assertEqual((initialized.status, initialized.body), (202, b""))
        for id in range(3):
            self.assertEqual(self.sample(gateway, session, id=id).status, 200)
        ping = gateway.post(message("ping"), {"Mcp-Session-Id": session})
        self.assertEqual(ping.json(), {"jsonrpc": "2.0", "id": 1, "result": {}})
        ended = self.end(gateway, session)
        self.assertEqual((ended.status, ended.body), (204, b""))
        self.unknown(self.end(gateway, session))
        self.unknown(self.sample(gateway, session, id=0))  # though there is an answer to that
        self.unknown(gateway.post(message("ping"), {"Mcp-Session-Id": session}))

    def test_the_log_says_what_it_costs_and_not_its_id(self):
        gateway = self.start()
        begun = gateway.post(message("initialize", protocolVersion="2025-11-25"))
        session = begun.headers["mcp-session-id"]
        answers = [self.sample(gateway, session, id=id) for id in range(3)]
        lines = [gateway.log(answer.headers["sluice-request-id"])
                 for answer in [begun, *answers, self.end(gateway, session)]]
        self.assertEqual({line["session"]["id"] for line in lines}, {lines[0]["session"]["id"]})
        self.assertNotIn(session[:8], json.dumps(lines))
        tokens, usd = 0, 0
        for requests, line in enumerate(lines[1:4]):
            said = line["session"]
            self.assertEqual((said["requests"], said["tokens"]), (requests, tokens))
            self.assertAlmostEqual(said["usd"], usd, 9)
            tokens += line["input_tokens"] + line["output_tokens"]
            usd += line["usd"]
        self.assertGreater(tokens, 0)
        self.assertEqual([list(line["session"]) for line in (lines[0], lines[4])], [["id"], ["id"]])
        self.assertNotIn("session", gateway.log(gateway.sample("hello").headers["sluice-request-id"]))

    def test_a_tenant_begins_no_more_than_so_many(self):
        redis = redis_server.Redis(self)
        acme = {**harness.tenant("acme", harness.KEY), "limits": {"requests_per_minute": 60}}
        gateway = self.start(store={"kind": "redis", "url": redis.url, "deadline": "5s"}, tenants=[acme])
        harness.wait_for(lambda: gateway.metrics().sum("sluice_limiter_mode", mode="shared"), "Redis in use")
        session = self.begin(gateway)
        refused = next(answer for answer in (gateway.post(message("initialize")) for _ in range(5000))
                       if answer.status != 200)
        error = self.assert_error(refused, 429, 429, "rate_limited")
        self.assertLessEqual(error["data"]["retryAfterMs"], 100)
        self.assertEqual(refused.headers["retry-after"], "1")
        self.assertNotIn("mcp-session-id", refused.headers)
        self.assertNotIn("session", gateway.log(refused.headers["sluice-request-id"]))
        self.assertGreater(gateway.metrics().sum("sluice_limit_decisions_total", limit="sessions", decision="refused"), 0)
        kept = redis.ask("DBSIZE")
        self.assertGreaterEqual(kept, 1000)
        answers = [gateway.post(message("initialize")).status for _ in range(100)]
        self.assertLess(answers.count(200), 100)
        self.assertLessEqual(redis.ask("DBSIZE"), kept + answers.count(200))
        self.assert_result(self.sample(gateway, session, id=1))
        self.begin(gateway, key=THIRD_KEY)

    def test_it_is_its_principals_alone(self):
        gateway = self.start()
        session = self.begin(gateway)
        for key in (OTHER_KEY, THIRD_KEY):
            self.unknown(self.sample(gateway, session, key=key))
            self.unknown(self.end(gateway, session, key=key))
        self.assertEqual(self.sample(gateway, session).status, 200)

    def test_any_worker_knows_it(self):
        gateway = self.start(workers=4)
        session = self.begin(gateway)
        for id in range(40):  # a connection each
            self.assert_result(self.sample(gateway, session, id=id))

    def test_another_session_of_the_same_id_is_another(self):
        gateway = self.start()
        one, two = self.begin(gateway), self.begin(gateway)
        self.assertEqual(self.sample(gateway, one, id=1).status, 200)
        self.assertEqual(self.sample(gateway, two, id=1, temperature=0.5).status, 200)
        self.assertEqual(self.provider.stats()["requests"], 2)

    def test_it_fixes_the_revision(self):
        gateway = self.start()
        session = self.begin(gateway, "2025-06-18")
        self.assertEqual(self.sample(gateway, session, id=1).status, 200)
        same = self.sample(gateway, session, {"MCP-Protocol-Version": "2025-06-18"}, id=2)
        self.assertEqual(same.status, 200)
        self.assertEqual(gateway.log(same.headers["sluice-request-id"])["revision"], "2025-06-18")
        other = self.sample(gateway, session, {"MCP-Protocol-Version": "2025-11-25"}, id=3)
        self.assert_error(other, 400, -32602, "revision_unsupported")

    def test_the_revision_is_the_one_asked_for_or_the_latest_with_sessions(self):
        gateway = self.start()
        for asked, given in (("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("2026-07-28", "2025-11-25"),
                             ("1999-12-31", "2025-11-25")):
            answer = gateway.post(message("initialize", protocolVersion=asked))
            result = answer.json()["result"]
            self.assertEqual((result["protocolVersion"], result["capabilities"]), (given, {"sampling": {"tools": {}}}))
            self.assertEqual(result["serverInfo"]["name"], "sluice")
            same = {"MCP-Protocol-Version": given}
            self.assert_result(self.sample(gateway, answer.headers["mcp-session-id"], same))

    def test_the_revision_without_sessions_ignores_them(self):
        gateway = self.start()
        answer = self.sample(gateway, "whatever", {"MCP-Protocol-Version": "2026-07-28"})
        self.assertEqual(answer.status, 200)

    def test_it_is_lost_with_the_process(self):
        gateway = self.start()
        session = self.begin(gateway)
        server = gateway.server_pid()
        os.kill(server, 9)
        harness.wait_for(lambda: gateway.server_pid() not in (0, server) and gateway.ready(), "another server")
        self.unknown(self.sample(gateway, session))
        self.assertEqual(self.sample(gateway, self.begin(gateway)).status, 200)


class CallingOff(SessionCase):
    """notifications/cancelled, wherever the request is."""

    def pending(self, gateway, session, id=7, **options):
        """A request that has got to the provider, which never answers; its answer when it comes."""
        before = self.provider.stats()["requests"]
        answers = []
        thread = threading.Thread(target=lambda: answers.append(
            self.sample(gateway, session, id=id, **options)))
        thread.start()
        self.addCleanup(thread.join)
        self.provider.wait_stats(lambda s: s["requests"] > before, "the request at the provider")
        return answers, thread

    def test_the_named_request_is_stopped_on_whatever_worker(self):
        gateway = self.start(self.sim("--default", "hang"), workers=4)
        session = self.begin(gateway)
        for id in range(12):  # a connection each: on several workers
            answers, thread = self.pending(gateway, session, id)
            self.cancel(gateway, session, id)
            thread.join(harness.PATIENCE_S)
            self.assertEqual([(a.status, a.body) for a in answers], [(202, b"")])
            self.assertEqual(gateway.log(answers[0].headers["sluice-request-id"])["status"], 499)
        self.provider.wait_stats(lambda s: s["in_flight"] == 0, "nothing left at the provider")

    def test_it_is_stopped_whatever_revision_is_named(self):
        gateway = self.start(self.sim("--default", "hang"))
        session = self.begin(gateway)
        for id, revision in enumerate(("2025-03-26", "2099-01-01")):
            answers, thread = self.pending(gateway, session, id)
            self.cancel(gateway, session, id, **{"MCP-Protocol-Version": revision})
            thread.join(harness.PATIENCE_S)
            self.assertEqual([(a.status, a.body) for a in answers], [(202, b"")])

    def test_nobody_elses_request_is(self):
        gateway = self.start(self.sim("--default", "hang"))
        session, another = self.begin(gateway), self.begin(gateway)
        answers, thread = self.pending(gateway, session, 7)
        self.cancel(gateway, another, 7)
        self.cancel(gateway, session, 8)
        self.cancel(gateway, session, "7")
        for elsewhere, key in ((session, OTHER_KEY), ("0" * 32, harness.KEY), ("not one", harness.KEY)):
            self.cancel(gateway, elsewhere, 7, key=key)
        self.assertEqual(self.sim_in_flight(), 1)
        self.assertEqual(answers, [])
        self.cancel(gateway, session, 7)
        thread.join(harness.PATIENCE_S)
        self.assertEqual(answers[0].status, 202)

    def sim_in_flight(self):
        return self.provider.stats()["in_flight"]

    def test_who_ended_is_not_missed(self):
        gateway = self.start()
        session = self.begin(gateway)
        self.assertEqual(self.sample(gateway, session, id=7).status, 200)
        self.cancel(gateway, session, 7)
        self.assertEqual(self.sample(gateway, session, id=8).status, 200)


@unittest.skipUnless(redis_server.available(), "redis-server is not installed")
class SeveralGateways(SessionCase):
    def pair(self, sim=None):
        self.redis = redis_server.Redis(self)
        first = self.start(sim, workers=2, store={"kind": "redis", "url": self.redis.url, "deadline": "2s"})
        second = self.gateway({key: value for key, value in first.settings.items() if key not in ("listen", "admin")})
        for gateway in (first, second):
            harness.wait_for(lambda g=gateway: g.metrics().sum("sluice_limiter_mode", mode="shared") == 2,
                             "Redis in use")
            self.wait_listening(2 if gateway is second else 1)
        return first, second

    def wait_listening(self, gateways):
        harness.wait_for(lambda: self.redis.ask("PUBSUB", "NUMSUB", "sluice:1:calloff")[1] >= gateways,
                         "gateways that listen")

    def test_a_session_is_known_at_all_gateways(self):
        first, second = self.pair()
        session = self.begin(first)
        self.assertEqual(self.sample(second, session, id=1).status, 200)
        self.assertEqual(self.end(second, session).status, 204)
        self.unknown(self.sample(first, session, id=2))

    def test_a_request_is_called_off_from_another_gateway(self):
        first, second = self.pair(self.sim("--default", "hang"))
        session = self.begin(first)
        for id in range(4):
            answers = []
            thread = threading.Thread(target=lambda: answers.append(self.sample(first, session, id=id)))
            thread.start()
            self.addCleanup(thread.join)
            self.provider.wait_stats(lambda s: s["in_flight"] == 1, "the request at the provider")
            self.cancel(second, session, id)
            thread.join(harness.PATIENCE_S)
            self.assertEqual(answers[0].status, 202)
            self.provider.wait_stats(lambda s: s["in_flight"] == 0, "nothing left at the provider")
        self.assertEqual(self.redis.calls("publish"), 4)

    def test_who_listens_does_so_again_after_a_restart_of_redis(self):
        first, second = self.pair(self.sim("--default", "hang"))
        self.redis.kill()
        self.redis.start()
        self.wait_listening(2)
        for gateway in (first, second):
            harness.wait_for(lambda g=gateway: g.metrics().sum("sluice_limiter_mode", mode="shared") == 2,
                             "Redis in use")
        session = self.begin(first)
        answers = []
        thread = threading.Thread(target=lambda: answers.append(self.sample(first, session)))
        thread.start()
        self.addCleanup(thread.join)
        self.provider.wait_stats(lambda s: s["in_flight"] == 1, "the request at the provider")
        self.cancel(second, session, 1)
        thread.join(harness.PATIENCE_S)
        self.assertEqual(answers[0].status, 202)


if __name__ == "__main__":
    harness.main()
