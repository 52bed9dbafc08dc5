/** What a SIP server can be told, and what it does when it is not told. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import type { AdminLimits } from './clients/listener.ts'
import type { Flow } from './flow.ts'
import type { Timers } from './transaction/timers.ts'

export type Log = (
  level: 'debug' | 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void

/** Beyond these, what begins something new gets 503; what belongs to a dialog still passes. */
export interface CallLimits {
  /** Requests that wait for an application's final response; an INVITE does so while it rings. */
  readonly maxUnanswered: number
  /** Dialogs, early ones included: a bridged call has two. */
  readonly maxDialogs: number
}

/** What 1 GB of heap holds at 25 kB for a dialog, with room for everything else. */
export const defaultLimits: CallLimits = { maxUnanswered: 20_000, maxDialogs: 40_000 }

export interface SipServerOptions {
  /** Addresses to bind, at least one. Port 0: one that is free. IPv6 without brackets. */
  readonly listen: readonly {
    readonly protocol: 'udp' | 'tcp'
    readonly host: string
    readonly port: number
  }[]
  /**
   * The address in Via and Contact of every listener. Default: the bound one; for `0.0.0.0` and `::`
   * the first address of the machine that is not internal, or else loopback.
   */
  readonly advertisedHost?: string
  /** Where drachtio applications connect by TCP. Default: nowhere, only in process. */
  readonly admin?: { readonly host: string; readonly port: number }
  /** What applications must quote to be let in. */
  readonly secret: string
  /** RFC 3261 Table 4; milliseconds. Default: the RFC's. */
  readonly timers?: Partial<Timers>
  /** Default: 20 000 unanswered requests, 40 000 dialogs. */
  readonly limits?: Partial<CallLimits>
  /** Milliseconds since the epoch; must not jump backwards. Default: the monotonic clock. */
  readonly now?: () => number
  /** Of cryptographic quality. Default: that of `node:crypto`. */
  readonly randomBytes?: (size: number) => Uint8Array
  /** Default: silent. */
  readonly log?: Log
  /**
   * Asked for each datagram before it is decoded, and for each message of a stream; false drops it in
   * silence. Default: admits all.
   */
  readonly admit?: (source: Flow, packet: Buffer | string) => boolean
}

/** Reported to applications; drachtio-srf wants three numbers, and pings from 0.8.2 on. */
export const serverVersion = 'v0.9.99-tollgate'

export const adminLimits: AdminLimits = { maxClients: 256, maxBufferedBytes: 16 * 1024 * 1024 }

/** Wall time at the start of the process, carried on by the clock that never jumps. */
export const monotonicNow = (): number => performance.timeOrigin + performance.now()

export const secureRandomBytes = (size: number): Uint8Array => randomBytes(size)

/** Takes the same time wherever the difference is. */
export function sameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected))
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
