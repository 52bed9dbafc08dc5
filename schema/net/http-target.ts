/**
 * Targets of HTTP requests that the process sends for somebody: which URLs may be named, and which
 * addresses are connected to.
 */
import type { LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { isNoHost, withoutBrackets } from '../sip/index.ts'
import { isPublicAddress } from './ip-address.ts'

/**
 * Why an endpoint may not have this URL; undefined when it may. Names are checked when they are
 * resolved.
 */
export function problemOfUrl(text: string, allowPrivate: boolean): string | undefined {
  if (!URL.canParse(text)) return 'must be a URL'
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must be an http or https URL'
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password'
  if (url.hash !== '') return 'must not have a fragment'
  const host = hostOf(url)
  if (isNoHost(host)) return 'must not be a multicast, broadcast or unspecified address'
  const isInside = isIP(host) !== 0 ? !isPublicAddress(host) : isLocalName(host)
  if (isInside && !allowPrivate) return 'must not be a private or local address'
  return undefined
}

/**
 * Why a request that decides calls may not go to the port of this URL; undefined when it may: 80,
 * 443, and those from 1024 on but for SIP, whose servers may know this process by its address.
 */
export function unusablePort(text: string): string | undefined {
  const { port } = new URL(text)
  const isUsable = ['', '80', '443'].includes(port) || Number(port) >= 1_024
  return isUsable && !sipPorts.has(port) ? undefined : `must not name the port ${port}`
}

const sipPorts: ReadonlySet<string> = new Set(['5060', '5061'])

export const hostOf = (url: URL): string => withoutBrackets(url.hostname)

const isLocalName = (host: string): boolean =>
  /(?:^|\.)(?:localhost|local|internal|home\.arpa)\.?$/.test(host)

export type Resolve = (host: string) => Promise<readonly LookupAddress[]>

export interface TargetRules {
  readonly resolve: Resolve
  /** Allows targets in private networks. */
  readonly allowPrivate: boolean
  /** Whether an address is in the networks of this installation; absent: none is known to be. */
  readonly isOwn?: ((address: string) => boolean) | undefined
}

/** Whether an address may be connected to. */
export const isTargetAllowed = (
  address: string,
  { allowPrivate, isOwn = () => false }: Omit<TargetRules, 'resolve'>,
): boolean => !isNoHost(address) && (allowPrivate || (isPublicAddress(address) && !isOwn(address)))

/**
 * Restricts the targets of webhooks. Creating an endpoint must not give access to internal
 * networks, so private and special addresses are rejected: as literals when the endpoint is
 * written, and as DNS results at every connection, because a name can change between check and use.
 * The `lookup` of a connection: returns only addresses that were checked. One private result
 * rejects all.
 */
export function guardedLookup(rules: TargetRules): LookupFunction {
  const judged = async (host: string): Promise<Addresses | Error> => {
    try {
      const [first, ...others] = await rules.resolve(host)
      if (first === undefined) return new Error(`${host} has no address`)
      const found: Addresses = [first, ...others]
      if (found.some(({ address }) => isNoHost(address)))
        return new Error('the target is not a single host')
      return found.every(({ address }) => isTargetAllowed(address, rules))
        ? found
        : new Error('the target is a private address')
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error))
    }
  }
  const answer = async (host: string, isAll: boolean, done: LookupCallback): Promise<void> => {
    const addresses = await judged(host)
    if (addresses instanceof Error) return done(addresses, '')
    if (isAll) return done(null, [...addresses])
    const [{ address, family }] = addresses
    return done(null, address, family)
  }
  return (host, options, done) => void answer(host, options.all === true, done)
}

type Addresses = readonly [LookupAddress, ...LookupAddress[]]
type LookupCallback = Parameters<LookupFunction>[2]
