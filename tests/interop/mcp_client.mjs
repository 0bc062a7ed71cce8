// An official client against one or more MCP servers over HTTP, as PLAN says; prints what it saw, one line of JSON.
// Usage: mcp_client.mjs v1|v2 PLAN, a JSON array of
//   {url, key,       the server
//    sse,            true: it speaks HTTP+SSE of 2024-11-05
//    gateway,        who answers the samplings that come to the client; null: it declares no sampling
//    offers,         a tool that the server lists some time after initialized, if any
//    calls,          groups of {name, arguments}: one after another, those of a group at once
//    cancel, after}  a call that is cancelled at its first progress, and one then, if any
import * as schemas from '@modelcontextprotocol/sdk/types.js';
import { sluiceHandler } from './sluice_handler.mjs';

const [version, plan] = process.argv.slice(2);
const second = version === 'v2';
const { Client } = await import(second ? '@modelcontextprotocol/client' : '@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } =
  await import(second ? '@modelcontextprotocol/client' : '@modelcontextprotocol/sdk/client/streamableHttp.js');
const { SSEClientTransport } = await import(second ? '@modelcontextprotocol/client' : '@modelcontextprotocol/sdk/client/sse.js');
const ROOT = { uri: 'file:///interop', name: 'interop' };
const failure = (error) => ({ error: { code: error.code, message: error.message } });

const run = async ({ url, key, sse, gateway, offers, calls, cancel, after }) => {
  const seen = { samplings: 0, asked: [], notifications: [], progress: {} };
  const capabilities = { roots: {}, elicitation: {}, ...(gateway && { sampling: { tools: {} } }) };
  const client = new Client({ name: 'interop', version: '1' }, { capabilities, versionNegotiation: { mode: sse ? 'legacy' : 'auto' } });
  const on = (method, schema, handler) => client.setRequestHandler(second ? method : schema, handler);
  on('roots/list', schemas.ListRootsRequestSchema, async () => {
    seen.asked.push('roots/list');
    return { roots: [ROOT] };
  });
  on('elicitation/create', schemas.ElicitRequestSchema, async () => {
    seen.asked.push('elicitation/create');
    return { action: 'accept', content: { name: 'Ada' } };
  });
  if (gateway) {
    const ask = sluiceHandler(gateway, key);
    on('sampling/createMessage', schemas.CreateMessageRequestSchema, async ({ params }) => {
      seen.samplings++;
      return ask({ method: 'sampling/createMessage', params }, { requestId: seen.samplings });
    });
  }
  client.fallbackNotificationHandler = async (notification) => void seen.notifications.push(notification);

  const Transport = sse ? SSEClientTransport : StreamableHTTPClientTransport;
  const transport = new Transport(new URL(url), { requestInit: { headers: { authorization: `Bearer ${key}` } } });
  await client.connect(transport);
  seen.server = { ...client.getServerVersion(), instructions: client.getInstructions(), capabilities: client.getServerCapabilities() };
  const call = (what, options) => (second ? client.callTool(what, options) : client.callTool(what, undefined, options)).catch(failure);
  do {
    seen.tools = (await client.listTools()).tools;
  } while (offers && !seen.tools.some(({ name }) => name === offers));
  seen.answers = [];
  for (const group of calls) {
    seen.answers.push(await Promise.all(group.map((what) =>
      call(what, { onprogress: ({ progress }) => (seen.progress[what.name] ??= []).push(progress) }))));
  }
  if (cancel) {
    const controller = new AbortController();
    await call(cancel, { signal: controller.signal, onprogress: () => controller.abort('no longer wanted') });
    seen.after = await call(after);
  }
  if (transport.sessionId) { // it ends, and whoever goes on with it is told so
    const session = transport.sessionId;
    await transport.terminateSession();
    const headers = { authorization: `Bearer ${key}`, 'mcp-session-id': session, 'content-type': 'application/json',
      accept: 'application/json, text/event-stream' };
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', id: 'late', method: 'ping' }) });
    seen.ended = response.status;
    await response.body?.cancel();
  }
  await client.close();
  return seen;
};

const all = [];
for (const one of JSON.parse(plan)) all.push(await run(one));
process.stdout.write(JSON.stringify(all) + '\n', () => process.exit()); // not only once idle connections have timed out
