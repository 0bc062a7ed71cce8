"""The accounts of a gateway under mixed load: requests by every door to models of both formats, JSON and streams, with retries,
failovers, copies, several answers, other tiers, tools that the provider runs, streams that break and callers that leave. What the
provider has billed, at the prices of the configuration, is what metrics, limits and log lines say, to the nano-USD; of calls whose bill
the gateway could not see it is printed how far its estimates are from it, and none is above what was reserved.

SLUICE_MONEY is the number of requests (2000), SLUICE_GATEWAYS 2 has two gateways on one Redis take them by turns, SLUICE_SEED chooses
others.

ctest: timeout=120
"""

import asyncio
import collections
import decimal
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import billing
import harness
import redis_server

COUNT = int(os.environ.get("SLUICE_MONEY", "2000"))
GATEWAYS = int(os.environ.get("SLUICE_GATEWAYS", "1"))
SEED = int(os.environ.get("SLUICE_SEED", "20261128"))
AT_ONCE = 48
DELTA = billing.DELTA.encode()
FRONTS = {"sampling": "/v1/sampling", "messages": "/v1/messages", "chat": "/v1/chat/completions", "mcp": "/mcp/money"}
MARKS = ('"method":"sampling/createMessage"', '"front":"messages"', '"front":"chat"')
# Three models of each format, whose prices no rounding is kind to.
PRICES = {
    "messages": {"claude-one": (3.0, 15.0, 0.3, 3.75, 6.0), "claude-two": (0.801, 4.007, 0.083, 1.003, 1.601), "claude-three": (0.0331, 0.0677, 0.0017, 0.041, 0.0663)},
    "chat": {"gpt-one": (2.5, 10.0, 1.25, 2.5, 2.5), "gpt-two": (0.0501, 0.4003, 0.0051, 0.0501, 0.0501), "gpt-three": (1.337, 7.331, 0.133, 1.671, 1.671)},
}
PICO = {model: billing.Price(*(round(price * 1_000_000) for price in prices))
        for models in PRICES.values() for model, prices in models.items()}
USE, WINDOW, CHOICES = 0.010007, 200000, 3
TIERS = {"flex": 0.513, "priority": 1.987}
API = {model: api for api, models in PRICES.items() for model in models}


