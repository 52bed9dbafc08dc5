/** Files that the disk of one node has, such as recordings: where another node is asked for one. */
import type { Context } from 'hono'
import { ApiError } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { changeOf } from './elsewhere.ts'
import type { OtherNodes } from './other-nodes.ts'
import { streamedBody } from './streamed-body.ts'

/** Of the client's request, what says which part it wants. */
const asked = ['range', 'if-range', 'accept'] as const
/** Of the node's response, what is the client's. */
const passed = [
  'content-type',
  'content-disposition',
  'content-length',
  'content-range',
  'accept-ranges',
  'etag',
  'retry-after',
] as const

/**
 * The response of the node that has the file, its body as it comes; undefined: no node has it.
 *
 * @param onClose called once, when the body is read, or its reader is gone.
 * @throws {ApiError} 503: none of those that answer has it, and it may be at one that does not.
 */
export async function fileElsewhere(
  c: Context<ControlEnv>,
  others: OtherNodes | undefined,
  onClose: () => void = () => undefined,
): Promise<Response | undefined> {
  const nodes = others?.of(c)
  if (others === undefined || nodes === undefined) return undefined
  const request = { method: c.req.method, target: c.env.incoming.url ?? '', headers: wanted(c) }
  const silent: string[] = []
  for (const peer of others.peers()) {
    const answer = peer.isAlive ? await nodes.open(peer, request) : undefined
    if (answer === undefined) silent.push(peer.name)
    else if (answer.status === 404) answer.incoming.resume()
    else {
      const { status, incoming } = answer
      incoming.once('close', onClose)
      const change = changeOf(incoming.headers)
      if (change !== undefined) c.set('changeDigests', change)
      const body = streamedBody(incoming, {
        schedule: others.schedule,
        cut: () => void c.env.outgoing.destroy(),
      })
      return new Response(body, { status, headers: headersOf(incoming.headers) })
    }
  }
  if (silent.length === 0) return undefined
  nodes.tellUnreachable(silent)
  throw new ApiError(
    503,
    'node_unreachable',
    `The file may be on node ${silent.join(', ')}, which does not answer`,
    { headers: { 'Retry-After': '5' } },
  )
}

function wanted(c: Context<ControlEnv>): Record<string, string> {
  const { headers } = c.env.incoming
  return Object.fromEntries(
    asked.flatMap((name) => {
      const value = headers[name]
      return typeof value === 'string' ? [[name, value] as const] : []
    }),
  )
}

const headersOf = (
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
): Record<string, string> =>
  Object.fromEntries(
    passed.flatMap((name) => {
      const value = headers[name]
      return typeof value === 'string' ? [[name, value] as const] : []
    }),
  )
