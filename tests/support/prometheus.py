"""A real Prometheus that scrapes real gateways, for one test."""

import json
import math
import os
import subprocess
import urllib.parse

import harness


class Prometheus:
    """Scrapes `gateways` four times a second; ends with the test."""

    def __init__(self, case, gateways, interval="250ms"):
        directory = case.directory()
        port = harness.free_port()
        self.url = f"http://127.0.0.1:{port}"
        path = os.path.join(directory, "prometheus.yml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": interval, "scrape_timeout": interval},
                       "scrape_configs": [{"job_name": "sluice", "static_configs": [
                           {"targets": [gateway.admin.removeprefix("http://") for gateway in gateways]}]}]},
                      file)
        with open(os.path.join(directory, "stderr"), "w", encoding="utf-8") as stderr:
            self.child = subprocess.Popen(
                ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={directory}/data",
                 f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)
        case.addCleanup(self._end)
        harness.wait_for(self._ready, "Prometheus is ready")

    def _end(self):
        self.child.kill()
        self.child.wait()

    def _ready(self):
        try:
            return harness.request("GET", self.url + "/-/ready", timeout_s=5).status == 200
        except OSError:
            return False

    def values(self, expression):
        """Of an instant query: what it yields now, without what is not a number."""
        query = urllib.parse.urlencode({"query": expression})
        answer = harness.request("GET", f"{self.url}/api/v1/query?{query}").json()
        if answer["status"] != "success":
            raise harness.Failure(f"{expression}: {answer.get('error')}")
        data = answer["data"]
        samples = [data["value"]] if data["resultType"] == "scalar" else [r["value"] for r in data["result"]]
        return [value for value in (float(text) for _, text in samples) if not math.isnan(value)]

    def label_values(self, selector, label):
        """The values of a label, as Grafana's label_values(selector, label) finds them."""
        query = urllib.parse.urlencode({"match[]": selector})
        return harness.request("GET", f"{self.url}/api/v1/label/{label}/values?{query}").json()["data"]
