#!/usr/bin/env python3
"""Two gateways behind HAProxy are restarted one after the other, under load: no request fails.

HAProxy asks /readyz of each, tries nothing again and sends nothing elsewhere: what a gateway does not answer, a caller
sees. For .ci/nightly (rolling); ROLLING_ROUNDS (2) is how often both are restarted.
"""

import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

ROUNDS = int(os.environ.get("ROLLING_ROUNDS", "2"))

CONFIG = """\
global
    maxconn 2000
defaults
    mode http
    timeout connect 2s
    timeout client 60s
    timeout server 60s
    retries 0
listen sluice
    bind 127.0.0.1:{port}
    balance roundrobin
    option httpchk GET /readyz
    http-check expect status 200
    default-server inter 100ms fall 1 rise 1
{servers}
"""


class Balancer(harness.Process):
    """HAProxy in front of `gateways`; asked like one of them."""

    post = harness.Gateway.post

    def __init__(self, gateways, directory):
        port = harness.free_port()
        self.url = f"http://127.0.0.1:{port}"
        servers = "\n".join(
            f"    server gateway{i} {gateway.settings['listen'][0]['address']} check port "
            f"{gateway.settings['admin']['address'].split(':')[1]}" for i, gateway in enumerate(gateways))
        path = os.path.join(directory, "haproxy.cfg")
        with open(path, "w", encoding="ascii") as file:
            file.write(CONFIG.format(port=port, servers=servers))
        super().__init__(["haproxy", "-db", "-f", path])

    def sample(self, *args, **options):
        """An event stream may be 200 and end in an error."""
        answer = harness.Gateway.sample(self, *args, **options)
        if answer.status == 200 and b'"result"' not in answer.body:
            answer.status = f"200 without a result: {answer.body[-300:]!r}"
        return answer


class RollingRestart(harness.Case):
    def served(self, gateway, count):
        """Whether it has answered so many by itself: it takes part again."""
        return gateway.metrics().sum("sluice_requests_total") >= count

    def roll(self, **options):
        sim = self.sim("--latency", "20ms")
        models = [harness.model("claude-test", "anthropic"),
                  harness.model("slow", "anthropic", name="sim-latency-800ms")]
        gateways = [self.gateway(harness.config(sim, models=models, workers=2, drain="10s")) for _ in range(2)]
        balancer = Balancer(gateways, self.directory())
        self.addCleanup(balancer.kill)
        harness.wait_for(lambda: self.is_up(balancer), "the balancer finds a gateway")
        loads = [harness.Load(balancer, 6, **options),
                 harness.Load(balancer, 2, modelPreferences={"hints": [{"name": "slow"}]}, **options)]
        try:
            for _ in range(ROUNDS):
                for i, gateway in enumerate(gateways):
                    harness.wait_for(lambda one=gateway: self.served(one, 50), "both are asked")
                    gateway.stop()
                    gateways[i] = self.gateway(gateway.settings)
                    harness.wait_for(lambda one=gateways[i]: self.served(one, 50), "it is asked again")
        finally:
            results = [result for load in loads for result in load.stop()]
        failed = [result for result in results if result[2] != 200]
        print(f"{2 * ROUNDS} restarts: {len(results)} requests, {len(failed)} failed")
        self.assertEqual(failed[:5], [])
        self.assertGreater(len(results), 200 * ROUNDS)

    def is_up(self, balancer):
        try:
            return balancer.sample("hello").status == 200
        except OSError:
            return False

    def test_no_request_fails_over_http1(self):
        self.roll()

    def test_no_event_stream_fails(self):
        self.roll(headers={"Accept": "application/json, text/event-stream"}, _meta={"progressToken": 1})


if __name__ == "__main__":
    if shutil.which("haproxy") is None:
        print("NOT RUN: there is no haproxy")
        sys.exit(77)
    harness.main()
