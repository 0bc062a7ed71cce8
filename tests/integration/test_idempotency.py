#!/usr/bin/env python3
"""Requests that are not made twice, by the real binary (DESIGN 4.3, Idempotency). ctest: timeout=240"""

import os
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import h2_client
import harness
import redis_server

SANITIZED = bool(os.environ.get("SLUICE_SANITIZE"))
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../gateway/state/idempotency.lua")
OTHER_KEY, SERVER_KEY = "sk-other-0123456789abcdef", "sk-server-0123456789abcdef"


class OnceCase(harness.Case):
    def start(self, *sim, **changes):
        self.provider = self.sim(*sim)
        settings = harness.config(self.provider, retries={"attempts": 1}, drain="8s", **changes)
        settings["plans"]["standard"]["limits"]["concurrent"] = 4096
        settings["plans"]["standard"]["on_store_failure"] = {"rates": "local", "budget": {"local": 100}}
        settings["tenants"].append(harness.tenant("other", OTHER_KEY))
        settings["tenants"][0]["keys"].append({"sha256": harness.sha256(SERVER_KEY), "server": "another-server"})
        return self.gateway(settings)

    def once(self, gateway, key="k", headers=None, **options):
        return gateway.sample(headers={"Idempotency-Key": key, **(headers or {})}, **options)

    def asked(self):
        return self.provider.stats()["requests"]

    def leaver(self, gateway, http2=False, **params):
        """The connection of one who has asked, as once() does, and will not wait for the answer."""
        body = harness.json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}],
            "maxTokens": 100, **params}}).encode()
        fields = {"Content-Type": "application/json", "Idempotency-Key": "k", "Authorization": f"Bearer {harness.KEY}"}
        if http2:
            client = h2_client.Client(gateway.url)
            client.request(1, "/v1/sampling", fields, body)
            first = client.socket
        else:
            first = harness.socket.create_connection(("127.0.0.1", int(gateway.url.rsplit(":", 1)[1])))
            head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            first.sendall(f"POST /v1/sampling HTTP/1.1\r\nHost: x\r\n{head}"
                          f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self.addCleanup(first.close)
        self.provider.wait_stats(lambda s: s["requests"] == 1, "the first at the provider")
        return first

    def together(self, count, call):
        """The answers to `call(n)`, all at once."""
        answers = [None] * count

        def run(n):
            answers[n] = call(n)
        threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers


class OneProcess(OnceCase):
    def test_the_same_result_under_the_new_id(self):
        gateway = self.start()
        first, second = (self.once(gateway, id=id) for id in (1, "two"))
        self.assertEqual(first.status, 200)
        self.assertEqual(second.json(), {**first.json(), "id": "two"})
        self.assertEqual(self.asked(), 1)
        self.assertNotEqual(first.headers["sluice-request-id"], second.headers["sluice-request-id"])

    def test_many_at_once_are_one_call_and_one_charge(self):
        count = 200 if SANITIZED else 1000
        gateway = self.start("--latency", "5s" if SANITIZED else "3s", workers=4)
        answers = self.together(count, lambda n: self.once(gateway, id=n, timeout_s=90))
        self.assertEqual({answer.status for answer in answers}, {200})
        self.assertEqual([answer.json()["id"] for answer in answers], list(range(count)))
        self.assertEqual(len({str(answer.json()["result"]) for answer in answers}), 1)
        self.assertEqual(self.asked(), 1)
        usage = answers[0].json()["result"]["_meta"]["sluice/usage"]
        metrics = gateway.metrics_after(count)
        self.assertEqual(metrics.sum("sluice_tokens_total", tenant="acme"),
                         usage["input_tokens"] + usage["output_tokens"])
        self.assertEqual(metrics.sum("sluice_requests_total", tenant="acme", outcome="ok"), count)
        self.assertEqual(metrics.sum("sluice_once_requests_total", result="first"), 1)
        self.assertEqual(metrics.sum("sluice_once_requests_total", result="answered"), count - 1)

    def test_another_body_is_a_conflict(self):
        gateway = self.start()
        self.assertEqual(self.once(gateway).status, 200)
        self.assert_error(self.once(gateway, text="other"), 409, 409, "duplicate_conflict")
        self.assertEqual(self.once(gateway, key="l", text="other").status, 200)
        self.assertEqual(self.asked(), 2)

    def test_the_way_of_telling_is_not_part_of_the_body(self):
        gateway = self.start()
        first = self.once(gateway)
        stream = self.once(gateway, headers={"Accept": "text/event-stream"}, _meta={"progressToken": 3}, id=2)
        self.assertEqual(stream.headers["content-type"], "text/event-stream")
        last = stream.body.decode().rstrip("\n").split("data: ")[-1]
        self.assertEqual(harness.json.loads(last), {**first.json(), "id": 2})
        self.assertEqual(self.asked(), 1)

    def test_a_key_is_its_tenants_and_servers(self):
        gateway = self.start()
        self.assertEqual(self.once(gateway).status, 200)
        for key in (OTHER_KEY, SERVER_KEY):
            self.assertEqual(gateway.sample("mine", {"Idempotency-Key": "k"}, key=key).status, 200)
        self.assertEqual(self.asked(), 3)

    def test_a_failure_is_everybodys_and_then_forgotten(self):
        gateway = self.start("--default", "error-529-first-1-latency-2s", workers=2)
        answers = self.together(20, lambda n: self.once(gateway, id=n))
        self.assertEqual({answer.status for answer in answers}, {502})
        for n, answer in enumerate(answers):
            error = self.assert_error(answer, 502, -32011, "provider_unavailable")
            self.assertEqual(answer.json()["id"], n, error)
        self.assertEqual(self.asked(), 1)
        self.assertEqual(self.once(gateway).status, 200)
        self.assertEqual(self.asked(), 2)

    def test_when_the_first_leaves_the_next_one_goes_on(self):
        gateway = self.start("--default", "hang-first-1", workers=2)
        first = self.leaver(gateway)
        answers, thread = self.background(lambda: self.once(gateway, id=2))
        harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 2, "the second waits")
        self.assertEqual(self.asked(), 1)
        first.close()
        thread.join(harness.PATIENCE_S)
        self.assertEqual(answers[0].status, 200)
        self.assertEqual(answers[0].json()["id"], 2)
        self.assertEqual(self.asked(), 2)

    def test_who_waits_keeps_its_own_deadline(self):
        gateway = self.start("--default", "hang")
        _, first = self.background(lambda: self.once(gateway, headers={"Sluice-Timeout": "4000"}))
        self.provider.wait_stats(lambda s: s["requests"] == 1, "the first at the provider")
        answer = self.once(gateway, id=2, headers={"Sluice-Timeout": "300"})
        self.assert_error(answer, 504, -32001, "deadline")
        first.join()
        self.assertEqual(self.asked(), 1)

    def test_who_has_more_time_than_the_first_goes_on_in_its_place(self):
        gateway = self.start("--default", "hang-first-1", workers=2)
        answers, first = self.background(lambda: self.once(gateway, headers={"Sluice-Timeout": "1500"}))
        self.provider.wait_stats(lambda s: s["requests"] == 1, "the first at the provider")
        short, second = self.background(lambda: self.once(gateway, id=2, headers={"Sluice-Timeout": "1600"}))
        harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 2, "the second waits")
        third = self.once(gateway, id=3)
        first.join(), second.join()
        for answer in (answers[0], short[0]):  # what is left to the second is not worth a call
            self.assert_error(answer, 504, -32001, "deadline")
        self.assertEqual((third.status, third.json()["id"]), (200, 3))
        self.assertEqual(self.asked(), 2)

    def test_what_is_too_long_is_not_kept(self):
        gateway = self.start("--size", "70000")
        self.assertEqual(self.once(gateway).status, 200)
        self.assert_error(self.once(gateway), 409, 409, "duplicate_done")
        self.assertEqual(self.asked(), 1)

    def test_a_key_has_to_look_like_one(self):
        gateway = self.start()
        for key in ("x" * 129, "two words", ""):
            self.assert_error(self.once(gateway, key), 400, -32602, "idempotency_key_invalid")
        self.assertEqual(self.once(gateway, "x" * 128).status, 200)


