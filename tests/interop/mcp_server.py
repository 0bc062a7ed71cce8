"""A server of Python's `mcp` over streamable HTTP. Usage: mcp_server.py [resumable] PORT."""

import asyncio
import sys

from mcp import types
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.streamable_http import EventMessage, EventStore
from pydantic import BaseModel


class Events(EventStore):
    """All events of all streams; an id is the place."""

    def __init__(self):
        self.all = []

    async def store_event(self, stream_id, message):
        self.all.append((stream_id, message))
        return str(len(self.all))

    async def replay_events_after(self, last_event_id, send_callback):
        stream = self.all[int(last_event_id) - 1][0]
        for place, (its, message) in enumerate(self.all[int(last_event_id):], int(last_event_id) + 1):
            if its == stream and message is not None:
                await send_callback(EventMessage(message, str(place)))
        return stream


server = FastMCP("interop", host="127.0.0.1", port=int(sys.argv[-1]), log_level="ERROR",
                 **({"event_store": Events(), "retry_interval": 50} if "resumable" in sys.argv else {}))
stopped = asyncio.Event()
WEATHER = types.Tool(name="weather", inputSchema={"type": "object", "properties": {"city": {"type": "string"}}})


class Person(BaseModel):
    name: str


def user(*content):
    return types.SamplingMessage(role="user", content=list(content))


def text(words):
    return types.TextContent(type="text", text=words)


async def sample(ctx, words, on_call):
    answer = await ctx.session.create_message([types.SamplingMessage(role="user", content=text(words))], max_tokens=64,
                                              related_request_id=ctx.request_id if on_call else None)
    return answer.content.text


@server.tool()
async def ask(words: str, ctx: Context) -> str:
    """A sampling on the stream of the call."""
    return await sample(ctx, words, True)


@server.tool()
async def ask_aside(words: str, ctx: Context) -> str:
    """A sampling on the session's own stream."""
    return await sample(ctx, words, False)


@server.tool()
async def ask_later(words: str, ctx: Context) -> str:
    """Samplings after the stream of the call has been closed: the client comes again for the rest."""
    await ctx.close_sse_stream()
    return await sample(ctx, words, True) + await sample(ctx, words, False) + await sample(ctx, words, True)


@server.tool()
async def several(count: int, ctx: Context) -> list[str]:
    """Some at once, on both streams."""
    return await asyncio.gather(*(sample(ctx, f"number {n}", n % 2 == 0) for n in range(count)))


@server.tool()
async def loop(words: str, ctx: Context) -> str:
    """Samplings with a tool, until there is an answer."""
    messages = [user(text(words))]
    while True:
        answer = await ctx.session.create_message(messages, max_tokens=64, tools=[WEATHER], related_request_id=ctx.request_id)
        blocks = answer.content_as_list
        if answer.stopReason != "toolUse":
            return blocks[0].text
        messages.append(types.SamplingMessage(role="assistant", content=blocks))
        messages.append(user(*(types.ToolResultContent(type="tool_result", toolUseId=block.id, content=[text("18 degrees")])
                               for block in blocks if block.type == "tool_use")))


@server.tool()
async def meet(ctx: Context) -> str:
    """Asks the client for what is no sampling: on the stream of the call, and on the session's own."""
    answer = await ctx.elicit("Who are you?", Person)
    roots = await ctx.session.list_roots()
    return f"{answer.data.name} has {roots.roots[0].uri}"


@server.tool()
async def announce(ctx: Context) -> str:
    """Notifications on both streams."""
    for step in range(3):
        await ctx.report_progress(step, 3)
    await ctx.info("on the call")
    await ctx.session.send_log_message("info", "aside")
    await ctx.session.send_resource_list_changed()
    return "announced"


@server.tool()
async def wait(ctx: Context) -> str:
    """Until it is cancelled."""
    await ctx.report_progress(1, 2)
    try:
        await asyncio.Event().wait()
    finally:
        stopped.set()


@server.tool()
async def was_stopped() -> str:
    """Once the wait has been cancelled."""
    await stopped.wait()
    stopped.clear()
    return "stopped"


server.run("streamable-http")
