// server-everything (streamable HTTP) samples through an official client whose handler asks Sluice.
// Usage: everything.mjs MCP_URL SLUICE_URL KEY; prints one line of JSON.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { sluiceHandler } from './sluice_handler.mjs';

const [mcpUrl, sluiceUrl, key] = process.argv.slice(2);
const client = new Client({ name: 'interop', version: '1' }, { capabilities: { sampling: { tools: {} } } });
const answers = [];
const ask = sluiceHandler(sluiceUrl, key);
client.setRequestHandler(CreateMessageRequestSchema, async (request, extra) => {
  const answer = await ask(request, extra);
  answers.push(answer);
  return answer;
});

await client.connect(new StreamableHTTPClientTransport(new URL(mcpUrl)));
const sampling = 'trigger-sampling-request';
for (let tries = 0; ; tries++) { // the server registers the tool once it has seen our capability
  const { tools } = await client.listTools();
  if (tools.some((tool) => tool.name === sampling)) break;
  if (tries === 200) throw new Error(`the server never offered ${sampling}`);
  await new Promise((resolve) => setImmediate(resolve));
}
const result = await client.callTool({ name: sampling, arguments: { prompt: 'hello from interop', maxTokens: 32 } });
console.log(JSON.stringify({ result, answers }));
await client.close();
