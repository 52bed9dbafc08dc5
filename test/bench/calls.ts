/**
 * The cost of a billed call. SIPp callers and three SIPp nodes around started processes; their CPU
 * time is read from the operating system, so it does not depend on what else runs. Tollgate and its
 * peer, both warmed up alike, take turns at each rate; the figures are medians with their spread.
 *
 * Tried without gain, µs a call: in turns at 500/s, which scatter by 6 %, or two programs at the
 * same moments at 250/s each (above 2,000), whose difference scatters by 1 %.
 * - `sendto` by FFI (koffi) in place of dgram, alone 5.5 beside 10.5 a datagram: 1,782 beside
 *   1,660; `sendmmsg` is no cheaper on loopback
 * - sockets read again only after 1 or 3 ms, which makes a third fewer wake-ups: 1,656 and 1,693
 *   beside 1,789, and a later 200
 * - `--single-threaded-gc`: as cheap as the flags of D133, but each marking stops calls for 100 ms
 * - V8 with larger inlining budgets, without Maglev, in large pages: 2,248 and 2,267 beside 2,231
 *   and 2,261; 1,758 beside 1,687
 * - replies of the SIP server to call control as microtasks in place of turns of the event loop:
 *   2,355 beside 2,306
 */
import { PostgresStatements } from '../../schema/sql/postgres-statements.ts'
import { freshDatabase, hasPostgres } from '../support/postgres.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually } from '../support/waiting.ts'
import { median, spread } from './load/figures.ts'
import { startKamailio, whyNoKamailio } from './load/kamailio.ts'
import { type LoopLag, LoopWatch } from './load/loop-lag.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { optionsOf } from './load/options.ts'
import { cpuMicros, residentMegabytes } from './load/process-cpu.ts'
import { placeCalls, startNode, type LoadResult } from './load/sipp-load.ts'

export const describe =
  'CPU per billed call beside Kamailio with a charging server, in turns, the highest clean rate, and how late ' +
  'the event loop is; ' +
  'arguments: rates=200,500,800,1000,1200 seconds=15 turns=3 warmup=30 settle=3 peer=yes|no database=sqlite|both ' +
  'nodes=1 (on PostgreSQL, which share the calls)'

const usual = {
  rates: '200,500,800,1000,1200',
  seconds: '15',
  turns: '3',
  /** Seconds of load before the first turn, the same for each contestant. */
  warmup: '30',
  /** Seconds of load at the head of each turn, which belong to no figure, of either side. */
  settle: '3',
  peer: 'yes',
  database: 'sqlite',
  nodes: '1',
}

interface Plan {
  readonly rates: readonly number[]
  readonly seconds: number
  readonly turns: number
  readonly warmup: number
  readonly settle: number
}

export async function run(words: readonly string[] = []): Promise<void> {
  const options = optionsOf(words, usual)
  const plan = {
    rates: options.rates.split(',').map(Number),
    seconds: Number(options.seconds),
    turns: Number(options.turns),
    warmup: Number(options.warmup),
    settle: Number(options.settle),
  }
  const nodes = [await startNode(), await startNode(), await startNode()]
  const ports = nodes.map(({ port }) => port)
  try {
    if (options.database === 'both') await compareDatabases(ports, plan, Number(options.nodes))
    else await comparePeer(ports, plan, options.peer === 'no')
  } finally {
    for (const node of nodes) await node.stop()
  }
}

/** One that takes its turn. */
interface Contestant {
  readonly name: string
  /** They get the same number of calls. */
  readonly sipPorts: readonly number[]
  /** Processes whose CPU is counted, by part. */
  readonly parts: () => readonly (readonly number[])[]
  /** The delays of its event loop since it was asked last. */
  readonly lag?: () => Promise<LoopLag>
}

interface Turn {
  readonly result: LoadResult
  /** CPU µs per succeeded call, by part. */
  readonly micros: readonly number[]
  readonly lag: LoopLag | undefined
}

async function comparePeer(
  nodePorts: readonly number[],
  plan: Plan,
  isAlone: boolean,
): Promise<void> {
  const missing = isAlone ? 'peer=no' : whyNoKamailio()
  if (missing !== undefined) console.log(`${missing}: no peer figures`)
  const watch = new LoopWatch()
  const tollgate = await startTollgate(nodePorts, watch.environment)
  const kamailio = missing === undefined ? await startKamailio(nodePorts) : undefined
  try {
    const contestants: Contestant[] = [
      { ...contestant('tollgate', tollgate), lag: () => watch.lagOf(tollgate) },
    ]
    if (kamailio !== undefined) {
      const parts = () => [kamailio.pids().proxy, kamailio.pids().charging]
      contestants.push({ name: 'kamailio', sipPorts: [kamailio.sipPort], parts })
    }
    let stored = 0
    const turns = await takeTurns(contestants, plan, ({ name }, { succeeded }) => {
      if (name === 'tollgate') stored += succeeded
    })
    printComparison(contestants, plan, turns)
    const megabytes = residentMegabytes(tollgate.pid).toFixed(0)
    console.log(`  tollgate: ${megabytes} MB resident after ${stored} calls`)
    await checkMoney(tollgate, stored)
  } finally {
    await kamailio?.stop()
    await tollgate.stop()
    watch.close()
  }
}

