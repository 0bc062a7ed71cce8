// A stdio server of SDK v2: one factory for both eras. In 2026-07-28 its tools ask by input_required, before that by
// sampling/createMessage.
import { inputRequired, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod/v4';

const user = (text) => ({ role: 'user', content: { type: 'text', text } });
const ask = (messages, more = {}) => inputRequired.createMessage({ messages, maxTokens: 64, ...more });

serveStdio((context) => {
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
  return server;
});
