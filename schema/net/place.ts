/** Places on the network: a host name, an address or a network, with ports. */
import { agree, parseAddress, type Network } from './ip-address.ts'

export interface Place {
  /** Address or host name. */
  readonly host: string
  /** Prefix length of the network around an address. */
  readonly netmask: number
  readonly ports: 'any' | readonly number[]
}

/** Parsed once, for comparing many places. */
export type Location = Network | { readonly name: string }

export function locationOf({ host, netmask }: Omit<Place, 'ports'>): Location {
  const address = parseAddress(host)
  if (address === undefined) return { name: host.toLowerCase() }
  return { address, prefixLength: Math.min(netmask, address.family === 4 ? 32 : 128) }
}

/** Whether two places have an address in common, as far as can be known: names are compared as names. */
export function overlap(one: Location, other: Location): boolean {
  if ('name' in one || 'name' in other)
    return 'name' in one && 'name' in other && one.name === other.name
  return agree(one.address, other.address, Math.min(one.prefixLength, other.prefixLength))
}

/** Whether the same packet could come from either of two places that overlap. */
export function isSameSource(
  { ports: own }: Pick<Place, 'ports'>,
  { ports: its }: Pick<Place, 'ports'>,
): boolean {
  return own === 'any' || its === 'any' || own.some((port) => its.includes(port))
}
