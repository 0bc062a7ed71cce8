"""Our codec and simdjson make the same JSON of every input that their times are compared for.

ctest: once

What bench/codec/compare_table.py measures, without measuring: that needs a machine with nothing else to do.
"""
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../bench/codec")]
import compare_table
import drive


class Compare(unittest.TestCase):
    def test_all_competitors_write_the_same(self):
        with tempfile.TemporaryDirectory() as directory:
            jobs = compare_table.classes(directory)
            for name in ("avx2", "portable"):
                with self.subTest(name):
                    self.assertEqual(compare_table.outputs_checked(name, jobs), sum(map(len, jobs.values())))


if __name__ == "__main__":
    if not os.path.exists(drive.binary("codec_compare_avx2")):
        print("SKIPPED: there is no codec_compare, which is built where libsimdjson-dev is installed")
        sys.exit(77)
    unittest.main()
