#!/usr/bin/env python3
"""/mcp/{server}: the log lines of sessions that begin and end.

ctest: timeout=120
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_rig

NAMED = "k" * 20 + "-of-the-desk"


class Sessions(mcp_rig.Case):
    def end_of(self, client, count=2):
        """The line of the end. Those of two workers may come in either order."""
        lines = sorted(self.session_lines(count), key=lambda line: line["event"])
        begin, end = lines[0], lines[-1]
        self.assertEqual((begin["event"], end["event"]), ("session_begin", "session_end"))
        for line in lines:
            self.assertEqual({name: line[name] for name in ("tenant", "server", "front", "revision", "session")},
                             {name: begin[name] for name in ("tenant", "server", "front", "revision", "session")})
        for text in self.gate.stdout:
            self.assertNotIn(client.session, text)
        return end

    def test_a_begin_says_whose_session_it_is_and_who_answers_samplings(self):
        server = self.server()
        url = self.front(server, settings=lambda settings: settings["tenants"][0]["keys"].append(
            {"sha256": harness.sha256(NAMED), "server": "desk"}))
        client = self.client(url, key=NAMED)
        reply = client.initialize()
        line, = self.session_lines(1)
        self.assertEqual({name: line[name] for name in ("event", "request_id", "tenant", "server", "front", "client", "revision", "mode")}, {
            "event": "session_begin", "request_id": reply.header("sluice-request-id"), "tenant": "acme", "server": "raw", "front": "mcp",
            "client": "desk", "revision": "2025-11-25", "mode": "backfill"})
        self.assertRegex(line["session"]["id"], "^[0-9a-f]{16}$")
        self.assertEqual(set(line) - {"time", "event", "request_id", "tenant", "server", "front", "client", "revision", "mode", "session"}, set())
        for text in self.gate.stdout:
            self.assertNotIn(reply.header("mcp-session-id"), text)
            self.assertNotIn(self.upstream_id(server), text)

    def test_the_mode_is_the_sessions_own(self):
        for sampling, capabilities, mode in (("backfill", {"sampling": {}}, "relay"), ("force", {"sampling": {}}, "force"),
                                             ("relay", {}, "relay"), ("refuse", {}, "refuse")):
            self.pair(sampling=sampling, capabilities=capabilities)
            self.assertEqual(self.session_lines(1)[0]["mode"], mode, sampling)

    def test_delete_ends_it_once(self):
        server, client = self.pair()
        for status in (200, 404):
            self.assertEqual(client.delete().status, status)
        end = self.end_of(client)
        self.assertEqual(end["end"], "deleted")
        self.assertIn(end["lasted_s"], range(60))
        self.assertNotIn("request_id", end)

    def test_the_server_has_lost_it(self):
        server, client = self.pair()
        server.forget()
        self.assertEqual(client.call().status, 404)
        self.assertEqual(self.end_of(client)["end"], "upstream_404")

    @mcp_rig.alone("where there are others it stays until it is idle")
    def test_its_server_is_removed(self):
        server, client = self.pair()
        server.get_stream()
        settings = dict(self.gate.settings)
        del settings["mcp_servers"]
        self.gate.write_config(settings)
        self.assertEqual(self.gate.reload().status, 200)
        self.assertEqual(self.end_of(client)["end"], "server_removed")

    def test_a_drain_does_not_end_it(self):
        server, client = self.pair()
        server.get_stream()
        self.gate.stop()
        self.assertEqual([line["event"] for line in self.session_lines(1)], ["session_begin"])

    def test_what_begins_no_session_has_no_line(self):
        server = self.server(sessions=False)
        client = self.client(self.front(server))
        self.assertEqual(client.initialize().status, 200)
        self.assertEqual(self.client(self.gate.url + "/mcp/other").initialize().status, 404)
        self.gate.wait_line(lambda text: "server_unknown" in text, "the line of the refusal")
        self.session_lines(0)

    def test_explain_says_that_it_is_no_request(self):
        self.pair()
        text = self.gate.wait_line(lambda text: "session_begin" in text, "the line")
        run = subprocess.run([harness.BIN, "explain", "--config", self.gate.config_path, "--log", text], capture_output=True, text=True,
                             check=False, timeout=60)
        self.assertEqual(run.returncode, 1)
        self.assertIn("that line is of a session that begins or ends", run.stderr)


if __name__ == "__main__":
    harness.main()
