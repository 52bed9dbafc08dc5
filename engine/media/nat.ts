/** Whether a party is behind NAT: its media is sent to where its packets come from. Pure. */
import { isHiddenFrom } from '../../schema/net/ip-address.ts'
import type { Description } from './description.ts'

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
