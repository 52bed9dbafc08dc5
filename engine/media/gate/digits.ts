/**
 * Digits of calls on a relay: as SIP INFO, as events in RTP that relays report, and from one to the
 * other.
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import type { Headers, LegCommand, LegCommandOf, LegEventData } from '../../call/signalling.ts'
import { takeFrom, TokenBuckets } from '../../flood-guard/token-buckets.ts'
import type { NgRequest } from '../relay/relays.ts'
import { type MediaLeg, type MediaLegs, otherLeg, type RelaySession } from './session.ts'
import type { GateDeps } from './sessions.ts'

export interface Digit {
  readonly code: string
  readonly durationMs: number
}

/** Milliseconds: for digits without a duration, and the bounds of the relay. */
const duration = { default: 160, least: 40, most: 5_000 }

/**
 * The digit of an INFO: `application/dtmf-relay` or `application/dtmf`. Undefined: the body is
 * none, or of another kind.
 */
export function digitIn(headers: Headers, body: string | undefined): Digit | undefined {
  const type = /^application\/dtmf(-relay)?\s*(?:;|$)/i.exec(headers['content-type'] ?? '')
  if (type === null || body === undefined) return undefined
  const isPlain = type[1] === undefined
  const text = isPlain ? body.trim() : /^signal\s*=\s*(\S+)\s*$/im.exec(body)?.[1]
  const code = text && codeOf(text)
  if (!code) return undefined
  const said = Number(/^duration\s*=\s*(\d{1,5})\s*$/im.exec(body)?.[1] ?? duration.default)
  return { code, durationMs: bounded(said) }
}

const bounded = (ms: number): number => Math.min(Math.max(ms, duration.least), duration.most)

/** RFC 4733 §3.2. Undefined: an event that is no digit. */
function digitOf(event: number, ms: number): Digit | undefined {
  const code = '0123456789*#ABCD'[event]
  return code === undefined ? undefined : { code, durationMs: bounded(Math.round(ms)) }
}

/** An INFO with the digit, as phones write it. */
const infoOf = ({
  code,
  durationMs,
}: Digit): Omit<LegCommandOf<'request'>, 'legId' | 'transactionId'> => ({
  type: 'request',
  method: 'INFO',
  sdpOwner: undefined,
  noAck: false,
  headers: { 'Content-Type': 'application/dtmf-relay' },
  body: `Signal=${code}\r\nDuration=${durationMs}\r\n`,
})

