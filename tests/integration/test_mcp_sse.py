#!/usr/bin/env python3
"""/mcp/{server}: HTTP+SSE of 2024-11-05 (mcp-proxy.md 8). A GET is the session; messages are posted to where its first event says.

ctest: timeout=120
"""
import os
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_rig
from mcp_server import OldServer, ask, event, note, result, sampling

HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
    "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}}


class Old:
    """A client of 2024-11-05."""

    def __init__(self, case, url, key=harness.KEY):
        self.case, self.url, self.key = case, url, key
        self.stream = case.client(url, key=key).get()

    def opened(self):
        first = self.stream.event()
        lines = dict(line.split(b": ", 1) for line in first.strip().split(b"\n"))
        self.case.assertEqual(lines[b"event"], b"endpoint")
        self.path = lines[b"data"].decode()
        return self

    def post(self, message, path=None, key=None):
        client = self.case.client(urllib.parse.urljoin(self.url, path or self.path), key=key or self.key)
        return client.post(message)

    def hello(self, capabilities=None):
        message = {**HELLO, "params": {**HELLO["params"], "capabilities": capabilities or {}}}
        reply = self.post(message)
        self.case.assertEqual((reply.status, reply.body()), (202, b"Accepted"))
        return self.stream.event()


class Case(mcp_rig.Case):
    def pair(self, transport="sse", capabilities=None, endpoint="/message?sessionId={session}", **options):
        server = self.closing(OldServer(endpoint=endpoint))
        client = Old(self, self.front(server, transport=transport, **options)).opened()
        client.hello(capabilities)
        return server, client


class Passes(Case):
    def test_the_client_is_told_a_path_of_the_gateways(self):
        for transport in ("sse", "auto"):
            server, client = self.pair(transport)
            self.assertTrue(client.path.startswith("/mcp/raw/message?s="), client.path)
            self.assertLess(len(client.path), 1100)
            self.assertEqual((client.stream.status, client.stream.header("content-type")), (200, "text/event-stream"))

    def test_messages_and_events_pass_byte_for_byte(self):
        server, client = self.pair()
        body = b'{"jsonrpc":"2.0", "id":"x\\u0041" ,"method":"tools/call","params":{"name":"t","n":1.0}}'
        self.assertEqual(client.post(body).status, 202)
        call = server.take()
        self.assertEqual(call.body, body)
        self.assertIsNone(call.header("mcp-session-id"))
        [stream] = server.gets.values()
        for raw in (b": comment\n\n", event(note()), event(ask(3)), b"event: message\r\ndata: [1,\r\ndata: 2]\r\n\r\n", event(result("xA"))):
            stream.send(raw)
            client.stream.expect(raw)
        answer = b'{"jsonrpc":"2.0","id":3,"result":{"action":"accept"}}'
        self.assertEqual(client.post(answer).status, 202)
        self.assertEqual(server.answer().body, answer)

    def test_an_endpoint_is_resolved_as_a_url(self):
        for endpoint, path in (("/m?sessionId={session}", "/m"), ("m?sessionId={session}", "/m"), ("?sessionId={session}", "/sse")):
            server = self.closing(OldServer(endpoint=endpoint))
            client = Old(self, self.front(server, transport="sse")).opened()
            if path != "/sse":
                client.post({"jsonrpc": "2.0", "method": "notifications/x"})
                harness.wait_for(lambda server=server: server.seen("notifications/x"), "the message")
                self.assertEqual(server.seen("notifications/x")[0].path.split("?")[0], path)

    def test_an_absolute_endpoint_of_the_server_is_taken(self):
        server = OldServer()
        self.closing(server)
        server.endpoint = f"http://127.0.0.1:{server.port}/message?sessionId={{session}}"
        client = Old(self, self.front(server, transport="sse")).opened()
        client.hello()

    def test_an_endpoint_elsewhere_is_refused(self):
        for endpoint in ("http://evil.example/m", "//evil.example/m", "https://127.0.0.1/m", "file:///etc/passwd", "javascript:1", "http://127.0.0.1:1/m"):
            server = self.closing(OldServer(endpoint=endpoint))
            reply = self.client(self.front(server, transport="sse")).get()
            self.assertEqual((reply.status, reply.json()["error"]["data"]["reason"]), (502, "server_answer_invalid"), endpoint)

    def test_initialize_by_post_is_405_so_that_clients_try_get(self):
        server = self.closing(OldServer())
        reply = self.client(self.front(server, transport="sse")).post(HELLO)
        self.assertEqual((reply.status, reply.header("allow")), (405, "GET"))


