/** What relays tell of digits in RTP: of configured relays only, and bounded. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { takeFrom, TokenBuckets } from '../../guard/token-buckets.ts'
import { digitOf, type Digit } from '../gate/digits.ts'

interface HeardDigitsDeps {
  readonly isRelay: (address: string) => boolean
  /** False: its session is not known here. */
  readonly take: (digit: RelayDigit) => boolean
  readonly now: () => number
}

/** rtpengine 10.5 writes about 250 bytes. */
const MAX_BYTES = 2_048
/** Of one relay. */
const limits = { packetsPerSecond: 1_000, burst: 2_000, maxSources: 64 }

export class RelayDigits {
  readonly #deps: HeardDigitsDeps
  readonly #buckets = new TokenBuckets(limits)
  #ignored = 0

  constructor(deps: HeardDigitsDeps) {
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

interface DigitPlace {
  readonly host: string
  readonly port: number
}

/** Opens the UDP socket of `MEDIA_DTMF_LISTEN` (I/O). Rejects: the port cannot be bound. */
export async function openDigitSocket(
  { host, port }: DigitPlace,
  received: (datagram: Buffer, source: string) => void,
): Promise<Socket> {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  socket.on('message', (datagram, { address }) => received(datagram, address))
  socket.bind(port, host)
  await once(socket, 'listening')
  socket.on('error', () => undefined)
  return socket
}

// What rtpengine tells of one RFC 4733 event in RTP (`--dtmf-log-dest`): JSON, one datagram each. Pure.

export interface RelayDigit {
  /** The ng call-id. */
  readonly session: string
  /** The leg whose party has sent it, or in whose place we had it played. */
  readonly from: string
  readonly digit: Digit
}

/** Undefined: it is nothing of the kind. */
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
