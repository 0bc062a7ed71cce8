#!/usr/bin/env python3
"""Memory of connections that do nothing: the PSS of the gateway's processes over their number.

    bench/idle_connections.py [--count 1500] [WAY...]      ways: h2c http1 tls-h2 tls-http1

Each connection asks once and then stays. Before the first look some have come and gone, so that what is
made once is not counted as theirs. SLUICE_BIN and SLUICE_SIM name the binaries.
"""

import argparse
import os
import socket
import ssl
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/support"))
import h2_client  # noqa: E402
import harness  # noqa: E402
import tls_client  # noqa: E402

WARM_UP = 20
WAYS = ("h2c", "http1", "tls-h2", "tls-http1")
PREFACE = h2_client.PREFACE + h2_client.frame(h2_client.SETTINGS, 0, 0)
ACK = h2_client.frame(h2_client.SETTINGS, h2_client.ACK, 0)


def pss_kb(pid):
    """Of a process and its children."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        own = next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return own + sum(pss_kb(int(child)) for child in file.read().split())


class Idle:
    """A connection that has been answered once."""

    def __init__(self, gateway, way, context):
        listener = gateway.settings["listen"][1 if way.startswith("tls") else 0]
        self.socket = socket.create_connection(("127.0.0.1", int(listener["address"].rpartition(":")[2])))
        if way.startswith("tls"):
            context.set_alpn_protocols(["h2" if way == "tls-h2" else "http/1.1"])
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        fields = {"content-type": "application/json", "authorization": "Bearer " + harness.KEY}
        if way.endswith("http1"):
            body = tls_client.message()
            head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            self.socket.sendall(f"POST /v1/sampling HTTP/1.1\r\nhost: x\r\n{head}content-length: {len(body)}\r\n\r\n"
                                .encode() + body)
            self.read(lambda data: b"\r\n\r\n" in data and data.endswith(b"}"))
        else:
            pairs = ((":method", "POST"), (":scheme", "https"), (":path", "/v1/sampling"), (":authority", "x"),
                     *fields.items())
            block = b"".join(h2_client.literal(name, value) for name, value in pairs)
            self.socket.sendall(PREFACE + h2_client.frame(h2_client.HEADERS, h2_client.END_HEADERS, 1, block)
                                + h2_client.frame(h2_client.DATA, h2_client.END_STREAM, 1, tls_client.message()) + ACK)
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


def measure(gateway, way, context, count):
    """kB per connection."""
    def open_connections():
        return harness.wait_for(lambda: gateway.metrics(), "metrics").sum("sluice_connections")

    def close(idle):
        for connection in idle:
            connection.socket.close()
        harness.wait_for(lambda: open_connections() == 0, "all closed")
    close([Idle(gateway, way, context) for _ in range(WARM_UP)])
    before = pss_kb(gateway.pid)
    idle = [Idle(gateway, way, context) for _ in range(count)]
    harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 0 and open_connections() == count, "all idle")
    after = pss_kb(gateway.pid)
    close(idle)
    return (after - before) / count


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=1500)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("ways", nargs="*", metavar="WAY", choices=(*WAYS, []))
    args = options.parse_args()
    case = harness.Case()
    try:
        authority = tls_client.Authority(case.directory())
        cert, key = authority.issue("DNS:localhost")
        for way in args.ways or WAYS:
            results = []
            for _ in range(args.runs):  # each its own process: what one run leaves behind is no other's
                settings = harness.config(case.sim())
                settings["listen"] = [{"address": f"127.0.0.1:{harness.free_port()}"},
                                      {"address": f"127.0.0.1:{harness.free_port()}", "tls": {"cert": cert, "key": key}}]
                gateway = case.gateway(settings)
                idle_pss = pss_kb(gateway.pid)
                results.append(measure(gateway, way, authority.context(), args.count))
            print(f"{way:9} {args.count} connections: {statistics.median(results):5.1f} kB each "
                  f"[{min(results):.1f}-{max(results):.1f}]; before the first one {idle_pss} kB in all", flush=True)
    finally:
        case.doCleanups()


if __name__ == "__main__":
    main()
