/** Sends requests to other instances: reused connections; bounded waits, sizes and numbers. */
import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { z } from 'zod'
import type { Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { Membership, Peer } from './membership.ts'
import { bodyHash, INSTANCE_HEADER, type InstanceClaims, sealToken } from './instance-token.ts'
import { parseJson } from '../http/body.ts'

/** How long an instance may take to answer; a later answer is missing from the response. */
const ANSWER_MS = 800
/** Connections to one instance. */
const MAX_SOCKETS = 32
/** Requests to one instance that have no response yet; further ones fail at once. */
const MAX_OUTSTANDING = 512
/** Below the time after which a server closes an idle connection. */
const IDLE_MS = 30_000
/** 50,000 live calls have about 40 MB. */
const MAX_ANSWER_BYTES = 67_108_864
/** An instance whose failure is logged is not logged again so soon. */
const LOG_EVERY_MS = 60_000

export interface Outgoing {
  readonly method: string
  /** Path and query. */
  readonly target: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
  /** The caller and the question, sealed in the token. */
  readonly claims: Pick<
    InstanceClaims,
    'address' | 'authorization' | 'apiKey' | 'tenantSlug' | 'question'
  >
  readonly waitMs?: number
}

export interface PeerAnswer {
  readonly peer: Peer
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

/** A response whose body is still to come. */
export interface OpenAnswer {
  readonly status: number
  readonly incoming: IncomingMessage
}

export interface InstanceClientDeps extends Membership {
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly schedule: Schedule
  readonly randomBytes: (size: number) => Buffer
  readonly log: Log
  /** Agent of `http:`; undefined: one over sockets. */
  readonly agent?: HttpAgent | undefined
}

export class InstanceClient {
  readonly #deps: InstanceClientDeps
  readonly #http: HttpAgent
  readonly #https = new HttpsAgent(pooled)
  /** Bodies that are read slowly take no connection of what is answered at once. */
  readonly #httpStreams: HttpAgent
  readonly #httpsStreams = new HttpsAgent(streaming)
  readonly #outstanding = new Map<string, number>()
  readonly #loggedAt = new Map<string, number>()

  constructor(deps: InstanceClientDeps) {
    this.#deps = deps
    this.#http = deps.agent ?? new HttpAgent(pooled)
    this.#httpStreams = deps.agent ?? new HttpAgent(streaming)
  }

  /** The whole response; undefined: the instance has not answered in time, or is none of ours. */
  async ask(peer: Peer, outgoing: Outgoing): Promise<PeerAnswer | undefined> {
    const { waitMs = ANSWER_MS } = outgoing
    try {
      return await this.#within(waitMs, peer, async (signal) => {
        const { status, incoming } = await this.#open(peer, outgoing, signal)
        return { peer, status, headers: incoming.headers, body: await wholeOf(incoming) }
      })
    } catch (error) {
      this.#note(peer, error)
      return undefined
    }
  }

  /** The response as soon as its head is there; it ends with `signal`. */
  async open(peer: Peer, outgoing: Outgoing, signal: AbortSignal): Promise<OpenAnswer | undefined> {
    const { waitMs = ANSWER_MS } = outgoing
    try {
      return await this.#within(waitMs, peer, (late) => {
        const either = new AbortController()
        for (const each of [signal, late])
          each.addEventListener('abort', () => either.abort(each.reason), { once: true })
        return this.#open(peer, outgoing, either.signal, true)
      })
    } catch (error) {
      if (!signal.aborted) this.#note(peer, error)
      return undefined
    }
  }

  close(): void {
    this.#http.destroy()
    this.#https.destroy()
    this.#httpStreams.destroy()
    this.#httpsStreams.destroy()
  }

  async #within<T>(
    waitMs: number,
    { name }: Peer,
    work: (late: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const outstanding = this.#outstanding.get(name) ?? 0
    if (outstanding >= MAX_OUTSTANDING) throw new Error('too many requests have no response yet')
    this.#outstanding.set(name, outstanding + 1)
    const late = new AbortController()
    const cancel = this.#deps.schedule(
      () => late.abort(new Error(`no response within ${waitMs} ms`)),
      waitMs,
    )
    try {
      return await work(late.signal)
    } finally {
      cancel()
      const rest = (this.#outstanding.get(name) ?? 1) - 1
      if (rest === 0) this.#outstanding.delete(name)
      else this.#outstanding.set(name, rest)
    }
  }

  #open(
    peer: Peer,
    outgoing: Outgoing,
    signal: AbortSignal,
    isStream = false,
  ): Promise<OpenAnswer> {
    const { method, target, headers = {}, body, claims } = outgoing
    const { self: from, key, now, randomBytes } = this.#deps
    const made = { from, to: peer.name, at: now(), body: bodyHash(body ?? Buffer.alloc(0)) }
    const { token, proof } = sealToken(key, { method, target }, { ...made, ...claims }, randomBytes)
    const url = new URL(peer.apiUrl)
    const isSecure = url.protocol === 'https:'
    const agents = isStream ? [this.#httpStreams, this.#httpsStreams] : [this.#http, this.#https]
    return new Promise((resolve, reject) => {
      const request = (isSecure ? httpsRequest : httpRequest)({
        method,
        path: target,
        signal,
        host: url.hostname.replace(/^\[|\]$/g, ''),
        port: url.port || (isSecure ? 443 : 80),
        agent: agents[isSecure ? 1 : 0],
        headers: {
          ...headers,
          [INSTANCE_HEADER]: token,
          ...(body !== undefined && { 'content-length': body.length }),
        },
      })
      request.on('error', reject)
      request.on('response', (incoming) => {
        if (incoming.headers[INSTANCE_HEADER] === proof)
          resolve({ status: incoming.statusCode ?? 0, incoming })
        else {
          incoming.destroy()
          reject(new Error(stranger))
        }
      })
      request.end(body)
    })
  }

  #note({ name, apiUrl }: Peer, error: unknown): void {
    const { now, log } = this.#deps
    const loggedAt = this.#loggedAt.get(name)
    if (loggedAt !== undefined && Math.abs(now() - loggedAt) < LOG_EVERY_MS) return
    if (this.#loggedAt.size >= MAX_SOCKETS) this.#loggedAt.clear()
    this.#loggedAt.set(name, now())
    const reason = error instanceof Error ? error.message : String(error)
    log('warn', 'another instance does not answer: its part is missing from responses', {
      node: name,
      url: apiUrl,
      reason,
    })
  }
}

