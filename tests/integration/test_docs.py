"""The documentation: every command in it is run, every configuration checked, every program tried, every link
followed, and what is generated is what would be generated now.

Fences of README.md and deploy/docs say by their first word what is done with them:
  sh            run by bash beside a gateway under way, with the variables of deploy/docs/runbook/README.md
  yaml          put into a whole configuration, in place of its keys, and checked; `yaml plan`: into the plan of it
  json          read
  python, js    run as they are, with the variables
  ts            run by node, its types taken away; without one that can, it is skipped
  go            looked at by gofmt, where there is one
  text          output, or a drawing: nothing
A line <!-- test: NAME --> above a fence names the test that runs it instead. No fence is without a word.

ctest: once timeout=180
"""

import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import jwt_issuer  # noqa: E402
import prometheus  # noqa: E402
import redis_server  # noqa: E402

DOCS = os.path.join(harness.SOURCE, "deploy/docs")
FENCE = re.compile(r"(?:^ *<!-- test: (\S+) -->\n)?^( *)```([^\n]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
WORDS = {"sh", "yaml", "json", "python", "js", "ts", "go", "text"}
ELSEWHERE = {"image.md"}  # pages whose commands want an engine for images: .ci/nightly image runs them


def links(page):
    """Files that a page links, as paths."""
    with open(page, encoding="utf-8") as file:
        text = re.sub(r"```.*?```", "", file.read(), flags=re.DOTALL)
    found = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    return [os.path.normpath(os.path.join(os.path.dirname(page), target)) for target in found if "://" not in target]


def pages():
    """All that can be reached from the front page."""
    found, left = set(), [os.path.join(os.path.normpath(harness.SOURCE), "README.md")]
    while left:
        page = left.pop()
        if page not in found and page.endswith(".md") and os.path.basename(page) not in ELSEWHERE:
            found.add(page)
            left += [target for target in links(page) if os.path.exists(target)]
    return sorted(found)


def title(page):
    return os.path.relpath(page, DOCS)


class Fence:
    def __init__(self, page, line, test, word, text):
        self.page, self.line, self.test, self.text = page, line, test, text
        self.word, _, self.rest = word.partition(" ")
        self.name = f"{title(page)}:{line}"


def fences(page=None, word=None):
    found = []
    for one in [page] if page else pages():
        with open(one, encoding="utf-8") as file:
            text = file.read()
        for match in FENCE.finditer(text):
            indent = match[2]
            body = re.sub(f"^{indent}", "", match[4], flags=re.MULTILINE)
            found.append(Fence(one, text.count("\n", 0, match.start(3)) + 1, match[1], match[3], body))
    return [fence for fence in found if word is None or (fence.word == word and not fence.test)]


class Shape(harness.Case):
    def test_every_fence_says_what_it_is(self):
        for fence in fences():
            with self.subTest(fence.name):
                self.assertIn(fence.word, WORDS)

    def test_fences_that_are_run_elsewhere_name_a_test_that_there_is(self):
        for fence in fences():
            if fence.test:
                folder, name = fence.test.split(".")
                found = [file for file in os.listdir(os.path.join(harness.SOURCE, "tests", folder))
                         if file.startswith(f"test_{name}.")]
                self.assertTrue(found, f"{fence.name}: {fence.test}")

    def test_links_lead_somewhere(self):
        self.assertGreater(len(pages()), 30)
        for page in pages():
            for target in links(page):
                self.assertTrue(os.path.exists(target), f"{title(page)}: {target}")

    def test_what_is_generated_is_what_would_be_generated_now(self):
        run = subprocess.run([sys.executable, os.path.join(DOCS, "reference"), "--check", harness.BIN],
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)


class Snippets(harness.Case):
    def test_json_is_json(self):
        for fence in fences(word="json"):
            with self.subTest(fence.name):
                json.loads(fence.text)

    def test_go_is_formatted(self):
        for fence in fences(word="go"):
            if shutil.which("gofmt") is None:
                self.skipTest("gofmt is not installed (Debian package golang-go)")
            run = subprocess.run(["gofmt", "-d"], input=fence.text, capture_output=True, text=True, check=False)
            with self.subTest(fence.name):
                self.assertEqual((run.returncode, run.stdout), (0, ""), run.stderr)

    def test_configurations_are_accepted(self):
        directory = self.directory()
        cert, key = self.certificate()
        for name, source in (("tls.crt", cert), ("tls.key", key), ("callers-ca.crt", cert),
                             ("redis-ca.crt", cert)):
            shutil.copy(source, os.path.join(directory, name))
        path = os.path.join(directory, "sluice.yaml")
        checked = 0
        for fence in fences(word="yaml"):
            text = whole(fence)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            variables = {name: "0123456789abcdef" for name in re.findall(r"\$\{(\w+)\}", text)}
            run = subprocess.run([harness.BIN, "check", path], capture_output=True, text=True, check=False,
                                 env={**os.environ, **variables})
            with self.subTest(fence.name):
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            checked += 1
        self.assertGreater(checked, 20)


def whole(fence):
    """The fence's text with what it lacks to be a configuration."""
    text = fence.text.replace("…what sluice key printed…", harness.sha256("shown in a document"))
    if fence.rest == "plan":
        text = "plans:\n  standard:\n" + re.sub(r"^(?=.)", "    ", text, flags=re.MULTILINE)
    provider = re.search(r"^providers:\n  ([\w-]+):", text, re.MULTILINE)
    provider = provider[1] if provider else "anthropic"
    rest = {
        "providers": {"anthropic": {"dialect": "anthropic", "endpoints": [{"url": "https://api.anthropic.com"}],
                                    "keys": ["0123456789abcdef"]}},
        "models": [harness.model(id, provider) for id in ("claude-haiku", "claude-sonnet", "gpt-4.1", "gpt-4.1-mini")],
        "plans": {"standard": {"models": {"allow": ["*"]}}},
        "tenants": [{"id": "someone", "plan": "standard", "keys": [{"sha256": harness.sha256(harness.KEY)}]}],
    }
    has = set(re.findall(r"^(\w+):", text, re.MULTILINE))
    return text + "".join(f"{key}: {json.dumps(value)}\n" for key, value in rest.items() if key not in has)


class Commands(harness.Case):
    """What is run, each fence by itself, in the pages' order; it must end well."""

    def start(self):
        """A gateway that has seen a little of everything, and what the commands know it by."""
        sim = self.sim()
        settings = harness.config(sim)
        settings["store"] = {"kind": "redis", "url": self.redis.url, "deadline": "5s"}
        settings["retries"] = {"attempts": 1}
        settings["providers"]["failing"] = harness.provider(sim, "openai")
        settings["models"] += [harness.model("sim-error-529", "failing"), harness.model("claude-sonnet", "anthropic")]
        settings["identity"] = {"jwt": [self.issuer.settings()]}
        gateway = self.gateway(settings)
        answer = gateway.sample("hello")
        self.assert_result(answer)
        gateway.sample(modelPreferences={"hints": [{"name": "sim-error-529"}]})
        gateway.log(answer.headers["sluice-request-id"])
        gateway.metrics_after(2)
        return sim, gateway, answer.headers["sluice-request-id"]

    def environment(self, sim, gateway, server, request_id):
        directory = self.directory()
        os.symlink(harness.BIN, os.path.join(directory, "sluice"))
        log = os.path.join(directory, "sluice.log")
        with open(log, "w", encoding="utf-8") as file:
            file.write("\n".join(gateway.stdout) + "\n")
        return {
            **os.environ, "PATH": directory + ":" + os.environ["PATH"], "HOME": directory,
            "SLUICE": gateway.url, "SLUICE_URL": gateway.url, "ADMIN": gateway.admin, "CONFIG": gateway.config_path,
            "LOG": log, "PROMETHEUS": server.url, "REDIS": self.redis.url, "PROVIDER": sim.url,
            "JWKS": self.issuer.settings()["jwks"], "REQUEST_ID": request_id, "KEY": harness.KEY, "SLUICE_KEY": harness.KEY,
            "no_proxy": "*"}

    def run_fence(self, fence, argv, environment):
        run = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environment,
                             cwd=environment["HOME"], timeout=harness.PATIENCE_S)
        with self.subTest(fence.name):
            self.assertEqual(run.returncode, 0, f"{fence.text}\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}")

    def test_every_command_and_every_program_works(self):
        self.redis = redis_server.Redis(self)
        self.issuer = jwt_issuer.Issuer(self)
        self.issuer.add("ES256")
        sim, gateway, request_id = self.start()
        server = prometheus.Prometheus(self, [gateway])
        harness.wait_for(lambda: server.values("sum(rate(sluice_requests_total[5m]))"), "Prometheus has looked twice")
        shared = self.environment(sim, gateway, server, request_id)
        for fence in fences(word="sh"):
            text = fence.text.replace("http://127.0.0.1:8080", shared["SLUICE"])
            self.run_fence(fence, ["bash", "-euo", "pipefail", "-c", text], shared)
        for fence in fences(word="python"):
            self.run_fence(fence, [sys.executable, "-c", fence.text], shared)
        self.assertGreater(len(fences(word="sh")), 30)


if __name__ == "__main__":
    for program in ("prometheus", "redis-cli", "jq"):
        if shutil.which(program) is None:
            print(f"SKIPPED: {program} is not installed (Debian packages prometheus, redis-tools, jq)")
            sys.exit(77)
    harness.main()
