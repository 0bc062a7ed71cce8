"""SIGTERM: who is served, who is told to go, what is waited for, and how it ends.

ctest: worker timeout=240
"""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import sys
import threading
import time
import unittest
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import h2_client  # noqa: E402
import tls_client  # noqa: E402

SANITIZED = bool(os.environ.get("SLUICE_SANITIZE"))
FIELDS = {"Content-Type": "application/json", "Authorization": "Bearer " + harness.KEY}
SLOW = "sim-latency-60s"  # a model whose provider answers in a minute


def message(text="hello", model=None):
    params = {"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 100}
    if model is not None:
        params["modelPreferences"] = {"hints": [{"name": model}]}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage",
                       "params": params}).encode()


def connect(gateway):
    parts = urllib.parse.urlsplit(gateway.url)
    return socket.create_connection((parts.hostname, parts.port), harness.PATIENCE_S)


def most_of_a_send_buffer():
    """Bytes that this kernel lets a TCP socket grow to."""
    with open("/proc/sys/net/ipv4/tcp_wmem", encoding="ascii") as file:
        return int(file.read().split()[2])


def refuses(gateway):
    """Whether nobody listens any more."""
    try:
        connect(gateway).close()
        return False
    except OSError:
        return True


class Asking(threading.Thread):
    """One sampling request; `outcome` is its answer, or what went wrong."""

    def __init__(self, gateway, **options):
        super().__init__()
        self.gateway, self.options, self.outcome = gateway, options, None
        self.start()

    def run(self):
        try:
            self.outcome = self.gateway.sample("hello", **self.options)
        except (OSError, http.client.HTTPException, harness.Failure) as error:
            self.outcome = error

    def result(self):
        self.join(harness.PATIENCE_S)
        return self.outcome


class DrainCase(harness.Case):
    def start(self, sim, **changes):
        models = [harness.model("claude-test", "anthropic"), harness.model("gpt-test", "openai"),
                  harness.model(SLOW, "anthropic")]
        return self.gateway(harness.config(sim, models=models, **changes))

    def ask(self, gateway, sim, **options):
        """A request that is on its way at the provider when this returns."""
        before = sim.stats()["requests"]
        asking = Asking(gateway, **options)
        sim.wait_stats(lambda stats: stats["requests"] > before, "the request has reached the provider")
        return asking

    def terminate(self, gateway):
        gateway.send(signal.SIGTERM)
        harness.wait_for(lambda: gateway.get("/readyz").status == 503, "readyz fails")

    def terminate_and_wait(self, gateway):
        """Until it has stopped listening."""
        self.terminate(gateway)
        harness.wait_for(lambda: refuses(gateway), "it listens no more")

    def assert_ends(self, gateway, within_s):
        began = time.monotonic()
        self.assertEqual(gateway.wait(), 0, gateway.report())
        self.assertLess(time.monotonic() - began, within_s * (5 if SANITIZED else 1))


class Nobody(DrainCase):
    def test_an_idle_gateway_goes_at_once(self):
        settings = harness.config(self.sim())
        settings.pop("drain", None)  # the default: ten minutes
        gateway = self.gateway(settings)
        gateway.send(signal.SIGTERM)
        self.assert_ends(gateway, 4)  # it would wait for five seconds

    def test_idle_connections_are_closed(self):
        sim = self.sim()
        gateway = self.start(sim, drain="60s")
        parts = urllib.parse.urlsplit(gateway.url)
        kept = http.client.HTTPConnection(parts.hostname, parts.port, timeout=harness.PATIENCE_S)
        self.addCleanup(kept.close)
        kept.request("POST", "/v1/sampling", message(), FIELDS)
        self.assertEqual(kept.getresponse().read()[:1], b"{")
        with h2_client.Client(gateway.url) as h2:
            h2.request(1, "/v1/sampling", FIELDS, message())
            self.assertIn(b'"result"', h2.answer(1))
            self.terminate(gateway)
            h2.read_to_end()
            self.assertEqual(h2.count(h2_client.GOAWAY), 2)
        kept.sock.settimeout(harness.PATIENCE_S)
        self.assertEqual(kept.sock.recv(1), b"")
        self.assert_ends(gateway, 10)


