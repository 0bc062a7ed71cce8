#!/usr/bin/env python3
"""A server that speaks stdio behind the sidecar of deploy/docs/mcp.md: clients that cannot sample have its samplings answered by the gateway.

ctest: once serial timeout=300
"""
import json
import os
import shlex
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
import documents  # noqa: E402
import harness  # noqa: E402
import test_mcp  # noqa: E402
import test_sdk  # noqa: E402
import test_wrap  # noqa: E402

SAMPLING = "trigger-sampling-request"


class Sidecar(test_mcp.Through):
    def sidecar(self):
        """The command of the page at work, with its programs as they are here; where it listens."""
        with open(os.path.join(HERE, "package.json"), encoding="utf-8") as file:
            version = json.load(file)["dependencies"]["supergateway"]
        port = harness.free_port()
        line = documents.fence("deploy/docs/mcp.md", "npx -y supergateway").text
        for shown, mine in ((f"npx -y supergateway@{version}", f"{test_mcp.NODE} {HERE}/node_modules/supergateway/dist/index.js"),
                            ("npx -y @modelcontextprotocol/server-everything", f"{test_mcp.NODE} {test_wrap.EVERYTHING[0]}"),
                            ("8000", str(port))):
            self.assertEqual(line.count(shown), 1, shown)
            line = line.replace(shown, mine)
        process = harness.Process(shlex.split(line))
        self.addCleanup(process.kill)
        harness.wait_listening(process, port)
        return f"http://127.0.0.1:{port}/mcp"

    def test_a_stdio_server_samples_for_several_sessions(self):
        sim = self.sim()
        settings = harness.config(sim, workers=4, drain="100ms", mcp_servers={"real": {"url": self.sidecar()}})
        settings["plans"]["standard"]["mcp_servers"] = {"allow": ["real"]}
        gateway = self.gateway(settings)
        samplings = [(SAMPLING, {"prompt": f"number {n}", "maxTokens": 32}) for n in range(3)]
        plan = {"url": gateway.url + "/mcp/real", "key": harness.KEY, "gateway": None, "offers": SAMPLING,
                "calls": test_mcp.calls(("echo", {"message": "plain"}), samplings)}
        for client in test_mcp.LEGACY:
            with self.subTest(client=client):
                sim.reset()
                for seen in self.client(client, [plan, plan]):
                    self.assertEqual(seen["samplings"], 0)
                    (echo,), answers = seen["answers"]
                    self.assertIn("plain", json.dumps(echo))
                    self.assertEqual(json.dumps(answers).count("LLM sampling result"), 3, answers)
                self.assertEqual(sim.stats()["requests"], 6)


if __name__ == "__main__":
    test_mcp.NODE = test_sdk.packages()
    harness.main()
