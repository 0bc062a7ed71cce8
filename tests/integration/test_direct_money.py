"""What calls of the providers' own APIs are charged: what the provider has counted, to the nano-USD; where its count never comes, what
was seen of the answer, and never more than was reserved; nothing for what it has refused.

ctest: timeout=120
"""
import json
import os
import signal
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import billing
import harness

MODELS = {"messages": "claude-test", "chat": "gpt-test"}
APIS = {"messages": billing.Messages, "chat": billing.Chat}
PRICE = billing.Price(3_000_000, 15_000_000, 300_000, 3_750_000, 6_000_000)
CACHE = {"read": 40, "write": 30}
KEYS = ["sk-provider-one", "sk-provider-two"]

# What a log line says of who asked, by which door, when, and how long it took.
OWN = {"front", "method", "time", "request_id", "revision", "route", "traceparent"}

# Of connections, and of the questions of this test.
OWN_METRICS = ("sluice_http", "sluice_log", "sluice_tls")


def facts(line):
    return {key: value for key, value in line.items() if key not in OWN and not key.endswith("_ms")}


class Money(harness.Case):
    orders = 0

    @classmethod
    def setUpClass(cls):
        cls.provider = billing.Threaded()
        cls.addClassCleanup(cls.provider.stop)
        cls.usual = harness.Gateway(cls.settings())
        cls.addClassCleanup(cls.usual.remove)
        cls.addClassCleanup(cls.usual.stop)

    @classmethod
    def settings(cls, limits=None, **changes):
        settings = harness.config(cls.provider, **{"retries": {"attempts": 2}, "drain": "100ms", **changes})
        for provider in settings["providers"].values():
            provider["keys"] = KEYS  # a second attempt goes to the other one at once
            provider["breaker"] = {"failures": 1000, "ratio": 0}
        settings["plans"]["standard"]["limits"].update(limits or {})
        settings["plans"]["standard"]["direct"] = {"n": 3}
        settings["plans"]["standard"]["models"]["default"] = settings["models"][0]["id"]
        return settings

    def start(self, limits=None, **changes):
        return self.gateway(self.settings(limits, **changes))

    def body(self, api, order, **members):
        Money.orders += 1
        order = {"id": self.orders, "in": 100, "out": 50, **order}
        return {"model": MODELS[api], "max_tokens": 200, **members,
                "messages": [{"role": "user", "content": json.dumps(order)}]}

    def ask(self, gateway, api, order, **members):
        return gateway.post(self.body(api, order, **members), path=APIS[api].path)

    def leave(self, gateway, api, order, deltas=0, **members):
        """Asks, and leaves when so many deltas have come and the provider says nothing more; the request's id."""
        data = json.dumps(self.body(api, order, **members)).encode()
        host, port = gateway.url.split("//")[1].split(":")
        trace = "%032x" % (0xabc000 + self.orders)
        with socket.create_connection((host, int(port)), harness.PATIENCE_S) as peer:
            peer.sendall(("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"
                          "traceparent: 00-%s-00000000000000ab-01\r\nContent-Length: %d\r\n\r\n"
                          % (APIS[api].path, harness.KEY, trace, len(data))).encode() + data)
            got = b""
            while got.count(billing.DELTA.encode()) < deltas:
                got += peer.recv(65536)
            harness.wait_for(lambda: self.orders in self.provider.hanging, "the provider hangs")
        return trace

    def spent(self, gateway):
        """In nano-USD, as metrics and limits have it."""
        counted = round(gateway.metrics().sum("sluice_usd_total") * 1e9)
        limits = json.loads(gateway.get("/tenants/acme").body)["scopes"][0]["limits"]
        self.assertEqual(round(limits["usd_per_day"]["spent"] * 1e9), counted)
        self.assertEqual(round(limits["usd_per_month"]["spent"] * 1e9), counted)
        return counted

    def usd(self, line):
        return round(line.get("usd", 0) * 1e9)

    def bill(self):
        """What the provider has billed for the last order."""
        return sum(billing.cost(attempt.usage, PRICE) for attempt in self.provider.attempts[self.orders])

    def assert_charged(self, gateway, nano, before, name):
        line = gateway.log(name)
        harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 0, "the end of the request")
        self.assertEqual(self.usd(line), nano, line)
        self.assertEqual(self.spent(gateway) - before, nano)
        return line

    def test_an_answer_costs_what_the_provider_has_counted(self):
        gateway = self.usual
        rows = [
            ("JSON", {}, {}),
            ("a stream whose caller has not asked for its usage", {}, {"stream": True}),
            ("cached input", CACHE, {}),
            ("cached input of a stream", CACHE, {"stream": True}),
            ("more input than was estimated", {"in": 1500}, {}),
            ("no output", {"out": 0}, {}),
            ("a second attempt", {"tries": ["529", "ok"]}, {}),
            ("a second attempt at a stream", {"tries": ["500", "ok"]}, {"stream": True}),
            ("a member that is null", {}, {"stream": None}),
        ]
        extra = {
            "messages": [("an hour's cache", {**CACHE, "hour": 20}, {}), ("an hour's cache of a stream", {**CACHE, "hour": 20}, {"stream": True})],
            "chat": [("usage that was asked for", {}, {"stream": True, "stream_options": {"include_usage": True}}),
                     ("several answers", {"out": 500}, {"n": 3}), ("several answers as a stream", {"out": 500}, {"n": 3, "stream": True}),
                     ("usage that was refused", {}, {"stream": True, "stream_options": {"include_usage": False}})],
        }
        for api in APIS:
            for name, order, members in rows + extra[api]:
                with self.subTest(f"{api}, {name}"):
                    before = self.spent(gateway)
                    answer = self.ask(gateway, api, order, **members)
                    self.assertEqual(answer.status, 200, answer)
                    line = self.assert_charged(gateway, self.bill(), before, answer.headers["request-id"])
                    self.assertGreater(self.usd(line), 0)
                    self.assertNotIn("estimated_tokens", line)
                    self.assertEqual(line["attempts"], len(order.get("tries", [0])))
                    self.assertEqual((line["input_tokens"], line["output_tokens"]), (order.get("in", 100), order.get("out", 50)))
                    if members.get("stream"):
                        self.assertNotIn("sluice-usd", answer.headers)
                    else:
                        self.assertEqual(round(float(answer.headers["sluice-usd"]) * 1e9), self.bill())

    def test_what_the_provider_refuses_costs_nothing(self):
        gateway = self.usual
        for api in APIS:
            for stream in (False, True):
                for status in ("400", "filter", "529"):
                    with self.subTest(f"{api} {status} {stream}"):
                        before = self.spent(gateway)
                        answer = self.ask(gateway, api, {"tries": [status]}, stream=stream)
                        self.assertGreaterEqual(answer.status, 400)
                        if status == "filter":  # the provider's words, and its status
                            self.assertEqual((answer.status, answer.json()["error"]["code"]), (400, "content_filter"))
                        self.assertNotIn("sluice-usd", answer.headers)
                        self.assert_charged(gateway, 0, before, answer.headers["request-id"])

    def seen(self, api, deltas):
        """What was seen of a stream that has ended so: the provider's count of the input, or the request's bytes; the text's bytes."""
        attempt = self.provider.attempts[self.orders][0]
        counted = 50 if api == "messages" else -(-attempt.bytes // 4)
        return billing.cost(billing.NOTHING._replace(input=counted, output=4 * deltas), PRICE)

    def bound(self):
        return sum(billing.bound(attempt, PRICE._replace(hour=0)) for attempt in self.provider.attempts[self.orders])

    def test_a_stream_that_is_cut_costs_what_was_seen_of_it(self):
        gateway = self.usual
        for api in APIS:
            for deltas in (1, 3):
                with self.subTest(f"{api} {deltas}"):
                    before = self.spent(gateway)
                    answer = self.ask(gateway, api, {"in": 50, "tries": ["cut"], "after": deltas}, stream=True)
                    self.assertEqual(answer.status, 200)
                    line = self.assert_charged(gateway, self.seen(api, deltas), before, answer.headers["request-id"])
                    self.assertGreaterEqual(self.usd(line), self.bill())
                    self.assertGreater(line["estimated_tokens"], 0)
                    self.assertEqual(line["attempts"], 1)

    def test_several_answers_are_whole_when_all_of_them_have_ended(self):
        gateway = self.usual
        for tries, whole in ((["ok"], True), (["half"], False)):
            before = self.spent(gateway)
            answer = self.ask(gateway, "chat", {"tries": tries, "after": 4}, stream=True, n=2)
            self.assertEqual(answer.status, 200)
            last = answer.body.strip().split(b"\n\n")[-1]
            self.assertEqual(last == b"data: [DONE]", whole, last)
            self.assertEqual(b'"error":' in last, not whole)
            line = gateway.log(answer.headers["request-id"])
            self.assert_charged(gateway, self.bill() if whole else self.usd(line), before, answer.headers["request-id"])
            self.assertGreaterEqual(self.usd(line), self.bill() if whole else 4 * 3 * PRICE.output // 1000)

    def test_a_stream_that_is_left_costs_what_was_seen_of_it(self):
        gateway = self.usual
        for api in APIS:
            for deltas in (1, 3):
                with self.subTest(f"{api} {deltas}"):
                    before = self.spent(gateway)
                    name = self.leave(gateway, api, {"in": 50, "tries": ["hang"], "after": deltas}, deltas, stream=True)
                    line = self.assert_charged(gateway, self.seen(api, deltas), before, name)
                    self.assertEqual(line["status"], 499)

    def test_what_was_seen_is_never_more_than_was_reserved(self):
        gateway = self.usual
        for api in APIS:
            before = self.spent(gateway)
            answer = self.ask(gateway, api, {"tries": ["cut"], "after": 40}, stream=True, max_tokens=10)
            line = gateway.log(answer.headers["request-id"])
            most = billing.cost(billing.NOTHING._replace(input=100 if api == "messages" else 200, output=10), PRICE)
            self.assertLessEqual(self.usd(line), most)
            self.assertLessEqual(self.usd(line), self.bound())
            self.assertEqual(self.spent(gateway) - before, self.usd(line))

    def test_an_answer_that_never_came_costs_what_was_reserved(self):
        gateway = self.usual
        for api in APIS:
            before = self.spent(gateway)
            name = self.leave(gateway, api, {"tries": ["hang"]})
            line = self.assert_charged(gateway, self.bound(), before, name)
            self.assertEqual(line["status"], 499)

    def test_an_answer_without_usage_costs_what_was_seen_of_it(self):
        gateway = self.usual
        for api in APIS:
            for stream in (False, True):
                with self.subTest(f"{api} {stream}"):
                    before = self.spent(gateway)
                    answer = self.ask(gateway, api, {"tries": ["void"]}, stream=stream)
                    self.assertEqual(answer.status, 200)
                    line = gateway.log(answer.headers["request-id"])
                    self.assertGreater(line["estimated_tokens"], 0)
                    self.assertGreater(self.usd(line), 0)
                    self.assertLessEqual(self.usd(line), self.bound())
                    self.assert_charged(gateway, self.usd(line), before, answer.headers["request-id"])

    def test_a_broken_answer_is_paid_for_as_often_as_it_was_made(self):
        gateway = self.usual
        for api in APIS:
            before = self.spent(gateway)
            answer = self.ask(gateway, api, {"tries": ["bad", "ok"]})
            line = gateway.log(answer.headers["request-id"])
            attempts = self.provider.attempts[self.orders]
            self.assertEqual(line["attempts"], len(attempts))
            self.assertLessEqual(self.usd(line), self.bound())
            self.assertGreater(self.usd(line), sum(billing.cost(attempt.usage, PRICE) for attempt in attempts[1:]))
            self.assert_charged(gateway, self.usd(line), before, answer.headers["request-id"])

    def test_images_count_by_their_number(self):
        """A picture of 300 KB is no 100,000 tokens."""
        models = [harness.model(model, name, profile={"image": True}) for model, name in zip(MODELS.values(), ("anthropic", "openai"))]
        gateway = self.start({"tokens_per_minute": 20000, "tokens_burst": 20000}, models=models)
        data = "A" * 300_000
        for api, part in (("messages", {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}),
                          ("chat", {"type": "image_url", "image_url": {"url": "data:image/png;base64," + data}})):
            body = self.body(api, {})
            text = body["messages"][0]["content"]
            body["messages"][0]["content"] = [{"type": "text", "text": text}, part]
            answer = gateway.post(body, path=APIS[api].path)
            self.assertEqual(answer.status, 200, answer)

    def test_a_document_is_no_more_than_its_models_window(self):
        """A PDF of 4 MB is no million tokens."""
        gateway = self.start({"tokens_per_minute": 210000, "tokens_burst": 210000})
        data = "A" * 4_000_000
        for api, part in (("messages", {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data}}),
                          ("chat", {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64," + data}})):
            body = self.body(api, {})
            text = body["messages"][0]["content"]
            body["messages"][0]["content"] = [{"type": "text", "text": text}, part]
            before = self.spent(gateway)
            answer = gateway.post(body, path=APIS[api].path)
            self.assertEqual(answer.status, 200, answer)
            self.assert_charged(gateway, self.bill(), before, answer.headers["request-id"])

    def test_a_cache_for_an_hour_is_reserved_at_its_price(self):
        def mark(ttl):
            return [{"type": "text", "text": "x" * 1000, "cache_control": {"type": "ephemeral", "ttl": ttl}}]
        for ttl, status in (("5m", 200), ("1h", 402)):
            # between the bounds: some 3,200 tokens of input at 3.75 and at 6 USD a million, 200 of output
            gateway = self.start({"usd_per_day": 0.019})
            answer = self.ask(gateway, "messages", {}, system=mark(ttl))
            self.assertEqual(answer.status, status, answer)
            gateway.stop()

    def test_tool_calls_leave_nothing_behind(self):
        """The rounds of a caller that keeps its own history are not counted."""
        sim = self.sim("--default", "calls-2")
        gateway = self.gateway(harness.config(sim))
        tools = {"messages": [{"name": "look", "input_schema": {"type": "object"}}],
                 "chat": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]}
        for api in APIS:
            answer = self.ask(gateway, api, {}, tools=tools[api])
            self.assertEqual(answer.status, 200, answer)
            self.assertIn(b"look", answer.body)
        self.assertEqual(gateway.metrics().sum("sluice_state_records"), 0)

    def counters(self, gateway):
        harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 0, "the end of the request")
        return {(name, *sorted(labels.items())): value for name, labels, value in gateway.metrics().samples
                if name.endswith(("_total", "_count")) and not name.startswith(OWN_METRICS)}

    def counted(self, gateway, call):
        """The answer, and what has changed in the metrics."""
        before = self.counters(gateway)
        answer = call()
        return answer, {key: round(value - before.get(key, 0), 9) for key, value in self.counters(gateway).items() if value != before.get(key, 0)}

    def test_the_same_completion_costs_and_is_logged_the_same_by_every_door(self):
        for api in APIS:
            gateway = self.start(models=[harness.model(MODELS[api], "anthropic" if api == "messages" else "openai")])
            for order in ({}, {"tries": ["529", "ok"]}, {"tries": ["400"]}, {"tries": ["void"]}):
                with self.subTest(f"{api} {order}"):
                    direct, metrics = self.counted(gateway, lambda: self.ask(gateway, api, order, max_tokens=100))
                    text = json.dumps({"id": self.orders + 1, "in": 100, "out": 50, **order})
                    Money.orders += 1
                    sampling, others = self.counted(gateway, lambda: gateway.sample(text, modelPreferences={"hints": [{"name": MODELS[api]}]}))
                    lines = [gateway.log(name) for name in (direct.headers["request-id"], sampling.headers["sluice-request-id"])]
                    self.assertEqual([line["front"] for line in lines], [api, "sampling"])
                    one, two = map(facts, lines)
                    if "estimated_tokens" in one:  # by the bytes of the two bodies
                        for line in (one, two):
                            self.assertGreater(line.pop("estimated_tokens") * line.pop("usd"), 0)
                        del metrics["sluice_usd_total", ("tenant", "acme")], others["sluice_usd_total", ("tenant", "acme")]
                    if "status" in one and one["status"] != 200:  # each protocol has its own
                        del one["status"], two["status"]
                    self.assertEqual(one, two)
                    self.assertEqual(metrics, others)
                    self.assertTrue(metrics)

    def test_a_price_that_is_reloaded_is_the_next_ones(self):
        gateway = self.start()
        for model in gateway.settings["models"]:
            model["price"].update({"input": 7.0, "output": 11.0})
        gateway.write_config(gateway.settings)
        self.assertEqual(gateway.reload().status, 200)
        for api in APIS:
            answer = self.ask(gateway, api, {})
            self.assertEqual(round(float(answer.headers["sluice-usd"]) * 1e9), (100 * 7_000_000 + 50 * 11_000_000) // 1000)

    def test_what_a_drain_cuts_short_is_told_so_and_paid_for(self):
        gateway = self.start(drain="1s")
        calls = []
        for api in APIS:
            for stream in (False, True):
                body = self.body(api, {"tries": ["hang"], "after": 1}, stream=stream)
                calls.append((api, stream, self.orders, *self.background(lambda body=body, api=api: gateway.post(body, path=APIS[api].path))))
        harness.wait_for(lambda: {order for _, _, order, _, _ in calls} <= self.provider.hanging, "all of them at the provider")
        gateway.send(signal.SIGTERM)
        for api, stream, order, answers, thread in calls:
            thread.join(harness.PATIENCE_S)
            answer = answers[0]
            line = gateway.log(answer.headers["request-id"])
            self.assertEqual(line["error"], "draining", line)
            most = billing.bound(self.provider.attempts[order][0], PRICE._replace(hour=0))
            if stream:
                self.assertEqual(answer.status, 200)
                self.assertIn(b'"error":', answer.body.split(b"data: ")[-1])
                self.assertLess(0, self.usd(line))
                self.assertLess(self.usd(line), most)
            else:
                self.assertEqual(answer.status, 529 if api == "messages" else 503, answer)
                self.assertEqual(self.usd(line), most)


if __name__ == "__main__":
    harness.main()
