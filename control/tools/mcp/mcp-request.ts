/** A request to `/mcp`, read before the SDK reads it: what it listens to, whether it begins a session. */
import { isInitializeRequest } from '@modelcontextprotocol/server'
import type { Context } from 'hono'
import { z } from 'zod'
import { readBody } from '../../http/body.ts'
import { watchedResources } from './resources.ts'

interface McpRequest {
  /** For the SDK. */
  readonly request: Request
  /** The resources that `subscriptions/listen` asks for; undefined: it is another request, or none that the SDK takes. */
  readonly wanted: readonly string[] | undefined
  /** A client of 2025 begins. */
  readonly isInitialize: boolean
  /** Of a client of 2025 that has begun; undefined: it does without, as all clients of 2026-07-28 do. */
  readonly sessionId: string | undefined
}

const listen = z.looseObject({
  method: z.literal('subscriptions/listen'),
  params: z.looseObject({
    notifications: z.looseObject({ resourceSubscriptions: z.array(z.string()).max(1_000) }),
  }),
})

/** Protocols from this one on have no sessions. */
const FIRST_WITHOUT_SESSIONS = '2026-07-28'

/** @throws {ApiError} 413: the body is too large. The SDK counts it only when it is whole in memory here. */
export async function mcpRequest(c: Context): Promise<McpRequest> {
  const { raw } = c.req
  const { url, method, headers, signal } = raw
  const isOfSessions = (headers.get('mcp-protocol-version') ?? '') < FIRST_WITHOUT_SESSIONS
  const sessionId = isOfSessions ? (headers.get('mcp-session-id') ?? undefined) : undefined
  if (method !== 'POST') return { request: raw, wanted: undefined, isInitialize: false, sessionId }
  const bytes = await readBody(c)
  const request = new Request(url, { method, headers, signal, body: new Uint8Array(bytes) })
  const message = messageIn(bytes)
  return {
    ...{ request, sessionId },
    wanted: wantedIn(message),
    isInitialize: isOfSessions && isInitializeRequest(message),
  }
}

const wantedIn = (message: unknown): readonly string[] | undefined =>
  listen.safeParse(message).data?.params.notifications.resourceSubscriptions

/** The resources that can be watched of those that `subscriptions/listen` asks for. */
export const listenedTo = (message: unknown): readonly string[] =>
  watchedResources.map(({ uri }) => uri).filter((uri) => wantedIn(message)?.includes(uri))

/** What is no JSON the SDK refuses. */
function messageIn(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}
