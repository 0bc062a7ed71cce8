// Preloaded into a client that knows no key: each of its requests has one.
import { subscribe } from 'node:diagnostics_channel';

const value = `Bearer ${process.env.KEY}`;
subscribe('undici:request:create', ({ request }) => request.addHeader('authorization', value)); // fetch
subscribe('http.client.request.created', ({ request }) => request.setHeader('authorization', value));
