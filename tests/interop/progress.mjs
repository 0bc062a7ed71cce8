// The official client asks Sluice by itself, and is told about progress, which keeps its request alive.
// Usage: progress.mjs SLUICE_URL KEY MODEL TIMEOUT_MS; prints one line of JSON.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageResultSchema } from '@modelcontextprotocol/sdk/types.js';

const [url, key, model, timeout] = process.argv.slice(2);
const transport = new StreamableHTTPClientTransport(new URL(`${url}/v1/sampling`), {
  requestInit: { headers: { authorization: `Bearer ${key}` } },
});
const client = new Client({ name: 'asker', version: '1' });
const progress = [];
let error = null;
let result = null;

await client.connect(transport);
try {
  result = await client.request(
    {
      method: 'sampling/createMessage',
      params: {
        messages: [{ role: 'user', content: { type: 'text', text: 'How are you?' } }],
        maxTokens: 1000,
        modelPreferences: { hints: [{ name: model }] },
      },
    },
    CreateMessageResultSchema,
    { onprogress: (told) => progress.push(told.progress), timeout: Number(timeout), resetTimeoutOnProgress: true },
  );
} catch (failure) {
  error = { code: failure.code, message: failure.message };
}
await client.close();
console.log(JSON.stringify({ result, error, progress }));
