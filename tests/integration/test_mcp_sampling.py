#!/usr/bin/env python3
"""/mcp/{server}: samplings on the streams of calls are answered by the gateway, and nothing else changes.

ctest: timeout=180
"""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_rig
from mcp_server import ask, error, event, note, result, sampling

OTHERS = [f"sk-slu-other-{number}-of-the-tests" for number in range(3)]
TOOLS = {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}
HEAD = b'{ "id" :1,"jsonrpc":"2.0","x":1.0,"method":"initialize","params":{"protocolVersion":"2025-11-25", "capabilities":'
TAIL = b' , "_meta":{"a":1e400}}  }\r\n'


class Declared(mcp_rig.Case):
    """What the server is told of the client (mcp-proxy.md 2)."""

    def told(self, capabilities=None, revision="2025-11-25", server=None, **options):
        server = server or self.server()
        client = self.client(self.front(server, **options), revision=revision)
        client.hello(capabilities)
        return server.seen("initialize")[-1].message["params"]["capabilities"]

    def test_sampling_is_declared_for_a_client_without(self):
        for revision, value in (("2025-11-25", {"tools": {}}), ("2025-06-18", {}), ("2025-03-26", {}), ("2026-07-28", {"tools": {}})):
            self.assertEqual(self.told(revision=revision), {"sampling": value}, revision)

    def test_tools_are_declared_where_policy_grants_them_for_this_server(self):
        def nowhere(settings):
            settings["plans"]["standard"]["capabilities"]["tools"] = False

        def not_here(settings):
            settings["plans"]["standard"]["servers"] = {"raw": {"capabilities": {"tools": False}}}

        def here_alone(settings):
            nowhere(settings)
            settings["plans"]["standard"]["servers"] = {"raw": {"capabilities": {"tools": True}}}
        for change, value in ((nowhere, {}), (not_here, {}), (here_alone, {"tools": {}})):
            self.assertEqual(self.told(settings=change), {"sampling": value})

    def test_nothing_is_declared_where_policy_permits_no_model(self):
        def none(settings):
            del settings["plans"]["standard"]["models"]["default"]
            settings["plans"]["standard"]["servers"] = {"raw": {"models": {"allow": ["none-of-them"]}}}
        self.assertEqual(self.told({"roots": {}}, settings=none), {"roots": {}})

    def test_a_client_that_samples_is_left_alone(self):
        for capabilities in ({"sampling": {}}, {"sampling": {"context": {}}, "roots": {}}):
            self.assertEqual(self.told(capabilities), capabilities)

    def test_force_replaces_what_the_client_declares(self):
        self.assertEqual(self.told({"sampling": {"context": {}}, "roots": {}}, sampling="force"), {"sampling": {"tools": {}}, "roots": {}})

    def test_refuse_cuts_it_out(self):
        for capabilities, left in (({"sampling": {}}, {}), ({"a": 1, "sampling": {}, "b": 2}, {"a": 1, "b": 2}), ({"roots": {}}, {"roots": {}})):
            self.assertEqual(self.told(capabilities, sampling="refuse"), left)

    def test_a_revision_that_is_not_known_passes_as_it_is(self):
        self.assertEqual(self.told(revision="2099-01-01"), {})

    def test_it_is_put_in_by_bytes(self):
        server = self.server()
        url = self.front(server)
        for before, after in ((b"{}", b'{"sampling":{"tools":{}}}'),
                              (b'{ "roots" : {} }', b'{"sampling":{"tools":{}}, "roots" : {} }'),
                              (b'{"sampling": null,"a":1e400}', b'{"sampling": {"tools":{}},"a":1e400}')):
            self.assertEqual(self.client(url).post(HEAD + before + TAIL).status, 200)
            self.assertEqual(server.seen("initialize")[-1].body, HEAD + after + TAIL)

    def test_the_answer_to_initialize_is_the_servers_bytes(self):
        body = b' {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"x":1.0},"serverInfo":{"name":"\\u0061"},"instructions":"i","_meta":{}}} \n'
        server = self.server()
        server.on("initialize", lambda call: call.answer(200, body, [("Mcp-Session-Id", server.issue())]))
        reply = self.client(self.front(server)).initialize()
        self.assertEqual(reply.body(), body)
        self.assertIsNotNone(reply.header("mcp-session-id"))

    def test_the_answer_to_initialize_may_be_a_stream(self):
        for hello in ("sse", "primed"):
            server, client = self.pair(self.server(hello=hello))
            reply = client.initialize()
            answer = {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "raw", "version": "1"}}}
            front = b"id: p-0\ndata: \n\n: hello\n\n" if hello == "primed" else b""
            self.assertEqual(reply.body(), front + event(answer))
            self.assertIsNotNone(client.session)

    def test_what_the_gateway_answers_to_initialize_depends_on_the_result(self):
        """The server negotiates: its revision decides the form of the answers, and the header of the gateway's requests."""
        for revision, header in (("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2025-03-26", None)):
            server, client = self.pair(self.server(revision=revision))
            reply = client.call()
            stream = server.take().stream()
            stream.send(event(sampling(0)))
            self.assertEqual(server.answer().header("mcp-protocol-version"), header)
            stream.finish(event(result(1)))
            self.assertEqual(reply.body(), event(result(1)))
            self.assertEqual(self.sampling_line()["revision"], revision)


