#!/usr/bin/env python3
"""h2spec, the conformance suite of HTTP/2, against the gateway: in clear text and over TLS.

For .ci/nightly (h2spec), which builds the version that go.mod pins; H2SPEC is the program. A case that fails must be in
KNOWN with its reason, and a case in KNOWN must fail, so that the list stays true. tests/integration/test_conformance.py
has what it tests, and more, for every change.
"""

import os
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

H2SPEC = os.environ["H2SPEC"]
CASES_MIN = 140  # a run that ends early is no run

KNOWN = {}


class H2spec(harness.Case):
    def run_against(self, address, *options):
        """The cases that failed, by section and title, each with what h2spec says of it."""
        host, port = address.rsplit(":", 1)
        path = os.path.join(self.directory(), "report.xml")
        done = subprocess.run([H2SPEC, "--host", host, "--port", port, "--path", "/v1/sampling", "--junit-report", path,
                               *options], capture_output=True, text=True, timeout=600, check=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        failed, count, skipped = {}, 0, 0
        for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
            count += 1
            skipped += case.find("skipped") is not None
            problem = case.find("failure") if case.find("failure") is not None else case.find("error")
            if problem is not None:
                failed[case.get("package"), case.get("classname")] = "".join(problem.itertext()).strip()
        print(f"{' '.join(options) or 'clear text'}: {count - len(failed) - skipped} of {count} passed, {skipped} skipped")
        self.assertGreaterEqual(count, CASES_MIN)
        return failed

    def judge(self, failed, known):
        self.assertEqual({case: said for case, said in failed.items() if case not in known}, {}, "new failures")
        self.assertEqual(set(known) - set(failed), set(), "these pass now: take them off the list")

    def test_clear_text(self):
        gateway = self.gateway(harness.config(self.sim()))
        self.judge(self.run_against(gateway.settings["listen"][0]["address"]), KNOWN)

    def test_tls(self):
        cert, key = self.certificate()
        address = f"127.0.0.1:{harness.free_port()}"
        self.gateway(harness.config(self.sim(), listen=[{"address": address, "tls": {"cert": cert, "key": key}}]))
        self.judge(self.run_against(address, "--tls", "--insecure"), KNOWN)


if __name__ == "__main__":
    harness.main()
