"""Event streams through the real binary: who gets one, what it tells, and how it ends.
ctest: timeout=300
"""

import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import h2_client  # noqa: E402
import harness  # noqa: E402
import streams  # noqa: E402

JSON, STREAM = "application/json", "text/event-stream"


class Forms(streams.Case):
    """JSON or an event stream."""

    def test_a_stream_for_whom_lists_it_and_sends_a_token_else_json(self):
        sim = self.sim()
        gateway = self.gateway(harness.config(sim))
        rows = [  # Accept, token, status, form
            (None, 1, 200, JSON), ("*/*", 1, 200, JSON), (JSON, 1, 200, JSON), ("text/*", 1, 406, JSON),
            (streams.BOTH, None, 200, JSON), (STREAM, None, 406, JSON), ("text/html", 1, 406, JSON),
            (streams.BOTH, 1, 200, STREAM), (streams.BOTH, 0, 200, STREAM), (streams.BOTH, "", 200, STREAM),
            (STREAM, "x", 200, STREAM), ("Text/Event-Stream ; q=0.1, */*", 1, 200, STREAM),
            (f"{STREAM};q=0, {JSON}", 1, 200, JSON), (f"{STREAM};q=0", 1, 406, JSON),
        ]
        for accept, token, status, form in rows:
            for http2 in (False, True):
                with self.subTest(accept=accept, token=token, http2=http2):
                    headers = streams.fields(accept or "")
                    if accept is None:
                        del headers["Accept"]
                    if http2 and accept is None:
                        continue  # curl has one of its own
                    answer = gateway.post(streams.message(token=token), headers, http2=http2)
                    self.assertEqual((answer.status, answer.headers["content-type"]), (status, form), answer)
                    if form == STREAM:
                        (event,) = streams.events_of(answer.body)
                        self.assertEqual(event["result"]["stopReason"], "endTurn")
                        self.assertEqual(answer.headers["cache-control"], "no-cache, no-transform")
                        self.assertEqual(len(answer.headers["sluice-request-id"]), 32)

    def test_messages_that_are_not_sampled_are_answered_in_json_or_with_nothing(self):
        gateway = self.gateway(harness.config(self.sim()))
        rows = [({"id": 1, "method": "ping"}, STREAM, 406), ({"id": 1, "method": "ping"}, streams.BOTH, 200),
                ({"id": 1, "method": "nonsense"}, STREAM, 406), ({"method": "notifications/initialized"}, STREAM, 202)]
        for message, accept, status in rows:
            answer = gateway.post({"jsonrpc": "2.0", **message}, {"Accept": accept})
            self.assertEqual(answer.status, status, (message, answer))
            if status == 406:
                self.assertIn("add application/json", answer.json()["error"]["message"])

    def test_refusals_keep_their_status_as_json(self):
        sim = self.sim()
        settings = harness.config(sim, models=[harness.model("claude-test", "anthropic"),
                                               harness.model("broken", "anthropic", name="sim-error-400")])
        settings["tenants"].append(harness.tenant("small", "small-key-0123456789", limits={"requests_per_minute": 1,
                                                                                          "requests_burst": 1}))
        gateway = self.gateway(settings)
        self.assert_error(gateway.post(streams.message(maxTokens=0), streams.fields()), 400, -32602)
        self.assert_error(gateway.post(streams.message(), {"Accept": streams.BOTH}, key="nobody-0123456789ab"), 401, 401)
        self.assert_error(gateway.post(streams.message(token="t" * 1100), streams.fields()), 400, -32602,
                          "field_invalid")
        self.assert_error(gateway.post(streams.message(hint="broken"), streams.fields()), 422, -32013)
        for status in (200, 429):
            answer = gateway.post(streams.message(), {"Accept": streams.BOTH}, key="small-key-0123456789")
            self.assertEqual(answer.status, status, answer)

    def test_a_long_answer_is_streamed_to_us_though_the_caller_gets_json(self):
        sim = self.sim()
        long = harness.model("long", "anthropic", profile={"max_output": 30000})
        settings = harness.config(sim, models=[long, harness.model("gpt-test", "openai", profile={"max_output": 30000})])
        settings["plans"]["standard"]["limits"]["max_tokens"] = 30000
        settings["plans"]["standard"]["models"] = {"allow": ["*"]}
        gateway = self.gateway(settings)
        for model in ("long", "gpt-test"):
            for most, streamed in ((21333, None), (21334, True)):
                result = self.assert_result(gateway.sample("hi", maxTokens=most,
                                                           modelPreferences={"hints": [{"name": model}]}), "endTurn")
                self.assertIn("made up", harness.text_of(result))
                self.assertIsNotNone(result["_meta"].get("sluice/usage"))
                self.assertIs(json.loads(sim.last_body()).get("stream"), streamed)

    def test_a_host_that_does_not_know_streams_is_understood(self):
        body = json.dumps({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
                           "content": [{"type": "text", "text": "whole"}],
                           "usage": {"input_tokens": 1, "output_tokens": 1}}).encode()

        def serve(peer, _):
            while peer.request() is not None:
                peer.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
                          + body)
        _, gateway = self.scripted(serve)
        (event,) = streams.events_of(gateway.post(streams.message(), streams.fields()).body)
        self.assertEqual(harness.text_of(event["result"]), "whole")


