"""A FastMCP client without sampling. Usage: wrap_fastmcp_client.py COMMAND ARG...; prints one line of JSON."""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def main(command, *args):
    async with Client(StdioTransport(command, list(args), env=dict(os.environ))) as client:
        answers = {name: (await client.call_tool(name, given)).data for name, given in (
            ("ask", {"prompt": "hello"}), ("several", {"count": 4}), ("loop", {"prompt": "the weather"}))}
        print(json.dumps(answers))


asyncio.run(main(*sys.argv[1:]))
