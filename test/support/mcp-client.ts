import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { ServedApp } from './in-memory-http.ts'

/** `legacy`: the handshake of 2025; `modern`: the stateless protocol of 2026-07-28. */
export type Era = 'legacy' | 'modern'

export const eras: readonly Era[] = ['legacy', 'modern']

export const newClient = (era: Era): Client =>
  new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: era === 'legacy' ? 'legacy' : { pin: '2026-07-28' } } },
  )

/** The official client on `/mcp` of this app, without a socket. */
export async function connectClient(app: ServedApp, token: string, era: Era): Promise<Client> {
  const client = newClient(era)
  await client.connect(
    new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), {
      requestInit: { headers: { Authorization: `Bearer ${token}` } },
      fetch: async (url, init) => app.request(String(url), init),
    }),
  )
  return client
}

/** The text of a result: what a model reads. */
export function textOf(result: { readonly content?: unknown }): string {
  const [block] = (result.content ?? []) as { type: string; text: string }[]
  return block?.text ?? ''
}
