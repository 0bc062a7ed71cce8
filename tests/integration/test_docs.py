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
A line <!-- test: NAME... --> above a fence names the tests that run it instead: they name every command of it, or take it
from the page (tests/support/documents.py). <!-- not run: WHY --> is for what no test can run; its programs and options
are there all the same. No fence is without a word, and no page has commands outside of one.

ctest: once timeout=180
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import documents  # noqa: E402
import harness  # noqa: E402
import jwt_issuer  # noqa: E402
import metric_names  # noqa: E402
import prometheus  # noqa: E402
import redis_server  # noqa: E402

WORDS = {"sh", "yaml", "json", "python", "js", "ts", "go", "text"}
NOT_RUN_MAX = 9  # fences: mostly what measures for minutes; one more wants a reason, and this number


def links(page):
    """Files that a page links, as paths from the top."""
    found = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", documents.without_fences(page))
    return [os.path.normpath(os.path.join(os.path.dirname(page), target)) for target in found if "://" not in target]


def anchors(page):
    """What its headings are called in links, as GitHub does it."""
    heads = re.findall(r"^#+ (.*)$", documents.without_fences(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def here(word):
    return [fence for fence in documents.fences(word=word) if fence.here]


def source_of(test):
    """The text of the test called FOLDER.NAME, or None; docker.test is docker/test."""
    if test == "docker.test":
        return documents.read("docker/test")
    folder, name = test.split(".")
    directory = os.path.join(documents.TOP, "tests", folder)
    for file in sorted(os.listdir(directory)) if os.path.isdir(directory) else []:
        if file.startswith(f"test_{name}."):
            return documents.read(os.path.join("tests", folder, file))
    return None


def is_named(command, source):
    """Whether a test's text has the program of a command, by its last name, and every plain word and option of it."""
    words = [os.path.basename(command[0])] + [word.partition("=")[0] for word in command[1:]]
    return all(word in source for word in words if re.fullmatch(r"-{0,2}[a-z][\w.-]*", word))


class Shape(harness.Case):
    def test_every_fence_says_what_it_is(self):
        for fence in documents.fences():
            with self.subTest(fence.name):
                self.assertIn(fence.word, WORDS)

    def test_no_command_is_outside_of_a_fence(self):
        for page in documents.pages():
            with self.subTest(page):
                self.assertEqual(re.findall(r"\n\n {4,}\S.*", documents.without_fences(page)), [])

    def test_tests_that_run_a_fence_instead_know_its_commands(self):
        found = [fence for fence in documents.fences() if fence.tests]
        self.assertGreater(len(found), 5)
        for fence in found:
            with self.subTest(fence.name):
                sources = [source_of(test) for test in fence.tests]
                self.assertNotIn(None, sources, fence.tests)
                if any(re.search(rf"""["' ]{fence.page}[" )']""", source) for source in sources):
                    continue  # it takes the fence from the page
                self.assertEqual(fence.word, "sh")
                for command in fence.commands():
                    self.assertTrue(is_named(command, "\n".join(sources)), f"{fence.tests} do not know of {' '.join(command)}")

    def test_fences_that_no_test_runs_are_few_and_say_why(self):
        found = [fence for fence in documents.fences() if fence.not_run is not None]
        self.assertEqual([fence.name for fence in found if len(fence.not_run) < 10], [])
        self.assertLessEqual(len(found), NOT_RUN_MAX, [fence.name for fence in found])

    def test_links_lead_somewhere(self):
        results = glob.glob("bench/results/*.md", root_dir=documents.TOP)
        self.assertTrue(results)
        for page in [*documents.pages(), *results]:
            for target in links(page):
                self.assertTrue(os.path.exists(os.path.join(documents.TOP, target)), f"{page}: {target}")
            for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)]*)\)", documents.without_fences(page)):
                to = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
                self.assertIn(anchor, anchors(to), f"{page}: {target}#{anchor}")

    def test_every_page_is_found_from_the_front_page(self):
        found, left = set(), ["README.md"]
        while left:
            page = left.pop()
            if page in documents.pages() and page not in found:
                found.add(page)
                left += links(page)
        self.assertEqual(found, set(documents.pages()))

    def test_what_is_generated_is_what_would_be_generated_now(self):
        run = subprocess.run([sys.executable, os.path.join(documents.DOCS, "reference"), "--check", harness.BIN],
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)


