"""The recipes of deploy/docs/providers.md, each against a stand-in of its host (tests/support/hosts.py).

Whatever a stand-in refuses is a failure here: the recipe or the translation is wrong then.
"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import hosts
import streams

GUIDE = os.path.join(harness.SOURCE, "deploy/docs/providers.md")
TOOL = {"name": "get.weather", "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}}}
SCHEMA = {"name": "__schema__", "inputSchema": {"type": "object", "properties": {"answer": {"type": "string"}},
                                                "required": ["answer"], "additionalProperties": False}}
REQUIRED = {"mode": "required"}


def recipes():
    """Heading -> the recipe below it."""
    with open(GUIDE, encoding="utf-8") as file:
        sections = re.split(r"^## ", file.read(), flags=re.M)[1:]
    found = {}
    for section in sections:
        code = re.search(r"^```yaml\n(.*?)^```$", section, flags=re.M | re.S)
        found[section.split("\n", 1)[0]] = code[1]
    return found


class RecipeGateway(harness.Gateway):
    """`sluice serve` with a recipe's own text in front of what every configuration needs."""

    recipe = ""

    def write_config(self, settings):
        with open(self.config_path, "w", encoding="utf-8") as file:
            file.write(self.recipe)
            for key, value in settings.items():
                file.write(f"{key}: {json.dumps(value)}\n")


def text(text):
    return {"type": "text", "text": text}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


# What each stand-in's own errors are to a caller: the JSON-RPC code, or the stop reason.
OUTCOMES = {
    "OpenAI, Chat Completions": {"minute": -32013},
    "Azure OpenAI": {"filter": "refusal", "busy": -32010, "deployment": -32012},
    "OpenRouter": {"in-200": -32011, "credits": -32012, "afford": -32013, "reason": -32011},
    "vLLM": {"context": -32014, "length": -32014, "parser": -32013},
    "llama.cpp": {"loading": -32011, "context": -32014},
    "Ollama": {"model": -32012},
    "Mistral": {"invalid": -32013, "length": "maxTokens"},
    "Groq": {"bad-call": -32015, "capacity": -32011},
    "DeepSeek": {"balance": -32012, "resources": "other"},
    "Gemini": {"rate": -32010, "overloaded": -32011, "context": -32014, "key": -32012},
    "Hosts of the Messages format": {"overloaded": -32011},
}
STAND_INS = {
    "OpenAI, Chat Completions": hosts.OpenAI, "Azure OpenAI": hosts.Azure, "OpenRouter": hosts.OpenRouter,
    "vLLM": hosts.Vllm, "llama.cpp": hosts.LlamaCpp, "Ollama": hosts.Ollama, "Mistral": hosts.Mistral,
    "Groq": hosts.Groq, "DeepSeek": hosts.DeepSeek, "Gemini": hosts.Gemini,
    "Hosts of the Messages format": hosts.Messages,
}
OWN_SIMULATOR = {"OpenAI"}  # Responses: the simulator's own rules are as strict


