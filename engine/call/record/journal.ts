/** Before a caller hears an answer: the call is in the journal, where no crash can lose it. */
import type { Attempt } from '../../../schema/call-record.ts'
import type { Charging } from '../../../schema/contracts/charging.ts'
import type { Call } from '../call.ts'
import { openCall } from '../cdr/cdr.ts'
import { cause } from '../cdr/end-reason.ts'

interface JournalDeps {
  readonly charging: Pick<Charging, 'answered'>
  /** Milliseconds UTC. */
  readonly now: () => number
}

/**
 * False: it could not be written, and the call is stopped; what has answered gets its BYE. An emergency goes
 * on all the same: it is free, and its record waits in memory.
 */
export async function journalled(
  call: Call,
  attempts: readonly Attempt[],
  { charging, now }: JournalDeps,
): Promise<boolean> {
  const isStored = await charging.answered(openCall(call, now(), attempts))
  if (isStored || call.isEmergency) return true
  call.stop({ kind: 'cut', by: 'system', cause: cause.failure, code: 'storage_unavailable' })
  return false
}
