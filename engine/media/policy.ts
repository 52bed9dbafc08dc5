/** Whether a relay stands between two parties. Pure. */
import { noMediaRules, canTranscode } from '../../schema/rules/media.ts'
import { areApart } from '../call/sdp.ts'
import type { Admission } from '../call/call-machine/protocol.ts'
import type { Callee } from '../call/dialing/outgoing-invite.ts'
import { type MediaParty, profileToward } from './call-media.ts'
import type { MediaPolicy, MediaRules } from '../../schema/contracts/field-values.ts'

export type MediaDecision =
  | { readonly kind: 'bypass' }
  /**
   * `isRequired`: without a relay there is no call; otherwise the description passes unchanged
   * then.
   */
  | { readonly kind: 'relay'; readonly isRequired: boolean; readonly why: RelayReason }

export type RelayReason =
  'ip-version' | 'anchored' | 'preferred' | 'recording' | 'nat' | 'profile' | 'codecs' | 'dtmf'

interface RelayWishes {
  /** The setting `MEDIA_POLICY`. */
  readonly policy: MediaPolicy
  readonly isRecorded: boolean
  /** The call must not take place unrecorded. */
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
  if (areApart(offerer.families, answerer.families))
    return { kind: 'relay', isRequired: true, why: 'ip-version' }
  const why = policies.includes('prefer') ? 'preferred' : needOf(offerer, answerer, isRecorded)
  return why === undefined ? { kind: 'bypass' } : { kind: 'relay', isRequired: false, why }
}

/** Why media between the two needs a relay. */
function needOf(
  offerer: MediaParty,
  answerer: MediaParty,
  isRecorded: boolean,
): RelayReason | undefined {
  if (isRecorded) return 'recording'
  if (offerer.natAddress !== undefined || answerer.natAddress !== undefined) return 'nat'
  const offered = offerer.description?.profile
  if (offered !== undefined && profileToward(answerer, offered) !== offered) return 'profile'
  if (offeredCodecs(offerer, answerer).kind !== 'unchanged') return 'codecs'
  return convertsDigits(offerer, answerer) ? 'dtmf' : undefined
}

/** The media rules of carriers, agents, dispatcher sets and extensions, in memory. */
export interface RuleSources {
  readonly routing: {
    mediaOf(
      party: { readonly carrierId: number } | { readonly agentId: number },
    ): MediaRules | undefined
  }
  readonly dispatcher: { setRecord(setId: number): WithMediaRules | undefined }
  readonly registrar: { extensionAt(domain: string, extension: string): WithMediaRules | undefined }
}

interface WithMediaRules {
  readonly media?: MediaRules | undefined
}

/** The rules of the party that sent an INVITE, or to which one is sent. */
export const rulesOf = (party: Caller | Callee, sources: RuleSources): MediaRules =>
  ownRules(party, sources) ?? noMediaRules

type Caller = NonNullable<Admission['origin']>

function ownRules(
  party: Caller | Callee,
  { routing, dispatcher, registrar }: RuleSources,
): MediaRules | undefined {
  switch (party.kind) {
    case 'carrier':
    case 'gateway':
    case 'agent':
      return routing.mediaOf(party)
    case 'node':
      return dispatcher.setRecord(party.setId)?.media
    case 'spy':
      return party.setId === null ? undefined : dispatcher.setRecord(party.setId)?.media
    case 'extension':
    case 'phone':
      return registrar.extensionAt(party.domain, party.extension)?.media
    case 'listener':
      // Only relays know its address.
      return { ...noMediaRules, policy: 'anchor', profile: 'rtp' }
    case 'voicemail':
    case 'domain':
    case 'other-node':
    case 'application':
    case 'trusted':
    case 'proxy':
    case 'unknown':
    default:
      return undefined
  }
}

// Which codecs of an offer the answerer is offered. Pure.

type OfferedCodecs =
  | { readonly kind: 'unchanged' }
  /** These alone, in this order. */
  | { readonly kind: 'filtered'; readonly codecs: readonly string[] }
  /** The offer has none of the answerer's codecs: the relay transcodes between `from` and `to`. */
  | {
      readonly kind: 'transcoded'
      readonly from: readonly string[]
      readonly to: readonly string[]
    }

/**
 * Both allow lists count; that of the answerer also defines the order. An offerer without a codec
 * on both lists may use what it offers. An offer of which the answerer may have nothing passes
 * where the relay cannot transcode.
 */
export function offeredCodecs(offerer: MediaParty, answerer: MediaParty): OfferedCodecs {
  const offered = offerer.description?.codecs ?? []
  const usable = allowed(offered, offerer.rules.codecs)
  const own = usable.length > 0 ? usable : offered
  const wanted = answerer.rules.codecs
  if (wanted === null) return filtered(offered, own)
  const shared = common(wanted, own)
  const possible = shared.length > 0 ? shared : common(wanted, offered)
  if (possible.length > 0) return filtered(offered, possible)
  const to = wanted.filter(canTranscode)
  const from = own.filter(canTranscode)
  return to.length > 0 && from.length > 0 ? { kind: 'transcoded', from, to } : { kind: 'unchanged' }
}

const allowed = (offered: readonly string[], list: readonly string[] | null): readonly string[] =>
  list === null ? offered : offered.filter((name) => list.some((each) => isSame(each, name)))

/** The offered codecs that are in `wanted`, in the order of `wanted`. */
const common = (wanted: readonly string[], offered: readonly string[]): readonly string[] =>
  wanted.flatMap((name) => offered.filter((each) => isSame(each, name)))

/** RFC 4855 §3: names of codecs have no case. */
const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()

function filtered(offered: readonly string[], codecs: readonly string[]): OfferedCodecs {
  const isUnchanged =
    codecs.length === offered.length && codecs.every((name, i) => name === offered[i])
  return isUnchanged ? { kind: 'unchanged' } : { kind: 'filtered', codecs }
}

/** Whether the relay has to do with the digits of these two. */
export const convertsDigits = (one: MediaParty, other: MediaParty): boolean =>
  getsEvents(one, other) || getsEvents(other, one)

/** Whether an INFO with digits from one becomes events in the RTP towards the other. */
export function getsEvents(from: MediaParty, to: MediaParty): boolean {
  if (to.rules.dtmf === 'info') return false
  if (from.rules.dtmf === 'info') return to.description?.hasTelephoneEvents !== false
  return to.rules.dtmf === 'rfc4733' && from.description?.hasTelephoneEvents === false
}

/**
 * Whether events in the RTP of the other party become INFO to this one. If it has described events
 * itself, it gets those.
 */
export const getsInfo = ({ rules, description }: MediaParty): boolean =>
  rules.dtmf === 'info' && description?.hasTelephoneEvents !== true

/** RFC 3551: the names of G.711. */
const decoded = ['PCMA', 'PCMU']

/**
 * Limits a party to codecs that can be recorded, in its own order. If it has none of them, the
 * relay transcodes.
 */
export function inRecordedCodecs(party: MediaParty): MediaParty {
  const { rules } = party
  const own = (rules.codecs ?? []).filter((name) => decoded.includes(name.toUpperCase()))
  return { ...party, rules: { ...rules, codecs: own.length > 0 ? own : decoded } }
}