class Quiet(DrainCase):
    def test_new_requests_are_served_while_readyz_fails(self):
        sim = self.sim()
        gateway = self.start(sim, drain="30s")
        slow = self.ask(gateway, sim, modelPreferences={"hints": [{"name": SLOW}]}, timeout_s=60,
                        headers={"Sluice-Timeout": "4000"})
        self.terminate(gateway)
        for http2 in (False, True):
            answer = gateway.sample("hello", http2=http2)
            self.assert_result(answer)
        self.assertEqual(gateway.get("/healthz").status, 200)
        self.assertEqual(gateway.reload().status, 503)
        self.assert_error(slow.result(), 504)
        self.assert_ends(gateway, 10)

    def test_connections_that_are_kept_are_sent_elsewhere(self):
        sim = self.sim()
        gateway = self.start(sim, drain="30s")
        parts = urllib.parse.urlsplit(gateway.url)
        kept = http.client.HTTPConnection(parts.hostname, parts.port, timeout=harness.PATIENCE_S)
        self.addCleanup(kept.close)
        headers = []
        for step in (lambda: None, lambda: self.terminate(gateway)):
            step()
            kept.request("POST", "/v1/sampling", message(), FIELDS)
            answer = kept.getresponse()
            self.assertEqual((answer.status, answer.read()[:1]), (200, b"{"))
            headers.append(answer.getheader("Connection", "keep-alive"))
        self.assertEqual(headers, ["keep-alive", "close"])
        self.assert_ends(gateway, 10)


class InFlight(DrainCase):
    def test_requests_at_the_provider_are_answered(self):
        sim = self.sim("--latency", "1500ms")
        gateway = self.start(sim, drain="20s")
        asking = [self.ask(gateway, sim, http2=http2) for http2 in (False, True)]
        self.terminate_and_wait(gateway)
        for one in asking:
            self.assert_result(one.result())
        self.assert_ends(gateway, 10)
        for one in asking:
            request_id = one.outcome.headers["sluice-request-id"]
            self.assertTrue(any(request_id in line for line in gateway.stdout), "its line is written")
        with self.assertRaises(OSError):
            gateway.get("/healthz")

    def test_an_upload_over_http1_is_taken_and_answered(self):
        gateway = self.start(self.sim(), drain="20s")
        body = message("x" * 100000)
        head = "POST /v1/sampling HTTP/1.1\r\nHost: gateway\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in FIELDS.items())
        with connect(gateway) as peer:
            peer.sendall(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:50000])
            self.terminate_and_wait(gateway)
            peer.sendall(body[50000:])
            answer = b""
            while piece := peer.recv(65536):
                answer += piece
        self.assertTrue(answer.startswith(b"HTTP/1.1 200 "), answer)
        self.assertIn(b'"result"', answer)
        self.assert_ends(gateway, 10)

    def test_an_upload_over_http2_is_taken_and_answered(self):
        """libh2o would ignore the rest of the body a second after its first GOAWAY."""
        gateway = self.start(self.sim(), drain="30s")
        body = message("x" * 100000)
        with h2_client.Client(gateway.url) as client:
            client.request(1, "/v1/sampling", FIELDS, body[:50000], end=False)
            self.terminate_and_wait(gateway)
            client.wait(lambda c: c.count(h2_client.GOAWAY), "the first GOAWAY")
            before = time.monotonic()
            while client.read(timeout_s=2.5):  # nothing more is said until the body is complete
                self.assertEqual((client.closed, client.count(h2_client.GOAWAY)), (False, 1))
            self.assertGreater(time.monotonic() - before, 2)
            client.data(1, body[50000:])
            self.assertIn(b'"result"', client.answer(1))
            client.read_to_end()
            self.assertEqual(client.count(h2_client.GOAWAY), 2)
        self.assert_ends(gateway, 10)

    def test_an_answer_that_is_read_slowly_arrives_whole(self):
        """Of more bytes than a kernel takes off a gateway's hands: it must live to write the rest."""
        size = most_of_a_send_buffer() + (4 << 20)
        sim = self.sim("--size", str(size))
        gateway = self.start(sim, drain="30s")
        body = message()
        head = "POST /v1/sampling HTTP/1.1\r\nHost: gateway\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in FIELDS.items())
        parts = urllib.parse.urlsplit(gateway.url)
        with socket.socket() as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            peer.settimeout(harness.PATIENCE_S)
            peer.connect((parts.hostname, parts.port))
            peer.sendall(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = peer.recv(4096)
            self.assertTrue(answer.startswith(b"HTTP/1.1 200 "), answer)
            self.terminate_and_wait(gateway)
            self.assertTrue(gateway.running)
            while piece := peer.recv(65536):
                answer += piece
        head, _, rest = answer.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                      if line.startswith(b"content-length:"))
        self.assertGreater(length, size)
        self.assertEqual(len(rest), length)
        self.assert_ends(gateway, 10)


