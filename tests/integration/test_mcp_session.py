#!/usr/bin/env python3
"""/mcp/{server}: whose a session is, which limits it has, and what is answered before a server is asked.

ctest: timeout=180
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_rig
from mcp_server import ask, event, result

OTHER = harness.KEY + "-other"


def two_tenants(settings):
    settings["tenants"].append(harness.tenant("other", OTHER))


class Tokens(mcp_rig.Case):
    def test_a_token_is_opaque_short_and_visible(self):
        for length in (1, 36, 512):
            server = self.server()
            server.issue = lambda server=server, length=length: server.known.add("s" * length) or "s" * length
            client = self.client(self.front(server))
            client.hello()
            self.assertLessEqual(len(client.session), 1024)
            self.assertTrue(all(0x21 <= ord(char) <= 0x7e for char in client.session))
            if length > 1:
                self.assertNotIn("s" * length, client.session)
            reply = client.call()
            call = server.take()
            self.assertEqual(call.header("mcp-session-id"), "s" * length)
            call.json(result(1))
            self.assertEqual(reply.json(), result(1))

    def test_a_session_id_that_is_too_long_is_refused(self):
        server = self.server()
        server.issue = lambda: "s" * 513
        client = self.client(self.front(server))
        self.assert_rpc_error(client.initialize(id="h"), 502, "server_answer_invalid", "h")

    def test_two_sessions_have_different_tokens_of_the_same_server(self):
        server, client = self.pair()
        second = self.client(self.gate.url + "/mcp/raw")
        second.hello()
        self.assertNotEqual(client.session, second.session)
        for one in (client, second):
            reply = one.call()
            call = server.take()
            call.json(result(1, text=call.header("mcp-session-id")))
            self.assertIn(reply.json()["result"]["content"][0]["text"], server.known)

    def test_every_worker_serves_every_session(self):
        server = self.server()
        server.on("tools/call", lambda call: call.json(result(call.message["id"], text=call.session)))
        url = self.front(server)
        clients = []
        for _ in range(8):
            clients.append(self.client(url))
            clients[-1].hello()
        seen = set()
        for number, client in enumerate(clients):
            replies = [client.call(id) for id in range(8)]
            texts = {reply.json()["result"]["content"][0]["text"] for reply in replies}
            self.assertEqual(len(texts), 1, number)
            seen |= texts
        self.assertEqual(seen, server.known)

    def test_what_is_not_the_callers_session_is_not_found(self):
        first, second = self.server(), self.server()
        settings = self.settings({"raw": {"url": first.url}, "second": {"url": second.url}})
        two_tenants(settings)
        settings["tenants"][0]["keys"].append({"sha256": harness.sha256(harness.KEY + "-2"), "server": "another-name"})
        settings["tenants"][0]["keys"].append({"sha256": harness.sha256(harness.KEY + "-3"), "server": "test-server"})
        self.gate = self.gateway(settings)
        client = self.client(self.gate.url + "/mcp/raw")
        client.hello()
        token = client.session
        asked = len(first.requests)
        thieves = [(harness.KEY, "second", token), (OTHER, "raw", token), (harness.KEY + "-2", "raw", token)]
        thieves += [(harness.KEY, "raw", forged) for forged in (
            self.upstream_id(first), "x", token[:-1], token + "A", token[:20] + ("A" if token[20] != "A" else "B") + token[21:],
            token.swapcase(), "A" * len(token), "A" * 4000, "!~")]
        for key, name, session in thieves:
            thief = self.client(self.gate.url + "/mcp/" + name, key=key)
            thief.session = session
            for send, id in ((lambda: thief.call("i"), "i"), (lambda: thief.post({"jsonrpc": "2.0", "id": 0, "result": {}}), 0),
                             (thief.get, None), (thief.delete, None)):
                reply = send()
                self.assertEqual(reply.status, 404, session)
                self.assertEqual(reply.json()["error"]["data"]["reason"], "session_unknown")
                if id == "i":
                    self.assertEqual(reply.json()["id"], id)
        self.assertEqual((len(first.requests), second.requests), (asked, []))
        same = self.client(self.gate.url + "/mcp/raw", key=harness.KEY + "-3")  # another key of the same name
        same.session = token
        same.notify("notifications/x")

    def test_a_token_is_good_after_a_reload(self):
        server, client = self.pair()
        self.gate.reload()
        client.notify("notifications/x")


class Ends(mcp_rig.Case):
    def test_delete_ends_a_session_for_good(self):
        for status in (200, 405):
            server, client = self.pair(self.server(delete=status))
            own = server.get_stream()
            get = client.get()
            self.assertEqual(get.status, 200)
            self.assertEqual(client.delete().status, status)
            own.wait_gone()
            get.end()
            for _ in range(8):  # whatever worker
                self.assert_rpc_error(client.call("i"), 404, "session_unknown", "i")
                self.assertEqual(client.get().status, 404)

    def test_a_session_that_the_server_has_lost_is_over(self):
        server, client = self.pair()
        own = server.get_stream()
        server.forget()
        reply = client.call()
        self.assertEqual(reply.status, 404)
        self.assertEqual(reply.json()["error"]["code"], -32001)  # the server's own
        own.wait_gone()
        for _ in range(8):
            self.assertEqual(client.call().status, 404)
        self.assertEqual(len(server.seen("initialize")), 1)  # nobody says hello behind the client's back

    def test_a_server_that_says_400_is_passed_and_the_session_stays(self):
        server, client = self.pair(self.server(unknown=400))
        server.forget()
        self.assertEqual(client.call().status, 400)
        self.assertEqual(client.call().status, 400)

    def test_a_reload_that_removes_the_server_lets_calls_end(self):
        server, client = self.pair()
        own = server.get_stream()
        reply = client.call("i")
        stream = server.take().stream()
        self.assertEqual(reply.status, 200)
        settings = dict(self.gate.settings)
        del settings["mcp_servers"]
        self.gate.write_config(settings)
        self.assertEqual(self.gate.reload().status, 200)
        harness.wait_for(lambda: client.call("j").status == 404, "the server is gone")
        self.assert_rpc_error(client.call("j"), 404, "server_unknown", "j")
        stream.finish(event(result("i")))
        reply.expect(event(result("i"))).end()
        if self.gateways == 1:  # with others it stays until the session is idle
            own.wait_gone()

    def test_a_reload_that_moves_the_server_ends_its_sessions(self):
        server, client = self.pair()
        other = self.server()
        settings = json.loads(json.dumps(self.gate.settings))
        settings["mcp_servers"]["raw"]["url"] = other.url
        self.gate.write_config(settings)
        self.assertEqual(self.gate.reload().status, 200)
        harness.wait_for(lambda: client.call().status == 404, "the session is gone")
        fresh = self.client(self.gate.url + "/mcp/raw")
        fresh.hello()
        fresh.notify("notifications/x")
        self.assertEqual(len(other.seen("initialize")), 1)


class Refusals(mcp_rig.Case):
    """Each is JSON-RPC with the caller's id, and none reaches the server."""

    def refused(self, url, status, reason, code=None, key=harness.KEY):
        for id in (0, "", "a\"b", -5, 2 ** 53 + 1):
            self.assert_rpc_error(self.client(url, key=key).call(id), status, reason, id, code)
        return self.assert_rpc_error(self.client(url, key=key).post([{"jsonrpc": "2.0", "id": 1, "method": "a"}]), status, reason)

    def test_a_server_that_is_not_there(self):
        server = self.server()
        self.front(server)
        for name in ("other", "RAW", "raw2", "x" * 64):
            self.refused(self.gate.url + "/mcp/" + name, 404, "server_unknown")
        for path in ("/mcp/", "/mcp", "/mcp/raw/", "/mcp/raw/x", "/mcp/%72aw", "/mcp/" + "x" * 65, "/mcp/r%2Fw"):
            self.assertEqual(self.client(self.gate.url + path).call().status, 404, path)
        self.assertEqual(server.requests, [])

    def test_a_server_that_is_switched_off(self):
        self.refused(self.front(self.server(), enabled=False), 404, "server_unknown")

    def test_a_server_that_the_plan_does_not_have(self):
        for servers in ({}, {"allow": ["x*"]}, {"allow": ["*"], "deny": ["r?w"]}):
            server = self.server()
            url = self.front(server, settings=lambda whole, servers=servers: whole["plans"]["standard"].update(mcp_servers=servers))
            self.refused(url, 403, "server_forbidden")
            self.assertEqual(server.requests, [])

    def test_a_front_that_the_plan_or_the_listener_does_not_have(self):
        def of_plan(settings):
            settings["plans"]["standard"]["fronts"] = ["sampling"]

        def of_listener(settings):
            settings["listen"] = [{"address": f"127.0.0.1:{harness.free_port()}", "fronts": ["sampling", "direct"]}]
        for change in (of_plan, of_listener):
            self.refused(self.front(self.server(), settings=change), 403, "front_forbidden")
            self.assertEqual(self.gate.sample("hello").status, 200)

    def test_a_caller_without_a_key_that_counts(self):
        server = self.server()
        url = self.front(server)
        for key in (None, "wrong"):
            reply = self.client(url, key=key).call("i")
            self.assert_rpc_error(reply, 401, "unauthorized", "i")
            self.assertTrue(reply.header("www-authenticate").startswith("Bearer"))
        self.assertEqual(server.requests, [])

    def test_a_server_that_is_away(self):
        server = self.server()
        url = self.front(server)
        server.close()
        self.refused(url, 502, "server_unavailable")
        client = self.client(url)
        self.assert_rpc_error(client.initialize(id="h"), 502, "server_unavailable", "h")
        client.session = None
        self.assertEqual(client.get().status, 502)
        server = self.server(port=server.port)  # and is there again
        client.hello()
        client.notify("notifications/x")

    def test_a_body_that_cannot_be_read(self):
        server = self.server()
        url = self.front(server)
        for body in (b"", b" ", b"{", b'{"a":1}}', b"nul", b'{"id":1,"method":"\xff"}', b"\xef\xbb\xbf{}", b"[1,]", b"'x'"):
            reply = self.client(url).post(body)
            self.assertEqual(reply.status, 400, body)
            self.assertEqual(reply.json()["error"]["code"], -32700, body)
        for body in (b"1", b'"x"', b"null", b"true"):
            self.assertEqual(self.client(url).post(body).status, 400, body)
        self.assertEqual(server.requests, [])

    def test_a_name_twice_where_the_gateway_reads_is_refused(self):
        server = self.server()
        url = self.front(server)
        for body in (b'{"id":1,"method":"a","method":"b"}', b'{"id":1,"id":2,"method":"a"}', b'{"id":1,"method":"a","m\\u0065thod":"b"}',
                     b'{"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"capabilities":{"sampling":{}}}}',
                     b'{"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"sampling":null}}}'):
            reply = self.client(url).post(body)
            self.assertEqual(reply.status, 400, body)
            self.assertIn("error", reply.json())
        self.assertEqual(server.requests, [])

    def test_methods_and_origins(self):
        url = self.front(self.server())
        client = self.client(url)
        for method in ("PUT", "PATCH", "HEAD"):
            reply = client.send(method)
            self.assertEqual(reply.status, 405, method)
            self.assertIn("POST", reply.header("allow"))
            reply.close()
        self.assertEqual(client.post({"jsonrpc": "2.0", "id": 1, "method": "a"}, {"Origin": "http://evil.example"}).status, 403)


