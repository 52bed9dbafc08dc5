/** What the gate keeps of one leg. */
import type { PartyFacts } from '../parties.ts'
import type { Session } from './session.ts'
import type { Told } from './told.ts'

/** What is to be done for a leg, in order. */
export interface Step {
  /** It does not wait for a relay any more. */
  isReady: boolean
  run: () => void
  /** The leg is over before. */
  readonly drop: () => void
}

export interface MediaLeg {
  readonly id: string
  facts: PartyFacts
  /** Of the descriptions that it exchanged last. */
  current: Session | undefined
  /** Of an offer that it has got and not answered, and what brings the answer: a transaction of ours, or one of these. */
  offered: Session | undefined
  offeredIn: 'invite' | 'ack' | (string & {})
  /** Its INVITE was received, and had an offer. */
  hasOffered: boolean
  /** Its re-INVITE without offer. */
  late: string | undefined
  /** Its last offer. */
  offer: string
  told: Told | undefined
  /** As told. */
  toldSdp: string
  readonly steps: Step[]
  /** Since when its INVITE waits for a relay, by the steady clock, and how long it did. */
  heldSince: number | undefined
  heldMs: number
}

export const newMediaLeg = (id: string, facts: PartyFacts): MediaLeg => ({
  id,
  facts,
  current: undefined,
  offered: undefined,
  offeredIn: 'invite',
  hasOffered: false,
  late: undefined,
  offer: '',
  told: undefined,
  toldSdp: '',
  steps: [],
  heldSince: undefined,
  heldMs: 0,
})
