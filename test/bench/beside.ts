/**
 * How long calls take to be set up while the program does something else with all its might: exports,
 * the import of a deck, the making of blocks. SIPp, its nodes and Tollgate share the processors. The
 * reader of an export, which would be on another machine, runs when nothing else does (SCHED_IDLE).
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import { DAY_MS } from '../../schema/clock.ts'
import type { TollgateProcess } from '../support/tollgate-process.ts'
import { median, percentile, spread } from './load/figures.ts'
import { LoopWatch } from './load/loop-lag.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { optionsOf } from './load/options.ts'
import { cpuMicros } from './load/process-cpu.ts'
import { RECORD_DAYS, withRecords } from './load/record-program.ts'
import { SetupProbe } from './load/setup-probe.ts'
import { placeCalls, startNode } from './load/sipp-load.ts'
import { load } from './load/varied-records.ts'

const usual = {
  records: '1000000',
  rate: '200',
  seconds: '12',
  rounds: '3',
  works: 'quiet,csv,ndjson,json',
  lines: '500000',
  keep: '',
}

export const describe =
  'set-up of calls beside exports, deck (a deck of 500,000 lines) and blocks (of columns); ' +
  'rate=0: the work alone; keep=FILE uses the records of a run before, which deck and blocks ' +
  'change; arguments: ' +
  Object.entries(usual)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')

interface Beside {
  readonly tollgate: TollgateProcess
  readonly token: string
  readonly start: number
  readonly lines: number
}

/** Begins the work; the returned function ends it and says how much it was. */
type Work = (beside: Beside) => Promise<() => Promise<string>>

export async function run(words: readonly string[] = []): Promise<void> {
  const options = optionsOf(words, usual)
  const watch = new LoopWatch()
  const node = await startNode()
  const { records, keep } = options
  const place = { records: Number(records), database: 'sqlite', keep }
  try {
    await withRecords(
      place,
      oneCustomer([node.port]),
      (tollgate, start) => measureAll(tollgate, start, watch, options),
      watch.environment,
    )
  } finally {
    watch.close()
    await node.stop()
  }
}

async function measureAll(
  tollgate: TollgateProcess,
  start: number,
  watch: LoopWatch,
  options: typeof usual,
): Promise<void> {
  const [rate, seconds, rounds] = [options.rate, options.seconds, options.rounds].map(Number) as [
    number,
    number,
    number,
  ]
  const token = await tollgate.createKey('--name', `bench ${Date.now()}`, '--scopes', '*')
  const beside = { tollgate, token, start, lines: Number(options.lines) }
  const names = options.works.split(',')
  // The first calls are compiled while they run: they belong to no figure.
  if (rate > 0) await placeCalls(tollgate.sipPort, rate, rate * 5, caller)
  const taken = new Map<string, Figures[]>(names.map((name) => [name, []]))
  for (let round = 0; round < rounds; round += 1)
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const work = works[name]
      if (work === undefined) throw new Error(`there is no work "${name}"`)
      const end = await work(beside)
      const figures = await measure(tollgate, watch, rate, seconds)
      const said = await end()
      taken.get(name)?.push(figures)
      console.log(
        `  ${name}: ${said}set-up p50 ${figures.p50Ms.toFixed(1)}, p99 ` +
          `${figures.p99Ms.toFixed(1)} ms, by SIPp p99 ${figures.sippP99Ms.toFixed(0)} ms, loop ` +
          `p99 ${figures.lagP99Ms.toFixed(1)} (longest ${figures.lagMaxMs.toFixed(0)}) ms, CPU ` +
          `${figures.cores.toFixed(2)} cores, ${figures.lost} calls lost (load ${load()})`,
      )
    }
  const quiet = median(taken.get('quiet')?.map(({ p99Ms }) => p99Ms) ?? [])
  for (const [name, all] of taken) {
    const of = (pick: (each: Figures) => number) => spread(all.map(pick), 1)
    const p99 = median(all.map(({ p99Ms }) => p99Ms))
    console.log(
      `  ${name}: set-up p50 ${of((each) => each.p50Ms)}, p99 ${of((each) => each.p99Ms)} ms` +
        `${quiet > 0 ? ` (${(p99 / quiet).toFixed(1)} x quiet)` : ''}, by SIPp p99 ` +
        `${of((each) => each.sippP99Ms)} ms, loop p99 ${of((each) => each.lagP99Ms)} ms`,
    )
  }
}

interface Figures {
  readonly p50Ms: number
  readonly p99Ms: number
  /** Its clock moves in steps of 4 ms. */
  readonly sippP99Ms: number
  readonly lagP99Ms: number
  readonly lagMaxMs: number
  readonly cores: number
  readonly lost: number
}

/** Calls that are timed in fine steps, beside those of SIPp. */
const PROBES_PER_SECOND = 50

