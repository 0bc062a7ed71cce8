"""The gateway, and what it is compared with: plain proxies of the same bytes, Portkey, and the handler users run today.

A Bed has one simulated provider; servers are started in front of it when they are first asked for. Each is on one CPU
with one worker, without an access log; provider, callers and Redis are on the other. What goes through the proxies is
byte for byte what the gateway sent to the provider. nginx has room for the largest body: what does not fit goes through a
file, which costs as much again and waits some 40 ms (a timer of TCP's by its length, tcp_nodelay or not).
"""

import collections
import contextlib
import json
import os
import subprocess

import harness
import redis_server
from suite import BENCH, stats, work
from suite.machine import GATEWAY_CPU, LOAD_CPU, cpu_s, pinned

YARDSTICKS = os.path.join(BENCH, "yardsticks")
NODE = os.path.join(YARDSTICKS, "node_modules/.bin/node")
STORE_DEADLINE = "10s"  # a busy machine keeps it, so that every request takes its round trip
ADDRESSES = 4  # of the provider, where thousands of connections to it need as many ports
CURL = {"h2c": ["--http2-prior-knowledge"], "h1": ["--http1.1"], "tls": ["--http2", "-k"]}

NGINX = """daemon off; user root; worker_processes 1; error_log stderr warn; pid {directory}/pid;
worker_rlimit_nofile 20000;
events {{ worker_connections 20000; }}
http {{
  access_log off; client_body_buffer_size 2m; client_max_body_size 64m; keepalive_requests 1000000000;
  client_body_temp_path {directory}/a; proxy_temp_path {directory}/b; fastcgi_temp_path {directory}/c;
  uwsgi_temp_path {directory}/d; scgi_temp_path {directory}/e;
  http2_max_concurrent_streams 1000;
  upstream provider {{ {upstreams} keepalive 16384; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} {listen}; {certificate}
    location / {{ proxy_pass {scheme}://provider; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_read_timeout 600s; {buffering} }}
  }}
}}
"""

HAPROXY = """global
  nbthread 1
  maxconn 9900
  tune.h2.max-concurrent-streams 1000
  ssl-server-verify none
defaults
  mode http
  http-reuse always
  timeout connect 60s
  timeout client 600s
  timeout server 600s
frontend callers
  bind 127.0.0.1:{port} {bind}
  default_backend provider
backend provider
{upstreams}
"""


class Server:
    """`url`, `body` and `fields` are how it is asked, which each kind sets; `pid` is what its CPU is counted of."""

    fronts = ("h2c", "h1", "tls")  # that it can be asked by

    def __init__(self, bed):
        self.bed, self.front = bed, bed.front
        self.port = harness.free_port()
        self.scheme = "https" if bed.front == "tls" else "http"
        self.fields = {"content-type": "application/json"}
        self.body = b""

    def ask(self):
        """One request by curl: status and body."""
        argv = ["curl", "-sS", *CURL[self.front], "-o", "-", "-w", "\n%{http_code}", "--data-binary", "@-"]
        for field in self.fields.items():
            argv += ["-H", ": ".join(field)]
        run = subprocess.run([*argv, self.url], input=self.body, capture_output=True, check=False)
        body, _, status = run.stdout.rpartition(b"\n")
        return int(status or 0), body, run.stderr.decode()

    def wait_answer(self):
        """Until it answers well; fails with what it said last."""
        seen = []

        def answered():
            seen[:] = [self.ask()]
            return seen[0][0] == 200
        try:
            harness.wait_for(answered, "an answer")
        except harness.Failure:
            raise harness.Failure(f"{self.name} answers {seen[0]}\n{self.complaint()}") from None
        self.answer = seen[0][1]

    def cpu_s(self):
        return cpu_s(self.pid)

    def forget(self):
        """Before each measurement."""

    def all_ok(self, name, asked):
        """Around requests whose failure need not be seen in their status. A proxy hands on what the provider says."""
        return contextlib.nullcontext()

    def complaint(self):
        """What it said that may explain a failure."""
        return ""


def outcomes(metrics):
    """How many requests ended how, of all tenants."""
    found = collections.Counter()
    for name, labels, value in metrics.samples:
        if name == "sluice_requests_total":
            found[labels["outcome"]] += value
    return found


