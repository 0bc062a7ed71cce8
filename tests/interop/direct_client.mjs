// The official SDKs of Node, told on stdin what to do: a line of JSON for each thing, and a line on stdout with what came of it.
// direct_client.py takes the same lines.
import { createInterface } from "node:readline";

import Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import * as z from "zod/v4";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const City = z.object({ name: z.string(), degrees: z.number() });
const weather = ({ city }) => `18 degrees in ${city}`;

function say(what) {
  process.stdout.write(JSON.stringify(what) + "\n");
}

async function collect(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

// What is the same for both APIs; `calls` is the resource.
class Does {
  constructor(client, calls) {
    this.client = client;
    this.calls = calls;
    this.seen = [];
    this.aloud = false;
  }

  // Of a stream. With "aloud" the first one is told at once.
  note(item) {
    this.seen.push(item);
    if (this.aloud && this.seen.length === 1) say({ first: item });
  }

  create(params) {
    return this.calls.create(params);
  }

  async raw(params) {
    const { data, response } = await this.calls.create(params).withResponse();
    return { headers: Object.fromEntries(response.headers), value: params.stream ? await collect(data) : data };
  }

  async events(params) {
    for await (const event of await this.calls.create({ ...params, stream: true })) this.note(event);
    return this.seen;
  }

  // So many of them at once, each with words of its own: what they came to.
  async many({ count, ...params }) {
    const said = Array.from({ length: count }, (_, n) => [{ role: "user", content: `number ${n}` }]);
    return (await Promise.all(said.map((messages) => this.stream({ ...params, messages })))).map((one) => one.final);
  }

  async leave(params) {
    const stream = await this.calls.create({ ...params, stream: true });
    for await (const event of stream) return event; // which ends the request
  }

  async cancel(params) {
    const controller = new AbortController();
    const answer = this.calls.create(params, { signal: controller.signal });
    lines.next().then(() => controller.abort());
    return answer;
  }

  async models() {
    return collect(await this.client.models.list());
  }

  model({ id }) {
    return this.client.models.retrieve(id);
  }
}

class Messages extends Does {
  constructor(client) {
    super(client, client.messages);
  }

  async stream(params) {
    const stream = this.calls.stream(params);
    for await (const event of stream) this.note(event.type);
    return { seen: this.seen, final: await stream.finalMessage() };
  }

  async parse(params) {
    return (await this.calls.parse({ ...params, output_config: { format: zodOutputFormat(City) } })).parsed_output;
  }

  async tools(params) {
    const tool = betaZodTool({ name: "get_weather", description: "The weather of a city.", inputSchema: z.object({ city: z.string() }), run: weather });
    const turns = [];
    for await (const turn of this.client.beta.messages.toolRunner({ ...params, tools: [tool] }))
      turns.push(params.stream ? await turn.finalMessage() : turn);
    return turns;
  }

  count(params) {
    return this.calls.countTokens(params);
  }
}

class Chat extends Does {
  constructor(client) {
    super(client, client.chat.completions);
  }

  async stream(params) {
    const stream = this.calls.stream(params);
    stream.on("chunk", () => this.note("chunk"));
    return { seen: this.seen, final: await stream.finalChatCompletion() };
  }

  async parse(params) {
    return (await this.calls.parse({ ...params, response_format: zodResponseFormat(City, "City") })).choices[0].message.parsed;
  }

  async tools(params) {
    const tool = { type: "function", function: { name: "get_weather", description: "The weather of a city.", parse: JSON.parse, function: weather,
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } } };
    const runner = this.calls.runTools({ ...params, tools: [tool] });
    await runner.done();
    return runner.allChatCompletions();
  }
}

// What an exception tells.
function raised(error) {
  const is = [];
  for (let one = error.constructor; one?.name; one = Object.getPrototypeOf(one)) is.push(one.name);
  return { class: is[0], is, message: error.message, status: error.status ?? null, request_id: error.requestID ?? null, type: error.type ?? null,
    code: error.code ?? null, error_code: error.errorCode ?? null, headers: error.headers ? Object.fromEntries(error.headers) : null };
}

async function act({ api, url, key, retries = 0, options = {}, aloud = false, do: what, params }) {
  const settings = { apiKey: key, maxRetries: retries, ...options };
  if (options.timeout) settings.timeout = options.timeout * 1000;
  const does = api === "chat" ? new Chat(new OpenAI({ ...settings, baseURL: `${url}/v1` })) : new Messages(new Anthropic({ ...settings, baseURL: url }));
  does.aloud = aloud;
  try {
    return { value: await does[what](params) };
  } catch (error) {
    return { raised: raised(error), seen: does.seen };
  }
}

for (let line = await lines.next(); !line.done; line = await lines.next())
  say(await act(JSON.parse(line.value)));
