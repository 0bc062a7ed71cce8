"""For tests of official SDKs in front of the direct APIs: one gateway, one provider that is told what to say, and the SDKs, each a
process that does one thing after the other."""

import functools
import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
import harness  # noqa: E402
import told_provider  # noqa: E402
import test_sdk  # noqa: E402
import test_wrap  # noqa: E402

# With SLUICE_LONG the blocking and the other client of Python do everything; else the latter does what is its own.
LONG = "SLUICE_LONG" in os.environ
APIS = ("messages", "chat")
MODELS = {"messages": "claude-test", "chat": "gpt-test"}
NOWHERE = "http://127.0.0.1:9"  # for a proxy: nothing leaves this machine


class Client:
    """The SDKs of a language at work."""

    def __init__(self, name, argv):
        self.name, self.replies, self.stderr = name, queue.Queue(), []
        quiet = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={
            **quiet, "HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "NO_PROXY": "127.0.0.1"})
        self.readers = [threading.Thread(target=self._read, args=way, daemon=True)
                        for way in ((self.child.stdout, self.replies.put), (self.child.stderr, self.stderr.append))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def _read(stream, into):
        for line in stream:
            into(line)
        stream.close()

    def tell(self, line=""):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def hear(self):
        try:
            return json.loads(self.replies.get(timeout=harness.PATIENCE_S))
        except queue.Empty:
            raise harness.Failure(f"{self.name} says nothing\n{''.join(self.stderr)}") from None

    def stop(self):
        self.child.stdin.close()
        code = self.child.wait(harness.PATIENCE_S)
        for reader in self.readers:
            reader.join(harness.PATIENCE_S)
        if code != 0:
            raise harness.Failure(f"{self.name} ended with {code}\n{''.join(self.stderr)}")


@functools.cache
def clients():
    """One for each language that there is, for as long as the module's tests run."""
    made = {"node": Client("node", [test_sdk.packages(), os.path.join(HERE, "direct_client.mjs")])}
    python = test_wrap.python()
    if python is None:
        print("NOT RUN: the SDKs of Python, which has no venv here", flush=True)
    else:
        made["python"] = Client("python", [python, os.path.join(HERE, "direct_client.py")])
    for client in made.values():
        unittest.addModuleCleanup(client.stop)
    return made


class Case(harness.Case):
    """`self.each()` are the SDKs; a class may have settings of its own in `changes`."""

    FRESH = 60  # models of each API that are good for one fault: a fault cools keys and opens breakers
    changes: dict = {}

    @classmethod
    def setUpClass(cls):
        cls.clients = clients()
        cls.provider = told_provider.Provider()
        cls.addClassCleanup(cls.provider.stop)
        cls.front = harness.Gateway(cls.settings(harness.config(cls.provider, retries={"attempts": 1}, drain="100ms", **cls.changes)))
        cls.addClassCleanup(cls.front.remove)
        cls.addClassCleanup(cls.front.stop)
        cls.fresh = {api: map((model + "-{}").format, itertools.count()) for api, model in MODELS.items()}

    @classmethod
    def settings(cls, settings):
        for model in settings["models"]:
            model["profile"] = {"image": True}
        for dialect, model in (("anthropic", "claude-test"), ("openai", "gpt-test")):
            for n in range(cls.FRESH):
                name = f"{dialect}-{n}"
                settings["providers"][name] = harness.provider(cls.provider, dialect)
                settings["models"].append(harness.model(f"{model}-{n}", name))
        return settings

    def setUp(self):
        self.provider.forget()
        self.provider.otherwise = None

    def each(self, kinds=None):
        """(name, ask) of each SDK, as a subtest: ask(api, do, params, **more) has its answer or raises what the SDK did."""
        if kinds is None:
            kinds = ("python", "node", "async") if LONG else ("python", "node")
        for kind in kinds:
            client = self.clients.get("python" if kind == "async" else kind)
            if client is not None:
                yield kind, Asking(self, client, "async" if kind == "async" else "plain")

    def body(self, at=-1):
        """What the provider was asked."""
        return json.loads(self.provider.seen[at][2])

    def log(self, request_id):
        return self.front.log(request_id)


class Asking:
    def __init__(self, case, client, kind):
        self.case, self.client, self.kind = case, client, kind

    def tell(self, api, do, params, url=None, key=harness.KEY, **more):
        bound = {"max_tokens": 99} if api == "messages" and do not in ("count", "models", "model") else {}
        if do not in ("models", "model"):
            params = {"model": MODELS[api], **bound, "messages": [{"role": "user", "content": "Hello"}], **params}
        self.client.tell(json.dumps({"api": api, "do": do, "kind": self.kind, "params": params, "url": url or self.case.front.url,
                                     "key": key, **more}))

    def reply(self, api, do, params=None, **more):
        """{"value"} or {"raised", "seen"}."""
        self.tell(api, do, params or {}, **more)
        return self.client.hear()

    def __call__(self, api, do, params=None, **more):
        reply = self.reply(api, do, params, **more)
        self.case.assertIn("value", reply, (self.client.name, api, do))
        return reply["value"]

    def fails(self, api, do="create", params=None, **more):
        reply = self.reply(api, do, params, **more)
        self.case.assertIn("raised", reply, (self.client.name, api, do))
        return reply["raised"]
