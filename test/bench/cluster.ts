/**
 * Three instances and a PostgreSQL server, each on a machine of its own (a network namespace),
 * under a load of calls while instances are killed and paused, links are cut and the server is
 * restarted. At the end wallets, ledger, records and what the callers have seen must fit together.
 */
import { once } from 'node:events'
import { setTimeout as later } from 'node:timers/promises'
import { eventually } from '../support/waiting.ts'
import { ClusterBooks } from './load/cluster/books.ts'
import { openCluster, whyNoCluster, type Cluster } from './load/cluster/cluster.ts'
import { SIP_PORT } from './load/cluster/cluster-node.ts'
import { carryOut, faultKinds, planFaults } from './load/cluster/faults.ts'
import type { Machine } from './load/cluster/network.ts'
import { LoggedCalls } from './load/logged-calls.ts'
import { optionsOf } from './load/options.ts'
import { reportRows, type Row } from './load/rows.ts'
import { killSipp, spawnSipp } from './load/sipp-load.ts'

const usual = {
  seconds: '600',
  rate: '300',
  seed: '1',
  every: '12',
  pause: '30',
  cut: '15',
  kinds: faultKinds.join(',').replaceAll(' ', '-'),
  logs: '',
}

export const describe =
  'books of three nodes on one PostgreSQL under kill -9, SIGSTOP, cut links and restarts of the server; as root; arguments: ' +
  Object.entries(usual)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')

const CALLEE_PORT = 5_070
/** Callers give up their BYE after 64 s, and an instance hears of its end again. */
const SETTLING_MS = 90_000
const PROGRESS_MS = 5_000
const MICROS_PER_SECOND = 10_000
/** The customer of each tenth call has nearly no money. */
const callers = { rich: '15550001111', poor: '15550002222' } as const

export async function run(words: readonly string[] = []): Promise<void> {
  const missing = whyNoCluster()
  if (missing !== undefined) return console.log(`  not run: ${missing}`)
  const options = optionsOf(words, usual)
  const cluster = await openCluster({
    instances: 3,
    seedFor,
    ...(options.logs !== '' && { logFolder: options.logs }),
  })
  try {
    reportRows(await chaos(cluster, options))
  } finally {
    await cluster.close()
  }
}

const seedFor = (load: Machine): object => ({
  rate_plans: [{ name: 'load', currency: 'USD' }],
  rates: [{ rate_plan: 'load', prefix: '1', rate_per_minute: '0.60' }],
  customers: Object.entries(callers).map(([name, number]) => ({
    name,
    rate_plan: 'load',
    numbers: [number],
    balance: name === 'rich' ? '100000.00' : '2.00',
  })),
  dispatcher: [
    {
      endpoint_name: 'load',
      set_id: 1,
      algorithm: 4,
      nodes: [{ host: load.address, internal_port: CALLEE_PORT }],
    },
  ],
})

async function chaos(cluster: Cluster, options: typeof usual): Promise<readonly Row[]> {
  const { instances, statements, load } = cluster
  const durationMs = Number(options.seconds) * 1_000
  const books = new ClusterBooks(statements, MICROS_PER_SECOND)
  const place = { address: load.address, command: load.command }
  const callee = spawnSipp({ scenario: 'node.xml', port: CALLEE_PORT, ...place })
  await once(callee, 'spawn')
  await cluster.serve()
  const calls = await Promise.all(
    instances.flatMap(({ name, machine }) =>
      (['rich', 'poor'] as const).map((who) =>
        LoggedCalls.start('talking-caller.xml', `${machine.address}:${SIP_PORT}`, {
          ...place,
          caller: callers[who],
          called: '18005551212',
          rate: Math.ceil((Number(options.rate) * (who === 'rich' ? 0.9 : 0.1)) / instances.length),
          calls: 0,
          name: `${who}-${name}-`,
        }),
      ),
    ),
  )
  console.log(`  three nodes serve; ${options.rate} calls/s for ${options.seconds} s`)
  const plan = planFaults({
    seed: Number(options.seed),
    instances: instances.length,
    durationMs,
    everyMs: Number(options.every) * 1_000,
    pauseMs: Number(options.pause) * 1_000,
    cutMs: Number(options.cut) * 1_000,
    kinds: faultKinds.filter((kind) => options.kinds.replaceAll('-', ' ').includes(kind)),
  })
  const begin = performance.now()
  const say = (text: string): void =>
    console.log(`  ${((performance.now() - begin) / 1_000).toFixed(1).padStart(6)} s  ${text}`)
  const mended = carryOut(plan, cluster, say)
  let lowest: string | undefined
  while (performance.now() - begin < durationMs) {
    await later(PROGRESS_MS)
    // The server may be away.
    lowest ??= await books.belowLimit().catch(() => undefined)
    say(`${instances.filter(({ isServing }) => isServing).length} nodes serve`)
  }
  await mended
  await Promise.all(instances.map((instance) => instance.serving()))
  say('nothing is broken any more, and calls end')
  await Promise.all(calls.map((each) => each.finish(SETTLING_MS)))
  const left = await eventually(() => restOf(cluster), SETTLING_MS).then(
    () => 'none',
    (error: unknown) => String(error),
  )
  const whileServing = await books.whileServing()
  // Calls that go on because their caller's BYE was lost end with their instance.
  await Promise.all(instances.map((instance) => instance.stop()))
  const seen = calls.flatMap((each) => [...each.notes()])
  await Promise.all([...calls.map((each) => each.stop()), killSipp(callee)])
  const answered = seen.filter(([, notes]) => notes.has('answered')).map(([id]) => id)
  const rich = seen.filter(([id]) => id.startsWith('rich'))
  const served = rich.filter(([, notes]) => notes.has('answered')).length
  return [
    ['faults', String(plan.length), true],
    ['of customers with funds: answered', `${served} of ${rich.length}`, served > 0],
    ['calls that go on although no caller talks', left, true],
    ['wallets below their limit on the way', lowest ?? 'none', lowest === undefined],
    ...whileServing.map(([what, ...rest]) => [`${what}, before the nodes stop`, ...rest] as const),
    ...(await books.atRest(answered)),
    ...rowsOfInstances(cluster),
  ]
}

/** @throws {Error} an instance still has calls. */
async function restOf({ statements }: Cluster): Promise<void> {
  const rows = await statements
    .prepare<{ name: string; live_calls: number }>('SELECT name, live_calls FROM node')
    .all([])
  const live = rows.filter((row) => row.live_calls > 0)
  if (live.length > 0)
    throw new Error(live.map((row) => `${row.live_calls} at ${row.name}`).join(', '))
}

function rowsOfInstances({ instances }: Cluster): readonly Row[] {
  const byThemselves = instances.reduce((sum, instance) => sum + instance.endsByItself, 0)
  // The last file of an end in order says so by its name.
  const left = instances
    .flatMap((instance) => instance.journalFiles().map((file) => `${instance.name}/${file}`))
    .filter((file) => !file.endsWith('.stopped'))
  return [
    ['processes that have ended by themselves', String(byThemselves), true],
    ['journals of calls that are left', [left.length, ...left].join('  '), left.length === 0],
    ...instances.map(
      ({ name, faults }) => [`errors in the log of ${name}`, String(faults.length), true] as const,
    ),
  ]
}
