/**
 * Three nodes and a PostgreSQL server, each on a machine of its own (a network namespace), under a load of calls while nodes are killed and paused, links are cut and
 * the server is restarted. At the end wallets, ledger, records and what the callers have seen must fit together.
 */
import { setTimeout as later } from 'node:timers/promises'
import { SHARE_WAIT_MS } from '../../engine/shares/node-share.ts'
import { openCluster, whyNoCluster, type Cluster } from '../support/cluster/cluster.ts'
import { API_PORT } from '../support/cluster/cluster-node.ts'
import {
  carryOut,
  faultKinds,
  planFaults,
  type FaultKind,
  type FaultWindow,
} from '../support/cluster/faults.ts'
import type { Machine } from '../support/cluster/network.ts'
import { eventually } from '../support/waiting.ts'
import { ClusterBooks, type Row } from './load/cluster-books.ts'
import { CALLEE_PORT, ClusterLoad, type SeenCall } from './load/cluster-load.ts'
import { reportRows } from './load/cluster-report.ts'

export const describe =
  'books of three nodes on one PostgreSQL under kill -9, SIGSTOP, cut links and restarts of the server; as root; arguments: ' +
  `seconds=600 rate=300 poor=5 seed=1 every=12 pause=30 cut=15 kinds=${faultKinds.join(',').replaceAll(' ', '-')} logs=FOLDER`

/** 0.60 a minute. */
const MICROS_PER_SECOND = 10_000
const CUSTOMERS = 50
/** Callers give up their BYE after 64 s, and a node hears of its end again. */
const SETTLING_MS = 90_000
const PROGRESS_MS = 5_000
/** Shares and connections are there again so long after a fault. */
const AFTER_FAULT_MS = 15_000

interface Options {
  readonly seconds: number
  readonly rate: number
  readonly seed: number
  readonly everyMs: number
  readonly pauseMs: number
  readonly cutMs: number
  readonly kinds: readonly FaultKind[]
  readonly logs: string | undefined
  /** Numbers of customers whose funds last. */
  readonly funded: ReadonlySet<string>
}

function optionsOf(words: readonly string[]): Options {
  const given = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const number = (name: string, unlessGiven: number) => Number(given.get(name) ?? unlessGiven)
  const kinds = given.get('kinds')?.replaceAll('-', ' ').split(',')
  return {
    seconds: number('seconds', 600),
    rate: number('rate', 300),
    seed: number('seed', 1),
    everyMs: number('every', 12) * 1_000,
    pauseMs: number('pause', 30) * 1_000,
    cutMs: number('cut', 15) * 1_000,
    kinds: kinds === undefined ? faultKinds : faultKinds.filter((kind) => kinds.includes(kind)),
    logs: given.get('logs'),
    funded: fundedBeside(number('poor', 5)),
  }
}

export async function run(words: readonly string[] = []): Promise<void> {
  const missing = whyNoCluster()
  if (missing !== undefined) {
    console.log(`  not run: ${missing}`)
    return
  }
  const options = optionsOf(words)
  const cluster = await openCluster({
    nodes: 3,
    seedFor: (load) => seedFor(load, options.funded),
    logFolder: options.logs,
  })
  try {
    const { rows, windows } = await chaos(cluster, options)
    reportRows([['faults', `${windows.length}: ${kindsOf(windows)}`, true], ...rows])
  } finally {
    await cluster.close()
  }
}

const callerOf = (index: number): string => `1555000${String(1_000 + index)}`
const callers = Array.from({ length: CUSTOMERS }, (_, index) => callerOf(index))
/** Of customers whose funds last; the others are nearly empty. */
const fundedBeside = (poor: number): ReadonlySet<string> => new Set(callers.slice(poor))

