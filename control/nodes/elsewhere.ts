/** Requests about one call, where another node has the call. */
import type { Context, MiddlewareHandler } from 'hono'
import type { EnginePort } from '../../schema/contracts/engine-port.ts'
import { ApiError } from '../http/api-error.ts'
import { parseJson, readBody } from '../http/body.ts'
import { type ChangeDigests, type ControlEnv, setAnswerHeader } from '../http/control-env.ts'
import type { PeerAnswer } from './node-client.ts'
import type { OtherNodes } from './other-nodes.ts'

/** In responses to nodes: the digests of what changed, for their audit log. */
const CHANGE_HEADER = 'x-tollgate-change'

/** Of a node's response, what is the client's. */
const passed = [
  'content-type',
  'content-disposition',
  'location',
  'retry-after',
  'x-change-id',
] as const
/** Of a client's request, what the node that answers needs to see. */
const forwarded = ['accept', 'content-type'] as const

/**
 * Before the handler of an action on a live call: the node that has the call does it, and its response is the
 * response. Stands after validation, of a body or a path that names the call.
 */
export function atNodeOfCall({
  others,
  engine,
}: {
  readonly others?: OtherNodes | undefined
  readonly engine: LiveCalls
}): MiddlewareHandler<ControlEnv, string, CallNamed> {
  if (others === undefined) return (_, next) => next()
  return async (c, next) => {
    const uuid = uuidOf(c)
    const asked = engine.calls.find(uuid) === undefined ? others.of(c) : undefined
    const place = await asked?.locate(uuid)
    if (asked === undefined || place === undefined || place === 'nowhere') return next()
    if (place === 'unknown') throw unheard()
    const answer = await asked.at(place, await sameRequest(c))
    if (answer === undefined) {
      asked.tellUnreachable([place.name])
      throw lost()
    }
    return passOn(c, answer)
  }
}

/** What validation leaves. */
interface CallNamed {
  out: { json: { call_uuid?: string }; param: { uuid?: string } }
}

/** Of a target that is not validated there is nothing. */
const uuidOf = ({ req }: Context<ControlEnv, string, CallNamed>): string => {
  const { json, param }: Partial<CallNamed['out']> = {
    json: req.valid('json'),
    param: req.valid('param'),
  }
  return param?.uuid ?? json?.call_uuid ?? ''
}

type LiveCalls = { readonly calls: Pick<EnginePort['calls'], 'find'> }

/** The response of the node that knows what the client asks about; undefined: none does. */
export async function fromElsewhere(
  c: Context<ControlEnv>,
  others: OtherNodes | undefined,
): Promise<Response | undefined> {
  const asked = others?.of(c)
  if (asked === undefined) return undefined
  const answer = await asked.first(await sameRequest(c))
  if (answer === 'unknown') throw unheard()
  return answer && passOn(c, answer)
}

/** For the node that has asked: the audit entry is its. */
export function tellChange(
  c: Context<ControlEnv>,
  { before, after, changeId }: ChangeDigests,
): void {
  setAnswerHeader(c, CHANGE_HEADER, `${before ?? ''},${after ?? ''},${changeId ?? ''}`)
}

/** What a node has told by `tellChange`. */
export function changeOf(headers: PeerAnswer['headers']): ChangeDigests | undefined {
  const change = headers[CHANGE_HEADER]
  if (typeof change !== 'string') return undefined
  const [before, after, changeId] = change.split(',', 3)
  return { before: before || null, after: after || null, changeId: changeId || null }
}

const unheard = (): ApiError =>
  new ApiError(
    503,
    'node_unreachable',
    'No node that answers has this call; X-Unreachable-Nodes names those that did not answer',
    { headers: { 'Retry-After': '2' } },
  )

const lost = (): ApiError =>
  new ApiError(
    503,
    'node_unreachable',
    'The node that has the call did not answer in time: it may have done what was asked, or not',
    { headers: { 'Retry-After': '2' } },
  )

async function sameRequest(c: Context<ControlEnv>) {
  const { incoming } = c.env
  const headers = forwarded.flatMap((name) => {
    const value = incoming.headers[name]
    return typeof value === 'string' ? [[name, value] as const] : []
  })
  const { method } = c.req
  return {
    // HEAD is answered by what answers GET.
    method: method === 'HEAD' ? 'GET' : method,
    target: incoming.url ?? '',
    headers: Object.fromEntries(headers),
    ...(method !== 'GET' && method !== 'HEAD' && { body: await readBody(c) }),
  }
}

function passOn(c: Context<ControlEnv>, { status, headers, body }: PeerAnswer): Response {
  const change = changeOf(headers)
  if (change !== undefined) c.set('changeDigests', change)
  if (status >= 400) c.set('refusal', { code: codeOf(body), details: undefined })
  const kept = passed.flatMap((name) => {
    const value = headers[name]
    return value === undefined ? [] : [[name, value] as [string, string]]
  })
  return new Response(new Uint8Array(body), { status, headers: Object.fromEntries(kept) })
}

/** Of an error envelope. */
function codeOf(body: Buffer): string {
  const parsed = parseJson(body.toString('utf8'))
  const { code } = Object(parsed.kind === 'value' ? parsed.value : undefined) as { code?: unknown }
  return typeof code === 'string' ? code : 'internal_error'
}
