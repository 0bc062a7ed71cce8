#!/usr/bin/env python3
"""`sluice wrap`: a stdio server whose samplings a gateway answers, in the revisions with initialize.

ctest: timeout=180
"""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import upstream
import wrapped

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize",
              "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}}


def sampling(id, text="hello", **params):
    return {"jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 50, **params}}


def result_of(request, revision="2025-11-25"):
    return {"jsonrpc": "2.0", "id": request["id"], "result": {
        "protocolVersion": revision, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}}


class Wrap(wrapped.Case):
    def hello(self, wrap, initialize=None, revision="2025-11-25"):
        """The initialize handshake; what the server saw of it."""
        wrap.client_send(initialize or INITIALIZE)
        seen = wrap.server_read()
        wrap.server_send(result_of(seen, revision))
        wrap.client_read()
        return seen


class Samplings(Wrap):
    def test_a_client_without_sampling_gets_a_server_that_samples(self):
        gateway = self.gateway(harness.config(self.sim()))
        wrap = self.wrap(gateway=gateway)
        seen = self.hello(wrap)
        self.assertEqual(seen["params"]["capabilities"], {"sampling": {"tools": {}}})
        for id in (0, "", "a\"b", -5, 2 ** 53 + 1):
            wrap.server_send(sampling(id))
            answer = wrap.server_read()
            self.assertEqual(answer["id"], id)
            self.assertEqual(answer["result"]["role"], "assistant")
            self.assertIsInstance(answer["result"]["content"], dict)
        self.assertEqual(wrap.sync(), ([], []))

    def test_an_id_is_echoed_byte_for_byte(self):
        wrap = self.wrap(gateway=self.gateway(harness.config(self.sim())))
        for id in (b"123456789012345678901234567890", b"1.0", b'"\\u0041"', b"1e2"):
            wrap.server_send(json.dumps(sampling("ID")).encode().replace(b'"ID"', id) + b"\n")
            self.assertTrue(wrap.server_line().startswith(b'{"jsonrpc":"2.0","id":' + id + b',"result"'))

    def test_several_samplings_run_at_once_and_one_too_many_is_an_error(self):
        models = [harness.model("slow", "anthropic", name="sim-latency-500ms")]
        settings = harness.config(self.sim(), models=models)
        settings["plans"]["standard"]["models"]["default"] = "slow"
        wrap = self.wrap(gateway=self.gateway(settings))
        for id in range(17):
            wrap.server_send(sampling(id))
        first = wrap.server_read()
        self.assertEqual((first["id"], first["error"]["code"], first["error"]["data"]["reason"]), (16, -1, "busy"))
        answers = [wrap.server_read() for _ in range(16)]
        self.assertEqual(sorted(answer["id"] for answer in answers), list(range(16)))
        self.assertTrue(all("result" in answer for answer in answers))

    def test_the_negotiated_revision_decides_the_answers_form(self):
        sim = self.sim()
        gateway = self.gateway(harness.config(sim))
        tools = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
        for revision, declared in (("2025-11-25", {"tools": {}}), ("2025-06-18", {}), ("2024-11-05", {})):
            wrap = self.wrap(gateway=gateway)
            hello = json.loads(json.dumps(INITIALIZE))
            hello["params"]["protocolVersion"] = revision
            seen = self.hello(wrap, hello, revision)
            self.assertEqual(seen["params"]["capabilities"]["sampling"], declared)
            wrap.server_send(sampling(1, **tools))
            wrap.server_read()
            self.assertEqual(json.loads(gateway.wait_line(
                lambda line, revision=revision: f'"revision":"{revision}"' in line, "its log line"))["revision"], revision)

    def test_progress_reaches_a_server_that_gave_a_token(self):
        models = [harness.model("slow", "anthropic", name="sim-pace-20ms-size-2000-chunk-16")]
        settings = harness.config(self.sim(), models=models)
        settings["plans"]["standard"]["models"]["default"] = "slow"
        wrap = self.wrap(gateway=self.gateway(settings))
        wrap.server_send(sampling(1, _meta={"progressToken": 0}))
        seen = []
        while "result" not in (message := wrap.server_read()):
            self.assertEqual(message["method"], "notifications/progress")
            self.assertEqual(message["params"]["progressToken"], 0)
            seen.append(message["params"]["progress"])
        self.assertGreater(len(seen), 1)
        self.assertEqual(seen, sorted(set(seen)))
        self.assertEqual(message["id"], 1)

    def test_a_batch_loses_its_samplings_only(self):
        wrap = self.wrap(gateway=self.gateway(harness.config(self.sim())))
        note = b'{"jsonrpc":"2.0", "method":"notifications/message" }'
        ask = json.dumps(sampling(7)).encode()
        wrap.server_send(b"[" + note + b" , " + ask + b"," + note + b"]\n")
        wrap.server_send(b"[" + ask + b"]\n")
        self.assertEqual([wrap.server_read()["id"] for _ in range(2)], [7, 7])
        self.assertEqual(wrap.sync()[0], [b"[" + note + b" ," + note + b"]\n"])

    def test_names_are_read_as_a_peer_reads_them(self):
        wrap = self.wrap(gateway=self.gateway(harness.config(self.sim())))
        wrap.server_send(json.dumps(sampling(1)).encode().replace(b'"method"', b'"m\\u0065thod"')
                         .replace(b"sampling/", b"sampling\\/") + b"\n")
        self.assertEqual(wrap.server_read()["id"], 1)
        text = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"method": "sampling/createMessage", "id": 3}}).encode() + b"\n"
        wrap.server_send(text)
        self.assertEqual(wrap.client_line(), text)

    def test_a_refusal_of_the_gateways_is_the_samplings_error(self):
        settings = harness.config(self.sim())
        settings["tenants"].append(harness.tenant("poor", harness.KEY + "-poor", limits={"usd_per_day": 0}))
        settings["tenants"].append(harness.tenant("slow", harness.KEY + "-slow", limits={"requests_per_minute": 1, "requests_burst": 1}))
        gateway = self.gateway(settings)
        for key, code in ((harness.KEY + "-poor", 402), (harness.KEY + "-unknown", 401)):
            wrap = self.wrap(gateway=gateway, key=key)
            wrap.server_send(sampling(1))
            self.assertEqual(wrap.server_read()["error"]["code"], code)
        wrap = self.wrap(gateway=gateway, key=harness.KEY + "-slow")
        for _ in range(2):
            wrap.server_send(sampling(1))
            answer = wrap.server_read()
        self.assertEqual(answer["error"]["code"], 429)
        self.assertIn("retryAfterMs", json.dumps(answer["error"]["data"]))
        wrap = self.wrap(gateway=gateway)
        wrap.server_send({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage"})
        self.assertEqual(wrap.server_read()["error"]["code"], -32602)

    def test_a_gateway_that_is_away_is_one_error_for_each_sampling(self):
        url = f"http://127.0.0.1:{harness.free_port()}"
        wrap = self.wrap(gateway=url)
        self.hello(wrap)
        for id in (1, 2):
            wrap.server_send(sampling(id))
            error = wrap.server_read()["error"]
            self.assertEqual(error["code"], -32603)
            self.assertEqual(error["data"]["reason"], "gateway_unavailable")
            self.assertEqual(error["data"]["gateway"], url)
        self.assertEqual(wrap.sync(), ([], []))
        wrap.close()
        self.assertEqual(sum("cannot reach the gateway" in line for line in wrap.errors), 1, wrap.errors)

    def test_a_name_is_looked_up(self):
        gateway = self.gateway(harness.config(self.sim()))
        wrap = self.wrap(gateway=gateway.url.replace("127.0.0.1", "localhost"))
        wrap.server_send(sampling(1))
        self.assertIn("result", wrap.server_read())

    def test_a_gateway_is_known_by_its_certificate(self):
        cert, key = self.certificate()
        port = harness.free_port()
        settings = harness.config(self.sim())
        settings["listen"] = [{"address": f"127.0.0.1:{port}", "tls": {"cert": cert, "key": key}},
                              {"address": f"127.0.0.1:{harness.free_port()}"}]
        self.gateway(settings)
        url = f"https://localhost:{port}"
        wrap = self.wrap(gateway=url, env={"SSL_CERT_FILE": cert})
        wrap.server_send(sampling(1))
        self.assertIn("result", wrap.server_read())
        wrap = self.wrap(gateway=url)
        wrap.server_send(sampling(1))
        error = wrap.server_read()["error"]
        self.assertEqual(error["data"]["reason"], "gateway_unavailable")
        self.assertIn("certificate", error["data"]["detail"])

    def test_what_is_no_gateway_is_an_error_too(self):
        sim = self.sim()
        wrap = self.wrap(gateway=sim.url)
        wrap.server_send(sampling(1))
        self.assertEqual(wrap.server_read()["error"]["data"]["reason"], "gateway_answer")


class Modes(Wrap):
    declared = {"capabilities": {"roots": {}, "sampling": {"context": {}}}}

    def hello_with(self, capabilities):
        return {**INITIALIZE, "params": {**INITIALIZE["params"], "capabilities": capabilities}}

    def test_a_client_that_samples_is_relayed(self):
        wrap = self.wrap(gateway=self.gateway(harness.config(self.sim())))
        line = json.dumps(self.hello_with({"sampling": {}})).encode() + b"\n"
        wrap.client_send(line)
        self.assertEqual(wrap.server_line(), line)
        wrap.server_send(result_of(INITIALIZE))
        wrap.client_read()
        ask = json.dumps(sampling(3)).encode() + b"\n"
        wrap.server_send(ask)
        self.assertEqual(wrap.client_line(), ask)
        reply = b'{"jsonrpc":"2.0","id":3,"result":{"role":"assistant"}}\n'
        wrap.client_send(reply)
        self.assertEqual(wrap.server_line(), reply)

    def test_force_answers_here_whatever_the_client_declares(self):
        wrap = self.wrap("--sampling=force", gateway=self.gateway(harness.config(self.sim())))
        seen = self.hello(wrap, self.hello_with({"sampling": {"context": {}}, "roots": {}}))
        self.assertEqual(seen["params"]["capabilities"], {"sampling": {"tools": {}}, "roots": {}})
        wrap.server_send(sampling(3))
        self.assertIn("result", wrap.server_read())

    def test_refuse_cuts_the_declaration_out_and_answers_no(self):
        for capabilities, left in (({"sampling": {}}, {}), ({"a": 1, "sampling": {}, "b": 2}, {"a": 1, "b": 2})):
            wrap = self.wrap("--sampling", "refuse")
            self.assertEqual(self.hello(wrap, self.hello_with(capabilities))["params"]["capabilities"], left)
            wrap.server_send(sampling(3))
            self.assertEqual(wrap.server_read()["error"]["code"], -1)

    def test_relay_changes_nothing(self):
        wrap = self.wrap("--sampling", "relay")
        line = json.dumps(INITIALIZE).encode() + b"\n"
        wrap.client_send(line)
        self.assertEqual(wrap.server_line(), line)
        ask = json.dumps(sampling(3)).encode() + b"\n"
        wrap.server_send(ask)
        self.assertEqual(wrap.client_line(), ask)

    def test_the_declaration_is_put_in_by_bytes(self):
        wrap = self.wrap(gateway="http://127.0.0.1:1")
        head = b'{ "id" :1,"jsonrpc":"2.0","x":1.0,"method":"initialize","params":{"protocolVersion":"2025-11-25", "capabilities":'
        for before, after in ((b"{}", b'{"sampling":{"tools":{}}}'),
                              (b'{ "roots" : {} }', b'{"sampling":{"tools":{}}, "roots" : {} }'),
                              (b'{"sampling": null,"a":1e400}', b'{"sampling": {"tools":{}},"a":1e400}')):
            wrap.client_send(head + before + b' , "_meta":{}}  }\r\n')
            self.assertEqual(wrap.server_line(), head + after + b' , "_meta":{}}  }\r\n')

    def test_a_strict_server_is_told_less(self):
        wrap = self.wrap(gateway=self.gateway(harness.config(self.sim())))
        line = json.dumps(INITIALIZE).encode() + b"\n"
        wrap.client_send(line)
        refusal = {"jsonrpc": "2.0", "id": 0, "error": {"code": -32603, "message": 'Unrecognized field "tools"'}}
        self.assertEqual(wrap.server_read()["params"]["capabilities"], {"sampling": {"tools": {}}})
        wrap.server_send(refusal)
        self.assertEqual(wrap.server_read()["params"]["capabilities"], {"sampling": {}})
        wrap.server_send(refusal)
        self.assertEqual(wrap.server_line(), line)
        wrap.server_send(refusal)
        self.assertEqual(wrap.client_read(), refusal)
        self.assertEqual(wrap.sync(), ([], []))

    def test_another_error_of_initialize_is_the_clients(self):
        wrap = self.wrap(gateway="http://127.0.0.1:1")
        wrap.client_send(INITIALIZE)
        wrap.server_read()
        error = {"jsonrpc": "2.0", "id": 0, "error": {"code": -32000, "message": "no"}}
        wrap.server_send(error)
        self.assertEqual(wrap.client_read(), error)


class Cancellation(Wrap):
    def slow(self):
        sim = self.sim()
        settings = harness.config(sim, models=[harness.model("slow", "anthropic", name="sim-latency-30s")])
        settings["plans"]["standard"]["models"]["default"] = "slow"
        gateway = self.gateway(settings)
        return sim, gateway, self.wrap(gateway=gateway)

    def cancelled(self, gateway):
        line = gateway.wait_line(lambda line: '"status":499' in line, "the log line of a cancelled request")
        self.assertIn("sampling", line)

    def test_a_server_cancels_its_sampling(self):
        sim, gateway, wrap = self.slow()
        wrap.server_send(sampling(4))
        sim.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        wrap.server_send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}})
        self.assertEqual(wrap.client_read()["params"]["requestId"], 9)
        wrap.server_send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4.0}}\n')
        self.cancelled(gateway)
        self.assertEqual(wrap.sync(), ([], []))

    def test_a_client_that_cancels_its_only_call_ends_the_sampling(self):
        sim, gateway, wrap = self.slow()
        wrap.client_send({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "t"}})
        wrap.server_read()
        wrap.server_send(sampling(4))
        sim.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
        wrap.client_send(cancel)
        self.assertEqual(wrap.server_read(), cancel)
        self.assertEqual(wrap.server_read()["error"]["code"], -1)
        self.cancelled(gateway)

    def test_a_client_may_not_answer_for_the_gateway(self):
        sim, _, wrap = self.slow()
        wrap.server_send(sampling(4))
        sim.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        wrap.client_send({"jsonrpc": "2.0", "id": 4, "result": {"forged": True}})
        self.assertEqual(wrap.sync(), ([], []))

    def test_a_client_that_leaves_ends_samplings_and_server(self):
        sim, gateway, wrap = self.slow()
        wrap.server_send(sampling(4))
        sim.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        wrap.process.stdin.close()
        self.cancelled(gateway)
        self.assertEqual(wrap.server_line(), b"")
        self.assertEqual(wrap.close(), 0)

    def test_a_server_that_ends_ends_its_samplings(self):
        sim, gateway, wrap = self.slow()
        wrap.server_send(sampling(4))
        sim.wait_stats(lambda stats: stats["requests"] == 1, "the provider is asked")
        self.assertEqual(wrap.close(), 0)
        self.cancelled(gateway)


