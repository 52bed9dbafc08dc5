/**
 * How soon a dead node is out, and one that came back is in again. Real SIPp processes are stopped
 * (SIGSTOP) or killed at random moments; what counts is when the line of the log arrives here, from
 * a Tollgate with the probe settings as they are delivered.
 */
import { seededRandom } from '../support/seeded-random.ts'
import { SippNode } from '../support/sipp.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

export const describe =
  'ms until a dead node is out of its set, and back in; arguments: nodes=8 rounds=5 seed=1'

const limitMs = 2_000

interface Measured {
  readonly way: 'stopped' | 'killed'
  readonly outMs: number
  readonly backMs: number
}

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const count = Number(options.get('nodes') ?? 8)
  const rounds = Number(options.get('rounds') ?? 5)
  const seed = Number(options.get('seed') ?? 1)
  const victims = await Promise.all(Array.from({ length: count }, () => Victim.start()))
  const tollgate = await TollgateProcess.start(seedFor(victims.map(({ port }) => port)))
  tollgate.onLog = (line) => {
    for (const victim of victims) victim.noteLog(line)
  }
  try {
    const measured = await Promise.all(
      victims.map((victim, index) => measure(victim, rounds, seededRandom(seed * 1_000 + index))),
    )
    print(measured.flat(), seed)
  } finally {
    await tollgate.stop()
    for (const victim of victims) await victim.stop()
  }
}

async function measure(victim: Victim, rounds: number, random: () => number): Promise<Measured[]> {
  const measured: Measured[] = []
  for (let round = 0; round < rounds; round++) {
    // More than three probes long, so that the counters are at rest.
    await pause(1_600 + random() * 1_000)
    const way = random() < 0.5 ? 'stopped' : 'killed'
    const outMs = await victim.until('probing', () => victim.fail(way))
    await pause(random() * 1_000)
    const backMs = await victim.until('active', () => victim.recover(way))
    measured.push({ way, outMs, backMs })
  }
  return measured
}

/** One node that dies and comes back. */
class Victim {
  readonly port: number
  #node: SippNode
  #onState: (state: string) => void = () => undefined

  private constructor(node: SippNode) {
    this.#node = node
    this.port = node.port
  }

  static async start(): Promise<Victim> {
    return new Victim(await SippNode.start('nodes/answers.xml'))
  }

  async fail(way: Measured['way']): Promise<void> {
    if (way === 'stopped') this.#node.freeze()
    else await this.#node.stop()
  }

  async recover(way: Measured['way']): Promise<void> {
    if (way === 'stopped') this.#node.thaw()
    else this.#node = await SippNode.start('nodes/answers.xml', { port: this.port })
  }

  stop(): Promise<string> {
    return this.#node.stop()
  }

  noteLog(line: string): void {
    if (!line.includes(`127.0.0.1:${this.port};`)) return
    const state = /"msg":"node is (\w+)"/.exec(line)?.[1]
    if (state !== undefined) this.#onState(state)
  }

  /** Milliseconds from `change` to the line that names the new state. */
  async until(state: string, change: () => Promise<void>): Promise<number> {
    const seen = new Promise<number>((resolve) => {
      this.#onState = (reached) => {
        if (reached === state) resolve(performance.now())
      }
    })
    const from = performance.now()
    await change()
    return (await seen) - from
  }
}

function print(measured: readonly Measured[], seed: number): void {
  console.log(`  ${measured.length} deaths, seed ${seed}`)
  for (const way of ['stopped', 'killed'] as const) {
    const those = measured.filter((one) => one.way === way)
    printRow(
      `out, ${way}`,
      those.map(({ outMs }) => outMs),
    )
    printRow(
      `back, ${way}`,
      those.map(({ backMs }) => backMs),
    )
  }
  const out = sorted(measured.map(({ outMs }) => outMs))
  printRow('out, all', out)
  printRow(
    'back, all',
    measured.map(({ backMs }) => backMs),
  )
  console.log(`  out, each: ${out.map((ms) => ms.toFixed(0)).join(' ')}`)
  const late = out.filter((ms) => ms > limitMs).length
  console.log(
    late === 0
      ? `  all of ${out.length} were out within ${limitMs} ms`
      : `  ${late} of ${out.length} took longer than ${limitMs} ms  ← WRONG`,
  )
}

function printRow(name: string, values: readonly number[]): void {
  if (values.length === 0) return
  const ordered = sorted(values)
  const at = (part: number) =>
    (ordered[Math.min(ordered.length - 1, Math.floor(ordered.length * part))] ?? 0).toFixed(0)
  console.log(
    `  ${name.padEnd(14)} n=${String(values.length).padStart(3)}  min ${at(0)}  p50 ${at(0.5)}  p90 ${at(0.9)}  p99 ${at(0.99)}  max ${at(1)} ms`,
  )
}

const sorted = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b)

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const seedFor = (ports: readonly number[]): object => ({
  dispatcher: [
    {
      endpoint_name: 'pbx',
      set_id: 1,
      algorithm: 8,
      nodes: ports.map((port) => ({ host: '127.0.0.1', internal_port: port })),
    },
  ],
})
