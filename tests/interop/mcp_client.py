"""mcp_client.mjs with the official client of Python. Usage: mcp_client.py PLAN; prints one line of JSON."""

import asyncio
import json
import sys

import httpx
from mcp import ClientSession, McpError, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

ROOT = types.Root(uri="file:///interop", name="interop")


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def run(url, key, gateway, calls, sse=False, offers=None, cancel=None, after=None):
    seen = {"samplings": 0, "asked": [], "notifications": [], "progress": {}, "answers": []}

    async def roots(_context):
        seen["asked"].append("roots/list")
        return types.ListRootsResult(roots=[ROOT])

    async def elicited(_context, _params):
        seen["asked"].append("elicitation/create")
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def sampled(_context, params):
        seen["samplings"] += 1
        body = {"jsonrpc": "2.0", "id": seen["samplings"], "method": "sampling/createMessage", "params": plain(params)}
        answer = (await web.post(gateway + "/v1/sampling", json=body)).json()
        kind = types.CreateMessageResultWithTools if params.tools else types.CreateMessageResult
        return kind.model_validate(answer["result"])

    async def heard(message):
        if isinstance(message, types.ServerNotification) and message.root.method != "notifications/progress":
            seen["notifications"].append(plain(message))

    async def call(what, on_progress=None):
        async def progressed(progress, _total, _message):
            seen["progress"].setdefault(what["name"], []).append(progress)

        try:
            return plain(await session.call_tool(what["name"], what["arguments"], progress_callback=on_progress or progressed))
        except McpError as error:
            return {"error": plain(error.error)}

    async def call_and_cancel(what):
        begun = asyncio.Event()

        async def begins(*_):
            begun.set()

        number = session._request_id  # of the next request: the session has no other word for it
        waiting = asyncio.create_task(call(what, begins))
        await begun.wait()
        await session.send_notification(types.ClientNotification(types.CancelledNotification(
            params=types.CancelledNotificationParams(requestId=number))))
        waiting.cancel()  # some servers answer, some do not

    authorization = {"Authorization": "Bearer " + key}
    async with (httpx.AsyncClient(headers=authorization, timeout=30) as web,
                sse_client(url, authorization) if sse else streamable_http_client(url, http_client=web) as (read, write, *session_id),
                ClientSession(read, write, list_roots_callback=roots, elicitation_callback=elicited, message_handler=heard,
                              sampling_callback=sampled if gateway else None,
                              sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()) if gateway else None)
                as session):
        hello = await session.initialize()
        seen["server"] = {**plain(hello.serverInfo), "instructions": hello.instructions, "capabilities": plain(hello.capabilities)}
        while True:
            seen["tools"] = [plain(tool) for tool in (await session.list_tools()).tools]
            if offers is None or any(tool["name"] == offers for tool in seen["tools"]):
                break
        for group in calls:
            seen["answers"].append(await asyncio.gather(*map(call, group)))
        if cancel is not None:
            await call_and_cancel(cancel)
            seen["after"] = await call(after)
        if session_id and session_id[0]() is not None:  # it ends, and whoever goes on with it is told so
            headers = {"Mcp-Session-Id": session_id[0](), "Accept": "application/json, text/event-stream"}
            await web.delete(url, headers=headers)
            late = {"jsonrpc": "2.0", "id": "late", "method": "ping"}
            seen["ended"] = (await web.post(url, json=late, headers=headers)).status_code
    return seen


async def main(plan):
    print(json.dumps([await run(**one) for one in plan]))


asyncio.run(main(json.loads(sys.argv[1])))
