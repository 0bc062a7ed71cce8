"""The catalogue of known models against the facts it was made from.

ctest: once
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness

FACTS = os.path.join(harness.SHARED, "contract", "catalogue-sample.json")

# Where the table knows better than its source, and why.
CORRECTED = {
    ("claude-sonnet-4-6", "profile.max_output"): "128000",  # contract/providers.md 11
    # Prices with steps: the highest, because budgets rely on bounds.
    ("claude-haiku-5-5", "price.input"): "0.5",
    ("claude-haiku-5-5", "price.output"): "2.5",
    ("claude-haiku-5-5", "price.cache_read"): "0.05",
    ("claude-haiku-5-5", "price.cache_write"): "0.625",
    # Audio that costs more than text is not taken.
    ("gemini-2.5-flash", "profile.audio"): "false",
    ("gemini-3-flash-preview", "profile.audio"): "false",
}


def number(value):
    return f"{value:.6f}".rstrip("0").rstrip(".")


def expected(fact):
    """What `sluice check --verbose` has to say of the model, key by key."""
    name, price = fact["model"], fact["usd_per_mtok"]
    values = {
        "context": number(fact["max_input"] or fact["context"]),
        "price.input": number(price["input"]),
        "price.output": number(price["output"]),
        "price.cache_read": number(price["cache_read"]) if "cache_read" in price else "(price.input)",
        "price.cache_write": number(price["cache_write"]) if "cache_write" in price else "(price.input)",
        "profile.max_output": number(fact["max_output"]),
        "profile.image": str("image" in fact["modalities_in"]).lower(),
        "profile.audio": str("audio" in fact["modalities_in"]).lower(),
        "profile.structured_output": str(bool(fact["structured_output"])).lower(),
        "profile.forced_tool": str(fact.get("forced_tool_choice") is not False).lower(),
    }
    if fact["temperature"] is False:
        values["profile.temperature"] = "null"
    if fact.get("chat_tools_need_effort_none"):
        values["profile.tools_need_effort_none"] = "true"
    return {key: CORRECTED.get((name, key), value) for key, value in values.items()}


def told(text):
    """models -> key -> (value, origin)."""
    models, current = {}, None
    for line in text.splitlines():
        if line.startswith("models["):
            current = models.setdefault(line.split()[1].rstrip(":"), {})
        elif line.startswith("  "):
            key, rest = line[2:35].strip(), line[35:]
            current[key] = (rest[:24].strip(), rest[24:].strip())
    return models


@unittest.skipUnless(os.path.exists(FACTS), "the facts are not there")
class Catalogue(unittest.TestCase):
    def test_every_model_is_as_its_source_says(self):
        with open(FACTS, encoding="utf-8") as file:
            facts = json.load(file)
        models = [{"id": fact["model"], "provider": "p"} for fact in facts]
        settings = {"providers": {"p": {"dialect": "anthropic", "endpoints": [{"url": "http://localhost"}]}},
                    "models": models}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(settings, file)
            file.flush()
            run = subprocess.run([harness.BIN, "check", "--verbose", file.name], capture_output=True, text=True,
                                 check=False, timeout=60)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        said = told(run.stdout)
        self.assertEqual(len(said), len(facts))
        for fact in facts:
            for key, value in expected(fact).items():
                with self.subTest(model=fact["model"], key=key):
                    self.assertEqual(said[fact["model"]][key][0], value)


if __name__ == "__main__":
    harness.main()
