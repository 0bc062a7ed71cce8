#!/usr/bin/env python3
"""Official SDKs of Python and Node, of both makers, in front of the direct APIs: they see what they see of the provider directly, and
of a refusal what each of them calls it.

ctest: once timeout=400
"""
import base64
import json
import sys
import threading

import direct_rig
import harness
import told_answers
import told_provider
from direct_rig import APIS, MODELS
from told_answers import completion, message

CITY = "18 degrees in Paris"
WORDS = "Grüße, \u2028 \"quoted\" \\ and 🙂"
THINKING = {"type": "thinking", "thinking": "Let me see…", "signature": base64.b64encode(bytes(range(200))).decode()}
CALL = {"type": "tool_use", "id": "toolu_01", "name": "get_weather", "input": {"city": "Paris", "days": [1, 2.5, None]}}
CALLS = [{"id": f"call_{n}", "type": "function", "function": {"name": "get_weather", "arguments": json.dumps({"city": "Paris", "n": n})}}
         for n in range(2)]
IMAGE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 3).decode()
TOOL = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
RICH = {  # what an SDK may send of everything
    "messages": {
        "system": [{"type": "text", "text": "Be brief", "cache_control": {"type": "ephemeral"}}],
        "thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048, "metadata": {"user_id": "u-1"},
        "tools": [{"name": "get_weather", "description": "Weather", "input_schema": TOOL, "strict": True}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}, "stop_sequences": ["END"],
        "messages": [{"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}, {"type": "text", "text": WORDS}]}]},
    "chat": {
        "temperature": 1.5, "max_completion_tokens": 300, "seed": 7, "reasoning_effort": "low", "user": "u-1", "stop": ["END"],
        "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": TOOL}}], "tool_choice": "auto",
        "logit_bias": {"50256": -100}, "parallel_tool_calls": True, "prompt_cache_key": "k",
        "messages": [{"role": "developer", "content": "Be brief"}, {"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}}, {"type": "text", "text": WORDS}]}]},
}
ANSWERS = {
    "messages": [message("claude-test", [THINKING, {"type": "text", "text": WORDS}, CALL], "tool_use"),
                 message("claude-test", [{"type": "text", "text": WORDS}])],
    "chat": [completion("gpt-test", WORDS), completion("gpt-test", None, "tool_calls", tool_calls=CALLS)],
}
LONG = {"messages": message("claude-test", [{"type": "text", "text": WORDS * 9}]), "chat": completion("gpt-test", WORDS * 9)}
ERRORS = {"messages": lambda kind, words, **more: {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_up", **more},
          "chat": lambda kind, words, code=None: {"error": {"message": words, "type": kind, "param": None, "code": code}}}


def events(api, answer, usage=True):
    return list(told_answers.message_events(answer) if api == "messages" else told_answers.chat_events(answer, usage))


def said(events_seen):
    """The text of a stream's events so far."""
    text = ""
    for event in events_seen:
        for delta in (event.get("delta") or {}, *(choice["delta"] for choice in event.get("choices", ()))):
            text += delta.get("text") or delta.get("content") or ""
    return text


class Answers(direct_rig.Case):
    def through_and_directly(self, ask, api, do, params, say):
        """What came of it through the gateway, once it is what comes directly; and what the provider was sent."""
        seen, sent = [], []
        for url in (self.front.url, self.provider.url):
            self.provider.forget()
            say()
            seen.append(ask(api, do, params, url=url))
            sent.append([(path, json.loads(body)) for path, _, body in self.provider.seen])
        self.assertEqual(*seen)
        for (path, body), (path_directly, directly) in zip(*sent, strict=True):
            self.assertEqual(path.split("?")[0], path_directly.split("?")[0])
            if api == "chat":
                for name in ("max_tokens", "stream_options"):  # written in
                    if name not in directly:
                        body.pop(name, None)
            self.assertEqual(body, directly)
        return seen[0]

    def test_answers_and_requests_are_what_they_are_directly(self):
        for name, ask in self.each():
            for api in APIS:
                for answer in ANSWERS[api]:
                    with self.subTest(name, api=api):
                        got = self.through_and_directly(ask, api, "create", RICH[api], lambda: self.provider.says(answer))
                        for member in ("id", "usage", "model", *(("content", "stop_reason") if api == "messages" else ("choices",))):
                            self.assertEqual(json.loads(json.dumps(answer[member])), {**answer, **got}[member], member)

    def test_streams_add_up_to_the_answer(self):
        for name, ask in self.each():
            for api in APIS:
                for answer in ANSWERS[api]:
                    with self.subTest(name, api=api):
                        stream = b"".join(events(api, answer))
                        more = {**RICH[api], **({"stream_options": {"include_usage": True}} if api == "chat" else {})}
                        got = self.through_and_directly(ask, api, "stream", more, lambda: self.provider.streams(stream, step=11))
                        self.assertGreater(len(got["seen"]), 3)
                        if api == "messages":
                            self.assertEqual([got["final"][member] for member in ("content", "stop_reason", "usage")],
                                             [answer[member] for member in ("content", "stop_reason", "usage")])
                        else:
                            choice, wanted = got["final"]["choices"][0], answer["choices"][0]
                            self.assertEqual((choice["message"].get("content"), choice["finish_reason"], got["final"]["usage"]["total_tokens"]),
                                             (wanted["message"]["content"], wanted["finish_reason"], 36))
                            self.assertEqual([call["function"]["arguments"] for call in choice["message"].get("tool_calls") or ()],
                                             [call["function"]["arguments"] for call in wanted["message"].get("tool_calls", ())])

    def test_events_come_as_the_provider_sends_them(self):
        for name, ask in self.each():
            for api in APIS:
                for options in ({}, {"stream_options": {"include_usage": True}})[:1 if api == "messages" else 2]:
                    with self.subTest(name, api=api, **options):
                        self.provider.streams(b"".join(events(api, ANSWERS[api][0])))
                        got = ask(api, "events", options)
                        self.assertEqual(said(got), WORDS)
                        if api == "chat":
                            self.assertEqual([len(event["choices"]) for event in got[-2:]], [1, 0] if options else [1, 1])
                            self.assertEqual(bool(got[-1].get("usage")), bool(options))
                            self.assertTrue(self.body()["stream_options"]["include_usage"])

    def test_signed_thinking_comes_back_as_it_was(self):
        for name, ask in self.each():
            with self.subTest(name):
                self.provider.says(ANSWERS["messages"][0])
                got = ask("messages", "create", RICH["messages"])
                history = [*RICH["messages"]["messages"], {"role": "assistant", "content": got["content"]},
                           {"role": "user", "content": [{"type": "tool_result", "tool_use_id": CALL["id"], "content": "18 degrees"}]}]
                self.provider.says(ANSWERS["messages"][1])
                ask("messages", "create", {**RICH["messages"], "messages": history})
                self.assertEqual(self.body()["messages"], history)
                self.assertEqual(self.body()["messages"][1]["content"], ANSWERS["messages"][0]["content"])

    def test_the_tool_runner_of_messages_goes_on_without_threads(self):
        def answer(path, headers, body):
            asked = json.loads(body)
            self.assertNotIn("thread", asked)
            results = [block for one in asked["messages"] if isinstance(one["content"], list)
                       for block in one["content"] if block["type"] == "tool_result"]
            text = results[-1]["content"] if results else ""
            whole = message("claude-test", [{"type": "text", "text": json.dumps(text)}]) if len(results) == 2 else \
                message("claude-test", [{**CALL, "id": f"toolu_{len(results)}", "input": {"city": "Paris"}}], "tool_use")
            if asked.get("stream"):
                return 200, "text/event-stream", events("messages", whole), True
            return 200, "application/json", [json.dumps(whole).encode()], True
        self.provider.otherwise = answer
        for name, ask in self.each():
            for streamed in (False, True):
                with self.subTest(name, streamed=streamed):
                    self.provider.forget()
                    turns = ask("messages", "tools", {"stream": True} if streamed else {})
                    self.assertEqual([turn["stop_reason"] for turn in turns], ["tool_use", "tool_use", "end_turn"])
                    self.assertIn(CITY, turns[-1]["content"][0]["text"])
                    asked = [self.body(n) for n in range(len(self.provider.seen))]
                    self.assertEqual([len(one["messages"]) for one in asked], [1, 3, 5])  # the whole history each time
                    self.assertTrue(all(one["tools"] for one in asked))

    def test_tools_of_chat_are_called(self):
        def answer(path, headers, body):
            results = [one for one in json.loads(body)["messages"] if one["role"] == "tool"]
            whole = completion("gpt-test", json.dumps(results)) if results else completion("gpt-test", None, "tool_calls", tool_calls=CALLS)
            return 200, "application/json", [json.dumps(whole).encode()], True
        self.provider.otherwise = answer
        for name, ask in self.each():
            with self.subTest(name):
                turns = ask("chat", "tools")
                self.assertEqual([turn["choices"][0]["finish_reason"] for turn in turns], ["tool_calls", "stop"])
                self.assertEqual(turns[-1]["choices"][0]["message"]["content"].count(CITY), 2)

    def test_structured_output_is_parsed(self):
        city = {"name": "Paris", "degrees": 18.5}
        for name, ask in self.each():
            for api in APIS:
                with self.subTest(name, api=api):
                    whole = message("claude-test", [{"type": "text", "text": json.dumps(city)}]) if api == "messages" else \
                        completion("gpt-test", json.dumps(city))
                    self.assertEqual(self.through_and_directly(ask, api, "parse", {}, lambda: self.provider.says(whole)), city)
                    wanted = self.body()
                    kind = wanted["output_config"]["format"] if api == "messages" else wanted["response_format"]
                    self.assertEqual(kind["type"], "json_schema")

    def test_headers_name_the_call_and_what_remains(self):
        for name, ask in self.each():
            for api in APIS:
                for streamed in (False, True):
                    with self.subTest(name, api=api, streamed=streamed):
                        if streamed:
                            self.provider.streams(b"".join(events(api, ANSWERS[api][0], usage=False)))
                        else:
                            self.provider.says(ANSWERS[api][0])
                        headers = ask(api, "raw", {"stream": True} if streamed else {})["headers"]
                        self.assertEqual(headers["request-id"], headers["x-request-id"])
                        self.assertEqual((headers["sluice-model"], headers["sluice-provider-request-id"]), (MODELS[api], "req_up"))
                        line = self.log(headers["request-id"])
                        self.assertEqual((line["front"], line["status"], line["tenant"]), (api, 200, "acme"))
                        self.assertEqual("sluice-usd" in headers, not streamed)
                        self.assertGreater(float(headers.get("sluice-usd", 1)), 0)
                        for what in ("requests", "tokens"):
                            for limit, remaining in ((headers[f"anthropic-ratelimit-{what}-limit"], headers[f"anthropic-ratelimit-{what}-remaining"]),
                                                     (headers[f"x-ratelimit-limit-{what}"], headers[f"x-ratelimit-remaining-{what}"])):
                                self.assertTrue(0 < int(remaining) <= int(limit), headers)

    def test_tokens_are_counted(self):
        for name, ask in self.each():
            with self.subTest(name):
                asked = {member: value for member, value in RICH["messages"].items()
                         if member in ("system", "messages", "tools", "tool_choice", "thinking")}
                got = self.through_and_directly(ask, "messages", "count", asked, lambda: self.provider.says({"input_tokens": 4711}))
                self.assertEqual(got["input_tokens"], 4711)
                self.assertEqual([one[0].split("?")[0] for one in self.provider.seen], ["/v1/messages/count_tokens"])
                self.provider.says(ERRORS["messages"]("not_found_error", "no such path"), status=404)
                self.assertGreater(ask("messages", "count", {"model": next(self.fresh["messages"])})["input_tokens"], 0)  # an estimate
                self.assertEqual(ask.fails("messages", "count", {"model": "claude-typo"})["class"], "NotFoundError")

    def test_models_are_listed_and_found(self):
        everything = {name for api in APIS for name in (MODELS[api], *(f"{MODELS[api]}-{n}" for n in range(self.FRESH)))}
        for name, ask in self.each():
            for api in APIS:
                with self.subTest(name, api=api):
                    listed = ask(api, "models")
                    self.assertLessEqual(everything, {model["id"] for model in listed})
                    self.assertEqual({model.get("type", model.get("object")) for model in listed}, {"model"})
                    for wanted in (MODELS[api], MODELS[api] + "-7"):
                        found = ask(api, "model", {"id": wanted})
                        self.assertEqual(found, *(model for model in listed if model["id"] == wanted))
                    error = ask.fails(api, "model", {"id": "nobody/has this"})
                    self.assertEqual((error["class"], error["status"]), ("NotFoundError", 404))
                    self.assertEqual(ask.fails(api, "models", key="sk-nobody")["class"], "AuthenticationError")

    def test_clients_that_do_not_block(self):
        for name, ask in self.each(("async",)):
            for api in APIS:
                with self.subTest(api):
                    self.provider.says(ANSWERS[api][0])
                    self.assertEqual(ask(api, "create")["id"], ANSWERS[api][0]["id"])
                    self.provider.streams(b"".join(events(api, ANSWERS[api][0])))
                    final = ask(api, "stream")["final"]
                    self.assertEqual(final["id"], ANSWERS[api][0]["id"])


    def test_many_at_once_do_not_mix(self):
        def answer(path, headers, body):
            asked = json.loads(body)
            api = "messages" if "/messages" in path else "chat"
            words = asked["messages"][0]["content"]
            whole = message("claude-test", [{"type": "text", "text": words}]) if api == "messages" else completion("gpt-test", words)
            return 200, "text/event-stream", events(api, whole), True
        self.provider.otherwise = answer
        count = 200 if direct_rig.LONG else 20
        for name, ask in self.each(("async", "node")):
            for api in APIS:
                with self.subTest(name, api=api):
                    self.provider.forget()
                    finals = ask(api, "many", {"count": count})
                    texts = [one["content"][0]["text"] if api == "messages" else one["choices"][0]["message"]["content"] for one in finals]
                    self.assertEqual(texts, [f"number {n}" for n in range(count)])
                    self.assertEqual(len(self.provider.seen), count)


class Ends(direct_rig.Case):
    """Those who leave, and providers that do."""

    def assert_gone(self, count=1):
        harness.wait_for(lambda: self.provider.gone >= count, "the provider's request has ended")

    def assert_settled(self, api, model):
        """The call is written down as left by its caller; what it cost."""
        line = json.loads(self.front.wait_line(lambda line: f'"{model}"' in line, "the log has it"))
        self.assertEqual((line["front"], line["status"]), (api, 499), line)
        return line["usd"]

    def test_a_stream_that_is_left_ends_at_the_provider(self):
        for name, ask in self.each():
            for api in APIS:
                with self.subTest(name, api=api):
                    self.provider.forget()
                    model = next(self.fresh[api])
                    front = events(api, LONG[api])[:5]
                    self.provider.answers.append((200, "text/event-stream", [*front, told_provider.Gone()], False))
                    ask(api, "leave", {"model": model})
                    self.assert_gone()
                    self.assertGreater(self.assert_settled(api, model), 0)

    def test_a_request_that_is_called_off_ends_at_the_provider(self):
        for name, ask in self.each(("async", "node")):
            for api in APIS:
                with self.subTest(name, api=api):
                    self.provider.forget()
                    model = next(self.fresh[api])
                    self.provider.answers.append((200, "application/json", [b" ", told_provider.Gone()], False))
                    ask.tell(api, "cancel", {"model": model})
                    harness.wait_for(lambda: self.provider.seen, "the provider is asked")
                    ask.client.tell()
                    self.assertIn(ask.client.hear()["raised"]["class"], ("CancelledError", "APIUserAbortError"))
                    self.assert_gone()
                    self.assert_settled(api, model)

    def test_a_request_that_takes_too_long_for_its_client_ends_at_the_provider(self):
        for name, ask in self.each():
            for api in APIS:
                with self.subTest(name, api=api):
                    self.provider.forget()
                    self.provider.answers.append((200, "application/json", [b" ", told_provider.Gone()], False))
                    error = ask.fails(api, options={"timeout": 1})
                    self.assertIn(error["class"], ("APITimeoutError", "APIConnectionTimeoutError", "GatewayTimeoutError", "InternalServerError"))
                    self.assertIn(error["status"], (None, 504))  # the gateway has been told how long its client waits
                    self.assert_gone()

    def test_a_stream_that_breaks_is_an_exception_and_never_an_answer(self):
        for name, ask in self.each():
            for api in APIS:
                whole = events(api, LONG[api])
                told = json.dumps(ERRORS[api]("overloaded_error", "too busy, org-secret")).encode()
                ends = {"cut": ([], False), "clean": ([], True), "terminal": (whole[-1:], True),
                        "told": ([(b"event: error\n" if api == "messages" else b"") + b"data: " + told + b"\n\n"], True)}
                for how, (last, clean) in ends.items():
                    for do in ("events", "stream"):
                        with self.subTest(name, api=api, how=how, do=do):
                            self.provider.forget()
                            heard = threading.Event()  # an end that comes before anything was said is no stream's
                            self.provider.answers.append((200, "text/event-stream", [*whole[:6], heard, *last], clean))
                            ask.tell(api, do, {"model": next(self.fresh[api])}, retries=2, aloud=True)
                            self.assertIn("first", ask.client.hear())
                            heard.set()
                            reply = ask.client.hear()
                            self.assertIn("raised", reply)
                            self.assertNotIn("secret", json.dumps(reply))
                            self.assertIn("APIError", reply["raised"]["is"], reply)
                            if do == "events":
                                self.assertTrue((WORDS * 9).startswith(said(reply["seen"])) and said(reply["seen"]), reply)
                            self.assertEqual(len(self.provider.seen), 1)  # nobody asks again once something was said


class Refusals(direct_rig.Case):
    changes = {"limits": {"body_bytes": "64KiB"}}

    @classmethod
    def settings(cls, settings):
        settings = super().settings(settings)
        standard = settings["plans"]["standard"]
        plans = {"poor": {"usd_per_day": 0.0000001}, "hasty": {"deadline_progress": "200ms", "deadline": "200ms"},
                 **{f"slow-{n}": {"requests_per_minute": 1, "requests_burst": 1} for n in range(6)}}
        for name, limits in plans.items():
            settings["plans"][name] = {**standard, "limits": {**standard["limits"], **limits}}
            settings["tenants"].append(harness.tenant(name, cls.key(name), plan=name))
        settings["plans"]["narrow"] = {**standard, "models": {"allow": ["other-*"], "default": "other-claude"}}
        settings["models"] += [harness.model("other-claude", "anthropic"), harness.model("other-gpt", "openai")]
        settings["tenants"].append(harness.tenant("narrow", cls.key("narrow"), plan="narrow"))
        return settings

    @staticmethod
    def key(name):
        return f"{harness.KEY}-{name}"

    def assert_raised(self, name, error, api, status, classes, kind=None, code=None):
        self.assertEqual(error["status"], status, error)
        wanted = classes.get((name, api), classes.get(api, classes.get(None)))
        self.assertEqual(error["class"], wanted, error)
        if kind is not None:
            self.assertEqual(error["type"], kind, error)
        self.assertEqual(error["code"], code, error)
        self.assertTrue(error["request_id"], error)
        self.assertEqual(error["headers"]["request-id"], error["headers"]["x-request-id"])
        line = self.log(error["request_id"])
        self.assertEqual((line["front"], line["status"]), (api, status), line)

    def test_refusals_are_the_exceptions_that_each_sdk_has_for_them(self):
        """Of our own; none of them reaches the provider, and none is sent again."""
        server_tool = {"messages": {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "chat": {"web_search_options": {}}}
        large = {"messages": [{"role": "user", "content": "x" * 70000}]}
        chat = "invalid_request_error"
        rows = [  # parameters, key; status, class, type of Messages and of Chat; code of Chat
            ({"messages": "none at all"}, None, (400, 400), "BadRequestError", (chat, chat), None),
            ({}, "sk-nobody", (401, 401), "AuthenticationError", ("authentication_error", chat), "invalid_api_key"),
            ({}, self.key("poor"), (402, 429), {"messages": "PaymentRequiredError", "chat": "RateLimitError"},
             ("billing_error", "insufficient_quota"), "insufficient_quota"),
            (server_tool, None, (403, 403), "PermissionDeniedError", ("permission_error", chat), None),
            ({}, self.key("narrow"), (404, 404), "NotFoundError", ("not_found_error", chat), "model_not_found"),
            ({"model": "claude-typo"}, None, (404, 404), "NotFoundError", ("not_found_error", chat), "model_not_found"),
            (large, None, (413, 413), {"chat": "APIStatusError", ("node", "chat"): "APIError", "messages": "ContentTooLargeError"},
             ("request_too_large", chat), None),
        ]
        for name, ask in self.each():
            for index, api in enumerate(APIS):
                for params, key, statuses, classes, kinds, code in rows:
                    with self.subTest(name, api=api, status=statuses[index]):
                        params = params.get(api, params) if params is server_tool else params
                        error = ask.fails(api, params=params, key=key or harness.KEY, retries=2)
                        self.assert_raised(name, error, api, statuses[index], {None: classes} if isinstance(classes, str) else classes,
                                           kinds[index], code if api == "chat" else None)
                        self.assertEqual(error["headers"]["x-should-retry"], "false")
        self.assertEqual(self.provider.seen, [])

    def test_faults_of_a_provider_are_the_exceptions_that_each_sdk_has_for_them(self):
        own = "prompt is too long: 201000 tokens > 200000 maximum"
        bad = {None: "BadRequestError"}
        internal = {None: "InternalServerError"}
        rows = [  # what the provider says; status, class, type of Messages and of Chat; code of Chat; whether it is worth another try
            ((400, "invalid_request_error", own), (400, 400), bad, ("invalid_request_error",) * 2, None, None),
            ((413, "request_too_large", "too large"), (413, 413), {
                "chat": "APIStatusError", ("node", "chat"): "APIError", "messages": "ContentTooLargeError"}, (None, None), None, None),
            ((422, "invalid_request_error", "hm"), (422, 422), {None: "UnprocessableEntityError"}, (None, None), None, None),
            ((401, "authentication_error", "provider's words"), (500, 500), internal, ("api_error", "server_error"), None, "false"),
            ((403, "permission_error", "provider's words"), (500, 500), internal, ("api_error", "server_error"), None, "false"),
            ((429, "rate_limit_error", "slow down"), (429, 429), {None: "RateLimitError"}, ("rate_limit_error", "rate_limit_exceeded"),
             "rate_limit_exceeded", None),
            ((500, "api_error", "provider's words"), (500, 503), {"messages": "InternalServerError", "chat": "InternalServerError"},
             ("api_error", "server_error"), None, None),
            ((529, "overloaded_error", "provider's words"), (529, 503), {"messages": "OverloadedError", ("node", "messages"): "OverloadedError",
                                                          "chat": "InternalServerError"},
             ("overloaded_error", "server_error"), "server_is_overloaded", None),
            ((503, "overloaded_error", "provider's words"), (529, 503), {"messages": "OverloadedError", "chat": "InternalServerError"},
             ("overloaded_error", "server_error"), "server_is_overloaded", None),
        ]
        for name, ask in self.each():
            for index, api in enumerate(APIS):
                for (status, kind, words), statuses, classes, kinds, code, again in rows:
                    with self.subTest(name, api=api, status=status):
                        self.provider.forget()
                        self.provider.says(ERRORS[api](kind, words), status=status)
                        error = ask.fails(api, params={"model": next(self.fresh[api])})
                        self.assert_raised(name, error, api, statuses[index], classes, kinds[index], code if api == "chat" else None)
                        self.assertEqual(error["headers"].get("x-should-retry"), again)
                        self.assertEqual(words in error["message"], status in (400, 413, 422))
                with self.subTest(name, api=api, status=504):
                    self.provider.forget()
                    self.provider.answers.append((200, "application/json", [b" ", told_provider.Gone()], False))
                    error = ask.fails(api, params={"model": next(self.fresh[api])}, key=self.key("hasty"))
                    self.assert_raised(name, error, api, 504, {"messages": "GatewayTimeoutError", "chat": "InternalServerError"},
                                       ("timeout_error", "server_error")[index])

    def test_what_is_worth_another_try_is_tried_again_as_often_as_the_client_wants(self):
        for name, ask in self.each():
            for api in APIS:
                for status, fields, again in ((529, {}, 2), (429, {"retry-after": "1"}, 1), (429, {"retry-after": "61"}, 0), (401, {}, 0)):
                    with self.subTest(name, api=api, status=status, **fields):
                        self.provider.forget()
                        model = next(self.fresh[api])
                        for _ in range(3):
                            self.provider.says(ERRORS[api]("overloaded_error", "provider's words"), status=status, fields=fields)
                        error = ask.fails(api, params={"model": model}, retries=again)
                        self.assertEqual(len(self.provider.seen), again + 1)
                        if fields.get("retry-after") == "61":
                            self.assertEqual(error["headers"]["x-should-retry"], "false")
                            self.assertIn(int(error["headers"]["retry-after"]), (60, 61))

    def test_a_second_try_succeeds(self):
        for name, ask in self.each():
            for api in APIS:
                with self.subTest(name, api=api):
                    self.provider.forget()
                    self.provider.says(ERRORS[api]("overloaded_error", "provider's words"), status=529)
                    self.provider.says(ANSWERS[api][-1])
                    self.assertEqual(ask(api, "create", {"model": next(self.fresh[api])}, retries=2)["id"], ANSWERS[api][-1]["id"])
                    self.assertEqual(len(self.provider.seen), 2)

    def test_a_rate_of_our_own_is_429_with_a_wait(self):
        keys = (self.key(f"slow-{n}") for n in range(6))
        for name, ask in self.each():
            for api in APIS:
                with self.subTest(name, api=api):
                    self.provider.forget()
                    key = next(keys)
                    self.provider.says(ANSWERS[api][-1])
                    ask(api, "create", key=key)
                    error = ask.fails(api, key=key)
                    self.assert_raised(name, error, api, 429, {None: "RateLimitError"},
                                       {"messages": "rate_limit_error", "chat": "rate_limit_exceeded"}[api],
                                       "rate_limit_exceeded" if api == "chat" else None)
                    self.assertLessEqual(int(error["headers"]["retry-after"]), 60)
                    self.assertEqual(len(self.provider.seen), 1)


class Crossed(direct_rig.Case):
    """A model whose provider speaks the other API: the SDKs see what they would see of one that speaks theirs."""

    OTHER = {"messages": "chat", "chat": "messages"}
    CITY = {"city": "Paris"}
    TOOLS = {"messages": [{"name": "get_weather", "input_schema": TOOL}],
             "chat": [{"type": "function", "function": {"name": "get_weather", "parameters": TOOL}}]}

    def said_by_the_other(self, api, words=WORDS, calls=1):
        """An answer of the other API: text and calls."""
        if api == "chat":
            content = [{"type": "text", "text": words}] if words else []
            content += [{"type": "tool_use", "id": f"toolu_{n}", "name": "get_weather", "input": self.CITY} for n in range(calls)]
            return message("claude-test", content, "tool_use" if calls else "end_turn")
        tool_calls = [{"id": f"call_{n}", "type": "function", "function": {"name": "get_weather", "arguments": json.dumps(self.CITY)}}
                      for n in range(calls)]
        return completion("gpt-test", words, "tool_calls" if calls else "stop", **({"tool_calls": tool_calls} if calls else {}))

    def says(self, api, whole, streamed=False):
        if streamed:
            self.provider.streams(b"".join(events(self.OTHER[api], whole)), step=13)
        else:
            self.provider.says(whole)

    def model(self, api):
        return {"model": MODELS[self.OTHER[api]]}

    @staticmethod
    def read(api, answer):
        """(text, the calls' inputs, why it ended, tokens in all ways)."""
        if api == "messages":
            usage = answer["usage"]
            return ("".join(block["text"] for block in answer["content"] if block["type"] == "text"),
                    [block["input"] for block in answer["content"] if block["type"] == "tool_use"], answer["stop_reason"],
                    usage["input_tokens"] + (usage.get("cache_read_input_tokens") or 0) + (usage.get("cache_creation_input_tokens") or 0),
                    usage["output_tokens"])
        said_, usage = answer["choices"][0]["message"], answer["usage"]
        return (said_.get("content") or "", [json.loads(call["function"]["arguments"]) for call in said_.get("tool_calls") or ()],
                answer["choices"][0]["finish_reason"], usage["prompt_tokens"], usage["completion_tokens"])

    def test_answers_and_streams_say_the_same(self):
        for name, ask in self.each():
            for api in APIS:
                for words, calls in ((WORDS, 0), (WORDS, 1), (None, 2)):
                    with self.subTest(name, api=api, words=words, calls=calls):
                        end = {"messages": ("tool_use", "end_turn"), "chat": ("tool_calls", "stop")}[api][not calls]
                        wanted = (words or "", [self.CITY] * calls, end, 19, 17)
                        for do in ("create", "stream"):
                            self.provider.forget()
                            self.says(api, self.said_by_the_other(api, words, calls), do == "stream")
                            more = {"stream_options": {"include_usage": True}} if (api, do) == ("chat", "stream") else {}
                            answer = ask(api, do, {**self.model(api), "tools": self.TOOLS[api], **more})
                            answer = answer["final"] if do == "stream" else answer
                            self.assertEqual(self.read(api, answer), wanted, do)
                            self.assertEqual(answer["model"], self.model(api)["model"])
                            self.assertEqual(self.provider.seen[0][0], {"messages": "/v1/chat/completions", "chat": "/v1/messages"}[api])

    def test_tools_are_called_until_there_is_an_answer(self):
        def answer(path, headers, body):
            asked = json.loads(body)
            api = "chat" if "/messages" in path else "messages"
            whole = self.said_by_the_other(api, CITY, 0) if CITY in json.dumps(asked["messages"]) else self.said_by_the_other(api)
            if asked.get("stream"):
                return 200, "text/event-stream", events(self.OTHER[api], whole), True
            return 200, "application/json", [json.dumps(whole).encode()], True
        self.provider.otherwise = answer
        for name, ask in self.each():
            for api in APIS:
                for streamed in (False, True)[:2 if api == "messages" else 1]:
                    with self.subTest(name, api=api, streamed=streamed):
                        turns = ask(api, "tools", {**self.model(api), **({"stream": True} if streamed else {})})
                        self.assertEqual([self.read(api, turn)[1] for turn in turns], [[self.CITY], []])
                        self.assertEqual(self.read(api, turns[-1])[0], CITY)

    def test_faults_are_the_exceptions_of_the_api_that_was_asked(self):
        rows = [((400, "invalid_request_error"), 400, "BadRequestError"), ((401, "authentication_error"), 500, "InternalServerError"),
                ((429, "rate_limit_error"), 429, "RateLimitError"),
                ((529, "overloaded_error"), {"messages": 529, "chat": 503}, {"messages": "OverloadedError", "chat": "InternalServerError"})]
        for name, ask in self.each():
            for api in APIS:
                for (status, kind), wanted, classes in rows:
                    with self.subTest(name, api=api, status=status):
                        self.provider.forget()
                        self.provider.says(ERRORS[self.OTHER[api]](kind, "the provider's words"), status=status)
                        error = ask.fails(api, params={"model": next(self.fresh[self.OTHER[api]])})
                        self.assertEqual((error["status"], error["class"]), tuple(one if not isinstance(one, dict) else one[api]
                                                                                  for one in (wanted, classes)))
                        self.assertNotIn("the provider's words", error["message"])
                        self.assertTrue(error["request_id"])

    def test_a_stream_that_breaks_is_an_exception(self):
        for name, ask in self.each():
            for api in APIS:
                whole = events(self.OTHER[api], self.said_by_the_other(api, WORDS * 9, 0))
                for clean in (False, True):
                    with self.subTest(name, api=api, clean=clean):
                        self.provider.forget()
                        heard = threading.Event()
                        self.provider.answers.append((200, "text/event-stream", [*whole[:8], heard], clean))
                        ask.tell(api, "events", {"model": next(self.fresh[self.OTHER[api]])}, aloud=True)
                        self.assertIn("first", ask.client.hear())
                        heard.set()
                        reply = ask.client.hear()
                        self.assertIn("raised", reply)
                        self.assertIn("APIError", reply["raised"]["is"], reply)
                        self.assertTrue((WORDS * 9).startswith(said(reply["seen"])) and said(reply["seen"]), reply)


if __name__ == "__main__":
    direct_rig.test_sdk.packages()
    harness.main()
