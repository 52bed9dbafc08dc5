/**
 * The lines of a ladder diagram: who has sent each message to which party, in the order of time.
 */
import type { CallTrace, TraceDecision, TraceMessageView } from '../api/views.ts'

/** Columns: the caller, the platform, then each other party in the order in which it appears. */
export interface Ladder {
  readonly parties: readonly LadderParty[]
  readonly steps: readonly LadderStep[]
}

export interface LadderParty {
  /** Its role in the call. */
  readonly title: string
  /** A number, a carrier, an address: text of strangers. */
  readonly name: string | null
  /** Where it differs from the name. */
  readonly address: string | null
}

export type LadderStep =
  | {
      readonly kind: 'message'
      readonly message: TraceMessageView
      readonly from: number
      readonly to: number
      /** Since the first entry. */
      readonly afterMs: number
    }
  | { readonly kind: 'decision'; readonly decision: TraceDecision; readonly afterMs: number }

const PLATFORM = 1

export function ladderOf({ entries, peers }: Pick<CallTrace, 'entries' | 'peers'>): Ladder {
  const parties: LadderParty[] = [
    partyOf(0, peers),
    { title: 'Tollgate', name: null, address: null },
  ]
  const start = Date.parse(entries[0]?.at ?? '')
  const columnOf = new Map<number, number>([[0, 0]])
  const steps = entries.map((entry): LadderStep => {
    const afterMs = Date.parse(entry.at) - start
    if (entry.kind === 'decision') return { kind: 'decision', decision: entry, afterMs }
    const known = columnOf.get(entry.leg)
    const column = known ?? parties.push(partyOf(entry.leg, peers)) - 1
    columnOf.set(entry.leg, column)
    const isReceived = entry.direction === 'received'
    const [from, to] = isReceived ? [column, PLATFORM] : [PLATFORM, column]
    return { kind: 'message', message: entry, from, to, afterMs }
  })
  return { parties, steps }
}

function partyOf(leg: number, peers: CallTrace['peers']): LadderParty {
  const peer = peers[leg]
  const called = peer?.role === 'called' ? `Called ${leg}` : `Leg ${leg + 1}`
  const address = peer?.address ?? null
  const name = peer?.name ?? address
  return { title: leg === 0 ? 'Caller' : called, name, address: address === name ? null : address }
}

/** `INVITE sip:100@10.0.0.1 SIP/2.0` → `INVITE`; `SIP/2.0 180 Ringing` → `180 Ringing`. */
export const shortSummary = (summary: string): string =>
  summary.startsWith('SIP/2.0 ') ? summary.slice('SIP/2.0 '.length) : (summary.split(' ')[0] ?? '')

/** `0 ms`, `+12 ms`, `+3.04 s`. */
export function afterText(ms: number): string {
  if (ms <= 0) return '0 ms'
  return ms < 10_000 ? `+${ms} ms` : `+${(ms / 1_000).toFixed(2)} s`
}
