/** Whether a party is behind NAT: its media is sent to where its packets come from. Pure. */
import { networkCheck } from '../../schema/net/ip-address.ts'
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
  const isHere = source === undefined || described.address === source
  return isHere || !isHidden(described.address, source) ? undefined : source
}

/** Addresses of one machine lead to each other. */
const isHidden = (address: string, source: string): boolean =>
  isPrivate(address) && !(isLoopback(address) && isLoopback(source))

const isLoopback = networkCheck(['127.0.0.0/8', '::1'])

/** RFC 1918, RFC 6598, RFC 3927, RFC 4193, RFC 4291. */
const isPrivate = networkCheck([
  ...['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '169.254.0.0/16'],
  ...['127.0.0.0/8', '::1', 'fc00::/7', 'fe80::/10'],
])
