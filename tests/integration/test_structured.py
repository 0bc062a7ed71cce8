"""Structured output through the real binary: a request whose only tool is __schema__, to be called.

Providers are stand-ins that check what they are sent and say what a test has for them, attempt by attempt,
in one piece or as a stream."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import hosts
import streams

SCHEMA = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"],
          "additionalProperties": False}
ASK = {"tools": [{"name": "__schema__", "inputSchema": SCHEMA}], "toolChoice": {"mode": "required"}}
GOOD, WRONG, WORSE = {"age": 7}, {"age": -1}, {}
OPENAI, ANTHROPIC = "openai", "anthropic"
BASES = {OPENAI: (hosts.Host, "/v1"), ANTHROPIC: (hosts.Messages, "/anthropic")}
SOON_MS = 2000 if os.environ.get("SLUICE_SANITIZE") else 500
OUTPUT_TOKENS = 10  # of each answer of these


def saying(base):
    """A stand-in of that kind that says what `script` has next: words, or what the tool is called with."""

    class Scripted(base):
        key = None
        members = base.members | {"output_config"}

        def __init__(self, *script):
            self.script = list(script)
            super().__init__()

        def order(self, body):
            self.says = self.script.pop(0)
            return ["say", self.says] if isinstance(self.says, str) else ["call"]

        def given(self, name):
            return self.says

    return Scripted


class Structured(harness.Case):
    def start(self, dialect, *script, **profile):
        base, path = BASES[dialect]
        self.host = saying(base)(*script)
        self.addCleanup(self.host.close)
        provider = {"dialect": dialect, "endpoints": [{"url": self.host.url + path}], "keys": [harness.PROVIDER_KEY]}
        if dialect == ANTHROPIC:
            provider["version"] = "2023-06-01"
        return self.gateway({
            "workers": 1, "drain": "1s", "retries": {"floor": 1000}, "providers": {"p": provider},
            "models": [harness.model("m", "p", profile=profile)],
            "tenants": [{"id": "acme", "models": {"allow": ["*"]}, "capabilities": {"tools": True},
                         "limits": {"tokens_per_minute": 100000000, "usd_per_day": 1000},
                         "keys": [{"sha256": harness.sha256(harness.KEY)}]}]})

    def ask(self, gateway, stream=False, **params):
        """The JSON-RPC answer, and how the HTTP one was."""
        meta = {"sluice/exchange": True, **({"progressToken": 1} if stream else {})}
        answer = gateway.sample("how old?", headers={"Accept": streams.BOTH} if stream else {}, _meta=meta,
                                **{**ASK, **params})
        self.assertEqual(self.host.problems, [])
        told = streams.events_of(answer.body)[-1] if answer.headers["content-type"] == "text/event-stream" \
            else answer.json()
        return answer, told

    def input_of(self, told):
        result = told["result"]
        (call,) = result["content"]
        self.assertEqual((result["stopReason"], call["type"], call["name"]), ("toolUse", "tool_use", "__schema__"))
        return call["input"]

    def assert_mended(self, told, gateway, answer):
        self.assertEqual(self.input_of(told), GOOD)
        meta = told["result"]["_meta"]
        self.assertEqual(meta["sluice/route"]["attempts"], 2)
        self.assertEqual(meta["sluice/usage"]["output_tokens"], 2 * OUTPUT_TOKENS)
        line = gateway.log(answer.headers["sluice-request-id"])
        self.assertEqual(line["attempts"], 2)
        self.assertEqual(len(self.host.requests), 2)

    # ---- how it is asked for

    def test_each_way_of_asking_gives_a_call(self):
        for dialect in (OPENAI, ANTHROPIC):
            for how, script, profile in (
                    ("forced", [GOOD], {}),
                    ("automatic", [GOOD], {"forced_tool": False}),
                    ("native", [json.dumps(GOOD)], {"structured_output": True})):
                with self.subTest(dialect=dialect, how=how):
                    gateway = self.start(dialect, *script, **profile)
                    answer, told = self.ask(gateway)
                    self.assertEqual((answer.status, self.input_of(told)), (200, GOOD), told)
                    sent = self.host.requests[-1]
                    self.assertEqual("tools" in sent, how != "native")
                    self.assertEqual("response_format" in sent or "output_config" in sent, how == "native")

    def test_the_third_format_is_asked_and_checked_likewise(self):
        sim = self.sim("--api-key", harness.PROVIDER_KEY)
        wrong = {**SCHEMA, "properties": {"age": {"type": "integer", "minimum": 1000}}}  # the simulator says less
        gateway = self.gateway(harness.config(
            sim, providers={"p": harness.provider(sim, "openai-responses")}, models=[harness.model("m", "p")],
            plans={"standard": {"capabilities": {"tools": True}, "models": {"allow": ["*"]},
                                "limits": {"tokens_per_minute": 100000000}}}))
        result = gateway.sample(**ASK).json()["result"]
        self.assertEqual((result["stopReason"], list(result["content"][0]["input"])), ("toolUse", ["age"]))
        told = gateway.sample(tools=[{"name": "__schema__", "inputSchema": wrong}], toolChoice=ASK["toolChoice"])
        self.assertEqual(told.json()["error"]["data"]["keyword"], "minimum")
        call, result = sim.last()["body"]["input"][-2:]
        self.assertEqual((call["type"], result["type"]), ("function_call", "function_call_output"))
        self.assertEqual(call["call_id"], result["call_id"])
        self.assertIn("$.age", json.dumps(result["output"]))

    # ---- wrong answers

    def test_a_wrong_answer_is_sent_back_with_what_is_wrong(self):
        for dialect in (OPENAI, ANTHROPIC):
            for how, script, profile in (
                    ("forced", [WRONG, GOOD], {}),
                    ("no call", ["seven", GOOD], {"forced_tool": False}),
                    ("native", [json.dumps(WRONG), json.dumps(GOOD)], {"structured_output": True})):
                for stream in (False, True):
                    with self.subTest(dialect=dialect, how=how, stream=stream):
                        gateway = self.start(dialect, *script, **profile)
                        answer, told = self.ask(gateway, stream)
                        self.assertEqual(answer.status, 200, told)
                        self.assert_mended(told, gateway, answer)
                        words = json.dumps(self.host.requests[-1]["messages"][1:])
                        self.assertIn("is not a call" if how == "no call" else "$.age", words)
                        self.assertEqual(self.host.requests[-1].get("stream", False), stream)

    def test_two_wrong_answers_are_none(self):
        for dialect in (OPENAI, ANTHROPIC):
            for stream in (False, True):
                with self.subTest(dialect=dialect, stream=stream):
                    gateway = self.start(dialect, WRONG, WORSE)
                    answer, told = self.ask(gateway, stream)
                    error = told["error"]
                    self.assertEqual(error["code"], -32015)
                    self.assertEqual(error["data"], {
                        "reason": "schema_mismatch", "retryable": True, "attempts": 2, "keyword": "required",
                        "path": "$", "schemaPath": "#/required"} | (
                            {"providerStatus": error["data"]["providerStatus"]}
                            if "providerStatus" in error["data"] else {}))
                    line = gateway.log(answer.headers["sluice-request-id"])
                    self.assertEqual(line["error"], "schema_mismatch")
                    metrics = gateway.metrics()
                    self.assertEqual(metrics.sum("sluice_provider_attempts_total", **{"class": "schema_mismatch"}), 2)

    def test_both_attempts_are_paid_for(self):
        gateway = self.start(OPENAI, WRONG, GOOD)
        _, told = self.ask(gateway)
        tokens = gateway.metrics_after(1).sum("sluice_tokens_total", direction="output")
        self.assertEqual(tokens, told["result"]["_meta"]["sluice/usage"]["output_tokens"])
        self.assertEqual(tokens, 2 * OUTPUT_TOKENS)

    def test_what_cannot_be_checked_is_said(self):
        schema = {**SCHEMA, "properties": {"age": {"type": "integer"}, "name": {"type": "string", "pattern": "^[A-Z]"}}}
        gateway = self.start(OPENAI, {"age": 7, "name": "ada"}, GOOD)
        for unchecked in (["schema_keyword_unchecked"], []):  # nothing hangs on it where there is no name
            _, told = self.ask(gateway, tools=[{"name": "__schema__", "inputSchema": schema}])
            self.assertEqual(told["result"]["_meta"].get("sluice/adjustments", []), unchecked)

    def test_an_answer_of_many_rows_is_checked_to_its_end(self):
        fields = {"name": {"type": "string"}, "city": {"type": "string"}, "age": {"type": "integer"}, "mail": {"type": "string"}}
        row = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
        schema = {"type": "object", "properties": {"rows": {"type": "array", "items": row}}, "required": ["rows"],
                  "additionalProperties": False}
        rows = [{"name": f"n{i}", "city": "Graz", "age": i, "mail": f"n{i}@a.example"} for i in range(250)]
        wrong = rows[:-1] + [{**rows[-1], "age": "old"}]
        tools = [{"name": "__schema__", "inputSchema": schema}]
        for dialect in (OPENAI, ANTHROPIC):
            for native in (False, True):
                with self.subTest(dialect=dialect, native=native):
                    script = [{"rows": wrong}, {"rows": rows}, {"rows": 10 * rows}]
                    gateway = self.start(dialect, *(map(json.dumps, script) if native else script), structured_output=native)
                    _, told = self.ask(gateway, tools=tools)
                    self.assertIn("$.rows[249].age", json.dumps(self.host.requests[-1]["messages"][1:]))
                    self.assertEqual(self.input_of(told), {"rows": rows})
                    self.assertEqual(told["result"]["_meta"].get("sluice/adjustments", []), [])
                    _, told = self.ask(gateway, tools=tools)
                    if native:  # 2,500 rows are more than the steps suffice for; the provider has kept the schema
                        self.assertEqual(self.input_of(told), {"rows": 10 * rows})
                        self.assertEqual(told["result"]["_meta"]["sluice/adjustments"], ["schema_keyword_unchecked"])
                    else:
                        self.assertEqual(told["error"]["data"]["reason"], "schema_mismatch")
                        self.assertFalse(told["error"]["data"]["retryable"])

    def test_a_schema_that_would_take_for_ever_ends_soon(self):
        doubling = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(14)}
        forks = {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**doubling, "d14": {"type": "integer"}}}
        circle = {"type": "object", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "properties": {"x": {"$ref": "#/$defs/a"}}}
        for name, schema in (("forks", forks), ("circle", circle)):
            with self.subTest(name):
                gateway = self.start(OPENAI, {"x": 1}, {"x": 1})
                answer, told = self.ask(gateway, tools=[{"name": "__schema__", "inputSchema": schema}])
                self.assertEqual((told["error"]["code"], told["error"]["data"]["reason"]), (-32015, "schema_mismatch"))
                self.assertFalse(told["error"]["data"]["retryable"])
                self.assertLess(gateway.log(answer.headers["sluice-request-id"])["total_ms"], SOON_MS)

    # ---- the exchange

    def test_the_exchange_of_a_call_is_left_open_for_its_result(self):
        gateway = self.start(OPENAI, GOOD, "seven it is")
        look = [{"name": "look", "inputSchema": SCHEMA}]
        _, told = self.ask(gateway, tools=look)
        exchange = told["result"]["_meta"]["sluice/exchange"]
        self.assertEqual([message["role"] for message in exchange], ["user", "assistant"])
        self.assertEqual(exchange[1]["content"], told["result"]["content"])
        (call,) = exchange[1]["content"]
        seen = {"role": "user", "content": [{"type": "tool_result", "toolUseId": call["id"], "content": []}]}
        _, told = self.ask(gateway, messages=exchange + [seen], tools=look, toolChoice={"mode": "auto"})
        self.assertEqual(told["result"]["_meta"]["sluice/exchange"],
                         [seen, {"role": "assistant", "content": told["result"]["content"]}])

    def test_the_exchange_continues_the_conversation(self):
        gateway = self.start(OPENAI, GOOD, "seven it is")
        _, told = self.ask(gateway)
        exchange = told["result"]["_meta"]["sluice/exchange"]
        self.assertEqual([message["role"] for message in exchange], ["user", "assistant", "user"])
        self.assertEqual(exchange[1]["content"], told["result"]["content"])
        history = exchange + [{"role": "user", "content": {"type": "text", "text": "in words?"}}]
        _, told = self.ask(gateway, messages=history, toolChoice={"mode": "auto"})
        self.assertEqual(told["result"]["content"]["text"], "seven it is")
        self.assertEqual(told["result"]["_meta"]["sluice/exchange"],
                         history[-1:] + [{"role": "assistant", "content": told["result"]["content"]}])


if __name__ == "__main__":
    harness.main()
