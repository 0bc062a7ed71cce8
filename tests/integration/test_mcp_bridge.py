#!/usr/bin/env python3
"""/mcp/{server}: clients with sessions in front of a server that speaks only 2026-07-28 and has none.

ctest: timeout=180
"""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_rig
from mcp_server import error, event, note, result, sampling

META = "io.modelcontextprotocol/"
OTHER_KEY = "a-key-of-another-tenant"
WORKERS = 4


def entry(text="hello", **params):
    """One sampling of inputRequests."""
    return {key: value for key, value in sampling(0, text, **params).items() if key in ("method", "params")}


def asks(id, requests=None, state=None):
    """A response that asks for input."""
    return {"jsonrpc": "2.0", "id": id, "result": {"resultType": "input_required", **({} if requests is None else {"inputRequests": requests}),
                                                   **({} if state is None else {"requestState": state})}}


def done(id, text="done"):
    return result(id, text, resultType="complete", _meta={META + "serverInfo": {"name": "modern", "version": "2"}})


def progress(value, token=7):
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": value}}


class Case(mcp_rig.Case):
    def modern(self, hello="modern", **options):
        """A server without sessions that speaks 2026-07-28."""
        return self.server(sessions=False, hello=hello, discover="answer", **options)

    def bridged(self, revision="2025-11-25", capabilities=None, **options):
        server = self.modern()
        client = self.client(self.front(server, **options), revision=revision)
        self.said = client.hello(capabilities)
        self.assertIsNotNone(client.session)
        return server, client

    def meta(self, call):
        return call.message["params"]["_meta"]

    def asked(self, count=1):
        """The provider was asked so often, by now or soon."""
        self.provider.wait_stats(lambda stats: stats["requests"] == count, f"{count} requests to the provider")


