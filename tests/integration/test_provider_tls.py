"""Providers under TLS, through the real binary: who gets the key, and that sessions are resumed.

The same matters are looked at more closely in test_upstream_tls (through upstream_probe) and in
unit.gateway.tls; here they are proved to hold for `sluice serve`.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import tls_client  # noqa: E402

VERSIONS = ("1.2", "1.3")


class ProviderTls(harness.Case):
    def setUp(self):
        self.authority = tls_client.Authority(self.directory())

    def provider(self, version, *names):
        """A simulated provider that speaks this version, with a certificate for these names."""
        cert, key = self.authority.issue(*names)
        return self.sim("--cert", cert, "--key", key, "--tls-min", version, "--tls-max", version, "--default", "once")

    def serve(self, sim, *hosts, ca=None):
        """A gateway that knows `sim` by each of `hosts`; the model of the n-th is "model-n"."""
        settings = harness.config(sim, retries={"attempts": 1})  # no other model is to step in
        settings["providers"] = {
            f"provider-{n}": {"dialect": "anthropic", "keys": [harness.PROVIDER_KEY], "ca": ca or self.authority.cert,
                              "endpoints": [{"url": f"https://{host}:{sim.port}"}]} for n, host in enumerate(hosts)}
        settings["models"] = [harness.model(f"model-{n}", f"provider-{n}") for n in range(len(hosts))]
        settings["plans"]["standard"]["models"] = {"allow": ["*"], "default": "model-0"}
        return self.gateway(settings)

    def ask(self, gateway, n=0):
        return gateway.sample("hello", modelPreferences={"hints": [{"name": f"model-{n}"}]})

    def assert_nothing_sent(self, gateway, sim, n=0):
        """Twice: the second time a session could be there."""
        before = sim.stats()["requests"]
        for _ in range(2):
            self.assert_error(self.ask(gateway, n), 502, reason="provider_unavailable")
        self.assertEqual(sim.stats()["requests"], before)

    def test_every_connection_after_the_first_resumes_the_session(self):
        for version in VERSIONS:
            for host, name in (("localhost", "localhost"), ("127.0.0.1", "")):
                with self.subTest(version=version, host=host):
                    sim = self.provider(version, "DNS:localhost", "IP:127.0.0.1")
                    gateway = self.serve(sim, host)
                    for n in range(4):
                        self.assert_result(self.ask(gateway))
                        last = sim.last()["tls"]
                        self.assertEqual((last["version"], last["resumed"]), ("TLSv" + version, n > 0))
                        if n == 0:  # of a session that is resumed, OpenSSL's server does not tell
                            self.assertEqual(last["server_name"], name)
                    self.assertEqual(sim.stats()["connections"], 4, sim.stats())

    def test_a_certificate_for_another_name_never_gets_a_request(self):
        for version in VERSIONS:
            for host, names in (("localhost", ("DNS:evil.example",)), ("localhost", ("IP:127.0.0.1",)),
                                ("127.0.0.1", ("IP:127.0.0.9",)), ("127.0.0.1", ("DNS:127.0.0.1", "DNS:localhost"))):
                with self.subTest(version=version, host=host, names=names):
                    sim = self.provider(version, *names)
                    self.assert_nothing_sent(self.serve(sim, host), sim)

    def test_a_session_of_one_name_is_of_no_use_for_another(self):
        """The same server, known by two names, has a certificate for one; it would resume any session."""
        for version in VERSIONS:
            with self.subTest(version=version):
                sim = self.provider(version, "DNS:localhost")
                gateway = self.serve(sim, "localhost", "127.0.0.1")
                for n in range(2):
                    self.assert_result(self.ask(gateway, 0))
                    self.assertEqual(sim.last()["tls"]["resumed"], n > 0)
                    self.assert_nothing_sent(gateway, sim, 1)

    def test_another_authority_and_the_systems_are_refused(self):
        other = tls_client.Authority(self.directory(), "other")
        for version in VERSIONS:
            sim = self.provider(version, "DNS:localhost")
            self.assert_nothing_sent(self.serve(sim, "localhost", ca=other.cert), sim)
            settings = harness.config(sim)
            for provider in settings["providers"].values():
                provider["endpoints"] = [{"url": f"https://localhost:{sim.port}"}]
            gateway = self.gateway(settings)
            self.assert_error(gateway.sample(), 502, reason="provider_unavailable")
            self.assertEqual(sim.stats()["requests"], 0)


if __name__ == "__main__":
    harness.main()
