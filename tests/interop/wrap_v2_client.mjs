// A client of SDK v2 without sampling calls wrap_v2_server.mjs through `sluice wrap`.
// Usage: wrap_v2_client.mjs COMMAND ARG...; prints one line of JSON.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'interop', version: '1' }, { versionNegotiation: { mode: 'auto' }, capabilities: {} });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const call = async (name) => JSON.parse((await client.callTool({ name, arguments: { text: 'hello' } })).content[0].text);
console.log(JSON.stringify({ both: await call('both'), loop: await call('loop') }));
await client.close();