const seedFor = (load: Machine, funded: ReadonlySet<string>): object => ({
  rate_plans: [{ name: 'load', currency: 'USD' }],
  rates: [{ rate_plan: 'load', prefix: '1', rate_per_minute: '0.60' }],
  customers: callers.map((number) => ({
    name: number,
    rate_plan: 'load',
    numbers: [number],
    balance: funded.has(number) ? '100000.00' : '2.00',
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

interface Outcome {
  readonly rows: readonly Row[]
  readonly windows: readonly FaultWindow[]
}

async function chaos(cluster: Cluster, options: Options): Promise<Outcome> {
  const { seconds, rate, seed, funded } = options
  const { nodes, statements } = cluster
  const customerIds = await poorCustomers(cluster, funded)
  const topUps = {
    urls: nodes.map(({ machine }) => `http://${machine.address}:${API_PORT}`),
    token: cluster.token,
    customerIds,
    amount: 1,
    everyMs: 2_000,
  }
  // What live calls hold is all that their customers have, also while their node is started again.
  const talkative = callers.filter((number) => !funded.has(number))
  const lengths = { longestRingingMs: 300, longestTalkMs: 6_000, talkative }
  const plan = { seed, callers, ...lengths, ...(customerIds.length > 0 && { topUps }) }
  const load = await ClusterLoad.start(cluster, plan, options.logs)
  await cluster.serve()
  console.log(`  three nodes serve; ${rate} calls/s for ${seconds} s, seed ${seed}`)
  const books = new ClusterBooks(statements, MICROS_PER_SECOND)
  const watch = new Watch(cluster, load, books)
  load.rate(rate)
  const faults = planFaults({ ...options, nodes: nodes.length, durationMs: seconds * 1_000 })
  const windows: FaultWindow[] = []
  const begin = performance.now()
  const mended = carryOut(faults, cluster, (window) => {
    windows.push(window)
    const at = ((performance.now() - begin) / 1_000).toFixed(1)
    console.log(`  ${at.padStart(6)} s  ${window.text}`)
  })
  await later(seconds * 1_000)
  load.rate(0)
  await mended
  await Promise.all(nodes.map((node) => node.serving()))
  console.log(`  ${seconds} s are over: nothing is broken any more, and calls end`)
  await load.finish(SETTLING_MS)
  const left = await eventually(() => restOf(cluster), SETTLING_MS).then(
    () => 'none',
    (error: unknown) => String(error),
  )
  const whileServing = await books.whileServing()
  await watch.stop()
  await load.end()
  // Calls that go on because their caller's BYE was lost end with their node.
  await Promise.all(nodes.map((node) => node.stop()))
  const seen = load.seen()
  const rows = [
    ...rowsOfCalls(seen, windows, load, funded),
    await books.guards(seen, funded),
    ['calls that go on although no caller talks', left, true] as const,
    ...whileServing.map(([what, ...rest]) => [`${what}, before the nodes stop`, ...rest] as const),
    ...watch.rows,
    ...(await books.atRest(seen, funded)),
    await topUpsOf(cluster, load),
    ...rowsOfNodes(cluster),
  ]
  return { rows, windows }
}

async function poorCustomers(
  { statements }: Cluster,
  funded: ReadonlySet<string>,
): Promise<readonly number[]> {
  const rows = await statements
    .prepare<{ readonly id: number; readonly name: string }>('SELECT id, name FROM customer')
    .all([])
  return rows.filter(({ name }) => !funded.has(name)).map(({ id }) => id)
}

/** @throws {Error} a node still has calls. */
async function restOf({ statements }: Cluster): Promise<void> {
  const rows = await statements
    .prepare<{ readonly name: string; readonly live_calls: number }>(
      'SELECT name, live_calls FROM node',
    )
    .all([])
  const live = rows.filter(({ live_calls: calls }) => calls > 0)
  if (live.length > 0)
    throw new Error(live.map((row) => `${row.live_calls} at ${row.name}`).join(', '))
}

/** Prints how it goes, and looks whether a wallet falls below its limit on the way. */
class Watch {
  readonly #stopping = new AbortController()
  readonly #looking: Promise<void>
  #lowest: string | undefined

  constructor(cluster: Cluster, load: ClusterLoad, books: ClusterBooks) {
    this.#looking = this.#look(cluster, load, books)
  }

  get rows(): readonly Row[] {
    const seen = this.#lowest ?? 'none'
    return [['wallets below their limit on the way', seen, this.#lowest === undefined]]
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#looking
  }

  async #look(cluster: Cluster, load: ClusterLoad, books: ClusterBooks): Promise<void> {
    const begin = performance.now()
    let before = load.counts
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await later(PROGRESS_MS, undefined, { signal }).catch(() => undefined)
      const { counts } = load
      const rate = (name: 'placed' | 'answered'): string =>
        ((counts[name] - before[name]) / (PROGRESS_MS / 1_000)).toFixed(0)
      const at = ((performance.now() - begin) / 1_000).toFixed(0)
      const up = cluster.nodes.filter(({ isServing }) => isServing).length
      console.log(
        `  ${at.padStart(6)} s  ${up} nodes; ${rate('placed')} calls/s, ${rate('answered')} answered/s, ${counts.live} live, ` +
          `${counts.unanswered} without an answer, refused ${JSON.stringify(counts.refused)}, ` +
          `${counts.topUps.confirmed} of ${counts.topUps.placed} top-ups`,
      )
      before = counts
      // The server may be away.
      this.#lowest ??= await books.belowLimit().catch(() => undefined)
    }
  }
}

const percent = (part: number, all: number): string =>
  `${((100 * part) / Math.max(1, all)).toFixed(2)} %`

function rowsOfCalls(
  seen: readonly SeenCall[],
  windows: readonly FaultWindow[],
  { counts }: ClusterLoad,
  funded: ReadonlySet<string>,
): readonly Row[] {
  const isExcused = ({ node, placedAt, tookMs }: SeenCall): boolean =>
    windows.some(
      ({ kind, nodes, from, until }) =>
        // Nodes tell each other of money through the database.
        kind !== 'cut nodes' &&
        nodes.includes(node) &&
        placedAt + tookMs >= from &&
        placedAt <= until + AFTER_FAULT_MS,
    )
  const ofFunded = seen.filter(({ caller }) => funded.has(caller))
  const told = (calls: readonly SeenCall[]): string => {
    const without = calls.filter((call) => !isExcused(call))
    return `${calls.length}, of these ${without.length} at a node without a fault within the last ${AFTER_FAULT_MS / 1_000} s`
  }
  const refused = (status: number, calls: readonly SeenCall[] = ofFunded) =>
    calls.filter((call) => call.status === status)
  const noFunds = refused(402)
  const sooner = noFunds.filter(({ tookMs }) => tookMs < SHARE_WAIT_MS)
  const failed = ofFunded.filter(({ what }) => what !== 'answered')
  return [
    ['calls placed', String(counts.placed), counts.placed > 0],
    [
      'of customers with funds: answered',
      percent(ofFunded.length - failed.length, ofFunded.length),
      true,
    ],
    ['of customers with funds: refused for money (402)', told(noFunds), true],
    [
      `the same before the ${SHARE_WAIT_MS} ms that a call may wait`,
      told(sooner),
      sooner.length === 0,
    ],
    ['of customers with funds: refused with 503', told(refused(503)), true],
    [
      'of customers with funds: no answer',
      told(failed.filter(({ what }) => what === 'unanswered')),
      true,
    ],
    [
      'of customers without: refused for money (402)',
      String(refused(402, seen).length - noFunds.length),
      true,
    ],
    ['answered calls that their node has hung up', String(counts.hungUp), true],
    ['answered calls whose BYE had no response', String(counts.lostByes), true],
    ['refusals by status', JSON.stringify(counts.refused), true],
  ]
}

async function topUpsOf({ statements }: Cluster, { counts }: ClusterLoad): Promise<Row> {
  const [row] = await statements
    .prepare<{ readonly count: number; readonly different: number }>(
      "SELECT count(*) AS count, count(DISTINCT note) AS different FROM ledger_entry WHERE note LIKE 'top-up-%'",
    )
    .all([])
  const { placed, confirmed, repeated } = counts.topUps
  const isRight = placed === confirmed && row?.count === confirmed && row.different === confirmed
  const told = `${confirmed} of ${placed} (asked again ${repeated} times), ${row?.count} in the ledger`
  return ['top-ups confirmed, and in the ledger once', told, isRight]
}

function rowsOfNodes({ nodes, database }: Cluster): readonly Row[] {
  const ends = nodes.flatMap((node) => node.ends.map((end) => ({ node, end })))
  const byThemselves = ends.filter(({ end }) => end.isByItself)
  const told = byThemselves.map(({ node, end }) => `${node.name} (${end.code ?? end.signal})`)
  // The last file of an end in order says so by its name.
  const left = nodes.flatMap((node) =>
    node
      .journalFiles()
      .filter((file) => !file.endsWith('.stopped'))
      .map((file) => `${node.name}/${file}`),
  )
  return [
    ['starts of the database server', String(database.starts), true],
    ['processes that have ended by themselves', [byThemselves.length, ...told].join('  '), true],
    ['journals of calls that are left', [left.length, ...left].join('  '), left.length === 0],
    ...nodes.map(
      ({ name, faults }) => [`errors in the log of ${name}`, String(faults.length), true] as const,
    ),
  ]
}

const kindsOf = (windows: readonly FaultWindow[]): string =>
  faultKinds
    .map((kind) => `${windows.filter((one) => one.kind === kind).length} × ${kind}`)
    .join(', ')
