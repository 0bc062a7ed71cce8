"""What the codec takes for the inputs of bench/codec/corpus.py, against the table codec_cost.json.

ctest: once timeout=300

Counts, not times: instructions by callgrind, allocations, bytes copied out of long spans. How a value
is judged: tests/support/exact_table.py; `test_codec_cost.py --write` makes the table anew.
"""
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../bench/codec"), os.path.join(HERE, "../support")]
import corpus
import drive
from exact_table import ExactTable

TABLE = ExactTable(os.path.join(HERE, "codec_cost.json"))

# row -> what is run; the value is in instructions per byte of the input
PER_BYTE = {
    "small": "request.anthropic:small",
    "typical": "request.anthropic:typical",
    "pretty": "request.anthropic:pretty",
    "tool loop": "request.anthropic:tool_loop",
    "many": "request.anthropic:many",
    "long escapes": "request.anthropic:long_escapes",
    "CJK": "request.anthropic:cjk",
    "image": "request.anthropic:image",
    "typical to OpenAI": "request.openai:typical",
    "tool loop to OpenAI": "request.openai:tool_loop",
    "small answer of Anthropic": "answer.anthropic:answer_small.anthropic",
    "tools in an answer of Anthropic": "answer.anthropic:answer_tools.anthropic",
    "long answer of Anthropic": "answer.anthropic:answer_long.anthropic",
    "small answer of OpenAI": "answer.openai:answer_small.openai",
    "tools in an answer of OpenAI": "answer.openai:answer_tools.openai",
    "long answer of OpenAI": "answer.openai:answer_long.openai",
}
# row -> what is run; the value is in instructions per event of the stream
PER_EVENT = {
    "events of Anthropic": "stream.anthropic:stream.anthropic",
    "events of OpenAI": "stream.openai:stream.openai",
}
# The same in plain C, which any machine can be left with.
PORTABLE = ("typical", "tool loop", "CJK", "image")
SET = "avx2"  # what the table is of
# Whose long spans must not be copied: at most 200 of them (a list has 512 entries), and no JSON that
# has to be escaped into a string.
BORROWED = [row for row in PER_BYTE.values() if row.startswith("request.") and row not in (
    "request.anthropic:many", "request.openai:tool_loop")]


class Costs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        inputs, cls.digest = corpus.write(cls.directory.name)
        cls.events = {}
        for row in PER_EVENT.values():
            with open(inputs[row.partition(":")[2]][1], "rb") as file:
                cls.events[row] = file.read().count(b"\ndata: ") + 1
        cls.mix = ["request.anthropic:" + name for name in inputs if name.startswith("mix")]
        wanted = [*PER_BYTE.values(), *PER_EVENT.values(), *cls.mix]
        cls.costs = cls.count(wanted, SET)
        cls.portable = cls.count([PER_BYTE[name] for name in PORTABLE], "portable")

    @classmethod
    def count(cls, rows, name):
        """{row: Cost}"""
        arguments = {row: row.replace(":", f":{cls.directory.name}/", 1) for row in rows}
        costs = drive.run(arguments.values(), count=True, name=name)
        return {row: costs[argument] for row, argument in arguments.items()}

    @classmethod
    def portable_values(cls):
        return {name: cls.portable[PER_BYTE[name]].instructions / cls.portable[PER_BYTE[name]].size
                for name in PORTABLE}

    @classmethod
    def event_values(cls):
        """{row: instructions per event}"""
        return {name: cls.costs[row].instructions / cls.events[row] for name, row in PER_EVENT.items()}

    @classmethod
    def values(cls):
        """{row: instructions per byte}"""
        found = {name: cls.costs[row].instructions / cls.costs[row].size for name, row in PER_BYTE.items()}
        found["mix of 160"] = (sum(cls.costs[row].instructions for row in cls.mix) /
                               sum(cls.costs[row].size for row in cls.mix))
        return found

    def test_inputs_are_the_ones_of_the_table(self):
        self.assertEqual(self.digest, TABLE.read()["digest"], "bench/codec/corpus.py makes other bytes than before")

    def test_every_input_is_translated(self):
        for row, cost in self.costs.items():
            with self.subTest(row):
                self.assertEqual(cost.error, "ok")
                self.assertGreater(cost.out, 0)

    def test_instructions_per_byte(self):
        TABLE.check(self, "instructions per byte", self.values())

    def test_instructions_per_byte_in_plain_c(self):
        TABLE.check(self, "instructions per byte, portable", self.portable_values())

    def test_instructions_per_event(self):
        """From the bytes of the connection to the JSON-RPC response; 1,200 instructions are about 100 ns."""
        TABLE.check(self, "instructions per event", self.event_values())

    def test_nothing_is_allocated(self):
        """The arena's chunks come from a pool, so a request in the steady state asks libc for nothing."""
        known = TABLE.read()["allocations"]
        for row, cost in self.costs.items():
            with self.subTest(row):
                self.assertLessEqual(cost.allocations, known.get(row, 0))

    def test_long_spans_are_borrowed(self):
        for row in [*BORROWED, *self.mix]:
            with self.subTest(row):
                self.assertGreaterEqual(self.costs[row].borrowed, self.costs[row].long)


def write_table():
    Costs.setUpClass()
    TABLE.write({
        "digest": Costs.digest,
        "instructions per byte": TABLE.renewed("instructions per byte", Costs.values()),
        "instructions per byte, portable": TABLE.renewed("instructions per byte, portable", Costs.portable_values()),
        "instructions per event": TABLE.renewed("instructions per event", Costs.event_values(), 1),
        "allocations": {row: cost.allocations for row, cost in Costs.costs.items() if cost.allocations},
    })
    Costs.doClassCleanups()


if __name__ == "__main__":
    if drive.ready(SET):
        print("SKIPPED:", drive.ready(SET))
        sys.exit(77)
    if "--write" in sys.argv:
        write_table()
    else:
        unittest.main(verbosity=2)
