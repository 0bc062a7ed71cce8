"""Attempts that are interrupted: callers who leave, stores that go, processes that end, and all of it at once. What must hold is
the same each time: every caller has an answer that can be read, and nothing stays behind. ctest: timeout=240"""

import json
import os
import random
import signal
import socket
import sys
import threading
import time
import unittest
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import h2_client  # noqa: E402
import harness  # noqa: E402
import redis_server  # noqa: E402
import streams  # noqa: E402

SANITIZED = bool(os.environ.get("SLUICE_SANITIZE"))


def settings(*endpoints, **changes):
    """One model at one provider with those endpoints, the first of which has every turn at first."""
    result = harness.config(endpoints[0], **changes)
    result["providers"] = {"anthropic": harness.provider(endpoints[0], "anthropic", endpoints=[
        {"url": sim.url, "weight": 1 if n else 1000} for n, sim in enumerate(endpoints)])}
    result["models"] = result["models"][:1]
    return result


class Caller:
    """Asks and may leave. Of HTTP/2 he resets his stream and stays. `told`: he wants to hear of progress."""

    def __init__(self, gateway, http2, told=False):
        self.http2 = http2
        body, fields = streams.message(token=7 if told else None), streams.fields()
        if http2:
            self.client = h2_client.Client(gateway.url)
            self.client.request(1, "/v1/sampling", fields, body)
            return
        place = urllib.parse.urlsplit(gateway.url)
        self.socket = socket.create_connection((place.hostname, place.port), harness.PATIENCE_S)
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.socket.sendall(f"POST /v1/sampling HTTP/1.1\r\nHost: x\r\n{head}Content-Length: {len(body)}\r\n\r\n"
                            .encode() + body)

    def leave(self):
        if self.http2:
            self.client.socket.sendall(h2_client.frame(h2_client.RST_STREAM, 0, 1, b"\0\0\0\x08"))
        else:
            self.socket.close()

    def close(self):
        (self.client if self.http2 else self).socket.close()


class Hardship(harness.Case):
    def wait_quiet(self, gateway):
        harness.wait_for(lambda: not gateway.metrics().sum("sluice_in_flight"), "nothing in flight")

    def lines(self, gateway):
        """Of the log, once every request that was counted has its own."""
        def whole():
            found = [line for line in list(gateway.stdout) if line.startswith("{")]
            return len(found) == gateway.metrics().sum("sluice_requests_total") and found
        return [json.loads(line) for line in harness.wait_for(whole, "every line of the log")]

    def asking(self, gateway, **options):
        """A request in a thread: a function that returns its answer."""
        answers = []
        thread = threading.Thread(target=lambda: answers.append(gateway.sample(**options)))
        thread.start()

        def answer():
            thread.join()
            return answers[0]
        return answer


