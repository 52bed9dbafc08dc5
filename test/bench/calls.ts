/**
 * The cost of a billed call. SIPp callers and three SIPp nodes around a started process; CPU time
 * of that process is read from the operating system, so it does not depend on what else runs.
 */
import { TollgateProcess } from '../support/tollgate-process.ts'
import { startKamailio, whyNoKamailio } from './load/kamailio.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { cpuMicros, residentMegabytes } from './load/process-cpu.ts'
import { placeCalls, startNode, type LoadResult } from './load/sipp-load.ts'

export const describe =
  'CPU per billed call and the highest clean rate; arguments: rates=400,800 seconds=15 peer=no billed=yes|no|both'

/** A number of nobody: its calls are let through and cost nothing. */
const unknownCaller = '15559999999'

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const rates = (options.get('rates') ?? '200,400,600,800,1000,1200').split(',').map(Number)
  const seconds = Number(options.get('seconds') ?? 15)
  const nodes = [await startNode(), await startNode(), await startNode()]
  const ports = nodes.map(({ port }) => port)
  try {
    const billed = options.get('billed') ?? 'yes'
    if (billed === 'both') return await compare(ports, rates, seconds)
    const own = await measureOwn(ports, rates, seconds, billed === 'yes')
    if (options.get('peer') === 'no') return
    const missing = whyNoKamailio()
    if (missing === undefined) await measurePeer(ports, rates, seconds, own)
    else console.log(`${missing}: no peer figures`)
  } finally {
    for (const node of nodes) await node.stop()
  }
}

/** CPU µs per call by rate. */
type Figures = ReadonlyMap<number, number>

async function measureOwn(
  nodePorts: readonly number[],
  rates: readonly number[],
  seconds: number,
  isBilled: boolean,
): Promise<Figures> {
  const tollgate = await TollgateProcess.start(oneCustomer(nodePorts), {
    LOG_LEVEL: 'warn',
    UNKNOWN_CALLER: isBilled ? 'deny' : 'allow',
  })
  const from = isBilled ? caller : unknownCaller
  const figures = new Map<number, number>()
  let stored = 0
  let cleanRate = 0
  try {
    // The first calls are compiled while they run: they belong to no figure.
    stored += (await placeCalls(tollgate.sipPort, 200, 2_000, from)).succeeded
    console.log(
      '  rate  success  retrans  setup p50/p99 ms  CPU µs/call  resident MB  (tollgate, all in one process)',
    )
    for (const rate of rates) {
      const before = cpuMicros([tollgate.pid])
      const result = await placeCalls(tollgate.sipPort, rate, rate * seconds, from)
      const micros = (cpuMicros([tollgate.pid]) - before) / Math.max(1, result.succeeded)
      stored += result.succeeded
      figures.set(rate, micros)
      if (result.succeeded >= result.calls * 0.999) cleanRate = Math.max(cleanRate, rate)
      printRow(rate, result, micros.toFixed(0).padStart(11), residentMegabytes(tollgate.pid))
    }
    console.log(`  highest rate with 99.9 % success: ${cleanRate}/s`)
    if (isBilled) await checkMoney(tollgate, stored)
  } finally {
    await tollgate.stop()
  }
  return figures
}

/** What it costs to bill a call: the same load from a customer and from nobody, in turn and twice. */
async function compare(
  nodePorts: readonly number[],
  rates: readonly number[],
  seconds: number,
): Promise<void> {
  const runs: { readonly billed: Figures; readonly unbilled: Figures }[] = []
  for (let turn = 0; turn < 2; turn += 1)
    runs.push({
      unbilled: await measureOwn(nodePorts, rates, seconds, false),
      billed: await measureOwn(nodePorts, rates, seconds, true),
    })
  for (const rate of rates) {
    const best = (kind: 'billed' | 'unbilled') =>
      Math.min(...runs.map((figures) => figures[kind].get(rate) ?? Infinity))
    const [billed, unbilled] = [best('billed'), best('unbilled')]
    console.log(
      `  ${rate}/s: billed ${billed.toFixed(0)} µs, unbilled ${unbilled.toFixed(0)} µs, ` +
        `the difference is ${(billed - unbilled).toFixed(0)} µs a call`,
    )
  }
}

/** A figure counts only if every call was recorded and charged. */
async function checkMoney(tollgate: TollgateProcess, succeeded: number): Promise<void> {
  await settled(tollgate)
  // A call that ended in the millisecond of its answer lasted no second and costs nothing.
  const [row] = tollgate.query<{ answered: number; charged: number }>(
    `SELECT count(*) AS answered, sum(cost_micros > 0) AS charged
     FROM cdr WHERE disposition = 'ANSWERED'`,
  )
  const { balance, ledger, debits } = tollgate.wallet('load')
  const isRight = row !== undefined && row.answered >= succeeded && debits === row.charged
  console.log(
    `  ${row?.answered} answered records, ${row?.charged} with a price, ${debits} debits, balance ${balance === ledger ? '=' : '≠'} ledger` +
      (isRight && balance === ledger ? '' : `  ← WRONG: ${succeeded} calls succeeded`),
  )
}

/** Past the highest clean rate calls outlive SIPp by the 32 s after which a missing ACK ends them. */
async function settled(tollgate: TollgateProcess): Promise<void> {
  for (let wait = 0; wait < 60; wait++) {
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    if (tollgate.query('SELECT 1 FROM call_journal LIMIT 1').length === 0) return
  }
}

async function measurePeer(
  nodePorts: readonly number[],
  rates: readonly number[],
  seconds: number,
  own: Figures,
): Promise<void> {
  const peer = await startKamailio(nodePorts)
  try {
    await placeCalls(peer.sipPort, 200, 1_000, caller)
    console.log(
      '  rate  success  retrans  setup p50/p99 ms  CPU µs/call (proxy + charging)  tollgate/peer  (kamailio, http_client with keep-alive)',
    )
    for (const rate of rates) {
      const pids = peer.pids()
      const before = [cpuMicros(pids.proxy), cpuMicros(pids.charging)] as const
      const result = await placeCalls(peer.sipPort, rate, rate * seconds, caller)
      const calls = Math.max(1, result.succeeded)
      const proxy = (cpuMicros(pids.proxy) - before[0]) / calls
      const charging = (cpuMicros(pids.charging) - before[1]) / calls
      const ratio = ((own.get(rate) ?? 0) / (proxy + charging)).toFixed(2)
      printRow(
        rate,
        result,
        `${proxy.toFixed(0)} + ${charging.toFixed(0)} = ${(proxy + charging).toFixed(0)}  ${ratio}`,
      )
    }
  } finally {
    await peer.stop()
  }
}

function printRow(rate: number, result: LoadResult, cpu: string, megabytes?: number): void {
  const success = ((100 * result.succeeded) / result.calls).toFixed(2)
  const delays = `${result.setupP50Ms.toFixed(1)}/${result.setupP99Ms.toFixed(1)}`
  const memory = megabytes === undefined ? '' : `  ${megabytes.toFixed(0)}`
  console.log(
    `  ${String(rate).padStart(4)}  ${success.padStart(6)}%  ${String(result.retransmissions).padStart(7)}` +
      `  ${delays.padStart(16)}  ${cpu}${memory}`,
  )
}
