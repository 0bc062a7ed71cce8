#!/usr/bin/env python3
"""MCP's conformance suite against a server of SDK v2 that has what it asks for, directly and through /mcp/{server} at four workers:
each check has the same verdict. With SLUICE_LONG in every revision of both releases of the suite; else the newest one as it comes.

ctest: once serial timeout=300
"""
import collections
import glob
import json
import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
import harness  # noqa: E402
import test_sdk  # noqa: E402

SUITE = os.path.join(HERE, "conformance")
LONG = "SLUICE_LONG" in os.environ
REVISIONS = {"latest": ("2025-06-18", "2025-11-25"), "next": ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")}
# What a server need not have, and this one has not.
EXTENSIONS = "tasks-"
# A client that cannot sample looks to the server like one that can: so its tool runs, and its sampling is answered.
BACKFILLED = {("server-stateless", "sep-2575-server-rejects-undeclared-capability"),
              ("server-stateless", "sep-2575-missing-capability-http-400")}


class Conformance(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.port = harness.free_port()
        cls.server = harness.Process([NODE, os.path.join(HERE, "conformance_server.mjs"), str(cls.port)])
        cls.addClassCleanup(cls.server.kill)
        harness.wait_listening(cls.server, cls.port)

    def start(self, release, url, *options):
        """The suite at work, and where it leaves its verdicts."""
        into = self.directory()
        argv = [NODE, "--import", os.path.join(SUITE, "with_key.mjs"), os.path.join(SUITE, "node_modules", release, "dist/index.js"),
                "server", "--url", url, "--output-dir", into, "--suite", "all", *options]
        process = harness.Process(argv, {"KEY": harness.KEY})
        self.addCleanup(process.kill)
        return process, into

    def verdicts(self, process, into):
        """How often each check of each scenario ended how."""
        process.wait(harness.PATIENCE_S * 3)
        found = collections.Counter()
        for path in glob.glob(os.path.join(into, "*/checks.json")):
            scenario = re.fullmatch(r"server-(.*)-\d{4}-\d\d-\d\dT.*Z", os.path.basename(os.path.dirname(path)))[1]
            with open(path, encoding="utf-8") as file:
                found.update((scenario, check["id"], check["status"]) for check in json.load(file))
        self.assertTrue(found, process.report())
        return found

    def compare(self, release, *options):
        url = f"http://127.0.0.1:{self.port}/mcp"
        port = harness.free_port()
        settings = harness.config(self.sim(), workers=4, drain="100ms", identity={"origins": [f"http://127.0.0.1:{port}"]},
                                  listen=[{"address": f"127.0.0.1:{port}"}],
                                  mcp_servers={"relayed": {"url": url, "sampling": "relay"}, "backfilled": {"url": url}})
        settings["plans"]["standard"]["mcp_servers"] = {"allow": ["*"]}
        settings["plans"]["standard"]["limits"].update({"mcp_messages_per_minute": 6000000, "mcp_sessions": 10000})
        gateway = self.gateway(settings)
        running = [self.start(release, where, *options)
                   for where in (url, f"{gateway.url}/mcp/relayed", f"{gateway.url}/mcp/backfilled")]
        direct, relayed, backfilled = (self.verdicts(*one) for one in running)
        self.assertEqual([key for key in direct if key[2] == "FAILURE" and not key[0].startswith(EXTENSIONS)], [])
        self.assertEqual(relayed - direct, direct - relayed, "relayed")
        changed = {key[:2] for key in (backfilled - direct) | (direct - backfilled)}
        self.assertLessEqual(changed, BACKFILLED, (backfilled - direct, direct - backfilled))
        return direct, changed

    def test_the_newest_suite(self):
        direct, changed = self.compare("next")
        self.assertGreater(sum(direct.values()), 200)
        self.assertEqual(changed, BACKFILLED)

    @unittest.skipUnless(LONG, "SLUICE_LONG is not set")
    def test_both_releases_in_every_revision(self):
        for release, revisions in REVISIONS.items():
            for revision in revisions:
                with self.subTest(release=release, revision=revision):
                    direct, _ = self.compare(release, "--spec-version", revision)
                    print(release, revision, collections.Counter(status for *_, status in direct.elements()), flush=True)


if __name__ == "__main__":
    NODE = test_sdk.packages()
    test_sdk.packages(SUITE)
    harness.main()
