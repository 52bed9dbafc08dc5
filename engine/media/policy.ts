/** Whether a relay stands between two parties. Pure. */
import { noMediaRules } from '../../schema/rules/media.ts'
import type { Admission } from '../call/call-machine/protocol.ts'
import type { Callee } from '../call/dialing/outgoing-invite.ts'
import { convertsDigits, offeredCodecs } from './codecs.ts'
import { type MediaParty, profileToward } from './call-media.ts'
import type { MediaPolicy, MediaRules } from '../../schema/contracts/field-values.ts'

export type MediaDecision =
  | { readonly kind: 'bypass' }
  /** `isRequired`: without a relay there is no call; otherwise the description passes unchanged then. */
  | { readonly kind: 'relay'; readonly isRequired: boolean; readonly why: RelayReason }

export type RelayReason =
  'anchored' | 'preferred' | 'recording' | 'nat' | 'profile' | 'codecs' | 'dtmf'

export interface RelayWishes {
  /** The setting `MEDIA_POLICY`. */
  readonly policy: MediaPolicy
  readonly isRecorded: boolean
  /** It must not take place unrecorded. */
  readonly mustBeRecorded: boolean
}

export function mediaDecision(
  offerer: MediaParty,
  answerer: MediaParty,
  { policy, isRecorded, mustBeRecorded }: RelayWishes,
): MediaDecision {
  const policies = [offerer, answerer].map(({ rules }) => rules.policy ?? policy)
  if (policies.includes('anchor')) return { kind: 'relay', isRequired: true, why: 'anchored' }
  if (mustBeRecorded) return { kind: 'relay', isRequired: true, why: 'recording' }
  const why = policies.includes('prefer') ? 'preferred' : needOf(offerer, answerer, isRecorded)
  return why === undefined ? { kind: 'bypass' } : { kind: 'relay', isRequired: false, why }
}

/** Why media could not flow, or not as asked for, between the two alone. */
function needOf(
  offerer: MediaParty,
  answerer: MediaParty,
  isRecorded: boolean,
): RelayReason | undefined {
  if (isRecorded) return 'recording'
  if (offerer.natAddress !== undefined || answerer.natAddress !== undefined) return 'nat'
  const offered = offerer.described?.profile
  if (offered !== undefined && profileToward(answerer, offered) !== offered) return 'profile'
  if (offeredCodecs(offerer, answerer).kind !== 'unchanged') return 'codecs'
  return convertsDigits(offerer, answerer) ? 'dtmf' : undefined
}

/** Answers from memory. */
export interface RuleBooks {
  routing(
    party: { readonly carrierId: number } | { readonly agentId: number },
  ): MediaRules | undefined
  set(setId: number): MediaRules | undefined
  extension(domain: string, extension: string): MediaRules | undefined
}

/** The rules of the party that sent an INVITE, or to which one is sent. */
export const rulesOf = (party: Caller | Callee, books: RuleBooks): MediaRules =>
  saidBy(party, books) ?? noMediaRules

type Caller = NonNullable<Admission['origin']>

function saidBy(party: Caller | Callee, books: RuleBooks): MediaRules | undefined {
  switch (party.kind) {
    case 'carrier':
    case 'gateway':
    case 'agent':
      return books.routing(party)
    case 'node':
      return books.set(party.setId)
    case 'spy':
      return party.setId === null ? undefined : books.set(party.setId)
    case 'extension':
    case 'phone':
      return books.extension(party.domain, party.extension)
    case 'listener':
      // It is known to relays only.
      return { ...noMediaRules, policy: 'anchor', profile: 'rtp' }
    case 'voicemail':
    case 'domain':
    case 'other-node':
    case 'trusted':
    case 'proxy':
    case 'unknown':
    default:
      return undefined
  }
}
