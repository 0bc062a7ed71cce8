"""A provider that says what it is told, byte for byte, and keeps what it was sent."""

import http.server
import json
import socket
import sys
import threading

import harness


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1000  # they may come all at once

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # of an asker who has gone between two requests
            super().handle_error(request, client_address)


class Gone:
    """Among the pieces of an answer: wait until whoever asked has gone."""


class Provider:
    """`seen` has (path, headers in lower case, body) of each request; `answers` what is said to the next ones: (status, content
    type, pieces, whole), where a piece may be an Event to wait for or a Gone. Once they are all said, `otherwise` is asked with
    (path, headers, body), where it is set. `gone`: how many askers have not
    stayed to the end."""

    def __init__(self, otherwise=None):
        self.seen, self.answers, self.otherwise, self.gone = [], [], otherwise, 0
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                asked = (self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                provider.seen.append(asked)
                answer = provider.answers.pop(0) if provider.answers or provider.otherwise is None else provider.otherwise(*asked)
                status, kind, pieces, whole, *fields = answer
                try:
                    self.say(status, {"Content-Type": kind, "request-id": "req_up", **dict(*fields)}, pieces, whole)
                except ConnectionError:  # the caller has not stayed for all of it
                    provider.gone += 1
                    self.close_connection = True

            def say(self, status, fields, pieces, whole):
                self.send_response(status)
                for name, value in {**fields, "Transfer-Encoding": "chunked"}.items():
                    self.send_header(name, value)
                self.end_headers()
                for piece in pieces:
                    if isinstance(piece, Gone):
                        self.wait_gone()
                    elif isinstance(piece, threading.Event):  # the caller has what was said so far
                        assert piece.wait(harness.PATIENCE_S)
                    else:
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                        self.wfile.flush()
                if whole:
                    self.wfile.write(b"0\r\n\r\n")
                else:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_WR)

            def wait_gone(self):
                self.connection.settimeout(harness.PATIENCE_S)
                assert self.connection.recv(1) == b""
                raise ConnectionResetError

            def log_message(self, format, *args):
                pass

        self.server = _Server(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def says(self, body, status=200, kind="application/json", step=0, whole=True, fields=()):
        """`body` bytes, or what JSON is made of; in pieces of `step` bytes; `fields` are header lines besides."""
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        pieces = [body[i:i + step] for i in range(0, len(body), step)] if step else [body]
        self.answers.append((status, kind, pieces, whole, fields))

    def streams(self, body, step=0, whole=True):
        self.says(body, kind="text/event-stream", step=step, whole=whole)

    def forget(self):
        """As if it were new."""
        self.seen.clear()
        self.answers.clear()
        self.gone = 0

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
