"""What a reload does to MCP servers, and what plans and listeners say of them."""

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


if __name__ == "__main__":
    harness.main()
