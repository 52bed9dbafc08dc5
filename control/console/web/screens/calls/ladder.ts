/** The lines of a ladder diagram: who has sent each message to which party, in the order of time. */
import type { TraceDecision, TraceMessage } from '../../api/api-types.ts'

export type Entry = TraceMessage | TraceDecision

/** Columns: the caller, the platform, then each other party in the order in which it appears. */
export interface Ladder {
  readonly parties: readonly string[]
  readonly steps: readonly Step[]
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

export function ladderOf(entries: readonly Entry[]): Ladder {
  const parties = ['Caller', 'Tollgate']
  const columnOf = new Map<number, number>([[0, 0]])
  const steps = entries.map((entry): Step => {
    if (entry.kind === 'decision') return { kind: 'decision', decision: entry }
    const known = columnOf.get(entry.leg)
    const column = known ?? parties.push(`Leg ${entry.leg + 1}`) - 1
    columnOf.set(entry.leg, column)
    const isReceived = entry.direction === 'received'
    const [from, to] = isReceived ? [column, PLATFORM] : [PLATFORM, column]
    return { kind: 'message', message: entry, from, to }
  })
  return { parties, steps }
}
