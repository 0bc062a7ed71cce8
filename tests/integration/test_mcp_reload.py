#!/usr/bin/env python3
"""/mcp/{server}: what a reload that takes something away does to what is under way.

ctest: timeout=120
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_rig
from mcp_server import ask, event, note, result, sampling

OTHER = "sk-slu-another-key-of-the-tests"


class Case(mcp_rig.Case):
    def take_over(self, change):
        settings = json.loads(json.dumps(self.gate.settings))
        change(settings)
        self.gate.write_config(settings)
        self.assertEqual(self.gate.reload().status, 200)

    def gone(self, client, status=404):
        """Each of four workers has it, and a new connection is any worker's."""
        harness.wait_for(lambda: all(client.call("late").status == status for _ in range(16)), "all workers have the configuration")


class Servers(Case):
    """A server that is removed, or whose URL is another one."""

    def without(self, settings):
        del settings["mcp_servers"]

    def moved(self, settings):
        settings["mcp_servers"]["raw"]["url"] = self.server().url

    def open(self, **options):
        server, client = self.pair(**options)
        own = server.get_stream()
        reply = client.call("i")
        stream = server.take().stream()
        self.assertEqual(reply.status, 200)
        return server, client, own, reply, stream

    def test_what_a_call_asks_for_is_answered(self):
        for change in (self.without, self.moved):
            server, client, own, reply, stream = self.open(headers={"X-Team": "red"})
            session = self.upstream_id(server)
            self.take_over(change)
            self.gone(client)
            for id, where in ((1, stream), (2, own), (3, stream)):
                where.send(event(sampling(id)))
                answer = server.answer()
                self.assertIn("result", answer.message)
                self.assertEqual((answer.message["id"], answer.header("mcp-session-id"), answer.header("x-team")), (id, session, "red"))
            own.exchange.close()  # and comes again
            server.get_stream().send(event(sampling(4)))
            self.assertEqual(server.answer().message["id"], 4)
            self.assertEqual(reply.status, 200)
            stream.finish(event(result("i")))
            reply.expect(event(result("i"))).end()

    @mcp_rig.alone("the calls at others are not known, so that the stream stays until the session is idle")
    def test_its_own_stream_ends_with_the_last_call(self):
        server, client, own, reply, stream = self.open(model="sim-latency-500ms")
        get = client.get()
        self.assertEqual(get.status, 200)
        stream.send(event(sampling(1)))
        self.provider.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        self.take_over(self.moved)
        stream.finish(event(result("i")))
        reply.expect(event(result("i"))).end()
        self.assertIn("result", server.answer().message)
        own.wait_gone()
        get.end()

    def test_a_call_whose_client_has_left_goes_on(self):
        server, client = self.pair()
        server.get_stream()
        reply = client.call("i")
        call = server.take()
        reply.close()
        self.take_over(self.without)
        self.gone(client)
        call.stream().send(event(sampling(1)))
        self.assertEqual(server.answer().message["id"], 1)

    def test_a_stream_that_breaks_off_is_resumed(self):
        server, client, own, reply, stream = self.open()
        log = server.log("post")
        log.attach(stream)
        self.take_over(self.without)
        self.gone(client)
        for id in (0, 1):
            log.add(sampling(id))
            self.assertEqual(server.answer().message["id"], id)
            if id == 0:
                log.leave()
        log.add(result("i"))
        log.end()
        self.assertEqual(reply.body(), event(result("i"), "post_2"))

    def test_a_stream_that_passes_ends(self):
        server, client = self.pair(capabilities={"sampling": {}})
        get = client.get()
        stream = server.get_stream()
        stream.send(event(note()))
        get.expect(event(note()))
        self.take_over(self.without)
        stream.wait_gone()
        get.end()


class Grants(Case):
    """The tenant's plan, or its key, loses the server."""

    def settings(self, *args, **options):
        settings = super().settings(*args, **options)
        settings["tenants"].append(harness.tenant("other", OTHER, plan="other"))
        settings["plans"]["other"] = json.loads(json.dumps(settings["plans"]["standard"]))
        return settings

    @staticmethod
    def denied(settings):
        settings["plans"]["other"]["mcp_servers"] = {"allow": ["something-else"]}

    @staticmethod
    def without_key(settings):
        settings["tenants"][1]["keys"][0]["sha256"] = harness.sha256(OTHER + "-new")

    def open(self, client):
        client.hello()
        get = client.get()
        self.assertEqual(get.status, 200)
        return get

    def test_its_streams_end_and_others_do_not(self):
        for change, status in ((self.denied, 403), (self.without_key, 401)):
            server = self.server()
            url = self.front(server)
            one, other = self.client(url), self.client(url, key=OTHER)
            get = self.open(one)
            kept = server.get_stream()
            lost_get = self.open(other)
            lost = server.get_stream()
            self.take_over(change)
            lost.wait_gone()
            lost_get.end()
            self.gone(other, status)
            kept.send(event(sampling(1)) + event(ask("r")))
            self.assertEqual(server.answer().message["id"], 1)
            get.expect(event(ask("r")))
            self.assertFalse(kept.exchange.gone)


if __name__ == "__main__":
    harness.main()
