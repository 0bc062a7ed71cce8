// What the conformance suite asks a server for, on SDK v2, over HTTP at the port that is given: one factory for both eras. In
// sessions it asks by requests, with event ids and `retry`; in 2026-07-28 by input_required.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { createMcpHandler, createRequestStateCodec, fromJsonSchema, hostHeaderValidationResponse, inputRequired, isLegacyRequest,
  localhostAllowedHostnames, localhostAllowedOrigins, McpServer, originValidationResponse,
  ResourceTemplate, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import * as z from 'zod/v4';

const image = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const audio = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';
const state = createRequestStateCodec({ key: 'k'.repeat(32) });

const text = (words) => ({ type: 'text', text: words });
const said = (words) => ({ content: [text(words)] });
const user = (content) => ({ role: 'user', content });
const form = (properties, required = []) => ({ type: 'object', properties, required });
const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

const options = ['option1', 'option2', 'option3'];
const titled = (word) => [1, 2, 3].map((n) => ({ const: `value${n}`, title: `${word} ${n}` }));
const defaults = form({ name: { type: 'string', default: 'John Doe' }, age: { type: 'integer', default: 30 },
  score: { type: 'number', default: 95.5 }, status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
  verified: { type: 'boolean', default: true } });
const enums = form({ untitledSingle: { type: 'string', enum: options }, titledSingle: { type: 'string', oneOf: titled('Option') },
  legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
  untitledMulti: { type: 'array', minItems: 1, maxItems: 3, items: { type: 'string', enum: options } },
  titledMulti: { type: 'array', minItems: 1, maxItems: 3, items: { anyOf: titled('Choice') } } });
const everyKeyword = { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object',
  $defs: { address: { $anchor: 'addressDef', ...form({ street: { type: 'string' }, city: { type: 'string' } }) } },
  properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' }, contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' }, email: { type: 'string' } },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] }, else: { required: ['email'] }, additionalProperties: false };

// ---- what both eras have ----

