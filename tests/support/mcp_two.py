"""What tests share that always have two gateways (mcp_gates.py): who is where.

The home of a session is the gateway that holds its own stream. Here that is the first, where the client has said hello.
"""

import time

import harness
import mcp_rig
from mcp_server import note, result


def goes_on_without_redis(settings):
    settings["plans"]["standard"]["on_store_failure"] = {"budget": {"local": 1000}}


class Listener:
    """A client's GET that is opened again when it ends."""

    def __init__(self, client):
        self.client, self.last_id = client, None
        self._open()

    def _open(self):
        self.get = self.client.get(self.last_id)
        return self.get.status == 200

    def event(self):
        """Bytes of the next one that has data, from whichever GET."""
        until = time.monotonic() + harness.PATIENCE_S
        while True:
            try:
                shown = self.get.shown()
            except harness.Failure:
                if not self.get.over or time.monotonic() > until:
                    raise  # nothing comes
                harness.wait_for(self._open, "the client's next GET")
                continue
            for line in shown.splitlines():
                if line.startswith(b"id:"):
                    self.last_id = line[3:].strip().decode()
            return shown


class Case(mcp_rig.Case):
    gateways = 2

    def at(self, client, number):
        return client.at(self.gate.gateways[number].url)

    def hello(self, url, number=0, capabilities=None, **options):
        """A session that has begun there: its client as it speaks to that gateway, and to the other."""
        client = self.at(self.client(url, **options), number)
        client.hello(capabilities)
        return client, self.at(client, 1 - number)

    def sides(self, capabilities=None, revision="2025-11-25", **options):
        """A server, the client as it speaks to the home and to the other gateway, and the own stream."""
        server = self.server(revision=revision)
        home, other = self.hello(self.front(server, **options), capabilities=capabilities, revision=revision)
        return server, home, other, server.get_stream()

    def logged(self, **options):
        """As sides(), where the own stream is one of an event store."""
        server = self.server(get="take")
        log = server.log("own")
        client = self.client(self.front(server, **options))
        home = self.at(client, 0)
        home.hello(initialized=False)
        reply = home.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        log.attach(server.take().stream())
        self.assertEqual(reply.status, 202)
        return server, home, self.at(home, 1), log

    @staticmethod
    def pings(server, client):
        """Requests, until a second GET has come."""
        server.on("ping", lambda call: call.json(result(call.message["id"])))
        harness.wait_for(lambda: client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 200 and len(server.seen("GET")) > 1,
                         "another GET")

    def settled(self):
        """No gateway has claimed what it has not answered: none would be answered once more after a death."""
        harness.wait_for(lambda: not self.gate.redis.ask("KEYS", "sluice:mcp:1:c:*"), "the claims are over")

    def asked(self, count):
        self.provider.wait_stats(lambda stats: stats["requests"] == count, f"{count} requests to the provider")

    def stopped(self, count):
        """So many samplings have been."""
        harness.wait_for(lambda: sum('"status":499' in line for line in self.gate.stdout) == count, f"{count} samplings that were stopped")

    def is_over(self, client):
        """The session, for that gateway."""
        def unknown():
            reply = client.post(note())
            return reply.status == 404 and reply.json()["error"].get("data", {}).get("reason") == "session_unknown"
        harness.wait_for(unknown, "the session's end")
