/**
 * Tries the destinations of a simulated call as `call-machine/dialing.ts` does, with given answers.
 */
import { reasonPhrase } from '../../schema/sip/index.ts'
import { afterResult } from './call-machine/failover.ts'
import type { FailedAttempt } from './call-machine/protocol.ts'
import type { AttemptResult, Note } from './call-machine/state.ts'
import { type End, noCandidate } from './cdr/end-reason.ts'
import type { CallDestination } from './inbound/route.ts'

/** `withheld`: why no INVITE is sent there. */
interface JudgedDestination {
  readonly destination: CallDestination
  readonly withheld: AttemptResult | undefined
}

/** Returns the final status that a destination answers with; 0: nothing in time. */
export type AnswerOf = (destination: CallDestination) => number

/** Asks a hook about the next destination; undefined: there is no such hook. */
export type AskAttempt = (
  attempt: FailedAttempt,
) => Promise<{ readonly failover: boolean | undefined; readonly notes: readonly Note[] }>

interface SimulatedAttempts {
  /** Undefined: a destination takes the call. */
  readonly end: End | undefined
  readonly statuses: ReadonlyMap<CallDestination, number>
  readonly notes: readonly Note[]
}

export async function attemptsOf(
  judged: readonly JudgedDestination[],
  answerOf: AnswerOf,
  ask: AskAttempt | undefined,
): Promise<SimulatedAttempts> {
  const statuses = new Map<CallDestination, number>()
  const notes: Note[] = []
  let last: End = noCandidate
  for (const [index, { destination, withheld }] of judged.entries()) {
    const status = answerOf(destination)
    if (withheld === undefined) statuses.set(destination, status)
    const result = withheld ?? resultOf(destination, status)
    if (result.kind === 'answered') return { end: undefined, statuses, notes }
    const rules = destination.kind === 'gateway' ? destination.hunting : undefined
    const after = afterResult(result, last, { rules, isEmergency: false })
    last = after.last
    const goesOn = !after.isLast
    const remaining = judged.slice(index + 1).map((each) => each.destination)
    const { status: shown, reason } = result.kind === 'rejected' ? result : noResponse
    const attempt = { destination, remaining, status: shown, reason, goesOn, mayGoOn: true }
    const asked = await ask?.(attempt)
    notes.push(...(asked?.notes ?? []))
    if (!(asked?.failover ?? goesOn)) break
  }
  return { end: last, statuses, notes }
}

const noResponse = { status: 0, reason: '' }

/** All phones of an extension have answered when it has: its answer is final. */
function resultOf({ kind }: CallDestination, status: number): AttemptResult {
  if (status === 0) return { kind: 'silent' }
  if (status < 300) return { kind: 'answered' }
  const reason = reasonPhrase(status)
  return { kind: 'rejected', status, reason, headers: {}, isFinal: kind === 'extension' }
}
