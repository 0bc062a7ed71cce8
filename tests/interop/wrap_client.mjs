// A client of SDK 1.x without sampling calls server-everything's sampling tool through `sluice wrap`, over stdio.
// Usage: wrap_client.mjs COMMAND ARG...; prints one line of JSON.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'interop', version: '1' }, { capabilities: {} });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const sampling = 'trigger-sampling-request';
for (let tries = 0; ; tries++) { // the server registers the tool once it has seen the capability
  const { tools } = await client.listTools();
  if (tools.some((tool) => tool.name === sampling)) break;
  if (tries === 200) throw new Error(`the server never offered ${sampling}`);
  await new Promise((resolve) => setImmediate(resolve));
}
const result = await client.callTool({ name: sampling, arguments: { prompt: 'hello from a wrapper', maxTokens: 32 } });
const echo = await client.callTool({ name: 'echo', arguments: { message: 'plain' } });
console.log(JSON.stringify({ result, echo }));
await client.close();
