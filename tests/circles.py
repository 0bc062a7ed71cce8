#!/usr/bin/env python3
"""Checks that objects do not need each other in circles: which object needs which is read from their symbols.

    circles.py BUILD    BUILD is the directory of a build; prints its circles, and fails on a bad one

A circle is a set of objects each of which needs all others, directly or through more of them. It must not cross a folder,
and it may have at most OBJECTS_MAX members.
"""

import json
import os
import re
import shlex
import subprocess
import sys

OBJECTS_MAX = 4


def scan(lines):
    """({object: symbols that it defines}, {object: symbols that it needs}) from what `nm -A` prints."""
    defined, needed = {}, {}
    for line in lines:
        name, kind, symbol = re.fullmatch(r"(.+?):[0-9a-f]* +(\S) (\S+)", line).groups()
        if kind in "Uw":
            needed.setdefault(name, set()).add(symbol)
        elif kind.isupper() or kind == "u":
            defined.setdefault(name, set()).add(symbol)
    return defined, needed


def graph(defined, needed):
    """{object: the other objects that it needs}. A symbol that two objects define would be a guess: it is an error."""
    owner = {}
    for name, symbols in defined.items():
        for symbol in symbols:
            if owner.setdefault(symbol, name) != name:
                raise SystemExit(f"{symbol} is defined by {owner[symbol]} and by {name}")
    return {name: {owner[symbol] for symbol in needed.get(name, ()) if symbol in owner} - {name}
            for name in defined.keys() | needed.keys()}


def circles(needs):
    """The strongly connected components of more than one object (Tarjan, without recursion), the largest first."""
    order, low, stack, on_stack, found = {}, {}, [], set(), []
    for root in sorted(needs):
        if root in order:
            continue
        walk = [(root, iter(sorted(needs[root])))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while walk:
            name, rest = walk[-1]
            other = next(rest, None)
            if other is None:
                walk.pop()
                if walk:
                    low[walk[-1][0]] = min(low[walk[-1][0]], low[name])
                if low[name] == order[name]:
                    at = stack.index(name)
                    found.append(sorted(stack[at:]))
                    on_stack.difference_update(stack[at:])
                    del stack[at:]
            elif other not in order:
                order[other] = low[other] = len(order)
                stack.append(other)
                on_stack.add(other)
                walk.append((other, iter(sorted(needs[other]))))
            elif other in on_stack:
                low[name] = min(low[name], order[other])
    return sorted((circle for circle in found if len(circle) > 1), key=lambda circle: (-len(circle), circle))


def folders(circle):
    return sorted({os.path.dirname(name) for name in circle})


def is_bad(circle):
    return len(circle) > OBJECTS_MAX or len(folders(circle)) > 1


def breaches(found):
    """What is wrong with the circles `found`, one text each."""
    return [f"a circle of {len(circle)} objects in {', '.join(folders(circle))}: {' '.join(circle)}"
            for circle in filter(is_bad, found)]


def objects(build):
    """{path of an object: path of its source}, of the program. The codec's other instruction sets are it once more."""
    out = {}
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            words = shlex.split(entry["command"])
            path = os.path.join(entry["directory"], words[words.index("-o") + 1])
            match = re.fullmatch(r"(codec|tenants|routing|gateway)/CMakeFiles/\1\.dir/(.+)\.o", os.path.relpath(path, build))
            if match:
                out[path] = "/".join(match.groups())
    if not out:
        raise SystemExit(f"no objects under {build}")
    return out


def main():
    named = objects(sys.argv[1])
    lines = subprocess.run(["nm", "-A", "-g", *sorted(named)], capture_output=True, text=True, check=True).stdout.splitlines()
    defined, needed = ({named[path]: symbols for path, symbols in half.items()} for half in scan(lines))
    found = circles(graph(defined, needed))
    print(f"{len(named)} objects, {len(found)} circles: {', '.join(str(len(circle)) for circle in found) or 'none'}")
    for circle in found:
        print(f"{len(circle):3}  {'BAD ' if is_bad(circle) else ''}{', '.join(folders(circle))}: "
              + " ".join(map(os.path.basename, circle)))
    wrong = breaches(found)
    for text in wrong:
        print(f"tests/circles.py: {text}", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
