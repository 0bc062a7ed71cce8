#!/usr/bin/env python3
"""Claude Code without a terminal, in front of /v1/messages: what it does is what it does in front of the provider, and refusals end
it as they ought to. Everything runs where there is no network but loopback. `.ci/nightly claude_code` starts it.
"""
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("../support", "../interop"):
    sys.path.insert(0, os.path.join(HERE, folder))
import harness  # noqa: E402
import test_sdk  # noqa: E402
import told_answers  # noqa: E402
import told_provider  # noqa: E402

CLAUDE = os.path.join(HERE, "node_modules/.bin/claude")
MODEL = "claude-opus-5-5"
ALONE = "SLUICE_NO_NETWORK"  # set once there is only loopback
QUIET = {name: "1" for name in ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER",
                                "DISABLE_ERROR_REPORTING", "DISABLE_FEEDBACK_COMMAND")}
SIGNED = {"type": "thinking", "thinking": "A shell will know.", "signature": "c2lnbmVk" * 40}
MARK = "mark-7351"


def text(words):
    return [{"type": "text", "text": words}]


def answer(asked, content, stop_reason="end_turn", cut=None):
    """What the provider says; `cut`: after so many events the connection is gone."""
    whole = told_answers.message(asked["model"], content, stop_reason)
    if not asked.get("stream"):
        return 200, "application/json", [json.dumps(whole).encode()], True
    return 200, "text/event-stream", list(told_answers.message_events(whole))[:cut], cut is None


