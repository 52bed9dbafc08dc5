/**
 * One wallet that three nodes spend from at the same time, until it is empty: how often each node writes the wallet's row, that no call is
 * refused while there is money, and that the end is exact. Calls are SIP calls of the started programs.
 */
import { setTimeout as later } from 'node:timers/promises'
import { openCluster, whyNoCluster, type Cluster } from '../support/cluster/cluster.ts'
import type { Machine } from '../support/cluster/network.ts'
import { ClusterBooks, type Row } from './load/cluster-books.ts'
import { CALLEE_PORT, ClusterLoad, type SeenCall } from './load/cluster-load.ts'
import { reportRows } from './load/cluster-report.ts'

export const describe =
  'one wallet used by three nodes until it is empty: updates a second, refusals, exact end; as root; arguments: rate=600 balance=600 seconds=300 seed=1 logs=FOLDER'

/** 0.60 a minute. */
const MICROS_PER_SECOND = 10_000
/** Short, so that the last money is not held by calls that end soon. */
const GRANT_SECONDS = 10
const caller = '15550001111'
const LOOK_MS = 500
/** Programs are compiled while their first calls come. */
const WARM_UP_MS = 10_000
/** With an empty wallet the load goes on for so long. */
const TAIL_MS = 5_000
const SETTLING_MS = 60_000
const MAX_UPDATES_PER_SECOND = 100

export async function run(words: readonly string[] = []): Promise<void> {
  const missing = whyNoCluster()
  if (missing !== undefined) return console.log(`  not run: ${missing}`)
  const given = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const number = (name: string, unlessGiven: number) => Number(given.get(name) ?? unlessGiven)
  const [rate, balance] = [number('rate', 600), number('balance', 600)]
  const logs = given.get('logs')
  const cluster = await openCluster({
    nodes: 3,
    seedFor: (load) => seedFor(load, balance),
    logFolder: logs,
  })
  try {
    const seed = number('seed', 1)
    const lengths = { longestRingingMs: 50, longestTalkMs: 1_000 }
    const load = await ClusterLoad.start(cluster, { seed, callers: [caller], ...lengths }, logs)
    await cluster.serve()
    load.rate(rate / 10)
    await later(WARM_UP_MS)
    console.log(`  ${rate} calls/s on one wallet of ${balance}, seed ${seed}`)
    load.rate(rate)
    const looks = await spend(cluster, load, number('seconds', 300))
    await load.finish(SETTLING_MS)
    await load.end()
    await Promise.all(cluster.nodes.map((node) => node.stop()))
    reportRows([
      ...rowsOf(looks, load.seen(), rate),
      await restOf(cluster),
      ...(await new ClusterBooks(cluster.statements, MICROS_PER_SECOND).atRest(
        load.seen(),
        new Set(),
      )),
    ])
  } finally {
    await cluster.close()
  }
}

const seedFor = (load: Machine, balance: number): object => ({
  rate_plans: [{ name: 'load', currency: 'USD' }],
  rates: [{ rate_plan: 'load', prefix: '1', rate_per_minute: '0.60' }],
  customers: [
    {
      name: 'hot',
      rate_plan: 'load',
      numbers: [caller],
      balance: balance.toFixed(2),
      max_call_seconds: GRANT_SECONDS,
    },
  ],
  dispatcher: [
    {
      endpoint_name: 'load',
      set_id: 1,
      algorithm: 4,
      nodes: [{ host: load.address, internal_port: CALLEE_PORT }],
    },
  ],
})

interface Look {
  /** Milliseconds UTC. */
  readonly at: number
  readonly balanceMicros: number
  readonly live: number
  /** Updates of the wallet's row so far. */
  readonly updates: number
  /** Transactions of the whole server so far. */
  readonly commits: number
}

