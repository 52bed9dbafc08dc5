/** Who the parties of legs are, and whether a relay stands between two. */
import { noMediaRules } from '../../schema/rules/media.ts'
import type { ActiveCalls } from '../call/active-calls.ts'
import { callUuidOf } from '../call/call-machine/leg.ts'
import { type Callee, familyOf } from '../call/dialing/outgoing-invite.ts'
import type { SipRequest } from '../call/signalling.ts'
import type { Family } from '../call/sdp.ts'
import type { Description } from './description.ts'
import type { MediaParty } from './call-media.ts'
import {
  type MediaDecision,
  mediaDecision,
  type RuleSources,
  rulesOf,
  inRecordedCodecs,
} from './policy.ts'
import type { MediaPolicy, MediaRules } from '../../schema/contracts/field-values.ts'
import { isHiddenFrom } from '../../schema/net/ip-address.ts'

/** The facts about the party of a leg: plain values. */
export interface PartyFacts {
  /** Undefined: not looked up yet. */
  readonly rules: MediaRules | undefined
  readonly isOnWebSocket: boolean
  /**
   * The source address of its SIP messages. Undefined: they come from a proxy, or none has come
   * yet.
   */
  readonly address: string | undefined
  readonly isBehindProxy: boolean
  /** Where its REGISTER came from, when its Contact names another, private address. */
  readonly boundBehindNat: string | undefined
  /**
   * The IP version by which it is called. Absent: a name leads to it, or others pass its calls on.
   */
  readonly family?: Family | undefined
}

export interface PartiesDeps {
  readonly rules: RuleSources
  readonly calls: Pick<ActiveCalls, 'call'>
  /** The setting `MEDIA_POLICY`. */
  readonly policy: MediaPolicy
  readonly isRecorded: (callUuids: readonly string[]) => boolean
  readonly mustBeRecorded: (callUuids: readonly string[]) => boolean
}

type Source = Pick<SipRequest, 'protocol' | 'sourceAddress' | 'headers'>

export class Parties {
  readonly #deps: PartiesDeps

  constructor(deps: PartiesDeps) {
    this.#deps = deps
  }

  /**
   * The rules of a caller are looked up later, when it is identified.
   *
   * @param isOtherInstance it has proved to be of the installation, and so is not itself a party
   * of the call.
   */
  caller({ protocol, sourceAddress, headers }: Source, isOtherInstance = false): PartyFacts {
    const isBehindProxy = headers['record-route'] !== undefined
    const rules = isOtherInstance ? noMediaRules : undefined
    return {
      rules,
      isOnWebSocket: protocol.startsWith('ws'),
      isBehindProxy,
      address: isBehindProxy ? undefined : sourceAddress,
      boundBehindNat: undefined,
    }
  }

  callee(callee: Callee): PartyFacts {
    const phone = callee.kind === 'phone' ? callee : undefined
    return {
      rules: rulesOf(callee, this.#deps.rules),
      isOnWebSocket: phone?.isOnWebSocket === true,
      address: undefined,
      isBehindProxy: callee.kind === 'domain' || (phone?.routes.length ?? 0) > 0,
      boundBehindNat: phone?.natAddress,
      family: familyOf(callee),
    }
  }

  /** Adds the rules of the party. */
  withRules(legId: string, facts: PartyFacts): PartyFacts {
    if (facts.rules !== undefined) return facts
    const { origin } = this.#deps.calls.call(callUuidOf(legId)) ?? {}
    return { ...facts, rules: origin ? rulesOf(origin, this.#deps.rules) : noMediaRules }
  }

  /** Limits the codecs of a call that may be recorded to those that can be recorded. */
  recordable(party: MediaParty, callUuid: string): MediaParty {
    return this.#deps.isRecorded([callUuid]) ? inRecordedCodecs(party) : party
  }

  decide(offerer: MediaParty, answerer: MediaParty, callUuids: readonly string[]): MediaDecision {
    const { policy } = this.#deps
    const isRecorded = this.#deps.isRecorded(callUuids)
    const mustBeRecorded = isRecorded && this.#deps.mustBeRecorded(callUuids)
    return mediaDecision(offerer, answerer, { policy, isRecorded, mustBeRecorded })
  }
}

/** The party with its last description. */
export function partyWith(facts: PartyFacts, description: Description | undefined): MediaParty {
  const { rules = noMediaRules, isOnWebSocket, family } = facts
  const natAddress = natAddressOf(facts, description)
  const families = description?.families ?? (family === undefined ? [] : [family])
  return { rules, isOnWebSocket, natAddress, families, description }
}

/** Notes the source address of its messages, unless they come through a proxy. */
export const withPeerAddress = (facts: PartyFacts, peer: string): PartyFacts =>
  facts.address === undefined && !facts.isBehindProxy && peer !== ''
    ? { ...facts, address: hostOf(peer) }
    : facts

/** The host of `host:port`, without brackets. */
export const hostOf = (address: string): string =>
  address.slice(0, address.lastIndexOf(':')).replace(/^\[|\]$/g, '')

/** Facts of a leg that a process without relays has saved. */
export const unknownParty: PartyFacts = {
  rules: noMediaRules,
  isOnWebSocket: false,
  address: undefined,
  isBehindProxy: true,
  boundBehindNat: undefined,
}

/** Whether a party is behind NAT: its media is sent to where its packets come from. Pure. */
export interface PartySource {
  /** The source address of its SIP messages. Undefined: they come from a proxy. */
  readonly address: string | undefined
  /** Where its REGISTER came from, when its Contact names another, private address. */
  readonly boundBehindNat: string | undefined
}

/** The source address of its media. Undefined: the address of its SDP. */
export function natAddressOf(
  { address: source, boundBehindNat }: PartySource,
  described: Description | undefined,
): string | undefined {
  if (described === undefined) return boundBehindNat
  // ICE finds the way (RFC 8445).
  if (described.profile === 'webrtc') return undefined
  return source !== undefined && isHiddenFrom(described.address, source) ? source : undefined
}