class Named(harness.Case):
    """Programs, options, tests and the like that the pages name in a line, or in a fence that no test runs."""

    @classmethod
    def setUpClass(cls):
        usage = subprocess.run([harness.BIN, "help"], capture_output=True, text=True, check=True).stdout
        cls.usage, cls.commands = usage, set(re.findall(r"^  (\w+)", usage, re.MULTILINE))
        cls.scenarios = set(re.findall(r'\("([\w-]+)", "', documents.read("bench/suite/scenarios.py")))
        cls.sections = set(re.findall(r"^(\w+)\(\) \{$", documents.read(".ci/nightly"), re.MULTILINE))
        names = os.listdir(os.path.join(documents.TOP, "bench/suite"))
        cls.made = documents.read("bench/CMakeLists.txt") + documents.read("gateway/CMakeLists.txt")
        cls.suite = "".join(documents.read(f"bench/suite/{name}") for name in names if name.endswith(".py"))

    @staticmethod
    def mentions():
        for page in documents.pages():
            for span in re.findall(r"`([^`\n]+)`", documents.without_fences(page)):
                yield page, span.split()
        for fence in documents.fences(word="sh"):
            if not fence.here:
                for command in fence.commands():
                    yield fence.name, command

    def test_what_is_named_is_there(self):
        looked_at = 0
        for place, words in self.mentions():
            while words and re.match(r"[A-Z_]+=", words[0]):
                words = words[1:]
            judge = words and self.judge_of(words[0])
            if judge and not re.search("[<*]", words[0]):
                looked_at += 1
                with self.subTest(f"{place}: {' '.join(words)}"):
                    judge([re.sub(r"^\[|\]$", "", word) for word in words])
        self.assertGreater(looked_at, 100)

    def test_metrics_and_settings_are_called_what_they_are(self):
        metrics = metric_names.known()
        keys = re.findall(r"^\| `([^`]+)` \|", documents.read("deploy/docs/configuration.md"), re.MULTILINE)
        steps = {key: key.replace("[]", "").split(".") for key in keys}
        parts = {tuple(key[i:j]) for key in steps.values() for i in range(len(key)) for j in range(i + 1, len(key) + 1)}
        firsts = {key[0] for key in steps.values()} | {"profile", "policy", "capabilities", "timeouts", "breaker", "check"}
        self.assertGreater(len(parts), 200)
        for page in documents.pages():
            for name in set(re.findall(r"\bsluice_[a-z_]*[a-z]\b(?!\.)", documents.read(page))):
                with self.subTest(f"{page}: {name}"):
                    self.assertIn(re.sub("_(bucket|sum|count)$", "", name), metrics)
            for span in re.findall(r"`([a-z_]+(?:\[\])?(?:\.(?:[a-z_]+(?:\[\])?|\*))+)(?:[:= ][^`\n]*)?`",
                                   documents.without_fences(page)):
                key = tuple(span.replace("[]", "").split("."))
                if key[0] in firsts and key[-1] != "h":  # limits.h is a file
                    with self.subTest(f"{page}: {span}"):
                        self.assertIn(key, parts)

    def judge_of(self, program):
        if program == "sluice":
            return self.gateway_command
        if program.startswith("build/"):
            return self.in_the_build
        return self.in_the_tree if re.match(r"(deploy|bench|tests|docker|\.ci)/", program) else None

    def gateway_command(self, words):
        if words[1:] and re.match(r"[\w-]", words[1]):
            self.assertIn(words[1], self.commands | {"--version", "--help"})
            for option in self.options(words[2:]):
                self.assertIn(option, self.usage)

    def in_the_build(self, words):
        """Whether it is made; it need not have been made yet."""
        program = words[0].removeprefix("build/")
        if program.startswith("tests/"):
            folder, _, name = program.removeprefix("tests/").partition("_")
            self.assertTrue(os.path.exists(os.path.join(documents.TOP, f"tests/{folder}/test_{name}.c")))
        else:
            self.assertIn(f"add_executable({program} ", self.made)

    @staticmethod
    def options(words):
        return [word.partition("=")[0] for word in words if word.startswith("--")]

    def in_the_tree(self, words):
        program = words[0]
        path = os.path.join(documents.TOP, program)
        self.assertTrue(os.path.exists(path))
        text = self.suite if program == "bench/run" else "" if os.path.isdir(path) else documents.read(program)
        if program == "bench/run":
            text += documents.read(program)
        for option in self.options(words):
            self.assertIn(option, text)
        rest = [word for word in words[1:] if not word.startswith("-")]
        if program == "tests/run":
            for name in rest:
                self.assertTrue(self.begins_a_test(name), name)
        elif program == ".ci/nightly":
            self.assertLessEqual(set(rest), self.sections)
        elif program == "bench/run" and "--scenario" in words:
            self.assertLessEqual(set(rest), self.scenarios)
        elif re.search(r"/test_\w+\.py$", program):
            for name in rest:
                self.assertIn(f"class {name}(", text)

    @staticmethod
    def begins_a_test(name):
        """As ctest would call it: FOLDER.NAME or unit.FOLDER.NAME, or the beginning of it."""
        folder, _, rest = re.sub(r"^[at]san\.", "", name).partition(".")
        directory = os.path.join(documents.TOP, "tests", folder)
        names = [re.sub(r"^(test|fuzz)_|\.\w+$", "", file) for file in os.listdir(directory)] if os.path.isdir(directory) else []
        return any(one.startswith(rest) for one in names)


class Snippets(harness.Case):
    def test_json_is_json(self):
        for fence in here("json"):
            with self.subTest(fence.name):
                json.loads(fence.text)

    def test_go_is_formatted(self):
        for fence in here("go"):
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
        for fence in here("yaml"):
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
        settings["models"] += [harness.model("sim-error-529", "failing"), harness.model("claude-sonnet", "anthropic"),
                               harness.model("gpt-4.1", "openai")]
        settings["identity"] = {"jwt": [self.issuer.settings()]}
        settings["mcp_servers"] = {"tickets": {"url": sim.url}}
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
        self.redis.ask("ACL", "SETUSER", "sluice", "on", ">the-old-one")
        self.issuer = jwt_issuer.Issuer(self)
        self.issuer.add("ES256")
        sim, gateway, request_id = self.start()
        server = prometheus.Prometheus(self, [gateway])
        harness.wait_for(lambda: server.values("sum(rate(sluice_requests_total[5m]))"), "Prometheus has looked twice")
        shared = self.environment(sim, gateway, server, request_id)
        for fence in here("sh"):
            text = fence.text.replace("http://127.0.0.1:8080", shared["SLUICE"])
            self.run_fence(fence, ["bash", "-euo", "pipefail", "-c", text], shared)
        for fence in here("python"):
            self.run_fence(fence, [sys.executable, "-c", fence.text], shared)
        self.assertGreater(len(here("sh")), 30)


if __name__ == "__main__":
    for program in ("prometheus", "redis-cli", "jq"):
        if shutil.which(program) is None:
            print(f"SKIPPED: {program} is not installed (Debian packages prometheus, redis-tools, jq)")
            sys.exit(77)
    harness.main()
