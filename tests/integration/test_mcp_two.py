#!/usr/bin/env python3
"""/mcp/{server} over two gateways on one Redis: what is at one of them and wanted at the other.

ctest: timeout=180
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_gates
import redis_fleet
import test_mcp_rounds as rounds
from mcp_server import OldServer, ask, event, note, result, sampling
from mcp_two import Case


class Streams(Case):
    def test_events_reach_the_clients_get_at_the_other_gateway(self):
        server, home, other, stream = self.sides({"elicitation": {}, "roots": {}})
        get = other.get()
        self.assertEqual((get.status, get.header("content-type")), (200, "text/event-stream"))
        sent = event(note("1"), "g_1") + event(ask(7)) + event(ask("r", "roots/list")) + event(note("2"), "g_2")
        stream.send(sent)
        get.expect(sent)
        for id, client in ((7, home), ("r", other)):
            self.assertEqual(client.post(result(id)).status, 202)
            self.assertEqual(server.answer().message, result(id))
        self.assertEqual(len(server.seen("GET")), 1)

    def test_what_came_before_the_clients_get_reaches_it(self):
        server, home, other, stream = self.sides()
        early = event(note("1"), "g_1") + event(ask(7))
        stream.send(early + event(sampling(0)))
        server.answer()
        other.get().expect(early)

    def test_many_events_come_each_once_and_in_order(self):
        server, home, other, stream = self.sides()
        get = other.get()
        self.assertEqual(get.status, 200)
        for number in range(60):
            burst = b"".join(event(note(f"{number} {at} " + "x" * (number * 40 if at else 10))) for at in range(6))
            stream.send(burst)
            get.expect(burst)
        large = event(note("x" * 300000))
        stream.send(large)
        get.expect(large)
        stream.send(event(note("last")))
        get.expect(event(note("last")))

    def test_a_sampling_there_is_answered_and_not_shown(self):
        server, home, other, stream = self.sides()
        get = other.get()
        self.assertEqual(get.status, 200)
        for id in (0, "", "0"):
            stream.send(event(sampling(id)) + event(note()))
            get.expect(event(note()))
            self.assertEqual(server.answer().message["id"], id)

    def test_the_clients_get_moves(self):
        server, home, other, stream = self.sides()
        before = None
        for number in range(6):
            get = (other, home)[number % 2].get()
            self.assertEqual(get.status, 200)
            stream.send(event(note(str(number))))
            get.expect(event(note(str(number))))
            if before is not None:
                before.end()
            before = get
        self.assertEqual(len(server.seen("GET")), 1)

    def test_a_client_that_leaves_there_leaves_its_events_to_the_next(self):
        server, home, other, stream = self.sides()
        for client in (other, other, home):
            get = client.get()
            self.assertEqual(get.status, 200)
            get.close()
        stream.send(event(note("kept")))
        get = other.get()
        get.expect(event(note("kept")))
        self.assertFalse(stream.exchange.gone)

    def test_a_server_without_such_a_stream_says_so_at_both(self):
        server = self.server(get=405)
        home, other = self.hello(self.front(server))
        for client in (other, home, other):
            self.assertEqual(client.get().status, 405)
        self.assertEqual(len(server.seen("GET")), 1)

    def test_a_client_resumes_the_own_stream_at_the_other_gateway(self):
        server, home, other, log = self.logged()
        get = home.get()
        events = [log.add(note(str(number))) for number in range(5)]
        self.assertEqual([get.shown() for _ in events], events)
        get.close()
        again = other.get("own_1")
        again.expect(b"".join(events[2:]))
        again.expect(log.add(note("new")))
        self.assertEqual(len(server.seen("GET")), 1)

    def test_a_call_is_resumed_at_the_other_gateway(self):
        server, home, other, stream = self.sides()
        log = server.log("post")
        reply = home.call()
        log.attach(server.take().stream())
        log.prime()
        log.add(sampling(0))
        shown = log.add(note())
        reply.expect(log.events[0] + shown)
        self.assertEqual(server.answer().message["id"], 0)
        log.leave()
        reply.end()
        again = other.get("post_0")  # where the sampling is seen once more
        log.add(sampling(1))
        again.expect(shown)
        self.assertEqual(server.answer().message["id"], 1)
        rest = log.add(result(1))
        log.end()
        again.expect(rest).end()
        self.assertTrue(server.idle())
        self.assertEqual(self.provider.stats()["requests"], 2)

    def test_a_request_that_both_see_is_answered_once(self):
        server, home, other, stream = self.sides()
        reply = other.call()
        post = server.take().stream()
        for id in range(10):
            first, second = (stream, post) if id % 2 else (post, stream)
            first.send(event(sampling(id)))
            second.send(event(sampling(id)))
            self.assertEqual(server.answer().message["id"], id)
        post.finish(event(result(1)))
        reply.expect(event(result(1))).end()
        self.assertTrue(server.idle())
        self.assertEqual(self.provider.stats()["requests"], 10)

    def test_a_client_may_not_answer_for_the_gateway_through_the_other(self):
        server, home, other, stream = self.sides(model="sim-latency-500ms")
        stream.send(event(sampling(4)))
        self.asked(1)
        self.assertEqual(other.post(result(4)).status, 202)
        self.assertEqual(server.answer().message["result"]["role"], "assistant")
        self.assertTrue(server.idle())

    def test_samplings_without_a_call_at_either_are_refused(self):
        server, home, other, stream = self.sides(unsolicited="refuse")

        def refused():
            stream.send(event(sampling(f"s-{len(server.requests)}")))
            answer = server.answer().message
            return answer.get("error", {}).get("data", {}).get("reason") == "sampling_unsolicited"
        self.assertTrue(refused())
        for client in (other, home):
            reply = client.call()
            call = server.take()
            self.assertFalse(refused())
            call.json(result(1))
            self.assertEqual(reply.json(), result(1))
            harness.wait_for(refused, "the call is over")


class Ends(Case):
    def test_a_server_cancels_through_the_other_gateway(self):
        server, home, other, stream = self.sides(model="sim-latency-30s")
        reply = other.call(3)
        post = server.take().stream()
        for id, (begins, ends) in enumerate(((stream, post), (post, stream)), 1):
            begins.send(event(sampling(id)))
            self.asked(id)
            ends.send(event({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
            self.stopped(id)
        post.finish(event(result(3)))
        reply.expect(event(result(3))).end()
        self.assertTrue(server.idle())

    def test_a_client_cancels_through_the_other_gateway(self):
        for way in (1, -1):
            server, *sides, stream = self.sides(model="sim-latency-30s")
            caller, canceller = sides[::way]
            reply = caller.call(1)
            post = server.take().stream()
            post.send(event(sampling(4)))
            self.asked(1)
            canceller.notify("notifications/cancelled", requestId=1)
            answer = server.answer().message
            self.assertEqual((answer["id"], answer["error"]["code"], answer["error"]["data"]["reason"]), (4, -1, "sampling_cancelled"))
            self.stopped(1)
            post.finish(event(result(1)))
            reply.expect(event(result(1))).end()

    def test_delete_at_one_ends_all_at_both(self):
        for way in (1, -1):
            server, *sides, stream = self.sides(model="sim-latency-30s")
            one, another = sides[::way]
            get = sides[1].get()
            self.assertEqual(get.status, 200)
            reply = another.call()
            post = server.take().stream()
            for id, where in enumerate((post, stream)):
                where.send(event(sampling(id)))
            self.asked(2)
            self.assertEqual(one.delete().status, 200)
            stream.wait_gone()
            get.end()
            self.stopped(2)
            for client in (one, another):
                self.is_over(client)
            self.assertTrue(server.idle())
            reply.close()

    def test_a_session_that_the_server_has_lost_is_over_at_both(self):
        server, home, other, stream = self.sides()
        server.forget()
        self.assertEqual(other.call().json()["error"]["code"], -32001)
        stream.wait_gone()
        for client in (home, other):
            self.is_over(client)

    def test_sessions_are_counted_over_both(self):
        for scope, options in (("tenant", {"limits": {"mcp_sessions": 2}}), ("server", {"sessions": 2})):
            url = self.front(self.server(), **options)

            def begun(number, url=url):
                return self.at(self.client(url), number).initialize(id="i")
            first, _ = self.hello(url, 0)
            _, second = self.hello(url, 1)
            for client in (second, first):  # the former where it did not begin
                for number in (0, 1):
                    error = self.assert_rpc_error(begun(number), 429, "sessions_exceeded", "i")
                    self.assertEqual(error["data"].get("scope") == "server", scope == "server")
                self.assertEqual(client.delete().status, 200)
                harness.wait_for(lambda: begun(1).status == 200, "room")

    def test_an_initialize_that_fails_takes_no_place(self):
        server = self.server()
        server.on("initialize", lambda call: call.json({"jsonrpc": "2.0", "id": 0, "error": {"code": -32000, "message": "no"}}))
        url = self.front(server, limits={"mcp_sessions": 1})
        for number in (0, 1, 0, 1):
            self.assertEqual(self.at(self.client(url), number).initialize().json()["error"]["code"], -32000)


class Keys(Case):
    def use(self, number, *names):
        gateway = self.gate.gateways[number]
        gateway.settings["seal_keys"] = [mcp_gates.seal_key(name) for name in names]
        gateway.write_config(gateway.settings)
        self.assertEqual(gateway.reload().status, 200)

    def test_they_rotate_without_the_loss_of_a_session(self):
        server = self.server()
        url = self.front(server)
        clients = []

        def look():
            clients.extend(self.hello(url, number)[0] for number in (0, 1))
            for client in clients:
                for number in (0, 1):
                    self.at(client, number).notify("notifications/x")
        look()
        for names in (("first", "second"), ("second", "first")):
            for number in (0, 1):
                self.use(number, *names)
                look()
        old = clients[0]
        del clients[:8]  # all that were sealed with the first
        look()
        for number in (0, 1):
            self.use(number, "second")
            look()
            self.is_over(self.at(old, number))


class Others(Case):
    def test_messages_of_an_old_session_may_go_to_the_other_gateway(self):
        """HTTP+SSE of 2024-11-05: the stream is at the first."""
        server = self.closing(OldServer())
        client = self.client(self.front(server, transport="sse"))
        stream = self.at(client, 0).get()
        first = stream.event()
        path = next(line[6:] for line in first.decode().splitlines() if line.startswith("data: "))

        def post(message, number):
            one = self.at(client, number)
            one.target = path
            return one.post(message)
        hello = post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}}, 1)
        self.assertEqual((hello.status, hello.body()), (202, b"Accepted"))
        self.assertEqual(json.loads(stream.event().split(b"data: ")[1])["id"], 0)
        [own] = server.gets.values()
        for number in (1, 0):
            self.assertEqual(post({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "t"}}, number).status, 202)
            self.assertEqual(server.take().message["id"], number)
            own.send(event(sampling(number)) + event(ask(7)) + event(result(number)))
            stream.expect(event(ask(7)) + event(result(number)))
            self.assertEqual((server.answer().message["id"]), number)
            self.assertEqual(post(result(7), number).status, 202)
            self.assertEqual(server.answer().message, result(7))
        self.assertTrue(server.idle())
        stream.close()
        own.wait_gone()
        for number in (0, 1):
            harness.wait_for(lambda number=number: post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, number).status == 404, "the session's end")


class Rounds(Case, rounds.Case):
    """2026-07-28."""

    def shown(self, server, client):
        """What the client gets of a round in which it has its part."""
        reply = self.call(client)
        server.take().json(rounds.asks(1, {"s": rounds.entry(), "e": rounds.ELICITATION}, "servers"))
        return {"inputResponses": {"e": rounds.ACCEPTED}, "requestState": reply.json()["result"]["requestState"]}

    def test_a_round_goes_on_at_the_other_gateway_and_is_billed_once(self):
        server, client = self.two(model="sim-" + redis_fleet.USAGE_WORDS)
        part = self.shown(server, self.at(client, 0))
        answers = []
        for number in (1, 0, 1):
            reply = self.call(self.at(client, number), id=2, **part)
            call = server.take()
            answers.append(call.message["params"]["inputResponses"])
            call.json(rounds.done(2))
            self.assertEqual(reply.json(), rounds.done(2))
        self.assertEqual(answers[0].keys(), {"s", "e"})
        self.assertEqual(answers[1:], answers[:1] * 2)
        self.assertEqual(self.provider.stats()["requests"], 1)
        harness.wait_for(lambda: self.gate.redis.tenant()["day"] == redis_fleet.COST_NANO, "what it costs")

    def test_what_comes_to_both_at_once_is_bought_once(self):
        server, client = self.two(model="sim-latency-700ms")
        part = self.shown(server, self.at(client, 0))
        replies = [self.call(self.at(client, number), id=2, **part) for number in (0, 1)]
        for _ in replies:
            server.take().json(rounds.asks(2, {"m": rounds.entry("more")}))
        calls = [server.take() for _ in replies]
        self.assertEqual(*(call.message["params"]["inputResponses"] for call in calls))
        for call in calls:
            call.json(rounds.done(call.message["id"]))
        for reply in replies:
            self.assertEqual(reply.json(), rounds.done(2))
        self.assertEqual(self.provider.stats()["requests"], 2)


if __name__ == "__main__":
    harness.main()
