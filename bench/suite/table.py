"""Results as Markdown."""

from suite.scenario import BARE, UNITS


def short(value):
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def words(spread):
    """Median and range."""
    if spread is None:
        return ""
    if len(spread["rounds"]) == 1:
        return short(spread["median"])
    return f"{short(spread['median'])} [{short(spread['min'])}–{short(spread['max'])}]"


def row(*cells):
    return "| " + " | ".join(map(str, cells)) + " |"


def ratio_of(point, server):
    """The gateways' figure over this server's, or this one's over its own at the first point: below 1 is less. Files up
    to 2026-11-26-0153 have one over the bare provider's, too."""
    if "times_first" in point:
        return words(point["times_first"].get(server))
    return ", ".join(f"{words(others[server])}" + ("" if ours == "sluice" else f" ({ours})")
                     for ours, others in point["times_sluice"].items() if server in others and server != BARE)


def scenario(name, result):
    """One scenario: a line, and a table of its points and servers."""
    lines = [f"## {name}", f"{result.get('about', '')}.", ""]
    if "void" in result:
        return lines + [f"**Void**: {result['void'].splitlines()[0]}", ""]
    points = result["points"]
    metrics = list(dict.fromkeys(metric for point in points for of in point["servers"].values() for metric in of))
    lead = [result["x"]] if result["x"] else []
    ratio = "times the first" if any("times_first" in point for point in points) else "sluice is, times this"
    lines += [row(*lead, "server", *(UNITS[metric] for metric in metrics), ratio), "|---" * (len(lead) + len(metrics) + 2) + "|"]
    for point in points:
        for server, of in point["servers"].items():
            lines.append(row(*([point["x"]] if lead else []), server, *(words(of.get(metric)) for metric in metrics),
                             ratio_of(point, server)))
    return lines + [""]


def page(result, front=(), charts=()):
    """The whole run; `front` are lines that come before the scenarios, `charts` names of files beside it."""
    machine, effort = result["machine"], result["effort"]
    lines = [f"# bench/run, {result['date']}", "",
             f"Commit {result['commit']}; {machine['cpu']}, {machine['cpus']} CPUs, Linux {machine['kernel']}, load average "
             f"{machine['load_average_before']:.2f} before. {effort['rounds']} rounds of {effort['seconds']:g} s"
             + (", quick" if effort["quick"] else "") + "; median [least–most]. Server on CPU 0, the rest on CPU 1.", ""]
    lines += [f"Without {server}: {why}." for server, why in result["missing"].items()]
    if result["void"]:
        lines += ["", f"**This run is void**: requests failed in {', '.join(result['void'])}.", ""]
    lines += ["", *front]
    if charts:
        lines += ["## Charts", *(f"![{chart}]({chart})" for chart in charts), ""]
    for name, one in result["scenarios"].items():
        lines += scenario(name, one)
    return "\n".join(lines) + "\n"
