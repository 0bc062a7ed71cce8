"""Expect: 100-continue: who is refused gets the answer at once, without 100, and no body is taken from him.

Edge: http.h over libh2o with a handler of the tests' own (edge_echo), in clear text and under TLS. Gateway: the real one.
ctest: worker
"""
import json
import os
import re
import socket
import ssl
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import edge_client  # noqa: E402
import harness  # noqa: E402
from edge_client import Client, EdgeCase, h1, h1_answers  # noqa: E402

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Edge(EdgeCase):
    def early(self, edge, *requests):
        """What comes back to heads that wait for 100, up to the end of the connection."""
        with Client(edge) as client:
            client.send(b"".join(requests))
            return client.read_to_end()

    def test_who_is_refused_gets_no_100_and_sends_no_body(self):
        edge = self.edge("-b", 1000)
        expect = "Expect: 100-continue"
        head = h1("/early", b"x" * 999, expect)[:-999]
        for request in (head, head.replace(b"Content-Length: 999", b"Transfer-Encoding: chunked"),
                        head.replace(b"\r\n", b"\r\nExpect: 100-continue\r\n", 1),
                        h1("/early?a=b", b"the body came along", expect)):
            answer = self.early(edge, request)
            self.assertEqual(answer, b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 2\r\n"
                                     b"x-early: yes\r\n\r\nno", request)
        # Over the limit: by what the handler says, and beyond its slack by what the guard does.
        for length in (1001, 66000, 10 ** 6, 10 ** 12):
            answer = self.early(edge, h1("/echo", b"", expect).replace(b"Length: 0", b"Length: %d" % length))
            self.assertTrue(answer.startswith(b"HTTP/1.1 413 Content Too Large\r\n"), answer)
        # The answer leaves although the client goes on to send what it was not asked for.
        with Client(edge) as client:
            client.send(head)
            client.read_until(lambda data: data.endswith(b"no"), "refused")
            client.send(b"x" * 999 + h1("/echo", b"smuggled"))
            self.assertTrue(client.read_to_end().endswith(b"no"))
        self.assertEqual(self.assert_at_rest(edge)["begun"], 0)

    def test_who_is_refused_behind_another_request_gets_no_100(self):
        edge = self.edge()
        refused = h1("/early", b"x", "Expect: 100-continue")[:-1]
        with Client(edge) as client:  # comes when the first one is answered
            client.send(h1("/now/1"))
            client.read_until(h1_answers(1), "an answer")
            client.send(refused)
            self.assertIn(b"HTTP/1.1 401 ", client.read_to_end())
        answers = self.early(edge, h1("/b/1"), refused)  # comes before
        self.assertNotIn(b" 100 ", answers)
        self.assertEqual(h1_answers(1)(answers), [b"x"])
        self.assert_at_rest(edge)

    def test_what_expects_nothing_gets_no_100(self):
        edge = self.edge()
        for request in (h1("/early", b"after", "Expect: 100-continue").replace(b"HTTP/1.1", b"HTTP/1.0"),
                        b"GET /now/5 HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n"):
            answer = self.early(edge, request)
            self.assertTrue(answer.startswith(b"HTTP/1.1 200 " if b"/now" in request else b"HTTP/1.1 404 "), answer)
        self.assert_at_rest(edge)


def message(text):
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 100}}).encode()