/** RFC 4733 §3.2: 10 and 11 are `*` and `#`, 12 to 15 the letters; some phones write the number. */
function codeOf(text: string): string | undefined {
  if (/^[0-9*#A-D]$/i.test(text)) return text.toUpperCase()
  return /^1[0-5]$/.test(text) ? '*#ABCD'[Number(text) - 10] : undefined
}

/** Plays the digit to the other party, as if `from` had sent it. */
export const playOf = (
  { id }: RelaySession,
  from: string,
  { code, durationMs }: Digit,
): NgRequest => ({
  command: 'play DTMF',
  'call-id': id,
  'from-tag': from,
  code,
  duration: durationMs,
})

/**
 * One RFC 4733 event in RTP, as rtpengine reports it (`--dtmf-log-dest`): JSON, one datagram each.
 */
export interface RelayDigit {
  /** The ng call-id. */
  readonly session: string
  /** The leg whose party has sent the digit, or for which the relay has played it. */
  readonly from: string
  readonly digit: Digit
}

/** Undefined: the datagram is not such a report. */
export function relayDigitIn(datagram: Buffer): RelayDigit | undefined {
  const fields = parsed(datagram)
  const { callid: session, source_tag: from, event, duration } = fields
  if (typeof session !== 'string' || typeof from !== 'string') return undefined
  if (typeof event !== 'number' || typeof duration !== 'number') return undefined
  const digit = digitOf(event, duration)
  return digit && { session, from, digit }
}

function parsed(datagram: Buffer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(datagram.toString('utf8'))
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

interface RelayDigitsDeps {
  readonly isRelay: (address: string) => boolean
  /** False: its session is unknown. */
  readonly take: (digit: RelayDigit) => boolean
  readonly now: () => number
}

/** rtpengine 10.5 writes about 250 bytes. */
const MAX_BYTES = 2_048
/** The rate of one relay. */
const limits = { packetsPerSecond: 1_000, burst: 2_000, maxSources: 64 }

/** Takes the reports of configured relays only, and bounds their rate. */
export class RelayDigits {
  readonly #deps: RelayDigitsDeps
  readonly #buckets = new TokenBuckets(limits)
  #ignored = 0

  constructor(deps: RelayDigitsDeps) {
    this.#deps = deps
  }

  received(datagram: Buffer, source: string): void {
    const digit = this.#admits(datagram, source) ? relayDigitIn(datagram) : undefined
    if (digit === undefined || !this.#deps.take(digit)) this.#ignored += 1
  }

  #admits(datagram: Buffer, source: string): boolean {
    const address = source.replace(/^::ffff:(?=\d)/i, '')
    if (datagram.length > MAX_BYTES || !this.#deps.isRelay(address)) return false
    const now = this.#deps.now()
    return takeFrom(this.#buckets.of(address, now), limits, now)
  }

  telemetry(): Readonly<Record<string, number>> {
    return { media_digits_ignored_total: this.#ignored }
  }
}

/** Opens the UDP socket of `MEDIA_DTMF_LISTEN` (I/O). Rejects: the port cannot be bound. */
export async function openDigitSocket(
  { host, port }: { readonly host: string; readonly port: number },
  received: (datagram: Buffer, source: string) => void,
): Promise<Socket> {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  socket.on('message', (datagram, { address }) => received(datagram, address))
  socket.bind(port, host)
  await once(socket, 'listening')
  socket.on('error', () => undefined)
  return socket
}

interface InfoDigitsDeps extends GateDeps {
  readonly legs: MediaLegs
  readonly takesInfo: (leg: MediaLeg) => boolean
  readonly perform: (command: LegCommand) => void
}

interface Line {
  /** The INFO that has no final response yet. */
  pending: string | undefined
  readonly waiting: { readonly digit: Digit; readonly at: number }[]
}

/** An older digit is dropped if the party has not answered the one before. */
const STALE_MS = 4_000
const MAX_WAITING = 32
const mark = 'digit!'

/**
 * Sends the digits that a relay has found in the RTP of one party as INFO to the other, one after
 * the other.
 */
export class InfoDigits {
  readonly #deps: InfoDigitsDeps
  /** Lines by the leg that gets the INFO. */
  readonly #lines = new Map<string, Line>()
  #count = 0

  constructor(deps: InfoDigitsDeps) {
    this.#deps = deps
  }

  /** False: the session is unknown. */
  take({ session: id, from: fromId, digit }: RelayDigit): boolean {
    const { sessions, legs, calls, takesInfo, now } = this.#deps
    const session = sessions.withId(id, fromId)
    if (session === undefined) return false
    const to = legs.get(otherLeg(session, fromId))
    if (to?.current !== session || session.isClosed) return true
    if (calls.leg(to.id)?.state !== 'confirmed' || !takesInfo(to)) return true
    const line = this.#lines.get(to.id) ?? { pending: undefined, waiting: [] }
    this.#lines.set(to.id, line)
    if (line.waiting.length >= MAX_WAITING) return true
    line.waiting.push({ digit, at: now() })
    this.#sendNext(to.id, line)
    return true
  }

  #sendNext(legId: string, line: Line): void {
    if (line.pending !== undefined) return
    const { calls, now, perform } = this.#deps
    const oldest = now() - STALE_MS
    let next = line.waiting.shift()
    while (next && next.at < oldest) next = line.waiting.shift()
    if (next === undefined || calls.leg(legId)?.state !== 'confirmed')
      return void this.#lines.delete(legId)
    line.pending = `${mark}${this.#count++}`
    return perform({ ...infoOf(next.digit), legId, transactionId: line.pending })
  }

  /** Whether the event answers an INFO of this class, of which call control does not know. */
  isAnswer(event: LegEventData): boolean {
    if (event.type !== 'response' && event.type !== 'requestFailed') return false
    const { legId, transactionId } = event
    if (!transactionId.startsWith(mark)) return false
    const line = this.#lines.get(legId)
    const isFinal = event.type === 'requestFailed' || event.response.status >= 200
    if (line?.pending === transactionId && isFinal) {
      line.pending = undefined
      this.#sendNext(legId, line)
    }
    return true
  }

  forget(legId: string): void {
    this.#lines.delete(legId)
  }
}