class Plan:
    """One request, by chance: its door, its order, what its caller does."""

    def __init__(self, id, chance):
        self.id, self.trace = id, "%032x" % (id + 1)
        self.front = chance.choices(list(FRONTS), (3, 8, 8, 1))[0]
        other = {"messages": "chat", "chat": "messages"}.get(self.front) if chance.random() < 0.15 else None
        self.model = chance.choice(list(PRICES[other or (self.front if self.front in PRICES else chance.choice(list(PRICES)))]))
        self.stream = self.front in PRICES and chance.random() < 0.5
        self.max_tokens = chance.choice((64, 200, 1000))
        own = other is None  # what another format does not have is refused
        self.n = chance.randint(2, CHOICES) if self.front == "chat" and own and chance.random() < 0.2 else 1
        self.tier = chance.choice(list(TIERS)) if self.front == "chat" and own and chance.random() < 0.2 else None
        self.searches = chance.randint(1, 4) if self.front == "messages" and own and chance.random() < 0.2 else 0
        tokens = chance.randint(1, 3000)
        self.order = {"id": id, "in": tokens, "out": chance.randint(0, self.max_tokens * self.n), "deltas": chance.randint(1, 12)}
        self.order["uses"] = chance.randint(0, self.searches)
        if chance.random() < 0.4:
            self.order["read"] = chance.randint(0, tokens // 2)
            self.order["write"] = chance.randint(0, tokens // 2)
            if API[self.model] == "messages":
                self.order["hour"] = chance.randint(0, self.order["write"])
        self.key = "key-%d" % id if not self.stream and self.front != "mcp" and chance.random() < 0.05 else None
        self.leaves = self.front != "mcp" and self.key is None and chance.random() < 0.06
        self.order["tries"] = self._tries(chance)
        self.after = self.order["after"] = chance.randint(0 if self.leaves and not self.stream else 1, self.order["deltas"] - 1) \
            if self.stream and self.order["deltas"] > 1 else 0

    def _tries(self, chance):
        tries = []
        while chance.random() < 0.06:
            tries.append(chance.choice(("500", "529", "503") if self.front == "mcp" else ("500", "529", "503", "reset", "bad")))
        if self.leaves:
            return tries[:1] + ["hang"]
        if self.front == "mcp":
            return tries[:3] + ["ok"]
        return tries[:3] + [chance.choices(("ok", "400", "filter", "cut", "void"), (91, 3, 1, 3, 2))[0]]

    def body(self):
        text = json.dumps(self.order)
        if self.front in PRICES:
            more = {"n": self.n} if self.n > 1 else {}
            if self.tier is not None:
                more["service_tier"] = self.tier
            if self.searches:
                more["tools"] = [{"type": "web_search_20250305", "name": "web_search", "max_uses": self.searches}]
            if self.front == "messages" and self.order.get("hour"):
                more["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
            if self.stream:
                more["stream"] = True
            return {"model": self.model, "max_tokens": self.max_tokens, **more, "messages": [{"role": "user", "content": text}]}
        asked = {"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": self.max_tokens,
                 "modelPreferences": {"hints": [{"name": self.model}]}}
        method, params = ("sampling/createMessage", asked) if self.front == "sampling" else ("tools/call", {"name": "ask", "arguments": asked})
        return {"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}


class McpServer(billing.Server):
    """Its one tool samples with its arguments, and is done when that is answered."""

    def __init__(self):
        super().__init__()
        self.waiting = {}

    async def _answer(self, message, reader, writer):
        if not message[0].startswith("POST"):
            writer.write(billing.answer_bytes(405, b""))
            return True
        body = json.loads(message[2])
        method = body.get("method")
        if method == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "money", "version": "1"}}
            answer = json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": result}).encode()
            writer.write(billing.answer_bytes(200, answer, headers=[("mcp-session-id", "money")]))
        elif method == "tools/call":
            await self._call(body, writer)
        else:
            if method is None:
                self.waiting.pop(body["id"]).set_result(body)
            writer.write(billing.answer_bytes(202, b""))
        return True

    async def _call(self, body, writer):
        answered = self.waiting["s-%d" % body["id"]] = asyncio.get_running_loop().create_future()
        ask = {"jsonrpc": "2.0", "id": "s-%d" % body["id"], "method": "sampling/createMessage", "params": body["params"]["arguments"]}
        writer.write(billing.STREAM_HEAD + billing.chunk(billing.event(ask)))
        await answered
        done = {"jsonrpc": "2.0", "id": body["id"], "result": {"content": [], "isError": "error" in answered.result()}}
        writer.write(billing.chunk(billing.event(done)) + b"0\r\n\r\n")


class Callers:
    """So many at once, each with its connection to each gateway; the n-th request goes to the n-th gateway, by turns."""

    def __init__(self, urls, plans, biller):
        self.urls, self.biller = urls, biller
        self.plans, self.answers, self.sessions = iter(plans), {}, {}
        self.hung = collections.defaultdict(asyncio.Event)
        biller.on_hang = lambda id: self.hung[id].set()

    async def run(self):
        for url in self.urls:
            self.sessions[url] = await self._hello(url)
        await asyncio.gather(*(self._caller() for _ in range(AT_ONCE)))

    async def _caller(self):
        lines = {}
        try:
            for plan in self.plans:
                url = self.urls[plan.id % len(self.urls)]
                tasks = [self._ask(plan, url, lines)]
                if plan.key is not None:  # a copy, on a connection of its own
                    tasks.append(self._ask(plan, url, {}))
                self.answers[plan.id] = await asyncio.wait_for(asyncio.gather(*tasks), harness.PATIENCE_S)
        finally:
            for _, writer in lines.values():
                writer.close()

    async def _line(self, url, lines):
        if url not in lines:
            host, port = url.split("//")[1].split(":")
            lines[url] = await asyncio.open_connection(host, int(port), limit=1 << 20)
        return lines[url]

    async def _send(self, writer, path, body, headers):
        data = json.dumps(body).encode()
        fields = {"host": "localhost", "content-type": "application/json", "accept": "application/json, text/event-stream",
                  "authorization": "Bearer " + harness.KEY, "content-length": len(data), **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + data)

    async def _hello(self, url):
        reader, writer = await self._line(url, {})
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize",
                "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}}
        await self._send(writer, FRONTS["mcp"], body, {})
        answer = await self._receive(reader)
        fields = answer[1]
        assert "mcp-session-id" in fields, answer
        headers = {"mcp-session-id": fields["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        await self._send(writer, FRONTS["mcp"], {"jsonrpc": "2.0", "method": "notifications/initialized"}, headers)
        await self._receive(reader)
        writer.close()
        return headers

    async def _receive(self, reader, deltas=None):
        """Status, fields and body; with `deltas`: up to these."""
        line, fields = await billing.read_head(reader)
        if "content-length" in fields:
            body = await reader.readexactly(int(fields["content-length"]))
        else:
            body = b""
            while deltas is None or body.count(DELTA) < deltas:
                size = int(await reader.readline(), 16)
                body += await reader.readexactly(size)
                await reader.readexactly(2)
                if size == 0:
                    break
        return int(line.split()[1]), fields, body

    async def _ask(self, plan, url, lines):
        reader, writer = await self._line(url, lines)
        headers = {"traceparent": "00-%s-00000000000000ab-01" % plan.trace}
        if plan.front == "mcp":
            headers.update(self.sessions[url])
        if plan.key is not None:
            headers["idempotency-key"] = plan.key
        await self._send(writer, FRONTS[plan.front], plan.body(), headers)
        if not plan.leaves:
            try:
                return await self._receive(reader)
            except asyncio.IncompleteReadError:  # a stream that could not be ended
                del lines[url]
                return None
        receive = asyncio.ensure_future(self._receive(reader, plan.after if plan.stream else None))
        if not plan.stream or plan.after == 0:
            hung = asyncio.ensure_future(self.hung[plan.id].wait())
            await asyncio.wait((receive, hung), return_when=asyncio.FIRST_COMPLETED)
            hung.cancel()
        else:
            await receive
        receive.cancel()
        lines.pop(url)
        writer.transport.abort()
        return None


def exactly(text):
    return json.loads(text, parse_float=decimal.Decimal)


def nano(usd):
    return int(decimal.Decimal(usd).scaleb(9))


class Money(harness.Case):
    def settings(self):
        settings = harness.config(self.biller, **{"workers": 2, "drain": "5s", "mcp_servers": {"money": {"url": self.server.url, "sessions": 10000}}})
        for name, provider in settings["providers"].items():
            provider["keys"] = ["sk-%s-%d" % (name, n) for n in range(4)]  # further attempts need not wait
            provider["breaker"] = {"failures": 1000, "ratio": 0}
        names = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
        settings["models"] = [harness.model(model, "anthropic" if api == "messages" else "openai", price={**dict(zip(names, prices)), "server_tool": USE})
                              for api, models in PRICES.items() for model, prices in models.items()]
        settings["retries"] = {"attempts": 4}
        plan = settings["plans"]["standard"]
        plan["models"]["default"] = "claude-one"
        plan["mcp_servers"] = {"allow": ["*"]}
        plan["direct"] = {"n": CHOICES, "service_tiers": TIERS, "server_tools": ["web_search"]}
        plan["limits"].update({"mcp_messages_per_minute": 6000000, "usd_per_day": 100000, "concurrent": 1024})
        if GATEWAYS > 1:
            self.redis = redis_server.Redis(self)
            settings["store"] = {"kind": "redis", "url": self.redis.url, "deadline": "2s"}
            settings["seal_keys"] = ["A" * 43 + "="]
        return settings

    async def load(self):
        self.biller, self.server = billing.Biller(), McpServer()
        await self.biller.open()
        await self.server.open()
        loop = asyncio.get_running_loop()
        settings = self.settings()
        self.gates = [await loop.run_in_executor(None, self.gateway, settings) for _ in range(GATEWAYS)]
        self.callers = Callers([gate.url for gate in self.gates], self.plans, self.biller)
        await self.callers.run()
        await self.biller.close()
        await self.server.close()
        self.assertEqual(self.biller.failures + self.server.failures, [])

    def lines(self):
        """By request, the log lines that have cost something or could have."""
        asked = sum(2 if plan.key else 1 for plan in self.plans)

        def found():
            texts = [text for gate in self.gates for text in list(gate.stdout)]
            texts = [text for text in texts if text.startswith("{") and any(mark in text for mark in MARKS)]
            return len(texts) >= asked and texts
        texts = harness.wait_for(found, f"{asked} log lines")
        self.assertEqual(len(texts), asked)
        return [exactly(text) for text in texts]

    def spent(self):
        """What metrics and limits say, in nano-USD."""
        metrics = sum(nano(text.split()[1]) for gate in self.gates for text in gate.metrics().text.splitlines()
                      if text.startswith("sluice_usd_total{"))
        limits = exactly(self.gates[0].get("/tenants/acme").body)["scopes"][0]["limits"]
        return metrics, nano(limits["usd_per_day"]["spent"]), nano(limits["usd_per_month"]["spent"])

    def bills(self):
        """By request, what the provider has billed where the gateway could see that; elsewhere that, and what may be charged at most."""
        exact, seen = {}, {}
        for plan in self.plans:
            attempts = self.biller.attempts[plan.id]
            billed = sum(map(self.cost, attempts))
            if all(attempt.kind in billing.EXACT for attempt in attempts):
                exact[plan.id] = billed
            else:
                seen[plan.id] = (billed, sum(self.most(attempt) for attempt in attempts))
        return exact, seen

    def price(self, attempt):
        return billing.times(PICO[attempt.model], round(TIERS.get(attempt.tier, 1) * 1_000_000))

    def cost(self, attempt):
        return billing.cost(attempt.usage, self.price(attempt)) + attempt.uses * round(USE * 1e9)

    def most(self, attempt):
        if attempt.kind in billing.EXACT:
            return self.cost(attempt)
        return billing.bound(attempt, self.price(attempt), WINDOW) + attempt.uses_most * round(USE * 1e9)

    def judge(self, exact, seen):
        """What was charged of `seen`, and in all. The log lines of what an MCP server has asked for have no request's trace: these are
        compared together."""
        charged, tokens = collections.Counter(), collections.Counter()
        for line in self.lines():
            trace = line.get("traceparent")
            id = int(trace.split("-")[1], 16) - 1 if trace else "mcp"
            charged[id] += nano(line.get("usd", 0))
            tokens[id] += line.get("input_tokens", 0) + line.get("output_tokens", 0)
        by_mcp = {plan.id for plan in self.plans if plan.front == "mcp"}
        self.assertEqual(charged["mcp"], sum(exact[id] for id in by_mcp))
        for id, billed in exact.items():
            if id not in by_mcp:
                counted = sum(attempt.usage.input + attempt.usage.output for attempt in self.biller.attempts[id])
                self.assertEqual((charged[id], tokens[id]), (billed, counted), (vars(self.plans[id]), self.biller.attempts[id]))
        for id, (_, most) in seen.items():
            self.assertLessEqual(charged[id], most, (vars(self.plans[id]), self.biller.attempts[id]))
            if any(attempt.kind not in billing.EXACT and attempt.kind != "reset" for attempt in self.biller.attempts[id]):
                self.assertGreater(charged[id], 0, vars(self.plans[id]))
        return sum(charged[id] for id in seen), sum(charged.values())

    def judge_answers(self):
        """Copies are the first one's, and most of the rest is answered: a load of refusals would prove nothing."""
        statuses = collections.Counter()
        for plan in self.plans:
            answers = self.callers.answers[plan.id]
            statuses[answers[0][0] if answers[0] else 0] += 1
            if plan.key is not None:  # a failure is forgotten: a copy that comes behind it is made
                good = [answer for answer in answers if answer[0] == 200]
                self.assertLessEqual(len({answer[2] for answer in good}), 1)
                self.assertEqual(sum("sluice-usd" in answer[1] and float(answer[1]["sluice-usd"]) > 0 for answer in answers),
                                 plan.front in PRICES and len(good) != 0 and self.has_cost(plan))
        self.assertGreater(statuses[200], 0.8 * len(self.plans), statuses)
        return statuses

    def has_cost(self, plan):
        return any(attempt.usage.output or attempt.usage.input for attempt in self.biller.attempts[plan.id])

    def test_the_provider_has_billed_what_the_gateway_says(self):
        chance = random.Random(SEED)
        self.plans = [Plan(id, chance) for id in range(COUNT)]
        asyncio.run(self.load())
        harness.wait_for(lambda: sum(gate.metrics().sum("sluice_in_flight") for gate in self.gates) == 0, "the end of all")
        exact, seen = self.bills()
        estimated, charged = self.judge(exact, seen)
        harness.wait_for(lambda: set(self.spent()) == {charged}, f"{charged} nano-USD of metrics and limits; they have {self.spent()}")
        self.assertEqual(sum(exact.values()) + estimated, charged)
        attempts = [attempt for attempts in self.biller.attempts.values() for attempt in attempts]
        counted = sum(gate.metrics().sum("sluice_provider_attempts_total") for gate in self.gates)
        self.assertLessEqual(counted, len(attempts))  # on a kept connection that ends instead of an answer it is sent once more
        self.assertGreaterEqual(counted, len(attempts) - sum(attempt.kind == "reset" for attempt in attempts))
        print(f"{COUNT} requests, {len(attempts)} attempts, answered {dict(self.judge_answers())}\n"
              f"counted by the provider: {len(exact)} requests, {sum(exact.values())} nano-USD, charged the same\n"
              f"not seen to the end: {len(seen)} requests, billed {sum(billed for billed, _ in seen.values())}, "
              f"charged {estimated}, reserved {sum(most for _, most in seen.values())} nano-USD at most\n"
              f"in all {charged} nano-USD in metrics, limits and log", file=sys.stderr)


if __name__ == "__main__":
    harness.main()