class Strict(mcp_rig.Case):
    """A server that refuses what is put in is asked once more, with less."""

    def declared(self, server):
        return [request.message["params"]["capabilities"] for request in server.seen("initialize")]

    def test_less_is_declared_to_a_server_that_does_not_know_tools(self):
        for refusal in ((400, -32600), (500, -32603), (200, -32602), (200, -32603), (400, -32000)):
            server, client = self.pair(self.server(strict="tools", refusal=refusal))
            self.assertEqual(self.declared(server), [{"sampling": {"tools": {}}}, {"sampling": {}}], refusal)
            reply = client.call()
            stream = server.take().stream()
            stream.send(event(sampling(0)))
            self.assertIn("result", server.answer().message)
            stream.finish(event(result(1)))
            self.assertEqual(reply.body(), event(result(1)))

    def test_a_server_that_does_not_know_sampling_gets_the_clients_bytes(self):
        server = self.server(strict="sampling")
        client = self.client(self.front(server))
        reply = client.post(HEAD + b'{ "roots":{}}' + TAIL)
        self.assertEqual(reply.status, 200)
        self.assertEqual(len(self.declared(server)), 3)
        self.assertEqual(server.seen("initialize")[-1].body, HEAD + b'{ "roots":{}}' + TAIL)

    def test_a_refusal_may_come_as_a_stream(self):
        server = self.server()

        def initialize(call):
            message = call.message
            if "tools" in message["params"]["capabilities"].get("sampling", {}):
                call.stream().finish(b": hello\n\n" + event(error(message["id"], -32602, "Unrecognized field")))
            else:
                server.initialize(call)
        server.on("initialize", initialize)
        self.client(self.front(server)).hello()
        self.assertEqual(self.declared(server), [{"sampling": {"tools": {}}}, {"sampling": {}}])

    def test_the_last_refusal_is_the_clients(self):
        server = self.server()
        server.on("initialize", lambda call: call.answer(400, b' {"jsonrpc":"2.0","id":0,"error":{"code":-32600,"message":"never"}}'))
        reply = self.client(self.front(server)).initialize()
        self.assertEqual((reply.status, reply.body()), (400, b' {"jsonrpc":"2.0","id":0,"error":{"code":-32600,"message":"never"}}'))
        self.assertEqual(len(self.declared(server)), 3)

    def test_another_error_of_initialize_is_the_clients_at_once(self):
        for status, body in ((200, error(0, -32000, "no")), (503, error(0, -32000, "busy")), (404, error(None, -32601))):
            server = self.server()
            server.on("initialize", lambda call, status=status, body=body: call.json(body, status))
            reply = self.client(self.front(server)).initialize()
            self.assertEqual((reply.status, reply.json()), (status, body))
            self.assertEqual(len(self.declared(server)), 1)

    def test_a_server_is_not_asked_again_for_what_it_has_refused(self):
        """Each of four workers knows it: for the tenant at once, for others when a second tenant has found the same."""
        for strict, first in (("tools", [{"tools": {}}, {}]), ("sampling", [{"tools": {}}, {}, None])):
            server = self.server(strict=strict)
            url = self.front(server, settings=self.with_tenants)

            def tries(key, url=url, server=server):
                before = len(server.seen("initialize"))
                client = self.client(url, key=key)
                client.hello()
                return [one.get("sampling") for one in self.declared(server)[before:]]
            self.assertEqual(tries(harness.KEY), first)
            self.assertEqual([tries(harness.KEY) for _ in range(8)], 8 * [first[-1:]])
            self.assertEqual(tries(OTHERS[0]), first)
            self.assertEqual([tries(key) for key in OTHERS[1:] for _ in range(8)], 16 * [first[-1:]])

    def test_a_server_that_refuses_all_is_tried_anew(self):
        server = self.server(strict="tools")
        server.on("initialize", lambda call: call.json(error(0, -32600), 400))
        url = self.front(server)
        for tries in (3, 6):
            self.assertEqual(self.client(url).initialize().status, 400)
            self.assertEqual(len(self.declared(server)), tries)

    @staticmethod
    def with_tenants(settings):
        settings["tenants"] += [harness.tenant(f"other-{number}", key) for number, key in enumerate(OTHERS)]

    def test_what_a_client_declares_itself_is_tried_once(self):
        server = self.server(strict="sampling")
        reply = self.client(self.front(server)).initialize({"sampling": {}})
        self.assertEqual(reply.status, 400)
        self.assertEqual(len(self.declared(server)), 1)


