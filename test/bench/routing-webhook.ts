/**
 * The delay that a routing webhook adds to a call. Two programs that differ in the webhook alone
 * take turns with the same calls; the receiver is a process of its own, which answers after some
 * milliseconds. Then the receiver is away.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { spread } from './load/figures.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { numbersOf } from './load/options.ts'
import { cpuMicros } from './load/process-cpu.ts'
import { type LoadResult, placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'ms and CPU that a routing webhook adds to a call, in turns with none, and with its receiver away; ' +
  'arguments: rate=200 latency=20 seconds=15 turns=3 limit=200'

const usual = { rate: 200, latency: 20, seconds: 15, turns: 3, limit: 200 }

export async function run(words: readonly string[] = []): Promise<void> {
  const plan = numbersOf(words, usual)
  const { rate, latency, seconds, turns, limit } = plan
  const receiver = await startReceiver(latency)
  const nodes = [await startNode(), await startNode(), await startNode()]
  const seed = oneCustomer(nodes.map(({ port }) => port))
  const url = `http://127.0.0.1:${receiver.port}/`
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const routing_webhooks = [{ url, secret, timeout_ms: limit, fallback: 'continue' }]
  const settings = { LOG_LEVEL: 'error', WEBHOOK_PRIVATE_TARGETS: 'allow' }
  const without = await TollgateProcess.start(seed, settings)
  const asking = await TollgateProcess.start({ ...seed, routing_webhooks }, settings)
  const callsOf = (program: TollgateProcess): Promise<LoadResult> =>
    placeCalls(program.sipPort, rate, rate * seconds, caller)
  const measured = async (program: TollgateProcess): Promise<Figures> => {
    const before = cpuMicros([program.pid])
    const result = await callsOf(program)
    const micros = (cpuMicros([program.pid]) - before) / Math.max(1, result.succeeded)
    return { ...result, micros }
  }
  try {
    const taken = { without: [] as Figures[], asking: [] as Figures[] }
    const contestants = [
      { program: without, figures: taken.without },
      { program: asking, figures: taken.asking },
    ]
    for (const { program } of contestants) await callsOf(program)
    for (let turn = 0; turn < turns; turn += 1)
      for (const { program, figures } of turn % 2 === 0 ? contestants : contestants.toReversed()) {
        figures.push(await measured(program))
      }
    report('without a webhook', taken.without)
    report(`receiver with ${latency} ms`, taken.asking)
    receiver.process.kill()
    report('receiver away', [await measured(asking)])
    if (receiver.asked() === 0) console.log('  WRONG: no call was asked about')
  } finally {
    receiver.process.kill()
    await without.stop()
    await asking.stop()
    for (const node of nodes) await node.stop()
  }
}

type Figures = LoadResult & { readonly micros: number }

function report(name: string, figures: readonly Figures[]): void {
  const of = (value: (each: Figures) => number, digits = 0): string =>
    spread(figures.map(value), digits)
  const lost = figures.reduce((sum, { calls, succeeded }) => sum + calls - succeeded, 0)
  console.log(
    `  ${name}: setup p50 ${of(({ setupP50Ms }) => setupP50Ms, 1)} p99 ` +
      `${of(({ setupP99Ms }) => setupP99Ms, 1)} ms; ${of(({ micros }) => micros)} µs a call; ` +
      `${lost} calls lost`,
  )
}

/** It prints its port, then a line for each hundred questions. */
const program = (latencyMs: number): string => `
const { createServer } = require('node:http')
let asked = 0
const server = createServer((request, response) => {
  if (++asked % 100 === 0) console.log(asked)
  request.resume()
  request.on('end', () => setTimeout(() => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end('{"tags":{"score":"12"}}')
  }, ${latencyMs}))
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
`

interface Receiver {
  readonly process: ChildProcess
  readonly port: number
  readonly asked: () => number
}

async function startReceiver(latencyMs: number): Promise<Receiver> {
  const child = spawn(process.execPath, ['-e', program(latencyMs)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.stdout.once('data', (line: Buffer) => resolve(Number(line.toString())))
  })
  let asked = 0
  child.stdout.on(
    'data',
    (lines: Buffer) => (asked = Number(lines.toString().trim().split('\n').at(-1))),
  )
  return { process: child, port, asked: () => asked }
}
