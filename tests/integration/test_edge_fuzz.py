"""A few seconds of tests/fuzz/edge_grammar.py; .ci/nightly runs it for hours.
ctest: timeout=180
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fuzz"))
import edge_grammar  # noqa: E402

if __name__ == "__main__":
    edge_grammar.main(["--seconds", "8"])
