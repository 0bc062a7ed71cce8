#!/usr/bin/env python3
"""Tool loops by the real binary: limits, forks, and thoughts that go back to the model. ctest: timeout=240"""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import redis_server
import thinkers

OTHER_KEY, THIRD_KEY = "sk-other-0123456789abcdef", "sk-third-0123456789abcdef"
TOOLS = [{"name": "look", "description": "looks", "inputSchema": {"type": "object", "properties": {"round": {}}}}]
ASK = {"role": "user", "content": {"type": "text", "text": "look around"}}


def rewritten(content):
    """As a server writes what it has parsed: other white space, escapes and order."""
    return json.loads(json.dumps(content, sort_keys=True))


class LoopCase(harness.Case):
    def thinker(self, dialect="anthropic", **options):
        thinker = thinkers.KINDS[dialect](**options)
        self.addCleanup(thinker.close)
        return thinker

    def start(self, thinker, dialect="anthropic", limits=None, plan=None, **changes):
        settings = self.settings(thinker, dialect, limits, plan, **changes)
        return self.gateway(settings)

    def settings(self, thinker, dialect="anthropic", limits=None, plan=None, **changes):
        settings = harness.config(thinker, **changes)
        settings.setdefault("retries", {"attempts": 2})
        settings["providers"] = {"thinker": {**harness.provider(thinker, dialect), "keys": [thinker.key]}}
        profile = {"replay_reasoning": dialect != "anthropic"}
        settings["models"] = [harness.model("thinking", "thinker", profile=profile)]
        if isinstance(thinker, thinkers.Spread):
            self.spread_out(settings, thinker)
        plan = settings["plans"]["standard"] = {**settings["plans"]["standard"], **(plan or {})}
        plan["models"] = {"allow": ["*"]}
        plan["limits"] = {**plan["limits"], "tool_rounds": 100, "loop_tokens": 1000000, **(limits or {})}
        acme = settings["tenants"][0]
        acme["keys"].append({"sha256": harness.sha256(OTHER_KEY), "server": "another-server"})
        settings["tenants"].append(harness.tenant("third", THIRD_KEY))
        return settings

    def spread_out(self, settings, thinker):
        """Many endpoints, and two models: one is cheaper while there is little to read."""
        settings["providers"]["thinker"].update(endpoints=[{"url": url} for url in thinker.urls],
                                                breaker={"failures": 1, "open": "1h", "open_max": "1h"})
        settings["models"] = [harness.model("reader", "thinker", price={"input": 1, "output": 10}),
                              harness.model("writer", "thinker", price={"input": 2, "output": 5})]

    def ask(self, gateway, messages, streamed=False, key=harness.KEY, headers=None, id=1, **params):
        params = {"messages": messages, "maxTokens": 1000, "tools": TOOLS, **params}
        headers = dict(headers or {})
        if streamed:
            params["_meta"] = {"progressToken": 1}
            headers["Accept"] = "application/json, text/event-stream"
        return gateway.post({"jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": params},
                            headers, key=key)

    def result_of(self, answer):
        self.assertEqual(answer.status, 200, answer)
        if answer.headers["content-type"].startswith("text/event-stream"):
            last = [line for line in answer.body.decode().splitlines() if line.startswith("data: ")][-1]
            message = json.loads(last[len("data: "):])
        else:
            message = answer.json()
        self.assertIn("result", message)
        return message["result"]

    def adjustments(self, result):
        return result["_meta"].get("sluice/adjustments", [])

    def results_of(self, content):
        return {"role": "user", "content": [
            {"type": "tool_result", "toolUseId": block["id"], "content": [{"type": "text", "text": "nothing"}]}
            for block in content if block["type"] == "tool_use"]}

    def round(self, gateway, messages, **options):
        """The history after one more round, or the last result where there is none."""
        result = self.result_of(self.ask(gateway, messages, **options))
        if result["stopReason"] != "toolUse":
            return None, result
        return messages + [{"role": "assistant", "content": rewritten(result["content"])},
                           self.results_of(result["content"])], result

    def loop(self, gateway, messages=None, rounds=None, **options):
        messages = messages or [ASK]
        while rounds is None or rounds > 0:
            longer, result = self.round(gateway, messages, **options)
            if longer is None:
                return messages, result
            messages, rounds = longer, None if rounds is None else rounds - 1
        return messages, result


