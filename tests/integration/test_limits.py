"""Limits are exact across workers: 4 workers x 64 callers against one limit, overshoot 0.

ctest: serial timeout=180
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness

BODY = (b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":'
        b'[{"role":"user","content":{"type":"text","text":"hello"}}],"maxTokens":10}}')
CALLERS = 64


class Limits(harness.Case):
    def storm(self, gateway, requests):
        """`requests` from 4 x 64 callers, each on its own connection; {status class: count}."""
        with tempfile.NamedTemporaryFile() as body:
            body.write(BODY)
            body.flush()
            run = subprocess.run(
                ["h2load", "-n", str(requests), "-c", str(4 * CALLERS), "-m", "1", "-t", "2", "-d", body.name,
                 "-H", "content-type: application/json", "-H", "authorization: Bearer " + harness.KEY,
                 gateway.url + "/v1/sampling"], capture_output=True, text=True, check=True)
        line = next(line for line in run.stdout.splitlines() if line.startswith("status codes:"))
        words = line.split()
        return {"2xx": int(words[2]), "4xx": int(words[6]), "5xx": int(words[8])}

    def limited(self, sim, **limits):
        settings = harness.config(sim, workers=4)
        settings["plans"]["standard"]["limits"].update(limits)
        return self.gateway(settings)

    def test_requests_a_minute(self):
        sim = self.sim()
        gateway = self.limited(sim, requests_per_minute=1, requests_burst=300)
        codes = self.storm(gateway, 4000)
        self.assertEqual(codes, {"2xx": 300, "4xx": 3700, "5xx": 0})
        self.assertEqual(sim.stats()["requests"], 300)

    def test_of_a_server_and_of_models_beside_the_tenant(self):
        sim = self.sim()
        gateway = self.limited(sim, requests_per_minute=1, requests_burst=1000,
                               per_server={"requests_per_minute": 1, "requests_burst": 300},
                               per_model={"claude-*": {"requests_per_minute": 1, "requests_burst": 250}})
        codes = self.storm(gateway, 3000)
        self.assertEqual(codes, {"2xx": 250, "4xx": 2750, "5xx": 0})
        left = {next(iter(scope)): scope["limits"]["requests_per_minute"]["remaining"]
                for scope in gateway.get("/tenants/acme").json()["scopes"]}
        # What was refused was taken from none of them; a minute's worth may have come back meanwhile.
        self.assertLessEqual(abs(left["tenant"] - 750), 1)
        self.assertLessEqual(abs(left["server"] - 50), 1)
        self.assertEqual(left["models"], 0)

    def test_money_of_the_day(self):
        sim = self.sim()
        # Every request reserves the same bound and the simulator reports no usage: the bound stays spent.
        sim.default("nousage")
        gateway = self.limited(sim, usd_per_day=1000, concurrent=100000)
        self.assertEqual(gateway.post(BODY).status, 200)
        # The answer is out before its end is counted.
        spent = harness.wait_for(lambda: gateway.metrics().sum("sluice_usd_total", tenant="acme"), "the bound is counted")
        gateway.stop()
        gateway = self.limited(sim, usd_per_day=round(spent * 250.5, 9), concurrent=100000)
        sim.reset()
        sim.default("nousage")
        codes = self.storm(gateway, 3000)
        self.assertEqual(codes, {"2xx": 250, "4xx": 2750, "5xx": 0})
        refused = gateway.post(BODY)
        self.assertEqual(refused.status, 402)
        self.assertEqual(refused.json()["error"]["data"]["limit"], "usd_per_day")

    def test_places(self):
        sim = self.sim()
        sim.default("latency-20ms")
        gateway = self.limited(sim, concurrent=7)
        codes = self.storm(gateway, 3000)
        self.assertEqual(codes["5xx"], 0)
        self.assertGreater(codes["4xx"], 0)
        self.assertLessEqual(sim.stats()["in_flight_high"], 7)
        self.assertEqual(gateway.post(BODY).status, 200)  # every place was given back

    def test_tokens_a_minute(self):
        sim = self.sim()
        sim.default("nousage")
        gateway = self.limited(sim, tokens_per_minute=60000, tokens_burst=60000)
        self.assertEqual(gateway.post(BODY).status, 200)
        gateway.stop()
        estimate = (len(sim.last_body()) + 3) // 4 + 10
        gateway = self.limited(sim, tokens_per_minute=1, tokens_burst=estimate * 200)
        sim.reset()
        sim.default("nousage")
        codes = self.storm(gateway, 2000)
        self.assertEqual(codes, {"2xx": 200, "4xx": 1800, "5xx": 0})


if __name__ == "__main__":
    harness.main()
