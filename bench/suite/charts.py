"""Which charts there are, and which scenarios they are made of; one that has no figures is left out."""

from suite import svg

SIDE_BY_SIDE = ("h2c-1", "h2c-64", "h2c-512", "h1-64", "lines-64", "tls-64", "provider-tls-64", "tls-both-64", "redis")
NODE = ("portkey", "sdk")
LINES = {  # chart: scenario, metric, title, words of the axes, x logarithmic, y logarithmic
    "throughput": ("rate", "rate", "Answers a second against requests a second; last: 64 in flight, closed loop",
                   "offered, all of it answered; the last points near direct's are bounded by the load's CPU", "answered", False, False),
    "p99": ("rate", "p99_ms", "p99, from when each request was due", "requests a second offered", "ms", False, True),
    "tenants": ("tenants", "cpu_us", "CPU of a request against tenants", "tenants", "us", True, False),
    "models": ("models", "cpu_us", "CPU of a request against models", "models", "us", True, False),
    "body": ("body", "cpu_us", "CPU of a request against its size", "bytes", "us", True, True),
    "streams": ("streams", "event_us", "CPU of an event against open streams", "streams", "us", True, False),
}


def three(spread):
    return spread["median"], spread["min"], spread["max"]


def points_of(result, scenario):
    return result["scenarios"].get(scenario, {}).get("points", ())


def series(result, scenario, metric):
    found = {}
    for point in points_of(result, scenario):
        for server, of in point["servers"].items():
            if metric in of:
                found.setdefault(server, []).append((point["x"], *three(of[metric])))
    return found


def ends(result, found):
    """Where the lines of throughput end: at what was answered with 64 in flight. More than that cannot be offered for long."""
    for scenario in ("h2c-64", "direct"):
        for server, (last, *_) in series(result, scenario, "rate").items():
            if server in found:
                found[server].append((last[1], *last[1:]))


def side_by_side(result, names, wanted):
    groups = {}
    for name in names:
        for point in points_of(result, name):
            members = {server: three(of["cpu_us"]) for server, of in point["servers"].items()
                       if "cpu_us" in of and wanted(server)}
            if members:
                groups[name] = members
    return groups


def all_of(result):
    """Name of a chart to its SVG."""
    charts = {}
    plain = side_by_side(result, SIDE_BY_SIDE, lambda server: server not in NODE)
    if plain:
        charts["cpu"] = svg.bars("CPU of a request, server alone", "us", plain)
    with_node = side_by_side(result, ("h1-64",), lambda server: True)
    if any(server in NODE for group in with_node.values() for server in group):
        charts["cpu-node"] = svg.bars("CPU of a request, HTTP/1.1, what is written in JavaScript beside it", "us", with_node,
                                      log_y=True)
    for name, (scenario, metric, title, x_name, y_name, log_x, log_y) in LINES.items():
        found = series(result, scenario, metric)
        if name == "throughput":
            ends(result, found)
        if found:
            charts[name] = svg.lines(title, x_name, y_name, found, log_x, log_y)
    return charts