class Gateway(Server):
    """`sluice serve`; its log goes to a file, which costs it what a pipe would and nobody else anything."""

    name = "sluice"

    def __init__(self, bed, store=None, name=None, **changes):
        super().__init__(bed)
        self.name = name or self.name
        self.log = os.path.join(bed.directory, self.name + ".log")
        wrapper = os.path.join(bed.directory, self.name)
        with open(wrapper, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {harness.BIN} "$@" >>{self.log}\n')
        os.chmod(wrapper, 0o755)
        listen = {"address": f"127.0.0.1:{self.port}"}
        if bed.front == "tls":
            listen["tls"] = dict(zip(("cert", "key"), bed.certificate))
        settings = self.settings({"listen": [listen], "store": store or {"kind": "memory"}, **changes})
        self.process = pinned(GATEWAY_CPU, lambda: bed.case.gateway(settings, binary=wrapper))
        if bed.spread:
            self.process.settings["providers"]["anthropic"]["endpoints"] = [
                {"url": bed.sim.url.replace("127.0.0.1", f"127.0.0.{n + 1}")} for n in range(ADDRESSES)]
            self.process.write_config(self.process.settings)
            if self.process.reload().status != 200:
                raise harness.Failure("the gateway refuses four addresses\n" + self.process.report())
        self.pid, self.body = self.process.pid, bed.body
        self.fields["authorization"] = "Bearer " + harness.KEY
        self.aim()
        self.wait_answer()

    def settings(self, changes):
        return work.settings(self.bed.sim.url, self.bed.tenants, self.bed.models, self.bed.ca, **changes)

    def aim(self):
        """Where and how it is asked."""
        self.url = f"{self.scheme}://127.0.0.1:{self.port}/v1/sampling"
        if self.bed.streaming:
            self.fields["accept"] = "application/json, text/event-stream"

    def forget(self):
        os.truncate(self.log, 0)

    @contextlib.contextmanager
    def all_ok(self, name, asked):
        """An event stream that fails says so in its last event, behind a 200: what the gateway counts has to agree."""
        before = outcomes(self.process.metrics())
        yield
        after = outcomes(self.process.metrics_after(sum(before.values()) + asked))
        stats.require_ok(f"{name}, {self.name}", before, after, asked)

    def complaint(self):
        refused = [line for line in self.process.metrics().text.splitlines()
                   if line.startswith(("sluice_requests_total", "sluice_provider_attempts_total"))]
        return "\n".join(self.process.stderr[-5:] + refused)


class SharedGateway(Gateway):
    """The same with its limits in Redis."""

    name = "sluice-redis"

    def __init__(self, bed):
        super().__init__(bed, {"kind": "redis", "url": bed.redis.url, "deadline": STORE_DEADLINE})
        harness.wait_for(lambda: self.process.metrics().sum("sluice_limiter_mode", mode="shared"), "Redis in use")


class Plain(Server):
    """A proxy, or something like one; it is sent what the provider would be sent."""

    def __init__(self, bed):
        super().__init__(bed)
        self.directory = bed.case.directory()
        sent = bed.provider_request
        self.url, self.body = f"{self.scheme}://127.0.0.1:{self.port}{sent['path']}", sent["body"]
        self.fields.update({name: sent["headers"][name] for name in bed.passed})
        self.start()
        self.wait_answer()

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run(self, argv, env=None):
        """A child that ends with the bed."""
        self.errors = os.path.join(self.directory, "stderr")
        with open(self.errors, "w", encoding="utf-8") as file:
            child = pinned(GATEWAY_CPU, lambda: subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file, env={**os.environ, **(env or {})}))
        self.pid = child.pid

        def end():
            child.terminate()
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self.bed.case.addCleanup(end)

    def complaint(self):
        with open(self.errors, encoding="utf-8", errors="replace") as file:
            return file.read()[-1000:]

    def pem(self):
        """Certificate and key in one file."""
        parts = []
        for path in self.bed.certificate:
            with open(path, encoding="ascii") as file:
                parts.append(file.read())
        return self.write("both.pem", "".join(parts))

    def addresses(self):
        return [f"127.0.0.{n + 1}:{self.bed.sim.port}" for n in range(ADDRESSES if self.bed.spread else 1)]


class Direct(Plain):
    """The provider itself: what callers and provider take without anything between them. HTTP/1.1, which is all it has."""

    name = "direct"

    def start(self):
        self.front = "h1"
        self.url, self.pid = self.bed.sim.url + self.bed.provider_request["path"], self.bed.sim.pid

    def complaint(self):
        return ""


class Nginx(Plain):
    name = "nginx"

    def start(self):
        front = {"h2c": "http2", "h1": "", "tls": "ssl http2"}[self.front]
        certificate = "ssl_certificate {}; ssl_certificate_key {};".format(*self.bed.certificate)
        self.run(["nginx", "-p", self.directory, "-c", self.write("nginx.conf", NGINX.format(
            directory=self.directory, port=self.port, listen=front, scheme="https" if self.bed.provider_tls else "http",
            certificate=certificate if self.front == "tls" else "",
            buffering="proxy_buffering off;" if self.bed.streaming else "",
            upstreams=" ".join(f"server {address};" for address in self.addresses())))])


