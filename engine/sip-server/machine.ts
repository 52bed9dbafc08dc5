/** Sockets and timers of the server. Tests replace them by a network and a clock of their own. */
import type { SipServerOptions } from './options.ts'
import type { Transport, TransportCallbacks } from './transport/transport.ts'

export interface Machine {
  /** Binds one address, in place of a socket. Default: sockets. */
  readonly bind?: (
    address: SipServerOptions['listen'][number],
    callbacks: TransportCallbacks,
  ) => Promise<Transport>
  /** Runs `work` once after `delayMs`; the returned function cancels it. */
  readonly schedule: (work: () => void, delayMs: number) => () => void
  /** The same again and again; measures how busy the machine is. */
  readonly repeat: (work: () => void, everyMs: number) => () => void
}

export const thisMachine: Machine = {
  schedule: (work, delayMs) => {
    const timer = setTimeout(work, delayMs)
    return () => clearTimeout(timer)
  },
  repeat: (work, everyMs) => {
    const timer = setInterval(work, everyMs).unref()
    return () => clearInterval(timer)
  },
}

/** Unguessable tokens (branches, tags, transaction ids), and numbers from the same source. */

/**
 * Random bytes are drawn and written out in one piece for some hundred tokens: a draw costs far
 * more than a token, and so does one call of `toString`. A token that lives longer than its
 * neighbours has to be detached (`detachString` of `schema/sip`): it is a part of the whole
 * piece.
 */
const poolBytes = 4_096

/** 80 bits: a dialog cannot be guessed, and none occurs twice. */
const defaultTokenBytes = 10

/**
 * @param randomBytes must be of cryptographic quality
 * @returns a function that gives a new token of hexadecimal digits, two for each byte asked for
 */
export function randomTokens(
  randomBytes: (size: number) => Uint8Array,
): (bytes?: number) => string {
  let pool = ''
  let used = 0
  return (bytes = defaultTokenBytes) => {
    const length = 2 * bytes
    if (used + length > pool.length) {
      pool = Buffer.from(randomBytes(Math.max(poolBytes, bytes))).toString('hex')
      used = 0
    }
    used += length
    return pool.slice(used - length, used)
  }
}

/** Numbers from 0 up to 1, evenly spread. */
export const randomNumbers =
  (randomBytes: (size: number) => Uint8Array): (() => number) =>
  () =>
    Buffer.from(randomBytes(4)).readUInt32BE() / 2 ** 32
