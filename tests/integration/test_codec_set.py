"""SLUICE_CODEC takes another instruction set for the codec; what the machine has not is refused."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness


class CodecSet(unittest.TestCase):
    def setUp(self):
        self.sim = harness.Sim()
        self.addCleanup(self.sim.stop)

    def answer(self, env):
        gateway = harness.Gateway(harness.config(self.sim), env=env)
        self.addCleanup(gateway.stop)
        answer = gateway.sample("a text with \u00e9, \u6a21 and \"quotes\"")
        self.assertEqual(answer.status, 200, answer)
        return answer.json()["result"]["content"], self.sim.last_body()

    def test_plain_c_answers_as_the_best_set_does(self):
        self.assertEqual(self.answer({"SLUICE_CODEC": "portable"}), self.answer({}))

    def test_a_set_that_is_not_there_is_refused_by_name(self):
        gateway = harness.Gateway(harness.config(self.sim), env={"SLUICE_CODEC": "sse9"}, wait_ready=False)
        self.addCleanup(gateway.kill)
        gateway.wait_stderr('SLUICE_CODEC is "sse9", which is no instruction set')
        self.assertNotEqual(gateway.wait(), 0)


if __name__ == "__main__":
    unittest.main()