class Thoughts(LoopCase):
    def test_ten_rounds_with_all_thoughts_in_every_dialect(self):
        for dialect in thinkers.KINDS:
            for streamed in (False, True):
                with self.subTest(dialect=dialect, streamed=streamed):
                    thinker = self.thinker(dialect)
                    gateway = self.start(thinker, dialect)
                    messages, result = self.loop(gateway, streamed=streamed)
                    self.assertEqual(harness.text_of(result), "10 rounds")
                    self.assertEqual(thinker.problems, [])
                    self.assertEqual(thinker.given_back, list(range(11)))
                    self.assertEqual(self.adjustments(result), [])
                    self.assertNotIn("thought", json.dumps(messages))
                    gateway.stop()

    def test_ten_rounds_with_all_details_of_openrouter(self):
        for streamed in (False, True):
            with self.subTest(streamed=streamed):
                thinker = thinkers.OpenRouter()
                self.addCleanup(thinker.close)
                gateway = self.start(thinker, "openai")
                messages, result = self.loop(gateway, streamed=streamed)
                self.assertEqual(harness.text_of(result), "10 rounds")
                self.assertEqual((thinker.problems, thinker.given_back), ([], list(range(11))))
                self.assertEqual(self.adjustments(result), [])
                self.assertNotIn("thought", json.dumps(messages))
                gateway.stop()

    def test_forks_and_retries_have_them_too(self):
        thinker = self.thinker()
        gateway = self.start(thinker)
        messages, _ = self.loop(gateway, rounds=3)
        for _ in range(3):
            fork, result = self.loop(gateway, messages)
            self.assertEqual((harness.text_of(result), len(fork)), ("10 rounds", 21))
        self.assertEqual(thinker.problems, [])

    def test_another_workers_are_known(self):
        thinker = self.thinker()
        gateway = self.start(thinker, workers=4, drain="10s")  # to end four under a sanitizer takes its time
        _, result = self.loop(gateway)
        self.assertEqual(harness.text_of(result), "10 rounds")
        self.assertEqual(thinker.given_back, list(range(11)))

    def test_a_changed_history_goes_on_without_any(self):
        thinker = self.thinker(needs_all=False)
        gateway = self.start(thinker)
        messages, _ = self.loop(gateway, rounds=3)
        messages[1]["content"][-1]["input"]["round"] = 7
        result = self.result_of(self.ask(gateway, messages))
        self.assertEqual(thinker.given_back[-1], 0)
        self.assertIn("thinking_not_replayed", self.adjustments(result))
        self.assertEqual(thinker.problems, [])

    def test_nobody_else_has_them(self):
        thinker = self.thinker(needs_all=False)
        gateway = self.start(thinker)
        messages, _ = self.loop(gateway, rounds=2)
        for key in (OTHER_KEY, THIRD_KEY):
            self.result_of(self.ask(gateway, messages, key=key))
            self.assertEqual(thinker.given_back[-1], 0)
        self.result_of(self.ask(gateway, messages))
        self.assertEqual(thinker.given_back[-1], 2)

    def test_what_cannot_be_kept_is_said(self):
        for blocks in ({"bytes": 0}, {"each": "1KiB"}):
            with self.subTest(blocks=blocks):
                thinker = self.thinker(needs_all=False, length=1024)
                gateway = self.start(thinker, store={"kind": "memory", "blocks": blocks})
                messages, result = self.loop(gateway, rounds=1)
                self.assertIn("reasoning_not_saved", self.adjustments(result))
                self.result_of(self.ask(gateway, messages))
                self.assertEqual(thinker.given_back[-1], 0)
                gateway.stop()

    def test_what_was_mended_for_a_schema_is_not_kept(self):
        thinker = self.thinker(needs_all=False)
        gateway = self.start(thinker)
        for least, rounds, kept in ((1, 1, 0), (0, 0, 1)):  # the second answer does, or the first one
            schema = {"type": "object", "properties": {"round": {"minimum": least}}}
            result = self.result_of(self.ask(gateway, [ASK], toolChoice={"mode": "required"},
                                             tools=[{"name": "__schema__", "inputSchema": schema}]))
            self.assertEqual((result["content"][0]["input"]["round"], self.adjustments(result)), (rounds, []))
            self.assertEqual(gateway.metrics().sum("sluice_state_records", kind="blocks"), kept)


