"""Connections that ask once and then stay, and what they take of the gateway's memory."""

import socket
import ssl

import h2_client
import harness
from suite import work
from suite.machine import pss_kb

WARM_UP = 20
WAYS = {"h2c": "h2c", "http1": "h1", "tls-h2": "tls", "tls-http1": "tls"}  # to the listener's front
PREFACE = h2_client.PREFACE + h2_client.frame(h2_client.SETTINGS, 0, 0)
ACK = h2_client.frame(h2_client.SETTINGS, h2_client.ACK, 0)
BODY = work.sampling(300)
FIELDS = {"content-type": "application/json", "authorization": "Bearer " + harness.KEY}


class Connection:
    """Has been answered once."""

    def __init__(self, port, way):
        self.socket = socket.create_connection(("127.0.0.1", port))
        if way.startswith("tls"):
            context = ssl._create_unverified_context()  # our own certificate, on our own machine
            context.set_alpn_protocols(["h2" if way == "tls-h2" else "http/1.1"])
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        if way.endswith("http1"):
            self.ask_http1()
        else:
            self.ask_h2()

    def ask_http1(self):
        head = "".join(f"{name}: {value}\r\n" for name, value in FIELDS.items())
        self.socket.sendall(f"POST /v1/sampling HTTP/1.1\r\nhost: x\r\n{head}content-length: {len(BODY)}\r\n\r\n"
                            .encode() + BODY)
        self.read(lambda data: b"\r\n\r\n" in data and data.endswith(b"}"))

    def ask_h2(self):
        pairs = ((":method", "POST"), (":scheme", "https"), (":path", "/v1/sampling"), (":authority", "x"),
                 *FIELDS.items())
        block = b"".join(h2_client.literal(name, value) for name, value in pairs)
        self.socket.sendall(PREFACE + h2_client.frame(h2_client.HEADERS, h2_client.END_HEADERS, 1, block)
                            + h2_client.frame(h2_client.DATA, h2_client.END_STREAM, 1, BODY) + ACK)
        self.read(self.stream_ended)

    def read(self, enough):
        data = b""
        while not enough(data):
            piece = self.socket.recv(65536)
            if piece == b"":
                raise harness.Failure(f"closed after {data[:200]!r}")
            data += piece

    @staticmethod
    def stream_ended(data):
        while len(data) >= 9:
            size = 9 + int.from_bytes(data[:3], "big")
            if data[3] in (h2_client.DATA, h2_client.HEADERS) and data[4] & h2_client.END_STREAM:
                return len(data) >= size
            data = data[size:]
        return False


def measure(gateway, port, way, count):
    """kB a connection. Some have come and gone before, so that what is made once is not counted as theirs."""
    def open_connections():
        return gateway.metrics().sum("sluice_connections")

    def close(connections):
        for connection in connections:
            connection.socket.close()
        harness.wait_for(lambda: open_connections() == 0, "all closed")

    harness.wait_for(lambda: open_connections() == 0, "nobody before")
    close([Connection(port, way) for _ in range(WARM_UP)])
    before = pss_kb(gateway.pid)
    kept = [Connection(port, way) for _ in range(count)]
    harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 0 and open_connections() == count, "all idle")
    after = pss_kb(gateway.pid)
    close(kept)
    return (after - before) / count
