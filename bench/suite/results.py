"""What a run leaves: one JSON file, and Markdown and charts made of it alone."""

import json
import os

from suite import charts, goals, stalls, table


def write(directory, name, result):
    """The file, the tables and the charts; returns the paths. Numbers that are none (NaN) do not get into JSON."""
    os.makedirs(directory, exist_ok=True)
    paths = [os.path.join(directory, name + ".json")]
    with open(paths[0], "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1, allow_nan=False)
        file.write("\n")
    parts = {f"{name}-{chart}.svg": text for chart, text in charts.all_of(result).items()}
    parts[name + ".md"] = table.page(result, goals.lines(result) + stalls.lines(result), list(parts))
    for part, text in parts.items():
        paths.append(os.path.join(directory, part))
        with open(paths[-1], "w", encoding="utf-8") as file:
            file.write(text)
    return paths


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def spread(result, scenario, metric, server="sluice", x=None):
    """Of the first point where `x` is None. None where it was not measured."""
    for point in result["scenarios"].get(scenario, {}).get("points", ()):
        if x is None or point["x"] == x:
            return point["servers"].get(server, {}).get(metric)
    return None


def figure(*what, **where):
    """The median of that."""
    found = spread(*what, **where)
    return found["median"] if found else None
