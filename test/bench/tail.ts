/**
 * Why some calls are set up late: what the event loop did without a pause, by cause, from a profile
 * in the order of time, and how long collections and writes took.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { freePort } from '../support/free-port.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually } from '../support/waiting.ts'
import { causesOf, type CauseOfWaits, spellsOf } from './load/busy-spells.ts'
import { Profiler, type Sample } from './load/cpu-profile.ts'
import { percentile } from './load/figures.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { numbersOf } from './load/options.ts'
import { capture, setupParts, type SetupParts } from './load/setup-parts.ts'
import { placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'what keeps calls waiting, by cause; arguments: rate=500 seconds=20 warmup=30 held=4 (ms) profile=yes|no'

const usual = { rate: 500, seconds: 20, warmup: 30, held: 4 }

/** The first that matches a function, from the innermost on, is the cause. */
const causes: readonly (readonly [cause: string, at: RegExp])[] = [
  ['idle', /^ \(idle\)$/],
  ['garbage collection', /^ \(garbage collector\)$/],
]

/** The first that matches anything on the stack. */
const outer: readonly (readonly [cause: string, at: RegExp])[] = [
  ['settlement', /call-writer|storage\/write-queue|charging\/ledger/],
  ['journal of calls', /schema\/journal\//],
  ['reports and totals', /control\/reports/],
  ['alerts, webhooks, retention', /control\/(alerts|webhooks|observe)/],
  ['probes', /engine\/dispatcher|engine\/trunks/],
  ['API', /control\//],
  ['calls', /engine\//],
  ['the database, elsewhere', /schema\/sql|better-sqlite3/],
]

function causeOf({ stack }: Sample): string {
  const [innermost = ''] = stack
  const found = causes.find(([, at]) => at.test(innermost))
  if (found !== undefined) return found[0]
  const isCommit = stack.some((frame) => frame.endsWith('sqlite-statements.ts transaction'))
  if (isCommit && innermost.endsWith(' exec')) return 'BEGIN and COMMIT of SQLite'
  return outer.find(([, at]) => stack.some((frame) => at.test(frame)))?.[0] ?? 'the runtime'
}

export async function run(words: readonly string[] = []): Promise<void> {
  const { rate, seconds, warmup, held } = numbersOf(words, usual)
  const nodes = [await startNode(), await startNode(), await startNode()]
  const inspectorPort = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'tail-'))
  const file = join(folder, 'waits.json')
  const watcher = pathToFileURL(join(import.meta.dirname, 'load', 'watch-waits.mjs')).href
  const tollgate = await TollgateProcess.start(oneCustomer(nodes.map(({ port }) => port)), {
    LOG_LEVEL: 'warn',
    NODE_OPTIONS: `--import=${watcher} --inspect=127.0.0.1:${inspectorPort}`,
    WAITS_FILE: file,
  })
  const load = (forSeconds: number) => placeCalls(tollgate.sipPort, rate, rate * forSeconds, caller)
  try {
    await load(warmup)
    await waitsOf(tollgate, file)
    const packets = join(folder, 'packets')
    const [{ setupP50Ms, setupP99Ms }] = await Promise.all([
      load(seconds),
      capture(tollgate.sipPort, seconds, packets),
    ])
    const { lag, waits } = await waitsOf(tollgate, file)
    console.log(
      `  ${rate}/s: set-up p50 ${setupP50Ms.toFixed(1)}, p99 ${setupP99Ms.toFixed(1)} ms; ` +
        `the loop was late by p50/p99/p99.9 ${lag.map((ms) => ms.toFixed(1)).join('/')} ms`,
    )
    printParts(setupParts(packets, tollgate.sipPort))
    for (const [name, all] of Object.entries(waits)) printWaits(name, all, seconds)
    if (words.includes('profile=no')) return
    const profiler = await Profiler.connect(inspectorPort)
    await profiler.start()
    await load(seconds)
    const samples = await profiler.stopInOrder()
    profiler.close()
    printCauses(causesOf(spellsOf(samples, causeOf), held), held)
  } finally {
    await tollgate.stop()
    for (const node of nodes) await node.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Waits {
  /** Milliseconds: p50, p99, p99.9. */
  readonly lag: readonly number[]
  readonly waits: Readonly<Record<string, readonly number[]>>
}

/** Since it was asked last. */
function waitsOf(program: TollgateProcess, file: string): Promise<Waits> {
  rmSync(file, { force: true })
  program.signal('SIGWINCH')
  return eventually(() => JSON.parse(readFileSync(file, 'utf8')) as Waits)
}

const parts: Readonly<Record<string, (of: SetupParts) => number>> = {
  'until the INVITE leaves': ({ inviteMs }) => inviteMs,
  'until the node has answered': ({ nodeMs }) => nodeMs,
  'until the 200 leaves': ({ answerMs }) => answerMs,
  'what Tollgate adds': ({ inviteMs, answerMs }) => inviteMs + answerMs,
  'all of it': ({ inviteMs, nodeMs, answerMs }) => inviteMs + nodeMs + answerMs,
}

function printParts(calls: readonly SetupParts[]): void {
  for (const [name, of] of Object.entries(parts)) {
    const at = (part: number): string => percentile(calls.map(of), part).toFixed(1)
    console.log(
      `  ${name.padEnd(28)} p50 ${at(0.5)}, p90 ${at(0.9)}, p99 ${at(0.99)}, p99.9 ${at(0.999)} ms`,
    )
  }
  console.log(`  of ${calls.length} calls`)
}

function printWaits(name: string, all: readonly number[], seconds: number): void {
  const at = (part: number): string => percentile(all, part).toFixed(1)
  console.log(
    `  ${name.padEnd(20)} ${(all.length / seconds).toFixed(1).padStart(6)} a second, ` +
      `p50 ${at(0.5)}, p90 ${at(0.9)}, p99 ${at(0.99)}, longest ${at(0.9999)} ms`,
  )
}

function printCauses(all: readonly CauseOfWaits[], held: number): void {
  console.log(`  of the time    held > ${held} ms    spells/s    p99 ms    longest ms    cause`)
  const percent = (part: number): string => (100 * part).toFixed(2)
  for (const each of all)
    console.log(
      `  ${percent(each.busyPart).padStart(9)} %  ${percent(each.heldPart).padStart(11)} %  ` +
        `${each.spellsPerSecond.toFixed(1).padStart(10)}  ${each.p99Ms.toFixed(1).padStart(8)}  ` +
        `${each.longestMs.toFixed(1).padStart(12)}    ${each.cause}`,
    )
}
