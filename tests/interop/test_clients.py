#!/usr/bin/env python3
"""The recipes of deploy/docs/clients.md, each as it stands there. Those of the SDKs that other tests have, too, run always; for the
others a hundred packages are fetched, by .ci/nightly (SLUICE_LONG).

ctest: once timeout=300
"""
import collections
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
import documents  # noqa: E402
import harness  # noqa: E402
import test_sdk  # noqa: E402
import test_wrap  # noqa: E402

PAGE = "deploy/docs/clients.md"
# How many answers of each model a recipe prints.
SDKS = {"Anthropic's SDK, Python": {"claude-sonnet-4-6": 2}, "Anthropic's SDK, TypeScript": {"claude-sonnet-4-6": 1},
        "OpenAI's SDK, Python": {"gpt-4.1": 1}, "OpenAI's SDK, TypeScript": {"gpt-4.1": 1}, "FastMCP": {"gpt-4.1": 1}}
OTHERS = {"LangChain": {"gpt-4.1": 1, "claude-sonnet-4-6": 1}, "pydantic-ai": {"gpt-4.1": 1, "claude-sonnet-4-6": 1},
          "AI SDK": {"gpt-4.1": 1, "claude-sonnet-4-6": 1}, "LlamaIndex": {"gpt-4.1": 1}}


def recipes():
    """The fence of each heading that has a program."""
    found = {}
    for heading, text in re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", documents.read(PAGE), re.MULTILINE | re.DOTALL):
        fences = [documents.Fence(PAGE, text, match) for match in documents.FENCE.finditer(text)]
        for fence in fences:
            if fence.word in ("python", "js"):
                found[heading] = fence
    return found


class Clients(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.simulator = harness.Sim()
        cls.addClassCleanup(cls.simulator.stop)
        models = [harness.model("claude-sonnet-4-6", "anthropic", name="sim-size-63"), harness.model("gpt-4.1", "openai", name="sim-size-63")]
        settings = harness.config(cls.simulator, models=models)
        settings["plans"]["standard"]["models"]["default"] = "gpt-4.1"
        cls.running = harness.Gateway(settings)
        cls.addClassCleanup(cls.running.remove)
        cls.addClassCleanup(cls.running.stop)

    def asked(self):
        """How often each model has answered."""
        return collections.Counter(line["model"] for line in map(json.loads, self.running.stdout) if line.get("model"))

    def run_recipe(self, fence, python, node, folder):
        argv = [python, "-"] if fence.word == "python" else [node, "--input-type=module", "-"]
        return subprocess.run(argv, input=fence.text, cwd=folder, capture_output=True, text=True, timeout=harness.PATIENCE_S * 3, check=False,
                              env={**os.environ, "SLUICE_URL": self.running.url, "SLUICE_KEY": harness.KEY, "NO_PROXY": "127.0.0.1"})

    def run_all(self, rows, python, node, folder):
        shown = recipes()
        for name, answers in rows.items():
            with self.subTest(name):
                before = self.asked()
                run = self.run_recipe(shown[name], python, node, folder)
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
                self.assertEqual(run.stdout.count("This text was made up"), sum(answers.values()), run.stdout)
                harness.wait_for(lambda: self.asked() == before + collections.Counter(answers), f"the log has {answers} more")

    def test_every_program_of_the_page_is_run(self):
        self.assertEqual(set(recipes()), set(SDKS) | set(OTHERS))

    def test_the_official_sdks_answer(self):
        self.run_all(SDKS, test_wrap.python(), NODE, HERE)

    def test_the_others_answer(self):
        if "SLUICE_LONG" not in os.environ:
            self.skipTest("its packages are fetched by .ci/nightly alone")
        folder = os.path.join(HERE, "clients")
        test_sdk.packages(folder)
        python = test_wrap.python(folder)
        if python is None:
            self.skipTest("Python has no venv here")
        self.run_all(OTHERS, python, NODE, folder)


if __name__ == "__main__":
    NODE = test_sdk.packages()
    harness.main()
