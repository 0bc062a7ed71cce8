// A two-turn tool loop between the official server and client SDKs, with Sluice as the model.
// Usage: tool_loop.mjs SLUICE_URL KEY; prints one line of JSON.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { sluiceHandler } from './sluice_handler.mjs';

const [sluiceUrl, key] = process.argv.slice(2);
const weather = {
  name: 'get_weather',
  description: 'Weather of a city',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

const server = new McpServer({ name: 'loop', version: '1' });
server.registerTool('ask', { description: 'asks the model, runs its tools' }, async () => {
  const messages = [{ role: 'user', content: { type: 'text', text: 'What is the weather in Paris?' } }];
  const turns = [];
  for (let turn = 0; turn < 5; turn++) {
    const answer = await server.server.createMessage({ messages, tools: [weather], maxTokens: 200 });
    turns.push(answer);
    const content = Array.isArray(answer.content) ? answer.content : [answer.content];
    const calls = content.filter((block) => block.type === 'tool_use');
    if (answer.stopReason !== 'toolUse') break;
    messages.push({ role: 'assistant', content });
    messages.push({
      role: 'user',
      content: calls.map((call) => ({
        type: 'tool_result',
        toolUseId: call.id,
        content: [{ type: 'text', text: `18 degrees, asked with ${JSON.stringify(call.input)}` }],
      })),
    });
  }
  return { content: [{ type: 'text', text: JSON.stringify(turns) }] };
});

const client = new Client({ name: 'loop-client', version: '1' }, { capabilities: { sampling: { tools: {} } } });
client.setRequestHandler(CreateMessageRequestSchema, sluiceHandler(sluiceUrl, key));
const [clientSide, serverSide] = InMemoryTransport.createLinkedPair();
await Promise.all([server.connect(serverSide), client.connect(clientSide)]);
const result = await client.callTool({ name: 'ask', arguments: {} });
console.log(JSON.stringify({ isError: result.isError ?? false, turns: result.isError ? result.content : JSON.parse(result.content[0].text) }));
await client.close();