def fault(status, kind, words, **fields):
    body = {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_up"}
    return status, "application/json", [json.dumps(body).encode()], True, {name.replace("_", "-"): value for name, value in fields.items()}


def shape(path, headers, body):
    """Of a request, what must not differ between the two ways."""
    asked = json.loads(body)
    return {"path": path.split("?")[0], "betas": headers.get("anthropic-beta"), "version": headers.get("anthropic-version"), "members": list(asked),
            "roles": [one["role"] for one in asked["messages"]], "tools": [tool["name"] for tool in asked.get("tools", ())],
            "model": asked["model"], "stream": asked.get("stream"), "max_tokens": asked.get("max_tokens")}


class ClaudeCode(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.provider = told_provider.Provider()
        cls.addClassCleanup(cls.provider.stop)
        models = [harness.model(MODEL, "anthropic", context=1000000), harness.model("gpt-test", "openai", context=1000000)]
        settings = harness.config(cls.provider, models=models, retries={"attempts": 1})
        settings["providers"]["anthropic"]["keys"] = [f"{harness.PROVIDER_KEY}-{n}" for n in range(8)]  # a limit cools one of them
        standard = settings["plans"]["standard"]
        standard["models"]["default"] = MODEL
        standard["limits"]["max_tokens"] = 128000
        plans = {"poor": {"limits": {**standard["limits"], "usd_per_day": 0.0000001}}, "toolless": {"capabilities": {"tools": False}},
                 "slow": {"limits": {**standard["limits"], "requests_per_minute": 1, "requests_burst": 1, "tokens_per_minute": 1000,
                                     "tokens_burst": 10}}}
        for name, changes in plans.items():
            settings["plans"][name] = {**standard, **changes}
            settings["tenants"].append(harness.tenant(name, f"{harness.KEY}-{name}", plan=name))
        cls.front = harness.Gateway(settings)
        cls.addClassCleanup(cls.front.remove)
        cls.addClassCleanup(cls.front.stop)

    def claude(self, url, *args, key=harness.KEY, prompt="What does the shell say?", model=MODEL):
        """What it says at last."""
        home = self.directory()
        run = subprocess.run(
            [CLAUDE, "-p", prompt, "--output-format", "json", *args], cwd=home, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=harness.PATIENCE_S * 6, check=False,
            env={"PATH": os.environ["PATH"], "HOME": home, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_AUTH_TOKEN": key, "ANTHROPIC_MODEL": model,
                 "ANTHROPIC_DEFAULT_HAIKU_MODEL": model, **QUIET})
        try:
            return json.loads(run.stdout)
        except ValueError:
            self.fail(f"{run.returncode}\n{run.stdout}\n{run.stderr}")

    def both_ways(self, script, *args):
        """The end, and the bodies that the provider had, once they are the same directly. `script(n, asked)` is the n-th answer."""
        (directly, *_), (through, asked) = self.two_ends(script, *args)
        self.assertEqual(directly, through)
        return through[0], asked

    def two_ends(self, script, *args):
        """Directly and through the gateway: how it ended, of each request what must not differ; and the bodies."""
        ends = []
        for url in (self.provider.url, self.front.url):
            self.provider.forget()
            self.provider.otherwise = lambda path, headers, body: script(len(self.provider.seen), json.loads(body))
            end = self.claude(url, *args)
            ends.append((({name: end[name] for name in ("result", "is_error", "num_turns", "api_error_status")},
                          [shape(*one) for one in self.provider.seen]), [json.loads(body) for _, _, body in self.provider.seen]))
        for _, headers, _ in self.provider.seen:
            self.assertIn(harness.PROVIDER_KEY, headers["x-api-key"])
            self.assertNotIn("authorization", headers)
        return ends

    def test_a_question_is_answered(self):
        end, asked = self.both_ways(lambda n, asked: answer(asked, text("PONG")))
        self.assertEqual((end["result"], end["is_error"], len(asked)), ("PONG", False, 1))

    def test_a_tool_runs_and_signed_thinking_comes_back(self):
        call = {"type": "tool_use", "id": "toolu_01", "name": "Bash", "input": {"command": f"echo {MARK}", "description": "Says it"}}
        end, asked = self.both_ways(lambda n, asked: answer(asked, [SIGNED, call], "tool_use") if n == 1 else answer(asked, text("DONE")),
                                    "--allowedTools", "Bash")
        self.assertEqual((end["result"], len(asked)), ("DONE", 2))
        blocks = [block for one in asked[1]["messages"] if isinstance(one["content"], list) for block in one["content"]]
        self.assertIn(SIGNED, blocks)
        result, = (block for block in blocks if block["type"] == "tool_result")
        self.assertIn(MARK, json.dumps(result))

    def test_a_prompt_that_is_too_long_is_compacted(self):
        long = fault(400, "invalid_request_error", "prompt is too long: 1048577 tokens > 1000000 maximum")
        call = {"type": "tool_use", "id": "toolu_01", "name": "Bash", "input": {"command": f"echo {MARK}", "description": "Says it"}}

        def script(n, asked):
            if n == 1:
                return answer(asked, [call], "tool_use")
            return long if n == 2 else answer(asked, text("<summary>It was short.</summary>" if n == 3 else "DONE"))
        end, asked = self.both_ways(script, "--allowedTools", "Bash")
        self.assertEqual((end["result"], len(asked)), ("DONE", 4))
        self.assertIn("It was short.", json.dumps(asked[3]["messages"]))
        self.assertNotIn(MARK, json.dumps(asked[3]["messages"]))

    def test_a_provider_that_is_overloaded_is_asked_again(self):
        end, asked = self.both_ways(lambda n, asked: fault(529, "overloaded_error", "Overloaded", retry_after="1") if n == 1 else
                                    answer(asked, text("PONG")))
        self.assertEqual((end["result"], len(asked)), ("PONG", 2))

    def test_a_long_wait_is_not_waited_for(self):
        for (end, _), asked in self.two_ends(lambda n, asked: fault(429, "rate_limit_error", "Slow down", retry_after="61")):
            self.assertEqual((end["is_error"], end["api_error_status"], len(asked)), (True, 429, 1))
        self.assertIn("rate limit", end["result"])

    def test_a_stream_that_is_cut_is_no_answer(self):
        words = ("PING " * 40).strip()
        for (end, _), asked in self.two_ends(lambda n, asked: answer(asked, text(words), cut=8 if n == 1 else None)):
            self.assertEqual((end["result"], end["is_error"], len(asked)), (words, False, 2))
        self.assertFalse(asked[1].get("stream"))  # it has seen an event that says so, where directly it saw a connection end

    def test_it_counts_tokens(self):
        self.provider.forget()
        self.provider.otherwise = lambda path, headers, body: (200, "application/json", [b'{"input_tokens":4711}'], True)
        self.assertIn("| Messages | 4.7k |", self.claude(self.front.url, prompt="/context")["result"])
        self.assertEqual({path.split("?")[0] for path, _, _ in self.provider.seen}, {"/v1/messages/count_tokens"})

    def test_a_model_of_openais_api_runs_its_tools(self):
        def script(path, headers, body):
            asked = json.loads(body)
            call = {"id": "call_1", "type": "function", "function": {
                "name": "Bash", "arguments": json.dumps({"command": f"echo {MARK}", "description": "Says it"})}}
            whole = told_answers.completion("gpt-test", None, "tool_calls", tool_calls=[call]) if len(self.provider.seen) == 1 else \
                told_answers.completion("gpt-test", "DONE")
            self.assertTrue(asked["stream"])
            return 200, "text/event-stream", list(told_answers.chat_events(whole)), True
        self.provider.forget()
        self.provider.otherwise = script
        end = self.claude(self.front.url, "--allowedTools", "Bash", model="gpt-test")
        self.assertEqual((end["result"], end["is_error"], end["num_turns"]), ("DONE", False, 2))
        (path, headers, _), (_, _, body) = self.provider.seen
        self.assertEqual((path, headers["authorization"]), ("/v1/chat/completions", "Bearer " + harness.PROVIDER_KEY))
        result = json.loads(body)["messages"][-1]
        self.assertEqual(result["role"], "tool")
        self.assertIn(MARK, json.dumps(result))

    def test_a_key_that_nobody_has_ends_it(self):
        self.provider.forget()
        end = self.claude(self.front.url, key="sk-nobody")
        self.assertEqual((end["is_error"], end["api_error_status"], self.provider.seen), (True, 401, []))

    def refused(self, name, status, words):
        self.provider.forget()
        end = self.claude(self.front.url, key=f"{harness.KEY}-{name}")
        self.assertTrue(end["is_error"])
        self.assertEqual(end["api_error_status"], status)
        self.assertIn(words, end["result"])
        self.assertEqual(self.provider.seen, [])

    def test_a_spent_budget_ends_it(self):
        self.refused("poor", 402, "usd_per_day")

    def test_policy_ends_it_and_says_that_it_is_policy(self):
        self.refused("toolless", 403, "olicy")

    def test_more_than_the_limit_lets_through_at_once_ends_it(self):
        self.refused("slow", 413, "too large")


def install():
    """The package as the lock file says; ends with 77 where it is not to be had, or does not run."""
    try:
        test_sdk.packages(HERE)
        subprocess.run([CLAUDE, "--version"], check=True, stdout=subprocess.DEVNULL, env={**os.environ, **QUIET})
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"NOT RUN: there is no Claude Code: {error}")
        sys.exit(77)


def only_loopback():
    """Goes on in a network that has nothing but loopback."""
    if ALONE not in os.environ:
        install()
        alone = ["unshare", "--net", *(["--map-root-user"] if os.geteuid() else [])]
        if subprocess.run([*alone, "true"], check=False).returncode != 0:
            print("NOT RUN: there may be no network of its own here")
            sys.exit(77)
        os.environ[ALONE] = "1"
        os.execvp("unshare", [*alone, sys.executable, *sys.argv])
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 0x41))  # SIOCSIFFLAGS: IFF_UP, IFF_RUNNING


if __name__ == "__main__":
    only_loopback()
    harness.main()
