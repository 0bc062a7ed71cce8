#!/usr/bin/env python3
"""/mcp/{server} over two gateways on one Redis: what becomes of a session when one of them goes, or Redis.

ctest: timeout=240
"""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_rig
import redis_fleet
from mcp_server import event, note, result, sampling
from mcp_two import Case, Listener, goes_on_without_redis

SLOWER = 3 if os.environ.get("SLUICE_SANITIZE") else 1
ANSWER_S, TAKEOVER_S = 10 * SLOWER, 5 * SLOWER  # behind a death
LEAVES_S = 4 * SLOWER  # behind a drain's begin: for 2 s the gateway only says that it is not ready any more
PLACES = ("call", "GET")


class Killed(Case):
    """kill -9 of the home, whose server cannot resume a stream."""

    model = "sim-" + redis_fleet.USAGE_WORDS

    def killed(self):
        self.gate.gateways[0].kill()
        return time.monotonic()

    def place(self, where, **options):
        """Where a sampling may come, at the first gateway: the streams of a call and of a GET."""
        server, home, other, stream = self.sides(**options)
        if where == "call":
            home.call()
            stream = server.take().stream()
        return server, stream

    def answered(self, server, since, id=5):
        answer = server.answer().message
        self.assertLess(time.monotonic() - since, ANSWER_S)
        self.assertEqual(answer["id"], id)
        return answer

    def test_a_sampling_under_way_is_answered_by_the_other(self):
        for where in PLACES:
            with self.subTest(where):
                server, stream = self.place(where, model=self.model + "-hang-first-1")
                stream.send(event(sampling(5)))
                self.asked(1)
                self.assertIn("result", self.answered(server, self.killed()))
                line = self.sampling_line()
                direct = self.gate.gateways[1].post(sampling(5), {"MCP-Protocol-Version": "2025-11-25"})
                self.assertEqual(mcp_rig.facts(line), mcp_rig.facts(self.gate.log(direct.headers["sluice-request-id"])))
                self.assertEqual(self.provider.stats()["requests"], 3)

    def test_many_samplings_under_way_are_answered_each_once(self):
        server, home, other, stream = self.sides(model="sim-hang-first-12")
        home.call()
        post = server.take().stream()
        for id in range(6):
            stream.send(event(sampling(id)))
            post.send(event(sampling(str(id))))
        self.asked(12)
        since = self.killed()
        answers = [answer.message for answer in server.answers(12)]
        self.assertLess(time.monotonic() - since, ANSWER_S)
        self.assertEqual({answer["id"] for answer in answers}, {*range(6), *map(str, range(6))})
        self.assertTrue(all("result" in answer for answer in answers), answers)
        other.notify("notifications/x")
        self.assertTrue(server.idle())

    def test_what_the_provider_had_answered_is_paid_for_once(self):
        for where in PLACES:
            with self.subTest(where):
                server, stream = self.place(where, model=self.model)
                posted = []

                def take(exchange, posted=posted):
                    posted.append(exchange)
                    if len(posted) > 1:
                        exchange.accept()
                server.on("response", take)
                stream.send(event(sampling(5)))
                harness.wait_for(lambda posted=posted: posted, "the answer, which is not taken")
                harness.wait_for(self.is_kept, "the answer in Redis")
                harness.wait_for(lambda: self.gate.redis.tenant()["day"] == redis_fleet.COST_NANO, "what it has cost in Redis")
                since = self.killed()
                harness.wait_for(lambda posted=posted: len(posted) > 1, "the answer of the other gateway")
                self.assertLess(time.monotonic() - since, ANSWER_S)
                self.assertEqual(posted[0].body, posted[1].body)
                self.assertEqual(self.provider.stats()["requests"], 1)
                self.assertEqual(self.gate.redis.tenant()["day"], redis_fleet.COST_NANO)

    def is_kept(self):
        redis = self.gate.redis
        return any((redis.ask("GET", key) or "").startswith("D") for key in redis.ask("KEYS", "sluice:once:1:*"))

    def test_what_is_too_large_to_be_kept_is_answered_with_an_error(self):
        for where in PLACES:
            with self.subTest(where):
                server, stream = self.place(where, model="sim-hang")
                stream.send(event(sampling(5, "x" * 100000)))
                self.asked(1)
                error = self.answered(server, self.killed())["error"]
                self.assertEqual((error["code"], error["data"]["reason"]), (-32603, "gateway_lost"))

    def test_a_sampling_that_was_answered_is_not_answered_again(self):
        server, home, other, stream = self.sides()
        stream.send(event(sampling(5)))
        self.assertIn("result", server.answer().message)
        self.settled()
        self.killed()
        self.pings(server, other)
        second = server.get_stream()
        second.send(event(sampling(5)) + event(sampling(6)))
        self.assertEqual(server.answer().message["id"], 6)
        self.assertTrue(server.idle())
        self.assertEqual(self.provider.stats()["requests"], 2)

    def test_a_server_process_that_dies_alone(self):
        """The supervisor makes another one, which is another gateway."""
        for where in PLACES:
            with self.subTest(where):
                server, stream = self.place(where, model="sim-hang-first-1")
                stream.send(event(sampling(5)))
                self.asked(1)
                os.kill(self.gate.gateways[0].server_pid(), signal.SIGKILL)
                self.assertIn("result", self.answered(server, time.monotonic()))

    def test_a_stopped_gateway_that_comes_back_does_no_harm(self):
        """It is dead for the other, which answers; what it says when it goes on may come as a second answer, and the session lives."""
        server, home, other, stream = self.sides(model="sim-hang-first-1")
        pid = self.gate.gateways[0].server_pid()
        stream.send(event(sampling(5)))
        self.asked(1)
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        self.assertIn("result", self.answered(server, time.monotonic()))
        os.kill(pid, signal.SIGCONT)
        reply = home.call()
        post = server.take_call().stream()
        post.send(event(sampling(6)))
        while server.answer().message["id"] != 6:
            pass
        post.finish(event(result(1)))
        reply.expect(event(result(1))).end()


