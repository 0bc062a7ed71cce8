"""Listeners with TLS, and callers that show certificates, through the real binary.

What hostile clients do under TLS is in test_edge (every case runs under TLS, too) and test_attacks.
ctest: worker timeout=240
"""

import os
import selectors
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import tls_client  # noqa: E402
from tls_client import VERSIONS, Authority, Client, curl, message  # noqa: E402

SERVER_NAMES = ("DNS:localhost", "IP:127.0.0.1")
OTHER_KEY = "sk-other-0123456789abcdef"


class TlsCase(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.home = harness.tempfile.mkdtemp(prefix="sluice-test-")
        cls.authority = Authority(cls.home)
        cls.callers = Authority(cls.home, "callers")
        cls.strangers = Authority(cls.home, "strangers")
        cls.certificate_files = cls.authority.issue(*SERVER_NAMES)
        cls.acme = cls.callers.issue("URI:spiffe://mesh/acme/billing")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.home)

    def serve(self, sim, asks=False, files=None, **changes):
        """A gateway with a clear and a TLS listener; `asks` for callers' certificates."""
        settings = harness.config(sim, **changes)
        cert, key = files or self.certificate_files
        tls = {"cert": cert, "key": key, **({"client_ca": self.callers.cert} if asks else {})}
        settings["listen"] = [{"address": f"127.0.0.1:{harness.free_port()}"},
                              {"address": f"127.0.0.1:{harness.free_port()}", "tls": tls}]
        gateway = self.gateway(settings)
        gateway.port = int(settings["listen"][1]["address"].rpartition(":")[2])
        return gateway

    def named(self, sim, names=("spiffe://mesh/acme/billing",), **changes):
        """Two tenants; the first has these names."""
        tenants = [{**harness.tenant("acme", harness.KEY), "names": list(names)}, harness.tenant("other", OTHER_KEY)]
        return self.serve(sim, asks=True, tenants=tenants, **changes)

    def handshakes(self, gateway):
        return {result: gateway.metrics().sum("sluice_tls_handshakes_total", result=result)
                for result in ("full", "resumed", "failed")}

    def wait_answered(self, gateway, count, **labels):
        """A request is counted when its answer has left, which the caller may see before."""
        harness.wait_for(lambda: gateway.metrics().sum("sluice_requests_total", outcome="ok", **labels) == count,
                         f"{count} answers counted")

    def assert_refused(self, gateway, alert, context):
        """The handshake fails, by that alert; under 1.3 a client learns that when it reads."""
        before = self.handshakes(gateway)["failed"]
        with self.assertRaisesRegex((ssl.SSLError, OSError), f"(?i){alert}"):
            with Client(gateway.port, context) as client:
                client.socket.recv(1)
        self.assertEqual(self.handshakes(gateway)["failed"], before + 1)


# ---- protocols ----------------------------------------------------------------------------------

