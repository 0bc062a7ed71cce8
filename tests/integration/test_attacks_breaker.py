#!/usr/bin/env python3
"""Callers whose calls hang do not open an endpoint's circuit breaker for the others (bench/attacks/breaker.py).
ctest: timeout=120"""

import dataclasses
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
sys.path.insert(0, os.path.join(HERE, "../../bench/attacks"))
import breaker  # noqa: E402
import harness  # noqa: E402
import servers  # noqa: E402

COLD_KEY = "sk-cold-0123456789abcdef"
HONEST = 50  # requests at least, while the attack goes on


class Breaker(harness.Case):
    def start(self):
        """A gateway that gives calls up soon; beside the attacker's there is a tenant that asks all the time, and one that
        asks now and then."""
        self.provider = self.sim()
        settings = servers.settings(self.provider, retries={"attempts": 1})
        settings["providers"]["anthropic"]["timeouts"] = {"first_byte": "2s" if os.environ.get("SLUICE_SANITIZE") else "500ms"}
        settings["tenants"].append(harness.tenant("cold", COLD_KEY))
        return self.gateway(settings)

    def ask(self, gateway, model, key=harness.KEY, **headers):
        return gateway.post(servers.message(servers.MODELS[model]), headers, key)

    def attacked(self, program, keys=(harness.KEY, COLD_KEY)):
        gateway = self.start()
        self.assertEqual(self.ask(gateway, "quick").status, 200)
        statuses = []
        target = dataclasses.replace(servers.gateway_target(gateway, "clear", 0), seen_enough=lambda: len(statuses) > HONEST)
        seen, attack = self.background(lambda: program.run(target))
        while attack.is_alive():
            key = keys[len(statuses) % 10 // 9]
            statuses.append(self.ask(gateway, "quick", key).status)
        self.assertRegex(seen[0], program.seen)
        lost = sum(status != 200 for status in statuses)
        self.assertEqual(lost, 0, f"of {len(statuses)} honest requests")

    def test_of_one_tenant(self):
        self.attacked(breaker.PROGRAMS[0])

    def test_of_two_tenants(self):
        self.attacked(breaker.PROGRAMS[1])

    def test_of_two_tenants_that_fail_at_once(self):
        """Whoever was answered lately is served; the others have to wait for a moment."""
        self.attacked(breaker.PROGRAMS[2], (harness.KEY, harness.KEY))

    def test_a_tenant_that_is_alone_opens_it(self):
        """With calls that hang, and with none of those that it would not wait for itself."""
        gateway = self.start()
        for _ in range(10):
            self.assert_error(self.ask(gateway, "never", **{"Sluice-Timeout": "300"}), 504, -32001, "deadline")
        self.assert_result(self.ask(gateway, "quick"))
        for _ in range(5):
            self.assert_error(self.ask(gateway, "never"), 502, -32011)
        self.assert_error(self.ask(gateway, "never"), 503, -32011, "provider_not_reached")

    def test_an_endpoint_that_is_gone_is_gone_for_all(self):
        gateway = self.start()
        self.assert_result(self.ask(gateway, "quick", COLD_KEY))  # a connection is kept
        self.provider.kill()
        for _ in range(5):
            self.assert_error(self.ask(gateway, "quick"), 502, -32011)
        self.assert_error(self.ask(gateway, "quick", COLD_KEY), 503, -32011, "provider_not_reached")


if __name__ == "__main__":
    harness.main()
