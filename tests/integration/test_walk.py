"""The main job through the real binaries: a sampling request goes in, a model's answer comes back.

ctest: timeout=180
"""
import json
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness

WEATHER = {"name": "get_weather", "description": "Weather of a city",
           "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}


class Walk(harness.Case):
    def test_both_dialects_answer_over_both_http_versions(self):
        sim = self.sim()
        gateway = self.gateway(harness.config(sim))
        for model in ("claude-test", "gpt-test"):
            for http2 in (False, True):
                answer = gateway.sample("Say hello", http2=http2, id="é-1",
                                        modelPreferences={"hints": [{"name": model}]})
                self.assertEqual(answer.status, 200, answer)
                body = answer.json()
                self.assertEqual(body["id"], "é-1")
                result = body["result"]
                self.assertEqual(result["role"], "assistant")
                self.assertEqual(result["content"]["type"], "text")
                self.assertEqual(result["stopReason"], "endTurn")
                self.assertEqual(result["_meta"]["sluice/route"],
                                 {"model": model, "provider": "anthropic" if model == "claude-test" else "openai",
                                  "attempts": 1})
                self.assertEqual(result["usage"]["inputTokens"], result["_meta"]["sluice/usage"]["input_tokens"])
                self.assertEqual(answer.headers["content-type"], "application/json")
                line = gateway.log(answer.headers["sluice-request-id"])
                self.assertEqual(line["tenant"], "acme")
                self.assertEqual(line["model"], model)

    def test_the_provider_gets_its_own_format_and_key(self):
        sim = self.sim()
        gateway = self.gateway(harness.config(sim))
        gateway.sample("Say hello", systemPrompt="Be brief", modelPreferences={"hints": [{"name": "claude-test"}]})
        last = sim.last()
        self.assertEqual(last["path"], "/v1/messages")
        headers = {name.lower(): value for name, value in dict(last["headers"]).items()}
        self.assertEqual(headers["x-api-key"], harness.PROVIDER_KEY)
        self.assertEqual(headers["anthropic-version"], "2026-10-21")
        body = json.loads(sim.last_body())
        self.assertEqual(body["system"], "Be brief")
        self.assertEqual(body["messages"], [{"role": "user", "content": [{"type": "text", "text": "Say hello"}]}])
        gateway.sample("Say hello", systemPrompt="Be brief", modelPreferences={"hints": [{"name": "gpt-test"}]})
        last = sim.last()
        self.assertEqual(last["path"], "/v1/chat/completions")
        headers = {name.lower(): value for name, value in dict(last["headers"]).items()}
        self.assertEqual(headers["authorization"], "Bearer " + harness.PROVIDER_KEY)
        self.assertEqual([m["role"] for m in json.loads(sim.last_body())["messages"]], ["system", "user"])

    def test_a_tool_loop_of_two_turns(self):
        sim = self.sim()
        gateway = self.gateway(harness.config(sim))
        for model in ("claude-test", "gpt-test"):
            hints = {"hints": [{"name": model}]}
            user = {"role": "user", "content": {"type": "text", "text": "Weather in Paris?"}}
            first = gateway.sample(messages=[user], tools=[WEATHER], modelPreferences=hints).json()["result"]
            self.assertEqual(first["stopReason"], "toolUse")
            calls = [block for block in first["content"] if block["type"] == "tool_use"]
            results = [{"type": "tool_result", "toolUseId": call["id"],
                        "content": [{"type": "text", "text": "18 degrees"}]} for call in calls]
            second = gateway.sample(messages=[user, {"role": "assistant", "content": first["content"]},
                                              {"role": "user", "content": results}],
                                    tools=[WEATHER], modelPreferences=hints).json()["result"]
            self.assertEqual(second["stopReason"], "endTurn")
            self.assertIn("18 degrees", json.dumps(second["content"]))

    def assert_provider_error(self, sim, words, model, status, code, reason):
        """Of a gateway of its own, which has not turned away from the provider yet; and tries nothing again."""
        gateway = self.gateway(harness.config(sim, retries={"attempts": 1}))
        sim.default(words)
        answer = gateway.sample(modelPreferences={"hints": [{"name": model}]})
        error = self.assert_error(answer, status, code, reason)
        if "retry" in words:
            self.assertEqual(error["data"]["retryAfterMs"], 7000)
            self.assertEqual(answer.headers["retry-after"], "7")

    def test_provider_errors_become_the_named_ones(self):
        sim = self.sim()
        for model in ("claude-test", "gpt-test"):
            for words, status, code, reason in (("400", 422, -32013, "provider_rejected"),
                                                ("401", 502, -32012, "provider_configuration"),
                                                ("429-retry-7", 503, -32010, "provider_rate_limited"),
                                                ("500", 502, -32011, "provider_unavailable"),
                                                ("529", 502, -32011, "provider_unavailable")):
                with self.subTest(model + " " + words):
                    self.assert_provider_error(sim, "error-" + words, model, status, code, reason)
        for words, code, reason in (("close", -32011, "provider_unavailable"), ("cut", -32011, "provider_unavailable"),
                                    ("badjson", -32015, "provider_answer_invalid"),
                                    ("garbage", -32015, "provider_answer_invalid"),
                                    ("empty", -32015, "provider_answer_invalid")):
            with self.subTest(words):
                self.assert_provider_error(sim, words, "claude-test", 502, code, reason)

    def test_the_deadline_of_the_request_ends_a_hanging_provider(self):
        sim = self.sim()
        gateway = self.gateway(harness.config(sim))
        sim.default("hang")
        started = time.monotonic()
        answer = gateway.sample(headers={"Sluice-Timeout": "300"})
        self.assertEqual(answer.status, 504, answer)
        self.assertEqual(answer.json()["error"]["code"], -32001)
        self.assertLess(time.monotonic() - started, 10, "the tenant's own deadline is 55 s")
        sim.wait_stats(lambda stats: stats["in_flight"] == 0, "the provider call is cancelled")

    def test_a_caller_that_leaves_cancels_the_provider_call(self):
        sim = self.sim()
        gateway = self.gateway(harness.config(sim))
        sim.default("hang")
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "x"}}], "maxTokens": 5}}).encode()
        host, port = gateway.settings["listen"][0]["address"].split(":")
        caller = socket.create_connection((host, int(port)))
        caller.sendall(b"POST /v1/sampling HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer "
                       + harness.KEY.encode() + b"\r\nContent-Length: %d\r\n\r\n" % len(message) + message)
        sim.wait_stats(lambda stats: stats["in_flight"] == 1, "the provider has the request")
        left = time.monotonic()
        caller.close()
        sim.wait_stats(lambda stats: stats["in_flight"] == 0, "the HTTP/1.1 caller's call is cancelled")
        self.assertLess(time.monotonic() - left, 5, "it hangs for a minute, unless it is cancelled")
        curl = subprocess.Popen(["curl", "-s", "--http2-prior-knowledge", gateway.url + "/v1/sampling", "-H",
                                 "Authorization: Bearer " + harness.KEY, "-H", "Content-Type: application/json",
                                 "--data-binary", message.decode()], stdout=subprocess.DEVNULL)
        sim.wait_stats(lambda stats: stats["in_flight"] == 1, "the provider has the HTTP/2 request")
        curl.kill()
        curl.wait()
        sim.wait_stats(lambda stats: stats["in_flight"] == 0, "the HTTP/2 caller's call is cancelled")
        harness.wait_for(lambda: sum('"status":499' in line.replace(" ", "") for line in gateway.stdout) == 2,
                         "both logged as 499")

    def test_endpoints_take_turns_by_weight(self):
        heavy, light = self.sim(), self.sim()
        settings = harness.config(heavy)
        settings["providers"]["anthropic"]["endpoints"] = [{"url": heavy.url, "weight": 3}, {"url": light.url}]
        gateway = self.gateway(settings)
        for _ in range(40):
            self.assertEqual(gateway.sample(modelPreferences={"hints": [{"name": "claude-test"}]}).status, 200)
        self.assertEqual((heavy.stats()["requests"], light.stats()["requests"]), (30, 10))

    def test_an_id_is_a_string_or_an_integer(self):
        gateway = self.gateway(harness.config(self.sim()))
        for id in (0, "", "null", -5, 1.0, 2 ** 70):
            answer = gateway.sample(id=id)
            self.assert_result(answer)
            self.assertTrue(answer.body.startswith(b'{"jsonrpc":"2.0","id":' + json.dumps(id).encode()), answer)
        for id in (None, 1.5, True, [], {}):
            for method in ("sampling/createMessage", "initialize", "ping", "tools/call"):
                answer = gateway.post({"jsonrpc": "2.0", "id": id, "method": method, "params": {}})
                self.assert_error(answer, 400, -32600, "invalid_request")
                self.assertIsNone(answer.json()["id"])
        answer = gateway.post({"jsonrpc": "2.0", "id": None, "method": "notifications/initialized"})
        self.assertEqual((answer.status, answer.body), (202, b""))

    def test_accept_may_come_in_several_lines(self):
        gateway = self.gateway(harness.config(self.sim()))
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        for lines, status in ((b"Accept: text/event-stream\r\nAccept: application/json\r\n", b"200"),
                              (b"Accept: text/event-stream\r\nAccept: text/html\r\n", b"406")):
            answer = harness.raw(gateway.url, b"POST /v1/sampling HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + lines
                                 + b"Content-Type: application/json\r\nAuthorization: Bearer "
                                 + harness.KEY.encode() + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            self.assertEqual(answer[9:12], status, answer)

    def test_an_image_of_the_assistant_needs_no_model_that_sees(self):
        gateway = self.gateway(harness.config(self.sim()))
        image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
        text = {"type": "text", "text": "What did you draw?"}
        result = self.assert_result(gateway.sample(messages=[{"role": "assistant", "content": image},
                                                             {"role": "user", "content": text}]))
        self.assertIn("media_replaced_by_text", result["_meta"]["sluice/adjustments"])
        self.assert_error(gateway.sample(messages=[{"role": "user", "content": [image, text]}]),
                          400, -32602, "content_unsupported")

    def test_content_that_no_model_takes_is_named_with_its_place(self):
        settings = harness.config(self.sim())
        settings["plans"]["standard"]["capabilities"]["audio"] = True
        gateway = self.gateway(settings)
        text = {"type": "text", "text": "Listen."}
        audio = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
        image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
        escaped = {"type": "image", "data": "data:image/png;base64,aG\nk=", "mimeType": "Image/PNG"}
        user, assistant = (lambda *content: {"role": "user", "content": list(content)},
                           {"role": "assistant", "content": text})
        whole = "No permitted model can take this content: "
        for messages, says, kind, path in (
                ([user(text), assistant, user(text, audio)], "audio in messages[2].content[1]", "audio",
                 "$.params.messages[2].content[1]"),
                ([{"role": "user", "content": image}], "image in messages[0].content", "image",
                 "$.params.messages[0].content"),
                ([user(text), user(escaped)], "image in messages[1].content", "image", "$.params.messages[1].content"),
                ([user(audio, image)], "image in messages[0].content[1], audio in messages[0].content[0]", "image",
                 "$.params.messages[0].content[1]")):
            error = self.assert_error(gateway.sample(messages=messages), 400, -32602, "content_unsupported")
            self.assertEqual(error["message"], whole + says)
            self.assertEqual((error["data"]["kind"], error["data"]["path"]), (kind, path))
            self.assertTrue(error["data"]["candidates"])

    def test_a_request_with_too_many_tools_goes_where_they_are_taken_or_is_refused(self):
        settings = harness.config(self.sim())
        settings["models"][0]["profile"] = {"max_tools": 2}
        gateway = self.gateway(settings)
        tools = [{"name": f"t{i}", "inputSchema": {"type": "object"}} for i in range(3)]
        for count, model in ((2, "claude-test"), (3, "gpt-test")):
            result = self.assert_result(gateway.sample(tools=tools[:count]))
            self.assertEqual(result["_meta"]["sluice/route"]["model"], model)
        settings["plans"]["standard"]["models"]["allow"] = ["claude-test"]
        error = self.assert_error(self.gateway(settings).sample(tools=tools), 400, -32602, "too_many_tools")
        self.assertEqual(error["message"], "The request has 3 tools, and the permitted models take at most 2")
        self.assertEqual(error["data"]["candidates"], [{"model": "claude-test", "reason": "too_many_tools"}])
        self.assertEqual(error["data"]["path"], "$.params.tools")

    def test_a_body_over_the_limit_is_413_with_a_json_rpc_error(self):
        sim = self.sim()
        gateway = self.gateway(harness.config(sim, limits={"body_bytes": "64KiB"}))
        for size in (70000, 1000000):
            for http2 in (False, True):
                answer = gateway.sample("x" * size, http2=http2)
                self.assertEqual(answer.status, 413, answer)
                self.assertEqual(answer.json()["error"]["data"]["reason"], "body_too_large")

    def test_images_and_large_bodies_pass(self):
        sim = self.sim()
        settings = harness.config(sim)
        settings["models"] = [harness.model("claude-test", "anthropic", profile={"image": True})]
        gateway = self.gateway(settings)
        image = "iVBORw0KGgo" + "A" * 2000001 + "="
        image = image[:len(image) // 4 * 4]
        answer = gateway.sample(messages=[{"role": "user", "content": [
            {"type": "image", "data": image, "mimeType": "image/png"}, {"type": "text", "text": "what is it"}]}])
        self.assertEqual(answer.status, 200, answer)
        sent = json.loads(sim.last_body())["messages"][0]["content"][0]["source"]["data"]
        self.assertEqual(sent, image)

    def test_explain_and_translate_agree_with_the_gateway(self):
        sim = self.sim()
        settings = harness.config(sim)
        settings["providers"]["openai"]["query"] = "api-version=2024-10-21"
        gateway = self.gateway(settings)
        request = {"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "hé"}}], "maxTokens": 9,
            "modelPreferences": {"hints": [{"name": "gpt"}]}}}
        def command(name):
            run = subprocess.run([harness.BIN, name, "--config", gateway.config_path, "--tenant", "acme", "--format", "json"],
                                 input=json.dumps(request).encode(), capture_output=True, check=False)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertNotIn(harness.PROVIDER_KEY.encode(), run.stdout)
            return json.loads(run.stdout)
        self.assertEqual(command("explain")["winner"], "gpt-test")
        def words(name):
            return subprocess.run([harness.BIN, name, "--config", gateway.config_path, "--tenant", "acme"],
                                  input=json.dumps(request).encode(), capture_output=True, check=True).stdout.decode()
        self.assertRegex(words("explain"), r"gpt-test +candidate +yes +- ")  # nothing is scored without priorities
        translated = command("translate")
        self.assertEqual(gateway.post(request).status, 200)
        self.assertEqual(translated["body"], json.loads(sim.last_body()))
        self.assertEqual(translated["url"], sim.url + "/v1/chat/completions?api-version=2024-10-21")
        self.assertEqual(sim.last()["path"], "/v1/chat/completions?api-version=2024-10-21")
        self.assertEqual(words("translate").splitlines()[0], "POST " + translated["url"])


if __name__ == "__main__":
    harness.main()