class Samples(Case):
    def test_sampling_is_declared_and_answered(self):
        server, client = self.pair()
        self.assertEqual(server.seen("initialize")[0].message["params"]["capabilities"], {"sampling": {}})
        [stream] = server.gets.values()
        for id in (0, "a"):
            stream.send(event(sampling(id)) + event(note()))
            client.stream.expect(event(note()))
            answer = server.answer()
            self.assertEqual((answer.message["id"], answer.message["result"]["role"]), (id, "assistant"))
            self.assertTrue(answer.path.startswith("/message?sessionId="))
        self.assertTrue(server.idle())

    def test_a_client_that_samples_is_left_alone(self):
        server, client = self.pair(capabilities={"sampling": {}})
        [stream] = server.gets.values()
        stream.send(event(sampling(1)))
        client.stream.expect(event(sampling(1)))
        answer = b'{"jsonrpc":"2.0","id":1,"result":{"role":"assistant","content":{"type":"text","text":"mine"},"model":"m"}}'
        client.post(answer)
        self.assertEqual(server.answer().body, answer)

    def test_a_client_may_not_answer_for_the_gateway(self):
        server, client = self.pair(model="sim-hang")
        [stream] = server.gets.values()
        stream.send(event(sampling(1)) + event(note()))
        client.stream.expect(event(note()))
        self.assertEqual(client.post({"jsonrpc": "2.0", "id": 1, "result": {}}).status, 202)
        self.assertTrue(server.idle())


class Sessions(Case):
    def test_a_path_is_its_callers(self):
        server = self.closing(OldServer())
        other = "sk-other-" + "o" * 24
        url = self.front(server, transport="sse", settings=lambda settings: settings["tenants"].append(harness.tenant("other", other)))
        client = Old(self, url).opened()
        for path, key in ((client.path, other), (client.path[:-1], None), (client.path.split("?")[0], None), ("/mcp/raw/message?s=x", None)):
            reply = client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, path, key)
            self.assertEqual((reply.status, reply.json()["error"]["data"]["reason"], reply.json()["id"]), (404, "session_unknown", 1), path)

    def test_the_stream_is_the_session(self):
        server, client = self.pair(limits={"mcp_sessions": 1})
        self.assertEqual(self.client(client.url).get().status, 429)
        client.stream.close()
        [stream] = server.gets.values()
        stream.wait_gone()
        harness.wait_for(lambda: client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 404, "the session's end")
        harness.wait_for(lambda: self.client(client.url).get().status == 200, "its place")

    def test_its_begin_and_its_end_have_a_line_each(self):
        server, client = self.pair()
        begin, = self.session_lines(1)
        self.assertEqual((begin["event"], begin["revision"], begin["mode"]), ("session_begin", "2024-11-05", "backfill"))
        client.hello()  # once more
        client.stream.close()
        _, end = self.session_lines(2)
        self.assertEqual((end["event"], end["end"], end["mode"], end["session"]), ("session_end", "stream_closed", "backfill", begin["session"]))

    def test_a_stream_that_nobody_has_initialized_has_none(self):
        server = self.closing(OldServer(endpoint="/message?sessionId={session}"))
        client = Old(self, self.front(server, transport="sse")).opened()
        client.stream.close()
        harness.wait_for(lambda: self.gate.metrics().sum("sluice_mcp_sessions", server="raw") == 0, "it is over")
        self.session_lines(0)

    def test_it_ends_with_the_servers_stream(self):
        server, client = self.pair()
        [stream] = server.gets.values()
        stream.end()
        client.stream.end()
        harness.wait_for(lambda: client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 404, "the session's end")


if __name__ == "__main__":
    harness.main()
