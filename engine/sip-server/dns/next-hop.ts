/** The addresses of a host name: RFC 3263 §4, NAPTR → SRV → A and AAAA. */
import { defaultPort, type HopQuestion, type HopTarget, isInward } from '../flow.ts'
import type { Protocol } from '../message/message.ts'

/** Addresses of one next hop that are tried. */
const maxTargets = 16

/** SRV records of one name that are looked at. */
const maxRecords = 16

/** RFC 3263 §4.1, RFC 7118 §5.3. */
const services: ReadonlyMap<string, Protocol> = new Map([
  ['SIP+D2U', 'udp'],
  ['SIP+D2T', 'tcp'],
  ['SIPS+D2T', 'tls'],
  ['SIP+D2W', 'ws'],
  ['SIPS+D2W', 'wss'],
])

/** Protocols with an SRV name, in our order of preference. */
const srvNames: ReadonlyMap<Protocol, string> = new Map([
  ['udp', '_sip._udp'],
  ['tcp', '_sip._tcp'],
  ['tls', '_sips._tcp'],
])

export class NextHopResolver {
  readonly #dns: CachedDns
  readonly #random: () => number
  readonly #resolved: (reference: string, targets: readonly HopTarget[]) => void
  readonly #mayReach: (host: string, target: HopTarget, peer?: string) => boolean

  /**
   * @param resolved called from the event loop, once for each question
   * @param mayReach false: the name does not lead there
   */
  constructor(
    dns: Dns,
    now: () => number,
    random: () => number,
    resolved: (reference: string, targets: readonly HopTarget[]) => void,
    mayReach: (host: string, target: HopTarget, peer?: string) => boolean = () => true,
  ) {
    this.#dns = new CachedDns(dns, now)
    this.#random = random
    this.#resolved = resolved
    this.#mayReach = mayReach
  }

  /** Queries under way. */
  get pending(): number {
    return this.#dns.pending
  }