class Hello(Case):
    def test_a_session_is_made_of_what_the_server_says_of_itself(self):
        for revision in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
            server, client = self.bridged(revision)
            self.assertEqual(self.said, {
                "protocolVersion": revision, "capabilities": {"tools": {}, "resources": {"listChanged": False}},
                "serverInfo": {"name": "modern", "version": "2"}, "instructions": "Ask."})
            asked = server.seen("server/discover")[0]
            self.assertEqual((asked.header("mcp-method"), asked.header("mcp-protocol-version")), ("server/discover", "2026-07-28"))
            self.assertEqual(self.meta(asked)[META + "clientInfo"], {"name": "c", "version": "1"})
            self.assertEqual([one.method for one in server.requests if "initialized" in str(one.body)], [])

    def test_a_server_that_answers_initialize_too_speaks_for_itself(self):
        for hello in ("json", "sse", "primed"):
            server = self.modern(hello)
            direct = self.client(server.url).initialize(id="a")
            client = self.client(self.front(server))
            reply = client.initialize(id="a")
            self.assertEqual((reply.status, reply.header("content-type"), reply.body()), (200, direct.header("content-type"), direct.body()))
            client.session = reply.header("mcp-session-id")
            self.assertLessEqual(len(client.session), 1024)
            client.call()
            self.assertEqual(self.meta(server.take())[META + "protocolVersion"], "2026-07-28")

    def test_it_is_remembered_what_a_server_speaks(self):
        for hello in ("modern", "sse"):
            server = self.modern(hello)
            url = self.front(server)
            for _ in range(20):
                self.client(url).hello()
            if hello == "modern":
                self.assertLessEqual(len(server.seen("initialize")), WORKERS * self.gateways)
                self.assertEqual(len(server.seen("server/discover")), 20)
            else:
                self.assertLessEqual(len(server.seen("server/discover")), WORKERS * self.gateways)
                self.assertEqual(len(server.seen("initialize")), 20)

    def test_a_server_that_has_changed_is_asked_anew(self):
        server = self.modern()
        url = self.front(server, settings=lambda whole: whole.update(workers=1))
        self.client(url).hello()
        server.hello, server.discover, server.sessions = "json", "refuse", True
        client = self.client(url)
        client.hello()
        self.assertEqual(len(server.known), 1)
        client.call()
        self.assertEqual(server.take_call().session, self.upstream_id(server))
        server.hello, server.discover, server.sessions = "modern", "answer", False
        self.assertEqual(self.client(url).hello()["serverInfo"]["name"], "modern")

    def test_a_server_of_the_past_is_asked_once(self):
        server = self.server(sessions=False)
        url = self.front(server)
        body = self.client(server.url).initialize().body()
        for _ in range(20):
            reply = self.client(url).initialize()
            self.assertEqual((reply.status, reply.body(), reply.header("mcp-session-id")), (200, body, None))
        self.assertLessEqual(len(server.seen("server/discover")), WORKERS * self.gateways)
        strict = self.server(sessions=False, strict="sampling", refusal=(400, -32022))
        self.assertEqual(self.client(self.front(strict)).initialize().status, 200)
        self.assertEqual([one.message["method"] for one in strict.requests], ["initialize", "server/discover", "initialize", "initialize"])

    def test_a_server_that_does_not_say_is_taken_for_one_of_the_past(self):
        for said in (lambda exchange: exchange.reset(), lambda exchange: exchange.answer(500), lambda exchange: exchange.answer(202),
                     lambda exchange: exchange.answer(200, b"{"), lambda exchange: exchange.json({"jsonrpc": "2.0", "id": "sluice", "result": {}}),
                     lambda exchange: exchange.json({"jsonrpc": "2.0", "id": "sluice", "result": {"supportedVersions": ["2027-07-28"]}}),
                     lambda exchange: exchange.stream().finish(b": nothing\n\n")):
            server = self.server(sessions=False).on("server/discover", said)
            client = self.client(self.front(server))
            self.assertEqual((client.hello()["serverInfo"]["name"], client.session), ("raw", None))

    def test_a_server_that_cannot_say_is_asked_again(self):
        server = self.server(sessions=False)
        url = self.front(server, settings=lambda whole: whole.update(workers=1))
        for status in (500, 503, 429):
            server.on("server/discover", lambda exchange, status=status: exchange.answer(status))
            self.client(url).hello()
        server.on("server/discover", server.discovered).discover = "answer"
        client = self.client(url)
        client.hello()
        self.assertIsNotNone(client.session)

    def test_a_server_may_answer_with_a_stream(self):
        server = self.modern()
        server.on("server/discover", lambda exchange: exchange.stream().finish(b"id: 1\ndata: \n\n" + event(
            {"jsonrpc": "2.0", "id": "sluice", "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}})))
        client = self.client(self.front(server))
        self.assertEqual(client.hello()["serverInfo"], {"name": "raw", "version": ""})
        self.assertIsNotNone(client.session)

    def test_only_where_samplings_are_answered_here(self):
        def none(settings):
            del settings["plans"]["standard"]["models"]["default"]
            settings["plans"]["standard"]["servers"] = {"raw": {"models": {"allow": []}}}
        for capabilities, options in ((None, {"sampling": "relay"}), (None, {"sampling": "refuse"}), ({"sampling": {}}, {}),
                                      (None, {"settings": none})):
            for hello, status in (("modern", 400), ("json", 200)):
                server = self.modern(hello)
                reply = self.client(self.front(server, **options)).initialize(capabilities)
                self.assertEqual((reply.status, reply.header("mcp-session-id")), (status, None))
                self.assertEqual(server.seen("server/discover"), [])

    def test_force_answers_for_a_client_that_samples(self):
        server, client = self.bridged(capabilities={"sampling": {}}, sampling="force")
        reply = client.call()
        server.take().json(asks(1, {"s": entry()}))
        call = server.take()
        call.json(done(call.message["id"]))
        self.assertEqual(reply.json(), done(1))

    def test_a_server_with_sessions_is_none_of_it(self):
        server = self.server(discover="answer")
        client = self.client(self.front(server))
        client.hello()
        self.assertEqual((len(server.known), server.seen("server/discover")), (1, []))

    def test_a_client_that_says_much_of_itself(self):
        for info, kept in (({"name": "c", "version": "1", "description": "x" * 5000}, {"name": "c", "version": "1"}),
                           ({"name": "x" * 5000, "version": "1"}, None), (None, None)):
            server = self.modern()
            client = self.client(self.front(server))
            reply = client.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, **({} if info is None else {"clientInfo": info})}})
            client.session = reply.header("mcp-session-id")
            client.call()
            self.assertEqual(self.meta(server.take()).get(META + "clientInfo"), kept)


class Session(Case):
    def test_it_ends(self):
        server, client = self.bridged()
        before = len(server.requests)
        self.assertEqual(client.delete().status, 204)
        if self.gateways > 1:  # another gateway hears of it a moment later
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            harness.wait_for(lambda: all(client.post(ping).status == 404 for _ in range(self.gateways)), "the session's end")
        self.assert_rpc_error(client.call(), 404, "session_unknown", id=1)
        self.assertEqual(len(server.requests), before)
        begin, end = sorted(self.session_lines(2), key=lambda line: line["event"])
        self.assertEqual((begin["revision"], begin["mode"], end["end"], end["session"]), ("2025-11-25", "backfill", "deleted", begin["session"]))

    def test_it_counts(self):
        server = self.modern()
        url = self.front(server, limits={"mcp_sessions": 2})
        first, second = self.client(url), self.client(url)
        first.hello()
        second.hello()
        self.assert_rpc_error(self.client(url).initialize(), 429, "sessions_exceeded", id=0)
        second.delete().body()
        self.client(url).hello()

    def test_it_is_its_tenants_alone(self):
        server = self.modern()
        url = self.front(server, settings=lambda whole: whole["tenants"].append(harness.tenant("other", OTHER_KEY)))
        client, other = self.client(url), self.client(url, key=OTHER_KEY)
        client.hello()
        other.session = client.session
        for reply in (other.call(), other.delete(), other.get()):
            self.assertEqual(reply.status, 404)
        client.call()
        server.take()

    def test_every_gateway_with_the_keys_serves_it(self):
        server = self.modern()
        settings = self.settings({"raw": {"url": server.url}}, seal_keys=["c2VjcmV0cyBvZiAzMiBieXRlcyBhcmUgbWFkZSBzbyA="])
        first, second = (self.gateway(settings) for _ in range(2))
        client = self.client(first.url + "/mcp/raw")
        client.hello()
        other = self.client(second.url + "/mcp/raw")
        other.session = client.session
        reply = other.call()
        call = server.take()
        self.assertEqual(self.meta(call)[META + "clientInfo"], {"name": "c", "version": "1"})
        call.json(done(1))
        self.assertEqual(reply.json(), done(1))

    def test_what_needs_no_server_is_answered_here(self):
        server, client = self.bridged()
        before = len(server.requests)
        self.assertEqual(client.post({"jsonrpc": "2.0", "id": "p", "method": "ping"}).json(), {"jsonrpc": "2.0", "id": "p", "result": {}})
        for method in ("notifications/roots/list_changed", "notifications/cancelled", "notifications/progress", "x/unknown"):
            client.notify(method, requestId=9)
        for body in ({"jsonrpc": "2.0", "id": 3, "result": {}}, error(3, -1)):
            self.assertEqual(client.post(body).status, 202)
        self.assert_rpc_error(client.post([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]), 400, "batch")
        self.assert_rpc_error(client.post({"jsonrpc": "2.0"}), 400, "invalid_request")
        self.assertEqual(len(server.requests), before)

    def test_the_level_of_logging_goes_with_each_call(self):
        server, client = self.bridged()
        set_level = {"jsonrpc": "2.0", "id": 5, "method": "logging/setLevel"}
        for level, told in ((None, None), ("debug", "debug"), ("emergency", "emergency"), ("loud", "emergency")):
            if level is not None:
                reply = client.post({**set_level, "params": {"level": level}})
                if level == told:
                    self.assertEqual(reply.json(), {"jsonrpc": "2.0", "id": 5, "result": {}})
                else:
                    self.assert_rpc_error(reply, 400, "field_invalid", id=5)

            def goes(told=told):
                reply = client.call()
                call = server.take()
                call.stream().finish(event(note()) + event(done(1)))
                self.assertEqual(reply.body(), event(note()) + event(done(1)))
                return self.meta(call).get(META + "logLevel") == told
            if self.gateways > 1:  # another gateway hears of it a moment later
                harness.wait_for(lambda: all([goes() for _ in range(4)]), f"the level {told}")
            self.assertTrue(goes())


class Calls(Case):
    def test_a_call_becomes_one_of_2026_07_28(self):
        server, client = self.bridged(capabilities={"roots": {}, "elicitation": {}, "x": {}})
        reply = client.post(b' {"id":1.0 , "params":{ "name":"t\\u00e4","arguments":{"a":1e400} },"method":"tools/call","jsonrpc":"2.0"} ',
                            {"Last-Event-ID": "7", "Mcp-Method": "x", "Mcp-Param-A": "b", "traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"})
        call = server.take()
        meta = (b',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":'
                b'{"name": "c", "version": "1"},"io.modelcontextprotocol/clientCapabilities":{"sampling":{"tools":{}}}}')
        self.assertEqual(call.body, b'{"id":1.0 , "params":{ "name":"t\\u00e4","arguments":{"a":1e400} ' + meta
                         + b'},"method":"tools/call","jsonrpc":"2.0"}')
        for name, value in {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "=?base64?dMOk?=", "mcp-session-id": None,
                            "last-event-id": None, "mcp-param-a": None, "accept": "application/json, text/event-stream",
                            "content-type": "application/json", "content-length": str(len(call.body))}.items():
            self.assertEqual(call.header(name), value, name)
        self.assertIsNotNone(call.header("traceparent"))
        call.answer(200, b' {"jsonrpc":"2.0","id":1.0,"result":{"resultType":"complete","x":1e400}}\n')
        self.assertEqual(reply.body(), b' {"jsonrpc":"2.0","id":1.0,"result":{"resultType":"complete","x":1e400}}\n')

    def test_all_methods(self):
        server, client = self.bridged()
        for method, params, name in (("tools/list", None, None), ("resources/list", {"cursor": "c"}, None), ("prompts/get", {"name": "a b"}, "a b"),
                                     ("resources/read", {"uri": "file:///a%20b"}, "file:///a%20b"), ("completion/complete", {"ref": {}}, None),
                                     ("x/unknown", {"name": "n", "_meta": {"progressToken": 3}}, None), ("tools/call", {"name": " a"}, "=?base64?IGE=?=")):
            message = {"jsonrpc": "2.0", "id": method, "method": method, **({} if params is None else {"params": params})}
            reply = client.post(message)
            call = server.take()
            told = call.message["params"]
            meta = told.pop("_meta")
            self.assertEqual((call.header("mcp-method"), call.header("mcp-name"), told or None),
                             (method, name, params and {key: value for key, value in params.items() if key != "_meta"}))
            self.assertEqual(meta.pop("progressToken", None), 3 if method == "x/unknown" else None)
            self.assertEqual(meta, {META + "protocolVersion": "2026-07-28", META + "clientInfo": {"name": "c", "version": "1"},
                                    META + "clientCapabilities": {"sampling": {"tools": {}}}})
            call.json(done(method))
            self.assertEqual(reply.json(), done(method))

    def test_params_of_every_kind(self):
        server, client = self.bridged()
        for params, told in ((b'null', b'{"_meta":{%s}}'), (b'{}', b'{"_meta":{%s}}'), (b'{"_meta":null,"a":1}', b'{"_meta":{%s},"a":1}'),
                             (b'{"_meta":{}}', b'{"_meta":{%s}}'), (b'{"_meta":{"x":[1]} }', b'{"_meta":{"x":[1],%s} }'),
                             (b'{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"x":1}}', b'{"_meta":{"x":1,%s}}')):
            reply = client.send("POST", b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":' + params + b"}")
            call = server.take()
            members = b", ".join(json.dumps({key: value}).encode()[1:-1] for key, value in self.meta(call).items() if key.startswith(META))
            got, wanted = (json.dumps(json.loads(one)) for one in (call.body, b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":' + told % members + b"}"))
            self.assertEqual(got, wanted)
            self.assertEqual(self.meta(call)[META + "clientCapabilities"], {"sampling": {"tools": {}}})
            call.json(done(1))
            reply.body()
        for params in (b"[]", b'"x"', b"1"):
            reply = client.send("POST", b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":' + params + b"}")
            self.assert_rpc_error(reply, 400, "invalid_params", id=1)

    def test_errors_pass_with_a_status_that_clients_with_sessions_read(self):
        server, client = self.bridged()
        for code, status in ((-32601, 404), (-32602, 400), (-32020, 400), (-32021, 400), (-32022, 400), (-1, 200)):
            said = json.dumps(error(1, code, "why", data={"x": 1}), separators=(" , ", " : ")).encode()
            for stream in (False, True):
                reply = client.post({"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": {"name": "p"}})
                call = server.take()
                if stream:
                    call.stream().finish(event(said))
                    self.assertEqual(reply.body(), event(said))
                else:
                    call.answer(status, said)
                    self.assertEqual((reply.status, reply.body()), (200, said))

    def test_what_is_no_response_ends_no_session(self):
        server, client = self.bridged()
        for status, body, told in ((404, b"<html>", 502), (404, b"", 502), (202, b"", 502), (200, b"{}", 502), (503, b"<html>", 503), (413, b"", 413),
                                   (401, b"", 502)):
            reply = client.call()
            server.take().answer(status, body, content_type="text/html")
            self.assertEqual(reply.status, told, (status, body))
            reply.body()
        reply = client.call()
        server.take().json(done(1))
        self.assertEqual(reply.json(), done(1))

    def test_a_server_that_breaks_off(self):
        server, client = self.bridged()
        reply = client.call()
        server.take().reset()
        self.assert_rpc_error(reply, 502, "server_unavailable", id=1)
        reply = client.call()
        stream = server.take().stream()
        stream.send(event(note()))
        reply.expect(event(note()))
        stream.reset()
        reply.cut()
        reply = client.call()
        server.take().json(done(1))
        self.assertEqual(reply.json(), done(1))

    def test_streams_pass(self):
        server, client = self.bridged()
        reply = client.call(_meta={"progressToken": 7})
        stream = server.take().stream()
        stream.send(b": hello\n\n" + event(progress(1)))
        reply.expect(b": hello\n\n" + event(progress(1)))
        stream.finish(event(note()) + event(done(1)))
        reply.expect(event(note()) + event(done(1))).end()


class Parameters(Case):
    """Tools whose servers want arguments in headers, too."""
    LACKS = error(1, -32020, "Mcp-Param-Region is missing")

    def schema(self, **properties):
        return {"type": "object", "properties": properties}

    def listing(self, *pages):
        """A bridged session of a server that lists these tools, a page for each, and refuses calls without the header."""
        def listed(exchange):
            self.cursors.append(cursor := exchange.message["params"].get("cursor"))
            at = 0 if cursor is None else int(cursor)
            exchange.json({"jsonrpc": "2.0", "id": exchange.message["id"], "result": {
                "tools": [{"name": name, "inputSchema": schema} for name, schema in pages[at].items()],
                **({"nextCursor": str(at + 1)} if at + 1 < len(pages) else {})}})

        def called(exchange):
            if exchange.header("mcp-param-region") is None:
                exchange.json({**self.LACKS, "id": exchange.message["id"]}, 400)
            else:
                self.called.append(exchange.header("mcp-param-region"))
                exchange.json(done(exchange.message["id"]))
        self.cursors, self.called = [], []
        server, client = self.bridged()
        return server.on("tools/list", listed).on("tools/call", called), client

    def test_they_are_found_in_the_list_of_tools(self):
        region = self.schema(region={"type": "string", "x-mcp-header": "Region"})
        server, client = self.listing({"u": self.schema()}, {"v": region, "t": region}, {"t": self.schema()})
        self.assertEqual(client.call(arguments={"region": "eu"}).json(), done(1))
        self.assertEqual((self.cursors, self.called), ([None, "1"], ["eu"]))
        self.assertEqual(client.call(arguments={"region": "\u00fc"}, id="again").json(), done("again"))
        self.assertEqual(self.called[1:], ["=?base64?w7w=?="])
        first, second = (call.message["params"] for call in server.seen("tools/call")[:2])
        self.assertEqual(first, second)
        self.assertEqual([call.header("mcp-name") for call in server.seen("tools/call")], ["t"] * 4)

    def test_a_tool_that_is_not_listed_so_fails_as_the_server_says(self):
        for pages in (({},), ({"t": self.schema()},), ({"t": self.schema(region={"x-mcp-header": "Else"})}, {}), ({}, {}, {})):
            _, client = self.listing(*pages)
            reply = client.call(arguments={"region": "eu"})
            self.assertEqual((reply.status, reply.json()), (200, self.LACKS))
            self.assertEqual(self.called, [])

    def test_a_server_that_does_not_list(self):
        for said in (lambda exchange: exchange.reset(), lambda exchange: exchange.answer(500), lambda exchange: exchange.answer(200, b"{"),
                     lambda exchange: exchange.json(error(0, -1))):
            server, client = self.listing({})
            server.on("tools/list", said)
            self.assertEqual(client.call(arguments={"region": "eu"}).json(), self.LACKS)

    def test_a_list_without_end_is_given_up(self):
        server, client = self.listing({})
        server.on("tools/list", lambda exchange: exchange.json({"jsonrpc": "2.0", "id": 1, "result": {"tools": [], "nextCursor": "more"}}))
        self.assertEqual(client.call(arguments={"region": "eu"}).json(), self.LACKS)
        self.assertEqual(len(server.seen("tools/list")), 100)

    def test_rounds_go_on_with_the_headers(self):
        region = self.schema(region={"type": "string", "x-mcp-header": "Region"})
        server, client = self.listing({"t": region})
        answered = []

        def called(exchange):
            if exchange.header("mcp-param-region") is None:
                exchange.json({**self.LACKS, "id": exchange.message["id"]}, 400)
            elif "inputResponses" in exchange.message["params"]:
                answered.append(exchange.header("mcp-param-region"))
                exchange.json(done(exchange.message["id"]))
            else:
                exchange.json(asks(exchange.message["id"], {"s": entry()}))
        server.on("tools/call", called)
        self.assertEqual(client.call(arguments={"region": "eu"}).json(), done(1))
        self.assertEqual(answered, ["eu"])


class Samplings(Case):
    def test_a_round_is_answered_inside(self):
        for revision in ("2024-11-05", "2025-11-25"):
            server, client = self.bridged(revision)
            reply = client.call(id="ä", arguments={"a": 1})
            server.take().json(asks("ä", {"one": entry(), "two": entry("again")}, "state"))
            call = server.take()
            self.assertNotEqual(call.message["id"], "ä")
            self.assertEqual((call.header("mcp-name"), call.message["params"]["requestState"], call.message["params"]["arguments"]), ("t", "state", {"a": 1}))
            self.assertEqual({one["role"] for one in call.message["params"]["inputResponses"].values()}, {"assistant"})
            self.assertEqual(self.meta(call)[META + "clientCapabilities"], {"sampling": {"tools": {}}})
            call.json(asks(call.message["id"], {"three": entry()}))
            call = server.take()
            self.assertEqual((call.message["params"]["inputResponses"].keys(), call.message["params"].get("requestState")), ({"three"}, None))
            call.json(done(call.message["id"]))
            self.assertEqual((reply.status, reply.json()), (200, done("ä")))
            self.asked(3)
            line = self.sampling_line()
            self.assertEqual((line["server"], line["tool"]), ("raw", "t"))

    def test_streams_are_one(self):
        server, client = self.bridged()
        reply = client.call(_meta={"progressToken": 7})
        call = server.take()
        call.stream().finish(event(progress(1)) + event(asks(1, {"one": entry()})))
        reply.expect(event(progress(1)))
        call = server.take()
        call.stream().finish(event(progress(1)) + event(progress(2)) + event(error(call.message["id"], -32021, "why")))
        reply.expect(event(progress(2)))
        self.assertEqual(reply.message(), error(1, -32021, "why"))
        reply.end()

    def test_a_sampling_that_fails_is_the_calls_error(self):
        server, client = self.bridged()
        reply = client.call()
        server.take().json(asks(1, {"s": {"method": "sampling/createMessage", "params": {"messages": []}}}))
        self.assert_rpc_error(reply, 200, "messages_empty", id=1)

    def test_a_server_that_wants_to_be_asked_later(self):
        server, client = self.bridged()
        reply = client.call()
        server.take().json(asks(1, None, "first"))
        for state in ("second", "third"):
            call = server.take()
            self.assertEqual((call.message["params"]["requestState"], "inputResponses" in call.message["params"]), ("first" if state == "second" else "second", False))
            call.json(asks(call.message["id"], None, state))
        call = server.take()
        call.json(done(call.message["id"]))
        self.assertEqual(reply.json(), done(1))

    def test_a_drain_ends_what_waits_to_be_asked_later(self):
        server, client = self.bridged(settings=lambda whole: whole.update(drain="1s"))
        server.on("tools/call", lambda exchange: exchange.json(asks(exchange.message["id"], None, "later")))
        reply = client.call()
        harness.wait_for(lambda: len(server.seen("tools/call")) > 1, "the second leg")
        self.gate.send(signal.SIGTERM)
        self.assert_rpc_error(reply, 503, "draining", id=1)
        self.gate.stop()

    def test_a_server_that_asks_for_later_without_end(self):
        server, client = self.bridged()
        server.on("tools/call", lambda exchange: exchange.json(asks(exchange.message["id"], None, "later")))
        self.assert_rpc_error(client.call(), 200, "rounds", id=1)
        self.assertEqual(len(server.seen("tools/call")), 11)

    def test_a_server_that_asks_for_nothing(self):
        server, client = self.bridged()
        for requests in (None, {}):
            reply = client.call()
            server.take().json(asks(1, requests))
            self.assert_rpc_error(reply, 200, "server_answer_invalid", id=1)


class Listening(Case):
    """The client's GET."""
    CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": {META + "subscriptionId": "sluice"}}}
    KNOWN = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {"notifications": {"toolsListChanged": True}}}

    def listening(self, **options):
        server, client = self.bridged(**options)
        reply = client.get()
        call = server.take()
        stream = call.stream().send(event(self.KNOWN) + b": hello\n\n")
        reply.expect(b": hello\n\n")
        return server, client, reply, call, stream

    def test_changes_of_lists_come_on_it(self):
        server, client, reply, call, stream = self.listening()
        self.assertEqual((call.method, call.message["method"]), ("POST", "subscriptions/listen"))
        self.assertEqual(call.message["params"].pop("notifications"), {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True})
        self.assertEqual(self.meta(call)[META + "protocolVersion"], "2026-07-28")
        for name, value in {"mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen", "mcp-session-id": None,
                            "accept": "application/json, text/event-stream", "content-type": "application/json"}.items():
            self.assertEqual(call.header(name), value, name)
        stream.send(event(self.CHANGED))
        reply.expect(event(self.CHANGED))
        stream.finish(event({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "sluice"}}) + event(done("sluice")))
        reply.end()
        self.assertEqual(reply.status, 200)

    def test_a_server_without_it(self):
        server, client = self.bridged()
        for answer, status, reason in ((lambda call: call.json(error("sluice", -32601), 404), 405, "http_method"),
                                       (lambda call: call.json(error("sluice", -32601)), 405, "http_method"),
                                       (lambda call: call.answer(401), 502, "server_configuration"),
                                       (lambda call: call.answer(503), 502, "server_unavailable"),
                                       (lambda call: call.reset(), 502, "server_unavailable")):
            reply = client.get()
            answer(server.take())
            self.assert_rpc_error(reply, status, reason)

    def test_it_may_be_silent(self):
        server, client, reply, _, stream = self.listening(timeouts={"idle": "300ms"})
        other = client.call()
        server.take().stream().send(event(note()))
        other.expect(event(note())).cut()  # after the idle time
        stream.send(event(self.CHANGED))
        reply.expect(event(self.CHANGED))

    def test_it_ends_with_the_session(self):
        _, client, reply, call, _ = self.listening()
        self.assertEqual(client.delete().status, 204)
        call.wait_gone()
        reply.end()

    def test_it_ends_when_the_gateway_leaves(self):
        _, _, reply, call, _ = self.listening(settings=lambda whole: whole.update(drain="1s"))
        self.gate.send(signal.SIGTERM)
        call.wait_gone()
        reply.end()
        self.gate.stop()

    def test_it_ends_when_the_client_leaves(self):
        _, _, reply, call, _ = self.listening()
        reply.close()
        call.wait_gone()

    def test_it_breaks_off_with_the_servers(self):
        _, _, reply, _, stream = self.listening()
        stream.reset()
        reply.cut()


