#!/usr/bin/env python3
"""`sluice wrap` between official clients without sampling and servers that sample, over stdio: SDK 1.x with server-everything,
SDK v2 (2026-07-28), FastMCP 3; and the configurations of deploy/docs/wrap.md.

ctest: once serial timeout=600
"""
import fcntl
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
import documents  # noqa: E402
import harness  # noqa: E402
import test_sdk  # noqa: E402

PAGE = "deploy/docs/wrap.md"
EVERYTHING = [os.path.join(HERE, "node_modules/@modelcontextprotocol/server-everything/dist/index.js"), "stdio"]
ANSWER = "This text was made up"


def python(folder=HERE):
    """An environment as requirements.txt says, made once per version of it; its Python."""
    place, wanted = os.path.join(folder, "node_modules/.python"), os.path.join(folder, "requirements.txt")
    mark = os.path.join(place, ".installed")
    with open(wanted, encoding="utf-8") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        if not os.path.exists(mark) or os.path.getmtime(mark) < os.path.getmtime(wanted):
            if subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=False).returncode != 0:
                return None
            subprocess.run([os.path.join(place, "bin/pip"), "install", "-q", "-r", wanted], check=True)
            with open(mark, "w", encoding="utf-8"):
                pass
    return os.path.join(place, "bin/python")


class Sdks(harness.Case):
    def through_a_wrapper(self, client, server):
        gateway = self.gateway(harness.config(self.sim()))
        run = subprocess.run([*client, harness.BIN, "wrap", "--gateway", gateway.url, "--", *server], capture_output=True, text=True,
                             timeout=harness.PATIENCE_S * 3, check=False, env={**os.environ, "SLUICE_KEY": harness.KEY})
        self.assertEqual(run.returncode, 0, run.stderr + run.stdout)
        return json.loads(run.stdout)

    def node(self, client, *server):
        return self.through_a_wrapper([NODE, os.path.join(HERE, client)], [NODE, *server])

    def test_server_everything_samples(self):
        seen = self.node("wrap_client.mjs", *EVERYTHING)
        self.assertIn(ANSWER, seen["result"]["content"][0]["text"])
        self.assertFalse(seen["result"].get("isError"))
        self.assertEqual(seen["echo"]["content"][0]["text"], "Echo: plain")

    def test_a_server_of_2026_07_28_has_its_rounds_answered(self):
        seen = self.node("wrap_v2_client.mjs", os.path.join(HERE, "wrap_v2_server.mjs"))
        self.assertEqual((seen["both"]["era"], seen["both"]["state"]), ("modern", "state"))
        for answer in ("one", "two"):
            self.assertIn(ANSWER, seen["both"]["answers"][answer]["content"]["text"])
        self.assertIn("18 degrees", seen["loop"]["content"]["text"])

    def test_a_fastmcp_server_samples(self):
        interpreter = python()
        if interpreter is None:
            self.skipTest("Python has no venv here")
        seen = self.through_a_wrapper([interpreter, os.path.join(HERE, "wrap_fastmcp_client.py")],
                                      [interpreter, os.path.join(HERE, "wrap_fastmcp_server.py")])
        self.assertIn(ANSWER, seen["ask"])
        self.assertEqual(len(seen["several"]), 4)
        self.assertIn("18 degrees", seen["loop"])


class Documented(harness.Case):
    """Commands of the page, as they stand: with an npx that starts the package that is installed here."""

    def setUp(self):
        super().setUp()
        self.bin, self.sim_ = self.directory(), self.sim()
        os.symlink(harness.BIN, os.path.join(self.bin, "sluice"))
        npx = os.path.join(self.bin, "npx")
        with open(npx, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nshift 2\nexec {NODE} {EVERYTHING[0]} "$@"\n')
        os.chmod(npx, 0o755)
        self.gateway_ = self.gateway(harness.config(self.sim_))

    def run_client(self, command, args, env):
        args = [self.gateway_.url if arg == "https://sluice.example" else arg for arg in args]
        run = subprocess.run([NODE, os.path.join(HERE, "wrap_client.mjs"), command, *args], capture_output=True, text=True,
                             timeout=harness.PATIENCE_S * 3, check=False,
                             env={**os.environ, "PATH": self.bin + ":" + os.environ["PATH"], **env})
        self.assertEqual(run.returncode, 0, run.stderr + run.stdout)
        self.assertIn(ANSWER, json.loads(run.stdout)["result"]["content"][0]["text"])

    def test_commands_for_a_shell_start_it(self):
        commands = [command for page in (PAGE, "README.md") for fence in documents.fences(page=page, word="sh")
                    if "interop.wrap" in fence.tests for command in fence.commands()]
        started = 0
        for command in commands:
            words = command[command.index("sluice"):]
            if "--provider" in words:
                words[words.index("--"):words.index("--")] = ["--base-url", self.sim_.url]
            self.run_client(words[0], words[1:], {"SLUICE_KEY": harness.KEY, "ANTHROPIC_API_KEY": "sk-ant"})
            started += 1
        self.assertEqual(started, 5)

    def test_configurations_of_clients_start_it(self):
        started = 0
        for fence in documents.fences(page=PAGE, word="json"):
            settings = json.loads(fence.text)
            for server in settings.get("mcpServers", settings.get("servers")).values():
                if server["command"] == "wsl.exe":
                    key = os.path.join(self.bin, "key")
                    with open(key, "w", encoding="ascii") as file:
                        file.write(harness.KEY + "\n")
                    server["command"], *server["args"] = [key if arg.startswith("/home/") else arg for arg in server["args"]]
                self.run_client(server["command"], server["args"], {name: harness.KEY for name in server.get("env", {})})
                started += 1
        self.assertEqual(started, 3)


if __name__ == "__main__":
    NODE = test_sdk.packages()
    harness.main()