const addTools = (server) => {
  const tool = (name, inputSchema, call) => server.registerTool(name, { description: name, inputSchema }, call);
  const plain = (name, ...content) => tool(name, z.object({}), async () => ({ content }));
  const embedded = (uri, mimeType, words) => ({ type: 'resource', resource: { uri, mimeType, text: words } });
  plain('test_simple_text', text('This is a simple text response for testing.'));
  plain('test_image_content', { type: 'image', data: image, mimeType: 'image/png' });
  plain('test_audio_content', { type: 'audio', data: audio, mimeType: 'audio/wav' });
  plain('test_embedded_resource', embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.'));
  plain('test_multiple_content_types', text('Multiple content types test:'), { type: 'image', data: image, mimeType: 'image/png' },
    embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'));
  tool('test_error_handling', z.object({}), async () => { throw new Error('This tool intentionally returns an error for testing'); });
  tool('json_schema_2020_12_tool', fromJsonSchema(everyKeyword), async (values) => said(JSON.stringify(values)));
  tool('test_x_mcp_header', fromJsonSchema(form({ region: { type: 'string', 'x-mcp-header': 'Region' } })),
    async ({ region }) => said(`region: ${region}`));
  tool('test_tool_with_progress', z.object({}), async (_, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken ?? 0;
    for (const progress of [0, 50, 100]) {
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
      await sleep(20);
    }
    return said(String(progressToken));
  });
};

const addRest = (server) => {
  const resource = (name, mimeType, more) => server.registerResource(name, `test://${name}`, { mimeType },
    async ({ href }) => ({ contents: [{ uri: href, mimeType, ...more }] }));
  resource('static-text', 'text/plain', { text: 'This is the content of the static text resource.' });
  resource('static-binary', 'image/png', { blob: image });
  resource('watched-resource', 'text/plain', { text: 'Watched resource content' });
  server.registerResource('template', new ResourceTemplate('test://template/{id}/data', { list: undefined }), {},
    async ({ href }, { id }) => ({ contents: [{ uri: href, mimeType: 'application/json', text: JSON.stringify({ id, data: `of ${id}` }) }] }));
  const prompt = (name, args, get) => server.registerPrompt(name, { description: name, argsSchema: args && z.object(args) },
    async (...all) => ({ messages: get(...all).map(user) }));
  prompt('test_simple_prompt', undefined, () => [text('This is a simple prompt for testing.')]);
  prompt('test_prompt_with_arguments', { arg1: z.string(), arg2: z.string() },
    ({ arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)]);
  prompt('test_prompt_with_embedded_resource', { resourceUri: z.string() }, ({ resourceUri }) =>
    [{ type: 'resource', resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' } }, text('Please.')]);
  prompt('test_prompt_with_image', undefined, () => [{ type: 'image', data: image, mimeType: 'image/png' }, text('Please.')]);
  server.server.setRequestHandler('completion/complete', async () => ({ completion: { values: [], total: 0, hasMore: false } }));
};

// ---- sessions ----

const addSession = (server) => {
  const tool = (name, inputSchema, call) => server.registerTool(name, { description: name, inputSchema }, call);
  const elicit = (name, message, requestedSchema) => tool(name, z.object({ message: z.string().default(message) }), async (values, { mcpReq }) => {
    const { action, content } = await mcpReq.send({ method: 'elicitation/create', params: { message: values.message, requestedSchema } });
    return said(`action=${action}, content=${JSON.stringify(content ?? {})}`);
  });
  tool('test_sampling', z.object({ prompt: z.string() }), async ({ prompt }, { mcpReq }) => {
    const params = { messages: [user(text(prompt))], maxTokens: 100 };
    const answer = await mcpReq.send({ method: 'sampling/createMessage', params }); // on the call's own stream
    return said(`LLM response: ${answer.content.text}`);
  });
  elicit('test_elicitation', 'Please', form({ response: { type: 'string' } }, ['response']));
  elicit('test_elicitation_sep1034_defaults', 'Please review', defaults);
  elicit('test_elicitation_sep1330_enums', 'Please select', enums);
  tool('test_tool_with_logging', z.object({}), async (_, { mcpReq }) => {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await mcpReq.log('info', data);
      await sleep(20);
    }
    return said('Tool with logging executed successfully');
  });
  tool('test_reconnection', z.object({}), async (_, { http }) => {
    http?.closeSSE?.();
    await sleep(100);
    return said('Reconnection test completed successfully.');
  });
  for (const method of ['resources/subscribe', 'resources/unsubscribe', 'logging/setLevel']) {
    server.server.setRequestHandler(method, async () => ({}));
  }
};

// ---- 2026-07-28 ----

const addRounds = (server, change) => {
  const tool = (name, call) => server.registerTool(name, { description: name, inputSchema: z.object({}) },
    async (_, context) => call(context.mcpReq.inputResponses ?? {}, context));
  const ask = (field, type = 'string') => inputRequired.elicit({ message: `Your ${field}?`, requestedSchema: form({ [field]: { type } }, [field]) });
  const sample = (words) => inputRequired.createMessage({ messages: [user(text(words))], maxTokens: 50 });
  const name = 'test_input_required_result';
  tool(`${name}_elicitation`, ({ user_name: it }) =>
    it?.content?.name ? said(`Hello, ${it.content.name}!`) : inputRequired({ inputRequests: { user_name: ask('name') } }));
  tool(`${name}_sampling`, ({ sample_request: it }) =>
    it ? said(`Sampling result: ${it.content?.text}`) : inputRequired({ inputRequests: { sample_request: sample('What is the capital of France?') } }));
  tool(`${name}_list_roots`, ({ roots_request: it }) =>
    it ? said(`Found ${it.roots?.length} root(s)`) : inputRequired({ inputRequests: { roots_request: inputRequired.listRoots() } }));
  for (const [which, ok] of [['request_state', 'state-ok: requestState validated'], ['tampered_state', 'integrity-ok: state verified']]) {
    tool(`${name}_${which}`, async ({ confirm }, { mcpReq }) => confirm && mcpReq.requestState()?.kind === which ? said(ok)
      : inputRequired({ inputRequests: { confirm: ask('ok', 'boolean') }, requestState: await state.mint({ kind: which }) }));
  }
  tool(`${name}_multiple_inputs`, async ({ user_name: who, greeting, client_roots: roots }) => who && greeting && roots
    ? said(`Name: ${who.content?.name}; Greeting: ${greeting.content?.text}; Roots: ${roots.roots?.length}`)
    : inputRequired({ inputRequests: { user_name: ask('name'), greeting: sample('Generate a greeting'), client_roots: inputRequired.listRoots() },
      requestState: await state.mint({}) }));
  tool(`${name}_multi_round`, async ({ step1, step2 }, { mcpReq }) => {
    const known = mcpReq.requestState();
    if (step2 && known?.name) return said(`Multi-round complete for ${known.name} who likes ${step2.content?.color}`);
    if (!step1) return inputRequired({ inputRequests: { step1: ask('name') }, requestState: await state.mint({ round: 1 }) });
    return inputRequired({ inputRequests: { step2: ask('color') }, requestState: await state.mint({ round: 2, name: step1.content?.name }) });
  });
  tool(`${name}_capabilities`, async (answers, { mcpReq }) => {
    const declares = mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {};
    const inputRequests = { ...(declares.elicitation && { elicit_input: ask('value') }), ...(declares.sampling && { sample_input: sample('Sample request') }) };
    if (Object.keys(answers).length > 0 || Object.keys(inputRequests).length === 0) return said(`received ${Object.keys(answers)}`);
    return inputRequired({ inputRequests, requestState: await state.mint({}) });
  });
  server.registerPrompt(`${name}_prompt`, { description: 'asks for context' }, async ({ mcpReq }) => {
    const context = mcpReq.inputResponses?.user_context?.content?.context;
    return context ? { messages: [user(text(`Prompt with context: ${context}`))] } : inputRequired({ inputRequests: { user_context: ask('context') } });
  });
  // The SDK refuses to ask a client for what it does not declare.
  tool('test_missing_capability', ({ one }) => (one ? said('Success') : inputRequired({ inputRequests: { one: sample('hello') } })));
  tool('test_streaming_elicitation', async (_, { mcpReq }) => {
    await mcpReq.notify({ method: 'notifications/progress', params: { progressToken: mcpReq._meta?.progressToken ?? 'none', progress: 1 } });
    return said('Streaming complete');
  });
  tool('test_logging_tool', async (_, { mcpReq }) => {
    await mcpReq.log('info', 'Diagnostic trace');
    return said('Logging evaluated');
  });
  tool('test_trigger_tool_change', () => { change().toolsChanged(); return said('Mutation triggered'); });
  tool('test_trigger_prompt_change', () => { change().promptsChanged(); return said('Mutation triggered'); });
};

const make = (modern, change) => {
  const listChanged = true;
  const server = new McpServer({ name: 'conformance', version: '1' }, { requestState: { verify: state.verify },
    capabilities: { tools: { listChanged }, prompts: { listChanged }, resources: { listChanged, subscribe: !modern }, logging: {}, completions: {} } });
  addTools(server);
  addRest(server);
  if (modern) addRounds(server, change);
  else addSession(server);
  return server;
};

// ---- HTTP ----

// Of a session's streams; events are found again by their ids.
const eventStore = () => {
  const events = [];
  return {
    storeEvent: async (stream, message) => `${stream}_${events.push({ stream, message }) - 1}`,
    getStreamIdForEventId: async (id) => id.slice(0, id.lastIndexOf('_')),
    replayEventsAfter: async (id, { send }) => {
      const cut = id.lastIndexOf('_');
      for (let n = Number(id.slice(cut + 1)) + 1; n < events.length; n += 1) {
        const { stream, message } = events[n];
        if (stream === id.slice(0, cut) && message.jsonrpc) await send(`${stream}_${n}`, message);
      }
      return id.slice(0, cut);
    },
  };
};

const sessions = new Map();
const refusal = (status, message) => Response.json({ jsonrpc: '2.0', id: null, error: { code: -32001, message } }, { status });

const inSession = async (request) => {
  const id = request.headers.get('mcp-session-id');
  if (id) return sessions.get(id)?.handleRequest(request) ?? refusal(404, 'Session not found');
  const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, eventStore: eventStore(), retryInterval: 500,
    onsessioninitialized: (made) => { sessions.set(made, transport); }, onsessionclosed: (gone) => { sessions.delete(gone); } });
  await make(false).connect(transport);
  return transport.handleRequest(request);
};

const modern = createMcpHandler(() => make(true, () => modern.notify), { legacy: 'reject' });
const answer = async (request) => hostHeaderValidationResponse(request, localhostAllowedHostnames())
  ?? originValidationResponse(request, localhostAllowedOrigins())
  ?? ((await isLegacyRequest(request.clone())) ? inSession(request) : modern.fetch(request));

const port = Number(process.argv[2]);
createServer(async (incoming, response) => {
  const { method, headers } = incoming;
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  const body = ['GET', 'HEAD'].includes(method) ? undefined : Readable.toWeb(incoming);
  const made = await answer(new Request(`http://${headers.host}${incoming.url}`, { method, headers, body, duplex: 'half', signal: gone.signal }));
  response.writeHead(made.status, Object.fromEntries(made.headers));
  response.flushHeaders();
  if (made.body) Readable.fromWeb(made.body).on('error', () => response.destroy()).pipe(response);
  else response.end();
}).listen(port, '127.0.0.1');
