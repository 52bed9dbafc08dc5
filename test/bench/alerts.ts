/**
 * The cost of alerts to calls. Two programs that differ in their alert rules alone take turns with
 * the same calls: one has none, the other a rule of each kind whose mail server is dead, and alerts
 * that are open.
 */
import assert from 'node:assert/strict'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { alertKinds, kindFacts } from '../../schema/contracts/alert-kinds.ts'
import { freePort } from '../support/free-port.ts'
import { eventually } from '../support/waiting.ts'
import { oneCustomer } from './load/one-customer.ts'
import { numbersOf } from './load/options.ts'
import { startNode } from './load/sipp-load.ts'
import { type Contestant, printComparison, takeTurns } from './load/turns.ts'

export const describe =
  'CPU and set-up of calls with a rule of each kind and a dead mail server, in turns with no rules; ' +
  'arguments: rate=100 seconds=10 rounds=4 warm=15 settle=1'

const usual = { rate: 100, seconds: 10, rounds: 4, warm: 15, settle: 1 }

export async function run(words: readonly string[] = []): Promise<void> {
  const { rate, ...plan } = numbersOf(words, usual)
  const nodes = [await startNode(), await startNode(), await startNode()]
  const seed = oneCustomer(nodes.map(({ port }) => port))
  const programs: TollgateProcess[] = []
  const start = async (more: object): Promise<TollgateProcess> => {
    const program = await TollgateProcess.start({ ...seed, ...more }, settings)
    programs.push(program)
    return program
  }
  try {
    const alerting = await start(await everyRule())
    const contestants = [
      contestant('a rule of each kind', alerting),
      contestant('no rules', await start({})),
    ]
    // What was measured in the first minute is told from then on.
    await eventually(() => assert(told(alerting).attempts > 0), 100_000)
    const rates = [rate]
    const turns = await takeTurns(contestants, { ...plan, rates }, ({ name }, result) => {
      if (result.succeeded !== result.calls) console.log(`  WRONG: calls have failed (${name})`)
    })
    printComparison(contestants, rates, turns)
    const { messages, attempts } = told(alerting)
    console.log(`  ${messages} messages, ${attempts} attempts to send them`)
  } finally {
    for (const program of programs) await program.stop()
    for (const node of nodes) await node.stop()
  }
}

interface Told {
  readonly messages: number
  readonly attempts: number
}

function told(program: TollgateProcess): Told {
  const [row] = program.query<Told>(
    'SELECT count(*) AS messages, coalesce(sum(attempts), 0) AS attempts FROM alert_message',
  )
  return row ?? { messages: 0, attempts: 0 }
}

const settings = { LOG_LEVEL: 'error', WEBHOOK_PRIVATE_TARGETS: 'allow' }

const contestant = (name: string, { sipPort, pid }: TollgateProcess): Contestant => ({
  name,
  sipPorts: [sipPort],
  parts: () => [[pid]],
})

/** Thresholds that the calls of the benchmark reach at once, where there are any. */
async function everyRule() {
  const smtp = { smtp_host: '127.0.0.1', smtp_port: await freePort(), smtp_tls: 'none' }
  const channel = { name: 'noc', kind: 'email', to: ['noc@example.com'], from: 'pbx@example.com' }
  // Only a database server has a standby.
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
