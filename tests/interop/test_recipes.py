#!/usr/bin/env python3
"""The TypeScript of deploy/docs/recipes.md, run by node.

ctest: once timeout=300
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
import harness  # noqa: E402
import test_sdk  # noqa: E402


class Recipes(harness.Case):
    def test_typescript_gets_an_answer(self):
        with open(os.path.join(harness.SOURCE, "deploy/docs/recipes.md"), encoding="utf-8") as file:
            program = re.search(r"^```ts\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)[1]
        path = os.path.join(self.directory(), "recipe.mts")
        with open(path, "w", encoding="utf-8") as file:
            file.write(program)
        sim = self.sim()
        gateway = self.gateway(harness.config(sim))
        run = subprocess.run([NODE, "--experimental-strip-types", "--no-warnings", path], capture_output=True, text=True,
                             timeout=harness.PATIENCE_S * 3, check=False,
                             env={**os.environ, "SLUICE_URL": gateway.url, "SLUICE_KEY": harness.KEY})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(run.stdout.strip().startswith("This text was made up"), run.stdout)


if __name__ == "__main__":
    NODE = test_sdk.packages()
    harness.main()
