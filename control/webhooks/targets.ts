/**
 * Restricts the targets of webhooks. Creating an endpoint must not give access to internal networks, so
 * private and special addresses are rejected: as literals when the endpoint is written, and as DNS results
 * at every connection, because a name can change between check and use.
 */
import { BlockList, isIP, isIPv4, isIPv6, type LookupFunction } from 'node:net'
import type { LookupAddress } from 'node:dns'
import { withoutBrackets } from '../../engine/sip-server/message/index.ts'

/** IANA special-purpose registries (RFC 6890 and its updates), multicast included. */
const special = new BlockList()
for (const [network, length] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const)
  special.addSubnet(network, length, 'ipv4')

/** Only global unicast is public, except documentation ranges and ranges that embed an IPv4 address. */
const publicIpv6 = new BlockList()
publicIpv6.addSubnet('2000::', 3, 'ipv6')
for (const [network, length] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const)
  special.addSubnet(network, length, 'ipv6')

export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !special.check(address, 'ipv4')
  if (!isIPv6(address) || address.includes('%')) return false
  return publicIpv6.check(address, 'ipv6') && !special.check(address, 'ipv6')
}

/** Why an endpoint may not have this URL; undefined when it may. Names are checked when they are resolved. */
export function problemOfUrl(text: string, allowPrivate: boolean): string | undefined {
  if (!URL.canParse(text)) return 'must be a URL'
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must be an http or https URL'
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password'
  if (url.hash !== '') return 'must not have a fragment'
  const host = hostOf(url)
  const isInside = isIP(host) !== 0 ? !isPublicAddress(host) : isLocalName(host)
  if (isInside && !allowPrivate) return 'must not be a private or local address'
  return undefined
}

export const hostOf = (url: URL): string => withoutBrackets(url.hostname)

const isLocalName = (host: string): boolean =>
  /(?:^|\.)(?:localhost|local|internal|home\.arpa)\.?$/.test(host)

export type Resolve = (host: string) => Promise<readonly LookupAddress[]>

/** The `lookup` of a connection: returns only addresses that were checked. One private result rejects all. */
export function guardedLookup(resolve: Resolve, allowPrivate: boolean): LookupFunction {
  const judged = async (host: string): Promise<Found | Error> => {
    try {
      const [first, ...others] = await resolve(host)
      if (first === undefined) return new Error(`${host} has no address`)
      const found: Found = [first, ...others]
      const isAllowed = allowPrivate || found.every(({ address }) => isPublicAddress(address))
      return isAllowed ? found : new Error('the target is a private address')
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error))
    }
  }
  const answer = async (host: string, isAll: boolean, done: Done): Promise<void> => {
    const addresses = await judged(host)
    if (addresses instanceof Error) return done(addresses, '')
    if (isAll) return done(null, [...addresses])
    const [{ address, family }] = addresses
    return done(null, address, family)
  }
  return (host, options, done) => void answer(host, options.all === true, done)
}

type Found = readonly [LookupAddress, ...LookupAddress[]]
type Done = Parameters<LookupFunction>[2]
