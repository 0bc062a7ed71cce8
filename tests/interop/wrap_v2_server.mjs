// A server of SDK v2, over stdio, or over HTTP at the port that is given: one factory for both eras. In 2026-07-28 its tools ask by
// input_required, before that by sampling/createMessage; over HTTP it has no sessions, so that nobody can answer. With the word
// "reject" in front of the port it speaks 2026-07-28 only.
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { createMcpHandler, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod/v4';

const user = (text) => ({ role: 'user', content: { type: 'text', text } });
const ask = (messages, more = {}) => inputRequired.createMessage({ messages, maxTokens: 64, ...more });

const serve = (context) => {
  const server = new McpServer({ name: 'interop', version: '1' }, { requestState: {} });
  server.registerTool('both', { description: 'two at once', inputSchema: z.object({ text: z.string() }) },
    async ({ text }, { mcpReq }) => {
      const answers = mcpReq.inputResponses;
      if (!answers?.one) return inputRequired({ inputRequests: { one: ask([user(text)]), two: ask([user(text)]) }, requestState: 'state' });
      return { content: [{ type: 'text', text: JSON.stringify({ era: context.era, answers, state: mcpReq.requestState?.() }) }] };
    });
  const tools = [{ name: 'weather', description: 'of a city', inputSchema: { type: 'object', properties: { city: { type: 'string' } } } }];
  server.registerTool('loop', { description: 'a tool loop', inputSchema: z.object({ text: z.string() }) },
    async ({ text }, { mcpReq }) => {
      const { first, second } = mcpReq.inputResponses ?? {};
      if (second) return { content: [{ type: 'text', text: JSON.stringify(second) }] };
      if (!first) return inputRequired({ inputRequests: { first: ask([user(text)], { tools }) } });
      const uses = [first.content].flat().filter((block) => block.type === 'tool_use');
      const results = uses.map(({ id }) => ({ type: 'tool_result', toolUseId: id, content: [{ type: 'text', text: '18 degrees' }] }));
      return inputRequired({ inputRequests: { second: ask([user(text), { role: 'assistant', content: first.content },
        { role: 'user', content: results }], { tools }) } });
    });
  server.registerTool('mixed', { description: 'asks the model and the user at once', inputSchema: z.object({ text: z.string() }) },
    async ({ text }, { mcpReq }) => {
      const { one, name } = mcpReq.inputResponses ?? {};
      if (one) return { content: [{ type: 'text', text: JSON.stringify({ one, name, state: mcpReq.requestState?.() }) }] };
      const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } };
      return inputRequired({ requestState: text, inputRequests: { one: ask([user(text)]),
        name: inputRequired.elicit({ message: 'Who are you?', requestedSchema }) } });
    });
  server.registerTool('busy', { description: 'says how far it is', inputSchema: z.object({ text: z.string() }) },
    async ({ text }, { mcpReq }) => {
      const { progressToken } = mcpReq._meta;
      const told = (progress) => mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress } });
      await told(1);
      if (!mcpReq.inputResponses?.one) return inputRequired({ inputRequests: { one: ask([user(text)]) } });
      await told(2);
      return { content: [{ type: 'text', text: JSON.stringify(mcpReq.inputResponses.one) }] };
    });
  return server;
};

const port = process.argv.at(-1);
if (process.argv.length > 2) {
  const { fetch } = createMcpHandler(serve, { legacy: process.argv[2] === 'reject' ? 'reject' : 'stateless' });
  createServer(async (request, response) => {
    const { method, headers } = request;
    const body = ['GET', 'HEAD'].includes(method) ? undefined : Readable.toWeb(request);
    const answer = await fetch(new Request(`http://127.0.0.1:${port}${request.url}`, { method, headers, body, duplex: 'half' }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (answer.body) Readable.fromWeb(answer.body).pipe(response);
    else response.end();
  }).listen(Number(port), '127.0.0.1');
} else serveStdio(serve);
