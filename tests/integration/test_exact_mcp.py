#!/usr/bin/env python3
"""Exact costs of a message that the MCP proxy passes: 1 KB of tools/call there, 1 KB back, in a session whose samplings the
gateway answers. How a value is judged: tests/support/exact_case.py; `test_exact_mcp.py --print` prints what was measured.

ctest: serial once timeout=400
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import copied
import exact_case
import harness
import mcp_client

SHORT, LONG = 400, 1400
H2C, H1 = "h2c", "HTTP/1.1"
WAYS = {H2C: (8, 8, True), H1: (64, 1, False)}  # clients, streams, HTTP/2: 64 in flight


def call(tool):
    """1 KB."""
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": tool, "arguments": {"text": ("Tell me about gateways. " * 40)[:920]}}}, separators=(",", ":")).encode()


class Mcp(exact_case.Case):
    def settings(self):
        sim = self.sim("--default", "size-960")
        settings = harness.config(sim, mcp_servers={"sim": {"url": sim.url + "/mcp"}})
        plan = settings["plans"]["standard"]
        plan["mcp_servers"] = {"allow": ["*"]}
        plan["limits"].update(mcp_messages_per_minute=60000000, mcp_sessions=1000)
        return settings

    def session(self, gateway):
        """Headers of its messages."""
        client = mcp_client.Client(gateway.url + "/mcp/sim")
        self.addCleanup(client.close)
        client.hello()
        return [f"accept: {mcp_client.BOTH}", f"mcp-session-id: {client.session}", f"mcp-protocol-version: {client.revision}"]

    def work(self, count, way, tool):
        """So many messages of a new session."""
        clients, streams, http2 = WAYS[way]
        return lambda gateway: self.h2load(gateway.url + "/mcp/sim", count, clients, streams, call(tool), self.session(gateway), http2)

    def each(self, measure, way, tool, short=SHORT, long=LONG):
        """What a message adds to what `measure` finds of some work."""
        few, many = (measure(self.work(count, way, tool)) for count in (short, long))
        return [(b - a) / (long - short) for a, b in zip(few, many)]

    # ---- instructions and allocations, by callgrind ----
    def profile(self, work):
        found = self.profiled(self.settings(), work)
        return found.instructions, found.allocations

    def counted(self, name, way, tool):
        instructions, allocations = self.each(self.profile, way, tool)
        self.check(f"instructions, MCP message, {name}", instructions)
        self.check(f"allocations of ours, MCP message, {name}", allocations)

    def test_instructions_and_allocations_h2c(self):
        self.counted("h2c", H2C, "json")

    def test_instructions_and_allocations_http1(self):
        self.counted("HTTP/1.1", H1, "json")

    def test_instructions_and_allocations_of_three_events(self):
        self.counted("HTTP/1.1, three events", H1, "events")

    # ---- bytes that our code copies, by DHAT ----
    def copies(self, work):
        return [copied.by_gateway(self, self.settings(), work)]

    def test_copied_bytes(self):
        for name, way, tool in (("h2c", H2C, "json"), ("HTTP/1.1", H1, "json"), ("HTTP/1.1, three events", H1, "events")):
            self.check(f"copied bytes, MCP message, {name}", *self.each(self.copies, way, tool))

    # ---- system calls, by strace ----
    def syscalls(self, way, tool):
        gateway = self.gateway(self.settings())
        self.work(200, way, tool)(gateway)  # connections to the server
        thread = self.worker_thread(gateway.pid)
        return self.each(lambda work: [sum(self.traced(thread, lambda: work(gateway)).values())], way, tool, SHORT, LONG * 4)[0]

    def test_syscalls(self):
        self.check("syscalls, MCP message, h2c", self.syscalls(H2C, "json"))
        self.check("syscalls, MCP message, HTTP/1.1", self.syscalls(H1, "json"))
        self.check("syscalls, MCP message, HTTP/1.1, three events", self.syscalls(H1, "events"))


if __name__ == "__main__":
    exact_case.main(Mcp)
