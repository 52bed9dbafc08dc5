/** Who the parties of legs are, and whether a relay stands between two. */
import { noMediaRules } from '../../schema/rules/media.ts'
import type { ActiveCalls } from '../call/active-calls.ts'
import { callUuidOf } from '../call/call-machine/leg.ts'
import type { Callee } from '../call/dialing/outgoing-invite.ts'
import type { SipRequest } from '../call/signalling.ts'
import type { Description } from './description.ts'
import type { MediaParty } from './call-media.ts'
import {
  type MediaDecision,
  mediaDecision,
  type RuleBooks,
  rulesOf,
  inRecordedCodecs,
} from './policy.ts'
import type { MediaPolicy, MediaRules } from '../../schema/contracts/field-values.ts'
import { isHiddenFrom } from '../../schema/net/ip-address.ts'

/** What is known of the party of a leg: plain values, kept for as long as the leg. */
export interface PartyFacts {
  /** Undefined: not looked up yet. */
  readonly rules: MediaRules | undefined
  readonly isOnWebSocket: boolean
  /** Where its SIP messages come from; undefined: from a proxy, or none has come yet. */
  readonly address: string | undefined
  readonly isBehindProxy: boolean
  /** Where its REGISTER came from, when its Contact names another, private address. */
  readonly boundBehindNat: string | undefined
}

export interface PartiesDeps {
  readonly books: RuleBooks
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
   * Who it is shows a moment later.
   *
   * @param isOtherNode it has proved to be a node of the installation: it speaks for a party of the call, and is none.
   */
  caller({ protocol, sourceAddress, headers }: Source, isOtherNode = false): PartyFacts {
    const isBehindProxy = headers['record-route'] !== undefined
    const rules = isOtherNode ? noMediaRules : undefined
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
      rules: rulesOf(callee, this.#deps.books),
      isOnWebSocket: phone?.isOnWebSocket === true,
      address: undefined,
      isBehindProxy: callee.kind === 'domain' || (phone?.routes.length ?? 0) > 0,
      boundBehindNat: phone?.natAddress,
    }
  }

  /** With the rules of its party. */
  withRules(legId: string, facts: PartyFacts): PartyFacts {
    if (facts.rules !== undefined) return facts
    const { origin } = this.#deps.calls.call(callUuidOf(legId)) ?? {}
    return { ...facts, rules: origin ? rulesOf(origin, this.#deps.books) : noMediaRules }
  }

  /** In a call that may be recorded: with the codecs of which a recording can be made. */
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
  const { rules = noMediaRules, isOnWebSocket } = facts
  return { rules, isOnWebSocket, natAddress: natAddressOf(facts, description), description }
}

/** Its messages come from there, unless they come through a proxy. */
export const withPeerAddress = (facts: PartyFacts, peer: string): PartyFacts =>
  facts.address === undefined && !facts.isBehindProxy && peer !== ''
    ? { ...facts, address: hostOf(peer) }
    : facts

const hostOf = (place: string): string =>
  place.slice(0, place.lastIndexOf(':')).replace(/^\[|\]$/g, '')

/** Saved by a process without relays. */
export const unknownParty: PartyFacts = {
  rules: noMediaRules,
  isOnWebSocket: false,
  address: undefined,
  isBehindProxy: true,
  boundBehindNat: undefined,
}

/** Whether a party is behind NAT: its media is sent to where its packets come from. Pure. */
export interface PartySource {
  /** Where its SIP messages come from; undefined: from a proxy, which says nothing about the party. */
  readonly address: string | undefined
  /** Where its REGISTER came from, when its Contact names another, private address. */
  readonly boundBehindNat: string | undefined
}

/** The address that its media comes from; undefined: it is the one of its description. */
export function natAddressOf(
  { address: source, boundBehindNat }: PartySource,
  described: Description | undefined,
): string | undefined {
  if (described === undefined) return boundBehindNat
  // ICE finds the way (RFC 8445).
  if (described.profile === 'webrtc') return undefined
  return source !== undefined && isHiddenFrom(described.address, source) ? source : undefined
}
