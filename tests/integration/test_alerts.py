"""deploy/prometheus: the rules are well-formed, every alert is tested both ways and has its page, and what
they ask for is what a gateway says.

ctest: once timeout=60
"""

import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import metric_names  # noqa: E402

FOLDER = os.path.join(harness.SOURCE, "deploy/prometheus")
OF_PROMETHEUS = {"job", "instance", "le"}  # labels that no metric of ours has


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
        pages = {name[:-3] for name in os.listdir(os.path.join(harness.SOURCE, "deploy/docs/runbook"))}
        self.assertEqual(pages - {"README"}, set(alerts()))

    def test_rules_ask_for_metrics_and_labels_that_there_are(self):
        metrics = metric_names.known()
        for alert, rule in alerts().items():
            expression = rule.split("labels:")[0]
            names = metric_names.used(expression, metrics)
            with self.subTest(alert):
                self.assertLessEqual(names, set(metrics))
                has = OF_PROMETHEUS.union(*(metrics[name] for name in names))
                self.assertLessEqual(metric_names.labels_used(expression), has)


if __name__ == "__main__":
    if shutil.which("promtool") is None:
        print("SKIPPED: promtool is not installed (Debian package prometheus)")
        sys.exit(77)
    harness.main()
