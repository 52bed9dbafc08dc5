/**
 * One case with carriers: gateways played by SIPp, and a caller that stands for a PBX node (by its
 * port), so that its calls go out.
 */
import { onTestFinished } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { callWith, SippNode, type SippResult } from '../support/sipp.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientNodes } from '../support/waiting.ts'
import { paying, seedFor } from './call-case.ts'

type Body = Readonly<Record<string, unknown>>

interface TrunkOptions {
  /** Scenario of each gateway, in order of priority. */
  readonly gateways: readonly string[]
  /** What the carrier has beside its name and gateways. */
  readonly carrier?: Body
  /** What the route has beside its name and carrier. Default: every number. */
  readonly route?: Body
  /** Further sections of the seed file. */
  readonly seed?: Body | ((gatewayPorts: readonly number[]) => Body)
  /** The caller is a gateway of the carrier instead of a backend node, and this is added to it. */
  readonly inbound?: Body
  /** Beside `patientNodes`. */
  readonly environment?: Record<string, string>
}

export interface TrunkCase {
  readonly tollgate: TollgateProcess
  readonly gateways: readonly SippNode[]
  /** An outbound call, or several at the same moment; `number` is dialled. */
  dial(scenario: string, number: string, caller?: string, calls?: number): Promise<SippResult>
  /** `data` of an answer of the API. */
  get(path: string): Promise<unknown>
}

export async function startTrunks(options: TrunkOptions): Promise<TrunkCase> {
  const gateways: SippNode[] = []
  onTestFinished(async () => {
    for (const gateway of gateways) await gateway.stop()
  })
  for (const scenario of options.gateways) gateways.push(await SippNode.start(`${scenario}.xml`))
  const ports: Ports = {
    callers: [await freePort(), await freePort()],
    silent: [await freePort(), await freePort()],
  }
  const seed = seedOf(gateways, ports, options)
  const tollgate = await TollgateProcess.start(seed, { ...patientNodes, ...options.environment })
  onTestFinished(() => tollgate.stop())
  const token = await tollgate.createKey('--name', 'test', '--scopes', '*')
  const idle = [...ports.callers]
  return {
    ...{ tollgate, gateways },
    dial: async (scenario, number, caller = paying, calls = 1) => {
      const port = idle.pop()
      if (port === undefined) throw new Error('two callers call already')
      const words = { service: number, keys: { caller }, port, calls, rate: 1_000 }
      const result = await callWith(`${scenario}.xml`, tollgate.sipPort, words)
      idle.push(port)
      return result
    },
    get: async (path) => {
      const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
        headers: { authorization: `Bearer ${token}` },
      })
      const { data } = (await answer.json()) as { data: unknown }
      return data
    },
  }
}

interface Ports {
  /** The source of the calls: the backend nodes, or the carrier's gateways. */
  readonly callers: readonly number[]
  /** An unused address. */
  readonly silent: readonly number[]
}

function seedOf(
  gateways: readonly SippNode[],
  { callers, silent }: Ports,
  { carrier, route, seed, inbound }: TrunkOptions,
): object {
  const from = inbound === undefined ? callers : silent
  const nodes = silent.map((internal_port, index) => ({
    ...{ host: '127.0.0.1', internal_port, external_port: from[index] },
  }))
  const sources = callers.map((port) => ({ host: '127.0.0.1', port }))
  return {
    ...seedFor([]),
    dispatcher: [{ endpoint_name: 'pbx', set_id: 1, algorithm: 8, nodes }],
    carriers: [
      {
        name: 'north',
        direction: 'out',
        gateways: gateways.map(({ port }, index) => ({
          host: '127.0.0.1',
          port,
          priority: 10 + index,
        })),
        ...carrier,
        ...(inbound === undefined ? {} : { direction: 'in', gateways: sources, ...inbound }),
      },
    ],
    outbound_routes: [{ name: 'out', prefix: '', carrier: 'north', ...route }],
    ...(typeof seed === 'function' ? seed(gateways.map(({ port }) => port)) : seed),
  }
}