const pooled = { keepAlive: true, maxSockets: MAX_SOCKETS, timeout: IDLE_MS, noDelay: true }

/** Connections: as many as recordings are read at once, and those that follow events. */
const streaming = { ...pooled, maxSockets: 80 }

const stranger =
  'the server there is not this instance, has another SECRET_KEY, or its clock differs by more ' +
  'than 30 s'

async function wholeOf(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > MAX_ANSWER_BYTES) throw new Error('the response is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, length)
}

/**
 * `data` of the envelope. Undefined: it does not match the schema, as from an instance with another
 * version.
 */
export function dataOf<S extends z.ZodType>(
  answer: PeerAnswer,
  schema: S,
): z.output<S> | undefined {
  const data = bodyOf(answer, envelope)?.data
  const checked = schema.safeParse(data)
  return data !== undefined && checked.success ? checked.data : undefined
}

const envelope = z.object({ success: z.literal(true), data: z.unknown() })

export function bodyOf<S extends z.ZodType>(
  { status, body }: PeerAnswer,
  schema: S,
): z.output<S> | undefined {
  if (status !== 200) return undefined
  // Lists of an instance have any number of names; the bytes are bounded.
  const parsed = parseJson(body.toString('utf8'), Infinity)
  const checked = schema.safeParse(parsed.kind === 'value' ? parsed.value : undefined)
  return checked.success ? checked.data : undefined
}
