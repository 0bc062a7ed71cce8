#!/usr/bin/env python3
"""/mcp/{server}: the GET stream that the gateway holds in a session, the client's GET, and streams that are resumed.

ctest: timeout=180
"""
import os
import select
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_rig
from mcp_server import ask, event, note, result, sampling


class Own(mcp_rig.Case):
    """mcp-proxy.md 5.1."""

    def held(self, **options):
        """A server, a client and the stream of the gateway's own GET."""
        server, client = self.pair(**options)
        return server, client, server.get_stream()

    def test_the_clients_initialized_is_held_until_the_stream_is_open(self):
        server = self.server(get="take")
        client = self.client(self.front(server))
        client.hello(initialized=False)
        self.assertEqual(server.seen("GET"), [])
        reply = client.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        get = server.take()
        self.assertEqual(get.method, "GET")
        self.assertEqual(select.select([reply.sock], [], [], 0)[0], [])
        stream = get.stream()
        self.assertEqual((reply.status, reply.body()), (202, b""))
        stream.send(event(sampling(0)))
        self.assertEqual(server.answer().message["id"], 0)

    def test_a_server_that_does_not_open_it_is_not_waited_for(self):
        server = self.server(get="take")
        client = self.client(self.front(server))
        client.hello()  # a second later
        server.take().stream().send(event(sampling(0)))
        self.assertEqual(server.answer().message["id"], 0)

    def test_a_sampling_without_any_call_is_answered(self):
        server, client, stream = self.held()
        for id in (0, "", "0", -5):
            stream.send(event(sampling(id)))
            answer = server.answer()
            self.assertEqual(answer.message["id"], id)
            self.assertIn("result", answer.message)
        self.assertEqual(answer.header("mcp-session-id"), self.upstream_id(server))

    def test_one_of_many_arrays_and_spellings(self):
        server, client, stream = self.held(revision="2025-03-26")
        get = client.get()
        stream.send(event([note(), sampling(1)], eol=b"\r\n") + event([sampling(2)]) + event(note("x"), eol=b"\r\n"))
        self.assertEqual(get.message(), [note()])
        self.assertEqual(get.message(), note("x"))
        self.assertEqual(sorted(answer.message["id"] for answer in server.answers(2)), [1, 2])

    def test_what_is_not_sampling_goes_to_the_clients_get_each_once(self):
        server, client, stream = self.held()
        early = event(note("1"), "g_1") + event(ask(7))
        stream.send(early)
        get = client.get()
        self.assertEqual((get.status, get.header("content-type")), (200, "text/event-stream"))
        get.expect(early)
        late = event(note("2"), "g_2") + event(note("3", "notifications/tools/list_changed")) + b'data: {"x":1e400}\n\n'
        stream.send(event(sampling(0)) + late)
        get.expect(late)
        client.post(result(7)).body()
        self.assertEqual(sorted(answer.message["id"] for answer in server.answers(2)), [0, 7])
        large = event(note("x" * 300000))
        stream.send(large)
        get.expect(large)

    def test_the_server_never_sees_a_second_get(self):
        server, client, stream = self.held()
        for number in range(6):  # on any worker
            get = client.get()
            self.assertEqual(get.status, 200)
            stream.send(event(note(str(number))))
            get.expect(event(note(str(number))))
            get.close()
        self.assertEqual(len(server.seen("GET")), 1)
        self.assertFalse(stream.exchange.gone)

    def test_the_newest_get_has_the_events(self):
        server, client, stream = self.held()
        first = client.get()
        self.assertEqual(first.status, 200)
        second = client.get()
        self.assertEqual(second.status, 200)
        stream.send(event(note()))
        second.expect(event(note()))
        first.end()

    def test_a_client_that_comes_late_gets_the_newest_events(self):
        server, client, stream = self.held()
        events = [event(note(str(number))) for number in range(100)]
        stream.send(b"".join(events))
        stream.send(event(sampling(0)))
        server.answer()  # so the events before it have come
        get = client.get()
        get.expect(b"".join(events[-64:]))

    def test_events_before_hello_is_over_are_there_afterwards(self):
        server = self.server()
        client = self.client(self.front(server))
        client.hello()
        server.get_stream().send(b"id: g_0\ndata: \n\n" + event(note()))
        get = client.get()
        self.assertEqual(get.message(), note())

    def test_a_server_without_such_a_stream_is_asked_once(self):
        server, client = self.pair(self.server(get=405))
        for _ in range(8):
            reply = client.get()
            self.assertEqual(reply.status, 405)
            self.assertIn("POST", reply.header("allow"))
        self.assertEqual(len(server.seen("GET")), 1)
        reply = client.call()
        stream = server.take().stream()
        stream.send(event(sampling(0)))
        self.assertIn("result", server.answer().message)
        stream.finish(event(result(1)))
        reply.expect(event(result(1))).end()

    def test_a_get_before_the_stream_is_answered_waits(self):
        server = self.server(get="take")
        client = self.client(self.front(server))
        client.hello()
        get = client.get()
        call = server.take()
        self.assertTrue(server.idle())
        call.stream().send(event(note()))
        self.assertEqual(get.status, 200)
        get.expect(event(note()))

    def test_delete_ends_both(self):
        server, client, stream = self.held()
        get = client.get()
        self.assertEqual(get.status, 200)
        self.assertEqual(client.delete().status, 200)
        stream.wait_gone()
        get.end()
        self.assertEqual(len(server.seen("GET")), 1)

    def test_a_clients_cancellation_leaves_samplings_of_it(self):
        server, client, stream = self.held(model="sim-latency-500ms")
        reply = client.call(3)
        post = server.take().stream()
        post.send(event(note()))
        reply.expect(event(note()))
        stream.send(event(sampling(1)))
        self.provider.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        client.notify("notifications/cancelled", requestId=3)
        self.assertIn("result", server.answer().message)

    def test_delete_ends_samplings_of_it(self):
        server, client, stream = self.held(model="sim-latency-30s")
        stream.send(event(sampling(1)))
        self.provider.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        self.assertEqual(client.delete().status, 200)
        self.assertEqual(self.sampling_line()["status"], 499)
        self.assertTrue(server.idle())

    def test_samplings_without_a_call_may_be_switched_off(self):
        server, client, stream = self.held(unsolicited="refuse")
        stream.send(event(sampling(1)))
        answer = server.answer().message
        self.assertEqual((answer["error"]["code"], answer["error"]["data"]["reason"]), (-1, "sampling_unsolicited"))
        reply = client.call()
        call = server.take()
        stream.send(event(sampling(2)))
        self.assertIn("result", server.answer().message)
        tool = self.sampling_line(lambda line: line["status"] == 200).get("tool")
        self.assertEqual(tool, "t" if self.gateways == 1 else None)  # the only call open, which another gateway does not know by name
        post = call.stream()
        post.send(event(sampling(3)))
        self.assertIn("result", server.answer().message)
        post.finish(event(result(1)))
        reply.expect(event(result(1))).end()

        def refused():
            stream.send(event(sampling(f"late-{len(server.requests)}")))
            return "error" in server.answer().message
        harness.wait_for(refused, "the call is over")

    def test_a_call_in_a_batch_is_an_open_call(self):
        server, client = self.pair(self.server(revision="2025-03-26"), revision="2025-03-26", unsolicited="refuse")
        stream = server.get_stream()
        reply = client.post([{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t"}} for id in (1, 2)])
        call = server.take()
        stream.send(event(sampling(1)))
        self.assertIn("result", server.answer().message)
        call.json([result(1), result(2)])
        self.assertEqual(reply.json(), [result(1), result(2)])

        def refused():
            stream.send(event(sampling(f"late-{len(server.requests)}")))
            return "error" in server.answer().message
        harness.wait_for(refused, "the calls are over")

    def test_so_many_gets_of_a_session_pass(self):
        streams = []
        server, client = self.pair(self.server().on("GET", lambda call: streams.append(call.stream())), capabilities={"sampling": {}})
        gets = [client.get() for _ in range(4 * self.gateways)]  # each gateway counts alone
        self.assertEqual({get.status for get in gets}, {200})
        for _ in range(8):  # whatever worker
            refused = client.get()
            self.assertEqual((refused.status, refused.json()["error"]["data"]["reason"]), (429, "concurrency"))
        other = self.client(self.gate.url + "/mcp/raw")
        other.hello({"sampling": {}})
        self.assertEqual(other.get().status, 200)
        gets[2].close()
        harness.wait_for(lambda: client.get().status == 200, "there is room for another")

    def test_a_server_cancels_a_sampling_there_or_on_a_calls_stream(self):
        server, client, stream = self.held(model="sim-latency-30s")
        reply = client.call(3)
        post = server.take().stream()
        for id, where in ((1, stream), (2, post)):
            stream.send(event(sampling(id)))
            self.provider.wait_stats(lambda stats, id=id: stats["requests"] == id, "the provider is asked")
            where.send(event({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
            harness.wait_for(lambda id=id: sum('"status":499' in line for line in list(self.gate.stdout)) == id, "it is stopped")
        post.finish(event(result(3)))
        reply.expect(event(result(3))).end()
        self.assertTrue(server.idle())

    def test_a_gateway_that_leaves_ends_streams_that_may_be_silent(self):
        server, client, stream = self.held(settings=lambda whole: whole.update(drain="1s"))
        get = client.get()
        self.assertEqual(get.status, 200)
        self.gate.send(signal.SIGTERM)
        stream.wait_gone()
        get.end()
        self.gate.stop()

    def test_a_client_that_leaves_without_a_word_leaves_no_get_behind(self):
        """In a session that is not answered here the client's GET is the server's."""
        server, client = self.pair(capabilities={"sampling": {}})
        for _ in range(3):
            get = client.get()
            self.assertEqual(get.status, 200)
            stream = server.get_stream()
            second = client.get()
            self.assertEqual((second.status, second.json()["error"]["code"]), (409, -32000))
            get.close()
            stream.wait_gone()


class Resumed(mcp_rig.Case):
    """mcp-proxy.md 5.3."""

    def logged(self, retry=b"retry: 20\n\n", **options):
        """A server whose GET is an event store's stream, a client and that stream."""
        server = self.server(get="take")
        log = server.log("own")
        client = self.client(self.front(server, **options))
        client.hello(initialized=False)
        reply = client.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        stream = server.take().stream()
        stream.send(retry)
        log.attach(stream)
        self.assertEqual(reply.status, 202)
        return server, client, log

    def test_the_own_stream_is_resumed_behind_the_last_event(self):
        server, client, log = self.logged()
        get = client.get()
        shown = log.add(note("a"))
        self.assertEqual(get.shown(), shown)
        log.add(sampling(0))
        server.answer()
        log.leave()
        after = log.add(note("b"))
        self.assertEqual(get.shown(), after)
        self.assertEqual(server.last_ids[-1], "own_1")  # of the event that no client has seen
        self.assertEqual(len(server.seen("GET")), 2)
        log.add(sampling(1))
        self.assertEqual(server.answer().message["id"], 1)

    def test_what_is_seen_again_is_not_answered_again(self):
        server, client, log = self.logged()
        get = client.get()
        again = event(sampling(0), "own_0")
        log.add(sampling(0))
        server.answer()
        log.leave()
        harness.wait_for(lambda: len(server.seen("GET")) == 2 and log.stream is not None, "it is resumed")
        log.stream.send(again)
        shown = log.add(note())
        self.assertEqual(get.shown(), shown)
        self.assertTrue(server.idle())
        self.assertEqual(self.provider.stats()["requests"], 1)

    def test_a_client_resumes_behind_an_event_of_the_own_stream(self):
        server, client, log = self.logged()
        get = client.get()
        events = [log.add(note(str(number))) for number in range(5)]
        self.assertEqual([get.shown() for _ in events], events)
        get.close()
        again = client.get("own_1")
        again.expect(b"".join(events[2:]))
        again.expect(log.add(note("new")))
        self.assertEqual(len(server.seen("GET")), 1)

    def test_a_calls_stream_that_is_resumed_has_its_samplings_answered(self):
        server, client = self.pair()
        log = server.log("post")
        reply = client.call()
        log.attach(server.take().stream())
        log.prime()
        log.add(sampling(0))
        shown = log.add(note())
        reply.expect(log.events[0] + shown)
        self.assertEqual(server.answer().message["id"], 0)
        log.leave()
        reply.end()
        log.add(sampling(1))
        again = client.get("post_0")  # where the first sampling is seen once more
        again.expect(shown)
        self.assertEqual(server.answer().message["id"], 1)
        rest = log.add(result(1))
        log.end()
        again.expect(rest).end()
        self.assertTrue(server.idle())
        self.assertEqual(self.provider.stats()["requests"], 2)

    def test_a_stream_that_the_client_cannot_resume_is_resumed_for_it(self):
        """All that had an id was the sampling, which the client has not seen."""
        server, client = self.pair()
        log = server.log("post")
        reply = client.call()
        log.attach(server.take().stream())
        log.add(sampling(0))
        server.answer()
        log.leave()
        log.add(result(1))
        log.end()
        self.assertEqual(reply.body(), event(result(1), "post_1"))
        self.assertEqual(server.last_ids[-1], "post_0")

    def test_the_answer_comes_while_nobody_holds_the_stream(self):
        """A server may end the connection behind the priming event and go on."""
        server, client = self.pair(model="sim-latency-300ms")
        log = server.log("post")
        reply = client.call()
        log.attach(server.take().stream())
        log.prime()
        log.add(sampling(0))
        reply.expect(log.events[0])
        log.leave()
        reply.end()
        self.assertIn("result", server.answer().message)
        log.add(result(1))
        log.end()
        again = client.get("post_1")
        self.assertEqual(again.body(), event(result(1), "post_2"))


if __name__ == "__main__":
    harness.main()
