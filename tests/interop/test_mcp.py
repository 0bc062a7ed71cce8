#!/usr/bin/env python3
"""Official clients in front of real servers, through /mcp/{server} at four workers: without sampling they see what they see of the
same server directly when they sample by themselves.

ctest: once serial timeout=300
"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
import harness  # noqa: E402
import test_sdk  # noqa: E402
import test_wrap  # noqa: E402

# What server-everything says at once after initialized: a client directly in front of it may open its GET too late to hear it.
EARLY = json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
LEGACY = ("v1", "v2", "python")
BRIDGED = ("both", "loop", "busy")
PYTHON_CALLS = [("ask", {"words": "hello"}), ("ask_aside", {"words": "hello"}), ("several", {"count": 6}),
                ("loop", {"words": "the weather"}), ("meet", {}), ("announce", {})]


def calls(*groups):
    """Of a plan: one after another, those of a list at once."""
    return [[{"name": name, "arguments": arguments} for name, arguments in (group if isinstance(group, list) else [group])]
            for group in groups]


def readable(seen):
    """JSON inside of texts as what it says: clients that answer by themselves write it in another order, and SDK v2 drops `usage`.
    Ids that a provider makes up are of several lengths, and so are the tokens counted."""
    if isinstance(seen, dict):
        return {name: readable(value) for name, value in seen.items() if name not in ("usage", "sluice/usage")}
    if isinstance(seen, list):
        return [readable(value) for value in seen]
    if isinstance(seen, str) and "{" in seen:
        before, text = seen[:seen.index("{")], seen[seen.index("{"):]
        try:
            return [before, readable(json.loads(text))]
        except ValueError:
            return seen
    return seen


class Through(harness.Case):
    def listening(self, *argv, env=None):
        """Where a server is that listens at a port of its last argument, or of variable `env`."""
        port = harness.free_port()
        server = harness.Process([*argv, str(port)] if env is None else argv, env and {env: str(port)})
        self.addCleanup(server.kill)
        harness.wait_listening(server, port)
        return f"http://127.0.0.1:{port}"

    def python(self):
        python = test_wrap.python()
        if python is None:
            self.skipTest("Python has no venv here")
        return python

    def client(self, name, plans):
        """What it saw of each plan's server."""
        words = [self.python(), "mcp_client.py"] if name == "python" else [NODE, "mcp_client.mjs", name]
        command = [words[0], os.path.join(HERE, words[1]), *words[2:]]
        run = subprocess.run([*command, json.dumps(plans)], capture_output=True, text=True, timeout=harness.PATIENCE_S * 3, check=False)
        self.assertEqual(run.returncode, 0, run.stderr + run.stdout)
        return json.loads(run.stdout)

    def in_front(self, url):
        """A provider, and a gateway in front of that server."""
        sim = self.sim()
        settings = harness.config(sim, workers=4, drain="100ms", mcp_servers={"real": {"url": url}})
        settings["plans"]["standard"]["mcp_servers"] = {"allow": ["real"]}
        settings["plans"]["standard"]["limits"].update({"mcp_messages_per_minute": 6000000, "mcp_sessions": 1000})
        return sim, self.gateway(settings)

    def seen_through(self, url, clients=LEGACY, relayed=False, **plan):
        """What each client that cannot sample saw through the gateway, once it is what one that can saw directly; with `relayed`
        such a client is put behind the gateway, too."""
        sim, gateway = self.in_front(url)
        through, direct = ({"url": where, "key": harness.KEY, **plan} for where in (gateway.url + "/mcp/real", url))
        seen = []
        for client in clients:
            with self.subTest(client=client):
                sim.reset()
                own, able, *more = self.client(client, [{**through, "gateway": None}, {**direct, "gateway": gateway.url},
                                                        *([{**through, "gateway": gateway.url}] if relayed else [])])
                self.assertGreater(able["samplings"], 0)
                self.assertEqual([own["samplings"], *(one["samplings"] for one in more)], [0, *(able["samplings"] for _ in more)])
                self.assertEqual(sim.stats()["requests"], able["samplings"] * (2 + len(more)), "each sampling is answered once")
                for one in (own, *more):
                    for what in ("server", "tools", "answers", "after"):
                        self.assertEqual(readable(one.get(what)), readable(able.get(what)), what)
                    for what in ("asked", "notifications"):  # of two streams: in no order, and the server may ask again
                        heard = [{json.dumps(item, sort_keys=True) for item in its[what]} - {EARLY} for its in (one, able)]
                        self.assertEqual(*heard, what)
                    for answer in sum(one["answers"], []):
                        self.assertFalse(answer.get("isError") or answer.get("error"), answer)
                self.assertIn("This text was made up", json.dumps(own["answers"]))
                seen.append((own, able))
        return seen


