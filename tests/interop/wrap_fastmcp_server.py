"""A FastMCP server over stdio whose tools sample."""

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


if __name__ == "__main__":
    server.run(show_banner=False)