const startTollgate = (nodePorts: readonly number[], environment: Record<string, string> = {}) =>
  TollgateProcess.start(oneCustomer(nodePorts), { LOG_LEVEL: 'warn', ...environment })

const contestant = (name: string, ...instances: readonly TollgateProcess[]) => ({
  name,
  sipPorts: instances.map(({ sipPort }) => sipPort),
  parts: () => instances.map(({ pid }) => [pid]),
})

async function place({ sipPorts }: Contestant, rate: number, seconds: number): Promise<LoadResult> {
  const share = Math.ceil(rate / sipPorts.length)
  const results = await Promise.all(
    sipPorts.map((port) => placeCalls(port, share, share * seconds, caller)),
  )
  const sum = (of: (result: LoadResult) => number) => sumOf(results.map(of))
  const longest = (of: (result: LoadResult) => number) => Math.max(...results.map(of))
  return {
    calls: sum(({ calls }) => calls),
    succeeded: sum(({ succeeded }) => succeeded),
    refused: sum(({ refused }) => refused),
    retransmissions: sum(({ retransmissions }) => retransmissions),
    setupP50Ms: longest(({ setupP50Ms }) => setupP50Ms),
    setupP99Ms: longest(({ setupP99Ms }) => setupP99Ms),
  }
}

type Turns = ReadonlyMap<string, readonly Turn[]>

const keyOf = (name: string, rate: number): string => `${name} ${rate}`

const WARM_UP_RATE = 500

/** The order alternates, so that neither side always runs on a warmer machine. */
async function takeTurns(
  contestants: readonly Contestant[],
  { rates, seconds, turns, warmup, settle }: Plan,
  note: (contestant: Contestant, result: LoadResult) => void,
): Promise<Turns> {
  const taken = new Map<string, Turn[]>()
  // A process runs for months. The first calls are compiled while they run: they belong to no
  // figure.
  for (const each of contestants) note(each, await place(each, WARM_UP_RATE, warmup))
  console.log(
    '  rate  turn  success  retrans  setup p50/p99 ms  loop lag p50/p99/max ms  CPU µs/call',
  )
  for (const rate of rates)
    for (let turn = 0; turn < turns; turn += 1)
      for (const each of turn % 2 === 0 ? contestants : contestants.toReversed()) {
        // While the others had their turns it did nothing.
        note(each, await place(each, rate, settle))
        await each.lag?.()
        const before = each.parts().map(cpuMicros)
        const result = await place(each, rate, seconds)
        const calls = Math.max(1, result.succeeded)
        const micros = each
          .parts()
          .map((pids, part) => (cpuMicros(pids) - (before[part] ?? 0)) / calls)
        const taking = { result, micros, lag: await each.lag?.() }
        note(each, result)
        printTurn(rate, turn, each.name, taking)
        const key = keyOf(each.name, rate)
        taken.set(key, [...(taken.get(key) ?? []), taking])
      }
  return taken
}

function printTurn(rate: number, turn: number, name: string, { result, micros, lag }: Turn): void {
  const success = ((100 * result.succeeded) / result.calls).toFixed(2)
  const delays = `${result.setupP50Ms.toFixed(1)}/${result.setupP99Ms.toFixed(1)}`
  const lags = lag === undefined ? '-' : lagText([lag.p50Ms, lag.p99Ms, lag.maxMs])
  const parts = micros.map((part) => part.toFixed(0)).join(' + ')
  const sum = micros.length > 1 ? ` = ${sumOf(micros).toFixed(0)}` : ''
  console.log(
    `  ${String(rate).padStart(4)}  ${String(turn + 1).padStart(4)}  ${success.padStart(6)}%` +
      `  ${String(result.retransmissions).padStart(7)}  ${delays.padStart(16)}  ${lags.padStart(23)}  ${parts}${sum}  (${name})`,
  )
}

const lagText = (ms: readonly number[]): string => ms.map((each) => each.toFixed(1)).join('/')

