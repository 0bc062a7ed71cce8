#!/usr/bin/env python3
"""/mcp/{server} in bad weather: a clear JSON-RPC error or an untouched pass, nothing hangs, nothing stays behind.

ctest: timeout=180
"""
import gzip
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_rig
from mcp_server import ask, error, event, note, result, sampling

MIB = 1 << 20
OTHER = "sk-slu-another-key-of-the-tests"


class Weather(mcp_rig.Case):
    def tearDown(self):
        """Whatever was done to it, the gateway serves the next session."""
        if hasattr(self, "gate") and self.gate.running and not self.gate.killed:
            server = self.server()
            settings = json.loads(json.dumps(self.gate.settings))
            settings["mcp_servers"]["fine"] = {"url": server.url}
            self.gate.write_config(settings)
            self.assertEqual(self.gate.reload().status, 200)
            client = self.client(self.gate.url + "/mcp/fine")
            harness.wait_for(lambda: client.initialize().status == 200, "the reload")
            client.hello()
            reply = client.call()
            stream = server.take().stream()
            stream.send(event(sampling(0)))
            self.assertEqual(server.answer().message["id"], 0)
            stream.finish(event(result(1)))
            reply.expect(event(result(1))).end()
        super().tearDown()


class Calls(Weather):
    def refused(self, answer, status=502, reason="server_unavailable", **options):
        """A call whose exchange is given to `answer` ends as this error."""
        server, client = self.pair(**options)
        reply = client.call("i")
        answer(server.take())
        return self.assert_rpc_error(reply, status, reason, "i")

    def test_a_connection_that_ends_before_the_answer(self):
        self.refused(lambda call: call.close())
        self.refused(lambda call: call.reset())

    def test_a_call_is_not_sent_twice(self):
        server, client = self.pair()
        reply = client.call("i")
        server.take().close()
        self.assert_rpc_error(reply, 502, "server_unavailable", "i")
        self.assertEqual(len(server.seen("tools/call")), 1)

    def test_half_a_head(self):
        def half(call):
            call.raw(b"HTTP/1.1 200 OK\r\nContent-Ty")
            call.close()
        self.refused(half)

    def test_what_is_no_http(self):
        for data in (b"hello\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"\x16\x03\x01\x00" * 20, b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"):
            server, client = self.pair()
            reply = client.call("i")
            call = server.take()
            call.raw(data)
            call.close()
            self.assertEqual((reply.status, reply.json()["id"]), (502, "i"), data)

    def test_half_a_body(self):
        def half(call):
            call.raw(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"jsonrpc"')
            call.close()
        self.refused(half)

    def test_a_server_that_hangs(self):
        began = time.monotonic()
        self.refused(lambda call: None, timeouts={"first_byte": "300ms"})
        self.refused(lambda call: call.raw(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{'), timeouts={"idle": "300ms"})
        self.assertLess(time.monotonic() - began, harness.PATIENCE_S)

    def test_a_stream_that_hangs_breaks_off(self):
        server, client = self.pair(timeouts={"idle": "300ms"})
        reply = client.call()
        stream = server.take().stream()
        stream.send(event(note()))
        reply.expect(event(note()))
        reply.cut()
        stream.wait_gone()

    def test_a_server_that_lets_nobody_connect(self):
        port = harness.free_port()
        self.silent(port)
        settings = self.settings({"raw": {"url": f"http://127.0.0.2:{port}/mcp", "timeouts": {"connect": "300ms"}}})
        self.gate = self.gateway(settings)
        self.assert_rpc_error(self.client(self.gate.url + "/mcp/raw").initialize(id="i"), 502, "server_unavailable", "i")

    def test_a_name_that_nobody_knows(self):
        settings = self.settings({"raw": {"url": "http://nobody.invalid/mcp"}})
        self.gate = self.gateway(settings)
        self.assert_rpc_error(self.client(self.gate.url + "/mcp/raw").call("i"), 502, "server_unavailable", "i")

    def test_redirections_are_not_followed(self):
        target = self.server(sessions=False)
        for status in (301, 302, 303, 307, 308):
            self.refused(lambda call, status=status: call.answer(status, headers=[("Location", target.url)]), reason="server_answer_invalid")
        self.assertEqual(target.requests, [])

    def test_a_coded_answer_is_not_passed_as_if_it_were_none(self):
        packed = gzip.compress(json.dumps(result("i")).encode())
        self.refused(lambda call: call.answer(200, packed, [("Content-Encoding", "gzip")]), reason="server_answer_invalid")
        self.refused(lambda call: call.answer(200, gzip.compress(event(result("i"))), [("Content-Encoding", "gzip")], "text/event-stream"),
                     reason="server_answer_invalid")

    def test_a_refusal_of_the_gateways_credentials_is_the_operators(self):
        for status in (401, 403):
            server, client = self.pair(authorization="Bearer upstream-secret")
            reply = client.call("i")
            server.take().json(error("i", -32001, "secret words"), status, [("WWW-Authenticate", 'Bearer resource_metadata="http://x/"')])
            self.assert_rpc_error(reply, 502, "server_configuration", "i")
            self.assertIsNone(reply.header("www-authenticate"))
            self.assertNotIn(b"secret", reply.data)
            line = json.loads(self.gate.wait_line(lambda line: "server_configuration" in line, "its log line"))
            self.assertEqual((line["front"], line["status"]), ("mcp", 502))

    def test_an_error_page_passes(self):
        server, client = self.pair()
        reply = client.call()
        server.take().answer(500, b"<html>down</html>", content_type="text/html")
        self.assertEqual((reply.status, reply.header("content-type"), reply.body()), (500, "text/html", b"<html>down</html>"))

    def test_a_status_that_is_an_error_may_be_a_stream(self):
        server, client = self.pair()
        reply = client.call()
        server.take().stream(status=500).finish(event(error(1, -32603)))
        self.assertEqual((reply.status, reply.body()), (500, event(error(1, -32603))))

    def test_a_large_body_passes_and_one_that_is_too_large_is_refused(self):
        server, client = self.pair()
        body = json.dumps(result(1, "x" * (8 * MIB))).encode()
        reply = client.call()
        server.take().answer(200, body)
        self.assertTrue(reply.body() == body)
        reply = client.call("i")
        call = server.take()
        sender = self.background(lambda: call.answer(200, b"x" * (70 * MIB)))
        self.assertEqual(reply.status, 502)
        self.assertEqual(reply.json()["id"], "i")
        sender[1].join()

    def test_a_clients_body_that_is_too_large_is_refused(self):
        server = self.server(sessions=False)
        client = self.client(self.front(server, settings=lambda whole: whole.update(limits={"body_bytes": "64KiB"})))
        reply = client.post({"jsonrpc": "2.0", "id": "i", "method": "tools/call", "params": {"x": "x" * (100 << 10)}})
        self.assertEqual(reply.status, 413)
        self.assertEqual(server.requests, [])

    def test_a_client_that_leaves_before_the_answer(self):
        server, client = self.pair(capabilities={"sampling": {}})
        reply = client.call()
        call = server.take()
        reply.close()
        call.wait_gone()


class Streams(Weather):
    def open(self, **options):
        server, client = self.pair(**options)
        reply = client.call("i")
        return server, client, reply, server.take().stream()

    def test_half_an_event_at_the_end(self):
        server, client, reply, stream = self.open()
        stream.finish(event(note()) + b'data: {"jsonrpc":"2.0","id":"i","result":{}}')
        self.assertEqual(reply.body(), event(note()) + b'data: {"jsonrpc":"2.0","id":"i","result":{}}')

    def test_half_a_sampling_at_the_end(self):
        """Nobody takes it for an event (an SSE reader drops it), and it is not answered."""
        for how in ("end", "cut", "reset"):
            server, client, reply, stream = self.open()
            stream.send(event(note()) + event(sampling(0))[:-2])
            reply.expect(event(note()))
            getattr(stream, how)()
            while reply._more():
                pass
            self.assertEqual(reply.was_cut, how != "end")
            self.assertTrue(server.idle())

    def test_an_event_stream_that_has_no_body_by_its_status_harms_nobody(self):
        server, client = self.pair()
        reply = client.call("i")
        server.take().answer(205, event(result("i")), content_type="text/event-stream")
        self.assertEqual(reply.status, 205)
        reply = client.call("j")
        server.take().json(result("j"))
        self.assertEqual(reply.json(), result("j"))

    def test_a_slow_client_that_leaves_holds_nothing_up(self):
        server, client, reply, stream = self.open()
        stream.send(event(note("x" * (150 << 10))) * 40)  # more than the sockets take
        reply.close()
        stream.send(event(note("y" * (100 << 10))) * 4 + event(sampling(7)))
        self.assertEqual(server.answer().message["id"], 7)

    def test_invalid_utf8_passes(self):
        server, client, reply, stream = self.open()
        data = b'data: {"jsonrpc":"2.0","id":"i","result":"\xff\xc3"}\n\n: \xfe\n\n'
        stream.finish(data)
        self.assertEqual(reply.body(), data)

    def test_an_event_of_20_mib_passes_once_it_is_known_to_be_no_sampling(self):
        server, client, reply, stream = self.open()
        data = event(b'{"jsonrpc":"2.0","id":"i","result":"' + b"x" * (20 * MIB) + b'"}')
        sender = self.background(lambda: stream.finish(data))
        self.assertTrue(reply.body() == data)
        sender[1].join()

    def test_an_event_that_is_too_large_and_not_known_ends_the_stream(self):
        for data in (b"data: " + b"x" * (20 * MIB), b'data: {"x":"' + b"x" * (20 * MIB), b": " + b"x" * (20 * MIB)):
            server, client, reply, stream = self.open()
            sender = self.background(lambda: stream.send(data))
            while reply._more():
                if len(reply.data) > 19 * MIB:
                    break  # it passes, which is right, too
            reply.close()
            stream.exchange.close()
            sender[1].join()
        self.assertLess(self.memory_kb(), 400 << 10)

    def test_a_sampling_that_is_too_large_has_an_answer(self):
        server, client, reply, stream = self.open()
        sender = self.background(lambda: stream.send(event(sampling(5, "x" * (20 * MIB)))))
        answer = server.answer().message
        self.assertEqual((answer["id"], answer["error"]["code"]), (5, -32603))
        reply.close()
        stream.exchange.close()
        sender[1].join()

    def test_a_sampling_of_some_mib_is_answered(self):
        server, client, reply, stream = self.open()
        stream.send(event(sampling(5, "x" * (9 * MIB))))
        self.assertEqual(server.answer().message["id"], 5)
        stream.finish(event(result("i")))
        self.assertEqual(reply.body(), event(result("i")))

    def narrow(self, **changes):
        """A server, and clients of two tenants of one gateway with a worker that has room for little more than one large event."""
        def settings(whole):
            whole["workers"] = 1
            whole.setdefault("limits", {}).update(changes)
            whole["tenants"].append(harness.tenant("other", OTHER))
        server, client = self.pair(settings=settings, hello=False)
        client, other = client.at(self.gate.url), self.client(self.gate.url + "/mcp/raw", key=OTHER).at(self.gate.url)
        for one in (client, other):
            one.hello()
        return server, client, other

    def one_has_no_room(self, server, streams):
        """Of samplings of 10 MiB on those streams one is given up, and answered; the other one goes on."""
        data = {id: event(sampling(id, "x" * (10 * MIB))) for id in streams}
        senders = [self.background(lambda id=id: streams[id].send(data[id][:-2])) for id in streams]
        refused = server.answer().message
        self.assertEqual(refused["error"]["code"], -32603)
        left, = streams.keys() - {refused["id"]}
        streams[left].send(data[left][-2:])
        self.assertEqual(server.answer().message["id"], left)
        for sender in senders:
            sender[1].join()

    def test_a_tenant_whose_streams_hold_too_much_does_not_harm_others(self):
        server, client, other = self.narrow(unfinished_bytes="32MiB")
        streams = {id: client.call(id) and server.take().stream() for id in (1, 2)}
        self.one_has_no_room(server, streams)
        reply = other.call("o")
        stream = server.take().stream()
        stream.send(event(sampling(5, "x" * (9 * MIB))))
        self.assertEqual(server.answer().message["id"], 5)
        stream.finish(event(result("o")))
        reply.expect(event(result("o"))).end()

    def test_a_sampling_that_is_given_up_for_want_of_room_has_an_answer(self):
        """On streams of calls, and on sessions' own."""
        server, client, other = self.narrow(unfinished_bytes="1MiB", body_bytes="1MiB")
        owns = {1: server.get_stream(), 2: server.get_stream()}
        self.one_has_no_room(server, {id: one.call(id) and server.take().stream() for id, one in ((3, client), (4, other))})
        self.one_has_no_room(server, owns)

    def test_a_slow_client_holds_the_server_up(self):
        server, client, reply, stream = self.open()
        self.assertEqual(reply.status, 200)
        sent = []

        def flood():
            for number in range(64):
                stream.send(event(note("x" * MIB)))
                sent.append(number)
            stream.finish(event(result("i")))
        sender = self.background(flood)
        harness.wait_for(lambda: self.stands(sent), "the server is not read any more")
        self.assertLess(len(sent), 40)
        self.assertTrue(reply.body() == event(note("x" * MIB)) * 64 + event(result("i")))
        sender[1].join()

    @staticmethod
    def stands(sent):
        """No more was sent for a while."""
        before = len(sent)
        try:
            harness.wait_for(lambda: len(sent) != before, "more", 1)
        except harness.Failure:
            return before > 0
        return False

    def test_a_slow_client_does_not_hold_a_sampling_up(self):
        server, client, reply, stream = self.open()
        self.assertEqual(reply.status, 200)
        stream.send(event(sampling(0)))
        server.answer()
        for id in range(1, 4):
            stream.send(event(note("x" * (MIB // 2))) + event(sampling(id)))
        self.assertEqual(sorted(answer.message["id"] for answer in server.answers(3)), [1, 2, 3])
        stream.finish(event(result("i")))
        self.assertTrue(reply.body().endswith(event(result("i"))))

    def test_a_client_that_leaves_a_relayed_stream_ends_it(self):
        server, client, reply, stream = self.open(capabilities={"sampling": {}})
        stream.send(event(note()))
        reply.expect(event(note()))
        reply.close()
        stream.wait_gone()

    def test_a_server_that_is_killed_in_the_middle_is_seen(self):
        server, client, reply, stream = self.open(model="sim-latency-300ms")
        stream.send(event(note()) + event(sampling(0)))
        reply.expect(event(note()))
        self.provider.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        server.close()
        reply.cut()
        self.assertEqual(self.sampling_line()["status"], 200)
        self.assert_rpc_error(client.call("j"), 502, "server_unavailable", "j")

    def test_an_answer_is_posted_again_if_nobody_was_there(self):
        """A server that is away for a moment."""
        server, client, reply, stream = self.open(model="sim-latency-300ms")
        stream.send(event(sampling(0)))
        self.provider.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        server.close()
        self.sampling_line()  # the model has answered, and the server is away
        fresh = self.server(port=server.port)
        fresh.known = server.known
        self.assertEqual(fresh.answer().message["id"], 0)


class Initialize(Weather):
    def test_an_initialize_that_has_no_good_answer_is_an_error(self):
        def half(call):
            call.stream().send(b": hello\n\n" + event(note())).cut()

        def nothing(call):
            call.stream().finish(b": hello\n\n")
        for answer in (lambda call: call.close(), half, nothing, lambda call: call.answer(307, headers=[("Location", "http://127.0.0.1:1/")])):
            server = self.server()
            server.on("initialize", answer)
            reply = self.client(self.front(server)).initialize(id="i")
            self.assertEqual((reply.status, reply.json()["id"]), (502, "i"))

    def test_a_refused_initialize_that_then_breaks_off_is_an_error(self):
        server = self.server(strict="tools")

        def initialize(call):
            if "tools" in call.message["params"]["capabilities"].get("sampling", {}):
                server.initialize(call)
            else:
                call.close()
        server.on("initialize", initialize)
        self.assert_rpc_error(self.client(self.front(server)).initialize(id="i"), 502, "server_unavailable", "i")


class OwnStreams(Weather):
    def test_a_get_that_fails_does_not_fail_the_session(self):
        for status in (400, 404, 500, 503):
            server = self.server(get="take")
            client = self.client(self.front(server))
            client.hello(initialized=False)
            reply = client.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
            server.take().json(error(None, -32000), status)
            self.assertEqual(reply.status, 202)
            if status != 404:
                call = client.call()
                server.take_call().json(result(1))
                self.assertEqual(call.status, 200)

    def test_an_own_stream_that_breaks_off_comes_again(self):
        server = self.server(get="take")
        client = self.client(self.front(server))
        client.hello(initialized=False)
        reply = client.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        server.take().stream().cut()
        self.assertEqual(reply.status, 202)
        server.take().stream().send(event(sampling(0)))  # a second later
        self.assertEqual(server.answer().message["id"], 0)

    def test_what_is_no_event_stream_is_not_read_as_one(self):
        server = self.server(get="take")
        client = self.client(self.front(server))
        client.hello(initialized=False)
        reply = client.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        server.take().json(sampling(0))
        self.assertEqual(reply.status, 202)
        call = client.call()
        server.take_call().json(result(1))
        self.assertEqual(call.status, 200)
        self.assertEqual(self.provider.stats()["requests"], 0)

    def test_a_server_that_floods_its_stream_does_not_fill_the_gateway(self):
        server, client = self.pair()
        own = server.get_stream()
        for _ in range(200):
            own.send(event(note("x" * 100000)))
        own.send(event(sampling(0)))
        server.answer()
        self.assertLess(self.memory_kb(), 200 << 10)
        get = client.get()
        own.send(event(note("last")))
        while get.message() != note("last"):
            pass


if __name__ == "__main__":
    harness.main()
