/** The requests of sessions to their relay, and whether an answer can be used. Pure. */
import { isDescription } from './offer-answer.ts'
import type { NgAnswer, NgDictionary, NgRequest } from '../relay/relays.ts'
import { otherLeg, type Rewritten, type Session } from './session.ts'

/** `from` describes itself in `sdp`. */
export function offerOf(
  session: Session,
  from: string,
  sdp: string,
  flags: NgDictionary,
): NgRequest {
  const to = otherLeg(session, from)
  return { ...flags, command: 'offer', 'call-id': session.id, 'from-tag': from, 'to-tag': to, sdp }
}

/** The tags are those of the offer. */
export function answerOf(
  session: Session,
  from: string,
  sdp: string,
  flags: NgDictionary,
): NgRequest {
  const to = otherLeg(session, from)
  return { ...flags, command: 'answer', 'call-id': session.id, 'from-tag': to, 'to-tag': from, sdp }
}

export const deleteOf = (id: string): NgRequest => ({
  command: 'delete',
  'call-id': id,
  'delete-delay': 0,
})

/** The answer has the statistics: rtpengine tells them only to who names a tag. Both are there once both have an answer. */
export const deleteAndTell = ({ id, legs }: Pick<Session, 'id' | 'legs'>): NgRequest => ({
  ...deleteOf(id),
  'from-tag': legs[0],
})

/** A description without streams is none. */
export function rewrittenIn(answer: NgAnswer): Rewritten {
  if (answer.kind !== 'ok') return { kind: 'failed' }
  const { sdp } = answer.values
  const hasStreams = typeof sdp === 'string' && isDescription(sdp) && /^m=/m.test(sdp)
  return hasStreams ? { kind: 'rewritten', sdp: withoutNames(sdp) } : { kind: 'failed' }
}

/**
 * Whoever is behind a relay is not named by its description: user name of o=, subject, information, page, address and
 * number of its session (RFC 4566 §5.2 to §5.6). rtpengine replaces addresses alone.
 */
function withoutNames(sdp: string): string {
  const media = sdp.indexOf('\nm=')
  const session = sdp
    .slice(0, media)
    .replace(/^o=\S+/m, 'o=-')
    .replace(/^s=.*/m, 's=-')
    .replace(/^[iuep]=.*\r?\n/gm, '')
  return session + sdp.slice(media)
}