class Listener(TlsCase):
    def test_both_versions_answer_over_http2_and_http1(self):
        gateway = self.serve(self.sim())
        for tls in ("1.2", "1.3"):
            for option, version in (("--http2", "2"), ("--http1.1", "1.1")):
                with self.subTest(tls=tls, http=version):
                    answer, spoken = curl(gateway.port, self.authority.cert, message(), option, f"--tlsv{tls}",
                                          "--tls-max", tls)
                    self.assert_result(answer)
                    self.assertEqual(spoken, version)
        self.assertEqual(self.handshakes(gateway), {"full": 4, "resumed": 0, "failed": 0})
        self.assert_result(gateway.sample())  # the clear listener beside it

    def test_alpn_chooses_and_is_not_needed(self):
        gateway = self.serve(self.sim())
        for offered, chosen in ((["h2", "http/1.1"], "h2"), (["http/1.1", "h2"], "h2"), (["http/1.1"], "http/1.1"),
                                (["x", "http/1.1"], "http/1.1"), ([], None)):
            for version in VERSIONS:
                with self.subTest(offered=offered, version=version):
                    with Client(gateway.port, self.authority.context(version, offered)) as client:
                        self.assertEqual(client.socket.selected_alpn_protocol(), chosen)
                        if chosen != "h2":
                            self.assert_result(client.post(message()))

    def test_what_is_not_spoken_is_refused_by_an_alert(self):
        gateway = self.serve(self.sim())
        for version in VERSIONS:
            self.assert_refused(gateway, "no application protocol", self.authority.context(version, ["spdy/1"]))
        run = subprocess.run(["openssl", "s_client", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0", "-connect",
                              f"127.0.0.1:{gateway.port}"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        self.assertIn(b"alert protocol version", run.stderr)

    def test_clear_text_on_a_tls_listener_and_the_other_way_round(self):
        gateway = self.serve(self.sim())
        with socket.create_connection(("127.0.0.1", gateway.port), harness.PATIENCE_S) as clear:
            clear.sendall(b"POST /v1/sampling HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
            self.assertNotIn(b"HTTP/", clear.recv(4096))
        plain = int(gateway.settings["listen"][0]["address"].rpartition(":")[2])
        with self.assertRaises((ssl.SSLError, OSError)):
            Client(plain, self.authority.context())
        self.assert_result(gateway.sample())

    def test_bodies_of_megabytes_pass_both_ways_and_connections_are_kept(self):
        gateway = self.serve(self.sim("--size", "2000000"),
                             models=[harness.model("claude-test", "anthropic", context=100000000)])
        body = message("x" * (3 << 20))
        for version in VERSIONS:
            with Client(gateway.port, self.authority.context(version)) as client:
                for _ in range(3):
                    result = self.assert_result(client.post(body))
                    self.assertEqual(len(harness.text_of(result)), 2000000)
            answer, _ = curl(gateway.port, self.authority.cert, body, "--http2")
            self.assertEqual(len(harness.text_of(self.assert_result(answer))), 2000000)

    def records_of_an_answer(self, gateway, context):
        """Lengths of the TLS records that bring the second answer of a connection."""
        incoming, outgoing, raw = ssl.MemoryBIO(), ssl.MemoryBIO(), bytearray()
        client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        body = message()
        head = (f"POST /v1/sampling HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Authorization: Bearer {harness.KEY}\r\nContent-Length: {len(body)}\r\n\r\n").encode()
        with socket.create_connection(("127.0.0.1", gateway.port), harness.PATIENCE_S) as peer:
            def until(call):
                while True:
                    try:
                        result = call()
                        peer.sendall(outgoing.read())
                        return result
                    except ssl.SSLWantReadError:
                        peer.sendall(outgoing.read())
                        data = peer.recv(65536)
                        raw.extend(data)
                        incoming.write(data)
            until(client.do_handshake)
            for _ in range(2):
                raw.clear()
                until(lambda: client.write(head + body))
                answer = b""
                while not answer.endswith(b"}}}"):
                    answer += until(lambda: client.read(65536))
        lengths = []
        while raw:
            lengths.append(int.from_bytes(raw[3:5], "big"))
            del raw[:5 + lengths[-1]]
        return lengths

    def test_an_answer_is_sealed_in_few_records(self):
        """libh2o would make one of every slice, of which an answer has dozens, and none over 1,400 bytes."""
        gateway = self.serve(self.sim("--size", "10000"))
        for version in VERSIONS:
            lengths = self.records_of_an_answer(gateway, self.authority.context(version))
            self.assertLessEqual(len(lengths), 2, lengths)
            self.assertGreater(sum(lengths), 10000)

    def test_keys_are_changed_in_the_middle_of_a_connection(self):
        gateway = self.serve(self.sim())
        request = message()
        head = (f"POST /v1/sampling HTTP/1.1\nHost: localhost\nContent-Type: application/json\n"
                f"Authorization: Bearer {harness.KEY}\nContent-Length: {len(request)}\n\n").encode()
        client = subprocess.Popen(["openssl", "s_client", "-tls1_3", "-crlf", "-connect", f"127.0.0.1:{gateway.port}"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output = []
        reader = threading.Thread(target=lambda: output.extend(iter(client.stdout.readline, b"")))
        reader.start()

        def say(text, seen, count):
            client.stdin.write(text)
            client.stdin.flush()
            harness.wait_for(lambda: b"".join(output).count(seen) == count, f"{seen} in {output[-5:]}")
        try:
            say(head + request + b"\n", b"HTTP/1.1 200 OK", 1)
            say(b"K\n", b"KEYUPDATE", 1)  # and you, too
            say(head + request + b"\n", b"HTTP/1.1 200 OK", 2)
            say(b"k\n", b"KEYUPDATE", 2)
            say(head + request + b"\n", b"HTTP/1.1 200 OK", 3)
        finally:
            client.kill()
            client.wait()
            reader.join()
            client.stdin.close()
            client.stdout.close()

    def test_a_client_that_says_goodbye_stops_its_provider_call(self):
        gateway = self.serve(self.sim("--latency", "60s"))
        for version in VERSIONS:
            client = Client(gateway.port, self.authority.context(version))
            before = gateway.metrics().sum("sluice_requests_total", outcome="cancelled")
            client.send(message())
            harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 1, "in flight")
            client.socket.setblocking(False)
            try:
                client.socket.unwrap()  # close_notify; the socket stays open
            except ssl.SSLError:
                pass
            harness.wait_for(lambda n=before: gateway.metrics().sum("sluice_requests_total", outcome="cancelled") == n + 1,
                             "cancelled")
            client.socket.close()

    def test_a_drain_finishes_what_is_in_flight_and_closes_the_rest(self):
        gateway = self.serve(self.sim("--latency", "1s"), drain="20s")
        with Client(gateway.port, self.authority.context()) as idle, \
                Client(gateway.port, self.authority.context()) as busy:
            self.assert_result(idle.post(message()))
            busy.send(message())
            harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 1, "in flight")
            gateway.send(signal.SIGTERM)
            self.assert_result(busy.answer())
            self.assertEqual(idle.socket.recv(1), b"")
        gateway.stop()


# ---- callers' certificates ----------------------------------------------------------------------

class Certificates(TlsCase):
    def test_a_certificate_leads_to_its_tenant(self):
        gateway = self.named(self.sim())
        for tls in ("1.2", "1.3"):
            for option in ("--http2", "--http1.1"):
                with self.subTest(tls=tls, http=option):
                    answer, _ = curl(gateway.port, self.authority.cert, message(), option, f"--tlsv{tls}", "--tls-max",
                                     tls, key=None, certificate=self.acme)
                    self.assert_result(answer)
        self.wait_answered(gateway, 4, tenant="acme")
        with Client(gateway.port, self.authority.context(certificate=self.acme)) as client:
            answer = client.post(message(), key=None)
        line = gateway.log(answer.headers["sluice-request-id"])
        self.assertEqual((line["tenant"], line["server"]), ("acme", "spiffe://mesh/acme/billing"))

    def test_only_verified_names_of_the_configured_kind_count(self):
        rows = (
            ("uri", ("URI:spiffe://mesh/acme/billing",), "acme"),
            ("uri", ("DNS:host.example", "URI:spiffe://mesh/acme/billing"), "acme"),
            ("uri", ("URI:other",), "other"),  # without names of its own a tenant has its id
            ("uri", ("URI:acme",), None),
            ("uri", ("URI:spiffe://mesh/nobody",), None),
            ("uri", ("DNS:acme.example",), None),
            ("uri", ("URI:spiffe://mesh/acme/billing", "URI:other"), None),
            ("dns", ("DNS:Acme.Example",), "acme"),
            ("dns", ("URI:spiffe://mesh/acme/billing",), None),
        )
        sim = self.sim()
        for kind in ("uri", "dns"):
            gateway = self.named(sim, names=("spiffe://mesh/acme/billing", "acme.example"),
                                 identity={"certificates": {"san": kind}})
            for _, names, tenant in (row for row in rows if row[0] == kind):
                with self.subTest(kind=kind, names=names):
                    context = self.authority.context(certificate=self.callers.issue(*names))
                    with Client(gateway.port, context) as client:
                        answer = client.post(message(), key=None)
                    if tenant is None:
                        self.assert_error(answer, 401, reason="unauthorized")
                    else:
                        self.assert_result(answer)
                        self.assertEqual(gateway.log(answer.headers["sluice-request-id"])["tenant"], tenant)

    def test_a_certificate_of_another_authority_is_refused(self):
        gateway = self.named(self.sim())
        stranger = self.strangers.issue("URI:spiffe://mesh/acme/billing")
        for version in VERSIONS:
            self.assert_refused(gateway, "unknown ca", self.authority.context(version, certificate=stranger))
        self.assertEqual(gateway.metrics().sum("sluice_requests_total"), 0)

    def test_without_a_certificate_a_key_is_enough_and_nothing_is_not(self):
        gateway = self.named(self.sim())
        for version in VERSIONS:
            with Client(gateway.port, self.authority.context(version)) as client:
                self.assert_result(client.post(message(), key=OTHER_KEY))
                self.assert_error(client.post(message(), key=None), 401, reason="unauthorized")

    def test_a_key_goes_before_a_certificate_and_a_wrong_one_is_wrong(self):
        gateway = self.named(self.sim())
        with Client(gateway.port, self.authority.context(certificate=self.acme)) as client:
            answer = client.post(message(), key=OTHER_KEY)
            self.assertEqual(gateway.log(answer.headers["sluice-request-id"])["tenant"], "other")
            self.assert_error(client.post(message(), key="sk-wrong-0123456789abcdef"), 401, reason="unauthorized")
            self.assert_error(client.post(message(), key=None, headers={"Authorization": "Basic eDp5"}), 401)
            self.assert_result(client.post(message(), key=None))

    def test_a_certificate_that_nobody_asked_for_says_nothing(self):
        gateway = self.serve(self.sim(), tenants=[{**harness.tenant("acme", harness.KEY),
                                                   "names": ["spiffe://mesh/acme/billing"]}])
        with Client(gateway.port, self.authority.context(certificate=self.acme)) as client:
            self.assert_error(client.post(message(), key=None), 401, reason="unauthorized")

    def test_a_tenant_that_loses_its_name_is_refused_on_connections_that_are_open(self):
        gateway = self.named(self.sim())
        with Client(gateway.port, self.authority.context(certificate=self.acme)) as client:
            self.assert_result(client.post(message(), key=None))
            for change in ({"names": ["spiffe://mesh/elsewhere"]},
                           {"names": ["spiffe://mesh/acme/billing"], "disabled": True}):
                gateway.settings["tenants"][0].update(change)
                gateway.write_config(gateway.settings)
                self.assertEqual(gateway.reload().status, 200)
                harness.wait_for(lambda: client.post(message(), key=None).status == 401, "refused")


# ---- sessions -----------------------------------------------------------------------------------

class Sessions(TlsCase):
    def open_one(self, gateway, context):
        """A session of a caller who has been answered."""
        with Client(gateway.port, context) as client:
            self.assert_result(client.post(message(), key=None))
            self.assertFalse(client.resumed)
            return client.session

    def resume(self, gateway, context, session):
        """Whether the session is resumed; the caller is known either way."""
        with Client(gateway.port, context, session) as client:
            self.assert_result(client.post(message(), key=None))
            return client.resumed

    def test_a_session_is_resumed_by_every_worker_and_its_certificate_with_it(self):
        gateway = self.named(self.sim(), workers=4)
        for version in VERSIONS:
            context = self.authority.context(version, certificate=self.acme)
            session = self.open_one(gateway, context)
            for _ in range(24):  # by chance on all four
                self.assertTrue(self.resume(gateway, context, session))
        self.assertEqual(self.handshakes(gateway), {"full": 2, "resumed": 48, "failed": 0})
        self.wait_answered(gateway, 50, tenant="acme")

    def test_a_session_outlives_reloads_and_a_crash(self):
        gateway = self.named(self.sim())
        contexts = [self.authority.context(version, certificate=self.acme) for version in VERSIONS]
        sessions = [self.open_one(gateway, context) for context in contexts]
        cert, key = self.authority.issue(*SERVER_NAMES)
        gateway.settings["listen"][1]["tls"].update(cert=cert, key=key)
        gateway.write_config(gateway.settings)
        self.assertEqual(gateway.reload().status, 200)
        for context, session in zip(contexts, sessions):
            self.assertTrue(self.resume(gateway, context, session))
        os.kill(gateway.server_pid(), signal.SIGKILL)
        harness.wait_for(lambda: gateway.ready() and gateway.metrics().sum("sluice_restarts_total") == 1, "restarted")
        for context, session in zip(contexts, sessions):
            self.assertTrue(self.resume(gateway, context, session))
        self.assertEqual(self.handshakes(gateway), {"full": 0, "resumed": 2, "failed": 0})

    def test_a_session_ends_with_the_authorities_that_it_began_under(self):
        gateway = self.named(self.sim())
        contexts = [self.authority.context(version, certificate=self.acme) for version in VERSIONS]
        sessions = [self.open_one(gateway, context) for context in contexts]
        wider = os.path.join(self.directory(), "wider.crt")
        with open(wider, "w", encoding="ascii") as file:
            for authority in (self.strangers, self.callers):
                with open(authority.cert, encoding="ascii") as one:
                    file.write(one.read())
        gateway.settings["listen"][1]["tls"]["client_ca"] = wider
        gateway.write_config(gateway.settings)
        self.assertEqual(gateway.reload().status, 200)
        for context, session in zip(contexts, sessions):
            harness.wait_for(lambda c=context, s=session: not self.resume(gateway, c, s), "a full handshake")
        gateway.settings["listen"][1]["tls"]["client_ca"] = self.strangers.cert
        gateway.write_config(gateway.settings)
        self.assertEqual(gateway.reload().status, 200)
        for context, session in zip(contexts, sessions):
            def refused(context=context, session=session):
                try:
                    return self.resume(gateway, context, session) and False
                except OSError:
                    return True
            harness.wait_for(refused, "refused, session or not")


# ---- reloads ------------------------------------------------------------------------------------

class Load:
    """Callers that connect, ask and leave, and others that stay; failures are kept."""

    def __init__(self, gateway, authority, threads=3):
        self.gateway, self.context = gateway, authority.context()
        self.failures, self.asked, self.over = [], 0, threading.Event()
        self.kept = [Client(gateway.port, self.context) for _ in range(2)]
        # Not later: a ticket that another thread takes in looks to OpenSSL like a handshake.
        self.serials = {client.serial() for client in self.kept}
        jobs = [self.come_and_go] * threads + [lambda c=client: self.stay(c) for client in self.kept]
        self.threads = [threading.Thread(target=job) for job in jobs]
        for thread in self.threads:
            thread.start()

    def ask(self, client):
        answer = client.post(message())
        self.asked += 1
        if answer.status != 200:
            self.failures.append(answer)

    def come_and_go(self):
        while not self.over.is_set():
            try:
                with Client(self.gateway.port, self.context) as client:
                    self.ask(client)
            except OSError as error:
                self.failures.append(error)

    def stay(self, client):
        while not self.over.is_set():
            try:
                self.ask(client)
            except OSError as error:
                self.failures.append(error)
                return

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join()
        for client in self.kept:
            client.socket.close()


class Reload(TlsCase):
    def serial_now(self, gateway):
        with Client(gateway.port, self.authority.context()) as client:
            return client.serial()

    def test_certificates_change_under_load_and_no_request_fails(self):
        gateway = self.serve(self.sim(), workers=2)
        pairs = [self.authority.issue(*SERVER_NAMES) for _ in range(2)]
        load = Load(gateway, self.authority)
        self.addCleanup(load.stop)
        (first,) = load.serials
        seen = set()
        for turn in range(20):
            cert, key = pairs[turn % 2]
            gateway.settings["listen"][1]["tls"].update(cert=cert, key=key)
            gateway.write_config(gateway.settings)
            self.assertEqual(gateway.reload().status, 200)
            harness.wait_for(lambda: self.serial_now(gateway) != first, "the new certificate")
            seen.add(self.serial_now(gateway))
            asked = load.asked
            harness.wait_for(lambda n=asked: load.asked > n + 10, "requests in between")
        load.stop()
        self.assertEqual(load.failures, [])
        self.assertEqual(len(seen), 2)
        self.assertEqual(self.handshakes(gateway)["failed"], 0)

    def test_a_connection_that_began_before_a_reload_may_shake_hands_after_it(self):
        gateway = self.serve(self.sim())
        before = self.serial_now(gateway)
        early = Client(gateway.port, self.authority.context(), shake=False)
        with early:
            harness.wait_for(lambda: gateway.metrics().sum("sluice_connections") >= 1, "accepted")
            cert, key = self.authority.issue(*SERVER_NAMES)
            gateway.settings["listen"][1]["tls"].update(cert=cert, key=key)
            for _ in range(3):  # the configuration it began under is gone
                gateway.write_config(gateway.settings)
                self.assertEqual(gateway.reload().status, 200)
            harness.wait_for(lambda: self.serial_now(gateway) != before, "the new certificate")
            early.shake()
            self.assert_result(early.post(message()))

    def test_a_certificate_that_cannot_be_used_leaves_the_one_in_force(self):
        gateway = self.serve(self.sim())
        before = self.serial_now(gateway)
        _, other_key = self.authority.issue(*SERVER_NAMES)
        gateway.settings["listen"][1]["tls"]["key"] = other_key
        gateway.write_config(gateway.settings)
        answer = gateway.reload()
        self.assertEqual(answer.status, 422)
        self.assertRegex(answer.body.decode(), r"sluice.json:\d+: listen\[1\].tls.key: .* is not the certificate's")
        self.assertEqual(self.serial_now(gateway), before)

    def test_a_listener_does_not_change_between_clear_text_and_tls(self):
        gateway = self.serve(self.sim())
        del gateway.settings["listen"][1]["tls"]
        gateway.write_config(gateway.settings)
        answer = gateway.reload()
        self.assertEqual(answer.status, 422)
        self.assertIn("listen", answer.body.decode())

    def test_a_file_that_is_replaced_is_noticed(self):
        directory = self.directory()
        files = [os.path.join(directory, name) for name in ("tls.crt", "tls.key")]
        for source, target in zip(self.certificate_files, files):
            shutil.copy(source, target)
        gateway = self.serve(self.sim(), files=files, reload_watch="100ms")
        before = self.serial_now(gateway)
        for source, target in zip(self.authority.issue(*SERVER_NAMES), files):
            shutil.copy(source, target + ".new")
            os.replace(target + ".new", target)
        harness.wait_for(lambda: self.serial_now(gateway) != before, "the new certificate")


# ---- clients that take their time ---------------------------------------------------------------

class Slow(TlsCase):
    def hello(self):
        """The bytes of a ClientHello."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = self.authority.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
        with self.assertRaises(ssl.SSLWantReadError):
            client.do_handshake()
        return outgoing.read()

    def test_a_goodbye_before_the_first_request_ends_the_connection(self):
        """What comes after it SSL_read would leave where it is, and libh2o would keep it all."""
        gateway = self.serve(self.sim())
        for version in VERSIONS:
            for protocol in ("h2", "http/1.1"):
                with Client(gateway.port, self.authority.context(version, [protocol])) as client:
                    begun = time.monotonic()
                    bare = socket.socket(fileno=os.dup(client.socket.fileno()))
                    with bare:
                        client.socket.setblocking(False)
                        try:
                            client.socket.unwrap()
                        except ssl.SSLError:
                            pass
                        bare.settimeout(harness.PATIENCE_S)
                        try:
                            while bare.recv(65536):
                                pass
                        except ConnectionResetError:
                            pass
                    self.assertLess(time.monotonic() - begun, 5)
        self.assertEqual(gateway.metrics().sum("sluice_guard_kills_total"), 0)

    def test_a_message_that_says_it_is_large_gets_no_room(self):
        """Up to 3.0.20 OpenSSL makes room for what a hello claims, and the gateway refuses that. Later versions make room for
        what has come and 16 KiB more, and the hello waits like any other. Little memory is held either way, and not for long."""
        gateway = self.serve(self.sim(), workers=1)
        pid, each = gateway.server_pid(), 40
        before_kb = harness.memory_kb(pid, "VmRSS")
        begun = time.monotonic()
        peers = []
        for claimed, sent in ((131000, 0), (131000, 16600), (131000, 40000), (33000, 0), (32000, 0)):
            hello = b"\x01" + claimed.to_bytes(3, "big") + b"\x03\x03" + bytes(sent)
            parts = [hello[at:at + 16384] for at in range(0, len(hello), 16384)]
            for _ in range(each):
                peer = socket.create_connection(("127.0.0.1", gateway.port), harness.PATIENCE_S)
                self.addCleanup(peer.close)
                peers.append((claimed, sent, peer))
                try:
                    peer.sendall(b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in parts))
                except OSError:  # it is closed already
                    pass
        ended = self.wait_closed({peer for _, _, peer in peers})
        for claimed, sent, peer in peers:
            with self.subTest(claimed=claimed, sent=sent):
                took = ended[peer] - begun
                self.assertLess(took, 5 if sent > 32 << 10 else 15)
                if claimed <= 32 << 10:  # it may be honest
                    self.assertGreater(took, 9)
        waited = sum(ended[peer] - begun > 9 for _, _, peer in peers)
        harness.wait_for(lambda: gateway.metrics().sum("sluice_guard_kills_total", cause="slow") == waited,
                         f"{waited} that waited are counted")
        if not os.environ.get("SLUICE_SANITIZE"):  # which keeps what is freed
            self.assertLess((harness.memory_kb(pid, "VmHWM") - before_kb) / len(peers), 100)
        with Client(gateway.port, self.authority.context()) as client:
            self.assert_result(client.post(message()))

    @staticmethod
    def wait_closed(peers):
        """When each of these sockets was closed by the gateway."""
        ended = {}
        with selectors.DefaultSelector() as selector:
            for peer in peers:
                selector.register(peer, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(harness.PATIENCE_S)
                if not ready:
                    raise harness.Failure(f"{len(selector.get_map())} connections stay open")
                for key, _ in ready:
                    try:
                        if key.fileobj.recv(4096):  # an alert
                            continue
                    except ConnectionResetError:
                        pass
                    ended[key.fileobj] = time.monotonic()
                    selector.unregister(key.fileobj)
        return ended

    def test_a_hello_in_more_and_more_records_is_closed_soon(self):
        """What has come is counted, whatever OpenSSL makes of it."""
        gateway = self.serve(self.sim())
        hello = b"\x01" + (32000).to_bytes(3, "big") + b"\x03\x03"
        begun = time.monotonic()
        with socket.create_connection(("127.0.0.1", gateway.port), harness.PATIENCE_S) as peer:
            peer.sendall(b"\x16\x03\x01" + len(hello).to_bytes(2, "big") + hello)
            for _ in range(6000):  # a byte each
                peer.sendall(b"\x16\x03\x01\x00\x01\x00")
            try:
                self.assertEqual(peer.recv(1), b"")
            except ConnectionResetError:
                pass
        self.assertLess(time.monotonic() - begun, 5)
        self.assertEqual(gateway.metrics().sum("sluice_guard_kills_total", cause="flood"), 1)
        with Client(gateway.port, self.authority.context()) as client:
            self.assert_result(client.post(message()))

    def test_a_handshake_has_ten_seconds_and_so_have_the_first_bytes_of_http(self):
        gateway = self.serve(self.sim())
        hello = self.hello()
        begun = time.monotonic()
        peers = {"nothing": b"", "a byte": hello[:1], "half a hello": hello[:len(hello) // 2], "a hello": hello}
        for name, first in peers.items():
            peers[name] = socket.create_connection(("127.0.0.1", gateway.port), harness.PATIENCE_S)
            peers[name].sendall(first)
        for protocol in ("h2", "http/1.1"):
            peers[protocol] = Client(gateway.port, self.authority.context(alpn=[protocol])).socket
        peers["a head"] = Client(gateway.port, self.authority.context()).socket
        peers["a head"].sendall(b"POST /v1/sampling HTTP/1.1\r\nHost: x\r\n")
        for name, peer in peers.items():
            with self.subTest(name):
                try:
                    while peer.recv(65536):
                        pass
                except ConnectionResetError:
                    pass
                self.assertGreater(time.monotonic() - begun, 9)
                self.assertLess(time.monotonic() - begun, 15)
                peer.close()
        self.assertEqual(gateway.metrics().sum("sluice_guard_kills_total", cause="slow"), len(peers))
        with Client(gateway.port, self.authority.context()) as client:
            self.assert_result(client.post(message()))


if __name__ == "__main__":
    harness.main()
