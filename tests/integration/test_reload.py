"""A new configuration while requests are served: asked for, signalled, or noticed.

ctest: worker timeout=240
"""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

SANITIZED = bool(os.environ.get("SLUICE_SANITIZE"))
OTHER_KEY = "sk-other-0123456789abcdef"


class Reload(harness.Case):
    def test_a_good_configuration_is_in_force_at_once(self):
        gateway = self.gateway(harness.config(self.sim()))
        self.assert_error(gateway.sample("hello", key=OTHER_KEY), 401)
        before = gateway.get("/readyz").body
        gateway.settings["tenants"].append(harness.tenant("other", OTHER_KEY))
        gateway.write_config(gateway.settings)
        answer = gateway.reload()
        self.assertEqual(answer.status, 200)
        self.assertRegex(answer.body, rb"^[0-9a-f]{16}\n$")
        self.assertNotIn(answer.body.strip(), before)
        self.assertIn(answer.body.strip(), gateway.get("/readyz").body)
        harness.wait_for(lambda: gateway.sample("hello", key=OTHER_KEY).status == 200, "the new tenant")
        self.assert_result(gateway.sample("hello"))
        self.assertEqual(gateway.metrics().sum("sluice_reloads_total", result="ok"), 1)

    def test_a_signal_does_the_same(self):
        gateway = self.gateway(harness.config(self.sim()))
        gateway.settings["tenants"].append(harness.tenant("other", OTHER_KEY))
        gateway.write_config(gateway.settings)
        gateway.send(signal.SIGHUP)
        harness.wait_for(lambda: gateway.sample("hello", key=OTHER_KEY).status == 200, "the new tenant")

    def test_a_bad_one_is_explained_and_the_old_one_stays(self):
        gateway = self.gateway(harness.config(self.sim()))
        bad = {**gateway.settings, "wrokers": 3}
        gateway.write_config(bad)
        with open(gateway.config_path, encoding="utf-8") as file:
            line = next(n for n, text in enumerate(file, 1) if "wrokers" in text)
        answer = gateway.reload()
        self.assertEqual(answer.status, 422)
        self.assertIn(f"{gateway.config_path}:{line}: wrokers: ", answer.body.decode())
        self.assert_result(gateway.sample("hello"))
        gateway.send(signal.SIGHUP)
        gateway.wait_stderr(f"{gateway.config_path}:{line}: wrokers: ")
        harness.wait_for(lambda: gateway.metrics().sum("sluice_reloads_total", result="refused") == 2,
                         "two refusals counted")
        self.assert_result(gateway.sample("hello"))
        self.assertEqual(gateway.get("/readyz").status, 200)

    def test_what_needs_a_restart_is_refused_by_name(self):
        gateway = self.gateway(harness.config(self.sim()))
        for key, value in (("workers", 2), ("listen", [{"address": f"127.0.0.1:{harness.free_port()}"}]),
                           ("admin", {"address": f"127.0.0.1:{harness.free_port()}"})):
            with self.subTest(key):
                gateway.write_config({**gateway.settings, key: value})
                answer = gateway.reload()
                self.assertEqual(answer.status, 422)
                self.assertRegex(answer.body.decode(), rf": {key}\b.*restart")
        self.assert_result(gateway.sample("hello"))

    def test_many_reloads_under_load_cost_no_request(self):
        gateway = self.gateway(harness.config(self.sim(), workers=2))
        load = harness.Load(gateway, 4)
        done = 0
        for _ in range(20 if SANITIZED else 100):
            status = gateway.reload().status
            self.assertIn(status, (200, 503))
            done += status == 200
        load.wait(20)
        results = load.stop()
        self.assertGreater(done, 0)
        self.assertEqual([r for r in results if r[2] != 200], [])
        self.assertEqual(gateway.metrics().sum("sluice_reloads_total", result="ok"), done)


if __name__ == "__main__":
    harness.main()
