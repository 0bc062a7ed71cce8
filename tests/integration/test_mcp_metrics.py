#!/usr/bin/env python3
"""/mcp/{server}: what is counted of messages, sessions, samplings and streams.

ctest: timeout=180
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_rig
from mcp_server import event, note, result, sampling


class Counted(mcp_rig.Case):
    def wait(self, name, value, **labels):
        harness.wait_for(lambda: self.gate.metrics().sum(name, server="raw", **labels) == value, f"{name}{labels} is {value}")

    def messages(self, direction, kind, value):
        self.wait("sluice_mcp_messages_total", value, direction=direction, kind=kind)

    def test_messages_by_direction_and_kind(self):
        server, client = self.pair()  # initialize and its result, initialized
        reply = client.call(1)
        server.take_call().stream().finish(event(note()) + event(result(1)))
        reply.body()
        self.messages("client", "request", 2)
        self.messages("client", "notification", 1)
        self.messages("client", "response", 0)
        self.messages("server", "response", 2)
        self.messages("server", "notification", 1)
        self.wait("sluice_mcp_upstream_seconds_count", 3)

    def test_sessions_and_streams_while_they_are_open(self):
        server, client = self.pair()
        self.wait("sluice_mcp_sessions", self.gateways)  # it has been at each
        self.wait("sluice_mcp_streams", 1, kind="own")
        reply = client.call(1)
        stream = server.take_call().stream()
        self.wait("sluice_mcp_streams", 1, kind="post")
        stream.finish(event(result(1)))
        reply.body()
        self.wait("sluice_mcp_streams", 0, kind="post")
        get = client.get()
        self.assertEqual(get.status, 200)
        self.wait("sluice_mcp_streams", 1, kind="get")
        self.assertEqual(client.delete().status, 200)
        for kind in ("own", "get"):
            self.wait("sluice_mcp_streams", 0, kind=kind)
        self.wait("sluice_mcp_sessions", 0)

    def sample(self, server, client, id):
        reply = client.call(id)
        stream = server.take_call().stream()
        stream.send(event(sampling(id)))
        return reply, stream

    def test_samplings_by_outcome(self):
        server, client = self.pair()
        reply, stream = self.sample(server, client, 1)
        server.answer()
        stream.finish(event(result(1)))
        reply.body()
        self.wait("sluice_mcp_samplings_total", 1, outcome="ok")
        self.messages("server", "request", 0)

    def test_answers_that_the_server_does_not_take(self):
        for status, outcome in ((403, "server_configuration"), (400, "server_answer_invalid")):
            server, client = self.pair()
            server.on("response", lambda exchange, status=status: exchange.answer(status))
            reply, stream = self.sample(server, client, 1)
            self.wait("sluice_mcp_samplings_total", 1, outcome=outcome)
            stream.finish(event(result(1)))
            reply.body()

    def test_requests_that_fail_for_their_server(self):
        server, client = self.pair()
        for status, outcome in ((401, "server_configuration"), (302, "server_answer_invalid")):
            reply = client.call(1)
            server.take_call().answer(status)
            self.assertEqual(reply.status, 502)
            self.wait("sluice_mcp_failures_total", 1, outcome=outcome)
        self.assertEqual(self.gate.metrics().sum("sluice_mcp_failures_total", server="raw", outcome="server_unavailable"), 0)
        server.close()
        self.assertEqual(client.call(2).status, 502)
        self.wait("sluice_mcp_failures_total", 1, outcome="server_unavailable")
        self.wait("sluice_mcp_failures_total", 3)


if __name__ == "__main__":
    harness.main()
