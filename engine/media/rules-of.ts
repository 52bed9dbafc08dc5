/** What is known of the media of a leg before it has described itself. */
import type { MediaRules } from '../../schema/contracts/field-values.ts'
import { noMediaRules } from '../../schema/rules/media.ts'
import type { Admission } from '../call/call-machine/protocol.ts'
import type { Callee } from '../call/dialing/outgoing-invite.ts'

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
