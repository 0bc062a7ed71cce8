"""The MCP proxy: messages, streams and samplings of the simulator's MCP server, behind the gateway or nginx."""

import resource

import harness
import mcp_client
from suite import load, scenario, stats, work
from suite.machine import pss_kb
from suite.servers import Bed, Direct, Gateway, Nginx

REVISION = "2025-11-25"
SESSIONS = 64  # of callers that do not know of each other
WARM_UP = 50   # sessions that come and go before those whose memory is counted
FILES_BESIDE = 600
NOT_PASSED = ("host", "content-length", "connection")


class McpGateway(Gateway):
    """Asked as by a client with a session whose samplings the gateway answers."""

    fronts = ("h2c", "h1")
    streams = 1  # at the server all the time: of the session that requests are sent in

    def settings(self, changes):
        settings = super().settings({**changes, "mcp_servers": {"bench": {"url": self.bed.sim.url + "/mcp", "sessions": 20000}}})
        plan = settings["plans"]["standard"]
        plan["mcp_servers"] = {"allow": ["*"]}
        plan["limits"].update(mcp_messages_per_minute=60000000, mcp_sessions=20000)
        return settings

    def aim(self):
        self.url = f"{self.scheme}://127.0.0.1:{self.port}/mcp/bench"
        self.fields.update({"accept": mcp_client.BOTH, "mcp-protocol-version": REVISION, "mcp-session-id": self.sessions(1)[0]})

    def client(self, session=None, **options):
        client = mcp_client.Client(self.url, revision=REVISION, **options)
        client.session, client.revision = session, REVISION
        return client

    def sessions(self, count):
        """New ones, by the ids that a client gets."""
        client, found = self.client(keep=True), []
        try:
            for _ in range(count):
                client.session = None
                client.hello()
                found.append(client.session)
        finally:
            client.close()
        return found

    def end_sessions(self, sessions):
        client = self.client(keep=True)
        for client.session in sessions:
            client.delete().body()
        client.close()


class McpNginx(Nginx):
    """Sent what the server would be sent."""

    streams = 0

    def client(self, session=None):
        return mcp_client.Client(self.url, key=None, revision=REVISION)

    def sessions(self, count):
        return [None] * count

    def end_sessions(self, sessions):
        """It knows of none."""


class McpBed(Bed):
    """`tool` is what is called, in a message of 1 KB; its answer has 1 KB, too."""

    kinds = {"sluice": McpGateway, "nginx": McpNginx, "direct": Direct}

    def __init__(self, tool="json", **options):
        super().__init__(body=work.tool_call(tool), answer=work.TOOL_TEXT, **options)

    @property
    def passed(self):
        return [name for name in self.provider_request["headers"] if name not in NOT_PASSED]

    def samplings_ms(self):
        """How long each of them took since this was asked last, as the MCP server saw it."""
        return [int(line) / 1000 for line in harness.request("GET", self.sim.url + "/mcp/samplings").body.split()]


class Messages(scenario.Closed):
    """Calls of a tool in one session."""

    bed_kind = McpBed


class Sessions(scenario.Scenario):
    """Memory of sessions of which each has a GET of its client, on a connection of its own; behind the gateway the session's
    own GET, too. Behind nginx a client's GET is one of the server's. options: count (full, quick)."""

    bed_kind = McpBed
    fresh = True

    def count(self, effort):
        """Two connections each must fit into the open files."""
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        return min(effort.pick(*self.options["count"]), (most - FILES_BESIDE) // 2)

    def points(self, effort):
        return [scenario.Point(self.count(effort), {"front": "h1", "streaming": True}, self.servers)]

    def open(self, bed, server, count):
        """Sessions, and their clients with an open GET each."""
        sessions = server.sessions(count)
        clients = [server.client(session) for session in sessions]
        for client in clients:
            status = client.get().status
            if status != 200:
                raise stats.Void(f"{self.name}, {server.name}: a GET answers {status}")
        self.wait_streams(bed, count)
        return sessions, clients

    def measure(self, bed, server, point, effort):
        self.end(bed, server, *self.open(bed, server, WARM_UP))
        before = pss_kb(server.pid)
        opened = self.open(bed, server, point.x)
        after = pss_kb(server.pid)
        self.end(bed, server, *opened)
        return {"kb_each": (after - before) / point.x}

    def end(self, bed, server, sessions, clients):
        for client in clients:
            client.close()
        server.end_sessions(sessions)
        self.wait_streams(bed, 0)

    @staticmethod
    def wait_streams(bed, count):
        beside = sum(server.streams for server in bed.servers.values())
        bed.sim.wait_stats(lambda seen: seen["in_flight"] == count + beside, f"{count} streams at the server")


class Backfill(scenario.Open):
    """Calls of a tool that asks for a sampling, at a fixed rate: latency is from the server's request to the answer that it
    gets. What is added is what that takes beside a request to the provider itself."""

    bed_kind = McpBed

    def prepare(self, bed, server, point, effort):
        if self.is_ours(server):
            server.tokens = server.sessions(SESSIONS)
        self.replay(server, point, 0.5).require_all(f"{self.name}, {server.name}, warming up")

    def replay(self, server, point, seconds):
        keys = {"keys": server.tokens, "keyed": "mcp-session-id"} if self.is_ours(server) else {}
        return load.replay(server, self.rate(point), seconds, seed=self.round, **keys)

    def measure(self, bed, server, point, effort):
        outcomes = []
        bed.samplings_ms()
        figure = scenario.cost(self.name, server, lambda: outcomes.append(
            self.replay(server, point, effort.seconds)) or outcomes[0])
        if not self.is_ours(server):
            return figure
        took = bed.samplings_ms()
        stats.require_all(f"{self.name}, {server.name}, samplings", outcomes[0].asked, len(took))
        return {**figure, "p50_ms": stats.percentile(took, 0.5), "p99_ms": stats.percentile(took, 0.99)}
