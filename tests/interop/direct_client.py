"""The official SDKs of Python, told on stdin what to do: a line of JSON for each thing, and a line on stdout with what came of it.

"plain" uses the SDKs' blocking clients, "async" the other ones. direct_client.mjs takes the same lines.
"""
import asyncio
import inspect
import json
import sys

import anthropic
import openai
import pydantic

KIND = {"messages": {"plain": anthropic.Anthropic, "async": anthropic.AsyncAnthropic},
        "chat": {"plain": openai.OpenAI, "async": openai.AsyncOpenAI}}


class City(pydantic.BaseModel):
    name: str
    degrees: float


def plain(value):
    """What JSON is made of."""
    return value.model_dump(mode="json", exclude_unset=True, warnings=False) if isinstance(value, pydantic.BaseModel) else value


async def ready(value):
    return await value if inspect.isawaitable(value) else value


async def each(stream):
    """Of a blocking stream or of one that is not."""
    if hasattr(stream, "__aiter__"):
        async for item in stream:
            yield item
    else:
        for item in stream:
            yield item


class Inside:
    """The context of a blocking manager or of one that is not."""

    def __init__(self, manager):
        self.manager, self.waits = manager, hasattr(manager, "__aenter__")

    async def __aenter__(self):
        return await self.manager.__aenter__() if self.waits else self.manager.__enter__()

    async def __aexit__(self, *how):
        return await self.manager.__aexit__(*how) if self.waits else self.manager.__exit__(*how)


class Does:
    """What is the same for both APIs; `calls` is the resource."""

    def __init__(self, client, kind, calls):
        self.client, self.kind, self.calls = client, kind, calls
        self.seen, self.aloud = [], False

    def note(self, item):
        """Of a stream. With "aloud" the first one is told at once."""
        self.seen.append(item)
        if self.aloud and len(self.seen) == 1:
            print(json.dumps({"first": item}), flush=True)

    async def create(self, params):
        return plain(await ready(self.calls.create(**params)))

    async def raw(self, params):
        """With "stream", too."""
        answer = await ready(self.calls.with_raw_response.create(**params))
        value = await ready(answer.parse())
        return {"headers": dict(answer.headers), "value": [plain(event) async for event in each(value)] if "stream" in params else plain(value)}

    async def events(self, params):
        """The stream as it comes; of one that breaks what came before, too."""
        async for event in each(await ready(self.calls.create(**params, stream=True))):
            self.note(plain(event))
        return self.seen

    async def stream(self, params):
        """The helper of that name: what kinds of events it had, and what they came to."""
        async with Inside(self.calls.stream(**params)) as stream:
            async for event in each(stream):
                self.note(event.type)
            return {"seen": self.seen, "final": plain(await ready(getattr(stream, self.FINAL)()))}

    async def many(self, params):
        """So many of them at once, each with words of its own: what they came to. Of clients that do not block."""
        said = [[{"role": "user", "content": f"number {n}"}] for n in range(params.pop("count"))]
        return [one["final"] for one in await asyncio.gather(*(self.stream({**params, "messages": messages}) for messages in said))]

    async def leave(self, params):
        """The first event alone."""
        stream = await ready(self.calls.create(**params, stream=True))
        async for event in each(stream):
            await ready(stream.close())
            return plain(event)

    async def cancel(self, params):
        """Called off by the next line of stdin."""
        task = asyncio.create_task(self.create(params))
        await asyncio.to_thread(sys.stdin.readline)
        task.cancel()
        return await task

    async def models(self, _):
        return [plain(model) async for model in each(self.client.models.list() if self.kind == "plain" else await self.client.models.list())]

    async def model(self, params):
        return plain(await ready(self.client.models.retrieve(params["id"])))


class Messages(Does):
    FINAL = "get_final_message"

    def __init__(self, client, kind):
        super().__init__(client, kind, client.messages)

    async def parse(self, params):
        return plain((await ready(self.calls.parse(**params, output_format=City))).parsed_output)

    async def tools(self, params):
        weather = anthropic.beta_tool if self.kind == "plain" else anthropic.beta_async_tool

        def get_weather(city: str) -> str:
            """The weather of a city.

            Args:
                city: its name
            """
            return f"18 degrees in {city}"

        async def get_weather_async(city: str) -> str:
            return get_weather(city)

        get_weather_async.__name__, get_weather_async.__doc__ = "get_weather", get_weather.__doc__
        streams = params.get("stream", False)
        runner = self.client.beta.messages.tool_runner(**params, tools=[weather(get_weather if self.kind == "plain" else get_weather_async)])
        turns = []
        async for turn in each(runner):
            turns.append(plain(await ready(turn.get_final_message()) if streams else turn))
        return turns

    async def count(self, params):
        return plain(await ready(self.calls.count_tokens(**params)))


class Chat(Does):
    FINAL = "get_final_completion"

    def __init__(self, client, kind):
        super().__init__(client, kind, client.chat.completions)

    async def parse(self, params):
        return plain((await ready(self.calls.parse(**params, response_format=City))).choices[0].message.parsed)

    async def tools(self, params):
        """This SDK has no runner for this API."""
        tool = {"type": "function", "function": {"name": "get_weather", "parameters": {
            "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
        messages, turns = list(params.pop("messages")), []
        while not turns or turns[-1]["choices"][0]["finish_reason"] == "tool_calls":
            answer = await ready(self.calls.create(**params, messages=messages, tools=[tool]))
            turns.append(plain(answer))
            messages.append(turns[-1]["choices"][0]["message"])
            for call in answer.choices[0].message.tool_calls or ():
                city = json.loads(call.function.arguments)["city"]
                messages.append({"role": "tool", "tool_call_id": call.id, "content": f"18 degrees in {city}"})
        return turns


def raised(error):
    """What an exception tells."""
    return {"class": type(error).__name__, "is": [one.__name__ for one in type(error).__mro__],
            "message": str(error), "status": getattr(error, "status_code", None), "request_id": getattr(error, "request_id", None),
            "type": getattr(error, "type", None), "code": getattr(error, "code", None), "error_code": getattr(error, "error_code", None),
            "headers": dict(error.response.headers) if hasattr(error, "response") else None}


async def do(wanted):
    api, kind = wanted["api"], wanted.get("kind", "plain")
    client = KIND[api][kind](base_url=wanted["url"] + ("/v1" if api == "chat" else ""), api_key=wanted["key"],
                             max_retries=wanted.get("retries", 0), **wanted.get("options", {}))
    does = {"messages": Messages, "chat": Chat}[api](client, kind)
    does.aloud = wanted.get("aloud", False)
    try:
        return {"value": await getattr(does, wanted["do"])(wanted["params"])}
    except (Exception, asyncio.CancelledError) as error:
        return {"raised": raised(error), "seen": does.seen}
    finally:
        await ready(client.close())


async def main():
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(await do(json.loads(line))), flush=True)


asyncio.run(main())
