"""What a reload does to MCP servers, and what plans and listeners say of them."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import mcp_echo  # noqa: E402
import mcp_rig  # noqa: E402

OTHER_KEY = "sk-slu-other-key-of-the-tests"


class Settings(mcp_rig.Case):
    def settings(self, servers, **changes):
        settings = harness.config(self.sim(), mcp_servers=servers, **{"workers": 4, "drain": "10ms", **changes})
        settings["plans"]["standard"]["mcp_servers"] = {"allow": ["*"]}
        return settings

    def ask(self, gateway, name, key=harness.KEY):
        """Status, and the method that a server has seen or the reason of a refusal."""
        answer = gateway.post({"jsonrpc": "2.0", "id": 7, "method": "ping"}, path="/mcp/" + name, key=key)
        said = answer.json()
        self.assertEqual(said["id"], 7)
        return answer.status, said["result"]["method"] if "result" in said else said["error"]["data"]["reason"]

    def take_over(self, gateway, servers):
        """A reload with other servers; None: the key is not there."""
        gateway.settings.pop("mcp_servers")
        if servers is not None:
            gateway.settings["mcp_servers"] = servers
        gateway.write_config(gateway.settings)
        self.assertEqual(gateway.reload().status, 200)

    def wait_for(self, gateway, name, expected, also=lambda: True):
        """Each of four workers takes a configuration over at its next turn, and a new connection is any worker's."""
        harness.wait_for(lambda: all(self.ask(gateway, name) == expected and also() for _ in range(16)),
                         f"{expected} of {name}")

    def test_a_reload_adds_moves_and_removes_servers(self):
        one, two = mcp_echo.Server(self), mcp_echo.Server(self)
        gateway = self.gateway(self.settings({"one": {"url": one.url}}))
        self.assertEqual(self.ask(gateway, "one"), (200, "ping"))
        self.assertEqual(self.ask(gateway, "two"), (404, "server_unknown"))

        self.take_over(gateway, {"another": {"url": one.url, "enabled": False}, "one": {"url": two.url},
                                 "two": {"url": one.url + "?a=b"}})
        self.wait_for(gateway, "two", (200, "ping"), lambda: one.seen[-1].path == "/mcp?a=b")
        self.wait_for(gateway, "another", (404, "server_unknown"))
        moved = len(one.seen)
        self.assertEqual(self.ask(gateway, "one"), (200, "ping"))
        self.assertEqual((len(one.seen), two.seen[-1].path), (moved, "/mcp"))

        self.take_over(gateway, None)
        self.wait_for(gateway, "two", (404, "server_unknown"))

    def test_headers_that_are_configured_follow_a_reload(self):
        tools = mcp_echo.Server(self)
        gateway = self.gateway(self.settings({"tools": {"url": tools.url, "authorization": "Bearer first"}}))
        self.assertEqual(self.ask(gateway, "tools"), (200, "ping"))
        self.assertEqual(tools.seen[-1].headers.get_all("authorization"), ["Bearer first"])
        self.take_over(gateway, {"tools": {"url": tools.url, "headers": {"X-Secret": "second"}}})
        self.wait_for(gateway, "tools", (200, "ping"), lambda: "x-secret" in tools.seen[-1].headers)
        self.assertEqual(tools.seen[-1].headers.get_all("x-secret"), ["second"])
        self.assertIsNone(tools.seen[-1].headers["authorization"])

    def test_a_plan_says_which_servers(self):
        tools = mcp_echo.Server(self)
        settings = self.settings({"one": {"url": tools.url}, "two": {"url": tools.url}})
        settings["plans"]["standard"]["mcp_servers"] = {"allow": ["*"], "deny": ["t?o"]}
        settings["tenants"].append(harness.tenant("opens", OTHER_KEY, mcp_servers={"deny": []}))
        gateway = self.gateway(settings)
        self.assertEqual(self.ask(gateway, "one"), (200, "ping"))
        self.assertEqual(self.ask(gateway, "two")[0], 403)
        self.assertEqual(self.ask(gateway, "two", key=OTHER_KEY), (200, "ping"))
        self.assertEqual(len(tools.seen), 2)

    def test_plans_and_listeners_say_which_fronts(self):
        tools = mcp_echo.Server(self)
        for where in "plan", "listener":
            settings = self.settings({"one": {"url": tools.url}})
            narrowed = settings["plans"]["standard"]
            if where == "listener":
                narrowed = {"address": f"127.0.0.1:{harness.free_port()}"}
                settings["listen"] = [narrowed]
            for front in "sampling", "mcp":
                with self.subTest(where=where, front=front):
                    narrowed["fronts"] = [front]
                    gateway = self.gateway(settings)
                    self.assertEqual(self.ask(gateway, "one")[0], 200 if front == "mcp" else 403)
                    answer = gateway.sample("hello", id=5)
                    if front == "sampling":
                        self.assert_result(answer)
                    else:
                        self.assert_error(answer, 403, reason="front_forbidden")
                    self.assertEqual(answer.json()["id"], 5)
                    gateway.stop()
        self.assertEqual(len(tools.seen), 2)

    def test_check_counts_servers_and_warns(self):
        settings = self.settings({"one": {"url": "http://127.0.0.1:1/mcp"}, "two": {"url": "http://127.0.0.1:1/mcp"}})
        settings["plans"]["standard"]["mcp_servers"] = {"allow": ["one", "on"]}
        gateway = self.gateway(settings)
        check = subprocess.run([harness.BIN, "check", gateway.config_path], capture_output=True, text=True, check=True)
        self.assertIn("2 MCP servers", check.stdout)
        self.assertIn("mcp_servers.two: no plan allows it", check.stderr)
        self.assertIn("there is no MCP server on;", check.stderr)
        verbose = subprocess.run([harness.BIN, "check", "--verbose", gateway.config_path], capture_output=True, text=True, check=True)
        self.assertRegex(verbose.stdout, r"(?s)mcp_servers\.one\n.*samplings +backfill: .*used by +1 of 1 tenants\n"
                                         r"mcp_servers\.two\n.*used by +0 of 1 tenants\n")

    def explain(self, gateway, *options, request="", code=0):
        run = subprocess.run([harness.BIN, "explain", "--config", gateway.config_path, *options], input=request,
                             capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stdout if code == 0 else run.stderr

    def explained(self):
        """A gateway with servers of every mode, and tenants that may use them, may not, and have no models there."""
        places = [{"url": "http://127.0.0.1:1/mcp?secret=yes", "weight": 2}, {"url": "http://127.0.0.1:2/mcp"}]
        settings = self.settings({
            "plain": {"url": "http://127.0.0.1:1/mcp"}, "off": {"url": "http://127.0.0.1:1/mcp", "enabled": False},
            "forced": {"endpoints": places, "sampling": "force", "authorization": "Bearer hidden", "pass_headers": ["X-Team"],
                       "unsolicited": "refuse", "sessions": 7, "transport": "http"},
            "users": {"url": "http://127.0.0.1:1/mcp", "sampling": "relay", "auth": "client"},
            "none": {"url": "http://127.0.0.1:1/mcp", "sampling": "refuse"}}, public_url="https://sluice.example")
        plan = settings["plans"]["standard"]
        plan["mcp_servers"] = {"allow": ["*"], "deny": ["none"]}
        plan["limits"].update({"mcp_sessions": 9, "mcp_messages_per_minute": 77})
        plan["servers"] = {"forced": {"models": {"allow": ["gpt-*"], "default": "gpt-test"}, "capabilities": {"tools": False},
                                      "limits": {"requests_per_minute": 5}}}
        settings["tenants"] += [harness.tenant("elsewhere", OTHER_KEY, fronts=["sampling"]),
                                harness.tenant("mute", OTHER_KEY + "-3", plan="mute")]
        settings["plans"]["mute"] = {"mcp_servers": {"allow": ["*"]}}
        return self.gateway(settings)

    def test_explain_says_what_is_in_force_of_a_server_and_who_may_use_it(self):
        gateway = self.explained()

        def server(name, *options):
            return json.loads(self.explain(gateway, "--server", name, "--format", "json", *options))
        plain, forced = server("plain"), server("forced")
        self.assertEqual([(one["tenant"], one["verdict"], one["declared"]) for one in plain["tenants"]],
                         [("acme", "permits", {"tools": {}}), ("mute", "permits", None)])
        self.assertEqual((plain["sampling"], plain["unsolicited"], plain["credentials"], plain["transport"], plain["public_url"]),
                         ("backfill", "allow", "none", "auto", "https://sluice.example"))
        acme = forced["tenants"][0]
        self.assertEqual((acme["models"], acme["declared"], acme["mcp_sessions"], acme["mcp_messages_per_minute"]),
                         (["gpt-test"], {}, 9, 77))
        self.assertEqual((forced["credentials"], forced["sessions"], [one["weight"] for one in forced["endpoints"]]),
                         ("gateway", 7, [2, 1]))
        self.assertEqual((server("users")["credentials"], server("off")["tenants"]), ("client", []))
        self.assertEqual([(one["tenant"], one["declared"]) for one in server("none")["tenants"]], [("mute", None)])
        text = self.explain(gateway, "--server", "forced")
        for words in ("https://sluice.example/mcp/forced", "http://127.0.0.1:1/mcp?..., weight 2", "force: answered here", "x-team",
                      "refused while the client has no call open", "if the server refuses what is declared: {} instead",
                      "from authorization or headers", "7 at once", "used by        2 of 3 tenants"):
            self.assertIn(words, text)
        self.assertNotIn("hidden", text)
        self.assertNotIn("secret", text)
        self.assertRegex(text, r"(?m)^acme +yes +1 +77 +9 +\{\} +answered here$")
        self.assertRegex(text, r"(?m)^mute +yes .* refused: no model is permitted$")
        self.assertIn("mcp_servers.off: is not enabled", self.explain(gateway, "--server", "off"))
        self.assertIn('no MCP server "gone"', self.explain(gateway, "--server", "gone", code=1))
        self.assertIn("usage:", self.explain(gateway, "--server", "plain", "--revision", "2025-06-18", code=2))

    def test_a_request_s_decision_says_whether_the_tenant_may_use_the_server(self):
        gateway = self.explained()
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
            "maxTokens": 10, "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}]}})
        for tenant, name, verdict in (("acme", "forced", {"verdict": "permits"}),
                                      ("acme", "none", {"verdict": "refuses", "reason": "server_forbidden"}),
                                      ("acme", "off", {"verdict": "refuses", "reason": "server_unknown"}),
                                      ("elsewhere", "plain", {"verdict": "refuses", "reason": "front_forbidden"})):
            with self.subTest(tenant=tenant, server=name):
                options = ["--tenant", tenant, "--server", name]
                said = json.loads(self.explain(gateway, *options, "--format", "json", request=request))
                self.assertEqual(len(said["mcp_server"]["tenants"]), 1)
                self.assertEqual(said["mcp_server"]["tenants"][0] | verdict, said["mcp_server"]["tenants"][0])
                self.assertEqual(said["winner"], "gpt-test" if name == "forced" else "claude-test")
                self.assertIn(verdict.get("reason", "yes"), self.explain(gateway, *options, request=request))
        self.assertIn("requests_per_minute 5", self.explain(gateway, "--tenant", "acme", "--server", "forced", request=request))
        said = json.loads(self.explain(gateway, "--tenant", "acme", "--server", "of-a-key", "--format", "json", request=request))
        self.assertNotIn("mcp_server", said)


if __name__ == "__main__":
    harness.main()
