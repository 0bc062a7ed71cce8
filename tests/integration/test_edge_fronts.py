"""What fronts beside /v1/sampling need of the edge (http.h under support/edge_echo.c): any request, any answer, and streams
that say nothing for hours or break off.
ctest: timeout=300
"""

import contextlib
import os
import re
import signal
import socket
import ssl
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

from edge_client import (  # noqa: E402
    DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, RST, Client, EdgeCase, frame, h1, h1_answers, h2_answers,
    h2_frames, h2_request, literal, main, reset, settings, window)

INTERNAL_ERROR = 2
LAST_CHUNK = b"\r\n0\r\n\r\n"


def h1_head(method, target, *fields, version="1.1"):
    return "\r\n".join([f"{method} {target} HTTP/{version}", *fields]).encode() + b"\r\n\r\n"


def h2_head(stream, method, path, *fields, authority=b"edge", flags=END_HEADERS | END_STREAM):
    pairs = [(b":method", method), (b":scheme", b"http"), (b":path", path)]
    pairs += [(b":authority", authority)] if authority is not None else []
    return frame(HEADERS, flags, stream, b"".join(literal(*pair) for pair in [*pairs, *fields]))


def frames_of(stream, *kinds):
    """A condition: frames of one of these kinds have come on the stream; all of them."""
    return lambda data: [f for f in h2_frames(data) if f[2] == stream and f[0] in kinds]


def lines(body):
    return body.decode().splitlines()


def head_and_body(data):
    """A condition: a head and as much of a body as it announces."""
    head, gap, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    if not gap or len(body) < (int(length[1]) if length else 0):
        return None
    return head.lower(), body


