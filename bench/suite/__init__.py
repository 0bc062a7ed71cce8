"""The parts of bench/run, small enough to be read one by one:

    install     what a run needs of Debian and npm          stats    percentiles, spreads, slopes, what makes a run void
    machine     CPUs, what a process has used of them       results  the JSON file
    work        what is asked                               table    Markdown
    servers     the gateway and what it is compared with    svg      charts
    load        h2load, and bench/load on a schedule        charts   which charts there are
    scenario    points, rounds, turns                       goals    what was wanted; stalls: what medians hide
    scenarios, events, mcp: the table of all there are
"""

import os
import sys

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = os.path.dirname(BENCH)
sys.path.insert(0, os.path.join(SOURCE, "tests/support"))  # harness, redis_server