class Called(mcp_rig.Case):
    """A client with one call open."""

    def call(self, id=1, **options):
        server, client = self.pair(**options)
        reply = client.call(id)
        return server, client, reply, server.take().stream()

    def done(self, reply, stream, id=1):
        """All that the client gets from here on is the call's result."""
        stream.finish(event(result(id)))
        reply.expect(event(result(id))).end()


class Answers(Called):
    def test_a_sampling_is_taken_out_and_answered(self):
        server, client, reply, stream = self.call()
        before, after = event(note("before"), "s_1"), event(note("after"), "s_3")
        stream.send(before + event(sampling(0), "s_2") + after)
        reply.expect(before + after)
        answer = server.answer()
        self.assertEqual(answer.message["id"], 0)
        self.assertEqual(answer.message["result"]["role"], "assistant")
        self.assertIsInstance(answer.message["result"]["content"], dict)
        for name, value in {"Mcp-Session-Id": self.upstream_id(server), "MCP-Protocol-Version": "2025-11-25", "Content-Type": "application/json",
                            "Accept": "application/json, text/event-stream", "Host": f"127.0.0.1:{server.port}", "Content-Length": str(len(answer.body))}.items():
            self.assertEqual(answer.header(name), value, name)
        self.assertNotIn(harness.KEY.encode(), answer.head)
        self.done(reply, stream)
        self.assertTrue(server.idle())

    def test_an_id_is_echoed_as_it_was_written(self):
        server, client, reply, stream = self.call()
        for id in (b"0", b'""', b"-5", b"9007199254740993", b'"0"', b"123456789012345678901234567890", b"1.0", b'"\\u0041"', b"1e2", b'"\xc3\xbc"', b"17"):
            stream.send(event(json.dumps(sampling("ID")).encode().replace(b'"ID"', id)))
            self.assertTrue(server.answer().body.startswith(b'{"jsonrpc":"2.0","id":' + id + b',"result"'), id)
        self.done(reply, stream)

    def test_names_are_read_as_a_peer_reads_them(self):
        server, client, reply, stream = self.call()
        plain = json.dumps(sampling("ID")).encode()
        for id, data in enumerate((plain.replace(b'"method"', b'"m\\u0065thod"'), plain.replace(b"sampling/", b"sampling\\/"),
                                   plain.replace(b'"method"', b'"method":"x","method"'), b" \t" + plain + b" ",
                                   plain.replace(b'"params"', b'"result":null,"params"'))):
            stream.send(event(data.replace(b'"ID"', b"%d" % id)))
            self.assertEqual(server.answer().message["id"], id)
        for data in (b'{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","method":"x"}', b'{"method":"sampling/createMessage","id":null}',
                     b'{"method":"Sampling/createMessage","id":3}', b'{"method":"sampling/createMessage"}', b'{"method":["sampling/createMessage"],"id":1}'):
            stream.send(event(data))
            reply.expect(event(data))
        self.done(reply, stream)
        self.assertTrue(server.idle())

    def test_an_event_may_be_spelled_in_every_way(self):
        server, client, reply, stream = self.call()
        text = json.dumps(sampling("ID"), indent=1).encode()
        for id, data in enumerate((b"data: " + text.replace(b"\n", b"\ndata: ") + b"\n\n", b"data:" + text.replace(b"\n", b"\rdata:") + b"\r\r",
                                   b"retry: 5\r\nid: 7\r\ndata: " + text.replace(b"\n", b"\r\ndata: ") + b"\r\nevent: message\r\n\r\n",
                                   b"foo: bar\ndata: " + text.replace(b"\n", b"") + b"\nid\n\n")):
            data = data.replace(b'"ID"', b"%d" % id)
            for at in range(len(data)):  # a cut at every byte
                stream.send(data[at:at + 1])
            self.assertEqual(server.answer().message["id"], id)
        self.done(reply, stream)

    def test_others_requests_pass_beside_it(self):
        server, client, reply, stream = self.call(model="sim-latency-300ms", capabilities={"elicitation": {}})
        stream.send(event(sampling(0)) + event(ask(1)) + event(ask("0", "roots/list")))
        reply.expect(event(ask(1)) + event(ask("0", "roots/list")))
        for id in (1, "0"):  # of which the second differs from the held one
            self.assertEqual(client.post(result(id)).status, 202)
            self.assertEqual(server.answer().message, result(id))
        self.assertEqual(server.answer().message["id"], 0)
        self.done(reply, stream)

    def test_arrays_lose_their_samplings_only(self):
        server, client, reply, stream = self.call(revision="2025-03-26")
        stream.send(event([note(), sampling(1), ask(5)]))
        reply.expect(event(b"[" + json.dumps(note()).encode() + b", " + json.dumps(ask(5)).encode() + b"]"))
        stream.send(event([sampling(2), sampling(3)], "s_1") + event(note()))
        reply.expect(event(note()))
        stream.send(event([note(), sampling(4)]))
        reply.expect(event([note()]))
        self.assertEqual(sorted(answer.message["id"] for answer in server.answers(4)), [1, 2, 3, 4])
        self.done(reply, stream)

    def test_an_array_in_a_json_body_loses_them_too(self):
        server, client = self.pair(revision="2025-03-26")
        reply = client.call()
        server.take().json([result(1), sampling(2)])
        self.assertEqual(reply.json(), [result(1)])
        self.assertEqual(server.answer().message["id"], 2)

    def test_two_calls_sample_at_once(self):
        server, client = self.pair(model="sim-latency-500ms")
        calls = []
        for id in (1, 2):
            reply = client.call(id)
            calls.append((reply, server.take().stream()))
        for id, (reply, stream) in enumerate(calls):
            stream.send(event(sampling(id)))
        self.provider.wait_stats(lambda stats: stats["requests"] == 2, "both are asked before one is answered")
        self.assertEqual(sorted(answer.message["id"] for answer in server.answers(2)), [0, 1])
        for id, (reply, stream) in enumerate(calls):
            self.done(reply, stream, id + 1)

    def test_one_sampling_too_many_is_answered_busy(self):
        server, client, reply, stream = self.call(model="sim-latency-700ms")
        for id in range(17):
            stream.send(event(sampling(id)))
        first = server.answer().message
        self.assertEqual((first["id"], first["error"]["code"], first["error"]["data"]["reason"]), (16, -1, "samplings_busy"))
        answers = [answer.message for answer in server.answers(16)]
        self.assertEqual(sorted(answer["id"] for answer in answers), list(range(16)))
        self.assertTrue(all("result" in answer for answer in answers))
        self.done(reply, stream)

    def test_a_tool_loop(self):
        server, client, reply, stream = self.call(model="sim-calls-2")
        messages = [{"role": "user", "content": {"type": "text", "text": "look"}}]
        stream.send(event(sampling(0, **TOOLS)))
        answer = server.answer().message["result"]
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        self.assertEqual((answer["stopReason"], len(calls)), ("toolUse", 2))
        messages += [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": [
            {"type": "tool_result", "toolUseId": call["id"], "content": [{"type": "text", "text": "seen"}]} for call in calls]}]
        stream.send(event(sampling(1, messages=messages, **TOOLS)))
        self.assertEqual(server.answer().message["result"]["stopReason"], "endTurn")
        self.done(reply, stream)

    def test_a_request_is_answered_once(self):
        server, client, reply, stream = self.call()
        for _ in range(3):
            stream.send(event(sampling(7)))
        self.assertEqual(server.answer().message["id"], 7)
        stream.send(event(sampling(7)) + event(sampling("7")))
        self.assertEqual(server.answer().message["id"], "7")
        self.done(reply, stream)
        self.assertTrue(server.idle())
        self.assertEqual(self.provider.stats()["requests"], 2)

    def test_a_client_may_not_answer_for_the_gateway(self):
        server, client, reply, stream = self.call(model="sim-latency-500ms", revision="2025-03-26")
        stream.send(event(sampling(4)))
        self.provider.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        for forged in (result(4), b'{"jsonrpc":"2.0","id":4.0,"result":{"forged":true}}', error(4, -1)):
            taken = client.post(forged)
            self.assertEqual((taken.status, taken.body()), (202, b""))
        other = client.post([result(4), result(5)])
        self.assertEqual(other.status, 202)
        self.assertEqual(server.answer().message, [result(5)])
        self.assertEqual(server.answer().message["result"]["role"], "assistant")
        self.done(reply, stream)

    def test_a_server_that_has_lost_the_session_ends_it(self):
        server, client, reply, stream = self.call(model="sim-latency-300ms")
        stream.send(event(sampling(0)))
        self.provider.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        server.forget()
        harness.wait_for(lambda: client.post(note(method="notifications/x")).json()["error"].get("data", {}).get("reason") == "session_unknown",
                         "the gateway knows it from the answer to its own message")