class Asked(EdgeCase):
    """The request as the handler sees it."""

    def ask1(self, edge, data):
        with Client(edge) as client:
            client.send(data)
            return lines(client.read_until(h1_answers(1), "an answer")[0])

    def ask2(self, edge, data):
        with Client(edge) as client:
            client.send(PREFACE + settings() + data)
            return lines(client.read_until(h2_answers(1), "an answer")[0])

    def where(self):
        return [f"listener={1 if self.tls else 0}", "loopback=yes"]

    def test_http1_any_method_with_and_without_a_body(self):
        edge = self.edge()
        for method in ("GET", "DELETE", "OPTIONS", "PUT", "REPORT", "X-ODD"):
            for body in (b"", b"hello"):
                asked = self.ask1(edge, h1_head(method, "/asked", "Host: a", f"Content-Length: {len(body)}") + body)
                self.assertEqual(asked[0], f"method={method}")
                self.assertIn(f"body={body.decode()}", asked)
            chunks = h1_head(method, "/asked", "Host: a", "Transfer-Encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n"
            self.assertIn("body=hello", self.ask1(edge, chunks))
            self.assertIn("body-", self.ask1(edge, h1_head(method, "/asked", "Host: a")))
        self.assert_at_rest(edge)

    def test_http2_any_method_with_and_without_a_body(self):
        edge = self.edge()
        for method in (b"GET", b"DELETE", b"OPTIONS", b"PROPFIND"):
            asked = self.ask2(edge, h2_head(1, method, b"/asked"))
            self.assertEqual((asked[0], asked[6]), (f"method={method.decode()}", "body-"))
            asked = self.ask2(edge, h2_head(1, method, b"/asked", flags=END_HEADERS) + frame(DATA, END_STREAM, 1, b"hello"))
            self.assertEqual((asked[0], asked[6]), (f"method={method.decode()}", "body=hello"))
        self.assert_at_rest(edge)

    def test_query_and_authority(self):
        edge = self.edge()
        for target, query in (("/asked", "query-"), ("/asked?", "query="), ("/asked?a=%2F&b=?c", "query=a=%2F&b=?c")):
            expected = ["path=/asked", query, "authority=host.example:80", *self.where()]
            self.assertEqual(self.ask1(edge, h1_head("GET", target, "hOsT: host.example:80"))[1:6], expected)
            self.assertEqual(self.ask2(edge, h2_head(1, b"GET", target.encode(), authority=b"host.example:80"))[1:6], expected)
        asked = self.ask1(edge, h1_head("GET", "/asked", "Connection: keep-alive", version="1.0"))
        self.assertIn("authority-", asked)
        self.assertIn("authority-", self.ask2(edge, h2_head(1, b"GET", b"/asked", authority=None)))
        for authority, expected in ((None, "authority=old"), (b"new", "authority=new")):  # RFC 9113 8.3.1
            asked = self.ask2(edge, h2_head(1, b"GET", b"/asked", (b"host", b"old"), authority=authority))
            self.assertIn(expected, asked)
            self.assertEqual(asked[7:], ["find-"])
        self.assert_at_rest(edge)

    def test_all_headers_in_their_order_and_repeated_ones_again(self):
        edge = self.edge()
        sent = [("x-Find", "one"), ("accept", "a/b"), ("Via", "1.1 a"), ("x-other", ""), ("X-FIND", "two"), ("accept", "c/d")]
        want = [f"header {name.lower()}={value}" for name, value in sent] + ["find=one"]
        h1_lines = [f"{name}: \t{value} \t" for name, value in sent]
        framing = ["Host: a", "Content-Length: 2", "Upgrade: h2c"]
        self.assertEqual(self.ask1(edge, h1_head("POST", "/asked", *framing, *h1_lines) + b"{}")[7:], want)
        self.assertEqual(self.ask1(edge, h1_head("GET", "/asked", *h1_lines, "Host: a"))[7:], want)
        h2_fields = [(name.lower().encode(), value.encode()) for name, value in sent]
        asked = self.ask2(edge, h2_head(1, b"POST", b"/asked", (b"content-length", b"2"), *h2_fields, flags=END_HEADERS)
                          + frame(DATA, END_STREAM, 1, b"{}"))
        self.assertEqual(asked[7:], want)
        self.assert_at_rest(edge)

    def test_one_that_waits_for_100_continue_is_seen_alike(self):
        edge = self.edge()
        fields = ["hOST: a:1", "X-Find: one", "Content-Length: 2", "x-FIND:two", "Expect: 100-continue", "Accept: a/b"]
        with Client(edge) as client:
            client.send(h1_head("PUT", "/asked-early?a=b", *fields))
            asked = lines(client.read_to_end().partition(b"\r\n\r\n")[2])
        self.assertEqual(asked, ["method=PUT", "path=/asked-early", "query=a=b", "authority=a:1", *self.where(), "body-",
                                 "header x-find=one", "header x-find=two", "header accept=a/b", "find=one"])
        self.assert_at_rest(edge)

    def test_an_address_of_all_is_no_loopback_one(self):
        edge = self.edge("-w")
        self.assertIn("loopback=no", self.ask1(edge, h1_head("GET", "/asked", "Host: a")))
        self.assertIn("loopback=no", self.ask2(edge, h2_head(1, b"GET", b"/asked")))


class Answers(EdgeCase):
    STATUSES = (200, 201, 202, 204, 205, 206, 226, 299, 301, 304, 307, 400, 401, 418, 451, 499, 500, 503, 511, 599)

    def test_http1_any_status(self):
        edge = self.edge()
        with Client(edge) as client:
            for method in ("GET", "HEAD"):
                for status in self.STATUSES:
                    client.input = b""
                    client.send(h1_head(method, f"/status/{status}", "Host: a") + h1("/echo", b"next"))
                    has_body = status not in (204, 205, 304)
                    client.read_until(lambda data: data.endswith(b"next"), "the next answer")
                    head, _, rest = client.input.partition(b"\r\n\r\n")
                    self.assertTrue(head.startswith(b"HTTP/1.1 %d " % status), head)
                    self.assertIn(b'\r\ncontent-type: odd/type; Q="a b"', head)
                    length = {204: [], 304: [], 205: [b"0"]}.get(status, [b"6"])
                    self.assertEqual(re.findall(rb"(?i)content-length: (\d+)", head), length, status)
                    body = b"a body" if has_body and method == "GET" else b""
                    self.assertTrue(rest.startswith(body + b"HTTP/1.1 200 OK\r\n"), (status, rest))
        self.assert_at_rest(edge)

    def test_http2_any_status(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings())
            for n, status in enumerate(self.STATUSES):
                stream = 4 * n + 1
                client.send(h2_head(stream, b"GET", b"/status/%d" % status)
                            + h2_head(stream + 2, b"HEAD", b"/status/%d" % status))
                bodies = client.read_until(h2_answers(stream, stream + 2), "both")
                self.assertEqual(bodies, [b"a body" if status not in (204, 205, 304) else b"", b""], status)
                block = frames_of(stream, HEADERS)(client.input)[0][3]
                self.assertTrue(status == 200 or str(status).encode() in block, block)
                self.assertIn(b'odd/type; Q="a b"', block)
        self.assert_at_rest(edge)

    def test_any_number_of_fields(self):
        edge = self.edge()
        for count in (0, 1, 5, 250):
            names = [b"x-field-%d" % n for n in range(count)]
            with Client(edge) as one, Client(edge) as two:
                one.send(h1(f"/fields/{count}"))
                self.assertEqual(one.read_until(h1_answers(1), "an answer"), [b"many"])
                found = re.findall(rb"\r\n(x-field-\d+): (\S+)\r\n", one.input.replace(b"\r\n", b"\r\n\r\n"))
                self.assertEqual(found, [(name, name) for name in names])
                two.send(PREFACE + settings() + h2_request(1, f"/fields/{count}"))
                self.assertEqual(two.read_until(h2_answers(1), "an answer"), [b"many"])
                block = frames_of(1, HEADERS)(two.input)[0][3]
                self.assertEqual(re.findall(rb"x-field-\d+", block), [name for name in names for _ in range(2)])
        self.assert_at_rest(edge)


class Silent(EdgeCase):
    """Streams that say nothing, at rest."""

    def open1(self, edge, path="/silent", version="1.1"):
        client = Client(edge)
        self.addCleanup(client.__exit__)
        client.send(h1_head("GET", path, "Host: a", version=version))
        client.read_until(lambda data: b"\r\n\r\n" in data, "the head")
        return client

    def open2(self, edge, path=b"/silent", pairs=()):
        client = Client(edge)
        self.addCleanup(client.__exit__)
        client.send(PREFACE + settings(*pairs) + h2_head(1, b"GET", path))
        client.read_until(frames_of(1, HEADERS), "the head")
        return client

    def test_the_head_leaves_by_itself_and_nothing_is_in_flight(self):
        edge = self.edge()
        one, old, two = self.open1(edge), self.open1(edge, version="1.0"), self.open2(edge)
        blocked = self.open2(edge, pairs=[(4, 0)])  # its windows are closed
        self.assertTrue(one.input.startswith(b"HTTP/1.1 200 OK\r\n") and one.input.endswith(b"\r\n\r\n"), one.input)
        self.assertIn(b"transfer-encoding: chunked", one.input)
        self.assertIn(b"content-type: text/event-stream", one.input)
        self.assertNotIn(b"chunked", old.input)
        for client in (two, blocked):
            self.assertEqual([f[1] for f in frames_of(1, HEADERS, DATA, RST)(client.input)], [END_HEADERS])
        self.assertEqual((edge.stats()["in_flight"], edge.stats()["jobs"]), (1, 5))
        for client in (one, old, two, blocked):
            client.socket.close()
        stats = self.assert_at_rest(edge)
        self.assertEqual((stats["cancelled"], stats["sent"]), (4, 0))

    def test_it_lives_beyond_the_patience_and_its_client_is_heard_leave(self):
        edge = self.edge("-t", 1000)
        one, two = self.open1(edge), self.open2(edge)
        for _ in range(3):  # given up one after the other
            with Client(edge) as clock:
                clock.send(PREFACE[:5])
                clock.read_to_end()
        two.send(h2_request(3, "/echo", b"beside"))
        self.assertEqual(two.read_until(h2_answers(3), "an answer"), [b"beside"])
        self.assertEqual((edge.stats()["jobs"], edge.stats()["stalled"]), (3, 0))
        one.socket.close()
        edge.wait_stats(lambda s: s["cancelled"] == 1, "the client over HTTP/1.1 gone")
        two.send(reset(1))
        edge.wait_stats(lambda s: s["cancelled"] == 2, "the stream over HTTP/2 gone")
        two.send(h2_request(5, "/echo", b"after"))
        self.assertEqual(two.read_until(h2_answers(5), "an answer"), [b"after"])
        two.socket.close()
        self.assert_at_rest(edge)

    def test_the_kernel_asks_whether_its_client_lives(self):
        edge = self.edge()
        one, two = self.open1(edge), self.open2(edge)
        for client in (one, two):
            port = client.socket.getsockname()[1]
            shown = ["ss", "-tnoH", f"dport = :{port}"]
            harness.wait_for(lambda show=shown: "timer:(keepalive," in subprocess.run(
                show, capture_output=True, text=True, check=True).stdout, "its timer, once all is acknowledged")

    def test_it_wakes_speaks_in_pieces_of_slices_and_ends_with_nothing(self):
        edge = self.edge()
        with Client(edge) as one, Client(edge) as two:
            one.send(h1_head("GET", "/wakes/5", "Host: a") + h1("/echo", b"next"))
            two.send(PREFACE + settings() + h2_head(1, b"GET", b"/wakes/5") + h2_head(3, b"GET", b"/wakes/0"))
            one.read_until(lambda data: data.endswith(b"next"), "the next answer")
            body = one.input.partition(b"\r\n\r\n")[2].partition(LAST_CHUNK)
            self.assertEqual(body[0], b"\r\n".join([b"a\r\nxxxxxxxxxx"] * 5))
            self.assertEqual(two.read_until(h2_answers(1, 3), "both"), [b"x" * 50, b""])
        old = self.open1(edge, "/wakes/2", "1.0")
        self.assertEqual(old.read_to_end().partition(b"\r\n\r\n")[2], b"x" * 20)
        stats = self.assert_at_rest(edge)
        self.assertEqual((stats["cancelled"], stats["sent"]), (0, 5))

    @unittest.skipIf(os.environ.get("SLUICE_SANITIZE"), "a sanitizer keeps what is freed")
    def test_it_holds_little(self):
        """Its request's memory is given back, and its head takes no page of its own: 6.5 KB over HTTP/1.1, 15.2 without."""
        if self.tls:
            self.skipTest("OpenSSL's memory is not counted here")
        edge = self.edge()
        _ = [self.open1(edge) for _ in range(50)]
        before = edge.resident_kb()
        _ = [self.open1(edge) for _ in range(500)]
        self.assertLess((edge.resident_kb() - before) / 500, 9)

    def test_what_is_pipelined_behind_one_has_a_bound(self):
        edge = self.edge()
        flood = h1("/echo", b"x" * 100000)
        for first in (h1_head("GET", "/silent", "Host: a"), h1_head("GET", "/silent", "Host: a") + flood):
            with Client(edge) as client:
                client.send(first)
                client.read_until(lambda data: b"\r\n\r\n" in data, "the head")
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    client.send(flood)
                client.read_to_end()
        self.assertEqual(self.assert_at_rest(edge)["cancelled"], 2)

    def test_leaving_one_is_no_attack(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings())
            for first in range(1, 601, 60):
                streams = range(first, first + 60, 2)
                client.send(b"".join(h2_head(stream, b"GET", b"/silent") for stream in streams))
                for stream in streams:
                    client.read_until(frames_of(stream, HEADERS), "a head")
                client.send(b"".join(reset(stream) + window(stream, 1) for stream in streams))
            client.send(h2_request(9999, "/echo", b"alive"))
            self.assertEqual(client.read_until(h2_answers(9999), "an answer"), [b"alive"])
        stats = self.assert_at_rest(edge)
        self.assertEqual((stats["cancelled"], stats["aborted_requests"]), (300, 0))

    def test_those_at_rest_leave_their_connection_its_requests(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings())
            silent = range(1, 181, 2)
            client.send(b"".join(h2_head(stream, b"GET", b"/silent") for stream in silent))
            for stream in silent:
                client.read_until(frames_of(stream, HEADERS), "a head")
            client.send(b"".join(h2_request(stream, "/b/1", b"x" * 9) for stream in (201, 203, 205)))
            self.assertEqual(client.read_until(h2_answers(201, 203, 205), "answers"), [b"x"] * 3)
            self.assertEqual(edge.stats()["in_flight"], 1)
        self.assert_at_rest(edge)

    def test_a_window_and_a_reset_in_the_turn_of_a_head_harm_nobody(self):
        """libh2o would abort where a stream whose head was sent by h2o_send is reset and gets a window before all has left."""
        with socket.create_server(("127.0.0.1", 0)) as upstream:
            edge = self.edge("-u", upstream.getsockname()[1])
            with Client(edge) as client:
                client.send(PREFACE + settings((4, 0)) + h2_head(1, b"GET", b"/relay-head"))
                relay, _ = upstream.accept()
                with relay:
                    asked = b""
                    while b"\r\n\r\n" not in asked:
                        asked += relay.recv(65536)
                    os.kill(edge.pid, signal.SIGSTOP)  # so that both are there in its next turn
                    relay.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    client.send(reset(1) + window(1, 10) + h2_head(3, b"HEAD", b"/status/200"))
                    os.kill(edge.pid, signal.SIGCONT)
                    client.read_until(frames_of(3, HEADERS), "an answer")
            self.assertEqual(self.assert_at_rest(edge)["cancelled"], 1)

    def test_a_front_ends_them_when_the_gateway_leaves(self):
        edge = self.edge()
        one, old, two = self.open1(edge), self.open1(edge, version="1.0"), self.open2(edge)
        edge.send(15)
        self.assertTrue(one.read_to_end().endswith(b"\r\n\r\n0\r\n\r\n"), one.input)
        self.assertTrue(old.read_to_end().endswith(b"\r\n\r\n"), old.input)
        self.assertEqual(two.read_until(h2_answers(1), "the end"), [b""])
        two.read_to_end()
        edge.stop()


class Cut(EdgeCase):
    """An answer that broke off must not look like one that is whole."""

    def test_http1_ends_its_connection_without_the_last_chunk(self):
        edge = self.edge()
        for path, body in (("/cut/3", b"a\r\nxxxxxxxxxx\r\n" * 3), ("/cut/0", b""), ("/cut-at-once", b"")):
            with Client(edge) as client:
                client.send(h1_head("GET", path, "Host: a") + h1("/echo", b"never"))
                head, _, rest = client.read_to_end().partition(b"\r\n\r\n")
                if head != b"" or path != "/cut-at-once":  # which may be too early for the head
                    self.assertIn(b"transfer-encoding: chunked", head)
                self.assertEqual(rest, body)
        self.assertEqual(self.assert_at_rest(edge)["cancelled"], 0)

    def test_http10_ends_with_an_error(self):
        edge = self.edge()
        if edge.tls is not None:  # an end of the connection is none of TLS, as Debian's Python would have it
            edge.tls.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
        for path in ("/cut/2", "/cut/0"):
            with Client(edge) as client:
                client.send(h1_head("GET", path, "Host: a", version="1.0"))
                if edge.tls is not None:
                    client.socket.suppress_ragged_eofs = False
                with self.assertRaises((ConnectionResetError, ssl.SSLError)):
                    while client.socket.recv(65536) != b"":
                        pass
        self.assert_at_rest(edge)

    def test_http2_resets_the_stream_and_the_connection_goes_on(self):
        edge = self.edge()
        with Client(edge) as client:
            client.send(PREFACE + settings())
            for n, (path, body) in enumerate(((b"/cut/3", b"x" * 30), (b"/cut/0", b""), (b"/cut-at-once", b""))):
                stream = 4 * n + 1
                client.send(h2_head(stream, b"GET", path) + h2_request(stream + 2, "/b/5"))
                resets = client.read_until(frames_of(stream, RST), "a reset")
                self.assertEqual([f[3] for f in resets], [struct.pack(">I", INTERNAL_ERROR)])
                kinds = [f[0] for f in frames_of(stream, HEADERS, DATA, RST)(client.input)]
                self.assertEqual((kinds[0], kinds[-1]), (HEADERS, RST))
                self.assertEqual(b"".join(f[3] for f in frames_of(stream, DATA)(client.input)), body)
                self.assertEqual(client.read_until(h2_answers(stream + 2), "an answer"), [b"x" * 5])
                client.send(window(stream, 100) + reset(stream))  # may still be on their way
        stats = self.assert_at_rest(edge)
        self.assertEqual((stats["cancelled"], stats["sent"], stats["aborted_requests"]), (0, 6, 0))

    def test_a_piece_that_has_not_left_may_be_lost(self):
        edge = self.edge()
        with Client(edge, receive_buffer=4096) as one, Client(edge) as two:
            one.send(h1_head("GET", "/cut-unsent", "Host: a"))
            two.send(PREFACE + settings((4, 100)) + h2_head(1, b"GET", b"/cut-unsent"))
            two.read_until(frames_of(1, RST), "a reset")
            self.assertLessEqual(sum(len(f[3]) for f in frames_of(1, DATA)(two.input)), 100)
            edge.wait_stats(lambda s: s["sent"] == 2, "both given up")
            body = one.read_to_end().partition(b"\r\n\r\n")[2]
            self.assertLess(len(body), 4 << 20)
        self.assertEqual(self.assert_at_rest(edge)["cancelled"], 0)

    def test_a_client_that_leaves_at_the_same_time(self):
        edge = self.edge()
        for path in ("/cut/1", "/cut-unsent", "/cut-at-once", "/wakes/1", "/wakes/0"):
            for version in ("1.0", "1.1", "2"):
                with Client(edge) as client:
                    client.send(PREFACE + settings() + h2_head(1, b"GET", path.encode()) if version == "2"
                                else h1_head("GET", path, "Host: a", version=version))
        stats = edge.wait_stats(lambda s: (s["open"], s["jobs"], s["in_flight"]) == (1, 1, 1), "rest")
        self.assertEqual(stats["begun"], stats["sent"] + stats["cancelled"])

    def test_curl_sees_it(self):
        edge = self.edge()
        scheme = "http" if edge.tls is None else "https"
        versions = (("--http1.1", 18), ("--http2-prior-knowledge" if edge.tls is None else "--http2", 92))
        for version, code in versions:
            done = subprocess.run(["curl", "-sk", version, f"{scheme}://127.0.0.1:{edge.port}/cut/2"],
                                  capture_output=True, check=False, timeout=harness.PATIENCE_S)
            self.assertEqual(done.returncode, code, version)
        self.assert_at_rest(edge)


if __name__ == "__main__":
    main()
