/**
 * Records as this machine sees them: its hosts file, and its DNS servers or those that were set.
 */
import { ADDRCONFIG } from 'node:dns'
import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { errorCode } from '../errors.ts'
import { type Dns, type DnsAnswer, maxTtlMs } from './dns.ts'

/**
 * `node:dns` does not tell the time to live of NAPTR and SRV records, nor that of the hosts file.
 */
const assumedTtlMs = 30_000

/** A name without an answer by then counts as not found. */
const patienceMs = 5_000

/**
 * @param servers addresses, with `:port` where it is not 53; none: the system's, and the hosts
 * file, which counts before them
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
): Promise<DnsAnswer<string>> {
  if (isIP(name) !== 0) return { records: [name], ttlMs: assumedTtlMs, isAnswer: true }
  const isLocal = !name.includes('.')
  if (isLocal) return fromSystem(name)
  if (hasOwnServers) {
    const found = await fromServers(resolver, name)
    const system = found.records.length > 0 ? found : await fromSystem(name)
    return system.records.length > 0 ? system : found
  }
  const [found, system] = await Promise.all([fromServers(resolver, name), fromSystem(name)])
  if (system.records.length === 0) return found
  // The hosts file has been asked, too: where it says something else, it is the one that was meant.
  const isSame = system.records.every((address) => found.records.includes(address))
  return isSame ? { ...system, ttlMs: found.ttlMs } : system
}

const fromSystem = (name: string): Promise<DnsAnswer<string>> =>
  timely(
    lookup(name, { all: true, hints: ADDRCONFIG }).then((found) =>
      found.map(({ address }) => address),
    ),
    assumedTtlMs,
  )

async function fromServers(resolver: Resolver, name: string): Promise<DnsAnswer<string>> {
  const [v4, v6] = await Promise.all([
    timely(resolver.resolve4(name, { ttl: true }), 0),
    timely(resolver.resolve6(name, { ttl: true }), 0),
  ])
  const records = [...v4.records, ...v6.records]
  return {
    records: records.map(({ address }) => address),
    ttlMs: Math.min(maxTtlMs, ...records.map(({ ttl }) => ttl * 1_000)),
    isAnswer: records.length > 0 || (v4.isAnswer && v6.isAnswer),
  }
}

/** There is no such name, or it has no such record: an answer, unlike an error or silence. */
const isNone = (error: unknown): boolean => {
  const code = errorCode(error)
  return code === 'ENOTFOUND' || code === 'ENODATA'
}

/** A record that is not found in time counts as missing. */
async function timely<T>(query: Promise<readonly T[]>, ttlMs: number): Promise<DnsAnswer<T>> {
  let timer: NodeJS.Timeout | undefined
  const none = (isAnswer: boolean): DnsAnswer<T> => ({ records: [], ttlMs, isAnswer })
  const tooLate = new Promise<DnsAnswer<T>>((resolve) => {
    timer = setTimeout(() => resolve(none(false)), patienceMs)
  })
  const answer = query.then(
    (records) => ({ records, ttlMs, isAnswer: true }),
    (error: unknown) => none(isNone(error)),
  )
  const found = await Promise.race([answer, tooLate])
  clearTimeout(timer)
  return found
}
