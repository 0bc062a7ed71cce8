"""Active checks of providers' endpoints: who fails them gets no calls, whatever its calls say.

ctest: worker timeout=120
"""
import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness

HINT = {"hints": [{"name": "claude-test"}]}
CHECK = {"path": "/health", "interval": "100ms", "timeout": "10s", "unhealthy": 2, "healthy": 2}


def settings_of(sims, check=None, **changes):
    settings = harness.config(sims[0], **changes)
    # What runs beside must not decide: no breaker opens, nobody is tried again.
    settings["providers"]["anthropic"].update(
        endpoints=[{"url": sim.url} for sim in sims], breaker={"slow_start": "0s"})
    if check is not None:
        settings["providers"]["anthropic"]["check"] = check
    return settings


class Checks(harness.Case):
    def wait_up(self, gateway, sim, up):
        harness.wait_for(lambda: gateway.metrics().sum("sluice_endpoint_up", endpoint=sim.url) == up,
                         f"the verdict about {sim.url} is {up}")

    def calls(self, gateway, sims, count=12):
        """How many of them each simulator gets."""
        before = [sim.stats()["requests"] for sim in sims]
        for _ in range(count):
            self.assert_result(gateway.sample(modelPreferences=HINT))
        return [sim.stats()["requests"] - was for sim, was in zip(sims, before)]

    def test_an_endpoint_that_fails_its_checks_gets_no_calls_until_it_passes_them(self):
        sims = [self.sim(), self.sim()]
        gateway = self.gateway(settings_of(sims, CHECK, workers=2))
        for sim in sims:
            self.wait_up(gateway, sim, 1)
        self.assertTrue(all(self.calls(gateway, sims, 40)))
        sims[0].default("sick")
        gateway.wait_stderr("is not well: it answered with status 503; it gets no calls")
        self.wait_up(gateway, sims[0], 0)
        # A worker hears of it a moment later.
        harness.wait_for(lambda: self.calls(gateway, sims)[0] == 0, "no calls there")
        self.assertEqual(self.calls(gateway, sims, 40), [0, 40])
        sims[0].default("")
        gateway.wait_stderr("is well again: it gets calls")
        harness.wait_for(lambda: self.calls(gateway, sims)[0] > 0, "calls there again")
        metrics = gateway.metrics()
        for result in ("ok", "failed"):
            self.assertGreaterEqual(metrics.sum("sluice_endpoint_checks_total", endpoint=sims[0].url, result=result), 2)
        self.assertEqual(metrics.sum("sluice_endpoint_checks_total", endpoint=sims[1].url, result="failed"), 0)

    def test_a_verdict_outlives_a_reload_and_ends_with_its_check(self):
        sims = [self.sim(), self.sim()]
        gateway = self.gateway(settings_of(sims, CHECK))
        sims[0].default("sick")
        self.wait_up(gateway, sims[0], 0)
        harness.wait_for(lambda: self.calls(gateway, sims)[0] == 0, "no calls there")
        gateway.write_config({**gateway.settings, "metrics": {"tenants": 7}})
        self.assertEqual(gateway.reload().status, 200)
        self.assertEqual(self.calls(gateway, sims, 40), [0, 40])
        del gateway.settings["providers"]["anthropic"]["check"]
        gateway.write_config(gateway.settings)
        self.assertEqual(gateway.reload().status, 200)
        harness.wait_for(lambda: self.calls(gateway, sims)[0] > 0, "calls there again")
        self.assertEqual(gateway.metrics().find("sluice_endpoint_up"), [])

    def test_without_any_endpoint_left_the_provider_is_not_called(self):
        sim = self.sim()
        settings = settings_of([sim], CHECK)
        settings["plans"]["standard"]["models"] = {"allow": ["claude-test"]}
        gateway = self.gateway(settings)
        sim.default("sick")
        self.wait_up(gateway, sim, 0)
        answer = harness.wait_for(
            lambda: (lambda a: a.status != 200 and a)(gateway.sample(modelPreferences=HINT)), "a refusal")
        self.assert_error(answer, 503, -32011)
        before = sim.stats()["requests"]
        self.assert_error(gateway.sample(modelPreferences=HINT), 503, -32011)
        self.assertEqual(sim.stats()["requests"], before)

    def test_nobody_listening_is_a_failed_check(self):
        sim = self.sim()
        settings = settings_of([sim], CHECK)
        url = f"http://127.0.0.1:{harness.free_port()}"
        settings["providers"]["anthropic"]["endpoints"].append({"url": url})
        gateway = self.gateway(settings)
        gateway.wait_stderr(f"{url} is not well: Connection refused; it gets no calls")
        harness.wait_for(lambda: gateway.metrics().sum("sluice_endpoint_up", endpoint=url) == 0, "the verdict")

    def test_a_check_that_takes_too_long_has_failed(self):
        sim = self.sim()
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        settings = settings_of([sim], {**CHECK, "timeout": "200ms"})
        url = "http://127.0.0.1:%d" % silent.getsockname()[1]
        settings["providers"]["anthropic"]["endpoints"].append({"url": url})
        gateway = self.gateway(settings)
        gateway.wait_stderr(f"{url} is not well: it took too long; it gets no calls")

    def test_a_silent_address_of_a_name_is_passed_over(self):
        sim = self.sim()
        self.silent(sim.port)
        settings = settings_of([sim], {**CHECK, "timeout": "2s"})
        url = f"http://endpoint.test:{sim.port}"
        settings["providers"]["anthropic"]["endpoints"].append({"url": url})
        hosts = os.path.join(self.directory(), "hosts")
        gateway = self.gateway(settings, binary=self.with_hosts(
            hosts, "127.0.0.2 endpoint.test\n127.0.0.1 endpoint.test\n"))

        def checks(result):
            return gateway.metrics().sum("sluice_endpoint_checks_total", endpoint=url, result=result)
        harness.wait_for(lambda: checks("ok") + checks("failed") > 0, "a check has ended")
        self.assertEqual(checks("failed"), 0)


if __name__ == "__main__":
    harness.main()