class Telling(streams.Case):
    def paced(self, words, **changes):
        sim = self.sim()
        return self.gateway(harness.config(sim, models=[
            harness.model("anthropic", "anthropic", name="sim-" + words),
            harness.model("openai", "openai", name="sim-" + words)], plans={"standard": {
                "models": {"allow": ["*"]}, "limits": {"max_tokens": 4096, **changes}}}))

    def test_progress_rises_with_the_output_four_times_a_second_at_most(self):
        gateway = self.paced("pace-10ms-size-2000-chunk-16")
        for model in ("anthropic", "openai"):
            for token in (0, "", "é\n", 9007199254740993):
                with streams.Call(gateway, hint=model, token=token) as call:
                    self.assertEqual((call.status, call.headers["content-type"]), (200, STREAM))
                    told, answer = call.split()
                numbers = [event["params"]["progress"] for _, event in told]
                self.assertTrue(all(a < b for a, b in zip(numbers, numbers[1:])), numbers)
                self.assertTrue(all(event["params"]["progressToken"] == token for _, event in told), told)
                elapsed = told[-1][0] - told[0][0]
                self.assertGreaterEqual(len(told), 4)
                self.assertLessEqual(len(told) - 1, elapsed / 0.25 + 1)  # the first may have come late
                self.assertLessEqual(numbers[-1], 2000)
                self.assertEqual(len(harness.text_of(answer["result"])), 2000)

    def test_many_who_are_told_together_are_told_no_more_often_and_some_leave(self):
        gateway = self.paced("pace-10ms-size-2000-chunk-16", concurrent=64, requests_per_minute=60000)
        told, leavers = {}, 8  # from 33 on: net_together

        def ask(number):
            with streams.Call(gateway, hint="anthropic", token=number, id=number) as call:
                if number < leavers:
                    next(iter(call))
                    return
                told[number] = call.split()
        callers = [threading.Thread(target=ask, args=(number,)) for number in range(56)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        self.assertEqual(sorted(told), list(range(leavers, len(callers))))
        for number, (events, answer) in told.items():
            numbers = [event["params"]["progress"] for _, event in events]
            self.assertTrue(all(a < b for a, b in zip(numbers, numbers[1:])), numbers)
            self.assertEqual({event["params"]["progressToken"] for _, event in events}, {number})
            self.assertGreaterEqual(len(events), 4)
            self.assertLessEqual(len(events) - 1, (events[-1][0] - events[0][0]) / 0.25 + 1)
            self.assertEqual((answer["id"], len(harness.text_of(answer["result"]))), (number, 2000))
        harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 0, "the end of all")

    def test_the_token_is_echoed_byte_for_byte(self):
        gateway = self.paced("pace-20ms-size-500-chunk-16")
        for token in (b'"\\u0041\\/"', b"123456789012345678"):
            body = streams.message(hint="anthropic", token="TOKEN").replace(b'"TOKEN"', token)
            answer = gateway.post(body, streams.fields())
            self.assertIn(b'"progressToken":' + token + b',"progress":', answer.body)

    def test_over_http2_the_notifications_come_one_by_one(self):
        gateway = self.paced("pace-20ms-size-800-chunk-16")
        with h2_client.Client(gateway.url) as client:
            for stream in (1, 3):
                client.request(stream, "/v1/sampling", streams.fields(), streams.message(hint="openai", id=stream))
            for stream in (1, 3):
                *told, answer = streams.events_of(client.answer(stream))
                self.assertEqual(answer["id"], stream)
                self.assertGreaterEqual(len(told), 2)
                frames = [f for f in client.frames if f[0] == h2_client.DATA and f[2] == stream and f[3]]
                self.assertGreaterEqual(len(frames), len(told) + 1)

    def test_a_provider_that_is_silent_is_told_about_five_seconds_after_admission(self):
        gateway = self.paced("latency-9s")
        with streams.Call(gateway, hint="anthropic") as call:
            self.assertGreater(call.began - call.started, 4.9)
            self.assertLess(call.began - call.started, 8)
            (told,), answer = call.split()
        self.assertEqual(told[1]["params"]["progress"], 0)
        self.assertIn("result", answer)

    def test_deadlines_are_those_of_who_is_told(self):
        gateway = self.paced("latency-400ms-pace-10ms-size-800-chunk-16", deadline="300ms", deadline_progress="60s")
        with streams.Call(gateway, hint="anthropic") as call:
            self.assertIn("result", call.split()[1])
        self.assert_error(gateway.sample("hi", modelPreferences={"hints": [{"name": "anthropic"}]}), 504, -32001)
        with streams.Call(gateway, hint="anthropic", headers={"Sluice-Timeout": "600"}) as call:
            self.assertEqual(call.status, 200)
            _, answer = call.split()
        self.assertEqual((answer["error"]["code"], answer["id"]), (-32001, 1))

    def test_the_time_to_the_first_token_is_measured(self):
        gateway = self.paced("pace-200ms-size-64-chunk-16")
        with streams.Call(gateway, hint="anthropic") as call:
            call.split()
        name = "sluice_ttft_seconds_sum"
        self.assertGreater(gateway.metrics().sum(name, model="anthropic"), 0.15)


