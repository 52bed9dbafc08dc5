/**
 * Quality reports of phones, for the directions that no relay has measured: in BYE, in the answer
 * to it, or by PUBLISH (RFC 6035). A record waits only for phones that have reported before, half a
 * second at most. Later reports are only in the trace of the call.
 */
import type { Quality } from '../../../schema/contracts/charging.ts'
import type { CallQuality, StreamQuality } from '../../../schema/contracts/field-values.ts'
import type { CallParties } from '../../call/call-parties.ts'
import type { LiveCall, Note, Side } from '../../call/call-machine/state.ts'
import type { CallDeadlines } from '../../call/deadlines.ts'
import type { Headers } from '../../call/signalling.ts'
import { mosOf } from './statistics.ts'

export interface PhoneReportsDeps {
  readonly calls: {
    /** The parties of a call that is live, or ended a moment ago. */
    parties(callUuid: string): CallParties | undefined
    note(callUuid: string, note: Note): void
  }
  readonly deadlines: CallDeadlines
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
  /** The quality of the stream from each party, by call. */
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

  /**
   * `local`: the stream that the party has received; `remote`: the stream that its peer has
   * received, if known.
   */
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

  /** Returns the reports of a call that has just ended. Undefined: none of its phones reports. */
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

/** Removes the oldest entry if there is no room for `next`. */
function bounded<T extends Map<string, unknown> | Set<string>>(
  entries: T,
  most: number,
  next: string,
): T {
  const [oldest] = entries.size >= most && !entries.has(next) ? entries.keys() : []
  if (oldest !== undefined) entries.delete(oldest)
  return entries
}

// The RTP statistics that a phone writes into BYE or into its answer: `X-RTP-Stat` (AVM,
// AudioCodes, Poly, baresip, Snom) and `P-RTP-Stat` (Cisco, Yealink, TelcoBridges). `NAME=value`
// between commas or semicolons; undocumented names are ignored.

/** A longer value is no statistic. */
const MAX_LENGTH = 1_000
const MAX_PACKETS = 1e9
const MAX_JITTER_MS = 60_000

const names = new Set(['X-RTP-STAT', 'P-RTP-STAT'])

/**
 * Reads the headers of a BYE or of its answer. Undefined: there is no report. Repeated headers
 * count once.
 */
export function readRtpStat(headers: Readonly<Record<string, string>>): StreamQuality | undefined {
  for (const name in headers)
    if (name.length === 10 && names.has(name.toUpperCase())) return readValue(headers[name] ?? '')
  return undefined
}

function readValue(value: string): StreamQuality | undefined {
  if (value.length > MAX_LENGTH) return undefined
  const fields = fieldsOf(value)
  const packets = numberIn(fields.get('PR'), MAX_PACKETS)
  if (packets === null || packets === 0) return undefined
  // baresip writes the figures of its peer first, then its own.
  const isOwnLast = fields.get('EX')?.toLowerCase() === 'baresip'
  const own = (name: string): string | undefined =>
    isOwnLast ? fields.get(name)?.split(',').at(-1) : fields.get(name)
  const lost = numberIn(own('PL'), MAX_PACKETS)
  return streamOf({
    packets,
    jitterMs: numberIn(own('JI'), MAX_JITTER_MS),
    roundTripMs: null,
    packetLossPct: lost === null ? null : Math.round((1_000 * lost) / (packets + lost)) / 10,
    mos: numberIn(fields.get('MOS'), 5),
    codec: fields.get('DE'),
  })
}

interface ReportedStream extends Pick<
  StreamQuality,
  'mos' | 'jitterMs' | 'packetLossPct' | 'roundTripMs' | 'packets'
> {
  readonly codec: string | undefined
}

/** Without a reported MOS it is computed from jitter and loss. */
export function streamOf({ mos, codec, ...rest }: ReportedStream): StreamQuality {
  if (mos !== null && mos >= 1) return { mos, mosSource: 'reported', ...rest }
  const { jitterMs, packetLossPct, roundTripMs } = rest
  if (jitterMs === null || packetLossPct === null) return { mos: null, mosSource: null, ...rest }
  const figures = { jitterMs, packetLossPct, roundTripMs: roundTripMs ?? 0, codec }
  return { mos: mosOf(figures), mosSource: 'computed', ...rest }
}

/** Values may have commas: `PL=0,3`. */
function fieldsOf(value: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>()
  let last = ''
  for (const part of value.split(/[;,]/)) {
    const [, name, text] = /^\s*([A-Za-z]{2,3})=(.*)$/.exec(part) ?? []
    if (name === undefined) {
      if (last !== '') fields.set(last, `${fields.get(last)},${part.trim()}`)
      continue
    }
    last = name.toUpperCase()
    if (fields.has(last)) last = ''
    else fields.set(last, text?.trim() ?? '')
  }
  return fields
}

/** The number at the beginning of a text. Null: there is none, or it is above `most`. */
export function numberIn(text: string | undefined, most: number): number | null {
  const [digits] = /^\d{1,10}(?:\.\d{1,6})?/.exec(text ?? '') ?? []
  const value = digits === undefined ? NaN : Number(digits)
  return value <= most ? value : null
}
