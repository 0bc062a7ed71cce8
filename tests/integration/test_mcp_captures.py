#!/usr/bin/env python3
"""/mcp/{server}: what official clients and servers have said to each other (contract/wire) goes through the proxy, byte for byte
but for the samplings.

ctest: timeout=180
"""
import glob
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_rig
from mcp_server import Server

WIRE = os.path.join(harness.SHARED, "contract", "wire")


class Player(Server):
    """Everything is the test's to answer; but with `get` 405 it expects neither GETs nor responses of the client."""

    def _serve(self, exchange):
        if self.get == 405 and exchange.method == "GET":
            exchange.answer(405)
        elif self.get == 405 and "method" not in exchange.message:
            exchange.accept()
            self._answers.put(exchange.request)
        else:
            self._taken.put(exchange)


class Capture:
    """Exchanges of a file: the request, the answer's head, its pieces, and whether it came to its end."""

    def __init__(self, path):
        self.name = os.path.relpath(path, WIRE)
        self.exchanges, by_number = [], {}
        with open(path, encoding="utf-8") as file:
            for line in map(json.loads, file):
                if line.get("kind") == "request":
                    by_number[line["xchg"]] = {"request": line, "pieces": [], "ended": False}
                    self.exchanges.append(by_number[line["xchg"]])
                elif line.get("kind") == "response-head":
                    by_number[line["xchg"]]["head"] = line
                elif line.get("kind") == "chunk":
                    raw = line["raw"] if "raw" in line else json.dumps(line["body"], separators=(",", ":"))
                    by_number[line["xchg"]]["pieces"].append(raw.encode())
                elif line.get("kind") == "end":
                    by_number[line["xchg"]]["ended"] = True


def method_of(body):
    return body.get("method") if isinstance(body, dict) else None


class Captures(mcp_rig.Case):
    def setUp(self):
        super().setUp()
        if not os.path.isdir(WIRE):
            self.skipTest("no captures here")
        files = sorted(glob.glob(WIRE + "/**/*.jsonl", recursive=True))
        self.captures = [one for one in map(Capture, files) if one.exchanges]
        self.assertGreater(len(self.captures), 20)

    def play(self, sampling, get):
        self.servr = Player(get=get)
        self.closing(self.servr)
        url = self.front(self.servr, sampling=sampling)
        played = 0
        for capture in self.captures:
            self.samplings, client = set(), self.client(url)
            for number, exchange in enumerate(capture.exchanges):
                try:
                    played += self.exchange(client, exchange, capture.name, sampling)
                except AssertionError as failure:
                    raise harness.Failure(f"{capture.name}, exchange {number + 1}: {failure}") from None
        return played

    def body(self, request, sampling):
        """What the client sends; None: this client does not (it does not sample)."""
        body = request.get("body")
        if body in (None, ""):
            return b""
        if sampling == "backfill":
            if isinstance(body, list) or method_of(body) is None:
                return None
            if method_of(body) == "initialize":
                body["params"]["capabilities"].pop("sampling", None)
        return json.dumps(body).encode()

    def exchange(self, client, exchange, name, sampling):
        request, head = exchange["request"], exchange.get("head")
        body = self.body(request, sampling)
        if body is None or head is None or (sampling == "backfill" and request["method"] != "POST"):
            return False
        fields = {key: value for key, value in request["headers"].items() if key in ("accept", "content-type") or key.startswith("mcp-")}
        fields.pop("mcp-session-id", None)
        session = client.session if "mcp-session-id" in request["headers"] else None
        reply = client.send(request["method"], body, {"Accept": None, "Content-Type": None, "Mcp-Session-Id": session, **fields})
        call = self.servr.take()
        if method_of(request.get("body")) != "initialize":
            self.assertEqual(call.body, body)
        self.assertEqual({key: call.header(key) for key in fields}, fields)
        self.respond(call, exchange, name)
        self.assertEqual(reply.status, head["status"])
        self.assertEqual(reply.header("content-type"), head["headers"].get("content-type"))
        if not exchange["ended"]:
            reply.expect(self.left(exchange, sampling)).close()
            return True
        self.assertEqual(reply.body(), self.left(exchange, sampling))
        if "mcp-session-id" in head["headers"]:
            if client.session is None or method_of(request.get("body")) == "initialize":  # some captures have several sessions
                client.session = reply.header("mcp-session-id")
            self.assertIsNotNone(client.session)
        self.answered(exchange, sampling)
        return True

    @staticmethod
    def respond(call, exchange, name):
        headers = exchange["head"]["headers"]
        fields = [(key, value) for key, value in headers.items() if key not in ("content-length", "transfer-encoding", "connection", "content-type")]
        fields = [(key, f"{name}-{value}" if key == "mcp-session-id" else value) for key, value in fields]
        if headers.get("transfer-encoding") != "chunked":
            call.answer(exchange["head"]["status"], b"".join(exchange["pieces"]), fields, headers.get("content-type"))
            return
        stream = call.stream(fields, exchange["head"]["status"], headers.get("content-type"))
        for piece in exchange["pieces"]:
            stream.send(piece)
        if exchange["ended"]:
            stream.end()

    def left(self, exchange, sampling):
        """What the client gets. SDKs end their events with an empty line of line feeds."""
        whole = b"".join(exchange["pieces"])
        if sampling == "relay" or not exchange["head"]["headers"].get("content-type", "").startswith("text/event-stream"):
            return whole
        out = b""
        for event in whole.split(b"\n\n")[:-1]:
            data = [line[6:] for line in event.split(b"\n") if line.startswith(b"data: ")]
            message = json.loads(data[0]) if data and data[0] else {}
            if message.get("method") == "sampling/createMessage":
                self.samplings.add(message["id"])
            elif message.get("method") != "notifications/cancelled" or message["params"]["requestId"] not in self.samplings:
                out += event + b"\n\n"
        return out

    def answered(self, exchange, sampling):
        """Each sampling of the exchange, but that the server has given up: that may have an answer, or none."""
        whole = b"".join(exchange["pieces"])
        if sampling == "relay" or b"notifications/cancelled" in whole:
            return
        session = exchange["request"]["headers"].get("mcp-session-id", "")
        for _ in range(whole.count(b'"method":"sampling/createMessage"')):
            while not (answer := self.servr.answer()).header("mcp-session-id").endswith(session):
                pass  # of an exchange before
            self.assertIn(answer.message["id"], self.samplings)
            self.assertIn("result", answer.message)

    def test_nothing_is_changed_where_samplings_are_relayed(self):
        self.assertGreater(self.play("relay", "take"), 120)

    def test_samplings_are_all_that_is_taken_from_clients_without(self):
        self.captures = [one for one in self.captures if "modern" not in one.name and not one.name.startswith("v2")]
        self.assertGreater(self.play("backfill", 405), 60)


if __name__ == "__main__":
    harness.main()