class Modes(Called):
    def test_a_client_that_samples_does_so_itself(self):
        server, client, reply, stream = self.call(capabilities={"sampling": {}})
        stream.send(event(sampling(3)))
        reply.expect(event(sampling(3)))
        answer = b'{"jsonrpc":"2.0","id":3,"result":{"role":"assistant" }}'
        self.assertEqual(client.post(answer).status, 202)
        self.assertEqual(server.answer().body, answer)
        self.done(reply, stream)
        self.assertEqual(self.provider.stats()["requests"], 0)
        self.assertEqual(server.seen("GET"), [])

    def test_force_answers_for_a_client_that_samples(self):
        server, client, reply, stream = self.call(capabilities={"sampling": {}}, sampling="force")
        stream.send(event(sampling(3)))
        self.assertIn("result", server.answer().message)
        self.done(reply, stream)

    def test_refuse_answers_no(self):
        server, client, reply, stream = self.call(capabilities={"sampling": {}}, sampling="refuse")
        stream.send(event(sampling(3)))
        answer = server.answer().message
        self.assertEqual((answer["id"], answer["error"]["code"]), (3, -1))
        self.done(reply, stream)
        self.assertEqual(self.provider.stats()["requests"], 0)


    def test_refuse_and_force_let_nothing_pass_that_could_be_taken_for_one(self):
        """Of a message that has a method and a result some peers see the one, some the other; in whatever order, of whatever size."""
        for mode in ("refuse", "force"):
            server, client, reply, stream = self.call(capabilities={"sampling": {}}, sampling=mode)
            asked = {"jsonrpc": "2.0", "id": 0, "method": "sampling/createMessage", "params": sampling(0)["params"]}
            answered = {"result": {"text": "x" * (100 << 10)}}
            for id, message in enumerate(({**asked, **answered}, {**answered, **asked}, [{**answered, **asked}], {**asked, "result": None},
                                          {**asked, "error": {"code": 1, "message": "m"}})):
                (message[0] if isinstance(message, list) else message)["id"] = id
                stream.send(event(json.dumps(message).encode()))
                answer = server.answer().message
                self.assertEqual(answer["id"], id)
                self.assertEqual("error" in answer, mode == "refuse", answer)
            self.done(reply, stream)


