"""10,000 tenants cost no more CPU a request than one (DESIGN 6: at most 1.1 times).

ctest: once timeout=600

Counted, not timed: `bench/run --scenario tenants` has the times. What more tenants take is memory that was not touched for
10,000 requests, so callgrind simulates the caches.
"""
import http.client
import os
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import callgrind
import harness

BODY = (b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":'
        b'[{"role":"user","content":{"type":"text","text":"hello"}}],"maxTokens":10}}')
TENANTS = 10000
COUNTED = 3000  # requests, after as many as make each tenant's slots and series
# KCachegrind's estimate of cycles: an instruction, what the first level misses, what the last one misses.
PRICES = {"Ir": 1, "I1mr": 10, "D1mr": 10, "D1mw": 10, "ILmr": 100, "DLmr": 100, "DLmw": 100}
CACHES = "--cache-sim=yes --LL=1048576,16,64"  # the last level is what a core has for itself, not what it shares


class Cost(harness.Case):
    def settings(self, sim, keys):
        entries = [harness.tenant(f"t{i}", key) for i, key in enumerate(keys)]
        settings = harness.config(sim, tenants=entries, metrics={"tenants": TENANTS})
        settings["plans"]["standard"]["limits"].update(requests_per_minute=10**9, requests_burst=10**9)
        return settings

    def ask(self, gateway, keys, count):
        """One after the other, on one connection, in turns for each key."""
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(gateway.url).netloc, timeout=harness.PATIENCE_S)
        for i in range(count):
            connection.request("POST", "/v1/sampling", BODY, {
                "Content-Type": "application/json", "Authorization": "Bearer " + keys[i % len(keys)]})
            answer = connection.getresponse()
            answer.read()
            self.assertEqual(answer.status, 200)
        connection.close()

    def per_request(self, sim, tenants, before):
        """{event: count}; the first `before` requests are not in it."""
        keys = [f"sk-test-cost-{i:08d}" for i in range(tenants)]
        profile = callgrind.worker_between(self, self.settings(sim, keys), lambda gateway: self.ask(gateway, keys, before),
                                           lambda gateway: self.ask(gateway, keys, COUNTED), CACHES)
        return {event: count / COUNTED for event, count in profile.events.items()}

    def test_cost_of_a_request(self):
        sim = self.sim()
        one, many = self.per_request(sim, 1, 400), self.per_request(sim, TENANTS, TENANTS)
        print(f"1 tenant: {one}\n{TENANTS} tenants: {many}")
        one_cycles, many_cycles = (sum(price * counts[event] for event, price in PRICES.items()) for counts in (one, many))
        ratio = many_cycles / one_cycles
        print(f"cycles, estimated: {ratio:.3f} times as many")
        self.assertLessEqual(ratio, 1.1)


if __name__ == "__main__":
    harness.main()
