#!/usr/bin/env python3
"""/mcp/{server}: what is not sampling passes byte for byte, both ways.

ctest: timeout=180
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_rig
from mcp_server import ask, error, event, note, result

# Nothing of these is to be read and written anew.
MESSAGES = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    b' { "jsonrpc" : "2.0" , "id" : 1.0 , "method" : "x/unknown" , "params" : { "a" : 1e400, "b":-0, "c":"\\ud800", "c2":"\\/" } }\n',
    b'{"method":"tools/call","id":"\\u0041","x":{"jsonrpc":1},"params":{"name":"t","arguments":{"method":"sampling/createMessage","id":3}},"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":12345678901234567890123456789,"method":"resources/subscribe","params":{"uri":"a://b"}}\r\n',
    '{"jsonrpc":"2.0","id":"ü€😀","method":"prompts/get","params":{"name":"ü"}}'.encode(),
    b'{"jsonrpc":"2.0","id":null,"method":"logging/setLevel"}',
    b'{"jsonrpc":"2.0","id":7,"method":"tasks/list","params":{"_meta":{"progressToken":0}}}',
    b'[{"jsonrpc":"2.0","id":1,"method":"a"}, {"jsonrpc":"2.0","method":"b"} ]',
    b"[]",
    b"{}",
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"text":"' + b"x" * 300000 + b'"}}',
)

# Bytes of an event stream that has no sampling in it.
STREAMS = (
    event(result(1)),
    b"event: message\nid: a_0\ndata: \n\n" + b": a comment\n\n" + b"retry: 1500\n\n" + event(result(1), "a_1"),
    b"data:" + json.dumps(result(1)).encode() + b"\n\n",
    b'data: {"jsonrpc":"2.0",\ndata: "id":1,\ndata: "result":{}}\n\n',
    b'id: 1\r\nevent: message\r\ndata: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":1.0}}\r\n\r\n'
    + event(result(1), eol=b"\r\n"),
    event(note(), eol=b"\r") + event(result(1), eol=b"\r"),
    b"\xef\xbb\xbf" + event(result(1)),
    b"data\n\nfoo: bar\nid\n\n:\n\n" + event(result(1)),
    b"event: other\ndata: not json\n\n" + event(result(1)),
    event([result(1), note()]) + event([]),
    event(b'{"jsonrpc":"2.0","id":1,"result":{"text":"sampling/createMessage","method":"sampling/createMessage","id":3}}'),
    event(b'{"jsonrpc":"2.0","method":"sampling/createMessage"}') + event(b'{"result":{"method":"sampling/createMessage","id":1},"id":1}'),
    event(b'{"id":1,"result":1e400,"x":"\\ud800","y":-0.0}') + b"data: \xff\xfe\n\n",
    event(result(1)) + b"data: half an event",
)


class Pass(mcp_rig.Case):
    direct = False

    def test_a_clients_message_reaches_the_server_as_it_is(self):
        server, client = self.pair()
        for message in MESSAGES:
            reply = client.post(message)
            call = server.take()
            self.assertEqual(call.body, message)
            call.answer(200, b"{}")
            self.assertEqual(reply.body(), b"{}")

    def test_a_json_answer_stays_what_it_is(self):
        server, client = self.pair(self.server(sessions=False))  # in one, a 404 would end it
        for status, body in ((200, b' {"jsonrpc":"2.0","id":1,"result":{"a":1e400}} \n'), (200, b"[]"), (200, b"not json"), (202, b""),
                             (400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"m","data":{"x":[1]}}}'),
                             (404, b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"m"}}'), (405, b""), (406, b"no"),
                             (413, b"too large"), (429, b"slow"), (500, b""), (503, b"<html>"),
                             (200, b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * 3000000 + b'"}')):
            reply = client.call()
            server.take().answer(status, body)
            self.assertEqual((reply.status, reply.body() == body), (status, True), status)
            self.assertEqual(reply.header("content-type"), "application/json" if body else None)

    def test_an_answer_in_chunks_without_a_length_is_whole(self):
        server, client = self.pair()
        reply = client.call()
        stream = server.take().stream(content_type="application/json; charset=utf-8")
        stream.send(b'{"jsonrpc":"2.0",').send(b'"id":1,').finish(b'"result":{}}')
        self.assertEqual(reply.body(), b'{"jsonrpc":"2.0","id":1,"result":{}}')
        self.assertEqual(reply.header("content-type"), "application/json; charset=utf-8")

    def test_an_event_stream_stays_what_it_is(self):
        server, client = self.pair()
        for data in STREAMS:
            reply = client.call()
            server.take().stream().finish(data)
            self.assertEqual(reply.body(), data)
            self.assertEqual((reply.status, reply.header("content-type")), (200, "text/event-stream"))

    def test_an_event_leaves_before_the_next_one_is_there(self):
        server, client = self.pair()
        reply = client.call()
        stream = server.take().stream()
        self.assertEqual(reply.status, 200)  # with nothing behind the head
        for data in (b": hello\n\n", b"id: s_0\nretry: 100\ndata: \n\n", event(note("a"), "s_1"), event(ask(0)), event(result(1), "s_2")):
            stream.send(data)
            reply.expect(data)
        stream.end()
        reply.end()

    def test_a_large_event_passes(self):
        server, client = self.pair()
        data = event(b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * (9 << 20) + b'"}') + event(note())
        reply = client.call()
        stream = server.take().stream()
        sender = self.background(lambda: stream.finish(data))
        self.assertTrue(reply.body() == data)
        sender[1].join()

    def test_requests_of_the_server_are_the_clients_to_answer(self):
        server, client = self.pair(capabilities={"elicitation": {}, "roots": {}})
        for id in (0, "", "a\"b", -5, 2 ** 53 + 1, 1):  # the last is the id of the client's own call, too
            for request in (ask(id), ask(id, "roots/list"), ask(id, "ping"), ask(id, "x/y")):
                reply = client.call(1)
                stream = server.take().stream()
                stream.send(event(request))
                reply.expect(event(request))
                for answer in (json.dumps(result(id)).encode(), b'{ "jsonrpc":"2.0", "id":' + json.dumps(id).encode() + b', "error":{"code":-1,"message":""}}'):
                    taken = client.post(answer)
                    self.assertEqual((taken.status, taken.body()), (202, b""))
                    self.assertEqual(server.answer().body, answer)
                stream.finish(event(result(1)))
                reply.expect(event(result(1))).end()

    def test_notifications_and_cancellations_pass(self):
        server, client = self.pair()
        for body in (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77,"reason":"r"}}',
                     b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed" }',
                     b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":0.50}}'):
            reply = client.post(body)
            self.assertEqual((reply.status, reply.body()), (202, b""))
            self.assertEqual(server.requests[-1].body, body)
        reply = client.call()
        stream = server.take().stream()
        cancelled = event(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}')
        stream.finish(cancelled + event(result(1)))
        self.assertEqual(reply.body(), cancelled + event(result(1)))

    def test_several_calls_of_a_session_are_open_at_once(self):
        server, client = self.pair()
        replies, streams = {}, {}
        for id in range(20):
            replies[id] = client.call(id)
        for _ in range(20):
            call = server.take()
            streams[call.message["id"]] = call.stream()
        for id in reversed(range(20)):
            streams[id].finish(event(result(id)))
            self.assertEqual(replies[id].body(), event(result(id)))

    def test_delete_and_its_status_pass(self):
        for status in (200, 204, 405):
            server, client = self.pair(self.server(delete=status))
            reply = client.delete()
            self.assertEqual((reply.status, reply.body()), (status, b""))
            self.assertEqual(len(server.seen("DELETE")), 1)

    def test_an_unknown_session_is_the_servers_404(self):
        server, client = self.pair()
        server.forget()
        reply = client.call()
        self.assertEqual((reply.status, reply.json()), (404, error(None, -32001, "Session not found")))

    def test_a_stream_is_resumed_by_its_last_event_id(self):
        server, client = self.pair()
        log = server.log("post")
        reply = client.call()
        log.attach(server.take().stream())
        log.prime()
        first = log.add(note("a"))
        reply.expect(log.events[0] + first)
        log.leave()
        reply.end()
        again = client.get("post_0")
        rest = first + log.add(ask(0)) + log.add(result(1))
        log.end()
        self.assertEqual(again.body(), rest)
        self.assertIn("post_0", server.last_ids)

    def test_a_stream_that_breaks_off_breaks_off(self):
        for how in ("cut", "reset"):
            server, client = self.pair()
            reply = client.call()
            stream = server.take().stream()
            stream.send(event(note()))
            reply.expect(event(note()))
            getattr(stream, how)()
            reply.cut()

    def test_a_server_without_sessions_works_without(self):
        server, client = self.pair(self.server(sessions=False))
        self.assertIsNone(client.session)
        reply = client.call()
        call = server.take()
        self.assertIsNone(call.header("mcp-session-id"))
        call.json(result(1))
        self.assertEqual(reply.json(), result(1))

    def test_a_client_that_never_said_hello_is_the_servers_to_judge(self):
        server = self.server()
        client = self.client(self.front(server))
        reply = client.call()
        self.assertEqual((reply.status, reply.json()["error"]["code"]), (400, -32000))

    def test_connections_may_be_kept(self):
        server, client = self.pair(keep=True)
        for id in range(5):
            reply = client.call(id)
            server.take().json(result(id))
            self.assertEqual(reply.json(), result(id))


class Direct(Pass):
    direct = True


class Gateway(mcp_rig.Case):
    def test_a_batch_of_each_kind_passes_in_order(self):
        server, client = self.pair(revision="2025-03-26")
        body = b'[ {"jsonrpc":"2.0","id":1,"method":"a"} ,{"jsonrpc":"2.0","id":"1","method":"b"},{"jsonrpc":"2.0","method":"c"}]'
        reply = client.post(body)
        call = server.take()
        self.assertEqual(call.body, body)
        answer = event([result("1"), result(1)])
        call.stream().finish(answer)
        self.assertEqual(reply.body(), answer)
        responses = b'[{"jsonrpc":"2.0","id":5,"result":{}},{"jsonrpc":"2.0","id":6,"result":{}}]'
        self.assertEqual(client.post(responses).status, 202)
        self.assertEqual(server.answer().body, responses)

    def test_an_answer_may_have_every_form_of_http(self):
        server, client = self.pair(self.server(sessions=False))
        body = b'{"jsonrpc":"2.0","id":1,"result":{}}'
        length, chunks = b"Content-Length: 36\r\n", b"24;a=b\r\n" + body + b"\r\n0\r\nX: y\r\n\r\n"
        json_type, events = b"Content-Type: application/json\r\n", b"Content-Type: text/event-stream\r\n\r\n" + event(body)
        for head, data, status, got in (
                (b"HTTP/1.0 200 OK\r\n" + json_type, body, 200, body),
                (b"HTTP/1.1 200 OK\r\n" + json_type + b"Connection: close\r\n", body, 200, body),
                (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n" + length, body, 200, body),
                (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n" + length, body, 200, body),
                (b"HTTP/1.1 200 OK\r\n" + json_type + b"Transfer-Encoding: chunked\r\n", chunks, 200, body),
                (b"HTTP/1.1 200\r\n" + length, body, 200, body), (b"HTTP/1.1 299 X\r\n" + length, body, 299, body),
                (b"HTTP/1.1 418 X\r\n" + length, body, 418, body), (b"HTTP/1.1 204 No Content\r\n", b"", 204, b""),
                (b"HTTP/1.1 200 OK\r\n" + length + b"".join(b"X-%d: %s\r\n" % (n, b"v" * 50) for n in range(80)), body, 200, body)):
            reply = client.call()
            call = server.take()
            call.raw(head + b"\r\n" + data)
            call.close()
            self.assertEqual((reply.status, reply.body()), (status, got), head)
        for head in (b"HTTP/1.0 200 OK\r\n", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % len(event(body))):
            reply = client.call()
            call = server.take()
            call.raw(head + events)
            call.close()
            self.assertEqual((reply.status, reply.body()), (200, event(body)), head)

    def test_relay_leaves_initialize_and_samplings_alone(self):
        server = self.server()
        client = self.client(self.front(server, sampling="relay"))
        client.hello({"roots": {}})
        self.assertEqual(server.seen("initialize")[0].message["params"]["capabilities"], {"roots": {}})
        self.assertEqual(server.seen("GET"), [])  # none of the gateway's own
        request = {"jsonrpc": "2.0", "id": 0, "method": "sampling/createMessage", "params": {}}
        reply = client.call()
        server.take().stream().finish(event(request) + event([request]))
        self.assertEqual(reply.body(), event(request) + event([request]))
        get = client.get()
        stream = server.get_stream()
        stream.send(event(request))
        get.expect(event(request))
        get.close()
        stream.wait_gone()  # or the server's only place for a GET would stay taken

    def test_the_query_of_the_configuration_is_sent_and_the_callers_is_not(self):
        server = self.server(sessions=False)
        server.url += "?a=1&b=%2F"
        client = self.client(self.front(server) + "?c=3")
        client.hello()
        self.assertEqual({one.path for one in server.requests}, {"/mcp?a=1&b=%2F"})


class Headers(mcp_rig.Case):
    """mcp-proxy.md 3."""

    passes = {"Mcp-Method": "tools/call", "Mcp-Name": "=?base64?w7w=?=", "Mcp-Param-Region": "eu west", "mcp-param-x": "1",
              "MCP-Protocol-Version": "2099-01-01", "Accept": "application/json;q=0.5, text/event-stream", "Content-Type": "application/json; charset=utf-8",
              "Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate": "a=b", "Baggage": "k=v",
              "User-Agent": "client/1", "Last-Event-ID": "x_1", "X-Team": "blue"}
    dropped = {"Cookie": "a=b", "Proxy-Authorization": "Basic x", "Sluice-Thing": "1", "X-Forwarded-For": "1.2.3.4",
               "Forwarded": "for=1.2.3.4", "X-Whatever": "1", "Connection": "keep-alive, X-Gone", "X-Gone": "1", "Accept-Encoding": "gzip, br",
               "Keep-Alive": "timeout=5", "TE": "trailers", "Priority": "u=1"}

    def test_what_passes_to_the_server(self):
        server, client = self.pair(pass_headers=["X-Team"], headers={"X-Api-Key": "the gateway's", "X-Static": "s"},
                                   authorization="Bearer upstream")
        reply = client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}, {**self.passes, **self.dropped})
        call = server.take()
        call.json(result(1))
        self.assertEqual(reply.status, 200)
        for name, value in self.passes.items():
            self.assertEqual(call.header(name), value, name)
        for name, value in {"Accept-Encoding": "identity", "Authorization": "Bearer upstream", "X-Api-Key": "the gateway's", "X-Static": "s",
                            "Host": f"127.0.0.1:{server.port}", "Mcp-Session-Id": self.upstream_id(server)}.items():
            self.assertEqual(call.header(name), value, name)
        for name in set(self.dropped) - {"Accept-Encoding", "Connection"}:
            self.assertIsNone(call.header(name), name)
        self.assertNotIn("X-Gone", call.header("connection") or "")
        self.assertNotIn(harness.KEY, call.head.decode())

    def test_the_gateways_own_requests_have_the_same_credential(self):
        server, _ = self.pair(headers={"X-Api-Key": "the gateway's"}, authorization="Bearer upstream")
        [get] = server.seen("GET")
        for name, value in {"Authorization": "Bearer upstream", "X-Api-Key": "the gateway's", "Accept": "text/event-stream", "Accept-Encoding": "identity",
                            "MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": self.upstream_id(server)}.items():
            self.assertEqual(get.header(name), value, name)

    def test_a_body_of_another_length_says_so(self):
        server, client = self.pair()
        [hello] = server.seen("initialize")
        self.assertEqual(int(hello.header("content-length")), len(hello.body))

    def test_what_passes_to_the_client(self):
        server, client = self.pair()
        reply = client.call()
        server.take().json(result(1), headers=[
            ("Retry-After", "7"), ("Set-Cookie", "a=b"), ("WWW-Authenticate", "Bearer"), ("Server", "s"), ("X-Whatever", "1"),
            ("Access-Control-Allow-Origin", "*"), ("Mcp-Session-Id", self.upstream_id(server)), ("Cache-Control", "no-store")])
        self.assertEqual((reply.status, reply.header("retry-after")), (200, "7"))
        for name in ("set-cookie", "www-authenticate", "x-whatever", "access-control-allow-origin"):
            self.assertIsNone(reply.header(name), name)
        self.assertNotIn(reply.header("server"), ("s",))
        token = reply.header("mcp-session-id")
        self.assertNotIn(self.upstream_id(server), token)
        client.session = token  # it is the session's
        client.notify("notifications/x")

    def test_a_session_id_that_is_not_the_sessions_stays_away(self):
        server, client = self.pair()
        reply = client.call()
        server.take().json(result(1), headers=[("Mcp-Session-Id", "another")])
        self.assertEqual((reply.status, reply.header("mcp-session-id")), (200, None))

    def test_an_event_stream_is_not_to_be_kept_or_changed_on_the_way(self):
        server, client = self.pair()
        reply = client.call()
        server.take().stream().finish(event(result(1)))
        self.assertEqual((reply.header("cache-control"), reply.header("x-accel-buffering")), ("no-cache, no-transform", "no"))
        self.assertIsNone(reply.header("content-encoding"))
        reply = client.call()
        server.take().stream(headers=[("Cache-Control", "no-store, no-transform"), ("X-Accel-Buffering", "no")]).finish(event(result(1)))
        self.assertEqual((reply.header("cache-control"), reply.header("x-accel-buffering")), ("no-store, no-transform", "no"))

    def test_a_header_line_that_is_too_long_does_not_get_to_the_server(self):
        server, client = self.pair()
        server.on("tools/call", lambda call: call.json(result(1)))
        reply = client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}, {"Mcp-Param-A": "x" * 20000})
        self.assertIn(reply.status, (200, 400, 413, 431))
        self.assertFalse(any(call.header("mcp-param-a") for call in server.seen("tools/call")))

    def test_retry_after_of_a_refusal_passes(self):
        server, client = self.pair()
        reply = client.call()
        server.take().json(error(1, -32000), 429, [("Retry-After", "30")])
        self.assertEqual((reply.status, reply.header("retry-after"), reply.json()), (429, "30", error(1, -32000)))


if __name__ == "__main__":
    harness.main()
