/**
 * Determines the client's address behind proxies. Forwarding headers are trusted only as far as trusted
 * proxies wrote them: the walk starts at the peer and ends at the first address that is not a trusted
 * proxy. Addresses further left are unverified.
 */
import { isIP } from 'node:net'
import type { Context } from 'hono'
import { networkCheck } from '../../schema/net/ip-address.ts'
import { canonicalAddress } from '../../schema/net/source-address.ts'
import { type ControlEnv, peerAddress, requestHeader } from '../http/control-env.ts'

type AddressOf = (c: Context<ControlEnv>) => string

/** More consecutive proxies than any installation has. */
const MAX_HOPS = 16

/** `trustedProxies`: CIDRs. Without any, the peer is the client. */
export function clientAddress(trustedProxies: readonly string[]): AddressOf {
  const peer: AddressOf = (c) => canonicalAddress(peerAddress(c))
  if (trustedProxies.length === 0) return peer
  const isTrusted = networkCheck(trustedProxies)
  return (c) => {
    const address = peer(c)
    if (!isTrusted(address)) return address
    const walk = (header: string | undefined, read: (element: string) => string | undefined) =>
      header === undefined ? undefined : walkBack(header, address, read, isTrusted)
    const listed = walk(requestHeader(c, 'x-forwarded-for'), withoutPort)
    const forwarded = walk(requestHeader(c, 'forwarded'), forOf)
    // A proxy writes one of them and may forward the other from its client.
    if (listed !== undefined && forwarded !== undefined && listed !== forwarded) return address
    return listed ?? forwarded ?? address
  }
}

/** Returns the rightmost untrusted address, or the last known one where the list ends or is unreadable. */
function walkBack(
  header: string,
  peer: string,
  read: (element: string) => string | undefined,
  isTrusted: (address: string) => boolean,
): string {
  let known = peer
  let end = header.length
  for (let hops = 0; hops < MAX_HOPS && end > 0; hops += 1) {
    const comma = header.lastIndexOf(',', end - 1)
    const address = read(header.slice(comma + 1, end).trim())
    if (address === undefined) return known
    known = canonicalAddress(address)
    if (!isTrusted(known)) return known
    end = comma
  }
  return known
}

/**
 * Parses `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1` or `[2001:db8::1]:4711`; undefined when not an
 * address.
 */
function withoutPort(text: string): string | undefined {
  const bracket = /^\[([^\]]*)\](?::\d+)?$/.exec(text)
  const port = bracket === null ? /^([\d.]+):\d+$/.exec(text) : null
  const address = bracket?.[1] ?? port?.[1] ?? text
  return isIP(address) === 0 ? undefined : address
}

/**
 * RFC 7239 §4: `for=192.0.2.60;proto=http`, `For="[2001:db8::1]:4711"`. Obfuscated identifiers are not
 * addresses.
 */
function forOf(element: string): string | undefined {
  const pair = element.split(';').find((each) => /^\s*for=/i.test(each))
  const value = pair?.slice(pair.indexOf('=') + 1).trim() ?? ''
  const isQuoted = value.length > 1 && value.startsWith('"') && value.endsWith('"')
  return withoutPort(isQuoted ? value.slice(1, -1) : value)
}
