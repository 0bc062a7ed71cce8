"""deploy/prometheus: the rules are well-formed, every alert is tested both ways and has its page, and what
they ask for is what a gateway says.

ctest: once timeout=60
"""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import metric_names  # noqa: E402
import prometheus  # noqa: E402
import redis_server  # noqa: E402

FOLDER = os.path.join(harness.SOURCE, "deploy/prometheus")
RUNBOOK = os.path.join(harness.SOURCE, "deploy/docs/runbook")
PARTS = ["Do first", "Callers see", "It means", "Look", "Then", "Escalate"]
OF_PROMETHEUS = {"job", "instance", "le"}  # labels that no metric of ours has
OF_KUBERNETES = {"kube_pod_container_status_restarts_total": {"container"}}  # kube-state-metrics'


def read(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def alerts():
    """Name -> the text of its rule."""
    parts = re.split(r"^ +- alert: (\w+)$", read("rules.yml"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


class Rules(harness.Case):
    def promtool(self, *arguments, **options):
        run = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False, **options)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_promtool_is_content(self):
        self.promtool("check", "rules", os.path.join(FOLDER, "rules.yml"))
        self.promtool("test", "rules", os.path.join(FOLDER, "tests.yml"))

    def test_the_scrape_of_a_gateway_that_works_is_well_formed(self):
        sim = self.sim()
        gateway = self.gateway(harness.config(sim))
        for _ in range(3):
            self.assert_result(gateway.sample())
        self.promtool("check", "metrics", input=gateway.metrics_after(3).text)

    def test_every_alert_is_fired_and_kept_silent_by_the_tests(self):
        tests = read("tests.yml")
        self.assertGreater(len(alerts()), 9)
        for alert in alerts():
            with self.subTest(alert):
                self.assertIn(f"name: {alert} fires\n", tests)
                self.assertIn(f"name: {alert} is silent about ", tests)

    def test_every_alert_says_how_bad_it_is_and_what_to_do(self):
        for alert, rule in alerts().items():
            with self.subTest(alert):
                self.assertRegex(rule, r"labels: \{severity: (critical|warning)\}\n")
                self.assertRegex(rule, r'summary: "\S')
                page = f"deploy/docs/runbook/{alert}.md"
                self.assertIn(f"runbook_url: {page}\n", rule)
                self.assertTrue(os.path.isfile(os.path.join(harness.SOURCE, page)), page)

    def test_every_page_of_the_runbook_is_an_alert_s(self):
        pages = {name[:-3] for name in os.listdir(RUNBOOK)}
        self.assertEqual(pages - {"README"}, set(alerts()))

    def test_every_page_begins_with_what_to_do_and_has_the_same_parts(self):
        for alert in alerts():
            with self.subTest(alert), open(os.path.join(RUNBOOK, alert + ".md"), encoding="utf-8") as file:
                text = file.read()
                self.assertTrue(text.startswith(f"# {alert}\n\n**Do first**: "), text[:60])
                self.assertEqual(re.findall(r"^\*\*(.+?)\*\*", text, re.MULTILINE), PARTS)

    def test_the_runbook_lists_every_alert_as_bad_as_it_is(self):
        with open(os.path.join(RUNBOOK, "README.md"), encoding="utf-8") as file:
            listed = re.findall(r"^\| \[(\w+)\]\((\w+)\.md\) \| (\w+) \|", file.read(), re.MULTILINE)
        wanted = {alert: re.search(r"severity: (\w+)", rule)[1] for alert, rule in alerts().items()}
        self.assertEqual([name for name, page, _ in listed if name != page], [])
        self.assertEqual({name: severity for name, _, severity in listed}, wanted)

    def test_failures_of_ours_are_reasons_that_there_are_and_the_same_everywhere(self):
        ours, of = sorted(metric_names.outcomes_used(alerts()["SluiceErrorRate"]), key=len)
        self.assertEqual(of, "ok|" + ours)
        meant = {reason for reason in metric_names.reasons() if re.fullmatch(ours, reason)}
        words = re.sub(r"(\w+)\(([^)]*)\)", lambda m: "|".join(m[1] + end for end in m[2].split("|")), ours)
        self.assertEqual(meant, set(words.split("|")))
        for name in ("service", "tenant"):
            with open(os.path.join(harness.SOURCE, f"deploy/grafana/{name}.json"), encoding="utf-8") as file:
                self.assertIn(json.dumps(f'outcome=~"{ours}"')[1:-1], file.read(), name)

    def test_rules_ask_for_metrics_and_labels_that_there_are(self):
        metrics = metric_names.known()
        for alert, rule in alerts().items():
            expression = rule.split("labels:")[0]
            names = metric_names.used(expression, metrics)
            with self.subTest(alert):
                self.assertLessEqual(names, set(metrics))
                has = OF_PROMETHEUS.union(*(metrics[name] for name in names),
                                          *(labels for name, labels in OF_KUBERNETES.items() if name in expression))
                self.assertLessEqual(metric_names.labels_used(expression), has)


class Fires(harness.Case):
    """What the rules ask, asked of a Prometheus that scrapes a real gateway to which it happens."""

    def start(self):
        self.sim_ = self.sim()
        self.redis = redis_server.Redis(self)
        settings = harness.config(self.sim_, drain="30s", retries={"attempts": 1})
        settings["store"] = {"kind": "redis", "url": self.redis.url, "deadline": "5s"}
        settings["plans"]["standard"]["on_store_failure"] = {"rates": "local", "budget": {"local": 100}}
        settings["plans"]["standard"]["mcp_servers"] = {"allow": ["*"]}
        settings["mcp_servers"] = {"away": {"url": f"http://127.0.0.1:{harness.free_port()}/mcp"}}
        self.gateway_ = self.gateway(settings)
        self.prometheus = prometheus.Prometheus(self, [self.gateway_])
        harness.wait_for(lambda: self.prometheus.values("sluice_build_info"), "the first scrape")

    def asks(self, alert):
        """What its expression finds now."""
        text = alerts()[alert].split("expr: ", 1)[1]
        return self.prometheus.values(re.split(r"^ +(?:for|labels): ", text, maxsplit=1, flags=re.M)[0].removeprefix("|"))

    def fires(self, alert, meanwhile=lambda: None):
        def condition():
            meanwhile()
            return self.asks(alert)
        harness.wait_for(condition, f"{alert} finds something")

    def ask_in_vain(self):
        try:
            self.gateway_.sample()
        except (OSError, http.client.HTTPException):
            pass  # cut off with its gateway

    def test_alerts_find_what_happens_to_a_gateway_and_nothing_before(self):
        self.start()
        self.assert_result(self.gateway_.sample())
        for alert in ("SluiceReloadRefused", "SluiceProviderDown", "SluiceErrorRate", "SluiceRestarts",
                      "SluiceLimiterDegraded", "SluiceDrainStuck", "SluiceMcpServerDown", "SluiceMcpCredentials"):
            self.assertEqual(self.asks(alert), [], alert)

        self.fires("SluiceMcpServerDown", lambda: self.gateway_.post(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, path="/mcp/away"))

        self.gateway_.write_config({"wrokers": 1})
        self.assertEqual(self.gateway_.reload().status, 422)
        self.fires("SluiceReloadRefused")
        self.gateway_.write_config(self.gateway_.settings)
        self.assertEqual(self.gateway_.reload().status, 200)
        harness.wait_for(lambda: not self.asks("SluiceReloadRefused"), "it is put right")

        self.sim_.default("error-500")
        self.fires("SluiceProviderDown", self.gateway_.sample)
        self.fires("SluiceErrorRate", self.gateway_.sample)
        self.sim_.default("")

        os.kill(self.gateway_.server_pid(), signal.SIGKILL)
        self.fires("SluiceRestarts")
        self.gateway_.wait_ready()

        self.redis.kill()
        self.assert_result(self.gateway_.sample())  # breakers are the server's, and began anew
        self.fires("SluiceLimiterDegraded")

        self.sim_.default("latency-60s")
        slow = threading.Thread(target=self.ask_in_vain)
        slow.start()
        harness.wait_for(lambda: self.gateway_.metrics().sum("sluice_in_flight"), "a request under way")
        self.gateway_.send(signal.SIGINT)
        self.fires("SluiceDrainStuck")
        self.gateway_.stop(signal.SIGINT, code=1)
        slow.join()
        self.fires("SluiceDown")


if __name__ == "__main__":
    if shutil.which("promtool") is None or shutil.which("prometheus") is None:
        print("SKIPPED: promtool or prometheus is not installed (Debian package prometheus)")
        sys.exit(77)
    harness.main()