class Homes(Case):
    """Who holds the own stream when the home has gone."""

    def heard(self, log, listener, server, since, most_s):
        """The stream is resumed behind what was heard, in time, and lives."""
        answers, thread = self.background(listener.event)
        harness.wait_for(lambda: len(server.seen("GET")) == 2, "the second GET")
        self.assertLess(time.monotonic() - since, most_s)
        self.assertEqual(server.last_ids[-1], "own_0")
        shown = log.add(note("b"))
        thread.join()
        self.assertEqual(answers, [shown])
        log.add(sampling(0))
        self.assertEqual(server.answer().message["id"], 0)

    def listen(self, log, client):
        listener = Listener(client)
        shown = log.add(note("a"))
        self.assertEqual(listener.event(), shown)
        return listener

    def test_a_client_that_listens_at_the_other_goes_on(self):
        server, home, other, log = self.logged()
        listener = self.listen(log, other)
        self.gate.gateways[0].kill()
        self.heard(log, listener, server, time.monotonic(), TAKEOVER_S)

    def test_a_client_that_comes_to_the_other_goes_on(self):
        server, home, other, log = self.logged()
        self.listen(log, home)
        self.gate.gateways[0].kill()
        since = time.monotonic()
        self.heard(log, Listener(other), server, since, TAKEOVER_S)

    def test_a_request_is_enough(self):
        server, home, other, log = self.logged()
        log.add(sampling("first"))
        server.answer()
        self.settled()
        self.gate.gateways[0].kill()
        since = time.monotonic()
        self.pings(server, other)
        self.assertLess(time.monotonic() - since, TAKEOVER_S)
        self.assertEqual(server.last_ids[-1], "own_0")
        log.add(sampling(0))
        self.assertEqual(server.answer().message["id"], 0)

    def test_a_home_that_drains_lets_go_at_once(self):
        server, home, other, log = self.logged(settings=lambda whole: whole.update(drain="20s"))
        listener = self.listen(log, other)
        reply = home.call()
        post = server.take_call().stream()
        self.assertEqual(reply.status, 200)
        self.gate.gateways[0].send(signal.SIGTERM)
        self.heard(log, listener, server, time.monotonic(), LEAVES_S)
        post.send(event(sampling("drained")))
        self.assertEqual(server.answer().message["id"], "drained")
        post.finish(event(result(1)))
        reply.expect(event(result(1))).end()
        self.gate.gateways[0].stop()

    def test_a_draining_homes_own_listener_goes_to_the_other(self):
        server, home, other, log = self.logged(settings=lambda whole: whole.update(drain="20s"))
        listener = self.listen(log, home)
        self.gate.gateways[0].send(signal.SIGTERM)
        listener.get.end()
        self.heard(log, Listener(other), server, time.monotonic(), LEAVES_S)

    def test_a_server_that_refuses_a_second_stream_loses_no_session(self):
        server = self.server(get="take")
        client = self.client(self.front(server))
        home = self.at(client, 0)
        home.hello(initialized=False)
        reply = home.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        server.take().stream()
        self.assertEqual(reply.status, 202)
        other = self.at(home, 1)
        self.gate.gateways[0].kill()
        server.get = 400
        self.pings(server, other)
        reply = other.call()
        post = server.take_call().stream()
        post.send(event(sampling(0)))
        self.assertEqual(server.answer().message["id"], 0)
        post.finish(event(result(1)))
        reply.expect(event(result(1))).end()


