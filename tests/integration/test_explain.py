"""`sluice explain`: the decision about a request, and the same from a line of the log.

ctest: worker timeout=120
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness

IMAGE = {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}


def settings_of(sim):
    settings = harness.config(sim, zone="a", models=[
        harness.model("claude-big", "anthropic", price={"input": 5, "output": 25}, intelligence=0.9, speed=0.4,
                      profile={"image": True}),
        harness.model("claude-small", "anthropic", price={"input": 1, "output": 5}, intelligence=0.5, speed=0.8),
        harness.model("gpt-test", "openai", intelligence=0.7, context=1000),
        harness.model("off", "openai", enabled=False),
        harness.model("secret", "openai")])
    settings["providers"]["anthropic"]["endpoints"] = [
        {"url": sim.url, "zone": "a", "weight": 2}, {"url": sim.url + "/second"}]
    settings["plans"]["standard"]["models"] = {
        "allow": ["*"], "deny": ["secret"], "aliases": [{"hint": "gemini-*", "models": ["claude-small", "gpt-test"]}]}
    return settings


class Explain(harness.Case):
    def explain(self, config_path, *options, stdin="", code=0):
        run = subprocess.run([harness.BIN, "explain", "--config", config_path, *options], input=stdin,
                             capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stdout

    def ask(self, gateway, **params):
        """A request's log line, as it stands, and read."""
        params.setdefault("maxTokens", 100)
        params.setdefault("messages", [{"role": "user", "content": {"type": "text", "text": "hello"}}])
        answer = gateway.post({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": params})
        request_id = answer.headers["sluice-request-id"]
        line = gateway.wait_line(lambda text: request_id in text, "the log line")
        return answer, line, json.loads(line)

    def replay(self, gateway, line, code=0):
        return json.loads(self.explain(gateway.config_path, "--log", line, "--format", "json", code=code))

    def test_a_line_of_the_log_is_routed_once_more(self):
        gateway = self.gateway(settings_of(self.sim()))
        wishes = [{"costPriority": 1}, {"intelligencePriority": 1}, {"costPriority": 0.2, "intelligencePriority": 0.9},
                  {"hints": [{"name": "nobody"}, {"name": "claude"}], "costPriority": 1},
                  {"hints": [{"name": "gpt-test"}]}, {}]
        for prefer in wishes:
            with self.subTest(prefer):
                answer, line, logged = self.ask(gateway, modelPreferences=prefer)
                self.assertEqual(answer.status, 200, answer)
                said = self.replay(gateway, line)
                self.assertEqual(said["config"], logged["route"]["config"])
                self.assertEqual((said["log"]["same_config"], said["log"]["same_model"]), (True, True))
                self.assertEqual(said["winner"], logged["model"])
                scores = {row["model"]: row["score"] for row in said["candidates"] if row.get("score") is not None}
                for row in said["log"]["scores"]:
                    self.assertAlmostEqual(row["score"], scores[row["model"]], places=5)
                self.assertEqual(bool(said["log"]["scores"]), any("Priority" in key for key in prefer))
                request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
                    "maxTokens": 100, "modelPreferences": prefer,
                    "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}]}})
                by_request = json.loads(self.explain(gateway.config_path, "--tenant", "acme", "--format", "json",
                                                     stdin=request))
                self.assertEqual(by_request["winner"], said["winner"])
                # Inputs are estimated from the bytes of the body, which differ in white space.
                self.assertEqual([row["verdict"] for row in by_request["candidates"]],
                                 [row["verdict"] for row in said["candidates"]])

    def test_every_candidate_has_its_reason(self):
        gateway = self.gateway(settings_of(self.sim()))
        image = [{"role": "user", "content": IMAGE}]
        _, line, logged = self.ask(gateway, messages=image, modelPreferences={"costPriority": 1})
        self.assertTrue(logged["route"]["image"])
        said = self.replay(gateway, line)
        self.assertEqual({row["model"]: row["verdict"] for row in said["candidates"]},
                         {"claude-big": "candidate", "claude-small": "no_image", "gpt-test": "no_image",
                          "off": "disabled", "secret": "not_permitted"})
        text = self.explain(gateway.config_path, "--log", "-", stdin=line)
        for words in (f"configuration {said['config']}, the same as here", "the same model as here", "no_image",
                      "winner: claude-big", "endpoints of anthropic:", "/second, weight 1", "weight 2, zone a"):
            self.assertIn(words, text)

    def test_an_alias_is_told(self):
        gateway = self.gateway(settings_of(self.sim()))
        answer, line, logged = self.ask(gateway, modelPreferences={"hints": [{"name": "Gemini-3-pro"}],
                                                                   "costPriority": 1})
        self.assertEqual(answer.json()["result"]["_meta"]["sluice/route"]["model"], "claude-small")
        self.assertEqual((logged["route"]["hint"], logged["route"]["alias"]), ("Gemini-3-pro", 0))
        said = self.replay(gateway, line)
        self.assertEqual((said["hint"], said["alias"]), ("Gemini-3-pro", "gemini-*"))
        self.assertEqual([row["model"] for row in said["candidates"] if row.get("hinted")], ["claude-small", "gpt-test"])
        self.assertIn('hint: "Gemini-3-pro", by the alias "gemini-*"',
                      self.explain(gateway.config_path, "--log", line))

    def test_the_pool_s_draw_is_told_with_the_endpoints_names(self):
        sim = self.sim()
        settings = settings_of(sim)
        del settings["zone"]  # or there is but one endpoint to be chosen from
        gateway = self.gateway(settings)
        for _ in range(20):
            _, line, logged = self.ask(gateway, modelPreferences={"hints": [{"name": "claude-big"}]})
            if "endpoints" in logged["route"]:
                break
        drawn = self.replay(gateway, line)["log"]["drawn"]
        self.assertEqual([row["endpoint"] for row in logged["route"]["endpoints"]],
                         [[sim.url, sim.url + "/second"].index(row["url"]) for row in drawn])
        self.assertIn("drawn: endpoint", self.explain(gateway.config_path, "--log", line))
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
            "maxTokens": 100, "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}]}})
        said = json.loads(self.explain(gateway.config_path, "--tenant", "acme", "--format", "json", stdin=request))
        self.assertEqual([row["draw"] for row in said["endpoints"]].count("chosen"), 1)
        self.assertIn(", chosen", self.explain(gateway.config_path, "--tenant", "acme", stdin=request))

    def test_another_configuration_is_told(self):
        gateway = self.gateway(settings_of(self.sim()))
        _, line, logged = self.ask(gateway, modelPreferences={"intelligencePriority": 1})
        gateway.settings["models"][0]["intelligence"] = 0.1
        gateway.write_config(gateway.settings)
        said = self.replay(gateway, line)
        self.assertEqual((said["log"]["same_config"], said["log"]["same_model"]), (False, False))
        self.assertNotEqual(said["config"], logged["route"]["config"])
        text = self.explain(gateway.config_path, "--log", line)
        self.assertIn(f"but this file is {said['config']}", text)
        self.assertIn("another model than here", text)

    def test_a_request_without_a_model_has_each_candidate_s_reason_in_error_and_log(self):
        gateway = self.gateway(settings_of(self.sim()))
        long = [{"role": "user", "content": {"type": "text", "text": "x" * 900000}}]
        answer, line, _ = self.ask(gateway, messages=long)
        self.assert_error(answer, 422, reason="no_model")
        self.assertEqual(answer.json()["error"]["data"]["candidates"],
                         [{"model": "claude-big", "reason": "context_too_small"},
                          {"model": "claude-small", "reason": "context_too_small"},
                          {"model": "gpt-test", "reason": "context_too_small"}, {"model": "off", "reason": "disabled"}])
        said = self.replay(gateway, line, code=1)
        self.assertEqual((said["winner"], said["reason"]), (None, "no_model"))
        self.assertEqual([row["verdict"] for row in said["candidates"]],
                         ["context_too_small", "context_too_small", "context_too_small", "disabled", "not_permitted"])

    def test_what_is_no_such_line_is_refused_in_words(self):
        gateway = self.gateway(harness.config(self.sim()))
        for line, words in (("hello", "it is no line of this version's log"), ("{}", "was not routed"),
                            ('{"tenant":"nobody","route":{"config":"0"}}', 'no tenant "nobody"')):
            run = subprocess.run([harness.BIN, "explain", "--config", gateway.config_path, "--log", line],
                                 capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(run.returncode, 1)
            self.assertIn(words, run.stderr)
        for said in (("--server", "s"), ("--revision", "2025-06-18")):  # the line says both itself
            with self.subTest(option=said[0]):
                run = subprocess.run([harness.BIN, "explain", "--config", gateway.config_path, "--log", "x", *said],
                                     capture_output=True, text=True, check=False, timeout=60)
                self.assertEqual((run.returncode, run.stdout), (2, ""))
                self.assertIn("--log LINE", run.stderr)

    def test_the_tenant_may_stand_beside_the_line_and_must_be_its_own(self):
        gateway = self.gateway(harness.config(self.sim()))
        _, line, _ = self.ask(gateway)
        self.assertEqual(self.explain(gateway.config_path, "--tenant", "acme", "--log", line),
                         self.explain(gateway.config_path, "--log", line))
        run = subprocess.run([harness.BIN, "explain", "--config", gateway.config_path, "--tenant", "bob", "--log", line],
                             capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertIn('the line is of tenant "acme", not of "bob"', run.stderr)


if __name__ == "__main__":
    harness.main()
