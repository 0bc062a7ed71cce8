"""gateway/upstream/upstream.h over TLS: names, authorities, resumption, records; through upstream_probe."""

import os
import ssl
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import upstream  # noqa: E402
from upstream import OK, answering, once  # noqa: E402


class Tls(upstream.Case):
    VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)

    def context(self, version, names):
        cert, key = self.certificate(names=names)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        context.minimum_version = context.maximum_version = version
        return context, cert

    def test_only_the_right_name_gets_the_request(self):
        rows = (("localhost", ("DNS:localhost",), True), ("localhost", ("DNS:evil.test",), False),
                ("a.provider.test", ("DNS:*.provider.test",), True),
                ("127.0.0.1", ("IP:127.0.0.1",), True), ("127.0.0.1", ("IP:127.0.0.9",), False),
                ("127.0.0.1", ("DNS:127.0.0.1",), False))
        for version in self.VERSIONS:
            for host, names, right in rows:
                with self.subTest(version=version, host=host, names=names):
                    context, ca = self.context(version, names)
                    served = []

                    def serve(peer, _, served=served):
                        while peer.request() is not None:
                            served.append(peer.sock.version())
                            peer.send(OK)
                    server, probe = self.server(serve, context=context), self.probe(idle=0)
                    self.assertIsNone(probe.pool(server, host=host, ca=ca))
                    probe.ask("resolve", "p", "127.0.0.1")
                    for _ in range(2):  # the second may not profit from the first
                        event = probe.call()
                        if right:
                            self.assert_ok(event)
                        else:
                            self.assert_err(event, "provider_unavailable", "mismatch")
                            self.assertFalse(event["bytes_sent"])
                    self.assertEqual(len(served), 2 if right else 0)

    def test_a_certificate_of_another_ca_is_refused(self):
        for version in self.VERSIONS:
            context, _ = self.context(version, ("DNS:localhost",))
            server, probe = self.server(answering(), context=context), self.probe()
            self.assertIsNone(probe.pool(server, host="localhost", ca=self.certificate()[0]))
            probe.ask("resolve", "p", "127.0.0.1")
            event = probe.call()
            self.assert_err(event, "provider_unavailable", "certificate")
            self.assertFalse(event["bytes_sent"])

    def test_a_call_that_is_not_a_providers_uses_a_kept_connection_and_notices_its_end(self):
        for version in self.VERSIONS:
            with self.subTest(version=version):
                context, ca = self.context(version, ("DNS:localhost",))

                def serve(peer, n):
                    for _ in range(3 if n == 0 else 9):
                        if peer.request() is not None:
                            peer.send(OK)
                server, probe = self.server(serve, context=context), self.probe()
                self.assertIsNone(probe.pool(server, host="localhost", ca=ca))
                probe.ask("resolve", "p", "127.0.0.1")
                for _ in range(3):
                    self.assert_ok(probe.call(kind="any"))
                self.assertEqual(server.accepted, 1)
                probe.wait_count(idle=0)
                self.assert_ok(probe.call(kind="any"))
                self.assertEqual(server.accepted, 2)

    def test_the_second_connection_resumes_the_session(self):
        for version in self.VERSIONS:
            for host in ("localhost", "127.0.0.1"):
                with self.subTest(version=version, host=host):
                    context, ca = self.context(version, ("DNS:localhost", "IP:127.0.0.1"))
                    resumed = []

                    def serve(peer, _, resumed=resumed):
                        peer.request()
                        resumed.append(peer.sock.session_reused)
                        peer.send(OK)
                        peer.wait_end()
                    server = self.server(serve, context=context)
                    probe = self.probe(idle=0)
                    self.assertIsNone(probe.pool(server, host=host, ca=ca))
                    probe.ask("resolve", "p", "127.0.0.1")
                    for _ in range(3):
                        self.assert_ok(probe.call())
                    self.assertEqual(resumed, [False, True, True])

    def test_the_session_of_a_call_that_was_given_up_is_resumed(self):
        for version in self.VERSIONS:
            with self.subTest(version=version):
                context, ca = self.context(version, ("DNS:localhost",))
                resumed = []

                def serve(peer, n, resumed=resumed):
                    peer.request()
                    resumed.append(peer.sock.session_reused)
                    peer.send(OK[:-1] if n == 0 else OK)
                    peer.wait_end()
                server = self.server(serve, context=context)
                probe = self.probe(idle=0)
                self.assertIsNone(probe.pool(server, host="localhost", ca=ca))
                probe.ask("resolve", "p", "127.0.0.1")
                given_up = probe.start()
                probe.wait_state(given_up, "body")
                probe.ask("cancel", given_up)
                self.assert_ok(probe.call())
                self.assertEqual(resumed, [False, True])

    def test_big_requests_and_answers_pass_and_connections_are_kept(self):
        body = os.urandom(900000)
        for version in self.VERSIONS:
            context, ca = self.context(version, ("IP:127.0.0.1",))
            sizes = []

            def serve(peer, _, sizes=sizes):
                while (request := peer.request()) is not None:
                    sizes.append(len(request[1]))
                    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n" + body)
            server, probe = self.server(serve, context=context), self.probe()
            self.assertIsNone(probe.pool(server, ca=ca))
            for _ in range(3):
                self.assert_ok(probe.call(body=3 << 20), body)
            self.assertEqual(sizes, [3 << 20] * 3)
            self.assertEqual(server.accepted, 1)

    def test_a_body_until_close_needs_close_notify(self):
        answer = b"HTTP/1.1 200 OK\r\n\r\nhello"
        for version in self.VERSIONS:
            for orderly in (True, False):
                with self.subTest(version=version, orderly=orderly):
                    context, ca = self.context(version, ("IP:127.0.0.1",))

                    def serve(peer, _, orderly=orderly):
                        peer.request()
                        peer.send(answer)
                        if orderly:
                            peer.sock.unwrap()
                    server, probe = self.server(serve, context=context), self.probe()
                    self.assertIsNone(probe.pool(server, ca=ca))
                    event = probe.call()
                    if orderly:
                        self.assert_ok(event, b"hello")
                    else:
                        self.assert_err(event, "provider_unavailable", "cut short")

    def test_a_peer_without_tls_is_refused(self):
        server, probe = self.server(once(OK)), self.probe()
        self.assertIsNone(probe.pool(server, ca=self.certificate()[0]))
        event = probe.call(connect=2000)
        self.assertEqual(event["err"], "provider_unavailable", event)
        self.assertFalse(event["bytes_sent"])

    def test_a_ca_that_cannot_be_used_is_told_in_words(self):
        path = os.path.join(self.directory(), "ca.pem")
        with open(path, "w", encoding="utf-8") as file:
            file.write("nothing\n")
        server, probe = self.server(answering()), self.probe()
        self.assertIn("no certificate", probe.pool(server, ca=path))


if __name__ == "__main__":
    harness.main()
