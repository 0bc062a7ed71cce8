"""OpenAI Responses through the real binary: the simulator refuses what that format does not know."""
import base64
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import streams

WEATHER = {"name": "files.weather", "inputSchema": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
IMAGE = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"\x89PNG").decode()}


def text(text):
    return {"type": "text", "text": text}


class Responses(harness.Case):
    def start(self, name="gpt-test", **profile):
        self.provider = self.sim("--api-key", harness.PROVIDER_KEY)
        profile = {"image": True, "structured_output": True, **profile}
        return self.gateway(harness.config(
            self.provider,
            providers={"openai": harness.provider(self.provider, "openai-responses")},
            models=[harness.model(name, "openai", profile=profile)],
            retries={"attempts": 1}) | {
                "plans": {"standard": {"capabilities": {"tools": True, "images": True},
                                       "models": {"allow": ["*"]},
                                       "limits": {"tokens_per_minute": 100000000, "tokens_burst": 100000000}}}})

    def sample(self, gateway, **params):
        answer = gateway.sample(**params)
        self.assertEqual(answer.status, 200, answer)
        return answer.json()["result"]

    def test_a_prompt_is_answered_and_paid_for(self):
        gateway = self.start()
        result = self.sample(gateway, systemPrompt="Be brief.", temperature=0.5, stopSequences=["never"])
        self.assertEqual((result["stopReason"], result["model"]), ("endTurn", "gpt-test"))
        self.assertEqual(len(result["content"]["text"]), 256)
        self.assertEqual(result["_meta"]["sluice/usage"]["output_tokens"], 64)
        self.assertIn("stop_sequences_emulated", result["_meta"]["sluice/adjustments"])
        last = self.provider.last()
        self.assertEqual(last["path"], "/v1/responses")
        self.assertEqual(last["body"], {
            "model": "gpt-test", "max_output_tokens": 100, "store": False, "temperature": 0.5,
            "instructions": "Be brief.", "input": [{"role": "user", "content": "hello"}]})

    def test_a_tool_loop_comes_to_its_end(self):
        gateway = self.start("sim-calls-2")
        first = self.sample(gateway, tools=[WEATHER], toolChoice={"mode": "required"})
        self.assertEqual(first["stopReason"], "toolUse")
        calls = first["content"]
        self.assertEqual([(call["name"], call["input"]) for call in calls],
                         [("files.weather", {"city": "simulated"})] * 2)
        self.assertTrue(all(call["id"].startswith("call_sim_") for call in calls), calls)
        history = [{"role": "user", "content": text("weather?")}, {"role": "assistant", "content": calls},
                   {"role": "user", "content": [
                       {"type": "tool_result", "toolUseId": calls[0]["id"], "content": [text("sunny")]},
                       {"type": "tool_result", "toolUseId": calls[1]["id"], "isError": True,
                        "content": [text("no such city"), IMAGE]}]}]
        second = self.sample(gateway, messages=history, tools=[WEATHER])
        self.assertEqual(second["content"]["text"], "The tools answered: sunny, Error:, no such city")
        self.assertEqual(second["stopReason"], "endTurn")

    def test_streams_say_the_same(self):
        """Text of any size: the last events repeat all of it, and the request's tools, in one line each."""
        for words in ("size-200000-chunk-3000", "calls-3", "length", "refusal"):
            tools = [WEATHER, {**WEATHER, "name": "other", "description": "x" * 100000}]
            params = {"tools": tools} if words == "calls-3" else {"systemPrompt": "y" * 100000}
            with self.subTest(words):
                gateway = self.start("sim-" + words)
                whole = self.sample(gateway, **params)
                answer = gateway.sample(headers={"Accept": streams.BOTH}, _meta={"progressToken": 1}, **params)
                self.assertEqual(answer.status, 200, answer)
                streamed = streams.events_of(answer.body)[-1]["result"]
                self.assertTrue(self.provider.last()["body"]["stream"])
                for result in (whole, streamed):  # ids are numbered, and bytes of the request counted
                    for block in result["content"] if isinstance(result["content"], list) else []:
                        block.pop("id")
                    result["_meta"]["sluice/usage"].pop("input_tokens")
                    result["_meta"]["sluice/usage"].pop("usd")
                    result.pop("usage")
                self.assertEqual(streamed, whole)

    def test_structured_output_is_native(self):
        gateway = self.start()
        schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
                  "additionalProperties": False}
        answer = gateway.sample(tools=[{"name": "__schema__", "inputSchema": schema}],
                                toolChoice={"mode": "required"})
        self.assertEqual(answer.json()["error"]["code"], -32015)  # the simulator says no JSON
        sent = self.provider.last()["body"]
        self.assertNotIn("tools", sent)
        self.assertEqual(sent["text"]["format"]["schema"], schema)

    def test_failures_are_told_apart(self):
        for words, code, stop in (("error-429", -32010, None), ("error-503", -32011, None),
                                  ("error-400-context", -32014, None), ("error-401", -32012, None),
                                  ("badjson", -32015, None), ("length", None, "maxTokens"),
                                  ("refusal", None, "refusal")):
            with self.subTest(words):
                gateway = self.start("sim-" + words)
                answer = gateway.sample().json()
                if code is None:
                    self.assertEqual(answer["result"]["stopReason"], stop)
                else:
                    self.assertEqual(answer["error"]["code"], code)
                    self.assertNotIn("sim-provider-text", str(answer))


if __name__ == "__main__":
    harness.main()
