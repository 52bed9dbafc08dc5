/**
 * Cases with carriers: gateways played by SIPp, and a caller that stands for a PBX node (by its
 * port), so that its calls go out. They share one program; each has numbers, a customer, carriers
 * and routes of its own.
 */
import { afterAll, beforeAll } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { callWith, SippNode, type SippResult } from '../support/sipp.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientInstances } from '../support/waiting.ts'
import { ofTag, seedFor, taggedCalls, type Judged, type Talking } from './call-case.ts'

type Body = Readonly<Record<string, unknown>>

interface TrunkOptions {
  /** Scenario of each gateway, in order of priority. */
  readonly gateways: readonly string[]
  /** The dialled number, if not a number like those of the others. */
  readonly number?: string
  /** The fields that the carrier has beside its name and gateways. */
  readonly carrier?: Body
  /** The fields that the route has beside its name and carrier. Default: its number. */
  readonly route?: Body
  /** Further elements of the seed file; carriers and routes are in place of the usual ones. */
  readonly seed?: (own: Own) => Readonly<Record<string, readonly object[]>>
  /** The caller is no backend node: it calls from ports of its own. */
  readonly isOutside?: boolean
}

/** The things that a case has of its own. */
interface Own {
  /** The name of its carrier, its route and its customer. */
  readonly name: string
  /** The dialled number. */
  readonly number: string
  /** The number of its customer. */
  readonly caller: string
  /** Ports of its gateways. */
  readonly ports: readonly number[]
  /** Ports of its calls, if these do not come from a backend node. */
  readonly outside: readonly number[]
}

interface Dialled {
  readonly number?: string
  readonly caller?: string
}

export interface TrunkCase extends Own, Judged, Talking {
  readonly tollgate: TollgateProcess
  readonly gateways: readonly SippNode[]
  /** An outbound call. */
  dial(scenario: string, dialled?: Dialled): Promise<SippResult>
  /** Its carrier as the API shows it. */
  shownCarrier(): Promise<unknown>
  /** The wallet of its customer. */
  wallet(): ReturnType<TollgateProcess['wallet']>
}

interface Shared {
  readonly tollgate: TollgateProcess
  readonly token: string
  readonly cases: readonly { readonly own: Own; readonly gateways: readonly SippNode[] }[]
  /** Ports of the backend nodes that place no call now; the one that was used last comes last. */
  readonly callers: number[]
}

/** As `shareProgram`. */
export function shareTrunks<Name extends string>(
  all: Readonly<Record<Name, TrunkOptions>>,
): (name: Name) => TrunkCase {
  const names = Object.keys(all)
  const options = Object.values<TrunkOptions>(all)
  const nodes: SippNode[] = []
  let shared: Shared | undefined
  beforeAll(async () => {
    const cases: Shared['cases'][number][] = []
    for (const [index, { gateways, number, isOutside = false }] of options.entries()) {
      const started: SippNode[] = []
      for (const scenario of gateways) started.push(await SippNode.start(`${scenario}.xml`))
      nodes.push(...started)
      const own = {
        name: `case-${index}`,
        number: number ?? String(18005550000 + index * 10),
        caller: String(15550001000 + index),
        ports: started.map(({ port }) => port),
        outside: isOutside ? await freePorts(2) : [],
      }
      cases.push({ own, gateways: started })
    }
    const callers = await freePorts(4)
    const seed = seedOf(
      cases.map(({ own }, index) => [own, options[index] ?? { gateways: [] }]),
      { callers, silent: await freePorts(callers.length) },
    )
    const tollgate = await TollgateProcess.start(seed, patientInstances)
    const token = await tollgate.createKey('--name', 'test', '--scopes', '*')
    shared = { tollgate, token, cases, callers: [...callers] }
  })
  // Gateways end last: the program may yet hang up.
  afterAll(async () => {
    await shared?.tollgate.stop()
    for (const node of nodes) await node.stop()
  })
  return (name) => caseOf(shared, names.indexOf(name))
}

async function freePorts(count: number): Promise<readonly number[]> {
  const ports: number[] = []
  while (ports.length < count) ports.push(await freePort())
  return ports
}

function caseOf(shared: Shared | undefined, index: number): TrunkCase {
  const found = shared?.cases[index]
  if (shared === undefined || found === undefined) throw new Error('the program has not started')
  const { own, gateways } = found
  const { tollgate, token, callers } = shared
  const idle = own.outside.length > 0 ? [...own.outside] : callers
  return {
    ...own,
    tollgate,
    gateways,
    dial: async (scenario, { number = own.number, caller = own.caller } = {}) => {
      const port = idle.shift()
      if (port === undefined) throw new Error('all callers call already')
      const tagged = { service: number, keys: { caller }, port, ...taggedCalls(own.name) }
      const result = await callWith(`${scenario}.xml`, tollgate.sipPort, tagged)
      idle.push(port)
      return result
    },
    shownCarrier: async () => {
      const [carrier] = tollgate.query<{ id: number }>(
        'SELECT id FROM carrier WHERE name = ?',
        own.name,
      )
      const path = `/api/v1/routing/carriers/${carrier?.id}`
      const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}${path}`, {
        headers: { authorization: `Bearer ${token}` },
      })
      const { data } = (await answer.json()) as { data: unknown }
      return data
    },
    ...ofTag(tollgate, own.name),
    wallet: () => tollgate.wallet(own.name),
  }
}

interface Nodes {
  /** The source of the calls. */
  readonly callers: readonly number[]
  /** Unused addresses. */
  readonly silent: readonly number[]
}

function seedOf(cases: readonly (readonly [Own, TrunkOptions])[], nodes: Nodes): object {
  const usual = seedFor([])
  const seed: Record<string, readonly unknown[]> = {
    ...usual,
    dispatcher: [
      {
        endpoint_name: 'pbx',
        set_id: 1,
        algorithm: 8,
        nodes: nodes.silent.map((internal_port, index) => ({
          host: '127.0.0.1',
          internal_port,
          external_port: nodes.callers[index],
        })),
      },
    ],
  }
  const customers = cases.map(([{ name, caller }]) => ({
    name,
    rate_plan: 'retail',
    numbers: [caller],
    balance: '10.00',
  }))
  for (const sections of [{ customers }, ...cases.map(sectionsOf)])
    for (const [section, elements] of Object.entries(sections))
      seed[section] = [...(seed[section] ?? []), ...elements]
  return seed
}

const sectionsOf = ([own, { carrier, route, seed }]: readonly [Own, TrunkOptions]): Readonly<
  Record<string, readonly object[]>
> => ({
  carriers: [
    {
      name: own.name,
      direction: 'out',
      gateways: own.ports.map((port, index) => ({ host: '127.0.0.1', port, priority: 10 + index })),
      ...carrier,
    },
  ],
  outbound_routes: [{ name: own.name, prefix: own.number, carrier: own.name, ...route }],
  ...seed?.(own),
})
