#!/usr/bin/env python3
"""Limits in Redis: exact across gateways, and what happens while it is gone. ctest: once timeout=300"""

import json
import os
import re
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import fault_proxy
import harness
import redis_server

SANITIZED = bool(os.environ.get("SLUICE_SANITIZE"))
BOUND_USD = 0.02  # more than one request's bound, less than two: see test_money


@unittest.skipUnless(redis_server.available(), "redis-server is not installed")
class RedisCase(harness.Case):
    def start(self, url, sim, failure=None, ready=True, deadline="1s", store=None, binary=harness.BIN, **limits):
        settings = harness.config(sim, store={"kind": "redis", "url": url, "deadline": deadline, **(store or {})})
        plan = settings["plans"]["standard"]
        plan["limits"].update(limits)
        if failure is not None:
            plan["on_store_failure"] = failure
        gateway = self.gateway(settings, binary=binary)
        if ready:
            self.wait_mode(gateway, "shared")
        return gateway

    def mode(self, gateway):
        values = gateway.metrics()
        return next(mode for mode in ("away", "memory", "shared")
                    if sum(values.find("sluice_limiter_mode", mode=mode)))

    def wait_mode(self, gateway, mode, timeout_s=None):
        harness.wait_for(lambda: self.mode(gateway) == mode, f"limiter mode {mode}", timeout_s)

    def storm(self, gateways, each, callers=8, **params):
        """Answers of `callers` x `each` requests to every gateway, all at once."""
        answers, lock = [], threading.Lock()

        def call(gateway):
            for _ in range(each):
                answer = gateway.sample("hello", **params)
                with lock:
                    answers.append(answer)
        threads = [threading.Thread(target=call, args=(g,)) for g in gateways for _ in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    def statuses(self, answers):
        found = [a.status for a in answers]
        return {status: found.count(status) for status in set(found)}


class Exact(RedisCase):
    """Two gateways, one limit: not one too many."""

    def pair(self, sim=None, **limits):
        self.redis = redis_server.Redis(self)
        self.provider = sim or self.sim()
        return [self.start(self.redis.url, self.provider, **limits) for _ in range(2)]

    def test_requests(self):
        gateways = self.pair(requests_per_minute=1, requests_burst=30)
        self.assertEqual(self.statuses(self.storm(gateways, 10)), {200: 30, 429: 130})
        error = self.assert_error(gateways[1].sample("hello"), 429, 429, "rate_limited")
        self.assertEqual(error["data"]["limit"], "requests_per_minute")
        self.assertGreater(error["data"]["retryAfterMs"], 0)
        self.assertLessEqual(error["data"]["retryAfterMs"], 60000)

    def test_tokens_are_settled_on_what_was_used(self):
        gateways = self.pair(tokens_per_minute=1, tokens_burst=2000)
        answers = self.storm(gateways, 20)
        used = sum(a.json()["result"]["_meta"]["sluice/usage"]["input_tokens"] +
                   a.json()["result"]["_meta"]["sluice/usage"]["output_tokens"] for a in answers if a.status == 200)
        granted = self.statuses(answers)
        self.assertEqual(set(granted), {200, 429})
        self.assertLessEqual(used, 2000 + 300)  # debt of those in flight at most: none reserves less than it uses
        self.assertGreater(used, 2000 - 600)

    def test_places_are_given_back(self):
        sim = self.sim("--latency", "4s" if SANITIZED else "1s")  # longer than it takes to ask 16 times
        gateways = self.pair(sim, concurrent=5)
        peak, done = [0], threading.Event()

        def watch():
            while not done.is_set():
                peak[0] = max(peak[0], sim.stats().get("in_flight", 0))
        watcher = threading.Thread(target=watch)
        watcher.start()
        first = self.statuses(self.storm(gateways, 1))
        second = self.statuses(self.storm(gateways, 1))
        done.set()
        watcher.join()
        self.assertEqual(first, {200: 5, 429: 11})
        self.assertEqual(second, {200: 5, 429: 11})
        self.assertLessEqual(peak[0], 5)

    def test_one_caller_of_one_place_is_never_in_its_own_way(self):
        gateways = self.pair(concurrent=1)
        self.assertEqual(self.statuses([gateways[0].sample("hello") for _ in range(50)]), {200: 50})

    def test_money(self):
        sim = self.sim("--latency", "500ms")
        gateways = self.pair(sim, usd_per_day=BOUND_USD)  # one bound at a time: two at once would be too much
        answers = self.storm(gateways, 1)
        self.assertEqual(set(self.statuses(answers)), {200, 402})
        reserved = self.statuses(answers)[200]
        self.assertLess(reserved, 4)
        spent = self.spent()
        used = round(sum(a.json()["result"]["_meta"]["sluice/usage"]["usd"] for a in answers if a.status == 200) * 1e9)
        harness.wait_for(lambda: self.spent() == used, f"{used} nano-USD in Redis; there are {spent}")
        self.assertLessEqual(used, BOUND_USD * 1e9)

    def spent(self):
        return self.redis.tenant()["day"]

    def test_one_round_trip_before_the_provider_and_all_keys_expire(self):
        gateways = self.pair(sim=self.sim())
        gateways[0].sample("hello")
        harness.wait_for(lambda: self.redis.calls("evalsha") + self.redis.calls("eval") >= 2 and
                         self.redis.tenant()["places"] == 0, "the place is given back")
        self.redis.ask("CONFIG", "RESETSTAT")
        sample = gateways[0].sample("hello")
        self.assert_result(sample)
        harness.wait_for(lambda: self.redis.calls("evalsha") >= 2, "the settlement")
        self.assertEqual(self.redis.calls("evalsha"), 2)  # the claim, then, behind the answer, the settlement
        self.assertEqual(self.redis.calls("eval"), 0)
        for key in self.redis.ask("KEYS", "*"):
            self.assertGreater(self.redis.ask("PTTL", key), 0, key)


class Operator(RedisCase):
    """GET /tenants/ID and POST /tenants/ID/budget: the shared figures, by any gateway."""

    def show(self, gateway, scope=0):
        answer = harness.request("GET", gateway.admin + "/tenants/acme")
        self.assertEqual(answer.status, 200, answer)
        return answer.json()["mode"], answer.json()["scopes"][scope]["limits"]

    def top_up(self, gateway, usd):
        return harness.request("POST", gateway.admin + "/tenants/acme/budget", b'{"usd": %s}' % str(usd).encode())

    def test_every_gateway_shows_what_all_have_used(self):
        redis = redis_server.Redis(self)
        sim = self.sim()
        gateways = [self.start(redis.url, sim, requests_per_minute=60, requests_burst=100, usd_per_day=2)
                    for _ in range(2)]
        used = sum(self.assert_result(g.sample("hello"))["_meta"]["sluice/usage"]["usd"] for g in gateways * 5)

        def settled():
            shown = [self.show(g) for g in gateways]
            return all(mode == "redis" and abs(limits["usd_per_day"]["spent"] - used) < 1e-9 and
                       limits["concurrent"]["in_flight"] == 0 for mode, limits in shown) and shown
        shown = harness.wait_for(settled, f"both show {used} USD")
        for _, limits in shown:
            self.assertIn(limits["requests_per_minute"]["remaining"], range(90, 100))
            self.assertAlmostEqual(limits["usd_per_day"]["remaining"], 2 - used, 9)
            self.assertAlmostEqual(limits["usd_per_month"]["spent"], used, 9)

    def test_places_of_other_gateways_are_shown(self):
        redis = redis_server.Redis(self)
        sim = self.sim("--latency", "60s")
        gateways = [self.start(redis.url, sim) for _ in range(2)]
        callers = [threading.Thread(target=self.give_up, args=(g,)) for g in gateways]
        for caller in callers:
            caller.start()
        for gateway in gateways:
            harness.wait_for(lambda: self.show(gateway)[1]["concurrent"]["in_flight"] == 2, "two places are in use")
        for gateway in gateways:
            gateway.stop()
        for caller in callers:
            caller.join()

    @staticmethod
    def give_up(gateway):
        try:
            gateway.sample("hello")
        except OSError:
            pass  # the gateway was stopped

    def test_a_top_up_counts_for_all_gateways_and_survives_a_flush(self):
        redis = redis_server.Redis(self)
        sim = self.sim()
        gateways = [self.start(redis.url, sim, usd_per_day=0.005, usd_per_month=1) for _ in range(2)]
        for gateway in gateways:
            self.assert_error(gateway.sample("hello"), 402, 402, "request_over_budget")
        answer = self.top_up(gateways[0], 0.1)
        self.assertEqual(answer.status, 200, answer)
        budget = answer.json()["scopes"][0]["limits"]["usd_per_day"]
        self.assertEqual(budget, {"spent": 0, "limit": 0.005, "topped_up": 0.1, "remaining": 0.105})
        self.assert_result(gateways[1].sample("hello"))
        self.assertEqual(self.show(gateways[1])[1]["usd_per_month"]["topped_up"], 0.1)
        redis.ask("FLUSHALL")  # the gateway that added it tells of it again
        self.assert_error(gateways[0].sample("hello" * 40000), 402, 402, "request_over_budget")
        harness.wait_for(lambda: self.show(gateways[1])[1]["usd_per_day"]["topped_up"] == 0.1, "topped up again")
        self.assert_result(gateways[1].sample("hello"))

    def test_a_request_that_does_not_fit_is_told_what_is_left_of_the_budget_that_all_share(self):
        redis = redis_server.Redis(self)
        sim = self.sim()
        sim.default("nousage")  # the bound stays spent
        first, second = (self.start(redis.url, sim, usd_per_day=0.015) for _ in range(2))
        self.assert_result(first.sample("hello"))
        spent = harness.wait_for(lambda: self.show(second)[1]["usd_per_day"]["spent"], "the bound is spent")
        self.assertGreater(2 * spent, 0.015, "two do not fit")
        error = self.assert_error(second.sample("hello"), 402, 402, "budget_exceeded")
        data = error["data"]
        self.assertEqual((data["limit"], data["scope"]), ("usd_per_day", "tenant"))
        self.assertAlmostEqual(data["left"], 0.015 - spent, 9)
        self.assertGreater(data["needed"], data["left"])
        self.assertRegex(data["resets"], r"^\d{4}-\d\d-\d\dT00:00:00Z$")
        self.assertRegex(error["message"], r"may cost up to \$0\.\d{4}; \$0\.\d{4} of usd_per_day is left until 00:00 UTC")
        error = self.assert_error(second.sample("hello", maxTokens=4096), 402, 402, "request_over_budget")
        self.assertAlmostEqual(error["data"]["left"], 0.015 - spent, 9)
        self.assertIn("more than the whole of usd_per_day, $0.0150", error["message"])
        self.assertEqual(self.top_up(first, 1).status, 200)
        self.assert_result(second.sample("hello", maxTokens=4096))  # a larger budget

    def test_while_redis_is_away_a_top_up_is_refused_and_the_mode_says_so(self):
        redis = redis_server.Redis(self)
        local = self.start(redis.url, self.sim(), LOCAL)
        closed = self.start(redis.url, self.sim())
        self.assert_result(local.sample("hello"))
        redis.kill()
        for gateway, mode in ((local, "local"), (closed, "closed")):
            self.wait_mode(gateway, "away")
            self.assertEqual(self.show(gateway)[0], mode)
            answer = self.top_up(gateway, 5)
            self.assertEqual(answer.status, 503, answer)
            self.assertIn(b"nothing was added", answer.body)
        redis.start()
        self.wait_mode(local, "shared")
        self.assertEqual(self.show(local)[1]["usd_per_day"]["topped_up"], 0)
        self.assertEqual(self.top_up(local, 5).status, 200)

    def test_a_top_up_that_is_not_answered_in_time_says_that_it_may_be_done(self):
        redis = redis_server.Redis(self)
        gateway = self.start(redis.url, self.sim(), LOCAL, deadline="20ms")
        redis.stop()
        answer = self.top_up(gateway, 5)
        self.assertEqual(answer.status, 504, answer)
        self.assertIn(b"before adding again", answer.body)
        redis.go_on()
        self.wait_mode(gateway, "shared")
        harness.wait_for(lambda: self.show(gateway)[1]["usd_per_day"]["topped_up"] == 5, "done after all")

    def test_servers_and_models_have_limits_of_their_own(self):
        redis = redis_server.Redis(self)
        sim = self.sim()
        none = {"requests_per_minute": 1, "requests_burst": 3}
        gateways = [self.start(redis.url, sim, requests_per_minute=60000, per_server=none,
                               per_model={"gpt-*": {"requests_per_minute": 1, "requests_burst": 2}})
                    for _ in range(2)]
        gpt = {"modelPreferences": {"hints": [{"name": "gpt-test"}]}}
        answers = [gateways[i % 2].sample("hello", **gpt) for i in range(4)]
        self.assertEqual(self.statuses(answers), {200: 2, 429: 2})
        self.assertEqual(answers[2].json()["error"]["data"]["scope"], "per_model")
        answers = [gateways[i % 2].sample("hello") for i in range(3)]
        self.assertEqual([a.status for a in answers], [200, 429, 429])
        self.assertEqual(answers[1].json()["error"]["data"]["scope"], "per_server")
        mode, scopes = self.show(gateways[0])[0], harness.request(
            "GET", gateways[0].admin + "/tenants/acme").json()["scopes"]
        self.assertEqual(mode, "redis")
        self.assertEqual([next(iter(s.items())) for s in scopes],
                         [("tenant", "acme"), ("server", "test-server"), ("models", "gpt-*")])
        self.assertEqual([s["limits"]["requests_per_minute"]["remaining"] for s in scopes[1:]], [0, 0])


class Password(RedisCase):
    """Another one, while requests come."""

    def started(self, redis, login):
        self.redis, self.file = redis, os.path.join(self.directory(), "url")
        self.write(login)
        settings = harness.config(self.sim(), workers=2, reload_watch="100ms",
                                  store={"kind": "redis", "url": "file:" + self.file, "deadline": "1s"})
        gateway = self.gateway(settings)
        self.wait_mode(gateway, "shared")
        return gateway

    def write(self, login):
        with open(self.file + ".new", "w", encoding="utf-8") as file:
            file.write(f"redis://{login}@127.0.0.1:{self.redis.port}/1\n")
        os.replace(self.file + ".new", self.file)

    def reloads(self, gateway):
        return sum(gateway.metrics().find("sluice_reloads_total", result="ok"))

    def change(self, gateway, login):
        """Noticed, taken over, and told to Redis by the connection of each worker."""
        before, said = self.reloads(gateway), self.redis.calls("auth")
        self.write(login)
        harness.wait_for(lambda: self.reloads(gateway) == before + 1, "the new password is in force")
        harness.wait_for(lambda: self.redis.calls("auth") >= said + 2, "Redis has heard it")

    def under_load(self, gateway, act):
        answers, done = [], threading.Event()

        def call():
            while not done.is_set():
                answers.append(gateway.sample("hello").status)
        callers = [threading.Thread(target=call) for _ in range(4)]
        for caller in callers:
            caller.start()
        try:
            act()
        finally:
            done.set()
            for caller in callers:
                caller.join()
        self.assertGreater(len(answers), 20)
        self.assertEqual(set(answers), {200})
        self.assertEqual([line for line in gateway.stderr if "sluice: store" in line], [])

    def connections(self):
        """The numbers that Redis has given to the gateway's; ours are no TCP."""
        return set(re.findall(r"^id=(\d+) addr=127\.0\.0\.1:", self.redis.ask("CLIENT", "LIST"), re.MULTILINE))

    def assert_comes_back(self, gateway):
        """Connections made from now on log in with it."""
        before = self.connections()
        self.assertEqual(len(before), 3)  # of two workers, and the one that listens
        self.redis.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        self.redis.ask("CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes")
        harness.wait_for(lambda: len(self.connections() - before) == 3 and self.mode(gateway) == "shared", "new connections")
        self.assert_result(gateway.sample("hello"))

    def test_of_an_acl_user_changes_without_a_failed_request(self):
        redis = redis_server.Redis(self)
        redis.ask("ACL", "SETUSER", "gate", "on", ">first", "~*", "&*", "+@all")
        gateway = self.started(redis, "gate:first")

        def rotate():
            for old, new in (("first", "second"), ("second", "third"), ("third", "fourth")):
                redis.ask("ACL", "SETUSER", "gate", ">" + new)
                self.change(gateway, "gate:" + new)
                redis.ask("ACL", "SETUSER", "gate", "<" + old)
        self.under_load(gateway, rotate)
        self.assert_comes_back(gateway)

    def test_of_the_server_changes_without_a_failed_request(self):
        redis = redis_server.Redis(self, "--requirepass", "first", password="first")
        gateway = self.started(redis, ":first")

        def rotate():
            redis.ask("CONFIG", "SET", "requirepass", "second")
            redis.password = "second"
            self.change(gateway, ":second")
        self.under_load(gateway, rotate)
        self.assert_comes_back(gateway)

    def test_a_wrong_one_is_told_and_the_connection_stays(self):
        redis = redis_server.Redis(self, "--requirepass", "right", password="right")
        gateway = self.started(redis, ":right")
        self.change(gateway, ":wr0ng")
        gateway.wait_stderr(f"sluice: store redis://127.0.0.1:{redis.port}/1: goes on with the old password: WRONGPASS")
        self.assert_result(gateway.sample("hello"))
        self.assertEqual(self.mode(gateway), "shared")
        self.assertNotIn("wr0ng", "\n".join(gateway.stderr))

    def test_another_server_wants_a_restart(self):
        redis = redis_server.Redis(self)
        gateway = self.started(redis, "default:any")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(f"redis://127.0.0.1:{harness.free_port()}")
        answer = gateway.reload()
        self.assertEqual(answer.status, 422)
        self.assertIn("store.url: cannot change while the gateway runs", answer.body.decode())


class Connections(RedisCase):
    def test_unix_socket(self):
        redis = redis_server.Redis(self)
        self.assert_result(self.start("unix://" + redis.socket, self.sim()).sample("hello"))

    def test_password_and_database(self):
        redis = redis_server.Redis(self, "--requirepass", "s3cret/%", password="s3cret/%")
        gateway = self.start(f"redis://:s3cret%2F%25@127.0.0.1:{redis.port}/3", self.sim())
        self.assert_result(gateway.sample("hello"))
        self.assertIn("db3:", redis.ask("INFO", "keyspace"))

    def test_a_wrong_password_is_named_and_not_shown(self):
        redis = redis_server.Redis(self, "--requirepass", "right", password="right")
        gateway = self.start(f"redis://:wr0ngpass@127.0.0.1:{redis.port}", self.sim(), ready=False)
        gateway.wait_stderr("WRONGPASS")
        self.assert_error(gateway.sample("hello"), 503, 503, "store_unavailable")
        self.assertNotIn("wr0ngpass", "\n".join(gateway.stderr))

    def test_acl_user(self):
        redis = redis_server.Redis(self)
        redis.ask("ACL", "SETUSER", "gate", "on", ">pw", "~sluice:*", "-@all", "+eval", "+evalsha", "+time", "+get",
                  "+mget", "+set", "+select")
        gateway = self.start(f"redis://gate:pw@127.0.0.1:{redis.port}/0", self.sim())
        self.assert_result(gateway.sample("hello"))

    def test_tls_and_its_name(self):
        cert, key = self.certificate()
        port = harness.free_port()
        redis_server.Redis(self, "--tls-port", str(port), "--tls-cert-file", cert, "--tls-key-file", key,
                           "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
        gateway = self.start(f"rediss://127.0.0.1:{port}", self.sim(), store={"ca": cert})
        self.assert_result(gateway.sample("hello"))
        named = self.start(f"rediss://localhost:{port}", self.sim(), store={"ca": cert})
        self.assert_result(named.sample("hello"))

    def test_another_name_in_the_certificate_is_refused(self):
        cert, key = self.certificate("other.example", ("DNS:other.example",))
        port = harness.free_port()
        redis_server.Redis(self, "--tls-port", str(port), "--tls-cert-file", cert, "--tls-key-file", key,
                           "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
        gateway = self.start(f"rediss://127.0.0.1:{port}", self.sim(), store={"ca": cert}, ready=False)
        gateway.wait_stderr("sluice: store rediss://127.0.0.1")
        self.assertEqual(self.mode(gateway), "away")


class Hostile(RedisCase):
    """What answers on that port is no Redis, or no honest one."""

    ANSWERS = [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"+OK\r\n" * 64, b"*" * 70000, b"$99999999999999999999\r\n",
               b"*1\r\n" * 64, b"*1000000000\r\n", b"$536870912\r\nabc", b"-LOADING\r\n", b":\r\n", b"\0" * 4096]

    def test_no_answer_harms(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        answered = []

        def serve():
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    client.settimeout(1)
                    try:
                        client.recv(65536)
                        client.sendall(self.ANSWERS[len(answered) % len(self.ANSWERS)])
                        client.recv(65536)
                    except OSError:
                        pass
                answered.append(1)
        threading.Thread(target=serve, daemon=True).start()
        gateway = self.start(f"redis://127.0.0.1:{listener.getsockname()[1]}", self.sim(), LOCAL, ready=False,
                             deadline="20ms")
        harness.wait_for(lambda: len(answered) > len(self.ANSWERS), "every answer was given")
        self.assert_result(gateway.sample("hello"))


LOCAL = {"rates": "local", "budget": {"local": 500}}


class Misplaced(RedisCase):
    """A store.url that leads to another kind of server is named on stderr, by the metric and in readyz, which stays 200."""

    REFUSED = "requests that cost money are refused for 1 of 1 tenants (on_store_failure)"

    def assert_named(self, gateway, fault, words):
        gateway.wait_stderr(words)
        harness.wait_for(lambda: gateway.metrics().sum("sluice_store_fault", fault=fault) > 0, f"fault {fault}")
        answer = gateway.get("/readyz")
        self.assertEqual(answer.status, 200)
        lines = answer.body.decode().splitlines()
        self.assertRegex(lines[0], "^ready, configuration [0-9a-f]{16}$")
        self.assertRegex(lines[1], r"^store rediss?://\S+ is not in use by 1 of 1 workers: ")
        self.assertIn(words, lines[1])
        self.assertTrue(lines[1].endswith(self.REFUSED), lines[1])
        self.assertEqual(len(lines), 2)

    def nodes(self, count):
        nodes = [redis_server.Redis(self, "--cluster-enabled", "yes", "--cluster-port", str(harness.free_port()))
                 for _ in range(count)]
        each = 16384 // count
        for i, node in enumerate(nodes):
            node.ask("CLUSTER", "ADDSLOTSRANGE", i * each, (i + 1) * each - 1)
            if i:
                node.ask("CLUSTER", "MEET", "127.0.0.1", nodes[0].port,
                         nodes[0].options[nodes[0].options.index("--cluster-port") + 1])
        for node in nodes:
            harness.wait_for(lambda: "cluster_state:ok" in node.ask("CLUSTER", "INFO"), "the cluster is one")
        return nodes

    def test_a_cluster_of_several_shards(self):
        nodes = self.nodes(2)
        for node in nodes:
            gateway = self.start(node.url, self.sim(), ready=False)
            self.assert_named(gateway, "cluster", "this is a Redis Cluster; Sluice needs a single primary")
            self.assert_error(gateway.sample("hello"), 503, 503, "store_unavailable")

    def test_a_cluster_whose_slots_nobody_has(self):
        node = redis_server.Redis(self, "--cluster-enabled", "yes", "--cluster-port", str(harness.free_port()))
        gateway = self.start(node.url, self.sim(), ready=False)
        self.assert_named(gateway, "cluster", "this is a Redis Cluster; Sluice needs a single primary")

    def test_a_cluster_of_one_shard_serves(self):
        gateway = self.start(self.nodes(1)[0].url, self.sim())
        self.assert_result(gateway.sample("hello"))
        self.assertEqual(gateway.metrics().sum("sluice_store_fault"), 0)

    def test_tls_to_a_plain_port(self):
        redis = redis_server.Redis(self)
        gateway = self.start(redis.url.replace("redis:", "rediss:"), self.sim(), ready=False)
        self.assert_named(gateway, "plain_port", "this port does not speak TLS; write redis:// in store.url")

    def test_clear_text_to_a_tls_port(self):
        cert, key = self.certificate()
        port = harness.free_port()
        redis_server.Redis(self, "--tls-port", str(port), "--tls-cert-file", cert, "--tls-key-file", key,
                           "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
        gateway = self.start(f"redis://127.0.0.1:{port}", self.sim(), ready=False)
        self.assert_named(gateway, "tls_port", "this port speaks TLS; write rediss:// in store.url")

    def test_no_redis_at_all_and_then_one(self):
        port = harness.free_port()
        gateway = self.start(f"redis://127.0.0.1:{port}", self.sim(), ready=False)
        gateway.wait_stderr(f"limits are in store redis://127.0.0.1:{port}/0; while it is not in use, {self.REFUSED}")
        gateway.wait_stderr("is not in use by 1 of 1 workers: no connection can be made")
        self.assert_named(gateway, "unreachable", "no connection can be made")
        redis_server.Redis(self, port=port)
        self.wait_mode(gateway, "shared")
        self.assertRegex(gateway.get("/readyz").body, rb"^ready, configuration [0-9a-f]{16}\n$")
        self.assertEqual(gateway.metrics().sum("sluice_store_fault"), 0)

    def test_where_nobody_is_refused_it_says_so(self):
        gateway = self.start(f"redis://127.0.0.1:{harness.free_port()}", self.sim(), LOCAL, ready=False)
        gateway.wait_stderr("while it is not in use, no tenant's requests are refused for it")
        self.assertIn(b"no tenant's requests are refused for it", gateway.get("/readyz").body)


class Gone(RedisCase):
    """Redis is away: what each tenant chose, nobody waits, and back within two seconds."""

    def begin(self, redis_url, **changes):
        settings = {"failure": LOCAL, "deadline": "20ms", "requests_per_minute": 60000000,
                    "requests_burst": 1000000, "tokens_per_minute": 60000000000, **changes}
        return self.start(redis_url, self.sim(), **settings)

    def ride(self, gateway, seconds, during):
        """Callers all the time, `during` in the midst; no request may fail. Returns the 99th percentile in ms."""
        answers, stop = [], threading.Event()

        def call():
            while not stop.is_set():
                answers.append(gateway.sample("hello"))
        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            during()
            until = time.monotonic() + seconds
            harness.wait_for(lambda: time.monotonic() > until, "the outage to last")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(set(self.statuses(answers)), {200}, self.statuses(answers))
        slow = sorted(a.elapsed_s for a in answers)
        p99 = slow[int(len(slow) * 0.99)] * 1000
        print(f"{self.id().split('.')[-1]}: {len(answers)} requests, 0 failed, p99 {p99:.1f} ms, "
              f"slowest {slow[-1] * 1000:.1f} ms")
        return p99

    def assert_back(self, gateway):
        began = time.monotonic()
        self.wait_mode(gateway, "shared", 20 if SANITIZED else 2.5)
        print(f"{self.id().split('.')[-1]}: back after {(time.monotonic() - began) * 1000:.0f} ms")
        self.assert_result(gateway.sample("hello"))

    def test_down_at_start(self):
        port = harness.free_port()
        gateway = self.begin(f"redis://127.0.0.1:{port}", ready=False)
        self.assert_result(gateway.sample("hello"))
        self.assertEqual(self.mode(gateway), "away")
        redis_server.Redis(self, port=port)
        self.assert_back(gateway)

    def test_closed_functions_refuse(self):
        port = harness.free_port()
        for failure in (None, {"rates": "closed", "budget": {"local": 5}}, {"rates": "local", "budget": "closed"}):
            gateway = self.start(f"redis://127.0.0.1:{port}", self.sim(), failure, ready=False)
            self.assert_error(gateway.sample("hello"), 503, 503, "store_unavailable")

    def test_a_local_budget_is_not_exceeded(self):
        port = harness.free_port()
        gateway = self.start(f"redis://127.0.0.1:{port}", self.sim("--latency", "300ms"),
                             {"budget": {"local": BOUND_USD}}, ready=False)
        self.assertEqual(set(self.statuses(self.storm([gateway], 1))), {200, 503})
        metrics = gateway.metrics()
        self.assertEqual(metrics.sum("sluice_away_usd_bound"), BOUND_USD)
        self.assertTrue(0 < metrics.sum("sluice_away_usd_total") <= BOUND_USD, metrics.text)
        for function, decision in (("rates", "local"), ("budget", "local"), ("budget", "closed")):
            self.assertGreater(metrics.sum("sluice_away_decisions_total", function=function, decision=decision), 0)
        self.assertEqual(metrics.sum("sluice_away_decisions_total", function="rates", decision="closed"), 0)

    def test_killed(self):
        redis = redis_server.Redis(self)
        gateway = self.begin(redis.url)
        self.ride(gateway, 2, redis.kill)
        self.assertEqual(self.mode(gateway), "away")
        redis.start()
        self.assert_back(gateway)

    def test_stopped(self):
        redis = redis_server.Redis(self)
        gateway = self.begin(redis.url)
        self.ride(gateway, 3, redis.stop)
        self.assertEqual(self.mode(gateway), "away")
        redis.go_on()
        self.assert_back(gateway)

    def test_slow(self):
        proxy = redis_server.Proxy(self, redis_server.Redis(self).port)
        gateway = self.begin(proxy.url)

        def slow():
            proxy.delay_s = 0.5
        self.ride(gateway, 3, slow)
        self.assertEqual(self.mode(gateway), "away")
        proxy.delay_s = 0.0
        self.assert_back(gateway)

    def test_a_slow_redis_serves_those_who_would_be_refused_without_its_answer(self):
        proxy = fault_proxy.Proxy(self, redis_server.Redis(self).port)
        gateway = self.begin(proxy.url, failure={"budget": "closed"})
        local = self.begin(proxy.url)
        proxy.delay(0.1)
        answers = self.storm([gateway], 6, callers=4)
        self.assertEqual(self.statuses(answers), {200: 24})
        self.assertEqual(self.mode(gateway), "away")  # five times the deadline
        self.assertGreater(gateway.metrics().sum("sluice_away_decisions_total", function="budget", decision="waited"), 10)
        self.assert_result(local.sample("hello"))
        self.assertEqual(local.metrics().sum("sluice_away_decisions_total", decision="waited"), 0)
        proxy.delay(0)
        self.assert_back(gateway)
        self.assertEqual(gateway.metrics().sum("sluice_away_decisions_total", function="budget", decision="closed"), 0)

    def test_well_again_is_seen_while_closed_tenants_go_on_asking(self):
        proxy = fault_proxy.Proxy(self, redis_server.Redis(self).port)
        gateway = self.begin(proxy.url, failure={"budget": "closed"})

        def slow():
            proxy.delay(0.06)
            self.wait_mode(gateway, "away")
            proxy.delay(0)
            self.wait_mode(gateway, "shared")
        self.ride(gateway, 0.5, slow)

    def test_a_gateway_that_starts_with_a_slow_redis_serves_them_too(self):
        proxy = fault_proxy.Proxy(self, redis_server.Redis(self).port)
        proxy.delay(0.06)
        gateway = self.begin(proxy.url, failure={"budget": "closed"}, ready=False)
        self.assert_result(gateway.sample("hello"))
        self.assertEqual(self.mode(gateway), "away")
        self.assert_result(gateway.sample("hello"))

    def test_a_redis_that_does_not_answer_is_waited_for_no_longer_than_the_patience(self):
        redis = redis_server.Redis(self)
        gateway = self.begin(redis.url, failure={"budget": "closed"}, store={"patience": "400ms"})
        redis.stop()
        answer = gateway.sample("hello")
        self.assert_error(answer, 503, 503, "store_unavailable")
        self.assertGreater(answer.elapsed_s, 0.35)
        harness.wait_for(lambda: gateway.sample("hello").elapsed_s < 0.3, "nobody waits for it any more")
        redis.go_on()
        self.assert_back(gateway)

    def test_the_callers_own_deadline_is_kept_while_redis_is_slow(self):
        redis = redis_server.Redis(self)
        gateway = self.begin(redis.url, failure={"budget": "closed"}, store={"patience": "10s"})
        redis.stop()
        answer = gateway.sample("hello", headers={"Sluice-Timeout": "100"})
        self.assert_error(answer, 504, -32001, "deadline")
        self.assertLess(answer.elapsed_s, 0.9)  # the connection is given up after a second
        self.assert_error(gateway.sample("hello"), 503, 503, "store_unavailable")
        redis.go_on()
        self.assert_back(gateway)

    def test_a_replica_that_only_reads(self):
        redis = redis_server.Redis(self)
        gateway = self.begin(redis.url)
        self.ride(gateway, 2, lambda: redis.ask("REPLICAOF", "127.0.0.1", "1"))
        self.assertEqual(self.mode(gateway), "away")
        redis.ask("REPLICAOF", "NO", "ONE")
        self.assert_back(gateway)

    def masters(self, second_host="127.0.0.1"):
        """Two servers, the second a replica of the first that has all that it has; at another address on the same
        port, or at the same on another."""
        first = redis_server.Redis(self, "--repl-diskless-sync-delay", "0")
        replica = redis_server.Redis(self, "--repl-diskless-sync-delay", "0", "--replica-announce-ip", second_host,
                                     host=second_host,
                                     port=None if second_host == first.host else first.port)
        replica.ask("REPLICAOF", first.host, str(first.port))
        harness.wait_for(lambda: "master_link_status:up" in replica.ask("INFO", "replication") and
                         "state=online" in first.ask("INFO", "replication"), "both say that the replica is in step")
        return first, replica

    def fail_over(self, old, new):
        """In good order: the old master waits for the replica, then serves on, but refuses writes."""
        old.ask("FAILOVER", "TO", new.host, str(new.port))
        harness.wait_for(lambda: "role:master" in new.ask("INFO", "replication") and
                         "role:slave" in old.ask("INFO", "replication"), "the roles are changed")

    def test_a_failover_behind_the_same_address(self):
        old, new = self.masters()
        proxy = redis_server.Proxy(self, old.port)
        gateway = self.begin(proxy.url)
        used = self.assert_result(gateway.sample("hello"))["_meta"]["sluice/usage"]["usd"]
        harness.wait_for(lambda: old.tenant()["day"] == round(used * 1e9), "settled")
        self.ride(gateway, 2, lambda: self.fail_over(old, new))
        self.assertEqual(self.mode(gateway), "away")  # READONLY, again and again
        away = gateway.metrics().sum("sluice_away_decisions_total", function="rates", decision="local")
        self.assertGreater(away, 0)
        proxy.target = new.port
        self.assert_back(gateway)
        spent = round(gateway.metrics().sum("sluice_usd_total") * 1e9)
        harness.wait_for(lambda: new.tenant()["places"] == 0, "all is settled")
        harness.wait_for(lambda: spent <= new.tenant()["day"], f"{spent} nano-USD: nothing is lost")
        # What was on its way when the connection broke may be counted twice.
        self.assertLess(new.tenant()["day"], spent + 8 * BOUND_USD * 1e9)

    def test_a_failover_with_closed_functions_refuses_until_it_is_over(self):
        old, new = self.masters()
        proxy = redis_server.Proxy(self, old.port)
        gateway = self.begin(proxy.url, failure={"rates": "closed"})
        self.assert_result(gateway.sample("hello"))
        self.fail_over(old, new)
        self.assert_error(gateway.sample("hello"), 503, 503, "store_unavailable")
        proxy.target = new.port
        self.assert_back(gateway)

    def test_a_failover_to_another_address_of_the_same_name(self):
        hosts = os.path.join(self.directory(), "hosts")
        binary = self.with_hosts(hosts)
        old, new = self.masters("127.0.0.2")
        port = old.port
        self.write(hosts, "127.0.0.1 redis.test\n")
        gateway = self.begin(f"redis://redis.test:{port}", binary=binary)
        self.assert_result(gateway.sample("hello"))
        self.fail_over(old, new)
        harness.wait_for(lambda: self.assert_result(gateway.sample("hello")) and self.mode(gateway) == "away", "away")
        self.write(hosts, "127.0.0.2 redis.test\n")
        self.assert_back(gateway)

    @staticmethod
    def write(path, text):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

    def test_a_reload_while_a_claim_waits_does_not_lose_its_provider(self):
        redis = redis_server.Redis(self)
        gateway = self.begin(redis.url, deadline="10s")
        self.assert_result(gateway.sample("hello"))
        redis.stop()
        answers = []
        caller = threading.Thread(target=lambda: answers.append(gateway.sample("hello")))
        caller.start()
        harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 1, "a request waits for Redis")
        with open(gateway.config_path, encoding="utf-8") as file:
            settings = json.load(file)
        other = self.sim()
        for name, provider in settings["providers"].items():
            provider["endpoints"] = harness.provider(other, provider["dialect"])["endpoints"]
        gateway.write_config(settings)
        self.assertEqual(gateway.reload().status, 200)
        redis.go_on()
        caller.join()
        self.assert_result(answers[0])
        self.assertEqual(other.stats()["requests"], 0)  # it was to go to the provider it was routed to
        self.assert_result(gateway.sample("hello"))
        self.assertEqual(other.stats()["requests"], 1)

    def test_scripts_flushed(self):
        redis = redis_server.Redis(self)
        gateway = self.begin(redis.url, failure=None, deadline="1s")  # closed: it must not even be noticed
        self.ride(gateway, 1, lambda: [redis.ask("SCRIPT", "FLUSH") for _ in range(20)])

    def test_money_is_told_again_after_a_flush(self):
        redis = redis_server.Redis(self)
        gateways = [self.start(redis.url, self.sim(), usd_per_day=1) for _ in range(2)]
        counter = Exact()
        counter.redis = redis
        used = 0
        for gateway in gateways * 5:
            result = self.assert_result(gateway.sample("hello"))
            used += round(result["_meta"]["sluice/usage"]["usd"] * 1e9)
        harness.wait_for(lambda: counter.spent() == used, "settled")
        redis.ask("FLUSHALL")
        for gateway in gateways:
            result = self.assert_result(gateway.sample("hello"))
            used += round(result["_meta"]["sluice/usage"]["usd"] * 1e9)
        harness.wait_for(lambda: counter.spent() == used, f"{used} nano-USD told again")

    def test_what_was_spent_meanwhile_is_told_afterwards(self):
        redis = redis_server.Redis(self)
        gateway = self.begin(redis.url)
        counter = Exact()
        counter.redis = redis
        used = 0
        for at in range(10):
            if at == 5:
                redis.kill()
                self.wait_mode(gateway, "away")
            result = self.assert_result(gateway.sample("hello"))
            used += round(result["_meta"]["sluice/usage"]["usd"] * 1e9)
        redis.start()
        self.assert_back(gateway)
        cost = used // 10
        harness.wait_for(lambda: counter.spent() == used + cost, f"{used + cost} nano-USD; {counter.spent()}")


if __name__ == "__main__":
    harness.main()
