/**
 * The cost of a billed call. SIPp callers and three SIPp nodes around started processes; their CPU
 * time is read from the operating system, so it does not depend on what else runs. Tollgate and its
 * peers, all warmed up, take turns at each rate; the figures are medians with their spread (D522).
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
import { type PeerKind, type RunningPeer, startKamailio, whyNoKamailio } from './load/kamailio.ts'
import { LoopWatch } from './load/loop-lag.ts'
import { oneCustomer } from './load/one-customer.ts'
import { optionsOf } from './load/options.ts'
import { residentMegabytes } from './load/process-cpu.ts'
import { startNode } from './load/sipp-load.ts'
import { type Contestant, printComparison, takeTurns, type TurnPlan } from './load/turns.ts'

export const describe =
  'CPU per billed call beside Kamailio with a charging server (bare, and with the same promises), in turns, ' +
  'the highest clean rate, and how late the event loop is; ' +
  'arguments: rates=200,500,800,1000,1200 seconds=15 rounds=5 warm=30 settle=3 peer=both|bare|same|no ' +
  'database=sqlite|both nodes=1 (on PostgreSQL, which share the calls)'

const usual = {
  rates: '200,500,800,1000,1200',
  seconds: '15',
  rounds: '5',
  warm: '30',
  settle: '3',
  peer: 'both',
  database: 'sqlite',
  nodes: '1',
}

const peerKinds: ReadonlyMap<string, readonly PeerKind[]> = new Map([
  ['no', []],
  ['bare', ['bare']],
  ['same', ['same-job']],
  ['both', ['bare', 'same-job']],
])

export async function run(words: readonly string[] = []): Promise<void> {
  const options = optionsOf(words, usual)
  const plan = {
    rates: options.rates.split(',').map(Number),
    seconds: Number(options.seconds),
    rounds: Number(options.rounds),
    warm: Number(options.warm),
    settle: Number(options.settle),
  }
  const kinds = peerKinds.get(options.peer)
  if (kinds === undefined)
    return console.log(`  peer=${options.peer}: ${[...peerKinds.keys()].join(', ')}`)
  const nodes = [await startNode(), await startNode(), await startNode()]
  const ports = nodes.map(({ port }) => port)
  try {
    if (options.database === 'both') await compareDatabases(ports, plan, Number(options.nodes))
    else await comparePeers(ports, plan, kinds)
  } finally {
    for (const node of nodes) await node.stop()
  }
}

async function comparePeers(
  nodePorts: readonly number[],
  plan: TurnPlan,
  kinds: readonly PeerKind[],
): Promise<void> {
  const watch = new LoopWatch()
  const tollgate = await startTollgate(nodePorts, watch.environment)
  const peers: RunningPeer[] = []
  try {
    for (const kind of kinds) {
      const missing = whyNoKamailio(kind)
      if (missing === undefined) peers.push(await startKamailio(nodePorts, kind))
      else console.log(`  ${missing}: no figures of the peer (${kind})`)
    }
    const contestants: Contestant[] = [
      { ...contestant('tollgate', tollgate), lag: () => watch.lagOf(tollgate) },
      ...peers.map((peer) => ({ ...peer, sipPorts: [peer.sipPort], isPeer: true })),
    ]
    const stored = new Map<string, number>()
    const turns = await takeTurns(contestants, plan, ({ name }, { succeeded }) => {
      stored.set(name, (stored.get(name) ?? 0) + succeeded)
    })
    printComparison(contestants, plan.rates, turns)
    const own = stored.get('tollgate') ?? 0
    const megabytes = residentMegabytes(tollgate.pid).toFixed(0)
    console.log(`  tollgate: ${megabytes} MB resident after ${own} calls`)
    for (const { name, charged } of peers)
      console.log(`  ${name}: ${await charged()} charged of ${stored.get(name) ?? 0} calls`)
    await checkMoney(tollgate, own)
  } finally {
    for (const peer of peers) await peer.stop()
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

/** The cost of instances on PostgreSQL: the server's own CPU time is not counted. */
async function compareDatabases(
  nodePorts: readonly number[],
  plan: TurnPlan,
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
    printComparison(contestants, plan.rates, turns)
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