class Clients(Through):
    def sessions_through(self, url, **plan):
        seen = self.seen_through(url, **plan)
        for own, able in seen:
            self.assertEqual((own["ended"], own["progress"]), (404, able["progress"]))
            self.assertIn(able["ended"], (400, 404))
        return [own for own, _ in seen]

    def everything(self, transport):
        """Where server-everything is, and a plan for it."""
        sampling, long = "trigger-sampling-request", "trigger-long-running-operation"
        return self.listening(NODE, test_wrap.EVERYTHING[0], transport, env="PORT"), {"offers": sampling, "calls": calls(
            ("echo", {"message": "plain"}), (sampling, {"prompt": "hello", "maxTokens": 32}),
            [*((sampling, {"prompt": f"number {n}", "maxTokens": 32}) for n in range(5)), ("echo", {"message": "beside"})],
            ("trigger-elicitation-request", {}), ("get-roots-list", {}), (long, {"duration": 0.1, "steps": 2}), ("get-tiny-image", {})),
            "cancel": {"name": long, "arguments": {"duration": 0.2, "steps": 2}},
            "after": {"name": "echo", "arguments": {"message": "after"}}}

    def test_server_everything(self):
        url, plan = self.everything("streamableHttp")
        for seen in self.sessions_through(url + "/mcp", **plan):
            self.assertEqual(seen["progress"]["trigger-long-running-operation"], [1, 2])
            self.assertEqual(set(seen["asked"]), {"elicitation/create", "roots/list"})

    def test_server_everything_over_sse_of_2024_11_05(self):
        url, plan = self.everything("sse")
        self.seen_through(url + "/sse", sse=True, **plan)

    def python_server(self, *words, **plan):
        url = self.listening(self.python(), os.path.join(HERE, "mcp_server.py"), *words) + "/mcp"
        cancelled = {"cancel": {"name": "wait", "arguments": {}}, "after": {"name": "was_stopped", "arguments": {}}}
        for seen in self.sessions_through(url, **cancelled, **plan):
            self.assertEqual((len(seen["notifications"]), seen["progress"]["announce"]), (3, [0, 1, 2]))
            self.assertEqual(seen["asked"], ["elicitation/create", "roots/list"])
            self.assertEqual(seen["after"]["structuredContent"]["result"], "stopped")

    def test_a_server_of_python(self):
        at_once = [("ask", {"words": "one"}), ("ask_aside", {"words": "two"}), ("several", {"count": 3})]
        self.python_server(calls=calls(*PYTHON_CALLS, at_once))

    def test_a_server_whose_streams_are_resumed(self):
        later = ("ask_later", {"words": "later"})
        self.python_server("resumable", relayed=True, calls=calls(*PYTHON_CALLS, later, [later, later, ("ask", {"words": "meanwhile"})]))

    def test_fastmcp(self):
        url = self.listening(self.python(), os.path.join(HERE, "wrap_fastmcp_server.py")) + "/mcp"
        for seen in self.sessions_through(url, calls=calls(
                ("ask", {"prompt": "hello"}), ("several", {"count": 4}), ("loop", {"prompt": "the weather"}),
                ("verdict", {"prompt": "so?"}), [("ask", {"prompt": f"number {n}"}) for n in range(5)])):
            self.assertIn("18 degrees", json.dumps(seen["answers"][2]))
            self.assertIn("Verdict(text=", json.dumps(seen["answers"][3]))

    def test_rounds_of_2026_07_28(self):
        url = self.listening(NODE, os.path.join(HERE, "wrap_v2_server.mjs")) + "/mcp"
        tools = [(name, {"text": name}) for name in ("both", "loop", "mixed", "busy")]
        for seen, able in self.seen_through(url, clients=["v2"], relayed=True, calls=calls(*tools, tools)):
            self.assertEqual((seen["asked"], able["asked"]), (["elicitation/create"] * 2,) * 2)
            self.assertEqual(seen["progress"]["busy"], [1, 2] * 2)  # two rounds are one call to this client
            self.assertNotIn("ended", seen)

    def bridged(self, *words):
        """Clients with sessions in front of a server that has none, and asks for samplings in 2026-07-28 only. What they see is what a
        client of that revision sees directly that samples by itself."""
        url = self.listening(NODE, os.path.join(HERE, "wrap_v2_server.mjs"), *words) + "/mcp"
        sim, gateway = self.in_front(url)
        plan = {"key": harness.KEY, "calls": calls(*((name, {"text": name}) for name in BRIDGED), [(name, {"text": name}) for name in BRIDGED])}
        able, = self.client("v2", [{"url": url, "gateway": gateway.url, **plan}])
        for client in ("v1", "python"):
            with self.subTest(client=client):
                sim.reset()
                own, = self.client(client, [{"url": gateway.url + "/mcp/real", "gateway": None, **plan}])
                self.assertEqual((sim.stats()["requests"], own["ended"]), (able["samplings"], 404))
                self.assertEqual((own["server"]["name"], own["progress"]), (able["server"]["name"], {"busy": [1, 2] * 2}))
                self.assertEqual(*([tool["name"] for tool in seen["tools"]] for seen in (own, able)))
                self.assertEqual(*(readable([answer["content"] for answer in sum(seen["answers"], [])]) for seen in (own, able)))
                self.assertEqual(json.loads(own["answers"][0][0]["content"][0]["text"])["era"], "modern")

    def test_clients_with_sessions_in_front_of_a_server_of_2026_07_28(self):
        self.bridged()

    def test_clients_with_sessions_in_front_of_a_server_that_answers_no_initialize(self):
        self.bridged("reject")


if __name__ == "__main__":
    NODE = test_sdk.packages()
    harness.main()