class UnderTls(DrainCase):
    def serve(self):
        """A gateway with a second listener, and a function that makes contexts of its callers."""
        authority = tls_client.Authority(self.directory())
        cert, key = authority.issue("DNS:localhost")
        settings = harness.config(self.sim(), drain="30s")
        settings["listen"] = [{"address": f"127.0.0.1:{harness.free_port()}"},
                              {"address": f"127.0.0.1:{harness.free_port()}", "tls": {"cert": cert, "key": key}}]
        gateway = self.gateway(settings)
        gateway.tls_port = int(settings["listen"][1]["address"].rpartition(":")[2])
        return gateway, authority.context

    def test_uploads_are_taken_and_answered_and_who_is_idle_is_closed(self):
        gateway, context = self.serve()
        body, tls_url = message("x" * 100000), f"https://127.0.0.1:{gateway.tls_port}"
        head = "POST /v1/sampling HTTP/1.1\r\nHost: gateway\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in FIELDS.items()) + f"Content-Length: {len(body)}\r\n\r\n"
        with tls_client.Client(gateway.tls_port, context()) as idle, \
                tls_client.Client(gateway.tls_port, context()) as uploading, \
                tls_client.Client(gateway.tls_port, context(), shake=False) as opening, \
                h2_client.Client(tls_url, context=context(alpn=("h2",))) as idle_h2, \
                h2_client.Client(tls_url, context=context(alpn=("h2",))) as uploading_h2:
            self.assert_result(idle.post(message()))
            idle_h2.request(1, "/v1/sampling", FIELDS, message())
            self.assertIn(b'"result"', idle_h2.answer(1))
            uploading.socket.sendall(head.encode() + body[:50000])
            uploading_h2.request(1, "/v1/sampling", FIELDS, body[:50000], end=False)
            self.terminate_and_wait(gateway)
            self.assertEqual(idle.socket.recv(1), b"")
            for client in (idle_h2, uploading_h2):
                client.wait(lambda c: c.count(h2_client.GOAWAY) == 1, "the first GOAWAY")
            with self.assertRaises(OSError):
                tls_client.Client(gateway.tls_port, context())
            self.assertEqual(opening.socket.recv(1), b"")
            uploading.socket.sendall(body[50000:])
            answer = uploading.answer()
            self.assert_result(answer)
            self.assertEqual((answer.headers["connection"], uploading.socket.recv(1)), ("close", b""))
            self.assertTrue(gateway.running)
            uploading_h2.data(1, body[50000:])
            self.assertIn(b'"result"', uploading_h2.answer(1))
            for client in (idle_h2, uploading_h2):
                client.read_to_end()
                self.assertEqual(client.count(h2_client.GOAWAY), 2)
        self.assert_ends(gateway, 10)


