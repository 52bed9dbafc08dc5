/** What is kept of a leg's media beside its call, so that the next process goes on with its session. */
import type { Relays } from '../relay/relays.ts'
import { newMediaLeg, type MediaLeg } from './media-leg.ts'
import { unknownParty, type PartyFacts } from '../parties.ts'
import type { Sessions } from './sessions.ts'
import type { Told } from './told.ts'

/** Plain JSON values. */
export interface SavedMedia {
  readonly facts: PartyFacts
  readonly told?: Told
  readonly session?: {
    readonly id: string
    readonly relay: string
    readonly legs: readonly [string, string]
  }
}

export function saveMedia({ facts, told, current }: MediaLeg): SavedMedia {
  const session = current && {
    ...{ id: current.id, relay: current.relay.name, legs: current.legs },
  }
  return { facts, ...(told && { told }), ...(session && { session }) }
}

export function restoreMedia(
  legId: string,
  saved: unknown,
  { sessions, relays }: { sessions: Sessions; relays: Pick<Relays, 'byName'> },
): MediaLeg {
  const { facts = unknownParty, told, session } = (saved ?? {}) as Partial<SavedMedia>
  const leg = newMediaLeg(legId, facts)
  leg.told = told
  const relay = session && relays.byName(session.relay)
  if (session && relay) {
    const { id, legs } = session
    leg.current = sessions.withId(id, legId) ?? sessions.add(id, relay, legs)
    // Only answered calls are saved: what it tells at its end is kept.
    leg.current.isConnected = true
  }
  return leg
}
