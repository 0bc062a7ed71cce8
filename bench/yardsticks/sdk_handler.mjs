// What users of the TypeScript SDK run today: a client whose sampling handler calls the provider itself.
// Usage: sdk_handler.mjs PORT PROVIDER_URL KEY; takes the same POST as the gateway, over HTTP/1.1.
import http from 'node:http';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const [port, providerUrl, key] = process.argv.slice(2);
const stopReasons = { end_turn: 'endTurn', max_tokens: 'maxTokens', stop_sequence: 'stopSequence' };

const client = new Client({ name: 'yardstick', version: '1' }, { capabilities: { sampling: {} } });
client.setRequestHandler(CreateMessageRequestSchema, async ({ params }, { signal }) => {
  const response = await fetch(`${providerUrl}/v1/messages`, {
    method: 'POST',
    signal,
    headers: { 'content-type': 'application/json', 'x-api-key': key, 'anthropic-version': '2023-06-01' },
    body: JSON.stringify({
      model: params.modelPreferences?.hints?.[0]?.name ?? 'claude-test',
      max_tokens: params.maxTokens,
      system: params.systemPrompt,
      temperature: params.temperature,
      messages: params.messages.map(({ role, content }) => ({ role, content: [content].flat() })),
    }),
  });
  if (!response.ok) throw new Error(`the provider answered ${response.status}`);
  const answer = await response.json();
  const text = answer.content.map((block) => block.text).join('');
  return {
    role: 'assistant',
    content: { type: 'text', text },
    model: answer.model,
    stopReason: stopReasons[answer.stop_reason] ?? answer.stop_reason,
  };
});

// The SDK's own transports are of one peer each; this one hands over whatever is posted.
const waiting = new Map();
let last = 0;
const transport = {
  async start() {},
  async close() {},
  async send(message) {
    if (message.method === 'initialize') {
      const result = {
        protocolVersion: message.params.protocolVersion,
        capabilities: {},
        serverInfo: { name: 'posted', version: '1' },
      };
      setImmediate(() => transport.onmessage({ jsonrpc: '2.0', id: message.id, result }));
    }
    waiting.get(message.id)?.(message);
  },
};
await client.connect(transport);

http
  .createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const message = JSON.parse(Buffer.concat(pieces));
    const id = `posted-${++last}`; // callers choose the same ones
    const answer = await new Promise((resolve) => {
      waiting.set(id, resolve);
      transport.onmessage({ ...message, id });
    });
    waiting.delete(id);
    const body = JSON.stringify({ ...answer, id: message.id });
    response.writeHead(answer.error ? 502 : 200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    });
    response.end(body);
  })
  .listen(Number(port), '127.0.0.1');
