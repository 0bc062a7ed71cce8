"""The two servers that are attacked: the gateway, and libh2o without its guard.

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

ATTACKER_KEY = "sk-attacker-0123456789abcdef"
PLAIN = os.environ.get("SLUICE_PLAIN_H2O", os.path.join(os.path.dirname(harness.BIN), "plain_h2o"))
PATH = "/v1/sampling"
MODELS = {"quick": "sim-latency-20ms-size-300", "hang": "sim-latency-30s", "large": "sim-size-1000000"}
ENDLESS = 1000000000  # an attacker whom a tenant's limit stops shows nothing about the edge


def message(model, text="hello"):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        "modelPreferences": {"hints": [{"name": model}]}, "maxTokens": 100}}).encode()


def accepts(**limits):
    """Whether this version of the gateway has such settings."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"limits": limits}, file)
        file.flush()
        run = subprocess.run([harness.BIN, "check", file.name], capture_output=True, text=True, check=False)
    return not any("limits." in line for line in (run.stdout + run.stderr).splitlines())


def settings(sim, cert=None, key=None, **changes):
    """A gateway with an honest tenant (harness.KEY) and an attacker, both without narrow limits."""
    result = harness.config(sim, **changes)
    result["models"] = [harness.model(name, "anthropic") for name in MODELS.values()]
    plan = result["plans"]["standard"]
    plan["models"] = {"allow": ["*"], "default": MODELS["quick"]}
    plan["limits"].update(requests_per_minute=ENDLESS, requests_burst=1000000, concurrent=10000,
                          tokens_per_minute=ENDLESS * 10, tokens_burst=ENDLESS * 10, usd_per_day=1000000)
    result["tenants"].append({"id": "mallory", "plan": "standard",
                              "keys": [{"sha256": harness.sha256(ATTACKER_KEY), "server": "hostile"}]})
    result.setdefault("limits", {"body_bytes": "1MiB"})
    if accepts(unfinished_bytes="16MiB"):
        result["limits"].setdefault("unfinished_bytes", "16MiB")
    result["listen"] = [{"address": f"127.0.0.1:{harness.free_port()}"}]
    if cert is not None:
        result["listen"].append({"address": f"127.0.0.1:{harness.free_port()}", "tls": {"cert": cert, "key": key}})
    return result


def has_tls(cert, key):
    """Whether this version of the gateway can listen under TLS."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"listen": [{"address": "127.0.0.1:1", "tls": {"cert": cert, "key": key}}]}, file)
        file.flush()
        run = subprocess.run([harness.BIN, "check", file.name], capture_output=True, text=True, check=False)
    return "tls" not in run.stdout + run.stderr


def gateway_target(gateway, way, size):
    """How an attacker with a valid key asks this gateway."""
    listener = gateway.settings["listen"][0 if way == "clear" else 1]
    port = int(listener["address"].rpartition(":")[2])
    asks = {name: (PATH, message(model)) for name, model in MODELS.items()}
    return programs.Target("127.0.0.1", port, way, size=size, key=ATTACKER_KEY, pid=gateway.pid, **asks)


def answer_size(gateway):
    answer = gateway.post(message(MODELS["quick"]), key=ATTACKER_KEY)
    if answer.status != 200:
        raise harness.Failure(f"an honest request failed: {answer}")
    return len(answer.body)


class Plain(harness.Process):
    """bench/plain_h2o."""

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
