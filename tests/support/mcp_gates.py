"""Gateways on one Redis that a test uses as if they were one: consecutive requests go to them by turns, and what they log and
count is of all.

    gates = mcp_gates.Gates(case, settings, 2)   # a Redis of its own, and seal_keys that all have
    client = mcp_client.Client(gates.url + "/mcp/raw")   # its requests go by turns, too
    gates.gateways[0].kill()
"""

import base64
import concurrent.futures
import hashlib
import itertools

import harness
import mcp_client
import redis_server

# Longer than a busy machine takes, so that what is slow is not taken for gone.
DEADLINE = "1s"


def seal_key(name):
    """32 bytes for seal_keys, the same for the same name."""
    return base64.b64encode(hashlib.sha256(name.encode()).digest()).decode()


def address_of(gateway):
    host, _, port = gateway.settings["listen"][0]["address"].rpartition(":")
    return host, int(port)


class Gates:
    def __init__(self, case, settings, count, **options):
        self.redis = redis_server.Redis(case)
        shared = {"seal_keys": [seal_key("first")], **settings,
                  "store": {"kind": "redis", "url": self.redis.url, "deadline": DEADLINE}}
        self.gateways = [harness.Case.gateway(case, {**shared, **self._listen(shared, number)}, wait_ready=False, **options)
                         for number in range(count)]
        case.addCleanup(self.stop)
        for gateway in self.gateways:
            gateway.wait_ready()
        harness.wait_for(self.share, "every gateway to use Redis")
        self.by_turns = itertools.cycle(self.gateways)
        addresses = list(map(address_of, self.gateways))
        mcp_client.turns.update(dict.fromkeys(addresses, map(address_of, self.by_turns)))
        self.url = self.gateways[0].url

    @staticmethod
    def _listen(settings, number):
        """The first has the addresses that the settings name, the others free ones."""
        if number == 0 or "listen" not in settings:
            return {}
        return {"listen": [{**one, "address": f"127.0.0.1:{harness.free_port()}"} for one in settings["listen"]]}

    @property
    def up(self):
        return [gateway for gateway in self.gateways if gateway.running]

    def share(self):
        """Whether all workers decide with Redis, and hear what others say by it."""
        metrics = self.metrics()
        workers = sum(gateway.settings["workers"] for gateway in self.up)
        return metrics.sum("sluice_limiter_mode", mode="shared") == workers and \
            self.redis.ask("CLIENT", "LIST", "TYPE", "pubsub").count("\n") >= len(self.up)

    # ---- as of a harness.Gateway

    log, sample, metrics_after = harness.Gateway.log, harness.Gateway.sample, harness.Gateway.metrics_after

    @property
    def settings(self):
        return self.gateways[0].settings

    @property
    def config_path(self):
        return self.gateways[0].config_path

    @property
    def stdout(self):
        lines = (line for gateway in self.gateways for line in list(gateway.stdout))
        return sorted(lines, key=lambda line: line[:len('{"time":"2026-11-28T17:10:46.566Z"')])

    @property
    def running(self):
        return bool(self.up)

    @property
    def killed(self):
        return all(gateway.killed for gateway in self.gateways)

    def metrics(self):
        return harness.Metrics("\n".join(gateway.metrics().text for gateway in self.up))

    def wait_line(self, matches, what, timeout_s=None):
        try:
            return harness.wait_for(lambda: next(filter(matches, self.stdout), None), what, timeout_s)
        except harness.Failure as failure:
            raise harness.Failure("\n".join([str(failure), *(gateway.report() for gateway in self.gateways)])) from None

    def wait_stderr(self, text, count=1, timeout_s=None):
        """Of each of them."""
        return [gateway.wait_stderr(text, count, timeout_s) for gateway in self.up]

    def post(self, *args, **options):
        return next(self.by_turns).post(*args, **options)

    def get(self, *args):
        return next(self.by_turns).get(*args)

    def write_config(self, settings):
        for gateway in self.gateways:
            gateway.write_config({**settings, **{key: gateway.settings[key] for key in ("listen", "admin", "store")}})

    def reload(self):
        """Of all; the worst answer."""
        return max([gateway.reload() for gateway in self.up], key=lambda answer: answer.status)

    def send(self, number):
        for gateway in self.up:
            gateway.send(number)

    def stop(self):
        """All at once, as each of them waits for its drain."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(harness.Gateway.stop, self.gateways))
