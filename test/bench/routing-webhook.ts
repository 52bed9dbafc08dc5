/**
 * What a routing webhook adds to a call: questions at a steady rate to a receiver in a process of
 * its own, which answers after some milliseconds, then with the receiver away.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { RoutingWebhooks } from '../../engine/hooks/webhook/routing-webhooks.ts'
import type { HookCall } from '../../schema/contracts/hooks.ts'
import { percentile } from './load/figures.ts'
import { numbersOf } from './load/options.ts'

export const describe =
  'ms that a routing webhook adds to a call; arguments: rate=200 latency=20 seconds=20 limit=200'

/** Milliseconds of calls before the measurement. */
const WARM_UP_MS = 2_000

export async function run(words: readonly string[] = []): Promise<void> {
  const usual = { rate: 200, latency: 20, seconds: 20, limit: 200 }
  const { rate, latency, seconds, limit } = numbersOf(words, usual)
  const receiver = await startReceiver(latency)
  const webhooks = await open(receiver.port, limit)
  try {
    await askSteadily(webhooks, rate, WARM_UP_MS)
    report(
      `${rate}/s, receiver with ${latency} ms`,
      await askSteadily(webhooks, rate, seconds * 1_000),
    )
    receiver.process.kill()
    report('receiver away', await askSteadily(webhooks, rate, 5_000))
  } finally {
    receiver.process.kill()
    webhooks.stop()
  }
}

interface Answered {
  readonly ms: number
  readonly kind: string
}

/** Asks at a steady rate, whatever the answers take. */
async function askSteadily(
  webhooks: RoutingWebhooks,
  rate: number,
  durationMs: number,
): Promise<readonly Answered[]> {
  const begin = performance.now()
  const waiting: Promise<Answered>[] = []
  while (performance.now() - begin < durationMs) {
    const due = ((performance.now() - begin) / 1_000) * rate
    while (waiting.length < due) waiting.push(askOnce(webhooks, waiting.length))
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  return Promise.all(waiting)
}

async function askOnce(webhooks: RoutingWebhooks, index: number): Promise<Answered> {
  const since = performance.now()
  const { kind } = await webhooks.ask('onInvite', callOf(index))
  return { ms: performance.now() - since, kind }
}

function report(what: string, answers: readonly Answered[]): void {
  const times = answers.map(({ ms }) => ms)
  const at = (part: number): string => percentile(times, part).toFixed(1)
  const of = (wanted: string): number => answers.filter(({ kind }) => kind === wanted).length
  const kinds = `${of('decided')} decided, ${of('failed')} failed`
  console.log(`  ${what}: p50 ${at(0.5)} p99 ${at(0.99)} most ${at(1)} ms; ${kinds}`)
}

async function open(port: number, timeoutMs: number): Promise<RoutingWebhooks> {
  const webhooks = new RoutingWebhooks({
    load: async () => [
      {
        id: 1,
        tenantId: null,
        url: `http://127.0.0.1:${port}/`,
        carrierId: null,
        setId: null,
        timeoutMs,
        fallback: 'continue',
        cacheSeconds: 0,
        cacheKey: ['from', 'to'],
        isEnabled: true,
        secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
        previous: null,
      },
    ],
    setOfNode: () => undefined,
    watch: () => undefined,
    resolve: () => Promise.resolve([]),
    allowPrivate: true,
    now: () => Date.now(),
    steadyNow: () => performance.now(),
    schedule: (work, delayMs) => {
      const timer = setTimeout(work, delayMs)
      return () => clearTimeout(timer)
    },
    newUuid: () => crypto.randomUUID(),
    log: (_, message, fields) => console.log(`  ${message}: ${JSON.stringify(fields)}`),
  })
  await webhooks.reload()
  return webhooks
}

const program = (latencyMs: number): string => `
const { createServer } = require('node:http')
const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => setTimeout(() => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end('{"tags":{"score":"12"}}')
  }, ${latencyMs}))
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
`

async function startReceiver(
  latencyMs: number,
): Promise<{ readonly process: ChildProcess; readonly port: number }> {
  const child = spawn(process.execPath, ['-e', program(latencyMs)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.stdout.once('data', (line: Buffer) => resolve(Number(line.toString())))
  })
  return { process: child, port }
}

const callOf = (index: number): HookCall => ({
  callUuid: `call-${index}`,
  callId: `call-${index}@198.51.100.7`,
  from: '4930100',
  fromName: null,
  to: String(49_000_000 + index),
  domain: 'acme.example',
  source: {
    kind: 'trusted',
    address: '198.51.100.7',
    port: 5060,
    id: null,
    name: null,
    tenantId: null,
  },
  tenantId: null,
  headers: { 'user-agent': 'bench' },
})
