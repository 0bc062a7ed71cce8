"""What one caller does wrong on an HTTP/2 connection that others share costs them nothing (bench/attacks/shared.py).
ctest: timeout=300
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
sys.path.insert(0, os.path.join(HERE, "../../bench/attacks"))
import harness  # noqa: E402
import servers  # noqa: E402
import shared  # noqa: E402


class SharedConnection(harness.Case):
    def attacked(self, way, listen):
        """A gateway, and what attacks it."""
        gateway = self.gateway(servers.settings(self.sim(), *self.certificate(), listen=listen))
        return gateway, servers.gateway_target(gateway, way, servers.answer_size(gateway))

    def run_all(self, way, listen, unless=()):
        gateway, target = self.attacked(way, listen)
        for program in shared.PROGRAMS:
            if program.name in unless:
                continue
            with self.subTest(program.name):
                seen = program.run(target)
                print(f"{program.name} {way} {listen}: {seen}", file=sys.stderr)
                self.assertRegex(seen, program.seen)
                self.assertIn(", 1 connections, 0 repeated", seen)
        self.assertEqual(gateway.metrics().sum("sluice_restarts_total"), 0, gateway.report())
        self.assertGreater(gateway.metrics().sum("sluice_guard_kills_total", cause="slow"), 0)

    def test_clear(self):
        self.run_all("clear", {}, ["shared_cancels"])

    def test_tls(self):
        self.run_all("tls", {}, ["shared_cancels"])

    def test_clear_through_a_trusted_proxy(self):
        self.run_all("clear", shared.TRUSTED)

    def test_tls_through_a_trusted_proxy(self):
        self.run_all("tls", shared.TRUSTED)

    def cancels_by_default(self, way):
        """The connection ends at last; requests that were not begun may be sent again, and are all answered then."""
        gateway, target = self.attacked(way, {})
        seen = shared.BY_NAME["shared_cancels"].run(target)
        print(f"shared_cancels {way}: {seen}", file=sys.stderr)
        self.assertRegex(seen, r"^\d+ of 100 lost(| \(closed\)), ")
        self.assertNotIn(", 1 connections", seen)
        self.assertGreater(gateway.metrics().sum("sluice_guard_kills_total", cause="aborted_requests"), 0)

    def test_cancels_by_default(self):
        self.cancels_by_default("clear")

    def test_cancels_by_default_tls(self):
        self.cancels_by_default("tls")


if __name__ == "__main__":
    harness.main()