class Leaving(Hardship):
    """A tenant with one place: who leaves gives it back, wherever his request was."""

    def walk_away(self, *moods, when):
        """One endpoint of each mood; callers who leave as soon as `when` is true of (gateway, endpoints). What is logged of
        them, after somebody else was served."""
        sims = [self.sim() for _ in moods]
        config = settings(*sims)
        config["plans"]["standard"]["limits"]["concurrent"] = 1
        gateway = self.gateway(config)
        for http2, told in ((False, False), (True, False), (False, True), (True, True)):
            for sim, mood in zip(sims, moods):
                sim.reset()
                sim.default(mood)
            caller = Caller(gateway, http2, told)
            harness.wait_for(lambda: when(gateway, sims), f"the moment; {[sim.stats() for sim in sims]}")
            caller.leave()
            self.wait_quiet(gateway)
            for sim in sims:
                sim.wait_stats(lambda stats: stats["in_flight"] == 0, "the provider's notice")
            caller.close()
        lines = self.lines(gateway)
        self.assertEqual([line["status"] for line in lines], [499] * 4, lines)
        for sim in sims:
            sim.default("")
        self.assert_result(gateway.sample())
        return lines

    def test_at_the_first_attempt(self):
        lines = self.walk_away("hang", when=lambda _, sims: sims[0].stats()["in_flight"] == 1)
        self.assertEqual([line["attempts"] for line in lines], [1] * 4)

    def test_in_the_middle_of_an_answer(self):
        self.walk_away("stall-size-100000", when=lambda _, sims: sims[0].stats()["behaviours"].get("stall") == 1)

    def test_in_the_middle_of_a_stream(self):
        self.walk_away("stall-pace-20ms-size-100000", when=lambda _, sims: sims[0].stats()["in_flight"] == 1)

    def test_between_two_attempts(self):
        before = [0]

        def failed(gateway, _):
            """One attempt more than when the last caller left."""
            total = gateway.metrics().sum("sluice_provider_attempts_total")
            more, before[0] = total > before[0], total
            return more
        lines = self.walk_away("error-500-retryms-10000", when=failed)
        self.assertEqual([line["attempts"] for line in lines], [1] * 4)

    def test_at_the_second_attempt(self):
        lines = self.walk_away("error-500", "hang", when=lambda _, sims: sims[1].stats()["in_flight"] == 1)
        self.assertIn(2, [line["attempts"] for line in lines])

    def test_while_another_has_the_only_connection(self):
        sim = self.sim()
        sim.default("hang")
        config = settings(sim)
        config["providers"]["anthropic"]["endpoints"][0].update(concurrent=1, queue=4)
        gateway = self.gateway(config)
        first = Caller(gateway, False)
        self.addCleanup(first.close)
        sim.wait_stats(lambda stats: stats["in_flight"] == 1, "the first one")
        for http2 in (False, True):
            caller = Caller(gateway, http2)
            harness.wait_for(lambda: gateway.metrics().sum("sluice_pool_connections", state="queued") == 1, "the queue")
            caller.leave()
            harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 1, "his end")
            harness.wait_for(lambda: gateway.metrics().sum("sluice_pool_connections", state="queued") == 0, "no queue")
            caller.close()
        self.assertEqual(sim.stats()["requests"], 1)
        first.leave()
        self.wait_quiet(gateway)
        sim.default("")
        self.assert_result(gateway.sample())

    def test_a_reload_that_permits_more_connections_lets_those_go_on_who_wait_for_one(self):
        sim = self.sim()
        sim.default("hang")
        config = settings(sim)
        config["providers"]["anthropic"]["endpoints"][0].update(concurrent=1, queue=4)
        gateway = self.gateway(config)
        for number in (1, 2):
            caller = Caller(gateway, False)
            self.addCleanup(caller.close)
            harness.wait_for(lambda n=number: gateway.metrics().sum("sluice_in_flight") == n, "him")
        harness.wait_for(lambda: gateway.metrics().sum("sluice_pool_connections", state="queued") == 1, "the queue")
        gateway.settings["providers"]["anthropic"]["endpoints"][0]["concurrent"] = 2
        gateway.write_config(gateway.settings)
        self.assertEqual(gateway.reload().status, 200)
        sim.wait_stats(lambda stats: stats["in_flight"] == 2, "both")


@unittest.skipUnless(redis_server.available(), "redis-server is not installed")
class Store(Hardship):
    """Redis goes between two attempts."""

    def interrupted(self, failure):
        sim, redis = self.sim("--default", "error-500-first-1-retryms-2000"), redis_server.Redis(self)
        config = settings(sim, store={"kind": "redis", "url": redis.url, "deadline": "1s"})
        config["plans"]["standard"]["limits"]["concurrent"] = 1
        config["plans"]["standard"]["on_store_failure"] = failure
        gateway = self.gateway(config)
        harness.wait_for(lambda: gateway.metrics().sum("sluice_limiter_mode", mode="shared"), "Redis in use")
        answer = self.asking(gateway)
        harness.wait_for(lambda: gateway.metrics().sum("sluice_provider_attempts_total") == 1, "the first attempt")
        redis.kill()
        answer = answer()
        self.wait_quiet(gateway)
        redis.start()
        harness.wait_for(lambda: gateway.metrics().sum("sluice_limiter_mode", mode="shared"), "Redis in use again")
        self.assert_result(gateway.sample())  # its place was given back
        return sim, answer

    def test_the_next_attempt_is_made_where_local_counts_will_do(self):
        _, answer = self.interrupted({"rates": "local", "budget": {"local": 1}})
        self.assertEqual(self.assert_result(answer)["_meta"]["sluice/route"]["attempts"], 2)

    def test_where_they_will_not_the_first_failure_is_told(self):
        sim, answer = self.interrupted({"rates": "closed", "budget": "closed"})
        error = self.assert_error(answer, 502, -32011, "provider_unavailable")
        self.assertEqual(error["data"]["attempts"], 1)
        self.assertEqual(sim.stats()["requests"], 2)  # the second is that of afterwards


class Ending(Hardship):
    """The process is told to end while a request waits for its next attempt."""

    def ended(self, words, drain):
        sim = self.sim("--default", words)
        gateway = self.gateway(settings(sim, drain=drain))
        answer = self.asking(gateway)
        harness.wait_for(lambda: gateway.metrics().sum("sluice_provider_attempts_total") == 1, "the first attempt")
        gateway.send(signal.SIGTERM)
        answer = answer()
        self.assertEqual(gateway.wait(), 0, gateway.report())
        return answer

    def test_it_is_made_if_there_is_time(self):
        self.assert_result(self.ended("error-500-first-1-retryms-1500", "20s"))

    def test_it_is_told_so_if_there_is_none(self):
        self.assert_error(self.ended("error-500-retryms-30000", "1s"), 503, 503, "draining")


