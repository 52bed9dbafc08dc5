/** The addresses of a host name: RFC 3263 §4, NAPTR → SRV → A and AAAA. */
import { defaultPort, type HopQuestion, type HopTarget, isInward } from '../flow.ts'
import type { Protocol } from '../../../schema/sip/message.ts'
import type { NaptrRecord, Dns, SrvRecord } from './dns.ts'
import { CachedDns } from './cached-dns.ts'

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

/** Sorts by priority; within one by chance, weighted (RFC 2782). `random` gives 0 ≤ x < 1. */
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
