/** Calls of which an application says nothing: a stop of the process does not wait for it. Pure. */
import type { LiveCall } from '../call-machine/state.ts'

/**
 * How long a call may wait for the first word of an application while the process stops. Without a
 * stop it may wait for the whole time of ringing.
 */
const SILENCE_MS = 5_000

/** The legs to applications that have sent no more than 100 for so long. */
export function silentAtApplication(
  calls: Iterable<Pick<LiveCall, 'dialing'>>,
  now: number,
): readonly string[] {
  const legIds: string[] = []
  for (const { dialing } of calls)
    if (dialing?.current?.kind === 'application')
      for (const { legId, startedAt, status } of dialing.attempts)
        if (status <= 100 && now - startedAt >= SILENCE_MS) legIds.push(legId)
  return legIds
}