class Many(streams.Case):
    COUNT = 48  # from 33 on they are read together (net_coalesce)

    def test_each_caller_gets_his_own_answer_whole_and_the_connections_are_used_again(self):
        begun, all_begun = threading.Semaphore(0), threading.Event()

        def serve(peer, _):
            while (request := peer.request()) is not None:
                asked = json.loads(request[1])["messages"][0]["content"][0]["text"]
                peer.send(streams.HEAD + streams.chunk(streams.begin()))
                begun.release()
                all_begun.wait(harness.PATIENCE_S)
                for n in range(20):
                    peer.send(streams.chunk(streams.text(f"{asked}.{n} ")))
                peer.send(streams.chunk(streams.end()) + streams.END)
        server, gateway = self.scripted(serve)

        def ask(text, answers):
            with streams.Call(gateway, text=text) as call:
                answers[text] = harness.text_of(call.split()[1]["result"])
        for turn in ("first", "second"):
            answers = {}
            all_begun.clear()
            callers = [threading.Thread(target=ask, args=(f"{turn} {n}", answers)) for n in range(self.COUNT)]
            for caller in callers:
                caller.start()
            for _ in callers:
                self.assertTrue(begun.acquire(timeout=harness.PATIENCE_S))
            all_begun.set()
            for caller in callers:
                caller.join()
            self.assertEqual(answers, {f"{turn} {k}": "".join(f"{turn} {k}.{n} " for n in range(20))
                                       for k in range(self.COUNT)})
        self.assertEqual(server.accepted, self.COUNT)


