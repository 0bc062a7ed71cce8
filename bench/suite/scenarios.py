"""The table of scenarios, in the order in which they run."""

from suite.api import Ages, Relayed, Requests
from suite.events import Attack, Idle, Loading, Redis, Reload, Restart, Soak, Streams, ToolLoop, Waiting
from suite.mcp import Backfill, Messages, Sessions
from suite.scenario import PROXIES, Closed, Fresh, Open, Paced

KB, MB = 1024, 1024 * 1024
GATEWAY, AND_NGINX, AND_PROXIES = ("sluice",), ("sluice", "nginx"), ("sluice", *PROXIES)
CALM = (2000,)  # where DESIGN 6 asks for latency


def bed(**options):
    return {"bed": options}


def sweep(name, *values):
    """Points that differ in one argument of Bed."""
    return [(value, {name: value}) for value in values]


ALL = (
    Closed("direct", "callers and provider with nothing between them, HTTP/1.1", ("direct",), **bed(front="h1")),
    Closed("h2c-1", "HTTP/2 without TLS, one request at a time", in_flight=1),
    Closed("h2c-64", "64 requests in flight, 8 on a connection", in_flight=64),
    Closed("h2c-512", "512 in flight", in_flight=512),
    Closed("h1-64", "HTTP/1.1, 64 connections", (*AND_PROXIES, "portkey", "sdk"), **bed(front="h1"), in_flight=64),
    Closed("lines-64", "answers with all the header lines of a real provider's", **bed(provider="lines"), in_flight=64),
    Closed("tls-64", "TLS in front", **bed(front="tls"), in_flight=64),
    Closed("provider-tls-64", "TLS to the provider", **bed(provider_tls=True), in_flight=64),
    Closed("tls-both-64", "TLS on both sides", **bed(front="tls", provider_tls=True), in_flight=64),
    Redis("redis", "5,000 requests a second, limits in Redis and in memory", ("sluice-redis", "sluice", "nginx"),
          in_flight=160, rate=5000),
    ToolLoop("tool-loop", "two turns with a tool, 64 in flight"),
    Closed("body", "the request's size, 8 in flight", x_name="bytes of the request", in_flight=8,
           sweep=(sweep("size", 512, 2 * KB, 16 * KB, 256 * KB, MB), sweep("size", 512, 256 * KB))),
    Closed("latency", "a provider that takes its time, 512 in flight", x_name="the provider takes", in_flight=512,
           sweep=([("50ms", {"provider": "latency-50ms"}), ("1s", {"provider": "latency-1s"})],
                  [("50ms", {"provider": "latency-50ms"})])),
    Open("rate", "independent callers at a fixed rate", (*AND_PROXIES, "direct"), x_name="requests a second offered",
         rates=((500, 1000, 2000, 4000, 6000, 8000, 10000), (500,)), calm=CALM),
    Open("rate-h1", "the same over HTTP/1.1", (*AND_PROXIES, "direct"), x_name="requests a second offered",
         rates=((500, 2000, 6000), (500,)), calm=CALM, **bed(front="h1")),
    Fresh("rate-fresh", "the same with servers that have just started", (*AND_PROXIES, "direct"),
          x_name="requests a second offered", rates=((10000,), (500,))),
    Paced("rate-paced", "20 callers in step at a fixed rate", (*AND_PROXIES, "direct"), x_name="requests a second offered",
          rates=((2000,), (500,)), calm=CALM, callers=20),
    Open("tenants", "the cost of tenants, 2,000 requests a second in turns", GATEWAY, x_name="tenants", rate=2000, abreast=True,
         sweep=(sweep("tenants", 1, 10, 100, 1000, 10000), sweep("tenants", 1, 1000))),
    Open("models", "the cost of models", GATEWAY, x_name="models", rate=2000, abreast=True,
         sweep=(sweep("models", 1, 10, 100, 500), sweep("models", 1, 100))),
    Streams("streams", "answers that stream, two events a second each", AND_PROXIES, x_name="streams",
            streams=((1000, 10000), (200,)), rounds=3),
    Waiting("waiting", "memory of requests that wait for the provider: h2c, and over TLS on both sides", AND_PROXIES, x_name="requests",
            counts=((2000, 10000), (300,)), rounds=3),
    Requests("api-h2c-64", "requests of a provider's own API (Messages), 64 in flight, HTTP/2", AND_PROXIES, in_flight=64),
    Requests("api-h1-64", "the same over HTTP/1.1", AND_NGINX, **bed(front="h1"), in_flight=64),
    Relayed("api-streams", "their answers as streams, two events a second each", AND_PROXIES, x_name="streams",
            streams=((10000,), (200,)), rounds=3),
    Ages("api-ages", "how long events of 100 such streams are under way, 20 a second each", (*AND_PROXIES, "direct"),
         x_name="streams", streams=100, pace_ms=50),
    Messages("mcp-h1-64", "messages of an MCP session that are no samplings, 64 in flight, HTTP/1.1", AND_NGINX, **bed(front="h1"), in_flight=64),
    Messages("mcp-h2c-64", "the same over HTTP/2", AND_NGINX, in_flight=64),
    Messages("mcp-events-64", "the same over HTTP/1.1, answers are streams of three events", AND_NGINX,
             **bed(front="h1", tool="events", streaming=True), in_flight=64),
    Backfill("mcp-backfill", "an MCP server's samplings at a fixed rate, the provider takes 5 ms", ("sluice", "direct"),
             x_name="samplings a second", rates=((500,), (100,)), calm=(500,), **bed(tool="sample", provider="latency-5ms", streaming=True)),
    Sessions("mcp-sessions", "memory of MCP sessions with their GET streams, HTTP/1.1", AND_NGINX, x_name="sessions",
             count=(10000, 100), rounds=3),
    Idle("idle", "memory of connections that do nothing", GATEWAY, x_name="by", count=(1500, 100), rounds=3),
    Loading("tenants-load", "a configuration of so many tenants, read and judged", GATEWAY, x_name="tenants",
            counts=((1000, 10000, 100000), (1000,))),
    Reload("reload", "a new configuration as fast as they are taken, 500 requests a second", GATEWAY, rate=500, rounds=3),
    Restart("restart", "two gateways replaced in turn under 500 requests a second", GATEWAY, rate=500, rounds=3),
    Attack("attack", "a hostile client beside honest ones", GATEWAY, x_name="attack", rounds=3,
           programs=(("rapid_reset", "settings_flood", "header_bomb", "unfinished_bodies"), ("rapid_reset",))),
    Soak("soak", "ten minutes at 500 requests a second: what grows", GATEWAY, rate=500),
)
BY_NAME = {scenario.name: scenario for scenario in ALL}
