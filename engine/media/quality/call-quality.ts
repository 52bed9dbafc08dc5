/** The quality of a call that has ended, by what its media sessions tell when they are deleted. */
import type { Quality } from '../../../schema/contracts/charging.ts'
import type { CallQuality, StreamQuality } from '../../../schema/contracts/field-values.ts'
import type { LiveCall } from '../../call/call-machine/live.ts'
import type { CallMedia, ClosedSession } from '../call-media.ts'
import { qualityOf, type Tags } from './statistics.ts'

/** Undefined: it was not answered, or no relay knows of it, so that nothing is waited for. */
export function measuredQuality(
  { answeredAt, start, legs }: LiveCall,
  media: Pick<CallMedia, 'closedSessions'>,
): Quality | undefined {
  if (answeredAt === null) return undefined
  const { caller, callee } = legs
  return media
    .closedSessions(start.callUuid)
    ?.then((sessions) => combined(sessions, { caller, callee }))
}

/** After a transfer, or another relay, each party is judged by the session in which most was heard from it. */
function combined(
  sessions: readonly ClosedSession[],
  legs: LiveCall['legs'],
): CallQuality | undefined {
  const qualities = sessions.flatMap(({ session, values }) => {
    const quality = values && qualityOf(values, tagsOf(session.legs, legs))
    return quality === undefined ? [] : [quality]
  })
  if (qualities.length === 0) return undefined
  return {
    caller: longest(qualities.map(({ caller }) => caller)),
    callee: longest(qualities.map(({ callee }) => callee)),
  }
}

/** One leg of a session may belong to another call. */
function tagsOf([first, second]: readonly [string, string], legs: LiveCall['legs']): Tags {
  const isTurned = first === legs.callee || second === legs.caller
  return isTurned ? { caller: second, callee: first } : { caller: first, callee: second }
}

const longest = (streams: readonly (StreamQuality | null)[]): StreamQuality | null =>
  streams.reduce((most, each) => ((each?.packets ?? 0) > (most?.packets ?? 0) ? each : most), null)
