"""One tenant with a valid key takes what all share: others are served meanwhile, it is told why it is not.

The programs are bench/attacks/shares.py; bench/attack_table.py measures honest callers beside them. ctest: timeout=300
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
import test_tool_loop  # noqa: E402

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

    def settled(self, gateway, hoard):
        """Bytes that are held, once all that were refused have been told."""
        harness.wait_for(lambda: hoard.all_wait(gateway.metrics().sum("sluice_in_flight")), "what is left waits")
        return sum(hoard.sizes)

    def assert_counted(self, gateway, limit, count):
        harness.wait_for(lambda: gateway.metrics().sum("sluice_limit_decisions_total", limit=limit,
                                                       decision="refused") == count, f"{count} counted as {limit}")

    def test_of_one_tenant(self):
        gateway, target = self.attacked()
        with shares.Hoard(target) as hoard:
            held = self.settled(gateway, hoard)
            self.assertLessEqual(held, 13 * programs.MEG)
            self.assertGreater(held, 11 * programs.MEG)
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
                harness.wait_for(lambda h=hoard: h.all_wait(0), "all are refused")
            self.assert_error(gateway.post(self.padded(programs.MEG), key=target.key), 401, 401, "unauthorized")
            self.assert_others_are_served(gateway)

    def test_of_copies(self):
        gateway, target = self.attacked()
        with shares.Hoard(target, "Idempotency-Key: the-same") as hoard:
            self.assertLessEqual(self.settled(gateway, hoard), 13 * programs.MEG)
            self.assert_others_are_served(gateway)

    def test_of_copies_where_one_request_may_be_in_flight(self):
        """Large ones count as if they were; small ones wait as they like."""
        gateway, target = self.attacked(concurrent=1)
        with shares.Hoard(target, "Idempotency-Key: the-same", most=30) as hoard:
            self.settled(gateway, hoard)
            large = [size for size in hoard.sizes if size > KEPT]
            self.assertEqual(len(large), 2)  # the first, and a copy
            self.assertGreater(len(hoard.kept), 20)
            answer = gateway.post(target.hang[1] + b" " * KEPT, {"Idempotency-Key": "the-same"},
                                  key=servers.ATTACKER_KEY)
            self.assert_error(answer, 429, 429, "concurrency")
            self.assertEqual(answer.json()["error"]["data"]["limit"], "copies")
            self.assert_counted(gateway, "copies", hoard.refused + 1)
            self.assert_others_are_served(gateway)


class Remembered(test_tool_loop.LoopCase):
    """Honest loops that are in the midst go on, though another tenant leaves more behind than there is room for."""
    CALLS = servers.MODELS["calls"]  # 64 in an answer

    def attacked(self, thinker, **store):
        """A gateway that refuses calls which it does not remember, and what attacks it: the third tenant."""
        settings = self.settings(thinker, plan={"unknown_tool_calls": "refuse"}, store={"kind": "memory", **store})
        settings["providers"]["sim"] = harness.provider(self.sim(), "anthropic")
        settings["models"].append(harness.model(self.CALLS, "sim", context=10000000))
        settings["plans"]["standard"]["models"] = {"allow": ["thinking"]}
        settings["plans"]["flooding"] = {**settings["plans"]["standard"], "models": {"allow": [self.CALLS]}}
        settings["tenants"].append(harness.tenant("fourth", servers.ATTACKER_KEY, plan="flooding"))
        gateway = self.gateway(settings)
        port = int(gateway.url.rpartition(":")[2])
        return gateway, programs.Target("127.0.0.1", port, "clear", (), (), (), 0, servers.ATTACKER_KEY,
                                        calls=(servers.PATH, servers.message(self.CALLS)))

    def evicted(self, gateway, kind):
        return gateway.metrics().sum("sluice_state_evictions_total", kind=kind)

    def assert_goes_on(self, gateway, thinker, loops):
        for messages in loops:
            _, result = self.loop(gateway, messages)
            self.assertEqual(harness.text_of(result), "10 rounds")
            self.assertEqual(self.adjustments(result), [])
        self.assertEqual(thinker.problems, [])

    def test_calls(self):
        """1,177,600 of them: there is room for 1,048,576."""
        thinker = self.thinker()
        gateway, target = self.attacked(thinker)
        loops = [self.loop(gateway, rounds=3)[0] for _ in range(10)]
        self.assertEqual(shares.asked_often(target, target.calls, 18400), 18400)
        self.assertGreater(self.evicted(gateway, "call"), 0)
        self.assert_goes_on(gateway, thinker, loops)

    def test_blocks(self):
        """12 MB of them: there is room for 4."""
        thinker = self.thinker(length=60000)
        gateway, _ = self.attacked(thinker, blocks={"bytes": "4MiB", "each": "256KiB"})
        messages, _ = self.loop(gateway, rounds=4)
        for _ in range(200):
            self.result_of(self.ask(gateway, [test_tool_loop.ASK], key=test_tool_loop.THIRD_KEY))
        self.assertGreater(self.evicted(gateway, "blocks"), 0)
        self.assert_goes_on(gateway, thinker, [messages])


if __name__ == "__main__":
    harness.main()