class Limits(mcp_rig.Case):
    def test_messages_a_minute(self):
        server = self.server(sessions=False)
        server.on("*", lambda call: call.json(result(1)))
        url = self.front(server, limits={"mcp_messages_per_minute": 60})
        client = self.client(url)
        # a tenth at once, as of requests: six, of each gateway alone
        for _ in range(self.gateways):
            self.assertEqual(client.post([{"jsonrpc": "2.0", "id": id, "method": "a"} for id in range(5)]).status, 200)
        for _ in range(self.gateways):
            self.assertEqual(client.call(1).status, 200)
        reply = client.call("i")
        error = self.assert_rpc_error(reply, 429, "rate_limited", "i")
        self.assertGreaterEqual(int(reply.header("retry-after")), 1)
        self.assertEqual(error["data"]["limit"], "mcp_messages_per_minute")
        self.assertEqual(client.get().status, 429)
        self.assertEqual(len(server.requests), 2 * self.gateways)
        self.assertGreater(self.gate.metrics().sum("sluice_limit_decisions_total", limit="mcp_messages_per_minute"), 0)

    def test_messages_of_one_tenant_are_not_those_of_another(self):
        server = self.server(sessions=False)
        server.on("*", lambda call: call.json(result(1)))
        url = self.front(server, limits={"mcp_messages_per_minute": 10}, settings=two_tenants)
        for key in (harness.KEY, OTHER):
            self.assertEqual([self.client(url, key=key).call().status for _ in range(2 * self.gateways)], [200] * self.gateways + [429] * self.gateways)

    def test_sessions_of_a_tenant(self):
        server = self.server()
        url = self.front(server, limits={"mcp_sessions": 2}, settings=two_tenants)
        clients = [self.client(url) for _ in range(2)]
        for client in clients:
            client.hello()
        third = self.client(url)
        error = self.assert_rpc_error(third.initialize(id="i"), 429, "sessions_exceeded", "i")
        self.assertEqual(error["data"]["limit"], "mcp_sessions")
        self.client(url, key=OTHER).hello()
        clients[0].notify("notifications/x")
        self.assertEqual(clients[0].delete().status, 200)
        third.hello()  # there is room again
        self.assertEqual(self.client(url).initialize().status, 429)

    def test_sessions_of_a_server(self):
        server = self.server()
        url = self.front(server, sessions=1)
        client = self.client(url)
        client.hello()
        error = self.assert_rpc_error(self.client(url).initialize(id="i"), 429, "sessions_exceeded", "i")
        self.assertEqual(error["data"]["scope"], "server")
        client.delete().body()
        self.client(url).hello()

    def test_open_calls_of_a_session(self):
        server, client = self.pair()
        calls = [client.call(id) for id in range(256 * self.gateways)]  # each gateway counts alone
        taken = [server.take() for _ in calls]
        for _ in range(8):  # whatever worker
            self.assert_rpc_error(client.call("i"), 429, "concurrency", "i")
        client.notify("notifications/x")
        other = self.client(self.gate.url + "/mcp/raw")
        other.hello()
        reply = other.call("o")
        server.take().json(result("o"))
        self.assertEqual(reply.json(), result("o"))
        for one in [call for call in taken if call.message["id"] < self.gateways]:  # one of each gateway
            one.json(result(one.message["id"]))
            self.assertEqual(calls[one.message["id"]].status, 200)
        reply = client.call("i")
        server.take().json(result("i"))
        self.assertEqual(reply.json(), result("i"))

    def test_an_initialize_that_fails_takes_no_place(self):
        server = self.server(strict="sampling")
        server.on("initialize", lambda call: call.json({"jsonrpc": "2.0", "id": 0, "error": {"code": -32000, "message": "no"}}))
        url = self.front(server, limits={"mcp_sessions": 1})
        for _ in range(3):
            self.assertEqual(self.client(url).initialize().json()["error"]["code"], -32000)


if __name__ == "__main__":
    harness.main()