class Haproxy(Plain):
    name = "haproxy"

    def start(self):
        bind = f"ssl crt {self.pem()} alpn h2" if self.front == "tls" else {"h2c": "proto h2", "h1": ""}[self.front]
        tls = " ssl verify none" if self.bed.provider_tls else ""
        upstreams = "\n".join(f"  server p{n} {address}{tls}" for n, address in enumerate(self.addresses()))
        self.run(["haproxy", "-db", "-f", self.write("haproxy.cfg", HAPROXY.format(
            port=self.port, bind=bind, upstreams=upstreams))])


class H2o(Plain):
    """Debian's h2o server, of the same library as the gateway."""

    name = "h2o"

    def start(self):
        listen = {"host": "127.0.0.1", "port": self.port}
        if self.front == "tls":
            listen["ssl"] = dict(zip(("certificate-file", "key-file"), self.bed.certificate))
        provider = f"{'https' if self.bed.provider_tls else 'http'}://127.0.0.1:{self.bed.sim.port}/"
        settings = {"user": "root", "num-threads": 1, "max-connections": 9000, "listen": listen,
                    "limit-request-body": 67108864, "http2-max-concurrent-requests-per-connection": 256,
                    "proxy.timeout.keepalive": 60000, "proxy.timeout.io": 600000, "proxy.ssl.verify-peer": "OFF",
                    "hosts": {"default": {"paths": {"/": {"proxy.reverse.url": provider}}}}}
        self.run(["h2o", "-c", self.write("h2o.json", json.dumps(settings))])


class Portkey(Plain):
    name = "portkey"
    fronts = ("h1",)

    def start(self):
        self.fields.update({"x-portkey-provider": "anthropic", "x-portkey-custom-host": self.bed.sim.url + "/v1",
                            "authorization": "Bearer " + harness.PROVIDER_KEY})
        script = os.path.join(YARDSTICKS, "node_modules/@portkey-ai/gateway/build/start-server.js")
        self.run([NODE, script, "--headless", f"--port={self.port}"], {"PORT": str(self.port)})


class SdkHandler(Plain):
    """The official TypeScript SDK with a handler that calls the provider itself; asked as the gateway is."""

    name = "sdk"
    fronts = ("h1",)

    def start(self):
        self.body = self.bed.body
        self.run([NODE, os.path.join(YARDSTICKS, "sdk_handler.mjs"), str(self.port), self.bed.sim.url,
                  harness.PROVIDER_KEY])


KINDS = {kind.name: kind for kind in (Gateway, SharedGateway, Direct, Nginx, Haproxy, H2o, Portkey, SdkHandler)}


class Bed:
    """A provider and the servers in front of it; `end` stops them all."""

    kinds = KINDS
    passed = ("x-api-key", "anthropic-version")  # headers that the provider gets, which proxies are sent, too

    def __init__(self, front="h2c", provider_tls=False, provider="", size=2048, answer=work.ANSWER_TEXT, tenants=1,
                 models=1, spread=False, streaming=False, body=None):
        """`provider`: words of the simulator; `spread`: it has several addresses; `streaming`: answers are streams."""
        self.front, self.provider_tls, self.tenants, self.models = front, provider_tls, tenants, models
        self.spread, self.streaming = spread, streaming
        self.body = work.sampling(size) if body is None else body
        self.case = harness.Case()
        self.servers = {}
        self._redis = None
        try:
            self.directory = self.case.directory()
            self.certificate = self.case.certificate() if provider_tls or front == "tls" else (None, None)
            self.ca = self.certificate[0] if provider_tls else None
            words = f"size-{answer}" + (f"-{provider}" if provider else "")
            options = ["--default", words, "--address", "0.0.0.0" if spread else "127.0.0.1"]
            if provider_tls:
                options += ["--cert", self.certificate[0], "--key", self.certificate[1]]
            self.sim = pinned(LOAD_CPU, lambda: self.case.sim(*options))
            self.server("sluice")
            self.provider_request = {**self.sim.last(), "body": self.sim.last_body()}
        except BaseException:
            self.end()
            raise

    @property
    def redis(self):
        if self._redis is None:
            self._redis = pinned(LOAD_CPU, lambda: redis_server.Redis(self.case))
        return self._redis

    def server(self, name):
        """The running one of that kind; answers."""
        if self.front not in self.kinds[name].fronts:
            raise ValueError(f"{name} cannot be asked by {self.front}")
        if name not in self.servers:
            self.servers[name] = self.kinds[name](self)
        return self.servers[name]

    def end(self):
        self.case.doCleanups()
