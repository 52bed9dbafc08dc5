/**
 * The cost of alerts to calls. Two programs that differ in their alert rules alone take turns with
 * the same calls: one has none, the other a rule of each kind whose mail server is dead, and alerts
 * that are open. Rules are on every event, so what is measured is the most that rules can cost.
 */
import { TollgateProcess } from '../support/tollgate-process.ts'
import { alertKinds, kindFacts } from '../../schema/contracts/alert-kinds.ts'
import { freePort } from '../support/free-port.ts'
import { spread } from './load/figures.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { numbersOf } from './load/options.ts'
import { cpuMicros } from './load/process-cpu.ts'
import { placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'CPU and set-up of calls with a rule of each kind and a dead mail server, in turns with no rules; ' +
  'arguments: rate=100 seconds=8 turns=4 warmup=5'

const usual = { rate: 100, seconds: 8, turns: 4, warmup: 5 }

interface CallFigures {
  /** CPU of a call. */
  readonly micros: number
  readonly setupP50Ms: number
  readonly setupP99Ms: number
}

export async function run(words: readonly string[] = []): Promise<void> {
  const { rate, seconds, turns, warmup } = numbersOf(words, usual)
  const nodes = [await startNode(), await startNode(), await startNode()]
  const seed = oneCustomer(nodes.map(({ port }) => port))
  const without = await TollgateProcess.start(seed, settings)
  const alerting = await TollgateProcess.start({ ...seed, ...(await everyRule()) }, settings)
  const contestants = [
    { program: without, figures: [] as CallFigures[] },
    { program: alerting, figures: [] as CallFigures[] },
  ] as const
  try {
    // What was measured in the first minute is told from then on.
    for (const { program } of contestants)
      await placeCalls(program.sipPort, rate * 4, rate * 4 * warmup, caller)
    for (let turn = 0; turn < turns; turn += 1)
      for (const { program, figures } of turn % 2 === 0 ? contestants : contestants.toReversed()) {
        const before = cpuMicros([program.pid])
        const result = await placeCalls(program.sipPort, rate, rate * seconds, caller)
        const micros = (cpuMicros([program.pid]) - before) / Math.max(1, result.succeeded)
        figures.push({ ...result, micros })
        if (result.succeeded !== result.calls) console.log('  WRONG: calls have failed')
      }
    for (const [index, { figures }] of contestants.entries())
      console.log(
        `  ${index === 0 ? 'no rules' : 'a rule of each kind'}: ` +
          `${spread(figures.map(({ micros }) => micros))} µs CPU a call, set-up p50 ` +
          `${spread(
            figures.map(({ setupP50Ms }) => setupP50Ms),
            1,
          )} ms, p99 ${spread(
            figures.map(({ setupP99Ms }) => setupP99Ms),
            1,
          )} ms`,
      )
    const [told] = alerting.query<{ readonly messages: number; readonly attempts: number }>(
      'SELECT count(*) AS messages, sum(attempts) AS attempts FROM alert_message',
    )
    console.log(`  ${told?.messages ?? 0} messages, ${told?.attempts ?? 0} attempts to send them`)
    if ((told?.attempts ?? 0) === 0) console.log('  WRONG: nothing was told')
  } finally {
    await without.stop()
    await alerting.stop()
    for (const node of nodes) await node.stop()
  }
}

const settings = { LOG_LEVEL: 'error', WEBHOOK_PRIVATE_TARGETS: 'allow' }

/** Thresholds that the calls of the benchmark reach at once, where there are any. */
async function everyRule() {
  const smtp = { smtp_host: '127.0.0.1', smtp_port: await freePort(), smtp_tls: 'none' }
  const channel = { name: 'noc', kind: 'email', to: ['noc@example.com'], from: 'pbx@example.com' }
  const kinds = alertKinds.filter((kind) => kind !== 'replication_lag')
  const rules = kinds.map((kind) => {
    const { measured } = kindFacts[kind]
    return {
      name: kind,
      on: kind,
      channels: ['noc'],
      group_seconds: 0,
      ...(measured && {
        threshold: measured.isBad === 'below' ? measured.most : Math.max(1, measured.least),
      }),
    }
  })
  return { alert_channels: [{ ...channel, ...smtp }], alert_rules: rules }
}
