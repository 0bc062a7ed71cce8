// The way to use Sluice from an MCP client today: hand its sampling requests over, hand the answer back.
import { McpError } from '@modelcontextprotocol/sdk/types.js';

export const sluiceHandler = (url, key) => async (request, { signal, requestId }) => {
  const response = await fetch(`${url}/v1/sampling`, {
    method: 'POST',
    signal, // a cancelled request closes the connection, and Sluice stops the provider call
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: requestId, method: request.method, params: request.params }),
  });
  const { result, error } = await response.json();
  if (error) throw new McpError(error.code, error.message, error.data);
  return result;
};
