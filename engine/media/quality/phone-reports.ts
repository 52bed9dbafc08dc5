/**
 * What phones report of a call, for the directions that no relay has measured: in BYE, in the answer to it, or by PUBLISH
 * (RFC 6035). A record waits only for phones that have reported before, half a second at most; what comes later
 * is in the trace of the call alone.
 */
import type { Quality } from '../../../schema/contracts/charging.ts'
import type { CallQuality, StreamQuality } from '../../../schema/contracts/field-values.ts'
import type { CallParties } from '../../call/call-parties.ts'
import type { LiveCall, Note, Side } from '../../call/call-machine/state.ts'
import type { Deadlines } from '../../call/deadlines.ts'
import type { Headers } from '../../call/signalling.ts'
import { readRtpStat } from './rtp-stat.ts'

export interface PhoneReportsDeps {
  readonly calls: {
    /** Of a call that lives, or that ended a moment ago. */
    parties(callUuid: string): CallParties | undefined
    note(callUuid: string, note: Note): void
  }
  readonly deadlines: Deadlines
  /** Milliseconds by the steady clock. */
  readonly now: () => number
}

/** Deadlines are late by up to 50 ms. */
const WAIT_MS = 450
const MAX_CALLS = 10_000
const MAX_REPORTERS = 10_000

interface CallReports {
  caller: StreamQuality | null
  callee: StreamQuality | null
  /** Called at every report. */
  onReport: (() => void) | undefined
}

const other = { caller: 'callee', callee: 'caller' } as const

export class PhoneReports {
  readonly #deps: PhoneReportsDeps
  /** What was heard from each party, by call. */
  readonly #calls = new Map<string, CallReports>()
  /** `address:port` of phones that have reported. */
  readonly #reporters = new Set<string>()

  constructor(deps: PhoneReportsDeps) {
    this.#deps = deps
  }

  get size(): number {
    return this.#calls.size
  }

  /** Headers of the BYE from the peer of a leg, or of its answer to ours. */
  readonly noteBye = (callUuid: string, legId: string, headers: Headers): void => {
    const stream = readRtpStat(headers)
    const parties = stream && this.#deps.calls.parties(callUuid)
    if (parties === undefined) return
    const { caller, callee } = parties.legs
    if (legId === caller) this.take(parties, 'caller', stream, undefined)
    else if (legId === callee) this.take(parties, 'callee', stream, undefined)
  }

  /** `local`: what the party has heard; `remote`: what it knows of what the other one has. */
  take(
    { callUuid, peers }: CallParties,
    by: Side,
    local: StreamQuality | undefined,
    remote: StreamQuality | undefined,
  ): void {
    const { calls, now } = this.#deps
    const peer = peers[by]
    if (peer !== null) bounded(this.#reporters, MAX_REPORTERS, peer).add(peer)
    const known = this.#calls.get(callUuid) ?? { caller: null, callee: null, onReport: undefined }
    bounded(this.#calls, MAX_CALLS, callUuid).set(callUuid, known)
    if (local) known[other[by]] = local
    if (remote) known[by] ??= remote
    const stream = local ?? remote
    if (stream) calls.note(callUuid, { at: now(), what: 'reported', by, stream: stream })
    known.onReport?.()
  }

  /** Of a call that has just ended; undefined: no phone of it reports. */
  of({ start, peers, answeredAt }: LiveCall): Quality | undefined {
    const { callUuid } = start
    const isMissing = (side: Side): boolean =>
      this.#reporters.has(peers[side] ?? '') && !this.#calls.get(callUuid)?.[other[side]]
    const isWaiting = (): boolean => isMissing('caller') || isMissing('callee')
    if (answeredAt === null) return undefined
    if (!isWaiting())
      return this.#calls.has(callUuid) ? Promise.resolve(this.#end(callUuid)) : undefined
    const { deadlines, now } = this.#deps
    return new Promise((resolve) => {
      const finish = (): void => {
        deadlines.cancel(deadline)
        resolve(this.#end(callUuid))
      }
      const deadline = deadlines.at(now() + WAIT_MS, finish)
      const known = this.#calls.get(callUuid) ?? { caller: null, callee: null, onReport: undefined }
      known.onReport = () => (isWaiting() ? undefined : finish())
      bounded(this.#calls, MAX_CALLS, callUuid).set(callUuid, known)
    })
  }

  #end(callUuid: string): CallQuality | undefined {
    const { caller = null, callee = null } = this.#calls.get(callUuid) ?? {}
    this.#calls.delete(callUuid)
    return caller === null && callee === null ? undefined : { caller, callee }
  }
}

/** With room for `next`: the oldest entry goes. */
function bounded<T extends Map<string, unknown> | Set<string>>(
  entries: T,
  most: number,
  next: string,
): T {
  const [oldest] = entries.size >= most && !entries.has(next) ? entries.keys() : []
  if (oldest !== undefined) entries.delete(oldest)
  return entries
}