class Storm(Hardship):
    """Everything at once: endpoints that change their minds, callers who leave, reloads."""

    SECONDS = 10 if SANITIZED else 6
    MOODS = ("", "", "", "error-529", "error-429-retryms-200", "error-500-every-2", "stall-every-3", "reset-every-2", "cut",
             "badjson-every-2", "hang-every-4", "latency-150ms", "once", "quota-20-window-300ms", "close", "garbage",
             "latency-5ms-chunked", "cuthead-every-2", "html-every-2", "empty-every-3", "midway-every-2", "pace-2ms",
             "pace-1ms-size-20000-chunk-400", "dribble-20us")

    def config(self, sims, chance):
        config = settings(*sims)
        provider = config["providers"]["anthropic"]
        provider["endpoints"] = [{"url": sim.url, "weight": chance.choice((1, 2, 5))} for sim in
                                 chance.sample(sims, chance.choice((1, 2, 3)))]
        provider["keys"] = chance.sample([f"sk-storm-key-number-{n}" for n in range(3)], chance.choice((1, 2, 3)))
        provider["timeouts"] = {"connect": "300ms", "first_byte": "400ms", "idle": "300ms", "total": "2s"}
        provider["breaker"] = {"open": "100ms", "open_max": "300ms", "slow_start": chance.choice(("0s", "200ms"))}
        config["providers"]["openai"] = harness.provider(sims[0], "openai", timeouts=provider["timeouts"])
        config["models"] = [harness.model("claude-test", "anthropic")]
        if chance.random() < 0.7:
            config["models"].append(harness.model("gpt-test", "openai"))
        config["retries"] = {"budget": chance.choice((0, 0.1, 1)), "floor": chance.choice((0, 2, 100)),
                             "attempts": chance.choice((1, 2, 4, 8))}
        return config

    def ask(self, gateway, chance, over, answers):
        while not over.is_set():
            if chance.random() < 0.2:
                caller = Caller(gateway, chance.random() < 0.5, chance.random() < 0.5)
                over.wait(chance.random() * 0.3)
                caller.leave()
                caller.close()
                continue
            timeout = {"Sluice-Timeout": str(chance.choice((1200, 3000, 6000)))}
            told = chance.random() < 0.5
            answer = gateway.post(streams.message(token=7 if told else None), {**streams.fields(), **timeout})
            if answer.headers["content-type"] == "text/event-stream":
                *progress, last = streams.events_of(answer.body)
                rising = [event["params"]["progress"] for event in progress]
                answers.append((200, last, rising))
            else:
                answers.append((answer.status, answer.json(), None))

    def test_every_answer_can_be_read_and_nothing_stays_behind(self):
        seed = int(os.environ.get("SLUICE_SEED", time.time_ns() % 1000000))
        print(f"SLUICE_SEED={seed}", flush=True)
        chance, over, answers = random.Random(seed), threading.Event(), []
        sims = [self.sim() for _ in range(3)]
        config = self.config(sims, chance)
        gateway = self.gateway(config)
        threads = [threading.Thread(target=self.ask, args=(gateway, random.Random(seed + n), over, answers))
                   for n in range(12)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + self.SECONDS
        try:
            while time.monotonic() < end:
                chance.choice(sims).default(chance.choice(self.MOODS))
                if chance.random() < 0.3:
                    fresh = self.config(sims, chance)
                    gateway.write_config({**gateway.settings, **{key: fresh[key] for key in (
                        "providers", "models", "retries")}})
                    self.assertIn(gateway.reload().status, (200, 409))
                over.wait(0.1)
        finally:
            over.set()
            for thread in threads:
                thread.join()
        self.assertGreater(len(answers), 50)
        for status, answer, progress in answers:
            self.assertNotEqual("result" in answer, "error" in answer)
            if "error" in answer:
                self.assertIn("reason", answer["error"]["data"], answer)
            if progress is None:
                self.assertEqual("result" in answer, status == 200, answer)
            else:
                self.assertEqual(progress, sorted(set(progress)))
        for streamed in (False, True):
            self.assertTrue([answer for _, answer, progress in answers
                             if (progress is not None) == streamed and "result" in answer])
        self.wait_quiet(gateway)
        for sim in sims:
            sim.default("")
            sim.wait_stats(lambda stats: stats["in_flight"] == 0, "nothing in flight")
        lines = self.lines(gateway)
        metrics = gateway.metrics()
        self.assertEqual(metrics.sum("sluice_provider_attempts_total"), sum(line.get("attempts", 0) for line in lines))
        self.assertAlmostEqual(metrics.sum("sluice_usd_total"), sum(line.get("usd", 0) for line in lines), places=6)
        harness.wait_for(lambda: not gateway.metrics().sum("sluice_pool_connections", state="busy"), "no busy connection")
        harness.wait_for(lambda: gateway.sample().status == 200, "good weather")


if __name__ == "__main__":
    harness.main()