class InASession(OnceCase):
    """The JSON-RPC id is the key."""

    def begin(self, gateway):
        answer = gateway.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
        return {"Mcp-Session-Id": answer.headers["mcp-session-id"]}

    def test_an_id_is_answered_once(self):
        gateway = self.start(workers=2)
        session = self.begin(gateway)
        first, second = (gateway.sample("hello", session, id=7) for _ in range(2))
        self.assertEqual(first.json(), second.json())
        self.assert_error(gateway.sample("other", session, id=7), 409, 409, "duplicate_conflict")
        self.assertEqual(gateway.sample("other", session, id="7").status, 200)
        self.assertEqual(gateway.sample("other", self.begin(gateway), id=7).status, 200)
        self.assertEqual(self.asked(), 3)

    def test_a_copy_is_called_off_with_the_first(self):
        gateway = self.start("--default", "hang", workers=2)
        session = self.begin(gateway)
        calls = [self.background(lambda: gateway.sample("hello", session, id=7)) for _ in range(6)]
        harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 6, "all of them")
        self.provider.wait_stats(lambda s: s["requests"] == 1, "one at the provider")
        gateway.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}, session)
        for answers, thread in calls:
            thread.join(harness.PATIENCE_S)
            self.assertEqual(answers[0].status, 202)
        self.assertEqual(self.asked(), 1)


