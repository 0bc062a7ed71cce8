"""Helpers for tests that run the real binaries. Standard library only, everything on 127.0.0.1.

    import os, sys
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
    import harness

    class Sampling(harness.Case):
        def test_a_prompt_is_answered(self):
            sim = self.sim()
            gateway = self.gateway(harness.config(sim))
            answer = gateway.sample("hello")
            self.assertEqual(answer.status, 200)

    if __name__ == "__main__":
        harness.main()

ctest sets SLUICE_BIN, SLUICE_SIM, SLUICE_SOURCE and SLUICE_SHARED; programs made from support/*.c lie
beside SLUICE_BIN. A test never sleeps: it waits for a condition with wait_for(), which fails the test
when the condition does not come true in time. Whatever a Case started is stopped and checked when
the test ends: exit code 0 and no sanitizer report, unless the test itself killed it.
"""

import copy
import errno
import hashlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

SOURCE = os.environ.get(
    "SLUICE_SOURCE", os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BIN = os.environ.get("SLUICE_BIN", os.path.join(SOURCE, "build", "sluice"))
SIM = os.environ.get("SLUICE_SIM", os.path.join(SOURCE, "build", "provider_sim"))
SHARED = os.environ.get("SLUICE_SHARED", os.path.join(SOURCE, "..", "shared"))

# Sanitized binaries on a busy machine; a condition that holds is noticed at once all the same.
PATIENCE_S = 60 if os.environ.get("SLUICE_SANITIZE") else 20

KEY = "sk-test-0123456789abcdef"  # the tenant key of config()
PROVIDER_KEY = "sk-provider-fedcba9876543210"


class Failure(AssertionError):
    """A condition that did not come true, or a process that misbehaved."""


def memory_kb(pid, row):
    """VmRSS, VmHWM or another row of a process's memory."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(row + r":\s+(\d+)", file.read())[1])


def wait_for(condition, what, timeout_s=None):
    """Polls `condition` until it returns something true, and returns that."""
    deadline = time.monotonic() + (PATIENCE_S if timeout_s is None else timeout_s)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure("waited in vain for: " + what)
        time.sleep(0.005)


_port_marks = []  # kept open: a name is its process's for as long as that lives


def free_port():
    """A port of 127.0.0.1 where nobody listens, which no outgoing connection is given, and no other call of any process."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        outgoing = int(file.read().split()[0])
    while True:
        port = random.randrange(10000, max(outgoing, 20000))
        mark = socket.socket(socket.AF_UNIX)
        try:
            mark.bind(f"\0sluice-test-port-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError as error:
            mark.close()
            if error.errno != errno.EADDRINUSE:
                raise
            continue
        _port_marks.append(mark)
        return port


def sha256(key):
    return hashlib.sha256(key.encode()).hexdigest()


# ---- processes ---------------------------------------------------------------------------------

PIPE_BYTES = 1 << 20  # what an unprivileged process may ask for: sluice drops log lines that find a full pipe


class Process:
    """A child with its output collected line by line; stopped by pid."""

    def __init__(self, argv, env=None):
        self.argv = argv
        self.stdout, self.stderr = [], []
        self.killed = False
        self._changed = threading.Condition()
        self.child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})}, text=True, errors="replace", pipesize=PIPE_BYTES)
        self._readers = [
            threading.Thread(target=self._collect, args=(self.child.stdout, self.stdout), daemon=True),
            threading.Thread(target=self._collect, args=(self.child.stderr, self.stderr), daemon=True)]
        for reader in self._readers:
            reader.start()

    def _collect(self, stream, lines):
        for line in stream:
            with self._changed:
                lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        stream.close()
        with self._changed:
            self._changed.notify_all()

    @property
    def pid(self):
        return self.child.pid

    @property
    def running(self):
        return self.child.poll() is None

    def wait_line(self, matches, what, timeout_s=None):
        """The first line on stdout, past or to come, for which `matches` is true."""
        deadline = time.monotonic() + (PATIENCE_S if timeout_s is None else timeout_s)
        seen = 0
        with self._changed:
            while True:
                while seen < len(self.stdout):
                    if matches(self.stdout[seen]):
                        return self.stdout[seen]
                    seen += 1
                left = deadline - time.monotonic()
                if left <= 0 or (not self.running and not self._readers[0].is_alive()):
                    raise Failure(f"no line: {what}\n{self.report()}")
                self._changed.wait(min(left, 0.1))

    def report(self):
        return "\n".join([" ".join(self.argv), f"exit code {self.child.poll()}",
                          "stdout, last lines:", *self.stdout[-20:], "stderr:", *self.stderr[-60:]])

    def send(self, number):
        os.kill(self.pid, number)

    def kill(self):
        """SIGKILL; what it leaves behind is the test's intention."""
        self.killed = True
        if self.running:
            self.send(signal.SIGKILL)
        self.wait()

    def wait(self, timeout_s=None):
        """The exit code, once it has ended and all its output is here."""
        try:
            code = self.child.wait(PATIENCE_S if timeout_s is None else timeout_s)
        except subprocess.TimeoutExpired:
            report = self.report()
            self.child.kill()
            self.child.wait()
            raise Failure("did not stop\n" + report) from None
        for reader in self._readers:
            reader.join(PATIENCE_S)
        return code

    def stop(self, number=signal.SIGTERM, code=0):
        """Ends it and checks how: exit code, and no report of a sanitizer or of must()."""
        if self.killed:
            return
        if self.running:
            self.send(number)
        got = self.wait()
        self.killed = True
        text = "\n".join(self.stderr)
        if got != code or re.search(r"Sanitizer|runtime error:|must\(", text):
            raise Failure(f"ended with {got}, wanted {code}\n{self.report()}")


