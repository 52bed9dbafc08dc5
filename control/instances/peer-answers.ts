/** Forwards requests about a call or a file to the instance that has it. */
import type { Readable } from 'node:stream'
import type { Context, MiddlewareHandler } from 'hono'
import { HOUR_MS, type Cancel, type Schedule } from '../../schema/clock.ts'
import type { EnginePort } from '../../schema/contracts/engine.ts'
import { ApiError } from '../http/api-error.ts'
import { readBody, parseJson } from '../http/body.ts'
import { type ChangeDigests, type ControlEnv, setAnswerHeader } from '../http/control-env.ts'
import type { PeerAnswer } from './instance-client.ts'
import type { OtherInstances } from './other-instances.ts'

/** Header of responses to instances: the digests of what changed, for their audit log. */
const CHANGE_HEADER = 'x-tollgate-change'

/** Headers of an instance's response that the client gets. */
const passed = [
  'content-type',
  'content-disposition',
  'location',
  'retry-after',
  'x-change-id',
] as const
/** Headers of a client's request that the answering instance gets. */
const forwarded = ['accept', 'content-type'] as const

/**
 * Before the handler of an action on a live call: the instance that has the call does it, and its
 * response is the response. Stands after validation, of a body or a path that names the call.
 */
export function atInstanceOfCall({
  others,
  engine,
}: {
  readonly others?: OtherInstances | undefined
  readonly engine: CallFinder
}): MiddlewareHandler<ControlEnv, string, CallNamed> {
  if (others === undefined) return (_, next) => next()
  return async (c, next) => {
    const uuid = uuidOf(c)
    const peers = engine.calls.find(uuid) === undefined ? others.of(c) : undefined
    const location = await peers?.locate(uuid)
    if (peers === undefined || location === undefined || location === 'nowhere') return next()
    if (location === 'unknown') throw unreachable()
    const answer = await peers.at(location, await sameRequest(c))
    if (answer === undefined) {
      peers.reportUnreachable([location.name])
      throw timedOut()
    }
    return passOn(c, answer)
  }
}

/** The validated parts that may name a call. */
interface CallNamed {
  out: { json: { call_uuid?: string }; param: { uuid?: string } }
}

/** A part that was not validated is undefined. */
const uuidOf = ({ req }: Context<ControlEnv, string, CallNamed>): string => {
  const { json, param }: Partial<CallNamed['out']> = {
    json: req.valid('json'),
    param: req.valid('param'),
  }
  return param?.uuid ?? json?.call_uuid ?? ''
}

type CallFinder = { readonly calls: Pick<EnginePort['calls'], 'find'> }

/** The response of the instance that knows the call; undefined: no instance does. */
export async function answerOfPeer(
  c: Context<ControlEnv>,
  others: OtherInstances | undefined,
): Promise<Response | undefined> {
  const peers = others?.of(c)
  if (peers === undefined) return undefined
  const answer = await peers.first(await sameRequest(c))
  if (answer === 'unknown') throw unreachable()
  return answer && passOn(c, answer)
}

/** Sends the digests of a change to the asking instance, which writes the audit entry. */
export function setChangeHeader(
  c: Context<ControlEnv>,
  { before, after, changeId }: ChangeDigests,
): void {
  setAnswerHeader(c, CHANGE_HEADER, `${before ?? ''},${after ?? ''},${changeId ?? ''}`)
}

/** The digests that an instance has sent with `setChangeHeader`. */
function changeOf(headers: PeerAnswer['headers']): ChangeDigests | undefined {
  const change = headers[CHANGE_HEADER]
  if (typeof change !== 'string') return undefined
  const [before, after, changeId] = change.split(',', 3)
  return { before: before || null, after: after || null, changeId: changeId || null }
}

const instanceUnreachable = (message: string): ApiError =>
  new ApiError(503, 'node_unreachable', message, { headers: { 'Retry-After': '2' } })

const unreachable = (): ApiError =>
  instanceUnreachable(
    'No node that answers has this call; X-Unreachable-Nodes names those that did not answer',
  )

const timedOut = (): ApiError =>
  instanceUnreachable(
    'The node that has the call did not answer in time: it may have done what was asked, or not',
  )

async function sameRequest(c: Context<ControlEnv>) {
  const { incoming } = c.env
  const { method } = c.req
  return {
    // HEAD is answered by what answers GET.
    method: method === 'HEAD' ? 'GET' : method,
    target: incoming.url ?? '',
    headers: picked(incoming.headers, forwarded),
    ...(method !== 'GET' && method !== 'HEAD' && { body: await readBody(c) }),
  }
}

