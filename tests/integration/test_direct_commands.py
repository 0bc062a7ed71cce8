"""`sluice translate` and `sluice explain` of requests in a provider's own API say what the gateway then does.

ctest: timeout=120
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness

PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions"}
HI = [{"role": "user", "content": "hi"}]


def settings_of(sim):
    settings = harness.config(sim, retries={"attempts": 1}, models=[
        harness.model("claude-test", "anthropic"), harness.model("gpt-test", "openai", aliases=["small", "gpt-mini-*"],
                                                                 price={"input": 0.1, "output": 0.1}),
        harness.model("gpt-best", "openai", name="gpt-best-2026", intelligence=0.9)])
    settings["plans"]["strict"] = {**settings["plans"]["standard"], "fronts": ["sampling"]}
    settings["tenants"].append(harness.tenant("strict", harness.KEY + "-strict", plan="strict"))
    return settings


class Commands(harness.Case):
    def setUp(self):
        self.simulated = self.sim()
        self.running = self.gateway(settings_of(self.simulated))

    def run_command(self, name, front, body, *options, code=0, tenant="acme"):
        run = subprocess.run([harness.BIN, name, "--config", self.running.config_path, "--tenant", tenant, "--front", front, *options],
                             input=body if isinstance(body, bytes) else json.dumps(body).encode(), capture_output=True, check=False)
        self.assertEqual(run.returncode, code, run)
        self.assertNotIn(harness.PROVIDER_KEY.encode(), run.stdout)
        return run.stdout

    def translated(self, front, body, *options):
        return json.loads(self.run_command("translate", front, body, "--format", "json", *options))

    def test_translate_shows_the_bytes_that_a_provider_gets(self):
        bodies = {"messages": b'{ "model":"CLAUDE-test", "max_tokens" : 999999,"novel":[1.50, 12345678901234567890],'
                              b'"messages":[{"role":"user","content":"hi"}]}',
                  "chat": b'{"messages":[{"role":"user","content":"h\\u00e9"}],"stream":true ,"model":"small","novel":{"a":1.0}}'}
        says = {"messages": (["max_tokens_clamped"], ["model changed", "max_tokens changed"]),
                "chat": ([], ["model changed", "stream_options added", "max_tokens added"])}
        for front, body in bodies.items():
            with self.subTest(front):
                answer = self.running.post(body, path=PATHS[front], headers={"anthropic-beta": "a-1,b-2", "anthropic-version": "2023-06-01"})
                self.assertEqual(answer.status, 200, answer)
                said = self.run_command("translate", front, body, "--format", "json", "--header", "Anthropic-Beta: a-1,b-2",
                                        "--header", "anthropic-version:2023-06-01")
                self.assertIn(b'"body":' + self.simulated.last_body() + b',"adjustments"', said)
                said = json.loads(said)
                self.assertEqual(said["url"], self.simulated.url + PATHS[front])
                self.assertEqual(said["adjustments"], says[front][0])
                self.assertEqual(", ".join(said["adjustments"]), answer.headers.get("sluice-adjustments", ""))
                self.assertEqual(sorted(said["changes"]), sorted(says[front][1]))
                sent = {name.lower(): value for name, value in dict(self.simulated.last()["headers"]).items()}
                for name, value in said["headers"].items():
                    if "(secret)" not in value and name.lower() != "traceparent":
                        self.assertEqual(sent[name.lower()], value, name)
                self.assertEqual("anthropic-beta" in said["headers"], front == "messages")
                text = self.run_command("translate", front, body).decode()
                self.assertTrue(text.startswith("POST " + said["url"] + "\n"), text)
                self.assertIn("\nchanges: " + ", ".join(said["changes"]) + "\n", text)

    def test_a_request_that_goes_as_it_is_has_no_changes(self):
        said = self.translated("messages", {"model": "claude-test", "max_tokens": 9, "messages": HI})
        self.assertEqual((said["adjustments"], said["changes"]), ([], []))
        self.assertIn(b"\nadjustments: none\nchanges: none\n",
                      self.run_command("translate", "messages", {"model": "claude-test", "max_tokens": 9, "messages": HI}))

    def test_what_is_refused_is_said_in_the_words_of_the_gateway(self):
        rows = [("messages", {"model": "claude-test", "messages": HI}), ("messages", {"model": "gpt-test", "max_tokens": 9, "messages": HI, "novel": 1}),
                ("chat", {"model": "gpt-test", "messages": HI, "route": "x"}), ("chat", {"model": "nobody", "messages": HI}),
                ("chat", b"{"), ("chat", {"model": "gpt-test", "messages": HI, "tools": [{"type": "web_search"}]})]
        for front, body in rows:
            with self.subTest(body):
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                answer = self.running.post(raw, path=PATHS[front]).json()
                said = json.loads(self.run_command("translate", front, raw, code=1))
                for one in (answer, said):
                    one.pop("request_id", None)
                self.assertEqual(said, answer)
        said = json.loads(self.run_command("translate", "chat", {"model": "gpt-test", "messages": HI}, code=1, tenant="strict"))
        self.assertIn("Policy", said["error"]["message"])

    def test_a_model_of_another_format_gets_its_own(self):
        said = self.translated("messages", {"model": "gpt-test", "max_tokens": 9, "messages": HI, "top_k": 3})
        self.assertEqual(said["url"], self.simulated.url + PATHS["chat"])
        self.assertEqual(said["adjustments"], ["members_dropped"])
        self.assertEqual(said["body"]["messages"], HI)

    def test_explain_knows_that_a_named_model_is_that_model(self):
        body = {"model": "small", "messages": HI}
        said = json.loads(self.run_command("explain", "chat", body, "--format", "json"))
        self.assertEqual(said["winner"], "gpt-test")
        verdicts = {row["model"]: row["verdict"] for row in said["candidates"]}
        self.assertEqual(verdicts, {"claude-test": "not_permitted", "gpt-test": "candidate", "gpt-best": "not_permitted"})
        said = json.loads(self.run_command("explain", "chat", {**body, "model": "claude-tes"}, "--format", "json", code=1))
        self.assertEqual((said["winner"], said["reason"]), (None, "model_unknown"))
        answer = self.running.post(json.dumps(body).encode(), path=PATHS["chat"])
        request_id = answer.headers["x-request-id"]
        line = self.running.wait_line(lambda text: request_id in text, "the log line")
        run = subprocess.run([harness.BIN, "explain", "--config", self.running.config_path, "--log", line, "--format", "json"],
                             capture_output=True, text=True, check=True)
        logged = json.loads(run.stdout)
        self.assertEqual((logged["winner"], logged["log"]["same_model"]), ("gpt-test", True))
        self.assertEqual({row["model"]: row["verdict"] for row in logged["candidates"]}, verdicts)

    def test_explain_decides_once_more_what_was_left_to_it(self):
        for model, header, winner in (("auto", "", "claude-test"), ("auto", "cost=1", "gpt-test"), ("auto", 'hints="gpt-b"', "gpt-best"),
                                      ("AUTO", 'cost=0.5; hints="small"', "gpt-test"), ("gpt-mini-4", "", "gpt-test"),
                                      ("openai/gpt-best", "", "gpt-best")):
            with self.subTest("%s %s" % (model, header)):
                options = ["--header", "Sluice-Preferences: " + header] if header else []
                body = {"model": model, "messages": HI}
                said = json.loads(self.run_command("explain", "chat", body, "--format", "json", *options))
                self.assertEqual(said["winner"], winner)
                answer = self.running.post(body, {"Sluice-Preferences": header} if header else {}, path=PATHS["chat"])
                self.assertEqual(answer.headers["sluice-model"], winner, answer)
                request_id = answer.headers["x-request-id"]
                line = self.running.wait_line(lambda text: request_id in text, "the log line")
                run = subprocess.run([harness.BIN, "explain", "--config", self.running.config_path, "--log", line, "--format", "json"],
                                     capture_output=True, text=True, check=True)
                logged = json.loads(run.stdout)
                self.assertEqual((logged["winner"], logged["log"]["same_model"]), (winner, True))
                verdicts = [{row["model"]: row["verdict"] for row in one["candidates"]} for one in (said, logged)]
                self.assertEqual(verdicts[0], verdicts[1])
        error = json.loads(self.run_command("explain", "chat", {"model": "auto", "messages": HI}, "--format", "json", "--header",
                                            "sluice-preferences: cheap", code=1))["error"]
        self.assertIn("Sluice-Preferences: must be like", error["message"])

    def test_options_that_do_not_go_together_are_wrong_usage(self):
        for options in (["--front", "responses"], ["--front", "chat", "--revision", "2025-11-25"], ["--header", "a: b"],
                        ["--front", "chat", "--header", "nothing"]):
            with self.subTest(options):
                run = subprocess.run([harness.BIN, "translate", "--config", self.running.config_path, "--tenant", "acme", *options],
                                     input=b"{}", capture_output=True, check=False)
                self.assertEqual(run.returncode, 2, run)


if __name__ == "__main__":
    harness.main()