/** The first contestant against each of the others. */
function printComparison(contestants: readonly Contestant[], { rates }: Plan, turns: Turns): void {
  const [own, ...others] = contestants
  const figures = ({ name }: Contestant, rate: number) => turns.get(keyOf(name, rate)) ?? []
  const isClean = ({ result }: Turn) => result.succeeded >= result.calls * 0.999
  for (const each of contestants) {
    console.log(`\n  ${each.name}: CPU µs per call, median (least to most)`)
    for (const rate of rates) {
      const sums = figures(each, rate).map(({ micros }) => sumOf(micros))
      const setup = figures(each, rate).map(({ result }) => result.setupP50Ms)
      const setupP99 = figures(each, rate).map(({ result }) => result.setupP99Ms)
      const lags = figures(each, rate).flatMap(({ lag }) => (lag ? [lag.p99Ms] : []))
      console.log(
        `  ${String(rate).padStart(4)}/s  ${spread(sums)}  setup p50 ${median(setup).toFixed(1)} ms, ` +
          `p99 ${spread(setupP99, 1)} ms${lags.length > 0 ? `  loop lag p99 ${spread(lags, 1)} ms` : ''}`,
      )
    }
    const clean = rates.filter((rate) => figures(each, rate).every(isClean))
    console.log(`  highest rate with 99.9 % success in every turn: ${Math.max(0, ...clean)}/s`)
  }
  if (own === undefined) return
  for (const other of others)
    for (const rate of rates) {
      const ratios = figures(own, rate).map(
        ({ micros }, turn) => sumOf(micros) / sumOf(figures(other, rate)[turn]?.micros ?? []),
      )
      console.log(`  ${rate}/s: ${own.name} / ${other.name} = ${spread(ratios, 2)}`)
    }
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)

/** The cost of instances on PostgreSQL: the server's own CPU time is not counted. */
async function compareDatabases(
  nodePorts: readonly number[],
  plan: Plan,
  nodes: number,
): Promise<void> {
  if (!hasPostgres) return console.log('  PostgreSQL is not installed')
  const { url, drop } = await freshDatabase()
  const environment = { DATABASE_URL: url, SECRET_KEY: 'A'.repeat(43) }
  const onServer: TollgateProcess[] = []
  while (onServer.length < nodes)
    onServer.push(
      await startTollgate(nodePorts, { ...environment, NODE_NAME: `bench-${onServer.length}` }),
    )
  const onFile = await startTollgate(nodePorts)
  try {
    const contestants = [contestant('PostgreSQL', ...onServer), contestant('SQLite', onFile)]
    const stored = new Map<string, number>()
    const turns = await takeTurns(contestants, plan, ({ name }, { succeeded }) => {
      stored.set(name, (stored.get(name) ?? 0) + succeeded)
    })
    printComparison(contestants, plan, turns)
    await checkMoney(onFile, stored.get('SQLite') ?? 0)
    for (const instance of onServer) await instance.terminate()
    await checkMoneyOnServer(url, stored.get('PostgreSQL') ?? 0)
  } finally {
    for (const instance of [onFile, ...onServer]) await instance.stop()
    await drop()
  }
}

const books = `
  SELECT count(*) AS answered, sum(CASE WHEN cost_micros > 0 THEN 1 ELSE 0 END) AS charged,
    (SELECT count(*) FROM ledger_entry WHERE kind = 'debit') AS debits,
    (SELECT sum(balance_micros) FROM wallet) - (SELECT sum(amount_micros) FROM ledger_entry) AS difference
  FROM cdr WHERE disposition = 'ANSWERED'`

type Books = Readonly<Record<'answered' | 'charged' | 'debits' | 'difference', number>>

/**
 * A figure counts only if every call was recorded and charged: however short one is, it costs a
 * second.
 */
function reportBooks(where: string, row: Books | undefined, succeeded: number): void {
  const isRight =
    row !== undefined &&
    row.charged === row.answered &&
    row.debits === row.answered &&
    row.answered >= succeeded &&
    row.difference === 0
  const verdict = isRight ? '' : `  ← WRONG: ${succeeded} calls succeeded`
  console.log(`  ${where}: ${JSON.stringify(row)}${verdict}`)
}

/** Once its instance has stopped in order. */
async function checkMoneyOnServer(url: string, succeeded: number): Promise<void> {
  const statements = new PostgresStatements({ url, connections: 1 })
  reportBooks('PostgreSQL', await statements.prepare<Books>(books).get([]), succeeded)
  await statements.close()
}

/**
 * Past the highest clean rate calls outlive SIPp by the 32 s after which a missing ACK ends them.
 */
async function checkMoney(tollgate: TollgateProcess, succeeded: number): Promise<void> {
  await eventually(() => {
    if (tollgate.countUnstored() > 0) throw new Error('calls go on')
  }, 60_000).catch(() => undefined)
  reportBooks('SQLite', tollgate.query<Books>(books)[0], succeeded)
}