async function measure(
  tollgate: TollgateProcess,
  watch: LoopWatch,
  rate: number,
  seconds: number,
): Promise<Figures> {
  await watch.lagOf(tollgate)
  const cpu = cpuMicros([tollgate.pid])
  const begin = performance.now()
  const calls = rate > 0 ? placeCalls(tollgate.sipPort, rate, rate * seconds, caller) : undefined
  const delays = rate > 0 ? await probed(tollgate.sipPort, seconds) : []
  if (rate === 0) await pause(seconds * 1_000)
  const cores = (cpuMicros([tollgate.pid]) - cpu) / ((performance.now() - begin) * 1_000)
  const { p99Ms: lagP99Ms, maxMs: lagMaxMs } = await watch.lagOf(tollgate)
  const { setupP99Ms: sippP99Ms = 0, succeeded = 0 } = (await calls) ?? {}
  return {
    p50Ms: percentile(delays, 0.5),
    p99Ms: percentile(delays, 0.99),
    sippP99Ms,
    lagP99Ms,
    lagMaxMs,
    cores,
    lost: rate * seconds - succeeded,
  }
}

/** Milliseconds until each was answered. */
async function probed(port: number, seconds: number): Promise<readonly number[]> {
  const probe = await SetupProbe.open(caller)
  const placed: Promise<number>[] = []
  const end = performance.now() + seconds * 1_000
  while (performance.now() < end) {
    placed.push(probe.place(port).then(({ answeredMs }) => answeredMs))
    await pause(1_000 / PROBES_PER_SECOND)
  }
  const delays = await Promise.all(placed)
  probe.close()
  return delays
}

/** Days of one export: a tenth of the records. */
const EXPORTED_DAYS = 9

const reading =
  (type: string): Work =>
  async ({ tollgate, token, start }) => {
    const at = (day: number) => new Date(start + day * DAY_MS).toISOString()
    const from = Math.floor((RECORD_DAYS - EXPORTED_DAYS) / 2)
    const url =
      `http://127.0.0.1:${tollgate.apiPort}/api/v1/reports/cdrs?` +
      `start_date=${at(from)}&end_date=${at(from + EXPORTED_DAYS)}`
    const file = join(import.meta.dirname, 'load', 'export-reader.mjs')
    const words = ['--idle', '0', process.execPath, file, url, token, type]
    const reader = spawn('chrt', words, { stdio: ['pipe', 'pipe', 'inherit'] })
    await once(reader, 'spawn')
    return async () => {
      const closed = once(reader, 'close')
      reader.stdin.end()
      const said = await reader.stdout.toArray()
      await closed
      const { answers, lines, bytes, seconds } = JSON.parse(Buffer.concat(said).toString()) as {
        readonly answers: number
        readonly lines: number
        readonly bytes: number
        readonly seconds: number
      }
      const each = (amount: number, unit: number) => (amount / seconds / unit).toFixed(0)
      return `${answers} answers, ${each(lines, 1)} lines/s, ${each(bytes, 1e6)} MB/s, `
    }
  }

/** Imports of one deck after the other, all prices of which have changed, until it is ended. */
const importing: Work = async ({ tollgate, token, lines }) => {
  const headers = { authorization: `Bearer ${token}` }
  const base = `http://127.0.0.1:${tollgate.apiPort}/api/v1`
  const name = `deck ${Date.now()}`
  await fetch(`${base}/rate-plans`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ name }),
  })
  const mapping = JSON.stringify({ columns: { prefix: 'Code', rate_per_minute: 'Rate' } })
  const url = `${base}/rates/decks?${new URLSearchParams({ rate_plan: name, mapping }).toString()}`
  const over = new AbortController()
  const seconds: number[] = []
  const decks = [0, 1].map((more) => deckOf(lines, more))
  const imports = (async () => {
    for (let turn = 0; !over.signal.aborted; turn += 1) {
      const begin = performance.now()
      const answer = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'text/csv' },
        body: decks[turn % 2] ?? '',
      })
      if (!answer.ok) throw new Error(`deck: ${answer.status} ${await answer.text()}`)
      seconds.push((performance.now() - begin) / 1_000)
    }
  })()
  return async () => {
    over.abort()
    await imports
    return `${seconds.length} decks, ${spread(seconds, 1)} s each, `
  }
}

const deckOf = (lines: number, more: number): string =>
  `Code,Rate\n${Array.from(
    { length: lines },
    (_, n) => `${1_000_000 + n * 3},0.0${100 + more + (n % 800)}\n`,
  ).join('')}`

/** All blocks are made again, in the time that they take. */
const makingBlocks: Work = async ({ tollgate }) => {
  const path = `${tollgate.databasePath}.sums`
  const left = () =>
    withFile(path, (sqlite) =>
      sqlite.prepare<[], number>('SELECT sum(is_stale) FROM record_block').pluck().get(),
    ) ?? 0
  withFile(path, (sqlite) => sqlite.exec('UPDATE record_block SET is_stale = 1'))
  const all = left()
  while (left() === all) await pause(100)
  const [begin, first] = [performance.now(), left()]
  return () => {
    const made = first - left()
    const seconds = (performance.now() - begin) / 1_000
    return Promise.resolve(`${made} of ${first} blocks in ${seconds.toFixed(0)} s, `)
  }
}

function withFile<T>(path: string, use: (sqlite: Sqlite.Database) => T): T {
  const sqlite = new Sqlite(path, { fileMustExist: true, timeout: 5_000 })
  try {
    return use(sqlite)
  } finally {
    sqlite.close()
  }
}

const works: Readonly<Record<string, Work>> = {
  quiet: () => Promise.resolve(() => Promise.resolve('')),
  csv: reading('text/csv'),
  ndjson: reading('application/x-ndjson'),
  json: reading('application/json'),
  deck: importing,
  blocks: makingBlocks,
}
