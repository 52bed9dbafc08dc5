/**
 * What anchoring costs: CPU of the process per call whose media goes through a real rtpengine, beside the same calls
 * of a process that lets media bypass. The two take turns.
 */
import { RtpEngine } from '../support/rtpengine.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { median, spread } from './load/figures.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { cpuMicros } from './load/process-cpu.ts'
import { placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'CPU per call that is anchored at a relay, beside one that is not (at most 120 µs more); ' +
  'arguments: rate=300 seconds=8 turns=4 warmup=15'

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const rate = Number(options.get('rate') ?? 300)
  const seconds = Number(options.get('seconds') ?? 8)
  const turns = Number(options.get('turns') ?? 4)
  const warmup = Number(options.get('warmup') ?? 15)
  const engine = await RtpEngine.start({ words: ['--log-level=3'], shares: 8 })
  const nodes = await Promise.all([startNode(), startNode()])
  const start = (policy: string) =>
    TollgateProcess.start(oneCustomer(nodes.map(({ port }) => port)), {
      ...{ RTPENGINE: engine.setting, MEDIA_POLICY: policy, LOG_LEVEL: 'warn' },
    })
  const [bypass, anchor] = await Promise.all([start('bypass'), start('anchor')])
  const micros = { bypass: [] as number[], anchor: [] as number[], relay: [] as number[] }
  const delays = { bypass: [] as number[], anchor: [] as number[] }
  /** CPU per call of the process and of the relay. */
  const turnOf = async (tollgate: TollgateProcess, lasting: number) => {
    const pids = [[tollgate.pid], [engine.pid]]
    const before = pids.map(cpuMicros)
    const result = await placeCalls(tollgate.sipPort, rate, rate * lasting, caller)
    const [own = 0, relay = 0] = pids.map(
      (each, index) => (cpuMicros(each) - (before[index] ?? 0)) / Math.max(1, result.succeeded),
    )
    return { ...result, own, relay }
  }
  try {
    for (const tollgate of [bypass, anchor]) await turnOf(tollgate, warmup)
    for (let turn = 0; turn < turns; turn++)
      // Whichever is first goes second in the next turn.
      for (const name of turn % 2 === 0
        ? (['bypass', 'anchor'] as const)
        : (['anchor', 'bypass'] as const)) {
        const result = await turnOf(name === 'bypass' ? bypass : anchor, seconds)
        micros[name].push(result.own)
        delays[name].push(result.setupMeanMs)
        if (name === 'anchor') micros.relay.push(result.relay)
        if (result.succeeded < result.calls)
          console.log(`  ${name}: ${result.succeeded} of ${result.calls} calls`)
      }
    for (const name of ['bypass', 'anchor'] as const)
      console.log(
        `  ${name}: ${spread(micros[name])} µs per call, set up in ${median(delays[name]).toFixed(2)} ms`,
      )
    const more = micros.anchor.map((own, turn) => own - (micros.bypass[turn] ?? 0))
    console.log(`  more for an anchored call: ${spread(more)} µs at ${rate} calls/s`)
    console.log(`  the relay: ${spread(micros.relay)} µs per call`)
    console.log(`  ${(await engine.sessions()).length} sessions are left at the relay`)
  } finally {
    for (const process of [bypass, anchor]) await process.stop()
    for (const node of nodes) await node.stop()
    await engine.stop()
  }
}
