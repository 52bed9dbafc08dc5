/** What a listener would say of a call: the E-model of ITU-T G.107 with its defaults, out of delay, jitter and loss. Pure. */

export interface Heard {
  readonly jitterMs: number
  /** 0 to 100. */
  readonly packetLossPct: number
  readonly roundTripMs: number
  /** As in SDP, such as `PCMA`; undefined: taken for G.711. */
  readonly codec: string | undefined
}

/** Equipment impairment and robustness against loss (ITU-T G.113, appendix I). */
interface Impairment {
  readonly ie: number
  readonly bpl: number
}

/** Nothing tells whether a phone conceals losses (G.711, appendix I), which the codec itself does not. */
const g711: Impairment = { ie: 0, bpl: 4.3 }
/** As G.711 with concealment: decoders of others have it. */
const concealed: Impairment = { ie: 0, bpl: 25.1 }

const impairments: Readonly<Record<string, Impairment>> = {
  '': g711,
  PCMU: g711,
  PCMA: g711,
  G711U: g711,
  G711A: g711,
  G729: { ie: 11, bpl: 19 },
  G723: { ie: 15, bpl: 16.1 },
  AMR: { ie: 5, bpl: 10 },
}

/** R without any impairment by the network. */
const BEST_R = 93.2
/** Above this one-way delay people begin to interrupt each other. */
const NOTICED_DELAY_MS = 177.3

/** 1 to 4.4, with one decimal. */
export function mosOf({ jitterMs, packetLossPct, roundTripMs, codec = '' }: Heard): number {
  const { ie, bpl } = impairments[codec.toUpperCase()] ?? concealed
  // A buffer holds about twice the jitter back.
  const delayMs = roundTripMs / 2 + 2 * jitterMs
  const late = Math.max(0, delayMs - NOTICED_DELAY_MS)
  const byDelay = 0.024 * delayMs + 0.11 * late
  const byLoss = ie + ((95 - ie) * packetLossPct) / (packetLossPct + bpl)
  return mosOfR(BEST_R - byDelay - byLoss)
}

/** ITU-T G.107, annex B. */
function mosOfR(r: number): number {
  if (r <= 0) return 1
  const bounded = Math.min(r, 100)
  const mos = 1 + 0.035 * bounded + bounded * (bounded - 60) * (100 - bounded) * 7e-6
  return Math.max(1, Math.round(mos * 10) / 10)
}
