"""Runs scenarios one after the other and keeps what they found; one that is void does not keep the next from running."""

import sys
import time
import traceback

import harness
from suite import table
from suite.stats import Void


class Progress:
    """One line on stderr that changes, or lines where nobody sees it change."""

    def __init__(self, total, stream=sys.stderr):
        self.total, self.number, self.stream, self.started = total, 0, stream, time.monotonic()

    def __call__(self, words):
        passed = int(time.monotonic() - self.started)
        line = f"[{self.number}/{self.total}] {passed // 60}:{passed % 60:02d} {words}"
        if self.stream.isatty():
            self.stream.write("\r\x1b[K" + line[:150])
        else:
            self.stream.write(line + "\n")
        self.stream.flush()

    def clear(self):
        if self.stream.isatty():
            self.stream.write("\r\x1b[K")


def outcome_of(scenario, effort, missing, progress):
    """What it found, or why that is void. A fault of the suite's own is no reason to lose an hour's figures either."""
    try:
        return scenario.run(effort, missing, progress)
    except (Void, harness.Failure) as failure:
        why = str(failure)
    except Exception:  # pylint: disable=broad-except
        why = traceback.format_exc()
    return {"about": scenario.about, "void": why}


def run(chosen, effort, missing, progress, result, keep, show=print):
    """Adds to `result` and keeps it, scenario by scenario; each table is shown as soon as it is known."""
    result.update(scenarios={}, void=[])
    for progress.number, scenario in enumerate(chosen, 1):
        found = outcome_of(scenario, effort, missing, progress)
        result["scenarios"][scenario.name] = found
        progress.clear()
        show("\n".join(table.scenario(scenario.name, found)))
        if "void" in found:
            result["void"].append(scenario.name)
            show(found["void"])
        keep(result)
    return result