function passOn(c: Context<ControlEnv>, { status, headers, body }: PeerAnswer): Response {
  const change = changeOf(headers)
  if (change !== undefined) c.set('changeDigests', change)
  if (status >= 400) c.set('refusal', { code: codeOf(body), details: undefined })
  return new Response(new Uint8Array(body), { status, headers: picked(headers, passed) })
}

/** Reads the code of an error envelope. */
function codeOf(body: Buffer): string {
  const parsed = parseJson(body.toString('utf8'))
  const { code } = Object(parsed.kind === 'value' ? parsed.value : undefined) as { code?: unknown }
  return typeof code === 'string' ? code : 'internal_error'
}

/** Headers of a request for a part of a file. */
const forwardedForFiles = ['range', 'if-range', 'accept'] as const
/** Headers of an instance's response with a file that the client gets. */
const passedWithFiles = [
  'content-type',
  'content-disposition',
  'content-length',
  'content-range',
  'accept-ranges',
  'etag',
  'retry-after',
] as const

/**
 * The response of the instance that has the file, its body as it comes; undefined: no instance has
 * it.
 *
 * @param onClose called once, when the body is read, or its reader is gone.
 * @throws {ApiError} 503: none of those that answer has it, and it may be at one that does not.
 */
export async function fileOfPeer(
  c: Context<ControlEnv>,
  others: OtherInstances | undefined,
  onClose: () => void = () => undefined,
): Promise<Response | undefined> {
  const peers = others?.of(c)
  if (others === undefined || peers === undefined) return undefined
  const request = {
    method: c.req.method,
    target: c.env.incoming.url ?? '',
    headers: picked(c.env.incoming.headers, forwardedForFiles),
  }
  const silent: string[] = []
  for (const peer of others.peers()) {
    const answer = peer.isAlive ? await peers.open(peer, request) : undefined
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
      return new Response(body, { status, headers: picked(incoming.headers, passedWithFiles) })
    }
  }
  if (silent.length === 0) return undefined
  peers.reportUnreachable(silent)
  throw new ApiError(
    503,
    'node_unreachable',
    `The file may be on node ${silent.join(', ')}, which does not answer`,
    { headers: { 'Retry-After': '5' } },
  )
}

const picked = (headers: PeerAnswer['headers'], names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = headers[name]
      return typeof value === 'string' ? [[name, value] as const] : []
    }),
  )

/** How long a disk or another instance may send nothing while the reader waits. */
const SOURCE_MS = 10_000
/** How long a reader may take nothing. */
const READER_MS = 60_000
/** In all: a gigabyte at 70 kB a second. */
const WHOLE_MS = 4 * HOUR_MS

interface StreamOptions {
  readonly schedule: Schedule
  /**
   * Closes the connection of the reader, who then has fewer bytes than the `Content-Length` says.
   */
  readonly cut: () => void
}

/**
 * The body of a response that is read from a file, or from another instance, as its reader takes
 * it: no side can hold it open for ever. Beyond these times, and when the source fails, the
 * response is cut.
 */
export const streamedBody = (source: Readable, how: StreamOptions): ReadableStream<Uint8Array> =>
  new ReadableStream<Uint8Array>(new BodySource(source, how), { highWaterMark: 0 })

class BodySource {
  readonly #source: Readable
  readonly #how: StreamOptions
  readonly #chunks: AsyncIterator<Uint8Array>
  readonly #cancelWhole: Cancel
  #cancelIdle: Cancel
  #isOver = false

  constructor(source: Readable, how: StreamOptions) {
    this.#source = source
    this.#how = how
    this.#chunks = source[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
    this.#cancelWhole = this.#cutAfter(WHOLE_MS)
    this.#cancelIdle = this.#cutAfter(READER_MS)
  }

  /** Called when the reader wants more. */
  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#cancelIdle()
    this.#cancelIdle = this.#cutAfter(SOURCE_MS)
    try {
      const next = await this.#chunks.next()
      if (this.#isOver) return undefined
      this.#cancelIdle()
      if (next.done !== true) {
        controller.enqueue(next.value)
        this.#cancelIdle = this.#cutAfter(READER_MS)
        return undefined
      }
      this.cancel()
      return controller.close()
    } catch {
      // The server would write an error into the body as a text.
      return this.#cut()
    }
  }

  /** The reader is gone, or all is read. */
  cancel(): void {
    this.#isOver = true
    this.#cancelWhole()
    this.#cancelIdle()
    this.#source.destroy()
  }

  #cutAfter(ms: number): Cancel {
    return this.#how.schedule(() => this.#cut(), ms)
  }

  #cut(): void {
    if (this.#isOver) return
    this.cancel()
    this.#how.cut()
  }
}