class Cancelled(Called):
    def cancelled(self):
        self.assertEqual(self.sampling_line()["status"], 499)

    def started(self, **options):
        call = self.call(model="sim-latency-30s", **options)
        call[3].send(event(sampling(4)))
        self.provider.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        return call

    def test_a_server_cancels_its_sampling(self):
        server, client, reply, stream = self.started()
        other = event(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}')
        stream.send(other)
        reply.expect(other)
        stream.send(event(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"r","requestId":4.0}}'))
        self.cancelled()
        self.done(reply, stream)
        self.assertTrue(server.idle())

    def test_a_client_cancels_its_only_call(self):
        server, client, reply, stream = self.started()
        body = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1 }}'
        self.assertEqual(client.post(body).status, 202)
        self.assertEqual(server.seen("notifications/cancelled")[0].body, body)
        answer = server.answer().message
        self.assertEqual((answer["id"], answer["error"]["code"], answer["error"]["data"]["reason"]), (4, -1, "sampling_cancelled"))
        self.cancelled()
        self.done(reply, stream)

    def test_a_client_cancels_one_call_of_two(self):
        """Nobody knows which of them the sampling is for: it goes on."""
        server, client, reply, stream = self.call(model="sim-latency-500ms")
        second = client.call(2)
        beside = server.take().stream()
        beside.send(event(note()))
        second.expect(event(note()))
        stream.send(event(sampling(4)))
        self.provider.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        client.notify("notifications/cancelled", requestId=1)
        self.assertIn("result", server.answer().message)
        beside.finish(event(result(2)))
        second.expect(event(result(2))).end()
        self.done(reply, stream)

    def test_calls_of_a_batch_are_cancelled_one_by_one(self):
        """What they have caused ends with the last of them; a cancellation may be in an array itself."""
        def cancels(*ids):
            return [{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}} for id in ids]
        server, client = self.pair(self.server(revision="2025-03-26"), revision="2025-03-26", model="sim-latency-30s")
        calls = []
        server.on("array", lambda call: call.accept() if b"cancelled" in call.body else calls.append(call))
        reply = client.post([{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t"}} for id in ("a", 2, 3)])
        stream = harness.wait_for(lambda: calls and calls[0], "the batch has come").stream()
        stream.send(event(sampling(4)))
        self.provider.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        self.assertEqual(client.post(cancels(2, "b")).status, 202)
        self.assertEqual(client.post(cancels("a", 2)).status, 202)
        stream.send(event(note()))  # the calls are not over
        reply.expect(event(note()))
        self.assertTrue(server.idle())
        self.assertEqual(client.post(cancels(3.0)).status, 202)
        answer = server.answer().message
        self.assertEqual((answer["id"], answer["error"]["data"]["reason"]), (4, "sampling_cancelled"))
        self.cancelled()
        stream.finish(event([result("a"), result(2), result(3)]))
        reply.expect(event([result("a"), result(2), result(3)])).end()

    def test_a_call_is_open_before_the_server_says_a_word(self):
        server, client, reply, stream = self.call(model="sim-latency-500ms")
        second = client.call(2)
        silent = server.take()
        stream.send(event(sampling(4)))
        self.provider.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        client.notify("notifications/cancelled", requestId=1)
        self.assertIn("result", server.answer().message)
        silent.json(result(2))
        self.assertEqual(second.json(), result(2))
        self.done(reply, stream)

    def test_delete_ends_samplings(self):
        server, client, reply, stream = self.started()
        self.assertEqual(client.delete().status, 200)
        self.cancelled()
        self.assertTrue(server.idle())

    def test_a_client_that_leaves_has_not_cancelled(self):
        server, client, reply, stream = self.call(model="sim-latency-500ms")
        stream.send(event(sampling(4)))
        self.provider.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        reply.close()
        self.assertIn("result", server.answer().message)
        self.assertFalse(stream.exchange.gone)
        stream.send(event(sampling(5)))  # and the next one, too
        self.assertEqual(server.answer().message["id"], 5)
        stream.finish(event(result(1)))

    def test_a_client_that_leaves_before_the_server_says_a_word_has_not_cancelled(self):
        server, client = self.pair()
        calls = []
        for id in range(3):
            reply = client.call(id)
            calls.append(server.take())
            reply.close()
        harness.wait_for(lambda: self.gate.metrics().sum("sluice_connections") == 0, "the gateway knows that the clients have gone")
        stream = calls[0].stream()
        stream.send(event(sampling(4)))
        self.assertIn("result", server.answer().message)
        stream.send(event(sampling(5)))
        self.assertEqual(server.answer().message["id"], 5)
        calls[1].json([sampling(6), result(1)])
        self.assertEqual(server.answer().message["id"], 6)
        calls[2].json(result(2))
        stream.finish(event(result(0)))
        self.assertEqual(server.seen("notifications/cancelled"), [])

    def test_a_server_that_breaks_its_stream_off_has_its_answer(self):
        for how in ("end", "cut", "reset"):
            server, client, reply, stream = self.call(model="sim-latency-300ms")
            stream.send(event(sampling(4)))
            self.provider.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
            getattr(stream, how)()
            self.assertIn("result", server.answer().message, how)
            reply.end() if how == "end" else reply.cut()

    def test_a_gateway_that_leaves_says_so(self):
        server, client, reply, stream = self.started(settings=lambda whole: whole.update(drain="1s"))
        self.gate.send(signal.SIGTERM)
        answer = server.answer().message
        self.assertEqual((answer["id"], answer["error"]["code"], answer["error"]["data"]["reason"]), (4, -32603, "draining"))
        self.gate.stop()

    def test_a_reload_changes_nothing_for_what_is_under_way(self):
        server, client, reply, stream = self.call(model="sim-latency-500ms")
        stream.send(event(sampling(4)))
        self.provider.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        self.assertEqual(self.gate.reload().status, 200)
        self.assertIn("result", server.answer().message)
        stream.send(event(sampling(5)))
        self.assertIn("result", server.answer().message)
        self.done(reply, stream)


class AsSampling(Called):
    """The answer, the charge and the log line are those of /v1/sampling."""

    def same(self, params=None, before=0, **options):
        """Asks both the same; returns the server's answer."""
        server, client, reply, stream = self.call(**options)
        request = sampling(5, **(params or {}))
        for id in range(before):
            stream.send(event(sampling(100 + id, **(params or {}))))
            server.answer()
        stream.send(event(request))
        answer = server.answer().message
        line = self.sampling_line(lambda line: before == 0 or line["status"] != 200)
        if before == 0:
            direct = self.gate.post(request, {"MCP-Protocol-Version": "2025-11-25"})
            self.assert_same(answer, direct.json())
            self.assertEqual(mcp_rig.facts(line), mcp_rig.facts(self.gate.log(direct.headers["sluice-request-id"])))
        self.done(reply, stream)
        self.assertEqual((line["front"], line["server"], line["tenant"]), ("mcp", "raw", "acme"))
        return answer

    def test_a_result(self):
        answer = self.same()
        self.assertIn("result", answer)
        self.assertEqual(self.provider.stats()["requests"], 2)

    def test_a_result_with_tools(self):
        self.assertEqual(self.same(TOOLS, model="sim-calls-1")["result"]["stopReason"], "toolUse")

    def test_a_provider_that_fails(self):
        for model in ("sim-error-500", "sim-error-400", "sim-badjson"):
            self.assertIn("error", self.same(model=model))

    def test_a_provider_that_hangs(self):
        self.assertIn("error", self.same(model="sim-hang", limits={"deadline": "700ms"}))

    def test_policy(self):
        for change, code in (({"policy": {"tools": {"deny": ["look"]}}}, 403), ({"capabilities": {"tools": False}}, -32602)):
            self.assertEqual(self.same(TOOLS, settings=lambda whole, change=change: whole["plans"]["standard"].update(change))["error"]["code"], code)

    def test_policy_of_the_server_alone(self):
        for change, code in (({"policy": {"tools": {"deny": ["look"]}}}, 403), ({"capabilities": {"tools": False}}, -32602)):
            server, client, reply, stream = self.call(settings=lambda whole, change=change: whole["plans"]["standard"].update(servers={"raw": change}))
            stream.send(event(sampling(5, **TOOLS)))
            self.assertEqual(server.answer().message["error"]["code"], code)
            self.assertEqual(self.gate.post(sampling(5, **TOOLS)).status, 200)
            self.done(reply, stream)

    def test_a_budget(self):
        self.assertEqual(self.same(limits={"usd_per_day": 0})["error"]["code"], 402)

    def test_a_rate(self):
        answer = self.same(before=1, limits={"requests_per_minute": 1, "requests_burst": 1})
        self.assertEqual(answer["error"]["code"], 429)
        self.assertIn("retryAfterMs", answer["error"]["data"])

    def test_no_model(self):
        def none(settings):
            settings["models"] = [harness.model("small", "anthropic", context=1000)]
            settings["plans"]["standard"]["models"]["default"] = "small"
        self.assertEqual(self.same({"systemPrompt": "x" * 20000}, settings=none)["error"]["code"], 422)

    def test_params_that_are_none(self):
        for params in ({"maxTokens": "x"}, {"messages": []}, {"messages": None}):
            self.assertEqual(self.same(params)["error"]["code"], -32602)

    def test_the_log_line_names_what_was_called(self):
        server, client = self.pair()
        for method, params, tool in (("tools/call", {"name": "look"}, "look"), ("prompts/get", {"name": "p/1"}, "p/1"), ("resources/read", {"uri": "a://b"}, "a://b")):
            reply = client.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            stream = server.take().stream()
            stream.send(event(sampling(tool)))
            server.answer()
            self.assertEqual(self.sampling_line(lambda line, tool=tool: line.get("tool") == tool)["server"], "raw")
            self.done(reply, stream)

    def test_spend_is_by_tenant_and_server(self):
        server, client, reply, stream = self.call()
        stream.send(event(sampling(0)))
        server.answer()
        self.done(reply, stream)
        line = self.sampling_line()
        spent = [float(line[key]) for key in line if "usd" in key]
        self.assertTrue(spent and max(spent) > 0, line)


if __name__ == "__main__":
    harness.main()
