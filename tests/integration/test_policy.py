"""What a tenant and its MCP servers may do: policy, keys, limits of servers and models, through the real binary.

ctest: timeout=120
"""
import base64
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness

BILLING_KEY = "sk-test-billing-0123456789"
SECOND_KEY = "sk-test-second-0123456789"
TOOL = {"name": "search_web", "inputSchema": {"type": "object"}}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
              "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}


class Policy(harness.Case):
    def settings(self, sim, plan=None, keys=None, **changes):
        settings = harness.config(sim, **changes)
        for key, value in (plan or {}).items():
            merged = settings["plans"]["standard"].setdefault(key, {})
            merged.update(value)
        settings["tenants"][0]["keys"] = keys or [
            {"sha256": harness.sha256(harness.KEY), "server": "test-server"},
            {"sha256": harness.sha256(BILLING_KEY), "server": "billing-mcp"}]
        return settings

    def assert_denied(self, answer, rule, status=403, reason="policy_denied"):
        self.assertEqual(answer.status, status, answer)
        data = answer.json()["error"]["data"]
        self.assertEqual((data["reason"], data["rule"]), (reason, rule))

    def test_every_bound_names_its_rule(self):
        sim = self.sim()
        image = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"x" * 100).decode()}
        text = {"role": "user", "content": {"type": "text", "text": "hi"}}
        gateway = self.gateway(self.settings(sim, {"policy": {
            "max_messages": 3, "max_blocks": 4, "max_tools": 2, "schema_bytes": "64B", "image_bytes": "150B",
            "system_bytes": "10B", "tools": {"allow": ["search_*"], "deny": ["*_secret"]},
            "tool_choice": {"required": False}, "metadata": {"user_id": "refuse"}}}))
        self.assertEqual(gateway.sample(tools=[TOOL], systemPrompt="0123456789").status, 200)
        wide = {"type": "object", "properties": {"x": {"type": "string", "description": "y" * 60}}}
        rows = [
            ("max_messages", {"messages": [text, {**text, "role": "assistant"}, text, {**text, "role": "assistant"}]}),
            ("max_blocks", {"messages": [{"role": "user", "content": [text["content"]] * 5}]}),
            ("max_tools", {"tools": [TOOL, {**TOOL, "name": "search_a"}, {**TOOL, "name": "search_b"}]}),
            ("tools", {"tools": [{**TOOL, "name": "delete_all"}]}),
            ("tools", {"tools": [{**TOOL, "name": "search_secret"}]}),
            ("schema_bytes", {"tools": [{**TOOL, "inputSchema": wide}]}),
            ("tool_choice", {"tools": [TOOL], "toolChoice": {"mode": "required"}}),
            ("image_bytes", {"messages": [{"role": "user", "content": [image, image]}]}),
            ("system_bytes", {"systemPrompt": "01234567890"}),
            ("metadata", {"metadata": {"user_id": "u-1"}}),
        ]
        for rule, params in rows:
            with self.subTest(rule):
                answer = gateway.sample(**params)
                self.assert_denied(answer, rule)
                line = gateway.log(answer.headers["sluice-request-id"])
                self.assertEqual(line["tenant"], "acme")
        self.assertEqual(gateway.metrics().sum("sluice_requests_total", tenant="acme", outcome="policy_denied"), len(rows))
        self.assertEqual(sim.stats()["requests"], 1)

    def test_system_prompt_and_metadata_reach_the_provider_as_policy_says(self):
        sim = self.sim()
        gateway = self.gateway(self.settings(sim, {
            "policy": {"system": {"prefix": "Say \"please\".\nAlways."}, "metadata": {"user_id": "drop"}},
            "servers": {"billing-mcp": {"policy": {"metadata": {"user_id": "pass"}}}}}))
        answer = gateway.sample(systemPrompt="Be brief.", metadata={"user_id": "u-1"})
        sent = json.loads(sim.last_body())
        self.assertEqual(sent["system"], "Say \"please\".\nAlways.\n\nBe brief.")
        self.assertNotIn("metadata", sent)
        adjustments = answer.json()["result"]["_meta"]["sluice/adjustments"]
        self.assertEqual(set(adjustments), {"system_prompt_prefixed", "user_id_dropped"})
        gateway.sample(key=BILLING_KEY, metadata={"user_id": "u-1"})
        sent = json.loads(sim.last_body())
        self.assertEqual(sent["system"], "Say \"please\".\nAlways.")
        self.assertEqual(sent["metadata"], {"user_id": "u-1"})

    def test_a_server_has_its_own_grants_and_initialize_reports_them(self):
        sim = self.sim()
        gateway = self.gateway(self.settings(sim, {"servers": {"billing-mcp": {
            "capabilities": {"tools": False}, "policy": {"system": {"fixed": "Bills only."}},
            "models": {"allow": ["gpt-*"], "default": "gpt-test"}}}}))
        for key, granted in ((harness.KEY, {"tools": {}}), (BILLING_KEY, {})):
            result = gateway.post(INITIALIZE, key=key).json()["result"]
            self.assertEqual(result["capabilities"]["sampling"], granted)
        self.assertEqual(gateway.sample(tools=[TOOL]).status, 200)
        for asked in ({"tools": [TOOL]}, {"tools": []}, {"toolChoice": {"mode": "auto"}}):
            answer = gateway.sample(key=BILLING_KEY, **asked)
            self.assert_denied(answer, "tools_granted", 400, "tools_not_granted")
        answer = gateway.sample(key=BILLING_KEY, systemPrompt="Anything.")
        self.assertEqual(answer.json()["result"]["_meta"]["sluice/route"]["model"], "gpt-test")
        self.assertEqual(json.loads(sim.last_body())["messages"][0],
                         {"role": "system", "content": "Bills only."})

    def test_keys_rotate_and_a_disabled_tenant_is_cut_off_by_a_reload(self):
        sim = self.sim()
        settings = self.settings(sim, keys=[{"sha256": harness.sha256(harness.KEY)}])
        gateway = self.gateway(settings)
        both = [{"sha256": harness.sha256(key)} for key in (harness.KEY, SECOND_KEY)]

        def reload(keys, disabled=False):
            changed = {**gateway.settings, "tenants": [
                {"id": "acme", "plan": "standard", "keys": keys, "disabled": disabled}]}
            gateway.write_config(changed)
            self.assertEqual(gateway.reload().status, 200)

        def statuses():
            return gateway.sample().status, gateway.sample(key=SECOND_KEY).status

        self.assertEqual(statuses(), (200, 401))
        reload(both)
        harness.wait_for(lambda: statuses() == (200, 200), "both keys are known")
        reload(both[1:])
        harness.wait_for(lambda: statuses() == (401, 200), "the old key is gone")
        reload(both[1:], disabled=True)
        harness.wait_for(lambda: statuses() == (401, 401), "the tenant is cut off")
        reload(both[1:])
        harness.wait_for(lambda: statuses() == (401, 200), "and let in again")

    def test_a_disabled_model_or_provider_is_not_used(self):
        sim = self.sim()
        settings = self.settings(sim)
        gateway = self.gateway(settings)

        def model():
            answer = gateway.sample()
            if answer.status != 200:
                return answer.json()["error"]["data"]["reason"]
            return answer.json()["result"]["_meta"]["sluice/route"]["model"]

        self.assertEqual(model(), "claude-test")
        changed = {**gateway.settings}
        changed["models"] = [{**changed["models"][0], "enabled": False}, changed["models"][1]]
        gateway.write_config(changed)
        self.assertEqual(gateway.reload().status, 200)
        harness.wait_for(lambda: model() == "gpt-test", "the other model answers")
        changed["providers"] = {**changed["providers"], "openai": {**changed["providers"]["openai"], "enabled": False}}
        gateway.write_config(changed)
        self.assertEqual(gateway.reload().status, 200)
        harness.wait_for(lambda: model() == "no_model", "nobody is left")

    def assert_limited(self, answer, limit, scope, status=429):
        self.assertEqual(answer.status, status, answer)
        data = answer.json()["error"]["data"]
        self.assertEqual((data["limit"], data["scope"]), (limit, scope))
        return data

    def test_servers_and_models_have_limits_of_their_own(self):
        sim = self.sim()
        gateway = self.gateway(self.settings(sim, {
            "limits": {"per_server": {"requests_per_minute": 6, "requests_burst": 2},
                       "per_model": {"gpt-*": {"usd_per_day": 0}}},
            "servers": {"billing-mcp": {"limits": {"requests_burst": 1}}}}))
        self.assertEqual([gateway.sample().status for _ in range(2)], [200, 200])
        data = self.assert_limited(gateway.sample(), "requests_per_minute", "per_server")
        self.assertTrue(9000 < data["retryAfterMs"] <= 10000, data)
        self.assertEqual(gateway.sample(key=BILLING_KEY).status, 200)  # another slot
        self.assert_limited(gateway.sample(key=BILLING_KEY), "requests_per_minute", "per_server")
        metrics = gateway.metrics()
        self.assertEqual(metrics.sum("sluice_limit_decisions_total", limit="per_server.requests_per_minute",
                                     decision="refused"), 2)

    def test_a_refusal_in_one_scope_takes_nothing_from_the_others(self):
        sim = self.sim()
        gateway = self.gateway(self.settings(sim, {
            "limits": {"requests_per_minute": 1, "requests_burst": 3, "per_model": {"gpt-*": {"usd_per_day": 0}}}}))
        hint = {"modelPreferences": {"hints": [{"name": "gpt-test"}]}}
        for _ in range(5):
            self.assert_limited(gateway.sample(**hint), "usd_per_day", "per_model", 402)
        self.assertEqual([gateway.sample().status for _ in range(3)], [200] * 3)
        self.assert_limited(gateway.sample(), "requests_per_minute", "tenant")

    def test_limits_that_are_not_enforced_count(self):
        sim = self.sim()
        gateway = self.gateway(self.settings(sim, {
            "limits": {"enforce": False, "requests_per_minute": 1, "requests_burst": 2, "usd_per_day": 0}}))
        self.assertEqual([gateway.sample().status for _ in range(5)], [200] * 5)
        metrics = gateway.metrics()
        self.assertEqual(metrics.sum("sluice_limit_decisions_total", limit="all", decision="granted"), 5)
        # The budget would have refused the first two, the rate the rest: the first in order is named.
        self.assertEqual(metrics.sum("sluice_limit_decisions_total", limit="usd_per_day", decision="would_refuse"), 2)
        self.assertEqual(metrics.sum("sluice_limit_decisions_total", limit="requests_per_minute",
                                     decision="would_refuse"), 3)

    def tenant(self, gateway, id="acme"):
        answer = harness.request("GET", gateway.admin + "/tenants/" + id)
        return answer.json() if answer.status == 200 else answer.status

    def test_an_operator_sees_a_tenant(self):
        sim = self.sim()
        gateway = self.gateway(self.settings(sim, {
            "policy": {"max_tools": 0},
            "limits": {"requests_per_minute": 1, "requests_burst": 3, "usd_per_day": 7,
                       "per_server": {"concurrent": 5}, "per_model": {"gpt-*": {"usd_per_day": 2}}}}))
        self.assertEqual(self.tenant(gateway)["refusals"], [])
        self.assertEqual([gateway.sample().status for _ in range(4)], [200, 200, 200, 429])
        harness.wait_for(lambda: self.tenant(gateway)["refusals"], "the refusal is noted")
        seen = self.tenant(gateway)
        self.assertEqual((seen["id"], seen["mode"], seen["disabled"]), ("acme", "memory", False))
        own, server, billing, models = seen["scopes"]
        self.assertEqual(own["limits"]["requests_per_minute"], {"limit": 1, "burst": 3, "remaining": 0})
        self.assertEqual(own["limits"]["concurrent"], {"in_flight": 0, "limit": 256})
        day = own["limits"]["usd_per_day"]
        self.assertGreater(day["spent"], 0)
        self.assertAlmostEqual(day["remaining"] + day["spent"], 7)
        self.assertEqual((server["server"], server["limits"]["concurrent"]["limit"]), ("test-server", 5))
        self.assertEqual(server["limits"]["usd_per_day"], {"spent": day["spent"]})
        self.assertEqual(billing["server"], "billing-mcp")
        self.assertEqual((models["models"], models["limits"]["usd_per_day"]["spent"]), ("gpt-*", 0))
        refusal = seen["refusals"][0]
        self.assertEqual((refusal["reason"], refusal["limit"], refusal["scope"]),
                         ("rate_limited", "requests_per_minute", "tenant"))
        # The same second may hold a refusal already: until the next one, notes are not added.
        harness.wait_for(lambda: gateway.sample(tools=[TOOL]).status == 403 and any(
            r["reason"] == "policy_denied" for r in self.tenant(gateway)["refusals"]), "policy's refusal is noted")

    def test_a_budget_is_topped_up_from_this_machine_only(self):
        sim = self.sim()
        gateway = self.gateway(self.settings(sim, {"limits": {"usd_per_day": 0, "usd_per_month": 0}}))
        self.assert_limited(gateway.sample(), "usd_per_day", "tenant", 402)

        def post(body, id="acme"):
            return harness.request("POST", f"{gateway.admin}/tenants/{id}/budget", body)

        for body in (b"", b"{}", b'{"usd": 0}', b'{"usd": -1}', b'{"usd": "5"}', b'{"usd": 5, "usd": 5}', b'{"usd": 5} x',
                     b'{"usd": 10000001}', b'{"usd": 0.0000000001}', b'{"eur": 5}', b"[5]"):
            self.assertEqual(post(body).status, 400, body)
        self.assertEqual(post(b'{"usd": 5}', "nobody").status, 404)
        self.assertEqual(gateway.sample().status, 402)
        answer = post(b'{"usd": 2.5}')
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.json()["scopes"][0]["limits"]["usd_per_day"],
                         {"spent": 0, "limit": 0, "topped_up": 2.5, "remaining": 2.5})
        self.assertEqual(gateway.sample().status, 200)
        self.assertEqual(post(b'{"usd": 1e-1}').json()["scopes"][0]["limits"]["usd_per_month"]["topped_up"], 2.6)
        pid = gateway.server_pid()
        os.kill(pid, 9)  # the supervisor keeps the table
        harness.wait_for(lambda: gateway.server_pid() not in (0, pid) and gateway.ready(), "another server")
        self.assertEqual(self.tenant(gateway)["scopes"][0]["limits"]["usd_per_day"]["topped_up"], 2.6)
        for method, path, status in (("POST", "/tenants/acme", 405), ("GET", "/tenants/acme/budget", 405),
                                     ("GET", "/tenants/", 404), ("GET", "/tenants/a/b", 404), ("GET", "/tenants/%61cme", 200),
                                     ("GET", "/tenants/nobody", 404)):
            self.assertEqual(harness.request(method, gateway.admin + path, b"" if method == "POST" else None).status,
                             status, path)

    def test_explain_shows_the_verdict_of_every_rule(self):
        sim = self.sim()
        gateway = self.gateway(self.settings(sim, {
            "policy": {"max_messages": 1, "system": {"prefix": "x"}},
            "servers": {"billing-mcp": {"policy": {"max_messages": 2}}}}))
        text = {"role": "user", "content": {"type": "text", "text": "hi"}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage",
                                         "params": {"messages": [text, text], "maxTokens": 9}})

        def explain(*options):
            run = subprocess.run([harness.BIN, "explain", "--config", gateway.config_path, "--tenant", "acme",
                                  *options], input=body, capture_output=True, text=True)
            return run.returncode, run.stdout

        code, out = explain("--format", "json")
        self.assertEqual(code, 1)
        said = json.loads(out)
        refused = [row["rule"] for row in said["policy"] if row["verdict"] == "refuses"]
        self.assertEqual(refused, ["max_messages"])
        self.assertEqual(said["refusal"]["error"]["data"]["rule"], "max_messages")
        code, out = explain("--format", "json", "--server", "billing-mcp")
        self.assertEqual(code, 0)
        said = json.loads(out)
        self.assertEqual([row["rule"] for row in said["policy"] if row["verdict"] == "refuses"], [])
        self.assertEqual(said["winner"], "claude-test")
        adjusted = {row["rule"]: row["adjustments"] for row in said["policy"] if row["adjustments"]}
        self.assertEqual(adjusted, {"system": ["system_prompt_prefixed"]})
        code, out = explain()
        self.assertIn("refuses: Policy does not permit that many messages", out)


if __name__ == "__main__":
    harness.main()
