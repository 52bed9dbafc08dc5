/** Records as this machine sees them: its hosts file, and its DNS servers or those that were set. */
import { ADDRCONFIG } from 'node:dns'
import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Dns, Found } from './records.ts'

/** `node:dns` does not tell the time to live of NAPTR and SRV records, nor that of the hosts file. */
const assumedTtlMs = 30_000

/** A name that nobody knows within this is not found. */
const patienceMs = 5_000

/**
 * @param servers addresses, with `:port` where it is not 53; none: the system's, and the hosts file,
 * which counts before them
 */
export function systemDns(servers: readonly string[]): Dns {
  const resolver = new Resolver({ timeout: 1_000, tries: 2 })
  if (servers.length > 0) resolver.setServers([...servers])
  return {
    naptr: (name) => timely(resolver.resolveNaptr(name), assumedTtlMs),
    srv: (name) => timely(resolver.resolveSrv(name), assumedTtlMs),
    addresses: (name) => addressesOf(resolver, name, servers.length > 0),
  }
}

async function addressesOf(
  resolver: Resolver,
  name: string,
  hasOwnServers: boolean,
): Promise<Found<string>> {
  if (isIP(name) !== 0) return { records: [name], ttlMs: assumedTtlMs }
  const fromSystem = (): Promise<Found<string>> =>
    timely(
      lookup(name, { all: true, hints: ADDRCONFIG }).then((found) =>
        found.map(({ address }) => address),
      ),
      assumedTtlMs,
    )
  const isLocal = !name.includes('.')
  if (isLocal) return fromSystem()
  if (hasOwnServers) {
    const found = await fromServers(resolver, name)
    return found.records.length > 0 ? found : fromSystem()
  }
  const [found, system] = await Promise.all([fromServers(resolver, name), fromSystem()])
  // The hosts file has been asked, too: where it says something else, it is the one that was meant.
  const isSame = system.records.every((address) => found.records.includes(address))
  if (system.records.length === 0) return found
  return isSame ? { records: system.records, ttlMs: found.ttlMs } : system
}

async function fromServers(resolver: Resolver, name: string): Promise<Found<string>> {
  const [v4, v6] = await Promise.all([
    timely(resolver.resolve4(name, { ttl: true }), 0),
    timely(resolver.resolve6(name, { ttl: true }), 0),
  ])
  const records = [...v4.records, ...v6.records]
  return {
    records: records.map(({ address }) => address),
    ttlMs: Math.min(assumedTtlMs * 120, ...records.map(({ ttl }) => ttl * 1_000)),
  }
}

/** What cannot be found in time is as good as missing. */
async function timely<T>(query: Promise<readonly T[]>, ttlMs: number): Promise<Found<T>> {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<readonly T[]>((resolve) => {
    timer = setTimeout(() => resolve([]), patienceMs)
  })
  const records = await Promise.race([query.catch(() => []), tooLate])
  clearTimeout(timer)
  return { records, ttlMs }
}