class Rounds(Wrap):
    """2026-07-28."""

    def call(self, id, **params):
        return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t", **params, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}}}

    @staticmethod
    def asks(id, requests, **more):
        return {"jsonrpc": "2.0", "id": id, "result": {"resultType": "input_required", "inputRequests": requests, **more}}

    @staticmethod
    def entry(text="hello"):
        request = sampling(0, text)
        return {"method": request["method"], "params": request["params"]}

    def test_rounds_are_answered_inside(self):
        sim = self.sim()
        wrap = self.wrap(gateway=self.gateway(harness.config(sim)))
        wrap.client_send(self.call("c"))
        seen = wrap.server_read()
        self.assertEqual(seen["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"], {"elicitation": {}, "sampling": {"tools": {}}})
        used = {seen["id"]}
        for state in ({"requestState": "s1"}, {}):
            wrap.server_send(self.asks(seen["id"], {"a": self.entry(), "b": self.entry()}, **state))
            seen = wrap.server_read()
            self.assertNotIn(seen["id"], used)
            used.add(seen["id"])
            self.assertEqual(set(seen["params"]["inputResponses"]), {"a", "b"})
            self.assertEqual(seen["params"]["inputResponses"]["a"]["role"], "assistant")
            self.assertEqual(seen["params"].get("requestState"), state.get("requestState"))
        wrap.server_send({"jsonrpc": "2.0", "id": seen["id"], "result": {"resultType": "complete", "content": []}})
        self.assertEqual(wrap.client_read(), {"jsonrpc": "2.0", "id": "c", "result": {"resultType": "complete", "content": []}})

    def test_a_mixed_round_is_paid_once(self):
        sim = self.sim()
        wrap = self.wrap(gateway=self.gateway(harness.config(sim)))
        wrap.client_send(self.call(1))
        elicit = {"method": "elicitation/create", "params": {"message": "name?"}}
        wrap.server_send(self.asks(wrap.server_read()["id"], {"a": self.entry(), "e": elicit}, requestState="secret"))
        part = wrap.client_read()
        self.assertEqual((part["id"], part["result"]["inputRequests"]), (1, {"e": elicit}))
        self.assertNotIn("secret", json.dumps(part))
        for id in (2, 3):
            wrap.client_send(self.call(id, inputResponses={"e": {"action": "accept"}}, requestState=part["result"]["requestState"]))
            seen = wrap.server_read()["params"]
            self.assertEqual((set(seen["inputResponses"]), seen["requestState"]), ({"a", "e"}, "secret"))
        self.assertEqual(sim.stats()["requests"], 1)
        wrap.client_send(self.call(4, inputResponses={}, requestState=part["result"]["requestState"] + "x"))
        self.assertEqual(wrap.client_read()["error"]["code"], -32602)

    def test_a_round_that_cannot_be_answered_is_the_calls_error(self):
        wrap = self.wrap(gateway=f"http://127.0.0.1:{harness.free_port()}")
        wrap.client_send(self.call(1))
        wrap.server_send(self.asks(wrap.server_read()["id"], {"a": self.entry(), "b": self.entry()}))
        answer = wrap.client_read()
        self.assertEqual((answer["id"], answer["error"]["data"]["reason"]), (1, "gateway_unavailable"))
        self.assertEqual(wrap.sync(), ([], []))


