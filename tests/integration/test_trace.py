"""W3C Trace Context: a caller's trace is in the log line and goes on to the provider; none is begun here.

ctest: once
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = f"00-{TRACE}-00f067aa0ba902b7-01"


class Trace(harness.Case):
    def ask(self, gateway, sim, traceparent=None, **options):
        """(id of the request, its log line, what the provider saw)."""
        headers = {} if traceparent is None else {"traceparent": traceparent}
        answer = gateway.sample(headers=headers, **options)
        self.assert_result(answer)
        request_id = answer.headers["sluice-request-id"]
        return request_id, gateway.log(request_id), sim.last()["headers"].get("traceparent")

    def test_a_trace_goes_on_under_a_parent_that_the_log_line_names(self):
        sim = self.sim()
        gateway = self.gateway(harness.config(sim))
        for http2 in (False, True):
            for model in ("claude-test", "gpt-test"):
                with self.subTest(http2=http2, model=model):
                    request_id, line, seen = self.ask(gateway, sim, CALLER, http2=http2,
                                                      modelPreferences={"hints": [{"name": model}]})
                    self.assertEqual(line["traceparent"], CALLER)
                    self.assertEqual(seen, f"00-{TRACE}-{request_id[:16]}-01")

    def test_none_is_begun_here(self):
        sim = self.sim()
        gateway = self.gateway(harness.config(sim))
        for header in (None, f"00-{'0' * 32}-00f067aa0ba902b7-01", CALLER.upper(), CALLER + "-more", "nonsense"):
            with self.subTest(header):
                _, line, seen = self.ask(gateway, sim, header)
                self.assertNotIn("traceparent", line)
                self.assertIsNone(seen)

    def test_every_attempt_is_of_the_trace(self):
        sim = self.sim()
        settings = harness.config(sim)
        settings["models"].append(harness.model("sim-error-529", "anthropic"))
        gateway = self.gateway(settings)
        request_id, line, seen = self.ask(gateway, sim, CALLER, modelPreferences={"hints": [{"name": "sim-error-529"}]})
        self.assertGreater(line["attempts"], 1)
        self.assertEqual(seen, f"00-{TRACE}-{request_id[:16]}-01")


if __name__ == "__main__":
    harness.main()
