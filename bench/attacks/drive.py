"""Repeats one attack for a while: reads a pickled dict from stdin, prints what the last run saw.

    target   programs.Target
    program  name of one in every.py, or "shared:NAME" for attacks_tls.py NAME in `shared`
    seconds  after which no run begins any more
At most ten runs a second, one at a time; most runs are one connection.
"""

import os
import pickle
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import every  # noqa: E402

PAUSE_S = 0.1


def run_own(name, target):
    try:
        return every.BY_NAME[name].run(target)
    except OSError as error:
        return f"closed ({type(error).__name__})"


def run_shared(name, target, directory):
    path, body = target.quick
    environment = {**os.environ, "ATTACK_PATH": path, "ATTACK_KEY": target.key, "ATTACK_BODY": body.decode(),
                   "ATTACK_SIZE": str(target.size)}
    clear = "clear:" if target.way == "clear" else ""
    ran = subprocess.run(
        [sys.executable, os.path.join(directory, "attacks_tls.py"), target.host, str(target.port), clear + name],
        env=environment, capture_output=True, text=True, check=False)
    return ran.stdout.removeprefix(name).strip().rstrip(";") or ran.stderr.strip().rpartition("\n")[2]


def main():
    job = pickle.load(sys.stdin.buffer)
    name, runs, seen = job["program"], 0, ""
    deadline = time.monotonic() + job["seconds"]
    while runs == 0 or time.monotonic() < deadline:
        started = time.monotonic()
        if name.startswith("shared:"):
            seen = run_shared(name.partition(":")[2], job["target"], job["shared"])
        else:
            seen = run_own(name, job["target"])
        runs += 1
        time.sleep(max(0.0, PAUSE_S - (time.monotonic() - started)))
    print(f"{runs}\t{seen}")


if __name__ == "__main__":
    main()