class Bytes(Wrap):
    lines = (b"not json\n", b"\n", b'{"jsonrpc":"2.0","id":\xff\xfe}\n', b"[]\n", b"[1,{},\n", b"{" * 100 + b"\n",
             b'{"method":"sampling/createMessage"}\n', b'{"method":"sampling/createMessage","id":null}\n',
             b'{"jsonrpc":"2.0","id":1,"result":1e400,"x":"\\ud800"}\r\n', b"\x00\n")

    def test_what_is_not_understood_passes_both_ways(self):
        wrap = self.wrap(gateway="http://127.0.0.1:1")
        for line in self.lines:
            wrap.server_send(line)
            self.assertEqual(wrap.client_line(), line)
            wrap.client_send(line)
            self.assertEqual(wrap.server_line(), line)

    def test_long_lines_pass_both_ways_at_once(self):
        wrap = self.wrap(gateway="http://127.0.0.1:1")
        for size in (1 << 20, 20 << 20, 40 << 20):
            line = b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * size + b'"}\n'
            both = [self.background(lambda line=line: wrap.client_send(line)),
                    self.background(lambda line=line: wrap.server_send(line))]
            self.assertTrue(wrap.client_line() == line and wrap.server_line() == line)
            for one in both:
                one[1].join()

    def test_an_answer_comes_behind_a_long_line_not_into_it(self):
        wrap = self.wrap("--sampling", "refuse")
        line = b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * (40 << 20) + b'"}\n'
        wrap.client_send(line[:36 << 20])
        wrap.server_send(sampling(1))
        wrap.server_send({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
        wrap.client_read()  # so the refusal before it was written, too
        wrap.client_send(line[36 << 20:])
        self.assertTrue(wrap.server_line() == line)
        self.assertEqual(wrap.server_read()["error"]["code"], -1)

    def test_an_answer_of_the_gateway_may_end_with_the_connection(self):
        def serve(peer, _):
            _, body = peer.request()
            answer = {"jsonrpc": "2.0", "id": json.loads(body)["id"], "result": {"role": "assistant"}}
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + json.dumps(answer).encode())
        gateway = upstream.Server(serve)
        self.addCleanup(gateway.close)
        wrap = self.wrap(gateway=f"http://127.0.0.1:{gateway.port}")
        wrap.server_send(sampling(1))
        self.assertEqual(wrap.server_read()["result"], {"role": "assistant"})
        self.assertEqual(gateway.failures, [])

    def test_a_sampling_that_is_too_large_for_the_gateway_has_an_answer(self):
        wrap = self.wrap(gateway=self.gateway(harness.config(self.sim())))
        wrap.server_send(sampling(1, "x" * (20 << 20)))
        self.assertEqual(wrap.server_read()["error"]["code"], 413)

    def test_a_side_that_does_not_read_holds_the_other_back(self):
        """64 MiB for a client that reads nothing: the server is stopped long before, and all of it comes in the end."""
        line, count = b"x" * 1023 + b"\n", 65536
        program = (f"import os\nline = b'x' * 1023 + b'\\n'\nfor n in range({count}):\n"
                   " os.write(2, b'.') if n % 64 == 0 else None\n os.write(1, line)")
        wrap = subprocess.Popen([harness.BIN, "wrap", "--sampling=relay", "--", sys.executable, "-c", program],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(wrap.communicate)
        self.addCleanup(wrap.kill)
        child = harness.wait_for(lambda: self.child_that_sleeps(wrap.pid), "the server waits to be read")
        self.assertLess(harness.memory_kb(wrap.pid, "VmRSS"), 64 << 10)
        self.assertIsNotNone(child)
        errors = self.background(wrap.stderr.read)
        got = 0
        while piece := wrap.stdout.read(1 << 20):
            got += len(piece)
        errors[1].join()
        self.assertEqual(got, count * len(line))

    @staticmethod
    def child_that_sleeps(pid):
        """The child, if it is in a write to a pipe that is full."""
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = file.read().split()
        for child in children:
            with open(f"/proc/{child}/wchan", encoding="ascii") as file:
                if "pipe" in file.read():
                    return child
        return None

    def test_the_last_line_may_have_no_end(self):
        for command in ("printf abc", "printf '{\"jsonrpc\":\"2.0\"}'"):
            run = subprocess.run([harness.BIN, "wrap", "--sampling=relay", "--", "sh", "-c", command],
                                 stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.PATIENCE_S, check=True)
            self.assertEqual(run.stdout, subprocess.run(["sh", "-c", command], capture_output=True, check=True).stdout)


if __name__ == "__main__":
    harness.main()
