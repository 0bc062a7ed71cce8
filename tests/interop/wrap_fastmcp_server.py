"""A FastMCP server whose tools sample: over stdio, or over HTTP at the port that is given."""

import sys

from fastmcp import Context, FastMCP
from pydantic import BaseModel

server = FastMCP("interop")


class Verdict(BaseModel):
    text: str


@server.tool
async def ask(prompt: str, ctx: Context) -> str:
    """One sampling."""
    return (await ctx.sample(prompt, max_tokens=64)).text


@server.tool
async def several(count: int, ctx: Context) -> list[str]:
    """Some at once."""
    import asyncio
    answers = await asyncio.gather(*(ctx.sample(f"number {n}", max_tokens=64) for n in range(count)))
    return [answer.text for answer in answers]


def weather(city: str) -> str:
    """Of a city."""
    return f"18 degrees in {city}"


@server.tool
async def loop(prompt: str, ctx: Context) -> str:
    """A tool loop."""
    return (await ctx.sample(prompt, tools=[weather], max_tokens=64)).text


@server.tool
async def verdict(prompt: str, ctx: Context) -> str:
    """An answer of a type."""
    return repr((await ctx.sample(prompt, result_type=Verdict, max_tokens=64)).result)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="ERROR")
    else:
        server.run(show_banner=False)
