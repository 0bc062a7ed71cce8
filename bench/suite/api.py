"""The direct APIs: Anthropic's Messages, answered whole or as a stream, behind the gateway or a plain proxy."""

import os

from suite import events, load, scenario, stats, work
from suite.servers import KINDS, Bed, Gateway

PATH = "/v1/messages"
STREAMING = work.messages(300, stream=True)


class ApiGateway(Gateway):
    """Sent what the provider is sent, with a key of its own."""

    def aim(self):
        self.url = f"{self.scheme}://127.0.0.1:{self.port}{PATH}"
        self.fields["anthropic-version"] = "2023-06-01"


class ApiBed(Bed):
    kinds = {**KINDS, "sluice": ApiGateway}

    def __init__(self, **options):
        options.setdefault("body", work.messages())
        super().__init__(**options)


class Requests(scenario.Closed):
    """The provider's own request, answered whole."""

    bed_kind = ApiBed


class Relayed(events.Streams):
    """Streams of the provider's own events."""

    bed_kind = ApiBed
    body = STREAMING


class Ages(scenario.Scenario):
    """How long the events of a few steady streams are under way, from when the provider writes one until its caller has read
    it. options: streams, pace_ms."""

    bed_kind = ApiBed
    CONNECTIONS = 4

    def points(self, effort):
        return [scenario.Point(self.options["streams"], {"streaming": True, "body": STREAMING}, self.servers)]

    def count(self, seconds):
        """Events of each stream."""
        return max(2, int(seconds * 1000 / self.options["pace_ms"]))

    def prepare(self, bed, server, point, effort):
        self.ages(bed, server, point, 0.2)

    def ages(self, bed, server, point, seconds):
        """In milliseconds, of all events."""
        bed.sim.default(f"pace-{self.options['pace_ms']}ms-chunk-{events.CHUNK}-size-{events.CHUNK * self.count(seconds)}-stamp")
        path = os.path.join(bed.case.directory(), "stamps")
        with server.all_ok(self.name, point.x):
            load.replay(server, point.x / 0.5, 0.5, count=point.x, seed=self.round, connections=point.x if server.front == "h1" else self.CONNECTIONS,
                        stamps=path).require_all(f"{self.name}, {server.name}")
        with open(path, encoding="ascii") as file:
            return [int(line) / 1000 for line in file]

    def measure(self, bed, server, point, effort):
        found = self.ages(bed, server, point, effort.seconds)
        wanted = point.x * self.count(effort.seconds)
        if len(found) < 0.99 * wanted:  # what two reads have between them is not found
            raise stats.Void(f"{self.name}, {server.name}: {len(found)} of {wanted} events came")
        return {"age_p99_ms": stats.percentile(found, 0.99), "age_p50_ms": stats.percentile(found, 0.5)}
