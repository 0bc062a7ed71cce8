#!/usr/bin/env python3
"""Official MCP SDKs against Sluice: a real server samples through an official client.

ctest: once timeout=300
"""
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
import documents
import harness


def packages(folder=HERE):
    """node_modules as the lock file says, installed once per version of it; the path of node 22, which is in those here."""
    modules = os.path.join(folder, "node_modules")
    lock = os.path.join(folder, "package-lock.json")
    mark = os.path.join(modules, ".installed")
    with open(lock, encoding="utf-8") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        if not os.path.exists(mark) or os.path.getmtime(mark) < os.path.getmtime(lock):
            if shutil.which("npm") is None:
                print("NOT RUN: there is no npm")
                sys.exit(77)
            subprocess.run(["npm", "ci", "--silent"], cwd=folder, check=True)
            with open(mark, "w", encoding="utf-8"):
                pass
    return os.path.join(modules, ".bin", "node")


class Readme(harness.Case):
    def test_it_shows_the_handler_that_is_tested(self):
        with open(os.path.join(HERE, "sluice_handler.mjs"), encoding="utf-8") as file:
            tested = re.search(r"^export const sluiceHandler.*?^};$", file.read(), re.MULTILINE | re.DOTALL)[0]
        self.assertTrue(documents.fence("README.md", "export const sluiceHandler").text.startswith(tested))


class Sdk(harness.Case):
    def node(self, script, *args):
        run = subprocess.run([NODE, os.path.join(HERE, script), *args], capture_output=True, text=True,
                             timeout=harness.PATIENCE_S * 3, check=False)
        self.assertEqual(run.returncode, 0, run.stderr + run.stdout)
        return json.loads(run.stdout)

    def test_server_everything_samples_through_the_handler(self):
        sim = self.sim()
        gateway = self.gateway(harness.config(sim))
        port = harness.free_port()
        server = subprocess.Popen(
            [NODE, os.path.join(HERE, "node_modules/@modelcontextprotocol/server-everything/dist/index.js"),
             "streamableHttp"], env={**os.environ, "PORT": str(port)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            def listening():
                self.assertIsNone(server.poll(), "server-everything ended")
                try:
                    return harness.request("GET", f"http://127.0.0.1:{port}/mcp").status
                except OSError:
                    return None
            harness.wait_for(listening, "server-everything listens")
            seen = self.node("everything.mjs", f"http://127.0.0.1:{port}/mcp", gateway.url, harness.KEY)
        finally:
            server.terminate()
            server.wait()
        self.assertFalse(seen["result"].get("isError"), seen)
        self.assertEqual(len(seen["answers"]), 1)
        answer = seen["answers"][0]
        self.assertEqual(answer["stopReason"], "endTurn")
        self.assertIn(answer["content"]["text"], json.dumps(seen["result"]).replace("\\\"", "\"").replace("\\\\", "\\"))
        self.assertIn("hello from interop", sim.last_body().decode())

    def test_a_client_that_is_told_about_progress_waits_for_longer_than_its_timeout(self):
        models = [harness.model("claude-test", "anthropic"),
                  harness.model("slow", "anthropic", name="sim-pace-20ms-size-2000-chunk-16"),
                  harness.model("bad", "anthropic", name="sim-midway-pace-20ms-size-2000-chunk-16")]
        gateway = self.gateway(harness.config(self.sim(), models=models))
        seen = self.node("progress.mjs", gateway.url, harness.KEY, "slow", "1500")
        self.assertIsNone(seen["error"], seen)
        self.assertEqual(len(harness.text_of(seen["result"])), 2000)
        self.assertGreater(len(seen["progress"]), 4)
        self.assertEqual(seen["progress"], sorted(set(seen["progress"])))

    def test_a_client_that_was_told_about_progress_has_an_answer_from_elsewhere_or_the_error(self):
        bad = harness.model("bad", "anthropic", name="sim-midway-pace-20ms-size-2000-chunk-16")
        settings = harness.config(self.sim(), models=[harness.model("claude-test", "anthropic"), bad])
        settings["tenants"].append(harness.tenant("alone", harness.KEY + "-alone", models={"allow": ["bad"], "default": "bad"}))
        gateway = self.gateway(settings)
        seen = self.node("progress.mjs", gateway.url, harness.KEY, "bad", "20000")
        self.assertIsNone(seen["error"], seen)
        self.assertGreater(len(seen["progress"]), 1, seen)
        self.assertEqual(seen["progress"], sorted(set(seen["progress"])))
        self.assertEqual(seen["result"]["_meta"]["sluice/route"]["model"], "claude-test")
        seen = self.node("progress.mjs", gateway.url, harness.KEY + "-alone", "bad", "20000")
        self.assertEqual(seen["error"]["code"], -32011, seen)

    def test_a_client_whose_session_is_lost_begins_anew(self):
        gateway = self.gateway(harness.config(self.sim()))
        seen = self.node("session.mjs", gateway.url, harness.KEY)
        self.assertEqual(seen["ended"], 204)
        self.assertEqual(seen["lost"]["code"], 404, seen)
        self.assertIn("session_unknown", seen["lost"]["message"])
        self.assertEqual([len(session) for session in seen["sessions"]], [32, 32])
        self.assertNotEqual(*seen["sessions"])
        self.assertEqual([answer["stopReason"] for answer in seen["answers"]], ["endTurn", "endTurn"])

    def test_a_two_turn_tool_loop(self):
        sim = self.sim()
        gateway = self.gateway(harness.config(sim))
        for model in ("claude-test", "gpt-test"):
            settings = harness.config(sim)
            settings["listen"], settings["admin"] = gateway.settings["listen"], gateway.settings["admin"]
            settings["plans"]["standard"]["models"]["default"] = model
            gateway.write_config(settings)
            self.assertEqual(harness.request("POST", gateway.admin + "/reload", b"").status, 200)
            seen = self.node("tool_loop.mjs", gateway.url, harness.KEY)
            self.assertFalse(seen["isError"], (seen, gateway.report(), sim.report()))
            self.assertEqual([turn["stopReason"] for turn in seen["turns"]], ["toolUse", "endTurn"])
            self.assertIn("18 degrees", json.dumps(seen["turns"][1]["content"]))


if __name__ == "__main__":
    NODE = packages()
    harness.main()
