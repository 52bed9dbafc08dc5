/**
 * A node dies under load. Calls of the other nodes must not notice; its calls get their records when it comes back, and what it held is free
 * when it has been silent for so long that none of its grants goes on; its phones are called where they register next.
 */
import { setTimeout as later } from 'node:timers/promises'
import type { ClusterNode } from '../support/cluster/cluster-node.ts'
import { openCluster, whyNoCluster, type Cluster } from '../support/cluster/cluster.ts'
import type { Machine } from '../support/cluster/network.ts'
import { eventually } from '../support/waiting.ts'
import { ClusterBooks, type Row } from './load/cluster-books.ts'
import { CALLEE_PORT, ClusterLoad, type SeenCall } from './load/cluster-load.ts'
import { ClusterPhones, phoneResources } from './load/cluster-phones.ts'
import { reportRows } from './load/cluster-report.ts'

export const describe =
  'one of three nodes dies under load: calls of the others, its books when it is back and when it is not, its phones; as root; arguments: rate=300 seconds=20 seed=1 logs=FOLDER'

/** 0.60 a minute. */
const MICROS_PER_SECOND = 10_000
const callers = Array.from({ length: 50 }, (_, index) => `1555000${1_000 + index}`)
/** Ten seconds to live, the grant of a call, and as much again; then the next look. */
const GONE_MS = 130_000 + 30_000
const SETTLING_MS = 90_000
const HEARD_MS = 5_000
/** Programs are compiled while their first calls come: these belong to no figure. */
const WARM_UP_MS = 10_000

export async function run(words: readonly string[] = []): Promise<void> {
  const missing = whyNoCluster()
  if (missing !== undefined) return console.log(`  not run: ${missing}`)
  const given = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const number = (name: string, unlessGiven: number) => Number(given.get(name) ?? unlessGiven)
  const logs = given.get('logs')
  const cluster = await openCluster({ nodes: 3, seedFor, logFolder: logs })
  const phones = ClusterPhones.start(cluster.load)
  try {
    const plan = { rate: number('rate', 300), partMs: number('seconds', 20) * 1_000 }
    const lengths = { longestRingingMs: 0, longestTalkMs: 6_000 }
    const seed = number('seed', 1)
    const load = await ClusterLoad.start(cluster, { seed, callers, ...lengths }, logs)
    reportRows(await watched(cluster, load, phones, plan))
  } finally {
    phones.close()
    await cluster.close()
  }
}

