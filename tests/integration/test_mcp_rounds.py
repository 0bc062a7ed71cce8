#!/usr/bin/env python3
"""/mcp/{server}, 2026-07-28: samplings that a server asks for in the answer to a call are answered inside of that call.

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

REVISION = "2026-07-28"
META = "io.modelcontextprotocol/"
ELICITATION = {"method": "elicitation/create", "params": {"message": "sure?", "requestedSchema": {"type": "object"}}}
ACCEPTED = {"action": "accept", "content": {}}
OTHER_KEY = "a-key-of-another-tenant"


def entry(text="hello", **params):
    """One sampling of inputRequests."""
    return {key: value for key, value in sampling(0, text, **params).items() if key in ("method", "params")}


def asks(id, requests=None, state=None, **more):
    """A response that asks for input."""
    return {"jsonrpc": "2.0", "id": id, "result": {
        "resultType": "input_required", **({} if requests is None else {"inputRequests": requests}),
        **({} if state is None else {"requestState": state}), **more}}


def done(id, text="done"):
    return result(id, text, resultType="complete")


def progress(value, token=7):
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": value}}


class Case(mcp_rig.Case):
    def two(self, **options):
        server = self.server(sessions=False, discover="take")
        return server, self.client(self.front(server, **options), revision=REVISION)

    def message(self, id=1, method="tools/call", capabilities=None, meta=None, **params):
        return {"jsonrpc": "2.0", "id": id, "method": method, "params": {"name": "t", "arguments": {"a": [1, "ü"]}, **params, "_meta": {
            META + "protocolVersion": REVISION, META + "clientCapabilities": capabilities or {}, **(meta or {})}}}

    def send(self, client, message, headers=None):
        return client.post(message, {"MCP-Protocol-Version": REVISION, "Mcp-Method": message["method"], "Mcp-Name": message["params"].get("name", ""),
                                     "Mcp-Param-Region": "eu", **(headers or {})})

    def call(self, client, **message):
        return self.send(client, self.message(**message))

    def asked(self, count=1):
        """The provider was asked so often, by now or soon."""
        self.provider.wait_stats(lambda stats: stats["requests"] == count, f"{count} requests to the provider")

    def declared(self, call):
        return call.message["params"]["_meta"][META + "clientCapabilities"]


class Declared(Case):
    def test_sampling_is_declared_on_calls_that_may_have_rounds(self):
        server, client = self.two()
        for method in ("tools/call", "prompts/get", "resources/read"):
            reply = self.call(client, method=method, capabilities={"elicitation": {}})
            call = server.take()
            self.assertEqual(self.declared(call), {"sampling": {"tools": {}}, "elicitation": {}}, method)
            call.json(done(1))
            self.assertEqual(reply.json(), done(1))

    def test_nothing_else_changes(self):
        server, client = self.two()
        body = (b' {"jsonrpc":"2.0", "id":1.0,"method":"tools/call","x":[1e400],"params":{"_meta":{"a":"\\ud800","' + META.encode()
                + b'clientCapabilities" : { } ,"' + META.encode() + b'protocolVersion":"2026-07-28"},"name":"t" } }\n')
        headers = {"MCP-Protocol-Version": REVISION, "Mcp-Method": "tools/call", "Mcp-Name": "=?base64?dA==?=", "Mcp-Param-X": "a b",
                   "Mcp-Session-Id": "not-a-session", "Last-Event-ID": "5"}
        reply = client.send("POST", body, headers)
        call = server.take()
        self.assertEqual(call.body, body.replace(b"{ }", b'{"sampling":{"tools":{}} }'))
        for name, value in {**headers, "Mcp-Session-Id": None, "Last-Event-ID": None, "Content-Length": str(len(call.body))}.items():
            self.assertEqual(call.header(name), value, name)
        call.answer(200, b' {"jsonrpc":"2.0","id":1.0,"result":{"resultType":"complete","x":1e400}}\n')
        self.assertEqual(reply.body(), b' {"jsonrpc":"2.0","id":1.0,"result":{"resultType":"complete","x":1e400}}\n')

    def test_other_methods_pass(self):
        server, client = self.two()
        for method in ("tools/list", "completion/complete", "server/discover", "tasks/get", "x/unknown"):
            message = json.dumps(self.message(method=method)).encode()
            reply = client.post(message)
            call = server.take()
            self.assertEqual(call.body, message)
            call.json(asks(1, {"s": entry()}, "state"))
            self.assertEqual(reply.json(), asks(1, {"s": entry()}, "state"))

    def test_a_client_that_samples_does_so_itself(self):
        server, client = self.two()
        message = json.dumps(self.message(capabilities={"sampling": {}}, inputResponses={"s": {}}, requestState="servers")).encode()
        reply = client.post(message)
        call = server.take()
        self.assertEqual(call.body, message)
        for stream in (False, True):
            if stream:
                reply, call = client.post(message), server.take()
                call.stream().finish(event(asks(1, {"s": entry()}, "state")))
                self.assertEqual(reply.body(), event(asks(1, {"s": entry()}, "state")))
            else:
                call.json(asks(1, {"s": entry()}, "state"))
                self.assertEqual(reply.json(), asks(1, {"s": entry()}, "state"))

    def test_force_replaces_and_refuse_cuts(self):
        for mode, told in (("force", {"sampling": {"tools": {}}, "roots": {}}), ("refuse", {"roots": {}})):
            server, client = self.two(sampling=mode)
            reply = self.call(client, capabilities={"sampling": {"context": {}}, "roots": {}})
            call = server.take()
            self.assertEqual(self.declared(call), told)
            call.json(error(1, -32021, "sampling is needed", data={"requiredCapabilities": {"sampling": {}}}), 400)
            self.assertEqual(reply.status, 400)
            self.assertEqual(reply.json()["error"]["code"], -32021)

    def test_refuse_answers_a_server_that_asks_all_the_same(self):
        server, client = self.two(sampling="refuse")
        reply = self.call(client)
        server.take().json(asks(1, {"s": entry()}))
        self.assertEqual(self.assert_rpc_error(reply, 200, "sampling_refused", id=1)["code"], -1)
        reply = self.call(client, inputResponses={"e": ACCEPTED}, requestState="servers")
        call = server.take()
        self.assertEqual(call.message["params"]["requestState"], "servers")
        call.json(asks(1, {"e": ELICITATION}, "next"))
        self.assertEqual(reply.json(), asks(1, {"e": ELICITATION}, "next"))

    def test_nothing_is_declared_where_policy_permits_no_model(self):
        def none(settings):
            del settings["plans"]["standard"]["models"]["default"]
            settings["plans"]["standard"]["servers"] = {"raw": {"models": {"allow": []}}}
        server, client = self.two(settings=none)
        message = json.dumps(self.message(inputResponses={"s": {}})).encode()
        reply = client.post(message)
        call = server.take()
        self.assertEqual(call.body, message)
        call.json(done(1))
        self.assertEqual(reply.json(), done(1))


class Answered(Case):
    def test_a_round_of_samplings_is_answered_inside(self):
        server, client = self.two()
        message = self.message(id="\u00e4", meta={"progressToken": 5, "traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"}, inputResponses={}, requestState="the clients")
        reply = self.send(client, message)
        first = server.take()
        self.assertEqual(first.message["id"], "\u00e4")
        first.answer(200, json.dumps(asks("\u00e4", {"verdict": entry()}, "STATE")).encode().replace(b"STATE", b"a\\u0041\\/"))
        second = server.take()
        params = second.message["params"]
        self.assertIsInstance(second.message["id"], str)
        self.assertNotEqual(second.message["id"], "\u00e4")
        self.assertEqual(params["inputResponses"].keys(), {"verdict"})
        answer = params["inputResponses"]["verdict"]
        self.assertEqual((answer["role"], type(answer["content"]), "jsonrpc" in answer), ("assistant", dict, False))
        self.assertIn(b'"requestState":"a\\u0041\\/"', second.body)
        self.assertEqual({key: value for key, value in params.items() if key not in ("inputResponses", "requestState")},
                         {key: value for key, value in first.message["params"].items() if key not in ("inputResponses", "requestState")})
        for name in ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-Region", "Accept", "Content-Type"):
            self.assertEqual(second.header(name), first.header(name), name)
        second.answer(200, b' {"result":{"resultType":"complete","id":1e400}, "id" : ' + json.dumps(second.message["id"]).encode() + b' }\n')
        self.assertEqual(reply.body(), ' {"result":{"resultType":"complete","id":1e400}, "id" : "\\u00e4" }\n'.encode())
        self.assertEqual((reply.status, reply.header("content-type")), (200, "application/json"))
        self.assertEqual(self.provider.stats()["requests"], 1)
        line = self.sampling_line()
        self.assertEqual((line["server"], line["tool"], line["revision"], line["status"]), ("raw", "t", REVISION, 200))

    def test_a_state_that_is_absent_stays_so(self):
        server, client = self.two()
        reply = self.call(client)
        server.take().json(asks(1, {"a": entry(), "b": entry()}))
        call = server.take()
        self.assertEqual(call.message["params"]["inputResponses"].keys(), {"a", "b"})
        self.assertNotIn("requestState", call.message["params"])
        call.json(done(call.message["id"]))
        self.assertEqual(reply.json(), done(1))

    def test_samplings_of_a_round_are_asked_at_once(self):
        server, client = self.two(model="sim-latency-700ms")
        reply = self.call(client)
        server.take().json(asks(1, {f"k{n}": entry() for n in range(16)}))
        self.asked(16)
        call = server.take()
        self.assertEqual(call.message["params"]["inputResponses"].keys(), {f"k{n}" for n in range(16)})
        call.json(done(call.message["id"]))
        self.assertEqual(reply.json(), done(1))

    def test_rounds_have_bounds(self):
        server, client = self.two()
        reply = self.call(client)
        server.take().json(asks(1, {f"k{n}": entry() for n in range(17)}))
        self.assert_rpc_error(reply, 200, "round_samplings", id=1, code=-32603)
        reply = self.call(client)
        for number in range(11):
            call = server.take()
            call.json(asks(call.message["id"], {f"k{number}": entry()}, str(number)))
            if number != 0:
                self.assertEqual(call.message["params"]["inputResponses"].keys(), {f"k{number - 1}"})
                self.assertEqual(call.message["params"]["requestState"], str(number - 1))
        self.assert_rpc_error(reply, 200, "rounds", id=1, code=-32603)
        self.assertTrue(server.idle())

    def test_the_first_failure_is_the_answer(self):
        server, client = self.two(model="sim-latency-30s")
        reply = self.call(client, id=9)
        server.take().json(asks(9, {"slow": entry(), "bad": {"method": "sampling/createMessage", "params": {"messages": []}}}))
        self.assert_rpc_error(reply, 200, "messages_empty", id=9, code=-32602)
        self.assertEqual(self.sampling_line(lambda line: line["status"] != 400)["status"], 499)
        reply = self.call(client, id=0)
        server.take().json(asks(0, {"none": {"method": "sampling/createMessage"}}))
        self.assertEqual(self.assert_rpc_error(reply, 200, "invalid_params", id=0)["code"], -32602)
        self.assertTrue(server.idle())

    def test_a_provider_that_fails_is_the_answer(self):
        server, client = self.two(model="sim-error-400")
        reply = self.call(client)
        server.take().json(asks(1, {"s": entry()}))
        self.assertEqual(self.assert_rpc_error(reply, 200, "provider_rejected", id=1)["code"], -32013)
        self.assertEqual(self.sampling_line()["status"], 422)

    def test_what_is_no_round_of_samplings_passes(self):
        server, client = self.two()
        for answer in (asks(1, None, "state"), asks(1, None, "state", inputRequests=None), {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "task", "inputRequests": {"s": entry()}}},
                       {"jsonrpc": "2.0", "id": 1, "result": {"inputRequests": {"s": entry()}}}, error(1, -32603), result(1)):
            for stream in (False, True):
                reply = self.call(client)
                call = server.take()
                if stream:
                    call.stream().finish(event(answer))
                    self.assertEqual(reply.body(), event(answer))
                else:
                    call.json(answer)
                    self.assertEqual(reply.json(), answer)
        self.assertEqual(self.provider.stats()["requests"], 0)

    def test_errors_of_any_leg_are_the_clients(self):
        server, client = self.two()
        for status, code in ((400, -32020), (400, -32021), (400, -32022), (404, -32601), (500, -32603)):
            body = error(1, code, "m", data={"supported": ["2026-07-28"], "x": [1.5]})
            reply = self.call(client)
            server.take().json(body, status)
            self.assertEqual((reply.status, reply.json()), (status, body))
            reply = self.call(client)
            server.take().json(asks(1, {"s": entry()}))
            call = server.take()
            call.json({**body, "id": call.message["id"]}, status)
            self.assertEqual((reply.status, reply.json()), (status, body))

    def test_a_server_that_goes_between_two_legs(self):
        server, client = self.two()
        reply = self.call(client)
        server.take().json(asks(1, {"s": entry()}))
        server.take().reset()
        self.assert_rpc_error(reply, 502, "server_unavailable", id=1)


class Mixed(Case):
    """The client has its part in a round."""

    def begin(self, server, client, requests=None, state="servers", id=1, **message):
        """A round is shown; what the client got."""
        reply = self.call(client, id=id, **message)
        call = server.take()
        call.json(asks(id, {"s": entry(), "e": ELICITATION, "t": entry()} if requests is None else requests, state, x=1))
        shown = reply.json()
        self.assertEqual((reply.status, shown["id"], shown["result"]["x"]), (200, id, 1))
        return shown["result"]

    def go_on(self, server, client, shown, state="servers", **message):
        reply = self.call(client, inputResponses={"e": ACCEPTED}, requestState=shown["requestState"], **message)
        call = server.take()
        self.assertEqual(call.message["params"].get("requestState"), state)
        call.json(done(call.message["id"]))
        self.assertEqual(reply.json(), done(message.get("id", 1)))
        return call.message["params"]["inputResponses"]

    def refused(self, server, client, key=harness.KEY, **message):
        other = self.client(self.gate.url + "/mcp/raw", revision=REVISION, key=key)
        reply = self.call(other, **message)
        self.assert_rpc_error(reply, 400, "request_state", id=message.get("id", 1), code=-32602)
        self.assertTrue(server.idle())

    def test_the_client_gets_what_it_declared(self):
        server, client = self.two()
        for state in ("servers", "a" * 100000, None):
            shown = self.begin(server, client, state=state)
            self.assertEqual(shown["inputRequests"], {"e": ELICITATION})
            self.assertNotEqual(shown["requestState"], state)
            responses = self.go_on(server, client, shown, state, id=2)
            self.assertEqual((responses.keys(), responses["e"]), ({"s", "e", "t"}, ACCEPTED))
            self.assertEqual({responses[key]["role"] for key in "st"}, {"assistant"})
        self.assertEqual(self.provider.stats()["requests"], 6)

    def test_a_part_that_comes_again_gets_the_same_answers(self):
        server, client = self.two()
        shown = self.begin(server, client)
        first = self.go_on(server, client, shown, id=2)
        for id in (3, "4"):
            self.assertEqual(self.go_on(server, client, shown, id=id), first)
        self.assertEqual(self.provider.stats()["requests"], 2)

    def test_what_a_part_that_comes_again_causes_is_bought_once(self):
        server, client = self.two()
        shown = self.begin(server, client)
        bought = self.provider.stats()["requests"]
        answers = []
        for id, text in ((2, "more"), (3, "more"), (4, "another")):
            reply = self.call(client, id=id, inputResponses={"e": ACCEPTED}, requestState=shown["requestState"])
            server.take().json(asks(id, {"m": entry(text)}))
            call = server.take()
            answers.append(call.message["params"]["inputResponses"]["m"])
            call.json(done(call.message["id"]))
            self.assertEqual(reply.json(), done(id))
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(self.provider.stats()["requests"], bought + 2)

    def test_the_client_may_write_its_call_anew(self):
        server, client = self.two()
        shown = self.begin(server, client, arguments={"a": 1, "b": "ü"})
        self.go_on(server, client, shown, arguments={"b": "ü", "a": 1.0}, capabilities={"roots": {}}, meta={"progressToken": 3})

    def test_a_client_does_not_answer_for_the_gateway(self):
        server, client = self.two()
        shown = self.begin(server, client)
        reply = self.call(client, inputResponses={"s": {"role": "assistant", "forged": True}, "e": ACCEPTED}, requestState=shown["requestState"])
        call = server.take()
        self.assertNotIn(b"forged", call.body)
        call.json(done(1))
        self.assertEqual(reply.json(), done(1))

    def test_a_round_without_samplings_has_a_state_of_the_gateways_too(self):
        server, client = self.two()
        for state in ("servers", None):
            shown = self.begin(server, client, {"e": ELICITATION}, state)
            self.assertNotEqual(shown["requestState"], state)
            self.assertEqual(self.go_on(server, client, shown, state), {"e": ACCEPTED})
        self.assertEqual(self.provider.stats()["requests"], 0)

    def test_a_state_is_good_for_its_call_alone(self):
        def both(settings):
            settings["tenants"].append(harness.tenant("other", OTHER_KEY))
        server, client = self.two(settings=both)
        good = {"inputResponses": {"e": ACCEPTED}, "requestState": self.begin(server, client)["requestState"]}
        self.refused(server, client, **{**good, "requestState": good["requestState"][:-1] + ("A" if good["requestState"][-1] != "A" else "B")})
        self.refused(server, client, **{**good, "requestState": "servers"})
        self.refused(server, client, **{**good, "requestState": ""})
        self.refused(server, client, inputResponses={"e": ACCEPTED})
        self.refused(server, client, **{**good, "inputResponses": [ACCEPTED]})
        self.refused(server, client, **good, arguments={"a": 2})
        self.refused(server, client, **{**good, "name": "u"})
        self.refused(server, client, **good, method="prompts/get")
        self.refused(server, client, **good, key=OTHER_KEY)
        self.go_on(server, client, good)

    def test_the_servers_own_state_passes(self):
        server, client = self.two()
        reply = self.call(client, requestState="servers")
        call = server.take()
        self.assertEqual(call.message["params"]["requestState"], "servers")
        call.json(asks(1, None, "again"))
        self.assertEqual(reply.json(), asks(1, None, "again"))

    def test_a_client_that_dropped_its_part_leaves_ours(self):
        server, client = self.two()
        shown = self.begin(server, client)
        reply = self.call(client, requestState=shown["requestState"])
        call = server.take()
        self.assertEqual((call.message["params"]["requestState"], call.message["params"]["inputResponses"].keys()), ("servers", {"s", "t"}))
        call.json(done(1))
        self.assertEqual(reply.json(), done(1))

    def test_a_mixed_round_may_come_later(self):
        server, client = self.two()
        reply = self.call(client, id=5)
        server.take().json(asks(5, {"a": entry()}, "one"))
        call = server.take()
        call.json(asks(call.message["id"], {"s": entry(), "e": ELICITATION}, "two"))
        shown = reply.json()
        self.assertEqual((shown["id"], shown["result"]["inputRequests"]), (5, {"e": ELICITATION}))
        self.assertEqual(self.go_on(server, client, shown["result"], "two", id=6).keys(), {"s", "e"})

    def test_what_is_too_large_to_keep_is_an_error(self):
        server, client = self.two()
        reply = self.call(client)
        server.take().json(asks(1, {"e": ELICITATION}, "x" * 300000))
        self.assert_rpc_error(reply, 200, "server_answer_invalid", id=1)


class Streams(Case):
    def first(self, client, server, **message):
        reply = self.call(client, meta={"progressToken": 7}, **message)
        return reply, server.take()

    def test_legs_are_one_stream(self):
        server, client = self.two(model="sim-latency-300ms")
        reply, call = self.first(client, server)
        stream = call.stream()
        stream.send(b": hello\n\n" + event(progress(1)) + event(note()) + event(progress(2)))
        reply.expect(b": hello\n\n" + event(progress(1)) + event(note()) + event(progress(2)))
        stream.finish(event(asks(1, {"s": entry()}, "state")))
        call = server.take()
        self.assertEqual(call.message["params"]["requestState"], "state")
        stream = call.stream()
        for value, passes in ((1, False), (2, False), (2.5, True), (2.5, False), (3, True)):
            stream.send(event(progress(value)))
            if passes:
                reply.expect(event(progress(value)))
        stream.send(event(progress(0, token="7")) + event(note("later")))
        reply.expect(event(progress(0, token="7")) + event(note("later")))
        stream.finish(b"id: 9\n" + event(done(call.message["id"])))
        reply.expect(b"id: 9\n" + event(done(1))).end()
        self.assertEqual(reply.header("content-type"), "text/event-stream")

    def test_events_may_be_spelled_in_every_way(self):
        server, client = self.two()
        asked = json.dumps(asks(1, {"s": entry()}), indent=1).encode()
        for eol in (b"\n", b"\r", b"\r\n"):
            reply, call = self.first(client, server)
            data = eol.join([b"event: message", *(b"data: " + line for line in asked.split(b"\n")), b"", b""])
            stream = call.stream()
            for at in range(len(data)):
                stream.send(data[at:at + 1])
            call = server.take()
            stream.end()
            text = json.dumps(done(call.message["id"]), indent=1).encode()
            call.stream().finish(eol.join([b"id: 4", *(b"data:" + line for line in text.split(b"\n")), b"", b""]))
            got = reply.body()
            self.assertEqual(json.loads(b"\n".join(line[5:] for line in got.splitlines() if line.startswith(b"data:"))), done(1))
            self.assertTrue(got.startswith(b"id: 4" + eol), got)

    def test_a_stream_may_follow_json_and_json_a_stream(self):
        server, client = self.two()
        reply, call = self.first(client, server)
        call.json(asks(1, {"s": entry()}))
        call = server.take()
        call.stream().finish(event(note()) + event(done(call.message["id"])))
        self.assertEqual(reply.body(), event(note()) + event(done(1)))
        reply, call = self.first(client, server)
        call.stream().finish(event(note()) + event(asks(1, {"s": entry()})))
        call = server.take()
        call.answer(200, json.dumps(done(call.message["id"]), indent=1).encode())
        reply.expect(event(note()))
        self.assertEqual(reply.message(), done(1))
        reply.end()

    def test_a_mixed_round_ends_the_stream(self):
        server, client = self.two()
        reply, call = self.first(client, server)
        call.stream().finish(event(note()) + event(asks(1, {"s": entry(), "e": ELICITATION})))
        reply.expect(event(note()))
        self.assertEqual(reply.message()["result"]["inputRequests"], {"e": ELICITATION})
        reply.end()

    def test_failures_are_told_on_the_stream(self):
        server, client = self.two()

        def begin(requests):
            reply, call = self.first(client, server)
            call.stream().finish(event(note()) + event(asks(1, requests)))
            reply.expect(event(note()))
            return reply

        def told(reply, reason):
            answer = reply.message()
            self.assertEqual((answer["id"], answer["error"]["data"]["reason"]), (1, reason))
            reply.end()
        told(begin({"s": {"method": "sampling/createMessage", "params": {"messages": []}}}), "messages_empty")
        reply = begin({"s": entry()})
        server.take().reset()
        told(reply, "server_unavailable")
        reply = begin({"s": entry()})
        server.take().stream().end()
        told(reply, "server_answer_invalid")
        reply = begin({"s": entry()})
        server.take().answer(503, b"<html>", content_type="text/html")
        told(reply, "server_answer_invalid")
        reply = begin({"s": entry()})
        call = server.take()
        call.json(error(call.message["id"], -32020, "header"), 400)
        self.assertEqual(reply.message(), error(1, -32020, "header"))
        reply.end()

    def test_large_results_pass(self):
        server, client = self.two()
        text = "x" * (3 << 20)
        reply, call = self.first(client, server)
        call.stream().finish(event(done(1, text)))
        self.assertTrue(reply.body() == event(done(1, text)))
        reply, call = self.first(client, server)
        call.stream().finish(event(asks(1, {"s": entry()})))
        call = server.take()
        call.stream().finish(event(done(call.message["id"], text)))
        self.assertTrue(reply.body() == event(done(1, text)))


class Silent(Case):
    def test_a_client_that_waits_for_long_gets_a_stream(self):
        server, client = self.two(model="sim-latency-17s")
        first, second = self.call(client), self.send(client, self.message(id=2), {"Accept": "application/json"})
        for _ in range(2):
            call = server.take()
            call.json(asks(call.message["id"], {"s": entry()}))
        self.asked(2)
        self.assertEqual((first.status, first.header("content-type")), (200, "text/event-stream"))
        for _ in range(2):
            call = server.take()
            call.json(done(call.message["id"]))
        self.assertEqual(first.message(), done(1))
        first.end()
        self.assertEqual((second.header("content-type"), second.json()), ("application/json", done(2)))

    def listen(self, client, server):
        reply = self.call(client, method="subscriptions/listen")
        stream = server.take().stream()
        stream.send(event(note("first")))
        reply.expect(event(note("first")))
        return reply, stream

    def test_a_subscription_may_be_silent(self):
        server, client = self.two(timeouts={"idle": "300ms"})
        reply, stream = self.listen(client, server)
        other = self.call(client)
        server.take().stream().send(event(note("other")))
        other.expect(event(note("other"))).cut()  # after the idle time
        stream.finish(event(note("later")) + event(done(1)))
        reply.expect(event(note("later")) + event(done(1))).end()

    def test_a_subscription_passes_as_it_comes_if_it_is_no_event_stream(self):
        server, client = self.two(timeouts={"idle": "300ms"})
        reply = self.call(client, method="subscriptions/listen")
        stream = server.take().stream(content_type="application/json")
        for piece in (b'{"jsonrpc":"2.0","met', b'hod":"notifications/a"}\n', b'{"jsonrpc":"2.0","method":"sampling/createMessage"}\n'):
            stream.send(piece)
            reply.expect(piece)
        self.assertEqual((reply.status, reply.header("content-type")), (200, "application/json"))
        stream.finish(b"{}")
        reply.expect(b"{}").end()
        reply = self.call(client, method="subscriptions/listen")
        call = server.take()
        call.json({"jsonrpc": "2.0", "id": call.message["id"], "error": {"code": -32601, "message": "no"}}, 404)
        self.assertEqual((reply.status, reply.json()["error"]["code"]), (404, -32601))

    def test_a_subscription_ends_when_the_gateway_leaves(self):
        server, client = self.two(settings=lambda whole: whole.update(drain="1s"))
        reply, stream = self.listen(client, server)
        self.gate.send(signal.SIGTERM)
        stream.wait_gone()
        reply.end()
        self.gate.stop()


class Gone(Case):
    """A client that leaves has cancelled."""

    def test_it_stops_the_samplings(self):
        server, client = self.two(model="sim-latency-30s")
        for stream in (False, True):
            reply = self.call(client)
            call = server.take()
            if stream:
                call.stream().finish(event(note()) + event(asks(1, {"a": entry()})))
                reply.expect(event(note()))
            else:
                call.json(asks(1, {"a": entry()}))
            self.asked(2 if stream else 1)
            reply.close()
            harness.wait_for(lambda: len([line for line in list(self.gate.stdout) if '"status":499' in line]) == (2 if stream else 1), "the log line of what was stopped")
        self.assertTrue(server.idle())

    def test_it_closes_the_leg(self):
        server, client = self.two()
        for number in (0, 1):
            for stream in (False, True):
                reply = self.call(client)
                call = server.take()
                if number == 1:
                    call.json(asks(1, {"a": entry()}))
                    call = server.take()
                if stream:
                    call.stream().send(event(note()))
                    reply.expect(event(note()))
                reply.close()
                call.wait_gone()


if __name__ == "__main__":
    harness.main()
