/**
 * Restarts under load: the program ends and starts again and again on sockets that outlive it,
 * while SIPp places calls.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { rowsOfAbsences } from './load/away.ts'
import { spread } from './load/figures.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { numbersOf } from './load/options.ts'
import { reportRows } from './load/rows.ts'
import { placeCalls, startNode, type LoadResult } from './load/sipp-load.ts'

export const describe =
  'restarts under load, with the sockets of a service manager: failed calls, and retransmissions beside a run without ' +
  'restarts; parties that hang up between stop and start; arguments: rate=300 restarts=10 away=60'

const SECONDS_FOR_ONE = 10
const SECONDS_WITHOUT = 20

/** `restarts=0`: only what becomes of calls whose parties hang up between stop and start. */
export async function run(words: readonly string[] = []): Promise<void> {
  const { rate, restarts, away } = numbersOf(words, { rate: 300, restarts: 10, away: 60 })
  if (restarts > 0) await restartUnderLoad(rate, restarts)
  const ways = ['nobody', 'caller', 'callee', 'both'] as const
  reportRows(await rowsOfAbsences({ calls: away, ways, end: 'restart' }))
}

async function restartUnderLoad(rate: number, restarts: number): Promise<void> {
  const node = await startNode()
  const seed = oneCustomer([node.port])
  const settings = { LOG_LEVEL: 'warn' }
  const tollgate = await TollgateProcess.start(seed, settings, { isActivated: true })
  const place = (seconds: number): Promise<LoadResult> =>
    placeCalls(tollgate.sipPort, rate, rate * seconds, caller)
  try {
    await place(5)
    report('without restarts', await place(SECONDS_WITHOUT))
    const placed = place(restarts * SECONDS_FOR_ONE)
    const stopMs: number[] = []
    const startMs: number[] = []
    for (let number = 0; number < restarts; number += 1) {
      await pause(SECONDS_FOR_ONE * 500)
      const from = performance.now()
      await tollgate.terminate()
      const ended = performance.now()
      await tollgate.restart()
      stopMs.push(ended - from)
      startMs.push(performance.now() - ended)
    }
    report(`${restarts} restarts`, await placed)
    console.log(`  ms to the end: ${spread(stopMs)}; from there to ready: ${spread(startMs)}`)
    await pause(1_000)
    const [row] = tollgate.query<{ answered: number }>(
      "SELECT count(*) AS answered FROM cdr WHERE disposition = 'ANSWERED'",
    )
    const { balance, ledger, debits } = tollgate.wallet('load')
    console.log(
      `  ${row?.answered} answered records, ${debits} debits, balance ${balance === ledger ? '=' : '≠'} ledger`,
    )
    for (const fault of tollgate.faults) console.log(`  fault: ${fault}`)
    for (const line of tollgate.log.filter((line) => line.includes('"warn"')).slice(-20))
      console.log(`  ${line}`)
  } finally {
    await tollgate.stop()
    await node.stop()
  }
}

function report(name: string, result: LoadResult): void {
  const { calls, succeeded, refused, retransmissions, setupP50Ms, setupP99Ms } = result
  console.log(
    `  ${name}: ${calls - succeeded} of ${calls} calls failed (${refused} with 503), ` +
      `${retransmissions} retransmissions, set-up ${setupP50Ms} ms p50, ${setupP99Ms} ms p99`,
  )
}