class Hosts(harness.Case):
    def start(self, recipe, url, key, attempts=1):
        """The gateway on that recipe, its hosts replaced by `url`."""
        env = {name: key for name in re.findall(r"\$\{(\w+)\}", recipe)}
        RecipeGateway.recipe = re.sub(r'(url: ")https?://[^/"]+', rf"\g<1>{url}", recipe)
        settings = {
            "workers": 1, "drain": "1s", "retries": {"attempts": attempts},
            "plans": {"standard": {"capabilities": {"tools": True, "images": True, "audio": True},
                                   "models": {"allow": ["*"]},
                                   "limits": {"requests_per_minute": 60000, "requests_burst": 1000,
                                              "tokens_per_minute": 100000000, "tokens_burst": 100000000,
                                              "max_tokens": 1000000}}},
            "tenants": [harness.tenant("acme", harness.KEY)],
        }
        gateway = RecipeGateway(settings, env=env)
        self.addCleanup(gateway.remove)
        self.addCleanup(gateway.stop)
        return gateway

    def result(self, gateway, host, *messages, **params):
        answer = gateway.sample(messages=list(messages), **params)
        self.assertEqual((answer.status, host.problems), (200, []), answer)
        return answer.json()["result"]

    def check_text(self, gateway, host):
        result = self.result(gateway, host, user(text("earlier"), text("more")),
                             {"role": "assistant", "content": text("well")}, user(text("say:Hello there")),
                             systemPrompt="Be brief.", temperature=0.5, metadata={"user_id": "u-1"})
        self.assertEqual(harness.text_of(result), "Hello there")
        self.assertEqual(result["stopReason"], "endTurn")
        usage = result["_meta"]["sluice/usage"]
        self.assertEqual((usage["input_tokens"], usage["output_tokens"], usage["cache_read_tokens"],
                          usage["reasoning_tokens"]), (20, 10, 5, 4))
        said = [host.requests[-1][name] for name in ("safety_identifier", "user", "metadata") if name in host.requests[-1]]
        if host.user_ids:
            self.assertIn(said, (["u-1"], [{"user_id": "u-1"}]))
        else:
            self.assertEqual(said, [])
            self.assertIn("metadata_dropped", result["_meta"]["sluice/adjustments"])

    def check_stops(self, gateway, host):
        result = self.result(gateway, host, user(text("stop:one two :four")),
                             stopSequences=["three", "four", "five", "six", "seven"])
        self.assertEqual(harness.text_of(result), "one two ")
        self.assertIn(result["stopReason"], ("endTurn", "stopSequence"))
        if isinstance(host, hosts.Vllm):
            self.assertEqual(result["stopReason"], "stopSequence")

    def check_loop(self, gateway, host):
        history = [user(text("weather?"))]
        first = self.result(gateway, host, *history, tools=[TOOL], toolChoice=REQUIRED)
        calls = first["content"]
        self.assertEqual(first["stopReason"], "toolUse")
        self.assertEqual({(call["name"], json.dumps(call["input"])) for call in calls},
                         {("get.weather", '{"city": "Paris"}')})
        self.assertEqual(len({call["id"] for call in calls}), len(calls))
        # ids as another provider has made them, and two turns of the user behind the results
        renamed = [{**call, "id": f"toolu_01A09q90qw90lq917835lq9_{i}"} for i, call in enumerate(calls)]
        history += [{"role": "assistant", "content": renamed},
                    user(*({"type": "tool_result", "toolUseId": call["id"], "content": [text("sunny")]}
                           for call in renamed))]
        second = self.result(gateway, host, *history, tools=[TOOL])
        self.assertEqual(harness.text_of(second), "results: " + ", ".join(["sunny"] * len(calls)))
        third = self.result(gateway, host, *history, user(text("say:and so on")), tools=[TOOL])
        self.assertEqual(harness.text_of(third), "and so on")

    def check_schema(self, gateway, host):
        result = self.result(gateway, host, user(text("answer")), tools=[SCHEMA], toolChoice=REQUIRED)
        call = result["content"][0]
        self.assertEqual((result["stopReason"], call["name"], call["input"]),
                         ("toolUse", "__schema__", {"answer": "42"}))

    def check_stream(self, gateway, host):
        """To a caller that wants to hear of progress, so that the host is asked for a stream."""
        def streamed(*messages, **params):
            answer = gateway.sample(messages=list(messages), headers={"Accept": streams.BOTH},
                                    _meta={"progressToken": 1}, **params)
            self.assertEqual((answer.status, host.problems), (200, []), answer)
            self.assertTrue(host.requests[-1]["stream"])
            return streams.events_of(answer.body)[-1]["result"]

        result = streamed(user(text("say:Hello there")))
        self.assertEqual((harness.text_of(result), result["stopReason"]), ("Hello there", "endTurn"))
        usage = result["_meta"]["sluice/usage"]
        self.assertEqual((usage["input_tokens"], usage["output_tokens"]), (20, 10))
        whole = self.result(gateway, host, user(text("weather?")), tools=[TOOL])
        result = streamed(user(text("weather?")), tools=[TOOL])
        self.assertEqual(result["content"], whole["content"])

    def check_errors(self, name, host):
        """Each with a gateway of its own: what fails is left alone for a while."""
        self.assertEqual(set(OUTCOMES[name]), set(host.errors))
        for error, want in OUTCOMES[name].items():
            with self.subTest(error=error):
                gateway = self.start(recipes()[name], host.url, host.key or "")
                answer = gateway.sample("fail:" + error).json()
                if isinstance(want, str):
                    self.assertEqual(answer["result"]["stopReason"], want, answer)
                else:
                    self.assertEqual(answer["error"]["code"], want, answer)
                gateway.stop()

    def check_key(self, name, host):
        """A host that wants a key has refused every other one so far; here is another."""
        if host.key is None:
            return
        gateway = self.start(recipes()[name], host.url, "sk-another")
        self.assert_error(gateway.sample("say:x"), 502, -32012)

    def test_every_recipe_has_a_host(self):
        self.assertEqual(set(recipes()), set(STAND_INS) | OWN_SIMULATOR)
        self.assertEqual(set(STAND_INS), set(OUTCOMES))

    def test_openai_with_responses(self):
        sim = self.sim("--api-key", harness.PROVIDER_KEY, "--default", "output-10-input-20")
        gateway = self.start(recipes()["OpenAI"], sim.url, harness.PROVIDER_KEY)
        first = gateway.sample(tools=[TOOL], toolChoice=REQUIRED).json()["result"]
        self.assertEqual(first["content"][0]["input"], {"city": "simulated"})
        sent = sim.last()["body"]
        self.assertEqual((sent["reasoning"], sent["tool_choice"]), ({"effort": "medium"}, "required"))
        history = [user(text("q")), {"role": "assistant", "content": first["content"]},
                   user({"type": "tool_result", "toolUseId": first["content"][0]["id"], "content": [text("sunny")]})]
        second = gateway.sample(messages=history, tools=[TOOL]).json()["result"]
        self.assertEqual(harness.text_of(second), "The tools answered: sunny")

    def test_a_call_that_ollama_leaves_out_is_not_made_up(self):
        host = hosts.Ollama()
        self.addCleanup(host.close)
        gateway = self.start(recipes()["Ollama"], host.url, "", attempts=2)
        result = self.result(gateway, host, user(text("no call, please")), tools=[TOOL], toolChoice=REQUIRED)
        self.assertEqual(harness.text_of(result), "I would rather not.")
        self.assertIn("tool_choice_required_downgraded", result["_meta"]["sluice/adjustments"])
        self.assertEqual([request["tool_choice"] for request in host.requests], ["auto"] * 2)

    def test_audio_and_temperature_as_mistral_takes_them(self):
        host = hosts.Mistral()
        self.addCleanup(host.close)
        recipe = recipes()["Mistral"].replace("profile:\n", "profile:\n      audio: true\n")
        gateway = self.start(recipe, host.url, host.key)
        sound = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
        result = self.result(gateway, host, user(text("say:I hear"), sound), temperature=2)
        self.assertEqual(harness.text_of(result).strip(), "I hear")
        self.assertIn("temperature_clamped", result["_meta"]["sluice/adjustments"])
        self.assertEqual(host.requests[-1]["temperature"], 1.5)
        self.assertEqual(host.requests[-1]["messages"][-1]["content"][1], {"type": "input_audio", "input_audio": "UklGRg=="})

    def test_an_empty_turn_is_left_out_for_mistral(self):
        host = hosts.Mistral()
        self.addCleanup(host.close)
        gateway = self.start(recipes()["Mistral"], host.url, host.key)
        empty = {"role": "assistant", "content": text("")}
        for more in ([], [user(text("say:again"))]):
            result = self.result(gateway, host, user(text("say:again")), empty, *more)
            self.assertEqual(harness.text_of(result), "again")
            self.assertIn("empty_turn_removed", result["_meta"]["sluice/adjustments"])

    def test_what_a_host_refuses_is_learnt_once(self):
        for stand_in, params, learnt in (
                (hosts.OpenAI, {}, lambda body: "max_completion_tokens" in body),
                (hosts.Reasoner, {"temperature": 0.5}, lambda body: "temperature" not in body),
                (hosts.Reasoner, {"stopSequences": ["END"]}, lambda body: "stop" not in body)):
            with self.subTest(stand_in.__name__, **params):
                host = stand_in()
                self.addCleanup(host.close)
                recipe = recipes()["OpenAI, Chat Completions"]
                if stand_in is hosts.OpenAI:
                    recipe = recipe.replace("max_completion_tokens", "max_tokens")
                gateway = self.start(recipe, host.url, host.key, attempts=2)
                for requests in (2, 3):  # the first is refused and sent again, the next is right at once
                    result = self.assert_result(gateway.sample("say:Hello", **params))
                    self.assertEqual(harness.text_of(result), "Hello")
                    self.assertEqual(len(host.requests), requests)
                    self.assertTrue(learnt(host.requests[-1]), host.requests[-1])
                self.assertEqual(len(host.problems), 1)

    def test_what_one_request_is_too_large_for_costs_no_other_its_key(self):
        for name, error in (("OpenRouter", "afford"), ("OpenAI, Chat Completions", "minute")):
            with self.subTest(name, error=error):
                host = STAND_INS[name]()
                self.addCleanup(host.close)
                gateway = self.start(recipes()[name], host.url, host.key, attempts=4)
                refusal = self.assert_error(gateway.sample("fail:" + error), 422, -32013, "provider_rejected")
                self.assertEqual((refusal["data"]["attempts"], refusal["data"]["retryable"]), (1, False), refusal)
                self.assertNotIn("retryAfterMs", refusal["data"])
                self.assertEqual(harness.text_of(self.assert_result(gateway.sample("say:Hello"))), "Hello")
                self.assertEqual(len(host.requests), 2)


def make_test(name, stand_in):
    def test(self):
        host = stand_in()
        self.addCleanup(host.close)
        gateway = self.start(recipes()[name], host.url, host.key or "")
        for check in (self.check_text, self.check_stops, self.check_loop, self.check_schema, self.check_stream):
            with self.subTest(check.__name__):
                check(gateway, host)
        gateway.stop()
        self.check_errors(name, host)
        self.check_key(name, host)
    return test


for heading, host_class in STAND_INS.items():
    setattr(Hosts, "test_" + re.sub(r"\W+", "_", heading.lower()), make_test(heading, host_class))

if __name__ == "__main__":
    harness.main()
