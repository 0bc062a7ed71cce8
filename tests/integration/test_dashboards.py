"""deploy/grafana: every query of the dashboards finds data in a real Prometheus that scraped a real gateway,
with a Redis, an issuer of tokens, an MCP server and a provider that fails, so that all series are there.

ctest: once timeout=120
"""

import json
import os
import re
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import jwt_issuer  # noqa: E402
import mcp_rig  # noqa: E402
import metric_names  # noqa: E402
import prometheus  # noqa: E402
import redis_server  # noqa: E402
from mcp_server import event, result, sampling  # noqa: E402

FOLDER = os.path.join(harness.SOURCE, "deploy/grafana")
NAMES = ("service", "tenant")
GROUPING = {"job", "instance", "le"}  # labels that no metric of ours has
POOR_KEY = "sk-test-poor-0123456789"


def dashboard(name):
    with open(os.path.join(FOLDER, name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def queries(board):
    """(panel, expression) of each."""
    return [(panel["title"], target["expr"]) for panel in board["panels"] for target in panel.get("targets", [])]


def in_prometheus(expression, instance):
    """What Grafana sends: its variables replaced."""
    for variable, value in (("$__rate_interval", "5s"), ("$__range", "1m"), ("$instance", instance),
                            ("$tenant", ".*")):
        expression = expression.replace(variable, value)
    assert "$" not in expression, expression
    return expression


class Files(harness.Case):
    def test_dashboards_can_be_told_apart(self):
        boards = [dashboard(name) for name in NAMES]
        for key in ("uid", "title"):
            self.assertEqual(len({board[key] for board in boards}), len(boards), key)
        for board in boards:
            ids = [panel["id"] for panel in board["panels"]]
            self.assertEqual(len(ids), len(set(ids)), board["title"])

    def test_the_data_source_is_a_variable_everywhere(self):
        for name in NAMES:
            board = dashboard(name)
            self.assertEqual(board["templating"]["list"][0]["type"], "datasource")
            for place in board["panels"] + board["templating"]["list"]:
                if "targets" in place or place.get("type") == "query":
                    self.assertEqual(place["datasource"], {"type": "prometheus", "uid": "${datasource}"})

    def test_panels_say_what_they_show_and_do_not_overlap(self):
        for name in NAMES:
            taken = set()
            for panel in dashboard(name)["panels"]:
                at = panel["gridPos"]
                cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
                with self.subTest(name, panel=panel["title"]):
                    self.assertFalse(cells & taken)
                    self.assertLessEqual(at["x"] + at["w"], 24)
                    self.assertTrue(panel["type"] == "row" or panel["description"].endswith("."))
                taken |= cells

    def test_queries_ask_for_metrics_and_labels_that_there_are(self):
        metrics = metric_names.known()
        for name in NAMES:
            for panel, expression in queries(dashboard(name)):
                names = metric_names.used(expression, metrics)
                with self.subTest(name, panel=panel):
                    self.assertLessEqual(names, set(metrics))
                    has = GROUPING.union(*(metrics[one] for one in names))
                    self.assertLessEqual(metric_names.labels_used(expression), has)


class Queries(mcp_rig.Case):
    """One gateway under load, and every query asked."""

    def start(self):
        sim = self.sim()
        issuer = jwt_issuer.Issuer(self)
        settings = harness.config(sim)
        settings["retries"] = {"attempts": 1}
        settings["store"] = {"kind": "redis", "url": redis_server.Redis(self).url, "deadline": "5s"}
        settings["identity"] = {"jwt": [issuer.settings()]}
        settings["providers"]["failing"] = harness.provider(sim, "openai", check={
            "path": "/health", "interval": "1s"})
        settings["models"].append(harness.model("sim-error-529", "failing"))
        settings["tenants"].append(harness.tenant("poor", POOR_KEY, limits={
            "requests_per_minute": 1, "requests_burst": 1}))
        self.asking = self.server()
        settings["mcp_servers"] = {"raw": {"url": self.asking.url}}
        settings["plans"]["standard"]["mcp_servers"] = {"allow": ["*"]}
        gateway = self.gateway(settings)
        self.asked = self.client(gateway.url + "/mcp/raw")
        self.asked.hello()
        return gateway

    def work(self, gateway, round_):
        """A little of everything."""
        gateway.sample()
        gateway.sample(headers={"Idempotency-Key": f"once-{round_}"})
        gateway.sample(modelPreferences={"hints": [{"name": "sim-error-529"}]})
        gateway.sample(key=POOR_KEY)
        gateway.sample(key="no-such-key-0123456789")
        reply = self.asked.call(round_)
        stream = self.asking.take_call().stream()
        stream.send(event(sampling(round_)))
        self.asking.answer()
        stream.finish(event(result(round_)))
        reply.body()

    def test_every_query_and_every_variable_finds_data(self):
        gateway = self.start()
        server = prometheus.Prometheus(self, [gateway])
        left = {(name, panel, in_prometheus(expression, ".*"))
                for name in NAMES for panel, expression in queries(dashboard(name))}
        self.assertGreater(len(left), 40)
        deadline = time.monotonic() + 3 * harness.PATIENCE_S
        round_ = 0
        while left:
            if time.monotonic() > deadline:
                self.fail("no data for:\n" + "\n".join(map(str, sorted(left))))
            self.work(gateway, round_)
            round_ += 1
            left = {row for row in left if not server.values(row[2])}
        self.variables_offer_what_there_is(gateway, server)

    def variables_offer_what_there_is(self, gateway, server):
        wanted = {"instance": gateway.admin.removeprefix("http://"), "tenant": "acme"}
        for variable in dashboard("tenant")["templating"]["list"][1:]:
            selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"]).groups()
            self.assertIn(wanted[label], server.label_values(selector, label))


if __name__ == "__main__":
    if shutil.which("prometheus") is None:
        print("SKIPPED: prometheus is not installed (Debian package prometheus)")
        sys.exit(77)
    harness.main()