class Forgotten(LoopCase):
    """A provider that says of its own thoughts that they are another conversation's."""
    ways = [(dialect, refusal, "thinking_not_replayed" if dialect == "anthropic" else "reasoning_not_replayed")
            for dialect, refusals in thinkers.REFUSALS.items() for refusal in refusals]
    if os.environ.get("SLUICE_SANITIZE"):
        ways = ways[:1]

    def refused_once(self, gateway, thinker, messages, refusal, adjustment):
        """The history after a round whose thoughts were refused, and which was sent again without."""
        thinker.deaf = refusal
        answer = self.ask(gateway, messages)
        result = self.result_of(answer)
        thinker.deaf = None
        self.assertEqual(thinker.given_back[-2:], [(len(messages) - 1) // 2, 0])
        self.assertEqual(thinker.problems, [str(refusal)])
        self.assertEqual(self.adjustments(result), [adjustment])
        self.assertEqual(result["_meta"]["sluice/usage"]["input_tokens"], 100)  # of the one that was answered
        self.assertEqual(result["_meta"]["sluice/route"]["attempts"], 2)
        line = gateway.log(answer.headers["sluice-request-id"])
        self.assertEqual(line["attempt_classes"], ["provider_rejected", "ok"])
        return messages + [{"role": "assistant", "content": rewritten(result["content"])},
                           self.results_of(result["content"])]

    def goes_on_without(self, gateway, thinker, messages):
        """What was thought since then, without the forgotten, is in its place again."""
        asked = len(thinker.given_back)
        _, result = self.loop(gateway, messages)
        self.assertEqual(harness.text_of(result), "10 rounds")
        self.assertEqual(thinker.given_back[asked:], list(range(1, 8)))
        self.assertEqual(len(thinker.problems), 1)

    def refused_for_good(self, gateway, thinker, messages, refusal):
        """What is refused without them, too, is not sent a third time, and then there is nothing to leave out."""
        asked = len(thinker.given_back)
        thinker.deaf, thinker.sulks = refusal, True
        for given_back in ([2, 0], [2, 0, 0]):
            self.assert_error(self.ask(gateway, messages), 422, -32013, "provider_rejected")
            self.assertEqual(thinker.given_back[asked:], given_back)

    def test_what_a_provider_does_not_take_is_sent_once_more_without_and_forgotten(self):
        for dialect, refusal, adjustment in self.ways:
            with self.subTest(dialect=dialect, refusal=str(refusal)):
                thinker = self.thinker(dialect, needs_all=False)
                gateway = self.start(thinker, dialect, retries={"attempts": 5})
                messages, _ = self.loop(gateway, rounds=3)
                messages = self.refused_once(gateway, thinker, messages, refusal, adjustment)
                self.goes_on_without(gateway, thinker, messages)
                messages, _ = self.loop(gateway, rounds=2)
                self.refused_for_good(gateway, thinker, messages, refusal)
                gateway.stop()

    @unittest.skipUnless(redis_server.available(), "redis-server is not installed")
    def test_and_forgotten_by_all_gateways(self):
        redis = redis_server.Redis(self)
        store = {"kind": "redis", "url": redis.url, "deadline": "1s"}
        refusal = thinkers.REFUSALS["anthropic"][0]
        thinker = self.thinker(needs_all=False)
        first, second = (self.start(thinker, store=store) for _ in range(2))
        for gateway in (first, second):
            harness.wait_for(lambda: gateway.metrics().sum("sluice_limiter_mode", mode="shared") == 1, "Redis decides")
        messages, _ = self.loop(first, rounds=3)
        messages = self.refused_once(second, thinker, messages, refusal, "thinking_not_replayed")
        harness.wait_for(lambda: sorted(redis.ask("STRLEN", key) > 0 for key in redis.ask("KEYS", "sluice:state:*b:*")) ==
                         [False, False, False, True], "only the new one is there")
        for gateway in (first, second):  # the one that wrote them, too
            self.goes_on_without(gateway, thinker, messages)


class Places(LoopCase):
    def spread(self, **options):
        thinker = thinkers.Spread(4, **options)
        self.addCleanup(thinker.close)
        return thinker

    def route_of(self, gateway, answer):
        return gateway.log(answer.headers["sluice-request-id"])["route"]

    def test_every_round_goes_where_the_first_one_went(self):
        thinker = self.spread()
        gateway = self.start(thinker)
        for _ in range(3):  # each loop begins where routing says
            _, result = self.loop(gateway)
            self.assertEqual(harness.text_of(result), "10 rounds")
            self.assertEqual(len(set(thinker.went[-11:])), 1, thinker.went)
        self.assertGreater(len(set(thinker.went)), 1)
        self.assertEqual(thinker.problems, [])

    def test_a_loop_that_grows_keeps_its_model(self):
        thinker = self.spread(needs_all=False)
        gateway = self.start(thinker)
        cheap = {"modelPreferences": {"costPriority": 1}}
        messages, _ = self.loop(gateway, rounds=1, **cheap)
        messages[-1]["content"][0]["content"][0]["text"] = "much to read " * 10000
        answer = self.ask(gateway, messages, **cheap)
        self.assertEqual(self.route_of(gateway, answer)["held"], "endpoint")
        answer = self.ask(gateway, messages, key=OTHER_KEY, **cheap)  # whose loop it is not
        self.assertNotIn("held", self.route_of(gateway, answer))
        self.assertEqual([model for _, model in thinker.went], ["writer", "writer", "reader"])

    def test_explain_says_why(self):
        thinker = self.spread(needs_all=False)
        gateway = self.start(thinker)
        messages, _ = self.loop(gateway, rounds=1, modelPreferences={"hints": [{"name": "writer"}]})
        answer = self.ask(gateway, messages)
        line = json.dumps(gateway.log(answer.headers["sluice-request-id"]))
        run = [harness.BIN, "explain", "--config", gateway.config_path, "--log", line]
        said = json.loads(subprocess.run(run + ["--format", "json"], capture_output=True, check=True).stdout)
        self.assertEqual((said["winner"], said["log"]["same_model"], said["log"]["held"]), ("writer", True, "endpoint"))
        self.assertIn("held for its tool loop", subprocess.run(run, capture_output=True, check=True, text=True).stdout)

    def test_a_hint_for_another_model_is_heeded(self):
        thinker = self.spread(needs_all=False)
        gateway = self.start(thinker)
        messages, _ = self.loop(gateway, rounds=1, modelPreferences={"hints": [{"name": "writer"}]})
        answer = self.ask(gateway, messages, modelPreferences={"hints": [{"name": "reader"}]})
        self.assertEqual([model for _, model in thinker.went], ["writer", "reader"])
        self.assertNotIn("held", self.route_of(gateway, answer))

    def test_where_its_endpoint_is_down_it_stays_at_another(self):
        thinker = self.spread()
        gateway = self.start(thinker)
        messages, _ = self.loop(gateway, rounds=3)
        first = thinker.went[0][0]
        thinker.down.add(first)
        messages, result = self.loop(gateway, messages)
        self.assertEqual(harness.text_of(result), "10 rounds")
        self.assertEqual(thinker.problems, ["overloaded"])  # nobody but the gateway has noticed
        endpoints = [endpoint for endpoint, _ in thinker.went]
        self.assertEqual(endpoints[:4], [first] * 4)
        self.assertEqual(len(set(endpoints[4:])), 1)
        thinker.down.clear()  # a fork of what it was before goes on where that was not left alone
        self.round(gateway, messages[:3])
        self.assertNotEqual(thinker.went[-1][0], first)


class Limits(LoopCase):
    def test_the_last_round_answers_without_calls(self):
        thinker = self.thinker(rounds=100)
        gateway = self.start(thinker, limits={"tool_rounds": 4})
        messages, result = self.loop(gateway)
        self.assertEqual((harness.text_of(result), len(messages)), ("4 rounds", 9))
        self.assertIn("tool_rounds_final", self.adjustments(result))

    def test_a_shortened_history_does_not_shorten_the_loop(self):
        thinker = self.thinker(rounds=100, needs_all=False)
        gateway = self.start(thinker, limits={"tool_rounds": 4, "tool_rounds_action": "refuse"})
        messages, _ = self.loop(gateway, rounds=4)
        answer = self.ask(gateway, [ASK] + messages[-2:])
        self.assert_error(answer, 403, 403, "tool_rounds")

    def test_a_loop_has_its_tokens(self):
        thinker = self.thinker(rounds=100)
        gateway = self.start(thinker, limits={"loop_tokens": 400})
        messages, _ = self.loop(gateway, rounds=3)
        self.result_of(self.ask(gateway, messages))  # 360 were spent
        self.assert_error(self.ask(gateway, messages), 403, 403, "loop_tokens")  # by the fork as well
        self.assertEqual(self.ask(gateway, [ASK]).status, 200)

    def test_a_loop_has_its_money(self):
        thinker = self.thinker(rounds=100)
        gateway = self.start(thinker, limits={"loop_usd": 0.002})
        messages, _ = self.loop(gateway, rounds=3)
        self.result_of(self.ask(gateway, messages))  # 0.0018 were spent
        called = len(thinker.requests)
        answer = self.ask(gateway, messages)  # by the fork as well
        self.assert_error(answer, 403, 403, "loop_usd")
        self.assertEqual(answer.json()["error"]["data"],
                         {"reason": "loop_usd", "rule": "loop_usd", "spent": 0.0024, "allowed": 0.002})
        self.assertEqual(len(thinker.requests), called)
        self.assertEqual(gateway.log(answer.headers["sluice-request-id"])["error"], "loop_usd")
        self.assertEqual(self.ask(gateway, [ASK]).status, 200)
        self.assertEqual(gateway.metrics_after(6).sum("sluice_limit_decisions_total", limit="loop_usd",
                                                      decision="refused"), 1)

    def test_and_is_only_counted_where_limits_are_not_enforced(self):
        thinker = self.thinker(rounds=100)
        gateway = self.start(thinker, limits={"loop_usd": 0.001, "loop_tokens": 400, "enforce": False})
        messages, _ = self.loop(gateway, rounds=5)
        metrics = gateway.metrics_after(5)
        for limit, times in (("loop_usd", 2), ("loop_tokens", 1)):  # the first that is spent is told
            self.assertEqual(metrics.sum("sluice_limit_decisions_total", limit=limit, decision="would_refuse"), times)

    def test_calls_that_were_not_issued_here_are_counted(self):
        thinker = self.thinker(needs_all=False)
        gateway = self.start(thinker)
        messages, _ = self.loop(gateway, rounds=1)
        self.assertEqual(self.ask(gateway, messages, key=OTHER_KEY).status, 200)
        self.assertEqual(gateway.metrics_after(2).sum("sluice_unknown_tool_calls_total"), 1)
        self.assertEqual(self.ask(gateway, messages).status, 200)
        self.assertEqual(gateway.metrics_after(3).sum("sluice_unknown_tool_calls_total"), 1)

    def test_a_loop_is_its_sessions_own(self):
        thinker = self.thinker(needs_all=False)
        gateway = self.start(thinker, plan={"unknown_tool_calls": "refuse"})
        mine, another = ({"Mcp-Session-Id": gateway.post(
            {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}).headers["mcp-session-id"]} for _ in range(2))
        messages, _ = self.loop(gateway, rounds=1, headers=mine)
        for headers in (another, {}):
            self.assert_error(self.ask(gateway, messages, headers=headers, id=2), 403, 403, "unknown_tool_calls")
        self.result_of(self.ask(gateway, messages, headers=mine, id=2))
        self.assertEqual(thinker.given_back, [0, 1])

    def test_and_refused_where_the_plan_says_so(self):
        thinker = self.thinker(needs_all=False)
        gateway = self.start(thinker, plan={"unknown_tool_calls": "refuse"})
        messages, _ = self.loop(gateway, rounds=1)
        for key in (OTHER_KEY, THIRD_KEY):
            self.assert_error(self.ask(gateway, messages, key=key), 403, 403, "unknown_tool_calls")
        forged = json.loads(json.dumps(messages).replace(messages[1]["content"][-1]["id"], "call_forged"))
        self.assert_error(self.ask(gateway, forged), 403, 403, "unknown_tool_calls")
        self.assertEqual(self.ask(gateway, messages).status, 200)


@unittest.skipUnless(redis_server.available(), "redis-server is not installed")
class TwoGateways(LoopCase):
    """One Redis: a loop goes on where another gateway has left it."""

    def setUp(self):
        super().setUp()
        self.redis = redis_server.Redis(self)

    def start_one(self, thinker, dialect="anthropic", **options):
        store = {"kind": "redis", "url": self.redis.url, "deadline": "1s"}
        gateway = self.start(thinker, dialect, store=store, **options)
        harness.wait_for(lambda: gateway.metrics().sum("sluice_limiter_mode", mode="shared") == 1, "Redis decides")
        return gateway

    def test_a_loop_goes_on_at_another_when_its_gateway_is_killed(self):
        for dialect in thinkers.KINDS:
            with self.subTest(dialect=dialect):
                thinker = self.thinker(dialect)
                first, second = self.start_one(thinker, dialect), self.start_one(thinker, dialect)
                messages, _ = self.loop(first, rounds=5)
                first.kill()
                messages, result = self.loop(second, messages)
                self.assertEqual(harness.text_of(result), "10 rounds")
                self.assertEqual(thinker.problems, [])
                self.assertEqual(thinker.given_back, list(range(11)))

    def test_a_loop_goes_on_at_the_same_endpoint(self):
        thinker = thinkers.Spread(4)
        self.addCleanup(thinker.close)
        first, second = self.start_one(thinker), self.start_one(thinker)
        messages = [ASK]
        for turn in range(11):
            longer, result = self.round((first, second)[turn % 2], messages)
            messages = longer or messages
        self.assertEqual(harness.text_of(result), "10 rounds")
        self.assertEqual(len(set(thinker.went)), 1, thinker.went)

    def test_limits_are_those_of_both(self):
        thinker = self.thinker(rounds=100)
        first, second = (self.start_one(thinker, limits={"loop_usd": 0.002}) for _ in range(2))
        messages, _ = self.loop(first, rounds=3)
        self.result_of(self.ask(second, messages))  # 0.0018 were spent, and are 0.0024 now
        self.assert_error(self.ask(second, messages), 403, 403, "loop_usd")
        self.assert_error(self.ask(first, messages), 403, 403, "loop_usd")


if __name__ == "__main__":
    harness.main()
