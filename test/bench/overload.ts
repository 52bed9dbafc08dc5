/**
 * What becomes of calls beyond what the machine can carry: the rest should be refused at once, and as
 * many as before should succeed. SIPp callers and three SIPp nodes around a started process.
 */
import { TollgateProcess } from '../support/tollgate-process.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { cpuMicros } from './load/process-cpu.ts'
import { placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'calls beyond the highest rate: what becomes of them, and what the rest costs; arguments: rates=400,800,1200,1600 seconds=10'

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const rates = (options.get('rates') ?? '400,800,1200,1600').split(',').map(Number)
  const seconds = Number(options.get('seconds') ?? 10)
  const nodes = [await startNode(), await startNode(), await startNode()]
  const tollgate = await TollgateProcess.start(oneCustomer(nodes.map(({ port }) => port)), {
    LOG_LEVEL: 'warn',
  })
  try {
    await placeCalls(tollgate.sipPort, 200, 2_000, caller)
    console.log(
      '  offered/s  succeeded/s  refused/s  failed/s  retrans  setup p50/p99 ms  CPU µs/succeeded call',
    )
    let peak = 0
    let last = 0
    for (const rate of rates) {
      const startedAt = performance.now()
      const before = cpuMicros([tollgate.pid])
      const result = await placeCalls(tollgate.sipPort, rate, rate * seconds, caller)
      const took = Math.max(seconds, Math.min((performance.now() - startedAt) / 1_000, 2 * seconds))
      const { calls, succeeded, refused } = result
      const perSecond = (count: number): string => (count / seconds).toFixed(0)
      last = succeeded / took
      peak = Math.max(peak, last)
      const micros = (cpuMicros([tollgate.pid]) - before) / Math.max(1, succeeded)
      const delays = `${result.setupP50Ms.toFixed(1)}/${result.setupP99Ms.toFixed(1)}`
      console.log(
        `  ${String(rate).padStart(9)}  ${perSecond(succeeded).padStart(11)}  ${perSecond(refused).padStart(9)}` +
          `  ${perSecond(calls - succeeded - refused).padStart(8)}  ${String(result.retransmissions).padStart(7)}  ${delays.padStart(16)}  ${micros.toFixed(0).padStart(21)}`,
      )
    }
    console.log(`  the last rate reaches ${((100 * last) / peak).toFixed(0)} % of the best one`)
  } finally {
    await tollgate.stop()
    for (const node of nodes) await node.stop()
  }
}
