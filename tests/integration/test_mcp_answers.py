#!/usr/bin/env python3
"""/mcp/{server}: whatever happens to a sampling, its server has an answer in time, and it costs and is logged as one of /v1/sampling.

Each row is asked for three times at once: on the stream of a call, on the session's own stream, and at /v1/sampling.

ctest: timeout=240
"""
import json
import os
import signal
import sys
import time
import typing

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_rig
from mcp_server import event, result, sampling

MOST_S = 55  # without a progress token
TOOLS = {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}
WORDS = "sim-input-2000-output-100"
NOTHING = "no answer"


class Row(typing.NamedTuple):
    """`answer`: the code of an error, "error", "result" or NOTHING. `first` happens before, `act` while the provider is asked.
    `same`: the caller of /v1/sampling is told the same."""
    answer: object
    model: str = WORDS
    params: dict = {}
    limits: dict = {}
    settings: typing.Callable = None
    before: int = 0  # samplings
    first: typing.Callable = None
    act: typing.Callable = None
    same: bool = True
    most_s: float = MOST_S


# ---- what is set

def denies(settings):
    settings["plans"]["standard"]["policy"] = {"tools": {"deny": ["look"]}}


def is_small(settings):
    settings["models"] = [harness.model("small", "anthropic", context=1000)]
    settings["plans"]["standard"]["models"]["default"] = "small"


def drains(settings):
    settings["drain"] = "1s"


def goes_on_without_redis(settings):
    settings["plans"]["standard"]["on_store_failure"] = {"budget": {"local": 1000}}


# ---- what happens

def server_cancels(case):
    for id, stream in ((1, case.post), (2, case.own)):
        stream.send(event({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
    case.direct_reply.close()


def client_leaves(case):
    get = case.mcp.get()
    case.assertEqual(get.status, 200)
    for one in (get, case.reply):
        one.close()


def reloads(case):
    case.assertEqual(case.gate.reload().status, 200)


def leaves(case):
    case.gate.send(signal.SIGTERM)


def redis_stops(case):
    case.gate.redis.stop()


ROWS = {
    "a result": Row("result"),
    "tools": Row("result", "sim-calls-1", TOOLS),
    "policy": Row(403, params=TOOLS, settings=denies),
    "a budget": Row(402, limits={"usd_per_day": 0}),
    "a rate": Row(429, limits={"requests_per_minute": 1, "requests_burst": 1}, before=1),
    "no model": Row(422, params={"systemPrompt": "x" * 20000}, settings=is_small),
    "params that are none": Row(-32602, params={"messages": []}),
    "a provider that fails": Row("error", "sim-error-500"),
    "a provider that hangs, and a deadline": Row("error", "sim-hang", limits={"deadline": "700ms"}, most_s=10),
    "the server cancels": Row(NOTHING, "sim-latency-30s", act=server_cancels),
    "the client leaves": Row("result", WORDS + "-latency-500ms", act=client_leaves),
    "a reload": Row("result", WORDS + "-latency-500ms", act=reloads),
    "a drain that is long enough": Row("result", WORDS + "-latency-500ms", settings=lambda whole: whole.update(drain="20s"), act=leaves),
    "a drain": Row(-32603, "sim-latency-30s", settings=drains, act=leaves, same=False),
}


class Answers(mcp_rig.Case):
    rows = ROWS

    def lines(self):
        """The log lines of all samplings."""
        return [json.loads(line) for line in list(self.gate.stdout) if '"sampling/createMessage"' in line]

    def check(self, row):
        server, self.mcp = self.pair(model=row.model, limits=row.limits, settings=row.settings)
        self.own = server.get_stream()
        self.reply = self.mcp.call()
        self.post = server.take().stream()
        for _ in range(row.before):
            self.assertEqual(self.gate.sample().status, 200)
        harness.wait_for(lambda: len(self.lines()) == row.before, "the log")
        before = self.lines()
        if row.first is not None:
            row.first(self)
        asked = self.provider.stats()["requests"]
        request = sampling(3, **row.params)
        began = time.monotonic()
        self.post.send(event({**request, "id": 1}))
        self.own.send(event({**request, "id": 2}))
        self.direct_reply = self.client(self.gate.url + "/v1/sampling").post(
            request, {"Accept": "application/json", "MCP-Protocol-Version": "2025-11-25"})
        self.direct_reply.sock.settimeout(row.most_s + harness.PATIENCE_S)
        if row.act is not None:
            self.provider.wait_stats(lambda stats: stats["requests"] == asked + 3, "the provider is asked for all")
            row.act(self)
        if row.answer != NOTHING:
            harness.wait_for(lambda: not server.idle(), "an answer", row.most_s)
            answers = [answer.message for answer in server.answers(2)]
            self.assertLess(time.monotonic() - began, row.most_s)
            self.judge(row, answers)
        harness.wait_for(lambda: len(self.lines()) == row.before + 3, "the log")
        lines = [line for line in self.lines() if line not in before]
        self.assertEqual(sorted(line["front"] for line in lines), ["mcp", "mcp", "sampling"])
        self.judge_lines(row, lines)
        self.assertTrue(server.idle())

    def judge(self, row, answers):
        self.assertEqual(sorted(answer["id"] for answer in answers), [1, 2])
        for answer in answers:
            if isinstance(row.answer, int):
                self.assertEqual(answer.get("error", {}).get("code"), row.answer, answer)
            else:
                self.assertIn(row.answer, answer)
        other = self.direct_reply.json()
        for answer in answers if row.same else []:
            self.assert_same(answer, other)

    def judge_lines(self, row, lines):
        if row.same:
            self.assertEqual(mcp_rig.facts(lines[0]), mcp_rig.facts(lines[1]))
            self.assertEqual(mcp_rig.facts(lines[0]), mcp_rig.facts(lines[2]))
        charges = {line.get("usd", 0) for line in lines}
        self.assertEqual(len(charges), 1, lines)
        if row.answer == "result":
            self.assertGreater(min(charges), 0)

    def test_rows(self):
        for name, row in self.rows.items():
            with self.subTest(name):
                self.check(row)


@mcp_rig.long("a minute")
class Long(Answers):
    rows = {"a provider that hangs": Row("error", "sim-hang")}


class Redis(Answers):
    """What a Redis that stands still does to it."""

    gateways = 2

    rows = {
        "Redis stops": Row("result", WORDS + "-latency-500ms", act=redis_stops),
        "there is no Redis": Row("error", first=redis_stops),
        "a tenant that goes on without Redis": Row("result", settings=goes_on_without_redis, first=redis_stops),
    }


if __name__ == "__main__":
    harness.main()
