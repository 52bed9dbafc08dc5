/** What is kept of a leg's media beside its call, so that the next process goes on with its session. */
import { noMediaRules } from '../../../schema/rules/media.ts'
import type { ActiveCalls } from '../../call/active-calls.ts'
import { unknownParty, type PartyFacts } from '../parties.ts'
import type { Relays } from '../relay/relays.ts'
import { newMediaLeg, type MediaLeg, type Told } from './media-leg.ts'
import type { Sessions } from './sessions.ts'
import { lastOf } from './told.ts'

/** Plain JSON values; what is usual is absent. */
export interface SavedMedia {
  readonly facts?: Partial<PartyFacts>
  readonly told?: Told
  readonly session?: {
    readonly id: string
    readonly relay: string
    readonly legs: readonly [string, string]
  }
}

export function saveMedia(leg: MediaLeg): SavedMedia {
  const { facts, current, isCounted } = leg
  const told = isCounted ? lastOf(leg) : undefined
  const session = current && { id: current.id, relay: current.relay.name, legs: current.legs }
  return { facts: unusual(facts), ...(told && { told }), ...(session && { session }) }
}

const usual: PartyFacts = { ...unknownParty, isBehindProxy: false }

/** Without what is usual. */
const unusual = (facts: PartyFacts): Partial<PartyFacts> => ({
  ...(facts.isOnWebSocket && { isOnWebSocket: true }),
  ...(facts.address !== undefined && { address: facts.address }),
  ...(facts.isBehindProxy && { isBehindProxy: true }),
  ...(facts.boundBehindNat !== undefined && { boundBehindNat: facts.boundBehindNat }),
  ...(facts.rules !== undefined && facts.rules !== noMediaRules && { rules: facts.rules }),
})

export function restoreMedia(
  legId: string,
  saved: SavedMedia | undefined,
  {
    sessions,
    relays,
    calls,
  }: {
    readonly sessions: Sessions
    readonly relays: Pick<Relays, 'byName'>
    readonly calls: Pick<ActiveCalls, 'leg'>
  },
): MediaLeg {
  const { facts, told, session } = saved ?? {}
  // A process without relays has saved nothing.
  const leg = newMediaLeg(legId, saved === undefined ? unknownParty : { ...usual, ...facts })
  leg.told = told
  leg.isCounted = told !== undefined
  if (!leg.isCounted) leg.toldSdp = calls.leg(legId)?.told ?? ''
  const relay = session && relays.byName(session.relay)
  if (session && relay) {
    const { id, legs } = session
    leg.current = sessions.withId(id, legId) ?? sessions.add(id, relay, legs)
    // Only answered calls are saved: what it tells at its end is kept.
    leg.current.isConnected = true
  }
  return leg
}
