"""An MCP server without sessions that answers each request with its method, for tests of what is around it."""

import http.server
import json
import threading


class Server:
    """Of a test case; `seen` has the requests, each with path and headers (a mapping without case)."""

    def __init__(self, case):
        self.seen = []
        echo = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                message = json.loads(self.rfile.read(int(self.headers["content-length"])))
                echo.seen.append(self)
                body = json.dumps({"jsonrpc": "2.0", "id": message["id"],
                                   "result": {"method": message["method"]}}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format, *args):
                """Nothing."""

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.port = self.http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        case.addCleanup(self.http.server_close)
        case.addCleanup(self.http.shutdown)