@unittest.skipUnless(redis_server.available(), "redis-server is not installed")
class SeveralGateways(OnceCase):
    """Two of them, one Redis, one provider."""

    def pair(self, *sim, deadline="2s"):
        self.redis = redis_server.Redis(self)
        first = self.start(*sim, store={"kind": "redis", "url": self.redis.url, "deadline": deadline})
        second = self.gateway({key: value for key, value in first.settings.items() if key not in ("listen", "admin")})
        for gateway in (first, second):
            harness.wait_for(lambda g=gateway: g.metrics().sum("sluice_limiter_mode", mode="shared"), "Redis in use")
        return first, second

    def later(self, gateway, **options):
        """As once(), when the end of the first, which is written to Redis behind its answer, has come there."""
        def ended():
            answer = self.once(gateway, **options)
            return answer if b"duplicate_in_flight" not in answer.body else None
        return harness.wait_for(ended, "the end of the first in Redis")

    def test_the_result_is_known_elsewhere(self):
        first, second = self.pair()
        one, two = self.once(first, id=1), self.later(second, id=2)
        self.assertEqual(two.json(), {**one.json(), "id": 2})
        self.assertEqual(self.once(second, id=3).json(), {**one.json(), "id": 3})
        self.assert_error(self.once(second, text="other"), 409, 409, "duplicate_conflict")
        self.assertEqual(self.asked(), 1)

    def test_what_is_in_flight_elsewhere_is_not_waited_for(self):
        first, second = self.pair("--latency", "4s")
        answers, thread = self.background(lambda: self.once(first))
        self.provider.wait_stats(lambda s: s["requests"] == 1, "the first at the provider")
        self.assert_error(self.once(second), 409, 409, "duplicate_in_flight")
        self.assert_error(self.once(second, text="other"), 409, 409, "duplicate_conflict")
        thread.join()
        self.assertEqual(answers[0].status, 200)
        self.assertEqual(self.later(second).status, 200)
        self.assertEqual(self.asked(), 1)

    def test_who_has_more_time_than_a_first_elsewhere_asks_again(self):
        """Its claim is given back as after any failure."""
        first, second = self.pair("--default", "hang-first-1")
        answer = self.once(first, headers={"Sluice-Timeout": "300"})
        self.assert_error(answer, 504, -32001, "deadline")
        self.assertEqual(self.later(second).status, 200)
        self.assertEqual(self.asked(), 2)

    def test_a_failure_is_forgotten_everywhere(self):
        first, second = self.pair("--default", "error-529-first-1")
        self.assertEqual(self.once(first).status, 502)
        self.assertEqual(self.later(second).status, 200)
        self.assertEqual(self.asked(), 2)

    def test_who_leaves_leaves_it_to_any_gateway(self):
        first, second = self.pair("--default", "hang-first-1")
        session = {"Mcp-Session-Id": first.post({"jsonrpc": "2.0", "id": 0, "method": "initialize",
                                                 "params": {}}).headers["mcp-session-id"]}
        _, thread = self.background(lambda: first.sample("hello", session, id=7))
        self.provider.wait_stats(lambda s: s["requests"] == 1, "the first at the provider")
        self.assert_error(second.sample("hello", session, id=7), 409, 409, "duplicate_in_flight")
        second.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}, session)
        thread.join()

        def answered():
            return second.sample("hello", session, id=7).status == 200
        harness.wait_for(answered, "an answer at the second gateway")
        self.assertEqual(self.asked(), 2)

    def leaves_once_it_is_answered(self, http2):
        """What an answer leaves to its loop is told before the answer goes out: that may take a while."""
        first, second = self.pair("--latency", "1s", "--default", "calls-1", deadline="10s")
        tools = [{"name": f"look.{n}", "inputSchema": {"type": "object"}} for n in range(20)]
        asked = {"tools": tools, "systemPrompt": "x" * 9000}
        client = self.leaver(first, http2, **asked)
        self.redis.stop()
        harness.wait_for(lambda: first.metrics().sum("sluice_provider_attempts_total") == 1, "the provider's answer")
        client.close()
        harness.wait_for(lambda: first.metrics().sum("sluice_in_flight") == 0, "the end of the first")
        copy = self.once(first, id=2, **asked)
        self.assert_result(copy)
        self.assertEqual(copy.json()["id"], 2)
        self.assertIn("look.", copy.body.decode())
        self.redis.go_on()
        self.assertEqual(self.later(second, id=3, **asked).json(), {**copy.json(), "id": 3})
        self.assertEqual(self.asked(), 1)

    def test_who_leaves_once_it_is_answered_leaves_the_answer(self):
        self.leaves_once_it_is_answered(http2=False)

    def test_so_does_a_stream_whose_body_was_long(self):
        self.leaves_once_it_is_answered(http2=True)

    def test_what_is_too_long_is_known_to_be_done(self):
        first, second = self.pair("--size", "70000")
        self.assertEqual(self.once(first).status, 200)
        self.assert_error(self.later(second), 409, 409, "duplicate_done")

    def test_without_redis_each_process_knows_its_own(self):
        first, second = self.pair()
        one = self.once(first, id=1)
        self.redis.kill()
        harness.wait_for(lambda: second.metrics().sum("sluice_limiter_mode", mode="away"), "Redis away")
        self.assertEqual(self.once(first, id=2).json(), {**one.json(), "id": 2})
        self.assertEqual(self.asked(), 1)
        self.assertEqual(first.metrics().sum("sluice_state_away_total", what="claim"), 0)
        self.assert_result(self.once(second, id=3))
        self.assertEqual(second.metrics().sum("sluice_state_away_total", what="claim"), 1)
        self.assertEqual(self.asked(), 2)

    def test_what_was_answered_while_redis_was_away_is_known_to_be_done_when_it_is_back(self):
        first, second = self.pair()
        self.redis.kill()
        for gateway in (first, second):
            harness.wait_for(lambda g=gateway: g.metrics().sum("sluice_limiter_mode", mode="away"), "Redis away")
        self.assert_result(self.once(first))
        self.redis.start()
        for gateway in (first, second):
            harness.wait_for(lambda g=gateway: g.metrics().sum("sluice_limiter_mode", mode="shared"), "Redis in use")
        harness.wait_for(lambda: self.redis.ask("KEYS", "sluice:once:1:*"), "what Redis was told")
        self.assert_error(self.once(second), 409, 409, "duplicate_done")
        self.assertEqual(self.asked(), 1)

    def script(self):
        """Says things to once.lua, in a Redis of its own."""
        self.redis = redis_server.Redis(self)
        with open(SCRIPT, encoding="utf-8") as file:
            script = file.read()

        def say(what, body, gateway, mark="", claim="1", lives=60000, told=""):
            owner = gateway * 5 + claim * 3
            return self.redis.ask("EVAL", script, "1", "k", what, body * 32, owner, lives, told, mark)
        return say

    def test_a_gateway_may_claim_in_other_words_what_it_has_claimed(self):
        say = self.script()
        self.assertEqual([say("claim", "a", "1"), say("claim", "b", "1")], ["L", "L"])
        self.assertEqual([say("claim", "a", "2"), say("claim", "b", "2")], ["C", "E"])
        say("drop", "a", "1")  # which is not what it has claimed by now
        self.assertEqual(say("claim", "b", "2"), "E")
        say("drop", "b", "1")
        self.assertEqual(say("claim", "b", "2"), "L")
        self.assertEqual(say("claim", "b", "1"), "E")
        say("drop", "b", "2")
        # while its words are a guess nobody else's are a conflict, nor its own
        self.assertEqual([say("claim", "a", "1", "?"), say("claim", "b", "2"), say("claim", "a", "2")], ["L", "E", "E"])
        self.assertEqual([say("claim", "b", "1"), say("claim", "b", "2"), say("claim", "c", "2")], ["L", "E", "C"])
        say("drop", "b", "1")
        # what is told of a claim comes late, when the gateway has made another
        self.assertEqual([say("claim", "a", "1"), say("claim", "a", "1", claim="2")], ["L", "L"])
        say("drop", "a", "1")
        self.assertEqual(say("claim", "a", "2"), "E")
        say("done", "a", "1")
        self.assertEqual(say("claim", "a", "2"), "E")
        say("drop", "a", "1", claim="2")
        # so does a claim, of one who has left since: the later one is as it was
        self.assertEqual([say("claim", "a", "1", claim="2"), say("claim", "b", "1")], ["L", "L"])
        say("drop", "b", "1")
        self.assertEqual([say("claim", "a", "2"), say("claim", "b", "2")], ["E", "C"])
        say("drop", "a", "1", claim="2")
        # the numbers begin anew
        self.assertEqual([say("claim", "a", "1", claim="\0"), say("claim", "b", "1", claim="\x7f")], ["L", "L"])
        say("drop", "b", "1", claim="\x7f")
        self.assertEqual(say("claim", "a", "2"), "L")
        say("drop", "a", "2")
        # a right guess ends like anything that was claimed
        self.assertEqual([say("claim", "a", "1", "?"), say("done", "a", "1")], ["L", "L"])
        self.assertEqual([say("claim", "a", "2"), say("claim", "b", "2")], ["D", "C"])

    def test_a_claim_whose_gateways_key_is_gone_is_another_gateways(self):
        say, old = self.script(), "4000"
        self.redis.ask("SET", "sluice:gateway:1:" + "32" * 5, "1")  # the second's; there is no key of the first

        def claimed(mark, age=0, lives=60000):
            """The first has claimed it so long ago; what the second is told."""
            self.redis.ask("DEL", "k")
            self.assertEqual(say("claim", "a", "1", mark, lives=lives), "L")
            self.redis.ask("PEXPIRE", "k", lives - age)
            return say("claim", "a", "2", "-60000", told=old)
        self.assertEqual(claimed("-60000", 5000), "L")
        self.assertEqual(claimed("?60000", 5000), "L")
        self.assertEqual(claimed("-600000", 5000, 600000), "L")
        for name, answer in (("a claim that is not old enough", claimed("-60000", 3000)),
                             ("that of a version without keys", claimed("", 5000)),
                             ("likewise, a guess", claimed("?", 5000))):
            self.assertEqual(answer, "E", name)
        # whoever may not judge, or whose own key is not there either
        claimed("-60000")
        self.redis.ask("PEXPIRE", "k", 55000)
        self.assertEqual(say("claim", "a", "2", "-60000"), "E")
        self.assertEqual(say("claim", "a", "3", "-60000", told=old), "E")
        self.redis.ask("SET", "sluice:gateway:1:" + "31" * 5, "1")
        self.assertEqual(say("claim", "a", "2", "-60000", told=old), "E")
        self.redis.ask("DEL", "sluice:gateway:1:" + "31" * 5)
        # any bytes are names, and another body is no conflict
        self.assertEqual(say("claim", "b", "2", "-60000", told=old), "L")
        self.redis.ask("DEL", "k")
        self.assertEqual(say("claim", "a", "\n", "-60000"), "L")
        self.redis.ask("PEXPIRE", "k", 55000)
        self.redis.ask("SET", "sluice:gateway:1:" + "0a" * 5, "1")
        self.assertEqual(say("claim", "a", "2", "-60000", told=old), "E")
        self.redis.ask("DEL", "sluice:gateway:1:" + "0a" * 5)
        self.assertEqual(say("claim", "a", "2", "-60000", told=old), "L")

    def test_only_the_present_owner_of_a_claim_ends_it(self):
        say = self.script()
        self.redis.ask("SET", "sluice:gateway:1:" + "32" * 5, "1")
        say("claim", "a", "1", "-60000")
        self.redis.ask("PEXPIRE", "k", 50000)
        self.assertEqual(say("claim", "a", "2", "-60000", told="4000"), "L")
        taken = self.redis.ask("GET", "k")
        say("done", "a", "1", told='"result":1')  # it was not dead
        say("drop", "a", "1")
        self.assertEqual(say("claim", "a", "1", "-60000"), "E")
        self.assertEqual(self.redis.ask("GET", "k"), taken)
        say("done", "a", "2", told='"result":2')
        say("done", "a", "1", told='"result":1')
        say("drop", "a", "1")
        self.assertEqual([say("claim", "a", gateway) for gateway in "123"], ['A"result":2'] * 3)

    def abandoned(self, provider):
        """Two gateways, of which the first has a call at the provider; its answer, some time."""
        self.first, self.second = self.pair("--default", provider)
        answers, thread = self.background(lambda: self.left(self.first))
        self.provider.wait_stats(lambda s: s["requests"] == 1, "the first at the provider")
        self.assert_error(self.once(self.second), 409, 409, "duplicate_in_flight")
        return answers, thread

    def left(self, gateway):
        try:
            return self.once(gateway)
        except OSError as error:
            return error

    def test_a_copy_is_made_within_seconds_once_its_gateway_was_killed(self):
        _, thread = self.abandoned("hang-first-1")
        self.first.kill()
        began = time.monotonic()
        copy = self.later(self.second)
        took = time.monotonic() - began
        thread.join()
        self.assert_result(copy)
        self.assertLess(took, 5)
        self.assertEqual(self.asked(), 2)
        self.assertEqual(self.once(self.second, id=3).json(), {**copy.json(), "id": 3})

    def test_a_gateway_that_was_stopped_ends_no_claim_that_was_taken_over(self):
        """It has asked the provider, and gets its answer; but what is known of the request is the other's."""
        answers, thread = self.abandoned("latency-1s")
        server = self.first.server_pid()
        os.kill(server, signal.SIGSTOP)
        self.addCleanup(os.kill, server, signal.SIGCONT)
        copy = self.later(self.second)
        self.assert_result(copy)
        key = harness.wait_for(lambda: self.redis.ask("KEYS", "sluice:once:1:*"), "the record")[0]
        record = harness.wait_for(lambda: self.is_done(key), "the second's answer")
        os.kill(server, signal.SIGCONT)
        thread.join()
        self.assert_result(answers[0])
        harness.wait_for(lambda: self.first.metrics().sum("sluice_in_flight") == 0, "the end of the first")
        self.assert_result(self.once(self.first, key="another"))  # on the same connection to Redis
        self.assertEqual(self.redis.ask("GET", key), record)
        self.assertEqual(self.asked(), 3)

    def is_done(self, key):
        record = self.redis.ask("GET", key)
        return record if record.startswith("D") else None

    def test_a_gateways_key_is_there_as_long_as_it_is(self):
        first, second = self.pair()

        def keys():
            return set(self.redis.ask("KEYS", "sluice:gateway:1:*"))
        both = harness.wait_for(lambda: len(keys()) == 2 and keys(), "a key of each")
        self.redis.ask("FLUSHALL")
        harness.wait_for(lambda: keys() == both, "the keys, again")
        self.redis.kill()
        self.redis.start()
        harness.wait_for(lambda: keys() == both, "the keys in another Redis")
        first.kill()
        harness.wait_for(lambda: len(keys()) == 1, "the end of the first one's", 5)
        self.assertTrue(second.running)

    def test_another_script_cache_makes_no_difference(self):
        first, second = self.pair()
        self.assertEqual(self.once(first, key="a").status, 200)
        self.redis.ask("SCRIPT", "FLUSH")
        one = self.once(first, key="b")
        self.assertEqual(self.once(second, key="b", id=9).json(), {**one.json(), "id": 9})
        self.assertEqual(self.asked(), 2)


if __name__ == "__main__":
    harness.main()
