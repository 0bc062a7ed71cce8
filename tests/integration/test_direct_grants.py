"""What a plan permits of requests in the providers' own APIs beside models and limits: tools that a provider runs, tiers,
content by URL, several answers, rounds of tools; what it costs, to the nano-USD; and that policy refuses here whatever it
refuses of /v1/sampling. One gateway for each class, a tenant for each plan.

ctest: timeout=120
"""
import copy
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
from told_provider import Provider

PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions"}
MODELS = {"messages": "claude-test", "chat": "gpt-test"}
INPUT, OUTPUT, USE, HOUR, SHORT = 3000, 15000, 10_000_000, 6000, 3750  # nano-USD: a token, a use


def answer_of(api, usage=None, tier=None):
    if api == "messages":
        return {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [{"type": "text", "text": "Hi"}],
                "stop_reason": "end_turn", "usage": {"input_tokens": 7, "output_tokens": 3, **(usage or {})}}
    whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "x",
             "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
             "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}
    return {**whole, **({"service_tier": tier} if tier else {})}


def body_of(api, **more):
    body = {"model": MODELS[api], "messages": [{"role": "user", "content": "hi"}], **more}
    if api == "messages":
        body.setdefault("max_tokens", 99)
    return body


def search(**more):
    return {"type": "web_search_20250305", "name": "web_search", **more}


def event(name, **data):
    return b"event: %s\ndata: %s\n\n" % (name.encode(), json.dumps({"type": name, **data}).encode())


