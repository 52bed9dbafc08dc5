/** Planned upgrades under load: the program takes over from itself again and again while SIPp places calls. */
import { setTimeout as pause } from 'node:timers/promises'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually } from '../support/waiting.ts'
import { spread } from './load/figures.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { placeCalls, startNode, type LoadResult } from './load/sipp-load.ts'

export const describe =
  'planned upgrades under load: failed calls, and retransmissions beside a run without upgrades; ' +
  'arguments: rate=300 upgrades=10'

/** The old process ends about 5 s after its last unanswered call. */
const SECONDS_FOR_ONE = 10
const SECONDS_WITHOUT = 20

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const rate = Number(options.get('rate') ?? 300)
  const upgrades = Number(options.get('upgrades') ?? 10)
  const calls = rate * upgrades * SECONDS_FOR_ONE
  const node = await startNode()
  const tollgate = await TollgateProcess.start(oneCustomer([node.port]), { LOG_LEVEL: 'warn' })
  const pids = [tollgate.pid]
  try {
    await placeCalls(tollgate.sipPort, rate, rate * 5, caller)
    report(
      'without upgrades',
      await placeCalls(tollgate.sipPort, rate, rate * SECONDS_WITHOUT, caller),
    )
    const placed = placeCalls(tollgate.sipPort, rate, calls, caller)
    const tookMs: number[] = []
    for (let number = 0; number < upgrades; number += 1) {
      await pause(2_000)
      tookMs.push(await upgrade(tollgate, pids))
    }
    report(`${upgrades} upgrades`, await placed)
    console.log(`  ms from the command to its answer: ${spread(tookMs)}`)
    await pause(1_000)
    const [row] = tollgate.query<{ answered: number }>(
      "SELECT count(*) AS answered FROM cdr WHERE disposition = 'ANSWERED'",
    )
    const { balance, ledger, debits } = tollgate.wallet('load')
    console.log(
      `  ${row?.answered} answered records, ${debits} debits, balance ${balance === ledger ? '=' : '≠'} ledger`,
    )
    for (const fault of tollgate.faults) console.log(`  fault: ${fault}`)
  } finally {
    for (const pid of pids) if (isAlive(pid)) process.kill(pid, 'SIGTERM')
    await gone(pids)
    await tollgate.stop()
    await node.stop()
  }
}

function report(name: string, result: LoadResult): void {
  const { calls, succeeded, retransmissions, setupP50Ms, setupP99Ms } = result
  console.log(
    `  ${name}: ${calls - succeeded} of ${calls} calls failed, ${retransmissions} retransmissions, ` +
      `set-up ${setupP50Ms} ms p50, ${setupP99Ms} ms p99`,
  )
}

/** Until the old process has ended. How long the command took. */
async function upgrade(tollgate: TollgateProcess, pids: number[]): Promise<number> {
  const from = performance.now()
  const answer = await tollgate.run(['upgrade'])
  const tookMs = performance.now() - from
  const [, pid] = /process (\d+) serves now/.exec(answer) ?? []
  await gone(pids)
  pids.push(Number(pid))
  return tookMs
}

const gone = (pids: readonly number[]): Promise<void> =>
  eventually(() => {
    const left = pids.filter(isAlive)
    if (left.length > 0) throw new Error(`still there: ${left.join(', ')}`)
  }, 60_000)

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