const seedFor = (load: Machine): object => ({
  ...phoneResources,
  rate_plans: [{ name: 'load', currency: 'USD' }],
  rates: [{ rate_plan: 'load', prefix: '1', rate_per_minute: '0.60' }],
  customers: callers.map((caller) => ({
    name: caller,
    rate_plan: 'load',
    numbers: [caller],
    balance: '100000.00',
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

interface Plan {
  readonly rate: number
  /** How long each part lasts. */
  readonly partMs: number
}

async function watched(
  cluster: Cluster,
  load: ClusterLoad,
  phones: ClusterPhones,
  { rate, partMs }: Plan,
): Promise<readonly Row[]> {
  const { nodes, statements } = cluster
  const [first, second, third] = nodes
  if (first === undefined || second === undefined || third === undefined)
    throw new Error('there are three nodes')
  const others = [first, second]
  const told = (text: string): void => console.log(`  ${text}`)
  const perNode = rate / nodes.length
  await cluster.serve()
  load.rate(rate)
  await later(WARM_UP_MS)

  const phoneRows = [
    await statusRow('a phone registers with node-3', phones.register(third.machine)),
  ]
  phoneRows.push(await calledRow(phones, first))
  const begin = Date.now()
  told(`${rate} calls/s at three nodes for ${partMs / 1_000} s`)
  await later(partMs)

  told('node-3 dies, and the others go on with as many calls each as before')
  const diedAt = Date.now()
  third.lose()
  load.rate(
    perNode * others.length,
    others.map(({ name }) => name),
  )
  await later(partMs)
  phoneRows.push(await statusRow('it registers with node-2', phones.register(second.machine)))
  phoneRows.push(await calledRow(phones, first))

  told('node-3 comes back with its journal')
  const backAt = Date.now()
  await third.start()
  const servedMs = Date.now() - backAt
  await later(partMs)
  load.rate(0)
  await load.finish(SETTLING_MS)

  told('node-3 dies again while calls talk, and stays away')
  load.rate(rate)
  await later(partMs / 2)
  third.lose()
  load.rate(
    perNode * others.length,
    others.map(({ name }) => name),
  )
  const freed = await freedRow(cluster, third)
  load.rate(0)
  await load.finish(SETTLING_MS)

  told('and comes back with its old journal')
  await third.start()
  await settled(cluster)
  await load.end()
  await Promise.all(nodes.map((node) => node.stop()))
  const seen = load.seen()
  const funded = new Set(callers)
  return [
    ...noticed(seen, others, { begin, diedAt, until: diedAt + partMs }),
    ['seconds until node-3 served again', (servedMs / 1_000).toFixed(1), true],
    ...phoneRows,
    freed,
    ...(await new ClusterBooks(statements, MICROS_PER_SECOND).atRest(seen, funded)),
  ]
}

async function statusRow(what: string, asked: Promise<number>): Promise<Row> {
  const status = await asked
  return [what, String(status), status === 200]
}

/** A node hears of a registration with another one within a second. */
async function calledRow(phones: ClusterPhones, { name, machine }: ClusterNode): Promise<Row> {
  const start = performance.now()
  const call = async (): Promise<void> => {
    const status = await phones.call(machine)
    if (status !== 200) throw new Error(String(status))
  }
  const seen = await eventually(call, HEARD_MS).then(
    () => `answered after ${(performance.now() - start).toFixed(0)} ms`,
    (error: unknown) => String(error),
  )
  return [`it is called at ${name}`, seen, seen.startsWith('answered')]
}

/** What node-3 held is free while it is away. */
async function freedRow({ statements }: Cluster, { name }: ClusterNode): Promise<Row> {
  const query = statements.prepare<{ readonly held: number }>(
    `SELECT coalesce(sum(amount), 0) AS held FROM share WHERE kind = 'wallet' AND node = '${name}'`,
  )
  const held = async (): Promise<number> => (await query.get([]))?.held ?? 0
  const before = await held()
  const start = performance.now()
  await eventually(async () => {
    if ((await held()) > 0) throw new Error('it is not free')
  }, GONE_MS).catch(() => undefined)
  const after = await held()
  const seconds = ((performance.now() - start) / 1_000).toFixed(0)
  const text = `${before} micro-units, ${after} after ${seconds} s`
  return ['held by node-3, and when it was gone', text, before > 0 && after === 0]
}

/** @throws {Error} a node still has calls. */
async function settled({ statements }: Cluster): Promise<void> {
  const query = statements.prepare<{ readonly live: number }>(
    'SELECT sum(live_calls) AS live FROM node',
  )
  await eventually(async () => {
    if (((await query.get([]))?.live ?? 0) > 0) throw new Error('calls go on')
  }, SETTLING_MS).catch(() => undefined)
}

interface Times {
  readonly begin: number
  readonly diedAt: number
  readonly until: number
}

/** Calls of the other nodes, before and after. */
function noticed(
  seen: readonly SeenCall[],
  others: readonly ClusterNode[],
  { begin, diedAt, until }: Times,
): readonly Row[] {
  const names = new Set(others.map(({ name }) => name))
  const between = (from: number, to: number) =>
    seen.filter(({ node, placedAt }) => names.has(node) && placedAt >= from && placedAt < to)
  const [before, after] = [between(begin, diedAt), between(diedAt, until)]
  const failed = (calls: readonly SeenCall[]): number =>
    calls.filter(({ what }) => what !== 'answered').length
  return [
    ['calls of the others before', textOf(before, failed(before)), true],
    ['calls of the others after', textOf(after, failed(after)), failed(after) === 0],
  ]
}

function textOf(calls: readonly SeenCall[], failed: number): string {
  const took = calls
    .filter(({ what }) => what === 'answered')
    .map(({ tookMs }) => tookMs)
    .toSorted((one, other) => one - other)
  const at = (part: number): string =>
    (took[Math.min(took.length - 1, Math.floor(took.length * part))] ?? 0).toFixed(1)
  return `${calls.length}, ${failed} not answered, INVITE to 200 p50 ${at(0.5)}, p99 ${at(0.99)}, longest ${at(1)} ms`
}
