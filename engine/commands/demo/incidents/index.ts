/** `tollgate demo --incidents`: a demo in which eleven things are wrong, for an agent to find. */
import { newKeyBody } from '../../../../control/auth/app-key.ts'
import { consoleGrantor, issueKey } from '../../../../control/auth/issue-key.ts'
import { KeyStore } from '../../../../control/auth/key-store.ts'
import type { Log } from '../../../../schema/contracts/log.ts'
import type { Store } from '../../../../schema/storage/store.ts'
import type { CommandContext } from '../../command.ts'
import { seedFile } from '../../seed.ts'
import { runPlatform } from '../../serve.ts'
import { withStore } from '../../with-store.ts'
import { type Endpoint, startEndpoint } from '../../../endpoint.ts'
import { startBrokenCarrier, startPbxNode } from '../../../pbx-node.ts'
import { GATEWAY_HOST, incidentSeed, STRANGER_HOSTS } from './incident-data.ts'
import { storePastDays } from './past-days.ts'
import { plantIncidents } from './plant-incidents.ts'

const LEAKED_KEY = 'ci-reporting'

/** Settings of the incidents, in addition to those of a demo. */
export const incidentEnvironment = {
  // The leaked key is tried from an address of the outside.
  TRUSTED_PROXIES: '127.0.0.1/32',
  NODE_TIMEOUT_MS: '1000',
}

interface Endpoints {
  readonly office: readonly Endpoint[]
  readonly support: readonly [Endpoint, Endpoint]
  readonly southern: Endpoint
  /** How many calls southern has refused. */
  readonly refusedBySouthern: () => number
  readonly northern: Endpoint
  readonly phone: Endpoint
  readonly strangers: readonly Endpoint[]
}

/** Serves until a signal. */
export async function runIncidents(context: CommandContext, log: Log): Promise<void> {
  const endpoints = await startEndpoints(context, log)
  const { office, support, southern, northern, phone, strangers } = endpoints
  const [one, other] = support
  const seed = incidentSeed(
    {
      office: office.map(({ port }) => port),
      support: [one.port, other.port],
      southern: southern.port,
      northern: northern.port,
    },
    context.newUuid(),
  )
  const prepare = async (store: Store) => {
    await seedFile(store, seed, context.now())
    const made = await makeKeys(store, context)
    await storePastDays(store, LEAKED_KEY, context)
    return made
  }
  const keys = await withStore(context, prepare, 'may be made')
  await runPlatform(context, ({ engine, addresses }) => {
    const [, api = ''] = /api=(\S+)/.exec(addresses) ?? []
    const sipPort = engine.listeners.find(({ protocol }) => protocol === 'udp')?.port ?? 5060
    const [, consoleUrl = ''] = /console=(\S+)/.exec(addresses) ?? []
    context.print(`console: ${consoleUrl}; sign in as the user above`)
    context.print('incidents: eleven are planted now; it takes some seconds')
    const stage = {
      api,
      sipPort,
      phone: phone.client,
      node: office[0]?.client ?? phone.client,
      northern,
      refusedBySouthern: endpoints.refusedBySouthern,
      strangers: strangers.map(({ client }) => client),
      dying: office[2] ?? phone,
      nightShift: keys.nightShift,
      reporting: keys.reporting,
    }
    plantIncidents(stage, context).then(
      () => context.print(`incidents: planted; MCP http://${api}/mcp key ${keys.agent}`),
      (error: unknown) => context.complain(`incidents: ${String(error)}`),
    )
    return { dismiss: () => undefined, finish: () => undefined }
  })
  await Promise.all(
    [...office, ...support, southern, northern, phone, ...strangers].map((endpoint) =>
      endpoint.stop(),
    ),
  )
}

const gatewayPlace = { host: GATEWAY_HOST, port: 0 }

async function startEndpoints(context: CommandContext, log: Log): Promise<Endpoints> {
  let refused = 0
  const pbx = () => startPbxNode(context, log)
  return {
    office: [await pbx(), await pbx(), await pbx()],
    support: [await pbx(), await pbx()],
    southern: await startBrokenCarrier(context, log, gatewayPlace, () => {
      refused += 1
    }),
    refusedBySouthern: () => refused,
    northern: await startPbxNode(context, log, gatewayPlace),
    phone: await startEndpoint(log, () => undefined),
    strangers: await Promise.all(
      STRANGER_HOSTS.map((host) => startEndpoint(log, () => undefined, { protocol: 'udp', host })),
    ),
  }
}

async function makeKeys(store: Store, { now, randomBytes }: CommandContext) {
  const mint = { store, keys: new KeyStore(store), now, randomBytes }
  const make = async (name: string, scopes: readonly string[]) =>
    (await issueKey(mint, newKeyBody.parse({ name, scopes }), consoleGrantor)).token
  return {
    agent: await make('agent', ['*']),
    nightShift: await make('night-shift', ['*:read', 'dispatcher:write']),
    reporting: await make(LEAKED_KEY, ['*:read']),
  }
}