class Shared(harness.Case):
    """One gateway for the class, whose provider says what it is told."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.provider = Provider()
        cls.addClassCleanup(cls.provider.stop)
        cls.gate = harness.Gateway(cls.settings())
        cls.addClassCleanup(cls.gate.remove)
        cls.addClassCleanup(cls.gate.stop)

    def setUp(self):
        self.provider.forget()

    def post(self, api, body, key):
        return self.gate.post(json.dumps(body).encode(), path=PATHS[api], key=key)

    def assert_refused(self, api, answer, words, status=403):
        self.assertEqual(answer.status, status, answer)
        self.assertIn(words, answer.json()["error"]["message"])
        if status == 403:
            self.assertEqual(answer.json()["error"]["type"], "permission_error" if api == "messages" else "invalid_request_error")
        self.assertEqual(self.provider.seen, [])

    def usd(self, answer):
        self.assertEqual(answer.status, 200, answer)
        whole, rest = answer.headers["sluice-usd"].split(".")
        return int(whole) * 10**9 + int(rest)


ALL, NONE, POOR, ROUNDS, LAST = "key-of-all-0123456789", "key-of-none-0123456789", "key-of-poor-0123456789", \
    "key-of-rounds-0123456789", "key-of-last-0123456789"
LOOPS, FREE = "key-of-loops-0123456789", "key-of-free-0123456789"


class Grants(Shared):
    @classmethod
    def settings(cls):
        priced = {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75, "server_tool": 0.01}
        settings = harness.config(cls.provider, retries={"attempts": 1})
        settings["models"] = [
            harness.model("claude-test", "anthropic", price=priced, profile={"image": True}), harness.model("gpt-test", "openai", price=priced),
            harness.model("unpriced", "anthropic"), harness.model("short", "anthropic", profile={"max_output": 2048}),
            harness.model("free", "anthropic", price={"input": 3.0, "output": 15.0, "server_tool": 0}),
        ]
        plain = settings["plans"]["standard"]
        granted = {"server_tools": ["web_search", "code_*", "mcp_servers"], "service_tiers": {"flex": 0.5, "priority": 2.0, "fast": 6},
                   "remote_files": True, "n": 3}
        settings["plans"].update({
            "all": {**plain, "direct": granted},
            "poor": {**plain, "direct": granted, "limits": {**plain["limits"], "usd_per_day": 0.5}},
            "rounds": {**plain, "direct": {"tool_rounds": 2}, "limits": {**plain["limits"], "tool_rounds_action": "refuse"}},
            "loops": {**plain, "direct": {"tool_rounds": 100}, "limits": {**plain["limits"], "loop_tokens": 15}},
            "free": {**plain, "limits": {**plain["limits"], "loop_tokens": 15}, "unknown_tool_calls": "refuse"},
            "last": {**plain, "direct": {"tool_rounds": 2}},
        })
        settings["tenants"] = [harness.tenant("none", NONE)] + [
            {**harness.tenant(plan, key), "plan": plan} for plan, key in
            (("all", ALL), ("poor", POOR), ("rounds", ROUNDS), ("last", LAST), ("loops", LOOPS), ("free", FREE))]
        return settings

    def test_nothing_is_permitted_unless_a_plan_says_so(self):
        url = {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://x.example/"}}]}
        part = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.example/"}}]}
        rows = [
            ("messages", {"tools": [search(max_uses=1)]}, "tools.0"), ("messages", {"service_tier": "priority"}, "service_tier"),
            ("messages", {"speed": "fast"}, "speed"), ("messages", {"mcp_servers": [{"url": "http://x"}]}, "mcp_servers"),
            ("messages", {"messages": [url]}, "messages.0.content.0.source.url"),
            ("chat", {"service_tier": "flex"}, "service_tier"), ("chat", {"n": 2}, "n: "),
            ("chat", {"messages": [part]}, "messages[0].content[0].image_url.url"),
            ("chat", {"web_search_options": {}}, "web_search_options"),
        ]
        for api, more, words in rows:
            with self.subTest(words):
                self.assert_refused(api, self.post(api, body_of(api, **more), NONE), words)

    def test_what_a_plan_permits_passes_as_it_was_sent(self):
        rows = [
            ("messages", {"tools": [search(max_uses=1)]}), ("messages", {"service_tier": "priority"}), ("messages", {"speed": "fast"}),
            ("messages", {"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "url", "url": "https://x/"}}]}]}),
            ("chat", {"service_tier": "flex"}), ("chat", {"n": 3}),
        ]
        for api, more in rows:
            with self.subTest(str(more)):
                self.provider.says(answer_of(api))
                self.assertEqual(self.post(api, body_of(api, **more), ALL).status, 200)
                sent = json.loads(self.provider.seen[-1][2])
                for name, value in more.items():
                    self.assertEqual(sent[name], value)
        self.provider.forget()
        self.assert_refused("chat", self.post("chat", body_of("chat", n=4), ALL), "n: ")
        self.assert_refused("messages", self.post("messages", body_of("messages", service_tier="scale"), ALL), "service_tier")

    def test_a_tools_uses_and_price_must_be_known(self):
        refused = [({"tools": [search()]}, "claude-test", "tools.0"), ({"tools": [search(max_uses=2)]}, "unpriced", "tools.0"),
                   ({"mcp_servers": [{"url": "https://x"}]}, "claude-test", "mcp_servers")]
        for more, model, words in refused:
            with self.subTest(model):
                self.assert_refused("messages", self.post("messages", {**body_of("messages", **more), "model": model}, ALL), words)
        for more in ({"tools": [search()]}, {"mcp_servers": [{"url": "https://x"}]}):  # costs nothing, however often
            self.provider.says(answer_of("messages"))
            self.assertEqual(self.post("messages", {**body_of("messages", **more), "model": "free"}, ALL).status, 200)

    def test_the_charge_is_what_the_answer_says(self):
        usual = 7 * INPUT + 3 * OUTPUT
        uses = {"server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0}}
        hour = {"cache_creation_input_tokens": 100, "cache_creation": {"ephemeral_5m_input_tokens": 60, "ephemeral_1h_input_tokens": 40}}
        cached = {"system": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]}
        rows = [
            ("messages", {"service_tier": "priority"}, {"service_tier": "priority"}, 2 * usual),
            ("messages", {"service_tier": "priority"}, {"service_tier": "standard"}, usual),
            ("messages", {"service_tier": "priority"}, {}, 2 * usual),
            ("messages", {}, {"service_tier": "priority"}, usual),  # never above what was reserved
            ("messages", {"speed": "fast"}, {"speed": "fast"}, 6 * usual),
            ("messages", {"tools": [search(max_uses=3)]}, uses, usual + 2 * USE),
            ("messages", {"tools": [search(max_uses=1)]}, uses, usual + USE),
            ("messages", {"tools": [search(max_uses=3)]}, {}, usual),
            ("messages", cached, hour, usual + 60 * SHORT + 40 * HOUR),
            ("chat", {"service_tier": "flex"}, "flex", usual // 2), ("chat", {"service_tier": "flex"}, "default", usual // 2),
            ("chat", {"service_tier": "priority"}, "priority", 2 * usual), ("chat", {"service_tier": "priority"}, "default", usual),
            ("chat", {"tools": [{"type": "web_search", "max_uses": 2}]}, None, usual + 2 * USE),  # nothing says how often
            ("chat", {"service_tier": "auto"}, "flex", usual // 2), ("chat", {}, None, usual),
        ]
        before = self.gate.metrics().sum("sluice_usd_total", tenant="all")
        total = 0
        for api, more, said, nano in rows:
            with self.subTest("%s %s" % (more, said)):
                self.provider.says(answer_of(api, usage=said) if api == "messages" else answer_of(api, tier=said))
                self.assertEqual(self.usd(self.post(api, body_of(api, **more), ALL)), nano)
                total += nano
        harness.wait_for(lambda: round((self.gate.metrics().sum("sluice_usd_total", tenant="all") - before) * 10**9) == total,
                         "the sum of all charges")

    def test_a_streams_charge_is_what_its_events_say(self):
        usual = 7 * INPUT + 3 * OUTPUT
        said = (event("message_start", message={"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [],
                                                "usage": {"input_tokens": 7, "output_tokens": 1, "service_tier": "priority"}})
                + event("content_block_start", index=0, content_block={"type": "text", "text": "Hi"})
                + event("content_block_stop", index=0)
                + event("message_delta", delta={"stop_reason": "end_turn"},
                        usage={"output_tokens": 3, "server_tool_use": {"web_search_requests": 2}})
                + event("message_stop"))
        self.provider.streams(said)
        answer = self.post("messages", body_of("messages", stream=True, service_tier="priority", tools=[search(max_uses=5)]), ALL)
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.body.count(b"event: "), 5)
        line = self.gate.log(answer.headers["request-id"])
        self.assertEqual(round(line["usd"] * 10**9), 2 * usual + 2 * USE)

    def test_the_bound_has_room_for_all_that_may_be_billed(self):
        """Of a tenant that may spend half a dollar. A request that costs more at most is refused before anything is sent."""
        document = [{"role": "user", "content": [{"type": "document", "source": {"type": "url", "url": "https://x.example/"}}]}]
        image = [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://x.example/"}}]}]
        dear = [
            ("messages", {"messages": document}),                      # 200,000 tokens of input are $0.75
            ("messages", {"tools": [search(max_uses=60)]}),
            ("messages", {"max_tokens": 4096, "speed": "fast", "messages": [{"role": "user", "content": "x" * 6000}]}),
            ("chat", {"max_tokens": 4096, "n": 3, "service_tier": "priority", "prediction": {"type": "content", "content": "x" * 40000}}),
        ]
        for api, more in dear:
            with self.subTest(str(more)[:80]):
                answer = self.post(api, body_of(api, **more), POOR)
                self.assertEqual(answer.status, 402 if api == "messages" else 429, answer)
                self.assertEqual(answer.json()["error"]["type"], "billing_error" if api == "messages" else "insufficient_quota")
                self.assertEqual(self.provider.seen, [])
        for api, more in (("messages", {"messages": image}), ("messages", {"max_tokens": 4096}), ("chat", {"max_tokens": 4096, "n": 3})):
            self.provider.says(answer_of(api))
            self.assertEqual(self.post(api, body_of(api, **more), POOR).status, 200)

    def test_thinking_has_room_in_what_the_model_may_write(self):
        thinking = {"max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2048}}
        asked = {**body_of("messages", **thinking), "model": "short"}
        self.assert_refused("messages", self.post("messages", asked, NONE), "max_tokens: the model's maximum of 2048", status=400)
        self.provider.says(answer_of("messages"))
        self.assertEqual(self.post("messages", {**asked, "model": "claude-test"}, NONE).status, 200)

    def history(self, api, rounds):
        messages = [{"role": "user", "content": "go"}]
        for i in range(rounds):
            if api == "messages":
                messages += [{"role": "assistant", "content": [{"type": "tool_use", "id": "%s%d" % (api, i), "name": "a", "input": {}}]},
                             {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "%s%d" % (api, i), "content": "x"}]}]
            else:
                call = {"id": "%s%d" % (api, i), "type": "function", "function": {"name": "a", "arguments": "{}"}}
                messages += [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "%s%d" % (api, i), "content": "x"}]
        tool = {"name": "a", "input_schema": {"type": "object"}} if api == "messages" else {"type": "function", "function": {"name": "a"}}
        return body_of(api, messages=messages, tools=[tool])

    def test_rounds_of_tools_count_only_where_a_plan_says_so(self):
        for api in PATHS:
            with self.subTest(api):
                self.provider.says(answer_of(api))
                sent = self.history(api, 40)  # limits.tool_rounds is 10
                self.assertEqual(self.post(api, sent, NONE).status, 200)
                self.assertNotIn("tool_choice", json.loads(self.provider.seen[-1][2]))
                for key in (ROUNDS, LAST):
                    self.provider.says(answer_of(api))
                    self.assertEqual(self.post(api, self.history(api, 1), key).status, 200)
                self.provider.says(answer_of(api))
                answer = self.post(api, self.history(api, 2), LAST)
                self.assertEqual(answer.headers["sluice-adjustments"], "tool_rounds_final")
                choice = json.loads(self.provider.seen[-1][2])["tool_choice"]
                self.assertEqual(choice, {"type": "none"} if api == "messages" else "none")
                self.provider.forget()
                self.assert_refused(api, self.post(api, self.history(api, 2), ROUNDS), "rounds")
        for key, rounds, choice in ((NONE, 40, None), (LAST, 2, "none")):  # at a provider of the other format, too
            self.provider.says(answer_of("chat"))
            self.assertEqual(self.post("messages", {**self.history("messages", rounds), "model": "gpt-test"}, key).status, 200)
            self.assertEqual(json.loads(self.provider.seen[-1][2]).get("tool_choice"), choice)

    def calling(self, api, number):
        """An answer of ten tokens that calls a tool."""
        answer = answer_of(api)
        if api == "messages":
            return {**answer, "content": [{"type": "tool_use", "id": "%s%d" % (api, number), "name": "a", "input": {}}], "stop_reason": "tool_use"}
        call = {"id": "%s%d" % (api, number), "type": "function", "function": {"name": "a", "arguments": "{}"}}
        return {**answer, "choices": [{"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [call]},
                                       "finish_reason": "tool_calls"}]}

    def test_a_loops_tokens_count_only_where_its_rounds_do(self):
        for api in PATHS:
            for key, last in ((LOOPS, 403), (FREE, 200)):
                with self.subTest("%s %s" % (api, key)):
                    self.provider.forget()
                    for number in range(2):
                        self.provider.says(self.calling(api, number))
                        self.assertEqual(self.post(api, self.history(api, number), key).status, 200)
                    self.provider.says(answer_of(api))
                    answer = self.post(api, self.history(api, 2), key)
                    self.assertEqual(answer.status, last, answer)
                    if last == 403:
                        self.assertEqual(self.gate.log(answer.headers["request-id"])["error"], "loop_tokens")


class Refusing(Shared):
    """Providers that do not take a member: another one of the model, or nobody."""

    @classmethod
    def settings(cls):
        settings = harness.config(cls.provider, retries={"attempts": 1})
        taking = harness.provider(cls.provider, "openai", direct={"refuse": ["logit_bias"]})
        settings["providers"] = {"openai": {**taking, "direct": {"refuse": ["logit_bias", "seed"]}},
                                 "second": {**taking, "endpoints": [{"url": cls.provider.url + "/second"}]}}
        settings["models"] = [harness.model("gpt-test", "openai", aliases=["both"]),
                              harness.model("gpt-second", "second", aliases=["both"])]
        settings["plans"]["standard"]["models"]["default"] = "gpt-test"
        return settings

    def test_a_reload_takes_the_names_over(self):
        self.addCleanup(self.gate.reload)
        self.addCleanup(self.gate.write_config, self.gate.settings)
        changed = copy.deepcopy(self.gate.settings)
        changed["providers"]["openai"]["direct"] = {"refuse": []}
        changed["plans"]["standard"]["direct"] = {"n": 2}
        asked = {**body_of("chat", seed=1, n=2), "model": "gpt-test"}
        self.assert_refused("chat", self.post("chat", asked, harness.KEY), "n: ")
        self.gate.write_config(changed)
        reloaded = self.gate.reload()
        self.assertEqual(reloaded.status, 200, reloaded)
        self.provider.answers += [(200, "application/json", [json.dumps(answer_of("chat")).encode()], True)]
        harness.wait_for(lambda: self.post("chat", asked, harness.KEY).status == 200, "the new names")

    def test_a_provider_that_refuses_a_member_is_not_taken(self):
        for more, paths in (({}, ["/v1/chat/completions", "/second/chat/completions"]), ({"seed": 1}, ["/second/chat/completions"]),
                            ({"Seed": 1}, ["/second/chat/completions"])):
            for _ in range(4):
                self.provider.says(answer_of("chat"))
                self.assertEqual(self.post("chat", {**body_of("chat", **more), "model": "both"}, harness.KEY).status, 200)
                self.assertIn(self.provider.seen[-1][0], paths)
        self.provider.forget()
        self.assert_refused("chat", self.post("chat", {**body_of("chat", seed=1), "model": "gpt-test"}, harness.KEY), "seed")
        self.assert_refused("chat", self.post("chat", {**body_of("chat", LOGIT_BIAS={}), "model": "both"}, harness.KEY), "logit_bias")
        answer = self.post("chat", {**body_of("chat"), "model": "neither"}, harness.KEY)
        self.assert_refused("chat", answer, "neither", status=404)


IMAGE = "iVBORw0KGgo" + "A" * 189
TOOL = {"name": "delete_all", "inputSchema": {"type": "object"}}


def one_tool(api, **more):
    if api == "sampling":
        return {"tools": [TOOL], **more}
    if api == "messages":
        return {"tools": [{"name": TOOL["name"], "input_schema": {"type": "object"}}], **more}
    return {"tools": [{"type": "function", "function": {"name": TOOL["name"], "parameters": {"type": "object"}}}], **more}


def image_in(api):
    block = {"sampling": {"type": "image", "mimeType": "image/png", "data": IMAGE},
             "messages": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}},
             "chat": {"type": "image_url", "image_url": {"url": "data:image/png;base64," + IMAGE}}}[api]
    return {"messages": [{"role": "user", "content": [block]}]}


def sound_in(api):
    block = {"sampling": {"type": "audio", "mimeType": "audio/wav", "data": IMAGE},
             "chat": {"type": "input_audio", "input_audio": {"format": "wav", "data": IMAGE}}}[api]
    return {"messages": [{"role": "user", "content": [block]}]}


def turns(api, count):
    text = {"type": "text", "text": "x"} if api == "sampling" else "x"
    return {"messages": [{"role": "user" if i % 2 == 0 else "assistant", "content": text} for i in range(count)]}


def blocks(api, count):
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}] * count}]}


def system(api, text):
    if api == "chat":
        return {"messages": [{"role": "system", "content": text}, {"role": "user", "content": "x"}]}
    return {"systemPrompt" if api == "sampling" else "system": text}


def user_id(api):
    return {"user": "u"} if api == "chat" else {"metadata": {"user_id": "u"}}


def forced(api):
    choice = {"sampling": {"toolChoice": {"mode": "required"}}, "messages": {"tool_choice": {"type": "any"}},
              "chat": {"tool_choice": "required"}}[api]
    return one_tool(api, **choice)


def bound(api, count):
    return {"maxTokens" if api == "sampling" else "max_tokens": count}


# (what is refused, the plan's settings, the request's members in each API, and in which)
EVERYWHERE = ("sampling", "messages", "chat")
RULES = [
    ("tools_granted", {"capabilities": {"tools": False}}, one_tool, EVERYWHERE),
    ("tools", {"policy": {"tools": {"deny": ["delete_*"]}}}, one_tool, EVERYWHERE),
    ("tools", {"policy": {"tools": {"allow": ["search_*"]}}}, one_tool, EVERYWHERE),
    ("max_tools", {"policy": {"max_tools": 0}}, one_tool, EVERYWHERE),
    ("schema_bytes", {"policy": {"schema_bytes": "5B"}}, one_tool, EVERYWHERE),
    ("tool_choice", {"policy": {"tool_choice": {"required": False}}}, forced, EVERYWHERE),
    ("images_granted", {"capabilities": {"images": False}}, image_in, EVERYWHERE),
    ("image_bytes", {"policy": {"image_bytes": "100B"}}, image_in, EVERYWHERE),
    ("audio_granted", {"capabilities": {"audio": False}}, sound_in, ("sampling", "chat")),
    ("max_messages", {"policy": {"max_messages": 2}}, lambda api: turns(api, 3), EVERYWHERE),
    ("max_blocks", {"policy": {"max_blocks": 2}}, lambda api: blocks(api, 3), EVERYWHERE),
    ("system_bytes", {"policy": {"system_bytes": "4B"}}, lambda api: system(api, "0123456789"), EVERYWHERE),
    ("metadata", {"policy": {"metadata": {"user_id": "refuse"}}}, user_id, EVERYWHERE),
    ("max_tokens", {"limits": {"max_tokens": 10, "max_tokens_mode": "refuse"}}, lambda api: bound(api, 11), EVERYWHERE),
    ("model_permitted", {"models": {"allow": [], "default": None}}, lambda api: {}, EVERYWHERE),
]


class SamePolicy(Shared):
    @classmethod
    def settings(cls):
        settings = harness.config(cls.provider, retries={"attempts": 1})
        settings["models"] = [harness.model("claude-test", "anthropic", profile={"image": True}),
                              harness.model("gpt-test", "openai", profile={"image": True, "audio": True})]
        plain = settings["plans"]["standard"]
        plain["capabilities"] = {"tools": True, "images": True, "audio": True}
        plain["models"]["default"] = "gpt-test"
        settings["tenants"] = [harness.tenant("plain", harness.KEY)]
        for i, (_, changes, _, _) in enumerate(RULES):
            plan = {key: dict(value) for key, value in plain.items()}
            for key, value in changes.items():
                plan.setdefault(key, {}).update(value)
                plan[key] = {name: item for name, item in plan[key].items() if item is not None}
            settings["plans"]["plan%d" % i] = plan
            settings["tenants"].append({**harness.tenant("tenant%d" % i, "key-%d-0123456789" % i), "plan": "plan%d" % i})
        return settings

    def ask(self, api, more, key):
        if api == "sampling":
            return self.gate.sample(key=key, **more)
        return self.post(api, body_of(api, **more), key)

    def test_what_sampling_may_not_direct_requests_may_not(self):
        for i, (rule, _, make, apis) in enumerate(RULES):
            with self.subTest(rule):
                why = set()
                for api in apis:
                    answer = self.ask(api, make(api), "key-%d-0123456789" % i)
                    # MCP calls tools that were not granted a bad request
                    self.assertEqual(answer.status, 400 if (rule, api) == ("tools_granted", "sampling") else 403, answer)
                    line = self.gate.log(answer.headers["sluice-request-id" if api == "sampling" else "request-id"])
                    why.add((line["tenant"], line["error"], line.get("detail")))
                self.assertEqual(len(why), 1, why)
                self.assertEqual(self.provider.seen, [])

    def test_the_same_passes_where_nothing_is_said(self):
        for rule, _, make, apis in RULES:
            for api in apis:
                if api != "sampling":
                    with self.subTest("%s %s" % (rule, api)):
                        self.provider.says(answer_of(api))
                        self.assertEqual(self.ask(api, make(api), harness.KEY).status, 200)


if __name__ == "__main__":
    harness.main()