class Cancelled(Case):
    def cancel(self, client, id):
        client.notify("notifications/cancelled", requestId=id, reason="no longer")

    def test_a_call_that_is_given_up_ends_without_a_response(self):
        server, client = self.bridged()
        for id, stream in ((5, False), ("six", True)):
            reply = client.call(id=id)
            call = server.take()
            if stream:
                call.stream().send(event(note()))
                reply.expect(event(note()))
            self.cancel(client, id)
            call.wait_gone()
            self.assertEqual((reply.status, reply.header("content-type")), (200, "text/event-stream"))
            reply.end()

    def test_so_do_its_samplings(self):
        server, client = self.bridged(model="sim-latency-30s")
        reply = client.call(id=5)
        server.take().json(asks(5, {"s": entry()}))
        self.asked()
        self.cancel(client, 5)
        reply.end()
        self.assertEqual(self.sampling_line()["status"], 499)

    def test_other_calls_go_on(self):
        server, client = self.bridged()
        replies = [client.call(id=id) for id in (1, "1", 2)]
        calls = {json.dumps(call.message["id"]): call for call in (server.take() for _ in range(3))}
        self.cancel(client, 1)
        calls["1"].wait_gone()
        for id, reply in (("1", replies[1]), (2, replies[2])):
            calls[json.dumps(id)].json(done(id))
            self.assertEqual(reply.json(), done(id))

    def test_the_end_of_the_session_ends_its_calls(self):
        server, client = self.bridged()
        reply = client.call()
        call = server.take()
        self.assertEqual(client.delete().status, 204)
        call.wait_gone()
        reply.end()

    def test_a_client_that_leaves_wants_nothing(self):
        server, client = self.bridged()
        reply = client.call()
        call = server.take()
        reply.close()
        call.wait_gone()


if __name__ == "__main__":
    harness.main()
