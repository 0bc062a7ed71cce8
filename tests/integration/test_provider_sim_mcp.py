#!/usr/bin/env python3
"""The simulator's MCP server, which the benchmarks rely on.

ctest: timeout=60
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_client
from mcp_server import error, result


class McpSim(harness.Case):
    def pair(self, *words):
        sim = self.sim(*words)
        client = mcp_client.Client(sim.url + "/mcp", key=None)
        self.addCleanup(client.close)
        client.hello()
        return sim, client

    def took(self, sim):
        return harness.request("GET", sim.url + "/mcp/samplings").body.split()

    def text(self, message):
        return message["result"]["content"][0]["text"]

    def test_each_session_has_an_id_of_its_own(self):
        sim, client = self.pair()
        first = client.session
        self.assertEqual(client.hello()["protocolVersion"], "2025-11-25")
        self.assertNotIn(client.session, (None, first))
        self.assertEqual(sim.stats()["mcp"], 4)

    def test_a_tool_answers_as_json(self):
        sim, client = self.pair("--size", "700")
        reply = client.call(id="seven", name="json")
        self.assertEqual((reply.status, reply.header("content-type"), reply.json()["id"]), (200, "application/json", "seven"))
        self.assertEqual(len(self.text(reply.json())), 700)
        self.assertEqual((sim.last()["path"], sim.last()["body"]["id"]), ("/mcp", "seven"))

    def test_a_tool_answers_by_three_events(self):
        for words in ((), ("--pace", "1ms")):
            _, client = self.pair("--size", "10", *words)
            reply = client.call(id=7, name="events")
            self.assertEqual(reply.header("content-type"), "text/event-stream")
            self.assertEqual([reply.message().get("method") for _ in range(2)], ["notifications/message"] * 2)
            last = reply.message()
            self.assertEqual((last["id"], len(self.text(last))), (7, 10))
            reply.end()

    def test_a_tool_waits_for_its_sampling(self):
        sim, client = self.pair()
        replies = [client.call(id=number, name="sample") for number in range(2)]
        asked = [reply.message() for reply in replies]
        self.assertEqual({message["method"] for message in asked}, {"sampling/createMessage"})
        for number in (1, 0):
            posted = client.post(result(asked[number]["id"]))
            self.assertEqual(posted.status, 202)
            self.assertEqual(replies[number].message()["id"], number)
            replies[number].end()
        self.assertEqual([int(line) > 0 for line in self.took(sim)], [True, True])
        self.assertEqual(self.took(sim), [])

    def test_a_sampling_that_fails_has_no_time(self):
        sim, client = self.pair()
        reply = client.call(name="sample")
        client.post(error(reply.message()["id"], -1)).body()
        self.assertEqual(reply.message()["id"], 1)
        self.assertEqual(self.took(sim), [])

    def test_an_answer_that_nobody_waits_for_is_taken(self):
        sim, client = self.pair()
        reply = client.call(name="sample")
        asked = reply.message()["id"]
        reply.close()
        sim.wait_stats(lambda stats: stats["cancelled"] == 1, "the caller has left")
        self.assertEqual(client.post(result(asked)).status, 202)
        self.assertEqual(self.took(sim), [])

    def test_a_get_stays_open(self):
        sim, client = self.pair()
        stream = client.get()
        self.assertEqual((stream.status, stream.header("content-type")), (200, "text/event-stream"))
        self.assertEqual(sim.stats()["in_flight"], 1)
        stream.close()
        sim.wait_stats(lambda stats: stats["in_flight"] == 0, "it has ended")

    def test_other_methods_and_messages(self):
        _, client = self.pair()
        self.assertEqual(client.delete().status, 200)
        self.assertEqual(client.send("PUT").status, 405)
        self.assertEqual(client.post({"jsonrpc": "2.0", "id": 3, "method": "ping"}).json(), {"jsonrpc": "2.0", "id": 3, "result": {}})


if __name__ == "__main__":
    harness.main()