class Deadline(DrainCase):
    def test_what_does_not_end_is_told_so(self):
        sim = self.sim()
        gateway = self.start(sim, drain="2s")
        hint = {"hints": [{"name": SLOW}]}
        asking = [self.ask(gateway, sim, modelPreferences=hint, http2=http2) for http2 in (False, True)]
        began = time.monotonic()
        gateway.send(signal.SIGTERM)
        for one in asking:
            self.assert_error(one.result(), 503, 503, "draining")
        self.assertEqual(gateway.wait(), 0, gateway.report())
        took = time.monotonic() - began
        self.assertGreater(took, 1.5)
        self.assertLess(took, 10, "the provider takes longer")
        self.assertTrue(any("2 requests are left" in line for line in gateway.stderr))
        lines = [json.loads(line) for line in gateway.stdout if line.startswith("{")]
        self.assertEqual([line["status"] for line in lines], [503, 503])

    def test_a_client_that_does_not_read_does_not_keep_it(self):
        sim = self.sim("--size", "14000000")  # more than the kernel takes
        gateway = self.start(sim, drain="2s")
        body = message()
        head = "POST /v1/sampling HTTP/1.1\r\nHost: gateway\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in FIELDS.items())
        with connect(gateway) as peer:
            peer.sendall(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            self.assertTrue(peer.recv(4096).startswith(b"HTTP/1.1 200 "))
            harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 1,
                             "an answer that has not left is in flight")
            gateway.send(signal.SIGTERM)
            self.assert_ends(gateway, 8)
        self.assertTrue(any("1 requests are cut off" in line for line in gateway.stderr), gateway.stderr)

    def test_a_second_interrupt_does_not_wait(self):
        sim = self.sim()
        gateway = self.start(sim, drain="60s")
        slow = self.ask(gateway, sim, modelPreferences={"hints": [{"name": SLOW}]}, timeout_s=60)
        gateway.send(signal.SIGINT)
        harness.wait_for(lambda: gateway.get("/readyz").status == 503, "readyz fails")
        self.assertEqual(gateway.metrics().find("sluice_draining"), [1])
        gateway.stop(signal.SIGINT, code=1)
        self.assertIsInstance(slow.result(), Exception)


class ServerAlone(DrainCase):
    """A signal to the server process, not to its supervisor: `kill` with the other pid of the two."""

    def hold(self, pid):
        """Stops a process, which is to go on before the test ends it."""
        def go_on():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(go_on)
        return go_on

    def wait_taken(self, pid, number):
        """Until that signal does not wait for that process any more."""
        def taken():
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                pending = int(re.search(r"ShdPnd:\s+([0-9a-f]+)", file.read())[1], 16)
            return pending >> (number - 1) & 1 == 0
        harness.wait_for(taken, f"signal {number} is taken by {pid}")

    def slow(self, **changes):
        """A gateway and a request that it has for a second and a half, at least."""
        sim = self.sim("--latency", "1500ms")
        gateway = self.start(sim, drain="20s", **changes)
        return gateway, gateway.server_pid(), self.ask(gateway, sim)

    def assert_drained(self, gateway, asking):
        self.assert_result(asking.result())
        self.assert_ends(gateway, 10)
        self.assertEqual([line for line in gateway.stderr if "next start" in line or "again" in line], [])
        self.assertEqual(len([line for line in gateway.stderr if "draining" in line]), 1, gateway.stderr)

    def test_it_is_the_whole_gateway_that_drains_and_ends(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number.name):
                gateway, server, asking = self.slow()
                os.kill(server, number)
                gateway.wait_stderr("the server process was told to end: so does the gateway")
                os.kill(server, number)
                self.assert_drained(gateway, asking)

    @unittest.skipUnless(os.geteuid() == 0, "wants root")
    def test_a_server_that_is_nobody_can_say_so_too(self):
        gateway, server, asking = self.slow(user="nobody")
        os.kill(server, signal.SIGTERM)
        self.assert_drained(gateway, asking)

    def test_ctrl_c_in_a_terminal_reaches_both_and_is_one_interrupt(self):
        for first in ("supervisor", "server"):
            with self.subTest(first):
                gateway, server, asking = self.slow()
                late = server if first == "supervisor" else gateway.pid
                go_on = self.hold(late)
                for pid in (gateway.pid, server):
                    os.kill(pid, signal.SIGINT)
                self.wait_taken(gateway.pid if late == server else server, signal.SIGINT)
                go_on()
                self.assert_drained(gateway, asking)

    def test_the_supervisors_own_signal_is_not_lost_in_one_that_waits(self):
        gateway, server, asking = self.slow()
        go_on = self.hold(server)
        for pid in (server, gateway.pid):
            os.kill(pid, signal.SIGTERM)
        self.wait_taken(gateway.pid, signal.SIGTERM)
        go_on()
        self.assert_drained(gateway, asking)


