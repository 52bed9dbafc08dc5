/** Keeps destinations of tenants out of the platform, at each resolution of their names. */
import { isIP } from 'node:net'
import { plainHost } from '../../schema/sip/index.ts'
import { sipTarget } from '../../schema/net/sip-target.ts'
import { renderSpyUri } from '../../schema/rules/media.ts'
import type { ChangedRouting } from '../../schema/contracts/changed-rows.ts'
import type { RoutingRecords } from './routing-records.ts'

interface Destination {
  readonly host: string
  /** 0: records or the transport say which one. */
  readonly port: number
  readonly isByTenant?: boolean | undefined
}

/** The destinations of a dispatcher set. */
interface SetDestinations {
  readonly nodes: readonly Destination[]
  readonly voicemailUri: string | null
  readonly spyUri: string | null
  readonly isByTenant?: boolean | undefined
}

interface TenantNamesDeps {
  /** A check whether an address is inside the platform, as the interfaces are now. */
  readonly innerCheck: () => (address: string) => boolean
  /** Milliseconds by the steady clock. */
  readonly now: () => number
}

/** Interfaces are read again after this time. */
const CHECK_MS = 10_000

/** Replaced in a supervisor's URI where only its host is asked for. */
const anySpy = { call_uuid: 'x', mode: 'listen', side: 'both', node: 'node.invalid' } as const

export class TenantNames {
  readonly #deps: TenantNamesDeps
  #isInner: (address: string) => boolean = () => false
  #checkedAt = -Infinity
  /** Destinations by their owner: `set`, `carrier 5`, `agent 7`. */
  readonly #destinations = new Map<string, readonly Destination[]>()
  /** How many destinations that tenants have written have this name. */
  readonly #names = new Map<string, number>()
  /** The same by `host:port` of those that the platform has written. */
  readonly #platforms = new Map<string, number>()

  constructor(deps: TenantNamesDeps) {
    this.#deps = deps
  }

  /**
   * The sets without what this machine may not call for a tenant; names wait for their resolution.
   */
  sets<Row extends SetDestinations>(records: readonly Row[]): readonly Row[] {
    const all = records.flatMap(({ nodes, voicemailUri, spyUri, isByTenant }) => [
      ...nodes,
      ...[voicemailUri, spyUri].flatMap((uri) => destinationOf(uri, isByTenant)),
    ])
    this.#put('set', all)
    this.#checkedAt = -Infinity
    return records.map((set) => {
      const isKept = (uri: string | null): boolean =>
        destinationOf(uri, set.isByTenant).every((each) => !this.#isLiteralInner(each))
      return {
        ...set,
        nodes: set.nodes.filter((node) => !this.#isLiteralInner(node)),
        voicemailUri: isKept(set.voicemailUri) ? set.voicemailUri : null,
        spyUri: isKept(set.spyUri) ? set.spyUri : null,
      }
    })
  }

  /** The same of carriers and agents: of all, or of those that have changed. */
  routing(records: RoutingRecords, changed?: ChangedRouting): RoutingRecords {
    const { carriers, agents } = records
    for (const key of changed === undefined ? [...this.#destinations.keys()] : keysOf(changed))
      if (key !== 'set') this.#put(key, [])
    for (const { carrierId, gateways } of carriers) this.#put(`carrier ${carrierId}`, gateways)
    for (const { agentId, uri, isByTenant } of agents)
      this.#put(`agent ${agentId}`, destinationOf(uri, isByTenant))
    this.#checkedAt = -Infinity
    return {
      ...records,
      carriers: carriers.map((carrier) => ({
        ...carrier,
        gateways: carrier.gateways.filter((gateway) => !this.#isLiteralInner(gateway)),
      })),
      agents: agents.filter(({ uri, isByTenant }) =>
        destinationOf(uri, isByTenant).every((each) => !this.#isLiteralInner(each)),
      ),
    }
  }

  /** Whether requests for a name may go to an address that it was resolved to. */
  mayReach(name: string, { address, port }: { readonly address: string; readonly port: number }) {
    const host = plainHost(name)
    if (!this.#names.has(host) || !this.#inner()(address)) return true
    return this.#platforms.has(`${host}:${port}`) || this.#platforms.has(`${host}:0`)
  }

  /** Whether an address is inside the platform, where others do not reach it. */
  readonly isInner = (address: string): boolean => this.#inner()(address)

  #put(key: string, destinations: readonly Destination[]): void {
    for (const each of this.#destinations.get(key) ?? []) this.#count(each, -1)
    for (const each of destinations) this.#count(each, 1)
    if (destinations.length === 0) this.#destinations.delete(key)
    else this.#destinations.set(key, destinations)
  }

  #count({ host, port, isByTenant }: Destination, by: 1 | -1): void {
    if (isIP(host) !== 0) return
    const [counts, key] =
      isByTenant === true ? [this.#names, host] : [this.#platforms, `${host}:${port}`]
    const count = (counts.get(key) ?? 0) + by
    if (count === 0) counts.delete(key)
    else counts.set(key, count)
  }

  #isLiteralInner({ host, isByTenant }: Destination): boolean {
    return isByTenant === true && isIP(host) !== 0 && this.#inner()(host)
  }

  #inner(): (address: string) => boolean {
    const now = this.#deps.now()
    if (now < this.#checkedAt + CHECK_MS) return this.#isInner
    this.#checkedAt = now
    this.#isInner = this.#deps.innerCheck()
    return this.#isInner
  }
}

const keysOf = ({ of, ids }: ChangedRouting): readonly string[] => ids.map((id) => `${of} ${id}`)

function destinationOf(uri: string | null, isByTenant: boolean | undefined): Destination[] {
  const target = uri === null ? undefined : sipTarget(renderSpyUri(uri, anySpy))
  return target === undefined ? [] : [{ ...target, isByTenant }]
}
