"""Gateways that share one Redis, callers who ask all of them at once, and what became of the requests.

    fleet = redis_fleet.Fleet(self, redis.url, [redis_fleet.Tenant("acme", limits={"concurrent": 5})], providers)
    rows = fleet.storm("acme", "claude-test", each=1000)       # (began, status, took) of every request
    lines = fleet.lines("acme")                                # what the gateways logged

Callers are h2load's, so that a thousand of them at each gateway cost the machine little.
"""

import collections
import json
import os
import subprocess

import harness

# What the simulator is told to report of each request, and what that costs; harness.model has the prices.
USAGE = {"input": 2000, "output": 100}
USAGE_WORDS = "-".join(f"{name}-{tokens}" for name, tokens in USAGE.items())
MAX_TOKENS = 100
COST_NANO = (USAGE["input"] * 3 + USAGE["output"] * 15) * 1000
ENDLESS = {"requests_per_minute": 60000000, "requests_burst": 60000000, "tokens_per_minute": 60000000000,
           "tokens_burst": 60000000000, "concurrent": 100000, "usd_per_day": 1000000}

Row = collections.namedtuple("Row", "began status took_ms")  # began: seconds since 1970; status -1: no answer


def missing():
    """What the callers need and this machine has not; None when all is there."""
    for program in ("redis-server", "h2load"):
        if not any(os.access(os.path.join(path, program), os.X_OK) for path in os.environ["PATH"].split(":")):
            return program + " is not installed"
    return None


def favour(redis):
    """As if Redis had a machine of its own, as it should have: what else runs here does not make it late. As far as
    we may."""
    try:
        os.setpriority(os.PRIO_PROCESS, redis.child.pid, -15)
    except PermissionError:
        pass
    return redis


class Tenant:
    """One that may do everything but for `limits`; `failure` is its on_store_failure."""

    def __init__(self, id, limits=None, failure=None):
        self.id, self.key = id, f"sk-fleet-{id}-0123456789"
        self.entry = {"id": id, "plan": "standard", "keys": [{"sha256": harness.sha256(self.key)}],
                      "limits": {**ENDLESS, **(limits or {})}}
        if failure is not None:
            self.entry["on_store_failure"] = failure


def body(model):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}],
        "modelPreferences": {"hints": [{"name": model}]}, "maxTokens": MAX_TOKENS}}).encode()


def statuses(rows):
    return dict(collections.Counter(row.status for row in rows))


class Callers:
    """h2load at one gateway; `rps` of all connections together, or as fast as answers come."""

    def __init__(self, case, url, key, model, count, connections, streams, rps=None):
        self.log = os.path.join(case.directory(), "log")
        self.count = count
        with open(self.log + ".body", "wb") as file:
            file.write(body(model))
        argv = ["h2load", "-t", 1, "-n", count, "-c", connections, "-m", streams, "-d", self.log + ".body",
                "--log-file", self.log, "-H", "content-type: application/json", "-H", "authorization: Bearer " + key]
        if rps is not None:
            argv += ["--rps", rps / connections]
        self.child = subprocess.Popen([*map(str, argv), url + "/v1/sampling"], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
        case.addCleanup(self.kill)

    def kill(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()

    def rows(self):
        """Once all are answered; what never got an answer is a row with status -1."""
        self.child.wait()
        rows = []
        with open(self.log, encoding="ascii") as file:
            for line in file:
                began_us, status, took_us = map(int, line.split()[:3])
                rows.append(Row(began_us / 1e6, status, took_us / 1000))
        return rows + [Row(0.0, -1, 0.0)] * (self.count - len(rows))


class Fleet:
    """`providers`: model id -> Sim, each model with a provider of its own."""

    def __init__(self, case, url, tenants, providers, count=4, deadline="20ms"):
        self.case, self.tenants = case, {tenant.id: tenant for tenant in tenants}
        first = next(iter(providers.values()))
        settings = harness.config(first, store={"kind": "redis", "url": url, "deadline": deadline},
                                  tenants=[tenant.entry for tenant in tenants])
        settings["providers"] = {"of-" + id: harness.provider(sim, "anthropic") for id, sim in providers.items()}
        settings["models"] = [harness.model(id, "of-" + id) for id in providers]
        settings["plans"]["standard"]["models"] = {"allow": ["*"], "default": next(iter(providers))}
        self.gateways = [case.gateway(settings, wait_ready=False) for _ in range(count)]
        for gateway in self.gateways:
            gateway.wait_ready()
        self.wait_shared()

    @staticmethod
    def is_away(gateway):
        """Whether a worker decides without Redis."""
        return gateway.metrics().sum("sluice_limiter_mode", mode="away") > 0

    def away(self):
        """How many gateways are."""
        return sum(map(self.is_away, self.gateways))

    def wait_shared(self, timeout_s=None):
        """Until each has been seen to use Redis; what it does later is another matter."""
        left = list(self.gateways)

        def all_seen():
            left[:] = filter(self.is_away, left)
            return not left
        harness.wait_for(all_seen, "every gateway to use Redis", timeout_s)

    def metric(self, name, **labels):
        return sum(gateway.metrics().sum(name, **labels) for gateway in self.gateways)

    def callers(self, tenant, model, each, connections=10, streams=100, rps=None):
        """Of that tenant at every gateway, begun and not waited for."""
        key = self.tenants[tenant].key
        return [Callers(self.case, gateway.url, key, model, each, connections, streams, rps)
                for gateway in self.gateways]

    def storm(self, tenant, model, each, **options):
        """`each` requests at every gateway, as many at once as the connections' streams allow."""
        return [row for callers in self.callers(tenant, model, each, **options) for row in callers.rows()]

    def settle(self):
        """Nothing is in flight any more, and every answer's log line is here."""
        def whole(gateway):
            metrics = gateway.metrics()
            logged = sum(1 for line in list(gateway.stdout) if line.startswith("{"))
            return metrics.sum("sluice_in_flight") == 0 and \
                metrics.sum("sluice_requests_total") == logged + metrics.sum("sluice_log_dropped_total")
        harness.wait_for(lambda: all(map(whole, self.gateways)), "nothing in flight, and every line of the logs")

    def lines(self, tenant=None):
        """The log, parsed, in no order between gateways; with each line's gateway."""
        found = []
        for number, gateway in enumerate(self.gateways):
            for text in list(gateway.stdout):
                if not text.startswith("{") or (tenant is not None and f'"tenant":"{tenant}"' not in text):
                    continue
                found.append({**json.loads(text), "gateway": number})
        return found


def spent_nano(lines):
    """Money of those requests, exact."""
    return sum(round(line.get("usd", 0) * 1e9) for line in lines)
