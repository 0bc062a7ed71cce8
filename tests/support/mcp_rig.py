"""What tests of /mcp/{server} share: four workers, a new connection per request, an MCP server and a client by hand.

A class with `direct` puts the client in front of the server without a gateway: what such a test expects of the two is true
without a proxy, so a proxy that changes nothing must meet it too.
"""

import json

import harness
import mcp_client
import mcp_server


class Case(harness.Case):
    direct = False

    def server(self, **options):
        return self.closing(mcp_server.Server(**options))

    def closing(self, server):
        self.addCleanup(server.close)
        return server

    def settings(self, servers, model=None, sim=None, limits=None, **changes):
        """`servers`: by name, their settings. `model`: the behaviour of the simulated provider's only model."""
        self.provider = sim or self.sim()
        if model is not None:
            changes["models"] = [harness.model("only", "anthropic", name=model)]
        settings = harness.config(self.provider, **{"workers": 4, "drain": "100ms", "mcp_servers": servers, **changes})
        plan = settings["plans"]["standard"]
        if model is not None:
            plan["models"]["default"] = "only"
        plan["mcp_servers"] = {"allow": ["*"]}
        plan["limits"].update({"mcp_messages_per_minute": 6000000, "mcp_sessions": 100000, **(limits or {})})
        return settings

    def front(self, server, settings=None, model=None, sim=None, limits=None, **options):
        """A gateway in front of `server`, whose settings are `options`; where the client finds it. `settings` may change the
        configuration."""
        if self.direct:
            return server.url
        whole = self.settings({"raw": {"url": server.url, **options}}, model, sim, limits)
        if settings is not None:
            settings(whole)
        self.gate = self.gateway(whole)
        return self.gate.url + "/mcp/raw"

    def client(self, url, **options):
        client = mcp_client.Client(url, **options)
        self.addCleanup(client.close)
        return client

    def pair(self, server=None, revision="2025-11-25", capabilities=None, hello=True, keep=False, key=harness.KEY, **options):
        """A server and a client that have said hello to each other."""
        server = server or self.server(revision=revision)
        client = self.client(self.front(server, **options), revision=revision, keep=keep, key=key)
        if hello:
            client.hello(capabilities)
        return server, client

    def upstream_id(self, server):
        """Of the only session."""
        self.assertEqual(len(server.known), 1)
        return next(iter(server.known))

    def assert_rpc_error(self, reply, status, reason, id=None, code=None):
        """The answer is an error of the gateway's, under the caller's id; returns it."""
        self.assertEqual(reply.status, status, reply)
        message = reply.json()
        self.assertEqual(reply.header("content-type"), "application/json")
        self.assertEqual((message["jsonrpc"], message["id"]), ("2.0", id), message)
        self.assertEqual(message["error"]["data"]["reason"], reason, message)
        if code is not None:
            self.assertEqual(message["error"]["code"], code, message)
        return message["error"]

    def session_lines(self, count):
        """The log lines of sessions that begin and end, so many of them."""
        def lines():
            return [json.loads(text) for text in self.gate.stdout if text.startswith("{") and '"event":"session_' in text]
        harness.wait_for(lambda: len(lines()) >= count, f"{count} lines of sessions; got {lines()}")
        self.assertEqual(len(lines()), count, lines())
        return lines()

    def sampling_line(self, condition=lambda line: True):
        """The log line of a sampling that a server asked for."""
        def matches(text):
            if not text.startswith("{") or '"sampling/createMessage"' not in text:
                return False
            line = json.loads(text)
            return line.get("front") == "mcp" and condition(line)
        return json.loads(self.gate.wait_line(matches, "the log line of a sampling"))
