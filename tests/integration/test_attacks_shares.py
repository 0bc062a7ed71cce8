"""One tenant with a valid key takes what all share: others are served meanwhile, it is told why it is not.

The programs are bench/attacks/shares.py; bench/attack_table.py measures honest callers beside them. ctest: timeout=120
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
sys.path.insert(0, os.path.join(HERE, "../../bench/attacks"))
import harness  # noqa: E402
import programs  # noqa: E402
import servers  # noqa: E402
import shares  # noqa: E402

QUICK = servers.message(servers.MODELS["quick"])
KEPT = 64 << 10  # bytes of a small body, as limits.h says


class Bodies(harness.Case):
    def attacked(self, **limits):
        """A gateway with room for 24 bodies of the largest size, and what attacks it."""
        settings = servers.settings(self.sim(), limits=shares.HELD)
        narrow = json.loads(json.dumps(settings["plans"]["standard"]))
        narrow["limits"].update(limits)
        settings["plans"]["narrow"] = narrow
        settings["tenants"][1]["plan"] = "narrow"
        gateway = self.gateway(settings)
        return gateway, servers.gateway_target(gateway, "clear", servers.answer_size(gateway))

    def padded(self, size):
        return QUICK + b" " * (size - len(QUICK))

    def assert_others_are_served(self, gateway):
        for size in (len(QUICK), KEPT, KEPT + 1, programs.MEG):
            for _ in range(5):
                self.assert_result(gateway.post(self.padded(size)))

    def assert_counted(self, gateway, limit, count):
        harness.wait_for(lambda: gateway.metrics().sum("sluice_limit_decisions_total", limit=limit,
                                                       decision="refused") == count, f"{count} counted as {limit}")

    def test_of_one_tenant(self):
        gateway, target = self.attacked()
        with shares.Hoard(target) as hoard:
            self.assertLessEqual(hoard.bytes, 13 * programs.MEG)
            self.assertGreater(hoard.bytes, 11 * programs.MEG)
            self.assert_others_are_served(gateway)
            answer = gateway.post(self.padded(KEPT), key=servers.ATTACKER_KEY)
            self.assert_error(answer, 503, 503, "overloaded")
            self.assertEqual((answer.json()["error"]["data"]["limit"], answer.json()["error"]["data"]["scope"]),
                             ("held_bytes", "tenant"))
            self.assertEqual(answer.headers["retry-after"], "1")
            self.assert_counted(gateway, "held_bytes", hoard.refused + 1)
        harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 0, "nothing in flight")
        for _ in range(30):  # nothing is held by what has gone
            self.assert_result(gateway.post(self.padded(programs.MEG), key=servers.ATTACKER_KEY))

    def test_of_a_stranger(self):
        """Nothing is held for whom nobody knows, and so nobody is told that there is no room."""
        gateway, target = self.attacked()
        with shares.Hoard(target):
            target.key = "sk-nobody-0123456789abcdef"
            with shares.Hoard(target, most=20) as hoard:
                self.assertEqual(hoard.kept, [])
            self.assert_error(gateway.post(self.padded(programs.MEG), key=target.key), 401, 401, "unauthorized")
            self.assert_others_are_served(gateway)

    def test_of_copies(self):
        gateway, target = self.attacked()
        with shares.Hoard(target, "Idempotency-Key: the-same") as hoard:
            self.assertLessEqual(hoard.bytes, 13 * programs.MEG)
            self.assert_others_are_served(gateway)

    def test_of_copies_where_one_request_may_be_in_flight(self):
        """Large ones count as if they were; small ones wait as they like."""
        gateway, target = self.attacked(concurrent=1)
        with shares.Hoard(target, "Idempotency-Key: the-same", most=30) as hoard:
            large = [size for size in hoard.sizes if size > KEPT]
            self.assertEqual(len(large), 2)  # the first, and a copy
            self.assertEqual(len(hoard.kept), 30)
            answer = gateway.post(target.hang[1] + b" " * KEPT, {"Idempotency-Key": "the-same"},
                                  key=servers.ATTACKER_KEY)
            self.assert_error(answer, 429, 429, "concurrency")
            self.assertEqual(answer.json()["error"]["data"]["limit"], "copies")
            self.assert_counted(gateway, "copies", hoard.refused + 1)
            self.assert_others_are_served(gateway)


if __name__ == "__main__":
    harness.main()