/** Until the wallet has been empty for a while, or the time is over. */
async function spend(
  { statements }: Cluster,
  load: ClusterLoad,
  seconds: number,
): Promise<readonly Look[]> {
  const looks: Look[] = []
  const query = statements.prepare<
    Pick<Look, 'updates' | 'commits'> & { readonly balance: number }
  >(
    `SELECT balance_micros AS balance,
       (SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'wallet') AS updates,
       (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS commits
       FROM wallet`,
  )
  let emptyAt = Number.POSITIVE_INFINITY
  const begin = Date.now()
  for (;;) {
    await later(LOOK_MS)
    const row = await query.get([])
    const { live, refused } = load.counts
    const at = Date.now()
    const { balance: balanceMicros = 0, updates = 0, commits = 0 } = row ?? {}
    looks.push({ at, balanceMicros, live, updates, commits })
    if (balanceMicros < MICROS_PER_SECOND) emptyAt = Math.min(emptyAt, at)
    if (at > emptyAt + TAIL_MS || at > begin + seconds * 1_000) return looks
    if (looks.length % 10 === 0)
      console.log(
        `  ${((at - begin) / 1_000).toFixed(0).padStart(6)} s  balance ${(balanceMicros / 1e6).toFixed(2)}, ${live} live, refused ${JSON.stringify(refused)}`,
      )
  }
}

function rowsOf(looks: readonly Look[], seen: readonly SeenCall[], rate: number): readonly Row[] {
  const answered = seen.filter(({ what }) => what === 'answered')
  const lasting = looks.filter(({ balanceMicros, live }) => balanceMicros > reserveOf(live, rate))
  const lastedUntil = lasting.at(-1)?.at ?? 0
  const early = seen.filter(
    ({ what, placedAt, tookMs }) => what !== 'answered' && placedAt + tookMs < lastedUntil,
  )
  const took = answered.map(({ tookMs }) => tookMs).toSorted((one, other) => one - other)
  const perSecond = perSecondOf(lasting, ({ updates }) => updates) / 3
  // Without the second in which the last calls end.
  const empty = looks.filter(({ balanceMicros }) => balanceMicros < MICROS_PER_SECOND).slice(2)
  const seconds = ((lasting.at(-1)?.at ?? 0) - (lasting[0]?.at ?? 0)) / 1_000
  const at = (part: number): string => (took[Math.floor(took.length * part)] ?? 0).toFixed(1)
  return [
    ['seconds in which funds lasted', seconds.toFixed(1), seconds > 5],
    [
      `updates of the wallet a second, for each node (<= ${MAX_UPDATES_PER_SECOND})`,
      perSecond.toFixed(1),
      perSecond <= MAX_UPDATES_PER_SECOND,
    ],
    [
      'calls that were not answered while funds lasted',
      [early.length, ...early.slice(0, 5).map(({ what, status }) => `${what} ${status}`)].join(
        '  ',
      ),
      early.length === 0,
    ],
    [
      'commits of the server a second while the wallet is empty',
      perSecondOf(empty, ({ commits }) => commits).toFixed(1),
      true,
    ],
    ['INVITE to 200 with up to 50 ms of ringing, p50, p99', `${at(0.5)}, ${at(0.99)} ms`, true],
    ['refused for money in all', String(seen.filter(({ status }) => status === 402).length), true],
  ]
}

/** What live calls hold, and the calls of the next second: while there is more, none needs to be refused. */
const reserveOf = (live: number, rate: number): number =>
  (live + rate) * GRANT_SECONDS * MICROS_PER_SECOND

/** The server counts half a second later. */
function perSecondOf(looks: readonly Look[], of: (look: Look) => number): number {
  const [first, last] = [looks[0], looks.at(-1)]
  if (first === undefined || last === undefined || last.at === first.at) return 0
  return (of(last) - of(first)) / ((last.at - first.at) / 1_000)
}

/** The money is spent to the last second that can be paid, and not beyond. */
async function restOf({ statements }: Cluster): Promise<Row> {
  const row = await statements
    .prepare<{ readonly balance: number }>('SELECT balance_micros AS balance FROM wallet')
    .get([])
  const balance = row?.balance ?? -1
  const isRight = balance >= 0 && balance < MICROS_PER_SECOND
  return ['balance at the end, micro-units: no second can be paid', String(balance), isRight]
}