class Away(Case):
    """Redis."""

    def serves(self, server, client, own=None):
        """A call with a sampling, and one on the own stream."""
        reply = client.call()
        post = server.take_call().stream()
        for stream in filter(None, (post, own)):
            id = f"s-{len(server.requests)}"
            stream.send(event(sampling(id)))
            answer = server.answer().message
            self.assertEqual((answer["id"], "result" in answer), (id, True), answer)
        post.finish(event(result(1)))
        reply.expect(event(result(1))).end()

    def own_stream(self, server, streams):
        """Where each gateway had one, because it did not know of the other's, one is left."""
        def alive():
            while server.has_stream():
                streams.append(server.get_stream())
            return [stream for stream in streams if not stream.exchange.gone]
        harness.wait_for(lambda: len(alive()) == 1, "one own stream")
        return alive()[0]

    def returns(self, start):
        start()
        harness.wait_for(self.gate.share, "every gateway to use Redis")

    def test_both_go_on_while_it_stands_still_and_afterwards(self):
        server, home, other, stream = self.sides(settings=goes_on_without_redis)
        listener = Listener(other)
        self.gate.redis.stop()
        for client in (home, other):
            self.serves(server, client, stream)
        self.returns(self.gate.redis.go_on)
        for client in (home, other):
            self.serves(server, client, stream)
        sent = event(note("after"))
        stream.send(sent)
        self.assertEqual(listener.event(), sent)
        self.assertEqual(len(server.seen("GET")), 1)
        self.assertFalse(stream.exchange.gone)

    def test_both_go_on_when_it_has_lost_all(self):
        server, home, other, stream = self.sides(settings=goes_on_without_redis)
        self.gate.redis.kill()
        for client in (home, other):
            self.serves(server, client, stream)
        self.returns(self.gate.redis.start)
        own = self.own_stream(server, [stream])
        for client in (home, other):
            self.serves(server, client, own)
        self.assertFalse(own.exchange.gone)

    def test_each_alone_serves_on_when_it_is_gone_for_good(self):
        server, home, other, stream = self.sides(settings=goes_on_without_redis)
        self.gate.redis.kill()
        for client in (home, other):
            self.serves(server, client, stream)
        for number in (0, 1):
            fresh, _ = self.hello(self.gate.url + "/mcp/raw", number)
            own = server.get_stream()
            get = fresh.get()
            self.assertEqual(get.status, 200)
            own.send(event(note()))
            get.expect(event(note()))
            self.serves(server, fresh, own)
            self.assertEqual(fresh.delete().status, 200)
            own.wait_gone()
            get.end()
            self.is_over(fresh)


if __name__ == "__main__":
    harness.main()
