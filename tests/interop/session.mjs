// The official client in a session that somebody ends: it is told so, and a new one goes on.
// Usage: session.mjs SLUICE_URL KEY; prints one line of JSON.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageResultSchema } from '@modelcontextprotocol/sdk/types.js';

const [url, key] = process.argv.slice(2);
const endpoint = new URL(`${url}/v1/sampling`);
const authorization = `Bearer ${key}`;

const begin = async () => {
  const transport = new StreamableHTTPClientTransport(endpoint, { requestInit: { headers: { authorization } } });
  const client = new Client({ name: 'asker', version: '1' });
  await client.connect(transport);
  return { client, id: transport.sessionId };
};

const ask = ({ client }) =>
  client.request(
    {
      method: 'sampling/createMessage',
      params: { messages: [{ role: 'user', content: { type: 'text', text: 'How are you?' } }], maxTokens: 100 },
    },
    CreateMessageResultSchema,
  );

const first = await begin();
const answers = [await ask(first)];
const ended = await fetch(endpoint, { method: 'DELETE', headers: { authorization, 'mcp-session-id': first.id } });
const lost = await ask(first).then(
  () => null,
  (failure) => ({ code: failure.code, message: failure.message }),
);
await first.client.close();
const second = await begin();
answers.push(await ask(second));
await second.client.close();
console.log(JSON.stringify({ answers, ended: ended.status, lost, sessions: [first.id, second.id] }));
