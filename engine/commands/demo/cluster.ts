/**
 * `tollgate demo --nodes N`: instances that share a temporary PostgreSQL server, with demo calls
 * through all of them.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore } from '../../../schema/postgres/open.ts'
import { createLogger } from '../../logger.ts'
import { seedFile } from '../seed.ts'
import { type ExitCode, type CommandContext, WrongUsage } from '../command.ts'
import { startEndpoint } from '../../endpoint.ts'
import { startPbxNode } from '../../pbx-node.ts'
import { placeCalls } from './caller.ts'
import { callerNumber, demoSeed } from './demo-data.ts'
import {
  findPostgres,
  type InstanceProcess,
  startInstance,
  TemporaryPostgres,
} from './temporary-postgres.ts'
import { reportCalls } from './report.ts'

const MAX_INSTANCES = 9

/** @throws {WrongUsage} it is no such number. */
export function instanceCountOf(text: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count >= 2 && count <= MAX_INSTANCES) return count
  throw new WrongUsage(`--nodes ${text}: allowed is a number from 2 to ${MAX_INSTANCES}`)
}

const install =
  'demo --nodes needs PostgreSQL 15 or newer on this machine, and starts one of its own: ' +
  'apt install postgresql (Debian, Ubuntu), dnf install postgresql-server (Fedora), brew ' +
  'install postgresql (macOS)'

/**
 * Returns after a signal to stop, with everything stopped and removed.
 *
 * @param programs of PostgreSQL; empty: it is not installed.
 * @throws {WrongUsage} it is not.
 */
export async function runCluster(
  count: number,
  context: CommandContext,
  programs = findPostgres() ?? '',
): Promise<ExitCode> {
  if (programs === '') throw new WrongUsage(install)
  const stopped = new Promise<'stopped'>((resolve) =>
    context.onStopSignal(() => resolve('stopped')),
  )
  const closers: (() => unknown)[] = []
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-demo-'))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  // The server may run as another user.
  chmodSync(folder, 0o711)
  try {
    const starting = startCluster({ count, programs, folder, closers }, context)
    // A start that is under way at the signal has added its closer when it resolves.
    const first = await Promise.race([stopped, starting])
    if (first === 'stopped') await starting.catch(() => undefined)
    else await Promise.race([stopped, first.allEnded])
    return 0
  } finally {
    for (const close of closers.toReversed()) await close()
  }
}

interface ClusterPlan {
  readonly count: number
  /** Folder of PostgreSQL's programs. */
  readonly programs: string
  readonly folder: string
  /** Stop the started parts; in the order of the start. */
  readonly closers: (() => unknown)[]
}

async function startCluster(
  { count, programs, folder, closers }: ClusterPlan,
  context: CommandContext,
): Promise<{ readonly allEnded: Promise<unknown> }> {
  const { log } = createLogger('warn')
  const postgres = await TemporaryPostgres.start({
    programs,
    folder: join(folder, 'postgres'),
    ownerPid: context.pid,
    schedule: context.schedule,
    removes: folder,
  })
  closers.push(() => postgres.stop())
  const secretKey = context.randomBytes(32).toString('base64url')
  const names = Array.from({ length: count }, (_, index) => `demo-${index + 1}`)

  const pbxNodes = await Promise.all([1, 2, 3].map(() => startPbxNode(context, log)))
  const phone = await startEndpoint(log, () => undefined)
  for (const endpoint of [...pbxNodes, phone]) closers.push(() => endpoint.stop())
  const store = await openStore(postgres.url, {
    secretKey,
    keyFile: join(folder, 'key'),
    now: context.now(),
    connections: 2,
  })
  closers.push(() => store.close())
  await seedFile(
    store,
    demoSeed(
      pbxNodes.map(({ port }) => port),
      count,
    ),
    context.now(),
  )

  const shared = {
    ...sharedEnvironment(context),
    DATABASE_URL: postgres.url,
    SECRET_KEY: secretKey,
  }
  const startOne = async (name: string, index: number): Promise<InstanceProcess> => {
    const environment = { ...shared, ...addressesOf(index, context) }
    const instance = await startInstance({ name, folder }, environment, context)
    closers.push(() => instance.stop())
    return instance
  }
  // The first makes the user that may sign in.
  const first = await startOne(names[0] ?? 'demo-1', 0)
  const others = await Promise.all(names.slice(1).map((name, index) => startOne(name, index + 1)))
  const instances = [first, ...others]
  printSummary(instances, postgres.url, context)
  const stopReport = reportCalls(store, context, (caller) => {
    const index = names.findIndex((_, each) => callerNumber(each) === caller)
    return names[index]
  })
  closers.push(async () => {
    await Promise.all(instances.map((instance) => instance.stop()))
    await stopReport()
  })
  closers.push(placeCalls(phone.client, instances, context))
  const ends = instances.map(async (instance) => {
    const how = await instance.ended
    context.print(`demo: node ${instance.name} has ended: ${how}`)
  })
  return { allEnded: Promise.all(ends) }
}

function printSummary(
  instances: readonly InstanceProcess[],
  url: string,
  context: CommandContext,
): void {
  context.print(
    `demo: ${instances.length} nodes, three PBX nodes and callers; ` +
      `database ${url}; Ctrl-C stops it`,
  )
  for (const [index, { name, pid, api, sipPort }] of instances.entries())
    context.print(
      `demo: node ${name}: process ${pid}, SIP 127.0.0.1:${sipPort}, calls of ` +
        `${callerNumber(index)}, console http://${api}/`,
    )
  context.print('console: each shows the calls of all nodes; sign in as the user above')
}

/** Nothing of a real installation is touched. */
const sharedEnvironment = ({ environment }: CommandContext) => ({
  LOG_LEVEL: environment['LOG_LEVEL'] ?? 'warn',
  DRAIN_SECONDS: '3',
})

function addressesOf(index: number, { environment }: CommandContext) {
  const free = {
    SIP_LISTEN: 'udp/127.0.0.1:0',
    API_LISTEN: '127.0.0.1:0',
    EDGE_LISTEN: '127.0.0.1:0',
  }
  if (index > 0) return free
  return {
    SIP_LISTEN: environment['SIP_LISTEN'] ?? 'udp/127.0.0.1:5060,tcp/127.0.0.1:5060',
    API_LISTEN: environment['API_LISTEN'],
    EDGE_LISTEN: environment['EDGE_LISTEN'],
  }
}