class Sim(Process):
    """bench/provider_sim; `args` as on its command line."""

    def __init__(self, *args):
        self.tls = "--cert" in args
        super().__init__([SIM, *args])
        line = self.wait_line(lambda l: l.startswith("listening "), "provider_sim listens")
        self.port = int(line.split()[1])
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def _ask(self, method, path, body=None):
        answer = request(method, self.url + path, body, insecure=True)
        if answer.status != 200:
            raise Failure(f"{method} {path}: {answer.status} {answer.body!r}")
        return answer

    def stats(self):
        return self._ask("GET", "/stats").json()

    def last(self):
        """The last provider request: number, connection, position, method, path, headers, body, tls."""
        return self._ask("GET", "/last").json()

    def last_body(self):
        """Its body, byte for byte."""
        return self._ask("GET", "/last/body").body

    def reset(self):
        self._ask("POST", "/reset", b"")

    def default(self, words):
        """Behaviour from now on, e.g. "latency-20ms-error-529-first-1"; "" restores the start's."""
        self._ask("POST", "/default", words.encode())

    def wait_stats(self, condition, what):
        return wait_for(lambda: condition(self.stats()), f"{what}; stats are {self.stats()}")


class Gateway(Process):
    """`sluice serve` on `settings`, a dict like the YAML file; ready when this returns.

    Where listen and admin are absent they are added, on free ports. `directory` is its own and goes
    with it; `config_path` is the file in it. `binary` may be another that is made like sluice; one that
    starts slowly needs a larger `patience_s`."""

    def __init__(self, settings, env=None, wait_ready=True, binary=BIN, patience_s=None):
        self.directory = tempfile.mkdtemp(prefix="sluice-test-")
        self.config_path = os.path.join(self.directory, "sluice.json")
        settings = copy.deepcopy(settings)
        settings.setdefault("listen", [{"address": f"127.0.0.1:{free_port()}"}])
        settings.setdefault("admin", {"address": f"127.0.0.1:{free_port()}"})
        self.settings = settings
        self.url = "http://" + settings["listen"][0]["address"]
        self.admin = "http://" + settings["admin"]["address"]
        self.write_config(settings)
        super().__init__([binary, "serve", "--config", self.config_path], env)
        if wait_ready:
            try:
                self.wait_ready(patience_s)
            except BaseException:
                self.kill()
                self.remove()
                raise

    def write_config(self, settings):
        """Replaces the file at once, as an editor or Kubernetes would."""
        fresh = self.config_path + ".new"
        with open(fresh, "w", encoding="utf-8") as file:
            json.dump(settings, file, indent=1)
        os.replace(fresh, self.config_path)

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)

    def ready(self):
        try:
            return request("GET", self.admin + "/readyz", timeout_s=5).status == 200
        except OSError:
            return False

    def wait_ready(self, timeout_s=None):
        def condition():
            if not self.running:
                self.wait()
                raise Failure("ended before it was ready\n" + self.report())
            return self.ready()
        try:
            wait_for(condition, "readyz", timeout_s)
        except Failure as failure:
            raise Failure(f"{failure}\n{self.report()}") from None

    def post(self, message, headers=None, key=KEY, http2=False, timeout_s=None, path="/v1/sampling"):
        """One JSON-RPC message (a dict, or raw bytes) to the sampling endpoint."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        fields = {"Content-Type": "application/json"}
        if key is not None:
            fields["Authorization"] = "Bearer " + key
        fields.update(headers or {})
        send = request_h2 if http2 else request
        return send("POST", self.url + path, body, fields, timeout_s)

    def sample(self, text="hello", headers=None, key=KEY, http2=False, id=1, timeout_s=None, **params):
        """sampling/createMessage with one user message; `params` replace or add members."""
        message = {"jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
            "maxTokens": 100, **params}}
        return self.post(message, headers, key, http2, timeout_s)

    def get(self, path, method="GET"):
        """Of the admin address."""
        return request(method, self.admin + path)

    def reload(self):
        return request("POST", self.admin + "/reload", b"")

    def server_pid(self):
        """The server process, a child of the supervisor; 0 while there is none."""
        with open(f"/proc/{self.pid}/task/{self.pid}/children", encoding="ascii") as file:
            pids = file.read().split()
        return int(pids[0]) if pids else 0

    def metrics_after(self, requests):
        """The metrics when that many requests are counted, which they are after their answer."""
        found = []

        def counted():
            found[:] = [self.metrics()]
            return found[0].sum("sluice_requests_total") >= requests
        wait_for(counted, f"{requests} requests in the metrics")
        return found[0]

    def wait_stderr(self, text, count=1, timeout_s=None):
        """The `count`-th line on stderr, past or to come, that has `text` in it."""
        def lines():
            return [line for line in list(self.stderr) if text in line]
        try:
            return wait_for(lambda: len(lines()) >= count and lines()[count - 1], f"{text!r} on stderr",
                            timeout_s)
        except Failure as failure:
            raise Failure(f"{failure}\n{self.report()}") from None

    def metrics(self):
        return Metrics(request("GET", self.admin + "/metrics").body.decode())

    def log(self, request_id, timeout_s=None):
        """The log line of that Sluice-Request-Id, as a dict."""
        def matches(line):
            return request_id in line and line.startswith("{")
        return json.loads(self.wait_line(matches, f"log of {request_id}", timeout_s))


def config(sim, **changes):
    """A whole configuration: one provider and one model of each dialect at `sim`, one plan, one tenant.

    Top-level keys in `changes` replace those here. Model names that the provider sees are the ids, so
    that a test can name a behaviour: models=[model("sim-error-529", "anthropic")]."""
    settings = {
        "workers": 1,
        "drain": "1s",  # a tenth of it passes at every stop
        "store": {"kind": "memory"},
        "providers": {
            "anthropic": provider(sim, "anthropic"),
            "openai": provider(sim, "openai"),
        },
        "models": [model("claude-test", "anthropic"), model("gpt-test", "openai")],
        "plans": {"standard": {
            "capabilities": {"tools": True, "images": True},
            "models": {"allow": ["*"], "default": "claude-test"},
            # more than a test's callers ask on an idle machine: 60,000 a minute were reached
            "limits": {"requests_per_minute": 6000000, "requests_burst": 100000,
                       "tokens_per_minute": 1000000000, "tokens_burst": 1000000000,
                       "concurrent": 256, "max_tokens": 4096, "usd_per_day": 1000},
        }},
        "tenants": [{"id": "acme", "plan": "standard",
                     "keys": [{"sha256": sha256(KEY), "server": "test-server"}]}],
    }
    settings.update(changes)
    return settings


def tenant(id, key, **changes):
    return {"id": id, "plan": "standard", "keys": [{"sha256": sha256(key)}], **changes}


def provider(sim, dialect, **changes):
    url = sim.url + ("/v1" if dialect.startswith("openai") else "")
    return {"dialect": dialect, "endpoints": [{"url": url}], "keys": [PROVIDER_KEY], **changes}


def model(id, provider_name, **changes):
    return {"id": id, "provider": provider_name, "name": id, "context": 200000,
            "price": {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75},
            "speed": 0.5, "intelligence": 0.5, **changes}


# ---- HTTP --------------------------------------------------------------------------------------

class Answer:
    """status, headers (names in lower case; of a repeated one the last), body (bytes), elapsed_s."""

    def __init__(self, status, headers, body, elapsed_s):
        self.status, self.headers, self.body, self.elapsed_s = status, headers, body, elapsed_s

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError:
            raise Failure(f"{self.status}, not JSON: {self.body[:500]!r}") from None

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


def _connection(url, timeout_s, insecure):
    parts = urllib.parse.urlsplit(url)
    timeout_s = PATIENCE_S if timeout_s is None else timeout_s
    if parts.scheme == "https":
        import ssl
        context = ssl._create_unverified_context() if insecure else ssl.create_default_context()
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout_s, context=context)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)


def wait_listening(process, port):
    """Until somebody listens at that port of 127.0.0.1, while the process runs."""
    def listens():
        if not process.running:
            raise Failure(f"ended before it listened\n{process.report()}")
        with socket.socket() as peer:
            return peer.connect_ex(("127.0.0.1", port)) == 0
    wait_for(listens, "it listens")


def request(method, url, body=None, headers=None, timeout_s=None, insecure=False):
    """One HTTP/1.1 request on its own connection."""
    parts = urllib.parse.urlsplit(url)
    path = (parts.path or "/") + ("?" + parts.query if parts.query else "")
    started = time.monotonic()
    connection = _connection(url, timeout_s, insecure)
    try:
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        content = reply.read()
        fields = {name.lower(): value for name, value in reply.getheaders()}
        return Answer(reply.status, fields, content, time.monotonic() - started)
    finally:
        connection.close()


def request_h2(method, url, body=None, headers=None, timeout_s=None):
    """One HTTP/2 request with prior knowledge, by curl."""
    with tempfile.TemporaryDirectory(prefix="sluice-curl-") as directory:
        head, content = os.path.join(directory, "head"), os.path.join(directory, "body")
        argv = ["curl", "-sS", "--http2-prior-knowledge", "-X", method, "-D", head, "-o", content,
                "-w", "%{http_version} %{http_code}", "--max-time",
                str(PATIENCE_S if timeout_s is None else timeout_s)]
        for name, value in (headers or {}).items():
            argv += ["-H", f"{name}: {value}"]
        if body is not None:
            argv += ["--data-binary", "@-"]
        started = time.monotonic()
        run = subprocess.run(argv + [url], input=body, capture_output=True, check=False)
        elapsed_s = time.monotonic() - started
        if run.returncode != 0:
            raise Failure(f"curl {run.returncode}: {run.stderr.decode(errors='replace').strip()}")
        version, status = run.stdout.decode().split()
        if version != "2":
            raise Failure(f"spoke HTTP/{version}, not HTTP/2")
        with open(head, encoding="latin-1", newline="") as file:
            lines = file.read().split("\r\n")[1:]
        fields = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if colon:
                fields[name.strip().lower()] = value.strip()
        data = b""
        if os.path.exists(content):
            with open(content, "rb") as file:
                data = file.read()
        return Answer(int(status), fields, data, elapsed_s)


def raw(url, data, timeout_s=None, half_close=False):
    """Sends `data` over a bare connection and returns all that comes until the peer closes."""
    parts = urllib.parse.urlsplit(url)
    timeout_s = PATIENCE_S if timeout_s is None else timeout_s
    with socket.create_connection((parts.hostname, parts.port), timeout_s) as peer:
        peer.sendall(data)
        if half_close:
            peer.shutdown(socket.SHUT_WR)
        pieces = []
        while True:
            piece = peer.recv(65536)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)


class Load:
    """Threads that send one sampling request after the other, each on a connection of its own.
    `results`: (when it began, when it ended, status or what went wrong)."""

    def __init__(self, gateway, threads=8, **options):
        self.gateway, self.options, self.results, self.going = gateway, options, [], True
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._run) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def _run(self):
        while self.going:
            started = time.monotonic()
            try:
                outcome = self.gateway.sample("hello", **self.options).status
            except (OSError, http.client.HTTPException) as error:  # the connection ended too early
                outcome = error
            with self.lock:
                self.results.append((started, time.monotonic(), outcome))

    def snapshot(self):
        with self.lock:
            return list(self.results)

    def wait(self, count, since=0.0):
        """Until that many requests that began after `since` are answered well."""
        return wait_for(
            lambda: len([r for r in self.snapshot() if r[0] >= since and r[2] == 200]) >= count,
            f"{count} answers; got {self.snapshot()[-5:]}")

    def stop(self):
        self.going = False
        for thread in self.threads:
            thread.join()
        return self.results


# ---- metrics -----------------------------------------------------------------------------------

class Metrics:
    """Prometheus text, parsed; a line that breaks the format fails the test."""

    LINE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)(?: -?\d+)?$")
    LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')

    def __init__(self, text):
        self.text = text
        self.samples = []
        for line in text.splitlines():
            if not line or line.startswith("#"):
                continue
            match = self.LINE.match(line)
            if match is None:
                raise Failure("not a sample: " + line)
            self.samples.append((match[1], self._labels(match[2] or "", line), float(match[3])))

    def _labels(self, text, line):
        labels, at = {}, 0
        while at < len(text):
            match = self.LABEL.match(text, at)
            if match is None:
                raise Failure("bad labels: " + line)
            labels[match[1]] = re.sub(r'\\(["\\n])', lambda m: "\n" if m[1] == "n" else m[1], match[2])
            at = match.end()
        return labels

    def find(self, name, **labels):
        """Values of all series of that name whose labels include `labels`."""
        return [value for sample, has, value in self.samples
                if sample == name and all(has.get(key) == want for key, want in labels.items())]

    def sum(self, name, **labels):
        """Their sum; 0 where there is none yet."""
        return sum(self.find(name, **labels))


# ---- test cases --------------------------------------------------------------------------------

class Case(unittest.TestCase):
    """Starts processes that end with the test."""

    maxDiff = None

    def sim(self, *args):
        process = Sim(*args)
        self.addCleanup(process.stop)
        return process

    def gateway(self, settings, **options):
        process = Gateway(settings, **options)
        self.addCleanup(process.remove)
        self.addCleanup(process.stop)
        return process

    def directory(self):
        path = tempfile.mkdtemp(prefix="sluice-test-")
        self.addCleanup(shutil.rmtree, path, ignore_errors=True)
        return path

    def with_hosts(self, hosts, text="127.0.0.1 localhost\n"):
        """A program that runs the gateway where that file, which has this text first, is /etc/hosts."""
        with open(hosts, "w", encoding="ascii") as file:
            file.write(text)
        if subprocess.run(["unshare", "-m", "mount", "--bind", hosts, "/etc/hosts"], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest("may not mount in a namespace of its own")
        program = os.path.join(self.directory(), "sluice")
        with open(program, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexec unshare -m sh -c 'mount --bind \"$0\" /etc/hosts && exec \"$@\"' "
                       f"{hosts} {BIN} \"$@\"\n")
        os.chmod(program, 0o755)
        return program

    def silent(self, port, backlog=0):
        """127.0.0.2 does not answer at that port. With a backlog it lets connect, and then says nothing."""
        peers = [socket.create_server(("127.0.0.2", port), backlog=backlog)]
        while backlog == 0 and len(peers) < 4:  # one fills it, and who comes later is not answered
            peers.append(socket.socket())
            peers[-1].setblocking(False)
            peers[-1].connect_ex(("127.0.0.2", port))
        for peer in peers:
            self.addCleanup(peer.close)

    def background(self, call):
        """Runs `call` beside the test: a list that gets its answer, and the thread, to join."""
        answers = []
        thread = threading.Thread(target=lambda: answers.append(call()))
        thread.start()
        self.addCleanup(thread.join)
        return answers, thread

    def certificate(self, name="localhost", names=("DNS:localhost", "IP:127.0.0.1")):
        """A self-signed certificate, which is its own CA: paths of (cert, key)."""
        directory = self.directory()
        cert, key = os.path.join(directory, "cert.pem"), os.path.join(directory, "key.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
             "-nodes", "-days", "2", "-subj", "/CN=" + name, "-addext",
             "subjectAltName=" + ",".join(names), "-keyout", key, "-out", cert],
            check=True, capture_output=True)
        return cert, key

    def assert_error(self, answer, status, code=None, reason=None):
        """`answer` is a JSON-RPC error with that status, code and data.reason; returns the error."""
        self.assertEqual(answer.status, status, answer)
        error = answer.json().get("error")
        self.assertIsInstance(error, dict, answer)
        if code is not None:
            self.assertEqual(error["code"], code, error)
        if reason is not None:
            self.assertEqual(error.get("data", {}).get("reason"), reason, error)
        return error

    def assert_result(self, answer, stop_reason=None):
        """`answer` is a successful JSON-RPC answer; returns the result."""
        self.assertEqual(answer.status, 200, answer)
        message = answer.json()
        self.assertIn("result", message, answer)
        if stop_reason is not None:
            self.assertEqual(message["result"].get("stopReason"), stop_reason, message)
        return message["result"]


def text_of(result):
    """The text of a createMessage result, whatever its revision."""
    content = result["content"]
    blocks = content if isinstance(content, list) else [content]
    return "".join(block.get("text", "") for block in blocks if block["type"] == "text")


def main():
    unittest.main(module=sys.modules["__main__"], verbosity=2)