class Caller(threading.Thread):
    """What a simple client with two addresses does: one request after the other, by turns; where nobody
    listens it tries the next. Anything else that goes wrong is a request lost."""

    def __init__(self, addresses, keep):
        super().__init__()
        self.addresses, self.keep = addresses, keep
        self.kept, self.answered, self.refused, self.lost = {}, 0, 0, []
        self.going = True
        self.start()

    def connection(self, address):
        """A kept one that is not closed by now, or a new one."""
        kept = self.kept.pop(address, None)
        if kept is not None:
            kept.sock.setblocking(False)
            try:
                kept.sock.recv(1)  # the end, or what nobody asked for
                kept.close()
            except BlockingIOError:
                kept.sock.settimeout(harness.PATIENCE_S)
                return kept
        fresh = http.client.HTTPConnection(*address, timeout=harness.PATIENCE_S)
        fresh.connect()
        return fresh

    def ask(self, address):
        connection = self.connection(address)
        try:
            connection.request("POST", "/v1/sampling", message(), FIELDS)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                raise harness.Failure(f"{answer.status} {body!r}")
            self.answered += 1
            if self.keep and not answer.will_close:
                self.kept[address] = connection
                connection = None
        finally:
            if connection is not None:
                connection.close()

    def run(self):
        turn = 0
        while self.going:
            turn += 1
            try:
                self.ask(self.addresses[turn % len(self.addresses)])
            except ConnectionRefusedError:
                self.refused += 1
            except (OSError, http.client.HTTPException, harness.Failure) as error:
                self.lost.append((time.monotonic(), error))
        for connection in self.kept.values():
            connection.close()

    def stop(self):
        self.going = False
        self.join()


class RollingRestart(DrainCase):
    ROUNDS = int(os.environ.get("ROLLING_ROUNDS", "2"))

    def restart(self, gateway, callers):
        """Ends it, and starts another in its place when its callers have noticed."""
        refused = sum(caller.refused for caller in callers)
        gateway.stop()
        self.assertEqual([line for line in gateway.stderr if "cannot be held off" in line], [])
        harness.wait_for(lambda: sum(caller.refused for caller in callers) > refused, "callers notice")
        return self.gateway(gateway.settings)

    def roll(self, keep, **changes):
        sim = self.sim("--latency", "20ms")
        gateways = [self.start(sim, drain="3s", workers=2, **changes) for _ in range(2)]
        addresses = [(parts.hostname, parts.port) for parts in
                     (urllib.parse.urlsplit(gateway.url) for gateway in gateways)]
        callers = [Caller(addresses, keep) for _ in range(4)]

        def answered():
            return sum(caller.answered for caller in callers)
        try:
            for _ in range(self.ROUNDS):
                for i, gateway in enumerate(gateways):
                    before = answered()
                    harness.wait_for(lambda: answered() >= before + 50, "requests are answered")
                    gateways[i] = self.restart(gateway, callers)
        finally:
            for caller in callers:
                caller.stop()
        lost = [lost for caller in callers for lost in caller.lost]
        refused = sum(caller.refused for caller in callers)
        print(f"{self.ROUNDS * len(gateways)} restarts: {answered()} answered, {refused} went to the other, "
              f"{len(lost)} lost")
        self.assertEqual(lost, [])

    def test_a_client_that_connects_for_each_request_loses_none(self):
        self.roll(keep=False)

    def test_a_client_that_keeps_its_connections_loses_none(self):
        self.roll(keep=True)

    @unittest.skipUnless(os.geteuid() == 0 and not SANITIZED, "wants root and no sanitizer")
    def test_gateways_that_are_nobody_lose_none(self):
        self.roll(keep=False, user="nobody")


if __name__ == "__main__":
    harness.main()
