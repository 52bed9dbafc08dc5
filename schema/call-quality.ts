/** The quality of a call as its record has it, in the API's spelling. */
import type { MosSource } from './contracts/field-values.ts'
import type { CallQuality, StreamQuality } from './contracts/media.ts'

export interface QualityColumns {
  /** The lower one of both directions. */
  readonly mos_score: number | null
  /** Of that one. */
  readonly mos_source: MosSource | null
  /** The higher ones. */
  readonly jitter_ms: number | null
  readonly packet_loss_pct: number | null
}

const unknown: QualityColumns = {
  mos_score: null,
  mos_source: null,
  jitter_ms: null,
  packet_loss_pct: null,
}

export function worstOf(quality: CallQuality | undefined): QualityColumns {
  if (quality === undefined) return unknown
  const { caller, callee } = quality
  const lower = [caller, callee].reduce((worst, each) => {
    if (each?.mos === null || each === null) return worst
    return worst?.mos === undefined || worst.mos === null || each.mos < worst.mos ? each : worst
  }, null)
  return {
    mos_score: lower?.mos ?? null,
    mos_source: lower?.mosSource ?? null,
    jitter_ms: highest(caller?.jitterMs, callee?.jitterMs),
    packet_loss_pct: highest(caller?.packetLossPct, callee?.packetLossPct),
  }
}

function highest(...values: readonly (number | null | undefined)[]): number | null {
  const known = values.filter((value) => typeof value === 'number')
  return known.length === 0 ? null : Math.max(...known)
}

/** Both directions: what was heard from each party. */
export const bothDirections = ({ caller, callee }: CallQuality) => ({
  caller: caller && direction(caller),
  callee: callee && direction(callee),
})

export type MediaQuality = ReturnType<typeof bothDirections>

const direction = (stream: StreamQuality) => ({
  mos: stream.mos,
  mos_source: stream.mosSource,
  jitter_ms: stream.jitterMs,
  packet_loss_pct: stream.packetLossPct,
  round_trip_ms: stream.roundTripMs,
  packets: stream.packets,
})
