/** The lines of a ladder diagram: who has sent each message to which party, in the order of time. */
import type { CallTrace, TraceDecision, TraceMessage } from '../api/views.ts'

/** Columns: the caller, the platform, then each other party in the order in which it appears. */
export interface Ladder {
  readonly parties: readonly Party[]
  readonly steps: readonly Step[]
}

export interface Party {
  /** Its role in the call. */
  readonly title: string
  /** A number, a carrier, an address: text of strangers. */
  readonly name: string | null
}

export type Step =
  | {
      readonly kind: 'message'
      readonly message: TraceMessage
      readonly from: number
      readonly to: number
    }
  | { readonly kind: 'decision'; readonly decision: TraceDecision }

const PLATFORM = 1

export function ladderOf({ entries, peers }: Pick<CallTrace, 'entries' | 'peers'>): Ladder {
  const parties: Party[] = [partyOf(0, peers), { title: 'Tollgate', name: null }]
  const columnOf = new Map<number, number>([[0, 0]])
  const steps = entries.map((entry): Step => {
    if (entry.kind === 'decision') return { kind: 'decision', decision: entry }
    const known = columnOf.get(entry.leg)
    const column = known ?? parties.push(partyOf(entry.leg, peers)) - 1
    columnOf.set(entry.leg, column)
    const isReceived = entry.direction === 'received'
    const [from, to] = isReceived ? [column, PLATFORM] : [PLATFORM, column]
    return { kind: 'message', message: entry, from, to }
  })
  return { parties, steps }
}

function partyOf(leg: number, peers: CallTrace['peers']): Party {
  const peer = peers[leg]
  const called = peer?.role === 'called' ? `Called ${leg}` : `Leg ${leg + 1}`
  return { title: leg === 0 ? 'Caller' : called, name: peer?.name ?? peer?.address ?? null }
}