  /** Answers later, through `resolved`: the preferred target first, none when there is none. */
  resolve(question: HopQuestion, reference: string): void {
    void this.#targetsOf(question)
      .catch(() => [])
      .then((targets) =>
        targets.filter(
          (target) =>
            this.#mayReach(question.host, target, question.peer) &&
            (question.peer === undefined || !isInward(target.address, question.peer)),
        ),
      )
      .then((targets) => this.#resolved(reference, targets.slice(0, maxTargets)))
  }

  async #targetsOf(question: HopQuestion): Promise<readonly HopTarget[]> {
    const { host, port } = question
    const protocol = question.protocol ?? defaultProtocol(question)
    const byAddress = (): Promise<readonly HopTarget[]> =>
      this.#addressesOf(host, protocol, port === 0 ? defaultPort(protocol) : port)
    // A name without a dot is one of this machine or network: no domain, so no records of a domain.
    if (port !== 0 || !host.includes('.')) return byAddress()
    // Asked for together: most hosts have neither of the former, and would be waited for three
    // times.
    const [records, addresses] = await Promise.all([this.#byRecords(question), byAddress()])
    return records ?? addresses
  }

  /** Undefined: the domain has no SRV record, so its own addresses count. */
  async #byRecords(question: HopQuestion): Promise<readonly HopTarget[] | undefined> {
    const { host, protocol } = question
    if (protocol !== undefined) return this.#bySrv([srvNameOf(protocol, host)])
    const srvs = transportsOf(question).map((each) => srvNameOf(each, host))
    const [naptr, targets] = await Promise.all([this.#dns.naptr(host), this.#bySrv(srvs)])
    const chosen = servicesOf(naptr, question)
    return chosen.length > 0 ? this.#bySrv(chosen) : targets
  }

  async #bySrv(names: readonly (SrvName | undefined)[]): Promise<readonly HopTarget[] | undefined> {
    const asked = names.filter((name) => name !== undefined)
    const found = await Promise.all(asked.map((each) => this.#targetsBySrv(each)))
    const existing = found.filter((targets) => targets !== undefined)
    return existing.length > 0 ? existing.flat() : undefined
  }

  async #targetsBySrv({
    name: srvName,
    protocol,
  }: SrvName): Promise<readonly HopTarget[] | undefined> {
    const known = await this.#dns.srv(srvName)
    if (known.length === 0) return undefined
    const records = srvOrder(known, this.#random).slice(0, maxRecords)
    const found = await Promise.all(
      records
        // RFC 2782: `.` says that the service is not offered.
        .filter(({ name }) => name !== '' && name !== '.')
        .map(({ name, port }) => this.#addressesOf(name, protocol, port)),
    )
    return found.flat()
  }

  async #addressesOf(host: string, protocol: Protocol, port: number): Promise<HopTarget[]> {
    const addresses = await this.#dns.addresses(host)
    return addresses.map((address) => ({ protocol, address, port }))
  }
}

interface SrvName {
  readonly name: string
  readonly protocol: Protocol
}

function srvNameOf(protocol: Protocol, host: string): SrvName | undefined {
  const prefix = srvNames.get(protocol)
  return prefix === undefined ? undefined : { name: `${prefix}.${host}`, protocol }
}

/** The transports that may be used, in our order of preference. */
const transportsOf = ({ supported, isSecure }: HopQuestion): readonly Protocol[] =>
  [...srvNames.keys()].filter(
    (protocol) => supported.includes(protocol) && (!isSecure || protocol === 'tls'),
  )

const defaultProtocol = (question: HopQuestion): Protocol => transportsOf(question)[0] ?? 'udp'

/** The SRV names that the domain wants tried, of transports that we have. */
function servicesOf(
  records: readonly NaptrRecord[],
  { supported, isSecure }: HopQuestion,
): readonly SrvName[] {
  return records
    .filter(({ flags }) => flags.toLowerCase() === 's')
    .toSorted((a, b) => a.order - b.order || a.preference - b.preference)
    .flatMap(({ service, replacement }) => {
      const protocol = services.get(service.toUpperCase())
      if (protocol === undefined || !supported.includes(protocol)) return []
      const isAllowed = !isSecure || protocol === 'tls' || protocol === 'wss'
      return isAllowed ? [{ name: replacement, protocol }] : []
    })
    .slice(0, 4)
}

/** RFC 3403. */
export interface NaptrRecord {
  readonly order: number
  readonly preference: number
  readonly flags: string
  readonly service: string
  readonly replacement: string
}

/** Records of one name; none: there are none, or no server has answered. */
export interface DnsAnswer<T> {
  readonly records: readonly T[]
  readonly ttlMs: number
  /** False: no server has answered, so that former records may still be true. */
  readonly isAnswer: boolean
}

/** A source of records. Never rejects; each answer comes within a bounded time. */
export interface Dns {
  naptr(name: string): Promise<DnsAnswer<NaptrRecord>>
  srv(name: string): Promise<DnsAnswer<SrvRecord>>
  /** IPv4 and IPv6, in the order of preference. */
  addresses(name: string): Promise<DnsAnswer<string>>
}

/** Short, so that a name that has just been created is not missing for long. */
const missingMs = 2_000

/** A record without a time to live would be asked for by every call. */
const minTtlMs = 1_000

/** A record is queried again after an hour, however long its time to live. */
export const maxTtlMs = 3_600_000

/** Of each kind of record; as many again that do not exist. */
const maxNames = 1_000

/** Queries that may be under way at once; beyond, a name counts as missing. */
const maxPending = 1_000

/** The age up to which records are used while no DNS server answers (RFC 8767 §4). */
const maxStaleMs = 6 * 3_600_000

const nothing: DnsAnswer<never> = { records: [], ttlMs: missingMs, isAnswer: false }

interface CachedRecords<T> {
  readonly records: readonly T[]
  readonly until: number
  /** When it was last known to be true. */
  readonly knownAt: number
}

/** The same answers, remembered. */
export class CachedDns {
  readonly #now: () => number
  readonly #naptr: Cache<NaptrRecord>
  readonly #srv: Cache<SrvRecord>
  readonly #addresses: Cache<string>

  constructor(dns: Dns, now: () => number) {
    this.#now = now
    this.#naptr = new Cache((name) => dns.naptr(name))
    this.#srv = new Cache((name) => dns.srv(name))
    this.#addresses = new Cache((name) => dns.addresses(name))
  }

  naptr(name: string): Promise<readonly NaptrRecord[]> {
    return this.#naptr.find(name, this.#now)
  }

  srv(name: string): Promise<readonly SrvRecord[]> {
    return this.#srv.find(name, this.#now)
  }

  addresses(name: string): Promise<readonly string[]> {
    return this.#addresses.find(name, this.#now)
  }

  /** Queries under way. */
  get pending(): number {
    return this.#naptr.pending + this.#srv.pending + this.#addresses.pending
  }
}

class Cache<T> {
  readonly #ask: (name: string) => Promise<DnsAnswer<T>>
  /** Least recently used first: strangers' names push out those in use last. */
  readonly #known = new Map<string, CachedRecords<T>>()
  /** Until when a name counts as missing. Apart, so that made-up names push out no others. */
  readonly #missing = new Map<string, number>()
  readonly #queries = new Map<string, Promise<readonly T[]>>()

  constructor(ask: (name: string) => Promise<DnsAnswer<T>>) {
    this.#ask = ask
  }

  get pending(): number {
    return this.#queries.size
  }

  /** One query for all who ask for the same name meanwhile. */
  async find(name: string, now: () => number): Promise<readonly T[]> {
    const key = name.toLowerCase()
    const cached = this.#known.get(key)
    if (cached !== undefined && cached.until > now()) {
      remember(this.#known, key, cached)
      return cached.records
    }
    if ((this.#missing.get(key) ?? 0) > now()) return nothing.records
    const asked = this.#queries.get(key)
    if (asked) return asked
    if (this.#queries.size >= maxPending) return isUsable(cached, now()) ? cached.records : []
    const answer = this.#query(key, now)
    this.#queries.set(key, answer)
    return answer
  }

  async #query(key: string, now: () => number): Promise<readonly T[]> {
    const { records, ttlMs, isAnswer } = await this.#ask(key).catch(() => nothing)
    this.#queries.delete(key)
    const before = this.#known.get(key)
    if (!isAnswer && isUsable(before, now())) {
      remember(this.#known, key, { ...before, until: now() + missingMs })
      return before.records
    }
    if (records.length === 0) {
      this.#known.delete(key)
      remember(this.#missing, key, now() + missingMs)
      return records
    }
    const lifetimeMs = Math.min(Math.max(ttlMs, minTtlMs), maxTtlMs)
    remember(this.#known, key, { records, until: now() + lifetimeMs, knownAt: now() })
    return records
  }
}

/** While no server answers, former records may still be true. */
const isUsable = <T>(
  cached: CachedRecords<T> | undefined,
  now: number,
): cached is CachedRecords<T> => cached !== undefined && now - cached.knownAt < maxStaleMs

/** As the last of the map, which loses its first where it grows too large. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key)
  map.set(key, value)
  if (map.size <= maxNames) return
  const [first] = map.keys()
  if (first !== undefined) map.delete(first)
}

/** The order in which SRV records are tried: RFC 2782, "Priority" and "Weight". */

export interface SrvRecord {
  readonly name: string
  readonly port: number
  readonly priority: number
  readonly weight: number
}

/** By priority; within one by chance, in proportion to the weights. `random` gives 0 ≤ x < 1. */
export function srvOrder(records: readonly SrvRecord[], random: () => number): SrvRecord[] {
  const priorities = [...new Set(records.map(({ priority }) => priority))].toSorted((a, b) => a - b)
  return priorities.flatMap((priority) =>
    byWeight(
      records.filter((record) => record.priority === priority),
      random,
    ),
  )
}

function byWeight(records: readonly SrvRecord[], random: () => number): SrvRecord[] {
  // Records of weight 0 come first, so that they have a very small chance among others.
  const left = records.toSorted((a, b) => a.weight - b.weight)
  const ordered: SrvRecord[] = []
  while (left.length > 0) {
    const total = left.reduce((sum, { weight }) => sum + weight, 0)
    const [chosen] = left.splice(indexAt(left, random() * total), 1)
    if (chosen) ordered.push(chosen)
  }
  return ordered
}

function indexAt(records: readonly SrvRecord[], point: number): number {
  let sum = 0
  const index = records.findIndex(({ weight }) => {
    sum += weight
    return sum >= point
  })
  return Math.max(0, index)
}
