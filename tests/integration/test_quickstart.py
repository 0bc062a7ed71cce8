"""deploy/quickstart as a user runs it, in a copy of the tree: builds all but untrained, answers, cleans up; then what README.md does by hand. ctest: once timeout=720"""

import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import documents  # noqa: E402
import harness  # noqa: E402

NO_PYPI = {"PIP_INDEX_URL": "http://127.0.0.1:1/", "PIP_CONFIG_FILE": "/dev/null"}
BUILD_S = 480  # a cold build on two busy cores, which took 215 s on a slow host


class Quickstart(harness.Case):
    def copy(self, to):
        """Of what is tracked, as it is now."""
        names = subprocess.run(["git", "-C", harness.SOURCE, "ls-files", "-z"], capture_output=True,
                               check=False)
        if names.returncode != 0:
            self.skipTest("not a git checkout")
        for name in names.stdout.decode().split("\0")[:-1]:
            source, path = os.path.join(harness.SOURCE, name), os.path.join(to, name)
            if os.path.exists(source):  # it may be about to be removed
                os.makedirs(os.path.dirname(path), exist_ok=True)
                shutil.copy(source, path)

    def setUp(self):
        self.tree, self.scratch = self.directory(), self.directory()
        self.copy(self.tree)

    def as_a_user(self):
        """The beginning of a command in a user's environment: no keys of providers and no generator; with a compiler
        cache, if there is one, that knows the sources in another place."""
        absent = [name for name in os.environ if name.endswith("_API_KEY") or name.startswith(("CMAKE_", "SLUICE_"))]
        env = {"TMPDIR": self.scratch}
        if shutil.which("ccache"):
            env |= {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CCACHE_BASEDIR": self.tree, "CCACHE_NOHASHDIR": "1"}
            if os.path.realpath(shutil.which("cc") or "") == os.path.realpath(shutil.which("gcc") or "."):
                env["CC"] = "gcc"  # the same one, by the name that the cache knows it by from tests/run
        return ["env", f"--chdir={self.tree}", *(f"--unset={name}" for name in absent if name not in env),
                *(f"{name}={value}" for name, value in env.items())]

    def start(self, *arguments, **variables):
        process = harness.Process([*self.as_a_user(), *(f"{name}={value}" for name, value in variables.items()),
                                   os.path.join(self.tree, "deploy/quickstart"), *arguments])
        self.addCleanup(self.end, process)
        return process

    def untrained(self):
        """Training compiles the codec twice past the cache, as tests/run has done for its release build; `.ci/nightly bare`
        runs the quickstart with all that cmake does by default."""
        self.run_line("cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DSLUICE_TRAIN=OFF")

    @staticmethod
    def end(process):
        """By a signal that it can act on, so that what it started ends too."""
        if process.running:
            process.send(signal.SIGTERM)
        process.wait(BUILD_S)

    def test_it_shows_a_request_and_a_tool_loop_and_leaves_nothing_behind(self):
        before = set(os.listdir(self.tree))
        self.untrained()
        process = self.start(**NO_PYPI)
        self.assertEqual(process.wait(BUILD_S), 0, process.report())
        text = "\n".join(process.stdout)
        self.assertEqual(re.findall(r"^stopReason: (\w+)$", text, re.M), ["endTurn", "toolUse", "endTurn"], text)
        self.assertIn("The tools answered: 18 degrees and sunny", text)
        self.assertRegex(text, r'sluice_requests_total\{[^}]*tenant="quickstart"[^}]*\} 5')
        for api in ("/v1/messages", "/v1/chat/completions"):
            self.assertRegex(text, rf"\ncurl [^\n]*http://127\.0\.0\.1:\d+{api}' [^\n]*\n\{{[^\n]*This text was made up")
        self.assertIn("MCP: left out, for Python's mcp cannot be installed:", text)
        self.assertEqual(set(os.listdir(self.tree)) - before, {"build"})
        self.assertEqual(os.listdir(self.scratch), [])

        # Again, now that it is built, and with PyPI: it goes on until Ctrl-C, and what it says one may ask is answered.
        process = self.start("--serve")
        process.wait_line(lambda line: line.startswith("== Running"), "it serves", BUILD_S)
        process.wait_line(lambda line: line.startswith("  -H "), "the command to try")
        at = next(i for i, line in enumerate(process.stdout) if line.startswith("  -H "))
        command = "\n".join(process.stdout[at - 1:at + 1])
        answer = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
        self.assertIn('"stopReason":"toolUse"', answer)
        calls = [line for line in process.stdout if line.startswith("curl ") and "-d '{" in line]
        self.assertEqual(len(calls), 2)
        for command, member in zip(calls, ('"type":"message"', '"object":"chat.completion"')):
            self.assertIn(member, subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout)
        process.send(signal.SIGINT)
        self.assertEqual(process.wait(), 130, process.report())
        self.assertEqual(os.listdir(self.scratch), [])
        self.by_hand()
        self.mcp("\n".join(process.stdout))

    # ---- MCP servers -----------------------------------------------------------------------------

    def mcp(self, text):
        """What it has said with a server of its own, and what it says with another one."""
        if "MCP: left out" in text:
            got = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "1", "mcp",
                                  "--dest", self.directory()], capture_output=True, text=True, check=False)
            self.assertNotEqual(got.returncode, 0, f"PyPI can be had\n{text}")
            self.skipTest("PyPI cannot be had")
        self.assertIn("\nserver: demo\ntools: greet\ngreet: This text was made up", text)
        self.assertRegex(text, r'sluice_mcp_samplings_total\{server="demo",outcome="ok"\} 1')
        self.assertRegex(text, r"\nAn MCP client: http://127\.0\.0\.1:\d+/mcp/demo, with the header 'Authorization: Bearer sk-demo-")
        port = harness.free_port()
        server = harness.Process([os.path.join(self.tree, "build/quickstart-mcp/bin/python"),
                                  os.path.join(self.tree, "tests/interop/mcp_server.py"), str(port)])
        self.addCleanup(server.kill)
        harness.wait_listening(server, port)
        url = f"http://127.0.0.1:{port}/mcp"
        for said, answer in ((["ask", '{"words": "hello"}'], "\nask: .*This text was made up"), ([], "\ntools: .*ask.*\n\n== Some of")):
            process = self.start("--mcp", url, *said)
            self.assertEqual(process.wait(BUILD_S), 0, process.report())
            self.assertRegex("\n".join(process.stdout), answer)

    # ---- README.md, "By hand", in what is built by now -------------------------------------------

    def run_line(self, line, **variables):
        run = subprocess.run([*self.as_a_user(), *(f"{name}={value}" for name, value in variables.items()), "bash", "-c", line],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, f"{line}\n{run.stdout}{run.stderr}")
        return run.stdout

    def by_hand(self):
        build, make_key, check, serve = documents.fence("README.md", "cmake").text.splitlines()
        self.run_line(build)
        key, digest = re.findall(r"^(?:key|sha256): *(\S+)$", self.run_line(make_key), re.M)
        url = f"http://127.0.0.1:{harness.free_port()}"
        text = documents.fence("README.md", 'listen: [{address: "0.0.0.0:8080"}]\nadmin').text
        for shown, mine in (("…what sluice key printed…", digest), ("0.0.0.0:8080", url.removeprefix("http://")),
                            ("127.0.0.1:9090", f"127.0.0.1:{harness.free_port()}"), ("https://api.anthropic.com", self.sim().url)):
            self.assertEqual(text.count(shown), 1, shown)
            text = text.replace(shown, mine)
        with open(os.path.join(self.tree, "sluice.yaml"), "w", encoding="utf-8") as file:
            file.write(text)
        self.run_line(check, ANTHROPIC_API_KEY="sk-provider")
        gateway = harness.Process([*self.as_a_user(), "ANTHROPIC_API_KEY=sk-provider", "bash", "-c", "exec " + serve])
        self.addCleanup(self.end, gateway)
        harness.wait_for(lambda: any("serving, configuration" in line for line in gateway.stderr), "it serves")
        ask = documents.fence("README.md", "curl --http2-prior-knowledge").text
        self.assertIn('"stopReason":"endTurn"', self.run_line(ask.replace("http://127.0.0.1:8080", url), KEY=key))
        gateway.stop()


if __name__ == "__main__":
    harness.main()