class Gateway(harness.Case):
    def start(self):
        cert, key = self.certificate()
        ports = harness.free_port(), harness.free_port()
        gateway = self.gateway(harness.config(
            self.sim(), limits={"body_bytes": "1MiB"},
            listen=[{"address": f"127.0.0.1:{ports[0]}"},
                    {"address": f"127.0.0.1:{ports[1]}", "tls": {"cert": cert, "key": key}}]))
        context = ssl.create_default_context(cafile=cert)
        return gateway, ((ports[0], None), (ports[1], context))

    def connect(self, port, context):
        connection = socket.create_connection(("127.0.0.1", port), harness.PATIENCE_S)
        if context is not None:
            connection = context.wrap_socket(connection, server_hostname="localhost")
        self.addCleanup(connection.close)
        return connection

    def head(self, length, line="POST /v1/sampling", key=harness.KEY, **fields):
        fields = {"host": "x", "authorization": "Bearer " + key, "content-type": "application/json",
                  "content-length": str(length), "expect": "100-continue",
                  **{name.replace("_", "-"): value for name, value in fields.items()}}
        return "\r\n".join([line + " HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "\r\n"]).encode()

    def read(self, connection, enough=lambda data: False):
        data = b""
        while not enough(data) and (more := connection.recv(65536)):
            data += more
        return data

    def test_who_is_refused_sends_no_body(self):
        gateway, listeners = self.start()
        refused = {
            "a key nobody has": (self.head(10, key="sk-none-0123456789"), 401, "unauthorized"),
            "another path": (self.head(10, "POST /other"), 404, "not_found"),
            "another method": (self.head(10, "PUT /v1/sampling"), 405, "http_method"),
            "another type": (self.head(10, content_type="text/plain"), 415, "media_type"),
            "nothing that it takes": (self.head(10, accept="text/html"), 406, "not_acceptable"),
            "too large": (self.head((1 << 20) + 1), 413, "body_too_large"),
            "far too large": (self.head(1 << 40), 413, "body_too_large"),
        }
        for port, context in listeners:
            for what, (head, status, reason) in refused.items():
                with self.subTest(what, tls=context is not None):
                    connection = self.connect(port, context)
                    connection.sendall(head)
                    answer = self.read(connection)  # to its end, though no body comes
                    self.assertTrue(answer.startswith(b"HTTP/1.1 %d " % status), answer)
                    error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
                    self.assertEqual(error["data"]["reason"], reason)
            for path in ("/v1/other", "/v1/models", "/v1/chat/completions"):  # in the API's own shape
                connection = self.connect(port, context)
                connection.sendall(self.head(10, "PUT " + path))
                answer = self.read(connection)
                self.assertTrue(answer.startswith(b"HTTP/1.1 404 " if path == "/v1/other" else b"HTTP/1.1 405 "), answer)
                self.assertIsNone(json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"])
        line = gateway.log(re.search(rb"sluice-request-id: (\w+)", self.refuse(listeners[0]))[1].decode())
        self.assertEqual((line["status"], line["error"]), (401, "unauthorized"))
        self.assertEqual(gateway.metrics().sum("sluice_requests_total", outcome="unauthorized"), 3)

    def refuse(self, listener):
        connection = self.connect(*listener)
        connection.sendall(self.head(10, key="sk-none-0123456789"))
        return self.read(connection)

    def test_who_is_known_is_told_to_go_on_and_served(self):
        _, listeners = self.start()
        for listener in listeners:
            connection = self.connect(*listener)
            for text in ("first", "second"):  # on a connection that is kept
                body = message(text)
                connection.sendall(self.head(len(body)))
                self.assertEqual(self.read(connection, lambda data: data.endswith(b"\r\n\r\n")), CONTINUE)
                connection.sendall(body)
                answer = self.read(connection, h1_answers(1))
                self.assertTrue(answer.startswith(b"HTTP/1.1 200 "), answer)
                self.assertEqual(json.loads(h1_answers(1)(answer)[0])["id"], 7)

    def test_curl_sends_nothing_that_is_not_wanted(self):
        gateway, _ = self.start()
        body = message("x" * (1 << 19))
        for key, status, sent in (("sk-none-0123456789", "401", "0"), (harness.KEY, "200", str(len(body)))):
            run = subprocess.run(
                ["curl", "-sS", "--http1.1", "--expect100-timeout", str(harness.PATIENCE_S), "-H", "Expect: 100-continue",
                 "-H", "Content-Type: application/json", "-H", "Authorization: Bearer " + key, "--data-binary", "@-",
                 "-o", os.devnull, "-w", "%{http_code} %{size_upload}", gateway.url + "/v1/sampling"],
                input=body, capture_output=True, check=True)
            self.assertEqual(run.stdout.decode(), f"{status} {sent}")


if __name__ == "__main__":
    edge_client.main()
