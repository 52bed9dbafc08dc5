/**
 * The cost of asking a file of hooks. Two programs that differ in `HOOKS` alone take turns with the
 * same calls: the file decides each call from a table in memory. Then a program each has a file that
 * hangs, throws, leaks or ends its thread in one of 500 calls, and its event loop is watched.
 *
 * A question and its answer wake two sleeping threads: 55 to 65 µs at 500/s, before any code of
 * ours. Tried without gain, each in turns with what stands: JSON text in place of a cloned object;
 * a message channel of its own in place of the worker's; waiting at most 0.3 ms by `Atomics.wait`
 * for an answer that is then read at once. By profile the rest is 45 µs in the main thread (tags in
 * record and journal, the note of the trace) and 22 µs in the file's.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { median, spread } from './load/figures.ts'
import { LoopWatch } from './load/loop-lag.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { numbersOf } from './load/options.ts'
import { cpuMicros } from './load/process-cpu.ts'
import { type LoadResult, placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'CPU and delay that onInvite adds to a call, in turns with no hooks, and the event loop beside a file that ' +
  'hangs, throws, leaks or exits; arguments: rate=500 seconds=15 turns=5 warmup=20'

const usual = { rate: 500, seconds: 15, turns: 5, warmup: 20 }

const table = `const table = new Map(Array.from({ length: 10_000 }, (_, n) => ['+4930' + n, 'office ' + n]))
export const onInvite = ({ to }) => ({ tags: { office: table.get(to) ?? 'none' } })
`

const faults: Readonly<Record<string, string>> = {
  hangs: 'for (;;);',
  throws: "throw new Error('no such office')",
  leaks: 'for (const all = []; ; ) all.push(new Array(100_000).fill(calls))',
  exits: 'process.exit(1)',
}

const faulty = (fault: string): string => `let calls = 0
export const onInvite = () => { calls += 1; if (calls % 500 === 0) { ${fault} } }
`

export async function run(words: readonly string[] = []): Promise<void> {
  const plan = numbersOf(words, usual)
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-hooks-'))
  const fileOf = (name: string, text: string): string => {
    const file = join(folder, `${name}.mjs`)
    writeFileSync(file, text)
    return file
  }
  const nodes = [await startNode(), await startNode(), await startNode()]
  const ports = nodes.map(({ port }) => port)
  try {
    await compare(ports, fileOf('table', table), plan)
    for (const [name, fault] of Object.entries(faults))
      await besideFault(ports, name, fileOf(name, faulty(fault)), plan)
  } finally {
    for (const node of nodes) await node.stop()
    rmSync(folder, { recursive: true })
  }
}

type Plan = typeof usual

interface Figures {
  /** CPU of a call. */
  readonly micros: number
  readonly setupP99Ms: number
}

async function compare(ports: readonly number[], file: string, plan: Plan): Promise<void> {
  const { rate, seconds, turns, warmup } = plan
  const seed = oneCustomer(ports)
  const without = await TollgateProcess.start(seed, { LOG_LEVEL: 'warn' })
  const asking = await TollgateProcess.start(seed, { LOG_LEVEL: 'warn', HOOKS: file })
  const taken = { without: [] as Figures[], asking: [] as Figures[] }
  try {
    const contestants = [
      { program: without, figures: taken.without },
      { program: asking, figures: taken.asking },
    ]
    for (const { program } of contestants)
      await placeCalls(program.sipPort, rate, rate * warmup, caller)
    for (let turn = 0; turn < turns; turn += 1)
      for (const { program, figures } of turn % 2 === 0 ? contestants : contestants.toReversed()) {
        const before = cpuMicros([program.pid])
        const result = await placeCalls(program.sipPort, rate, rate * seconds, caller)
        const micros = (cpuMicros([program.pid]) - before) / Math.max(1, result.succeeded)
        figures.push({ micros, setupP99Ms: result.setupP99Ms })
      }
    const added = (of: (figures: Figures) => number): readonly number[] =>
      taken.asking.map((figures, turn) => {
        const other = taken.without[turn]
        return other === undefined ? 0 : of(figures) - of(other)
      })
    const asked = await tagged(asking)
    console.log(`  without hooks: ${spread(taken.without.map(({ micros }) => micros))} µs a call`)
    console.log(`  onInvite adds ${spread(added(({ micros }) => micros))} µs a call`)
    console.log(
      `  onInvite adds ${spread(
        added(({ setupP99Ms }) => setupP99Ms),
        1,
      )} ms to the p99`,
    )
    if (asked === 0) console.log('  WRONG: no call was asked about')
  } finally {
    await without.stop()
    await asking.stop()
  }
}

/** How many records have the tag of the file. */
async function tagged(program: TollgateProcess): Promise<number> {
  const [row] = program.query<{ readonly calls: number }>(
    "SELECT count(*) AS calls FROM cdr WHERE tags LIKE '%office%'",
  )
  return row?.calls ?? 0
}

async function besideFault(
  ports: readonly number[],
  name: string,
  file: string,
  { rate, seconds, warmup }: Plan,
): Promise<void> {
  const watch = new LoopWatch()
  const program = await TollgateProcess.start(oneCustomer(ports), {
    LOG_LEVEL: 'error',
    HOOKS: file,
    ...watch.environment,
  })
  try {
    await placeCalls(program.sipPort, rate, rate * warmup, caller)
    await watch.lagOf(program)
    const results: LoadResult[] = []
    for (let part = 0; part < 3; part += 1)
      results.push(await placeCalls(program.sipPort, rate, rate * seconds, caller))
    const lag = await watch.lagOf(program)
    const lost = results.reduce((sum, { calls, succeeded }) => sum + calls - succeeded, 0)
    console.log(
      `  a file that ${name}: loop lag p99 ${lag.p99Ms.toFixed(1)} ms, longest ` +
        `${lag.maxMs.toFixed(1)} ms; setup p99 ` +
        `${median(results.map(({ setupP99Ms }) => setupP99Ms)).toFixed(1)} ms; ${lost} calls lost`,
    )
  } finally {
    await program.stop()
    watch.close()
  }
}
