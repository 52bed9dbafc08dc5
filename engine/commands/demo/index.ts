import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { seedFile } from '../seed.ts'
import { readConfig } from '../../config.ts'
import { createLogger } from '../../logger.ts'
import { type Command, type CommandContext, WrongUsage } from '../command.ts'
import { runPlatform } from '../serve.ts'
import { withStore } from '../with-store.ts'
import { incidentEnvironment, runIncidents } from './incidents/index.ts'
import { startEndpoint } from '../../endpoint.ts'
import { startPbxNode } from '../../pbx-node.ts'
import { placeCalls } from './caller.ts'
import { instanceCountOf, runCluster } from './cluster.ts'
import { demoSeed } from './demo-data.ts'
import { reportCalls } from './report.ts'

export const demo: Command = {
  name: 'demo',
  summary: 'Serves demo calls on loopback and prints one line for each call record.',
  options: {
    nodes: {
      value: 'N',
      meaning:
        'Runs N nodes (2 to 9) on one PostgreSQL server, which it starts itself. ' +
        'PostgreSQL must be installed.',
    },
    incidents: {
      meaning: 'Plants eleven faults for an AI agent to find, and prints the URL of MCP and a key.',
    },
  },
  details: () =>
    'Ctrl-C stops everything and deletes its files. The demo never touches a real installation.',
  run: async ({ options: { nodes, incidents } }, context) => {
    if (nodes !== undefined && incidents !== undefined)
      throw new WrongUsage('--incidents is for a demo of one node')
    if (nodes !== undefined) return runCluster(instanceCountOf(nodes), context)
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-demo-'))
    const environment = demoEnvironment(context, join(folder, 'demo.db'))
    try {
      if (incidents === undefined) await runDemo({ ...context, environment })
      else {
        const { log } = createLogger(readConfig(environment).logLevel)
        await runIncidents(
          { ...context, environment: { ...environment, ...incidentEnvironment } },
          log,
        )
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
    return 0
  },
}

async function runDemo(context: CommandContext): Promise<void> {
  const { databasePath, logLevel } = readConfig(context.environment)
  const { log } = createLogger(logLevel)
  const nodes = await Promise.all([1, 2, 3].map(() => startPbxNode(context, log)))
  const phone = await startEndpoint(log, () => undefined)
  const seed = demoSeed(
    nodes.map(({ port }) => port),
    1,
  )
  await withStore(context, (store) => seedFile(store, seed, context.now()), 'may be made')
  await runPlatform(context, ({ local, engine, addresses }) => {
    if (local === undefined) throw new TypeError('the demo has a database file')
    context.print(`demo: three PBX nodes and a caller; database ${databasePath}; Ctrl-C stops it`)
    const [, consoleUrl = ''] = /console=(\S+)/.exec(addresses) ?? []
    context.print(`console: ${consoleUrl}; sign in as the user above`)
    const sbcPort = engine.listeners.find(({ protocol }) => protocol === 'udp')?.port ?? 5060
    const stopCalls = placeCalls(phone.client, [{ sipPort: sbcPort }], context)
    const stopReport = reportCalls(local, context)
    return { dismiss: stopCalls, finish: stopReport }
  })
  await Promise.all([...nodes, phone].map((endpoint) => endpoint.stop()))
}

/** Nothing of a real installation is touched: only addresses and the log level are taken over. */
function demoEnvironment({ environment }: CommandContext, databasePath: string) {
  return {
    SIP_LISTEN: environment['SIP_LISTEN'] ?? 'udp/127.0.0.1:5060,tcp/127.0.0.1:5060',
    API_LISTEN: environment['API_LISTEN'],
    EDGE_LISTEN: environment['EDGE_LISTEN'],
    LOG_LEVEL: environment['LOG_LEVEL'] ?? 'warn',
    DATABASE_PATH: databasePath,
  }
}