class Failing(streams.Case):
    """Once a stream has begun, what goes wrong is its last event."""

    def broken(self, rest, timeouts=None, then=None):
        """What comes of a stream that begins well and goes on with `rest`."""
        told = threading.Event()

        def serve(peer, _):
            while peer.request() is not None:
                peer.send(streams.HEAD + streams.chunk(streams.begin() + streams.text("some words")))
                told.wait(harness.PATIENCE_S)
                peer.send(rest)
                if then is not None:
                    then(peer)
                    return
        server, gateway = self.scripted(serve)
        if timeouts is not None:
            settings = harness.config(server, retries={"attempts": 1})
            settings["providers"]["anthropic"]["timeouts"] = timeouts
            gateway = self.gateway(settings)
        with streams.Call(gateway) as call:
            self.assertEqual(call.status, 200)
            events = iter(call)
            while next(events)[1]["params"]["progress"] < 10:
                pass
            told.set()
            *_, (_, last) = events
        line = gateway.log(call.headers["sluice-request-id"])
        self.assertEqual((last["id"], line["status"]), (1, 200))
        self.assertNotIn("some words", json.dumps(last))
        return last["error"], line

    def test_an_error_in_the_stream(self):
        error, line = self.broken(streams.chunk(streams.anthropic("error", error={
            "type": "overloaded_error", "message": "secret words"})))
        self.assertEqual((error["code"], error["data"]["retryable"]), (-32011, True))
        self.assertNotIn("secret", json.dumps(error))
        self.assertEqual(line["error"], "provider_unavailable")

    def test_an_end_before_its_end(self):
        self.assertEqual(self.broken(streams.END)[0]["code"], -32015)

    def test_a_connection_that_breaks(self):
        error, _ = self.broken(b"5\r\nab", then=lambda peer: peer.sock.close())
        self.assertEqual((error["code"], error["data"]["retryable"]), (-32015, True))

    def test_a_stream_that_is_half_dead(self):
        error, line = self.broken(b"", {"idle": "300ms"}, then=lambda peer: peer.wait_end())
        self.assertEqual((error["code"], error["data"]["retryable"]), (-32011, True))
        self.assertIn("stalled", line["detail"])

    def test_events_that_are_not_json_or_too_large(self):
        self.assertEqual(self.broken(streams.chunk(b"data: {]\n\n"))[0]["code"], -32015)
        self.assertEqual(self.broken(streams.chunk(b"data: " + b"x" * 70000 + b"\n\n"))[0]["code"], -32015)

    def test_pings_are_life(self):
        pause = threading.Event()

        def serve(peer, _):
            peer.request()
            peer.send(streams.HEAD + streams.chunk(streams.begin()))
            for _ in range(8):
                pause.wait(0.1)  # the provider's pace
                peer.send(streams.chunk(streams.anthropic("ping") if _ % 2 else b": still here\n\n"))
            peer.send(streams.chunk(streams.text("done") + streams.end()) + streams.END)
            peer.wait_end()
        server = self.server(serve)
        server.url = f"http://127.0.0.1:{server.port}"
        settings = harness.config(server)
        settings["providers"]["anthropic"]["timeouts"] = {"idle": "400ms", "first_byte": "500ms", "total": "600ms"}
        with streams.Call(self.gateway(settings)) as call:
            self.assertEqual(harness.text_of(call.split()[1]["result"]), "done")

    def test_the_connection_is_used_again_after_a_whole_stream_and_not_after_a_bad_one(self):
        good = streams.HEAD + streams.chunk(streams.begin() + streams.text("a") + streams.end()) + streams.END

        def serve(peer, n):
            while peer.request() is not None:
                peer.send(good if n == 0 else good.replace(b"message_start", b"error"))
        server, gateway = self.scripted(serve)
        for _ in range(5):
            self.assertEqual(len(streams.events_of(gateway.post(streams.message(), streams.fields()).body)), 1)
        self.assertEqual(server.accepted, 1)

    def test_who_waits_at_the_end_of_a_drain_is_told_so_in_his_stream(self):
        def serve(peer, _):
            peer.request()
            peer.send(streams.HEAD + streams.chunk(streams.begin() + streams.text("some words")))
            peer.wait_end()
        _, gateway = self.scripted(serve)
        with streams.Call(gateway) as call:
            events = iter(call)
            next(events)
            os.kill(gateway.pid, 15)
            *_, (_, last) = events
        self.assertEqual(last["error"]["data"]["reason"], "draining")

    def test_a_reload_does_not_touch_a_stream(self):
        go = threading.Event()

        def serve(peer, _):
            peer.request()
            peer.send(streams.HEAD + streams.chunk(streams.begin() + streams.text("before ")))
            go.wait(harness.PATIENCE_S)
            peer.send(streams.chunk(streams.text("and after") + streams.end()) + streams.END)
            peer.wait_end()
        _, gateway = self.scripted(serve)
        with streams.Call(gateway) as call:
            events = iter(call)
            next(events)
            gateway.settings["providers"]["anthropic"]["endpoints"] = [{"url": "http://127.0.0.1:1"}]
            gateway.write_config(gateway.settings)
            self.assertEqual(gateway.reload().status, 200)
            go.set()
            *_, (_, last) = events
        self.assertEqual(harness.text_of(last["result"]), "before and after")


if __name__ == "__main__":
    harness.main()
