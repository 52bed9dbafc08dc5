/**
 * The cost of a bridged call for the SIP server alone: SIPp calls a drachtio-srf application in a process of its own,
 * which calls a SIPp node. The CPU time of the server's process counts. A drachtio-server, if there is one, takes turns with it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { freePort } from '../support/free-port.ts'
import { spread } from './load/figures.ts'
import { cpuMicros } from './load/process-cpu.ts'
import { placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'CPU of the SIP server per bridged call, beside drachtio-server; ' +
  'arguments: rate=500 seconds=15 turns=3 warmup=10 drachtio=/path/to/drachtio file=/path/to/drachtio.conf.xml'

const secret = 'cymru'

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const rate = Number(options.get('rate') ?? 500)
  const seconds = Number(options.get('seconds') ?? 15)
  const turns = Number(options.get('turns') ?? 3)
  const warmup = Number(options.get('warmup') ?? 10)
  const binary = options.get('drachtio')
  const file = options.get('file') ?? '/etc/drachtio.conf.xml'
  const node = await startNode()
  const contestants = [await startContestant('tollgate', tollgateWords, node.port)]
  try {
    if (binary !== undefined)
      contestants.push(
        await startContestant('drachtio-server', drachtioWords(binary, file), node.port),
      )
    for (const { sipPort } of contestants) await placeCalls(sipPort, rate, rate * warmup, '1')
    const micros = new Map<string, number[]>()
    for (let turn = 1; turn <= turns; turn++)
      for (const contestant of contestants) {
        const measured = await measure(contestant, rate, rate * seconds)
        micros.set(contestant.name, [...(micros.get(contestant.name) ?? []), measured])
      }
    for (const [name, figures] of micros)
      console.log(`  ${name}: ${spread(figures)} µs of CPU per call`)
  } finally {
    for (const { stop } of contestants) await stop()
    await node.stop()
  }
}

interface Contestant {
  readonly name: string
  readonly sipPort: number
  readonly pid: number
  readonly stop: () => Promise<void>
}

type WordsFor = (sip: number, admin: number) => readonly string[]

const tollgateWords: WordsFor = (sip, admin) => [
  process.execPath,
  'dist/main.js',
  'sip-server',
  '--listen',
  `udp/127.0.0.1:${sip}`,
  '--admin',
  `127.0.0.1:${admin}`,
  '--secret',
  secret,
]

const drachtioWords =
  (binary: string, file: string): WordsFor =>
  (sip, admin) => [
    binary,
    '--file',
    file,
    '--noconfig',
    '--address',
    '127.0.0.1',
    '--port',
    String(admin),
    '--secret',
    secret,
    '--contact',
    `sip:127.0.0.1:${sip};transport=udp`,
    '--loglevel',
    'error',
    '--sofia-loglevel',
    '0',
  ]

async function startContestant(
  name: string,
  wordsFor: WordsFor,
  nodePort: number,
): Promise<Contestant> {
  const [sipPort, admin] = [await freePort(), await freePort()]
  const [program = '', ...words] = wordsFor(sipPort, admin)
  const environment = { ...process.env, LOG_LEVEL: 'warn' }
  const server = spawn(program, words, { stdio: 'ignore', env: environment })
  await once(server, 'spawn')
  const callee = `sip:15550002222@127.0.0.1:${nodePort}`
  const application = spawn(
    process.execPath,
    ['test/bench/load/b2bua.mjs', '127.0.0.1', String(admin), secret, callee],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  // Without its server the application would wait for ever.
  const onExit = (): void => void application.kill('SIGKILL')
  server.once('exit', onExit)
  const lines = createInterface({ input: application.stdout })
  let isReady = false
  for await (const line of lines) {
    isReady = line === 'ready'
    if (isReady) break
  }
  server.off('exit', onExit)
  if (!isReady) throw new Error(`${name} does not serve its application`)
  application.stdout.resume()
  const stop = async (): Promise<void> => {
    for (const child of [application, server]) await end(child)
  }
  return { name, sipPort, pid: server.pid ?? 0, stop }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

async function measure(
  { name, sipPort, pid }: Contestant,
  rate: number,
  calls: number,
): Promise<number> {
  const before = cpuMicros([pid])
  const { succeeded, retransmissions, setupP50Ms } = await placeCalls(sipPort, rate, calls, '1')
  const micros = (cpuMicros([pid]) - before) / Math.max(1, succeeded)
  console.log(
    `  ${name}: ${succeeded} of ${calls} calls at ${rate}/s, ${retransmissions} copies, ` +
      `set-up ${setupP50Ms.toFixed(0)} ms, ${micros.toFixed(0)} µs`,
  )
  return micros
}
