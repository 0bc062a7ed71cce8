"""What tests of /mcp/{server} share: four workers, a new connection per request, an MCP server and a client by hand.

With SLUICE_GATEWAYS=2 a test's gateway is two of them on one Redis, to which consecutive requests go by turns (mcp_gates.py). `alone`
marks a test that is about one of them.

A class with `direct` puts the client in front of the server without a gateway: what such a test expects of the two is true
without a proxy, so a proxy that changes nothing must meet it too.
"""

import json
import os
import re
import unittest

import harness
import mcp_client
import mcp_gates
import mcp_server

GATEWAYS = int(os.environ.get("SLUICE_GATEWAYS", "1"))

# In the log line of a sampling: who asked, when, how long it took, and what was drawn.
OWN = {"front", "server", "client", "tool", "time", "request_id", "session", "rpc_id", "route", "trace"}


def alone(reason):
    """A test of what one gateway does by itself."""
    return unittest.skipIf(GATEWAYS > 1, "of one gateway: " + reason)


def long(reason):
    """A test that one can spare a change: .ci/nightly plays it."""
    return unittest.skipUnless(os.environ.get("SLUICE_LONG"), reason)


def facts(line):
    """Of the log line of a sampling what is the same however it came."""
    own = OWN | ({"attempts", "attempt_classes"} if "error" in line else set())  # the second finds an open circuit
    return {key: value for key, value in line.items() if key not in own and not key.endswith("_ms")}


def plain(result):
    """Without what the provider numbers."""
    return json.loads(re.sub(r"toolu_sim_\d+", "toolu_sim", json.dumps(result)))


class Case(harness.Case):
    direct = False
    gateways = GATEWAYS

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
        settings = harness.config(self.provider, **{"workers": 4, "drain": "10ms", "mcp_servers": servers, **changes})
        plan = settings["plans"]["standard"]
        if model is not None:
            plan["models"]["default"] = "only"
        plan["mcp_servers"] = {"allow": ["*"]}
        plan["limits"].update({"mcp_messages_per_minute": 6000000, "mcp_sessions": 100000, **(limits or {})})
        return settings

    def gateway(self, settings, **options):
        return mcp_gates.Gates(self, settings, self.gateways, **options) if self.gateways > 1 else super().gateway(settings, **options)

    def memory_kb(self):
        """Of the largest gateway."""
        return max(harness.memory_kb(one.server_pid(), "VmRSS") for one in getattr(self.gate, "gateways", [self.gate]))

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

    def assert_same(self, answer, other):
        """Messages that /mcp/{server} and /v1/sampling have answered the same request with."""
        self.assertEqual(set(answer), set(other))
        if "error" in other:
            self.assertEqual((answer["error"]["code"], answer["error"]["message"]), (other["error"]["code"], other["error"]["message"]))
            self.assertEqual(answer["error"]["data"]["reason"], other["error"]["data"]["reason"])
        else:
            self.assertEqual(plain(answer["result"]), plain(other["result"]))

    def sampling_line(self, condition=lambda line: True):
        """The log line of a sampling that a server asked for."""
        def matches(text):
            if not text.startswith("{") or '"sampling/createMessage"' not in text:
                return False
            line = json.loads(text)
            return line.get("front") == "mcp" and condition(line)
        return json.loads(self.gate.wait_line(matches, "the log line of a sampling"))
