"""Bodies that do not end, at a gateway with the default settings: honest bodies beside them are all answered.
ctest: timeout=600
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
sys.path.insert(0, os.path.join(HERE, "../../bench/attacks"))
import harness  # noqa: E402
import servers  # noqa: E402
import uploads  # noqa: E402

DEFAULTS = {"body_bytes": "16MiB", "unfinished_bytes": "256MiB"}


class Uploads(harness.Case):
    def attack(self, name, way):
        gateway = self.gateway(servers.settings(self.sim(), *self.certificate(), limits=dict(DEFAULTS)))
        target = servers.gateway_target(gateway, way, servers.answer_size(gateway))
        target.body_max = 16 << 20
        seen = uploads.BY_NAME[name].run(target)
        print(f"{name} {way}: {seen}, {harness.memory_kb(gateway.server_pid(), 'VmHWM') // 1024} MB at most",
              file=sys.stderr)
        self.assertRegex(seen, uploads.BY_NAME[name].seen)
        self.assertEqual(gateway.metrics().sum("sluice_restarts_total"), 0, gateway.report())
        return gateway

    def test_http1(self):
        gateway = self.attack("hoarded_http1", "clear")
        self.assertGreater(gateway.metrics().sum("sluice_guard_kills_total", cause="unfinished_bytes"), 0)

    def test_http2(self):
        self.attack("hoarded_http2", "clear")

    def test_http1_tls(self):
        self.attack("hoarded_http1", "tls")

    def test_http2_tls(self):
        self.attack("hoarded_http2", "tls")

    def test_drips(self):
        self.attack("hoarded_drips", "clear")

    def test_many_that_are_little(self):
        self.attack("hoarded_little", "clear")

    def test_who_comes_again(self):
        self.attack("hoarded_anew", "clear")


if __name__ == "__main__":
    harness.main()
