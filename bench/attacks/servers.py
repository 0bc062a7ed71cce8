"""The servers that are attacked: the gateway, libh2o without its guard, and nginx as a plain proxy.

Uses tests/support/harness.py for processes and configurations.
"""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "../../tests/support"))
import harness  # noqa: E402
import programs  # noqa: E402

ATTACKER_KEY, SECOND_KEY = "sk-attacker-0123456789abcdef", "sk-attackers-other-0123456789"
PLAIN = os.environ.get("SLUICE_PLAIN_H2O", os.path.join(os.path.dirname(harness.BIN), "plain_h2o"))
PATH = "/v1/sampling"
MODELS = {"quick": "sim-latency-20ms-size-300", "hang": "sim-latency-30s", "large": "sim-size-1000000",
          "never": "sim-hang", "calls": "sim-calls-64", "fails": "sim-error-500"}
TOOLS = [{"name": "look", "description": "looks", "inputSchema": {"type": "object"}}]
ENDLESS = 1000000000  # an attacker whom a tenant's limit stops shows nothing about the edge


def message(model, text="hello"):
    params = {"messages": [{"role": "user", "content": {"type": "text", "text": text}}],
              "modelPreferences": {"hints": [{"name": model}]}, "maxTokens": 100}
    if "-calls-" in model:
        params["tools"] = TOOLS
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": params}).encode()


def said_of(settings):
    """What this version of the gateway says of them."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(settings, file)
        file.flush()
        run = subprocess.run([harness.BIN, "check", file.name], capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


def accepts(**limits):
    """Whether this version of the gateway has such settings."""
    return "limits." not in said_of({"limits": limits})


def settings(sim, cert=None, key=None, limits=None, listen=None, **changes):
    """A gateway with an honest tenant (harness.KEY) and two of an attacker, all without narrow limits. `listen`: settings of
    its listeners, left out where this version of the gateway has none such."""
    result = harness.config(sim, **changes)
    result["models"] = [harness.model(name, "anthropic", context=10000000) for name in MODELS.values()]
    plan = result["plans"]["standard"]
    plan["models"] = {"allow": ["*"], "default": MODELS["quick"]}
    plan["limits"].update(requests_per_minute=ENDLESS, requests_burst=1000000, concurrent=10000,
                          tokens_per_minute=ENDLESS * 10, tokens_burst=ENDLESS * 10, usd_per_day=1000000)
    for name, secret in (("mallory", ATTACKER_KEY), ("trudy", SECOND_KEY)):
        result["tenants"].append({"id": name, "plan": "standard",
                                  "keys": [{"sha256": harness.sha256(secret), "server": "hostile"}]})
    result["limits"] = {"body_bytes": "1MiB", **(limits or {})}
    if accepts(unfinished_bytes="16MiB"):
        result["limits"].setdefault("unfinished_bytes", "16MiB")
    result["listen"] = [{"address": f"127.0.0.1:{harness.free_port()}"}]
    if cert is not None:
        result["listen"].append({"address": f"127.0.0.1:{harness.free_port()}", "tls": {"cert": cert, "key": key}})
    if listen and not any(name in said_of({"listen": [{"address": "127.0.0.1:1", **listen}]}) for name in listen):
        for listener in result["listen"]:
            listener.update(listen)
    return result


def has_tls(cert, key):
    """Whether this version of the gateway can listen under TLS."""
    return "tls" not in said_of({"listen": [{"address": "127.0.0.1:1", "tls": {"cert": cert, "key": key}}]})


def gateway_target(gateway, way, size):
    """How an attacker with a valid key asks this gateway."""
    listener = gateway.settings["listen"][0 if way == "clear" else 1]
    port = int(listener["address"].rpartition(":")[2])
    asks = {name: (PATH, message(model)) for name, model in MODELS.items()}
    return programs.Target("127.0.0.1", port, way, size=size, key=ATTACKER_KEY, keys=(ATTACKER_KEY, SECOND_KEY),
                           pid=gateway.pid, **asks)


def answer_size(gateway):
    answer = gateway.post(message(MODELS["quick"]), key=ATTACKER_KEY)
    if answer.status != 200:
        raise harness.Failure(f"an honest request failed: {answer}")
    return len(answer.body)


class Plain(harness.Process):
    """bench/attacks/plain_h2o.c."""

    def __init__(self, cert, key):
        super().__init__([PLAIN, cert, key])
        line = self.wait_line(lambda l: l.startswith("listening "), "plain_h2o listens")
        self.port, self.tls_port = map(int, line.split()[1:])

    def target(self, way):
        return programs.Target("127.0.0.1", self.port if way == "clear" else self.tls_port, way, size=1024,
                               quick=("/b/1024", b"{}"), hang=("/hang", b"{}"), large=("/now/1000000", b"{}"),
                               pid=self.pid)

    def gone(self, within_s=0.3):
        """Whether it has died; a server that has just been hit may take a moment."""
        try:
            harness.wait_for(lambda: not self.running, "the end of plain_h2o", within_s)
            return True
        except harness.Failure:
            return False


NGINX = """daemon off; master_process off; user root; error_log stderr warn; pid {directory}/pid;
worker_rlimit_nofile 20000;
events {{ worker_connections 20000; }}
http {{
  access_log off; client_max_body_size 1m;
  client_body_temp_path {directory}/a; proxy_temp_path {directory}/b; fastcgi_temp_path {directory}/c;
  uwsgi_temp_path {directory}/d; scgi_temp_path {directory}/e;
  upstream provider {{ server {provider}; keepalive 1024; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} http2; listen 127.0.0.1:{tls_port} ssl http2;
    ssl_certificate {cert}; ssl_certificate_key {key};
    location / {{ proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
}}
"""


class Nginx(harness.Process):
    """nginx in front of the same provider, with its own limits as they come: what a request costs that is given up."""

    def __init__(self, sim, cert, key):
        self.directory = tempfile.TemporaryDirectory(prefix="sluice-nginx-")
        self.port, self.tls_port = harness.free_port(), harness.free_port()
        path = os.path.join(self.directory.name, "nginx.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(NGINX.format(directory=self.directory.name, port=self.port, tls_port=self.tls_port, cert=cert,
                                    key=key, provider=sim.url.removeprefix("http://")))
        super().__init__(["nginx", "-p", self.directory.name, "-c", path])
        self.fields = ["authorization: Bearer " + harness.PROVIDER_KEY, "content-type: application/json"]
        harness.wait_for(self.answers, "nginx answers")

    PATH = "/v1/chat/completions"

    def url(self):
        return f"http://127.0.0.1:{self.port}{self.PATH}"

    def ask(self, model):
        return self.PATH, json.dumps(
            {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}).encode()

    def answers(self):
        argv = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--http2-prior-knowledge", self.url(),
                "-d", self.ask(MODELS["quick"])[1].decode()]
        for field in self.fields:
            argv += ["-H", field]
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout == "200"

    def target(self, way):
        asks = {name: self.ask(model) for name, model in MODELS.items()}
        return programs.Target("127.0.0.1", self.port if way == "clear" else self.tls_port, way, size=0,
                               key=harness.PROVIDER_KEY, pid=self.pid, **asks)

    def gone(self):
        return not self.running

    def remove(self):
        self.directory.cleanup()
