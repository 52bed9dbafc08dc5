/**
 * What a call costs in a program that has grown, beside an empty one: each kind of growth alone, then all
 * together. Both programs are warmed up alike and take turns with the same calls; figures are medians.
 *
 * What a program uses without calls (probes of its nodes, live calls that go on) is told apart and taken off
 * each turn by the second: it grows with what there is, not with the calls that are placed. It is measured at
 * the end, when no call is left of which a timer could run. That flatters a little, because a probe that finds
 * the program awake costs less: the figures that nothing is taken off are printed, too.
 */
import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HttpLoad } from '../support/bench/http-load.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { median, spread } from './load/figures.ts'
import { issueKeys } from './load/many-keys.ts'
import { type ManyNodes, startNodes } from './load/many-nodes.ts'
import { fillRecords } from './load/many-records.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { cpuMicros, residentMegabytes } from './load/process-cpu.ts'
import { type HeldCalls, holdCalls, type LoadResult, placeCalls } from './load/sipp-load.ts'

export const describe =
  'CPU per call and set-up delay with live calls, nodes, rates, keys and records, beside an empty system; ' +
  'arguments: kinds=live,nodes,rates,keys,records,all live=10000 nodes=1000 rates=100000 keys=10000 ' +
  'records=10000000 rate=400 seconds=8 turns=4 folder= (where the filled database is kept)'

const kinds = ['live', 'nodes', 'rates', 'keys', 'records'] as const
type Kind = (typeof kinds)[number]
type Size = Readonly<Record<Kind, number>>

const full: Size = { live: 10_000, nodes: 1_000, rates: 100_000, keys: 10_000, records: 10_000_000 }
const nothing: Size = { live: 0, nodes: 3, rates: 0, keys: 16, records: 0 }

/** Connections to the API. */
const CONNECTIONS = 16
/** After so long nothing is left of a call that has ended. */
const CALL_IS_GONE_MS = 34_000
const IDLE_MS = 6_000
const ASKING_MS = 2_000
/** So long it takes until all live calls have begun: their minutes end one after the other, too. */
const HOLDING_SECONDS = 60
const MOST_GROWTH = 1.1

interface Plan {
  readonly rate: number
  readonly seconds: number
  readonly turns: number
  /** Of the databases. */
  readonly folder: string
  readonly nodes: ManyNodes
}

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const number = (name: string, standard: number) => Number(options.get(name) ?? standard)
  const size = Object.fromEntries(kinds.map((kind) => [kind, number(kind, full[kind])])) as Size
  const wanted = (options.get('kinds') ?? [...kinds, 'all'].join(',')).split(',')
  const kept = options.get('folder')
  const folder = kept ?? mkdtempSync(join(tmpdir(), 'tollgate-growth-'))
  mkdirSync(folder, { recursive: true })
  const nodes = await startNodes(Math.max(size.nodes, nothing.nodes))
  const plan = { rate: number('rate', 400), seconds: number('seconds', 8), folder, nodes }
  const rows: string[] = []
  try {
    for (const name of wanted) {
      const grown = name === 'all' ? size : { ...nothing, [name]: size[name as Kind] }
      rows.push(await compare(name, grown, { ...plan, turns: number('turns', 4) }))
    }
  } finally {
    nodes.stop()
    if (kept === undefined) rmSync(folder, { recursive: true, force: true })
  }
  console.log(
    `\n  at ${plan.rate} calls/s; empty → grown; medians (least to most of the ratios); ` +
      'without what is used without calls, and with it',
  )
  for (const row of rows) console.log(row)
}

async function compare(name: string, size: Size, plan: Plan): Promise<string> {
  const empty = await Program.start('empty', nothing, plan)
  const grown = await Program.start(name, size, plan).catch(async (error: unknown) => {
    await empty.stop()
    throw error
  })
  try {
    const both = [empty, grown]
    // The first calls are compiled while they run: they belong to no figure.
    for (const program of both) await program.warmUp()
    for (let turn = 0; turn < plan.turns; turn += 1)
      for (const program of turn % 2 === 0 ? both : both.toReversed()) await program.takeTurn()
    await pause(CALL_IS_GONE_MS)
    await Promise.all(both.map((program) => program.rest()))
    for (const program of both) await program.ask()
    await grown.tellLive(size.live)
    return rowOf(name, empty, grown)
  } finally {
    await grown.stop()
    await empty.stop()
  }
}

interface Turn {
  readonly result: LoadResult
  readonly cpuMicros: number
  readonly seconds: number
}

class Program {
  readonly #tollgate: TollgateProcess
  readonly #plan: Plan
  readonly #tokens: readonly string[]
  readonly #folder: string
  readonly #name: string
  readonly #liveCalls: HeldCalls | undefined
  /** The record before the first of this run. */
  readonly #lastRecord: number
  readonly #turns: Turn[] = []
  idleMicrosPerSecond = 0
  microsPerRequest = 0

  private constructor(
    name: string,
    tollgate: TollgateProcess,
    plan: Plan,
    folder: string,
    tokens: readonly string[],
    liveCalls: HeldCalls | undefined,
    lastRecord: number,
  ) {
    this.#name = name
    this.#tollgate = tollgate
    this.#plan = plan
    this.#folder = folder
    this.#tokens = tokens
    this.#liveCalls = liveCalls
    this.#lastRecord = lastRecord
  }

  static async start(name: string, size: Size, plan: Plan): Promise<Program> {
    const folder = mkdtempSync(join(plan.folder, `${name}-`))
    const path = join(folder, 'tollgate.db')
    if (size.records > 0) copyRecords(size.records, plan.folder, path)
    const tokens = await issueKeys(path, size.keys)
    const tollgate = await TollgateProcess.start(seedOf(size, plan.nodes.ports), {
      DATABASE_PATH: path,
      LOG_LEVEL: 'warn',
      DRAIN_SECONDS: '0',
      CDR_RETENTION_DAYS: '0',
    })
    const live =
      size.live === 0
        ? undefined
        : await holdCalls(tollgate.sipPort, size.live / HOLDING_SECONDS, size.live, caller)
    const program = new Program(name, tollgate, plan, folder, tokens, live, size.records)
    if (live !== undefined) await pause((HOLDING_SECONDS + 2) * 1_000)
    await program.tellLive(size.live)
    return program
  }

  /** Each key is used, too. */
  async warmUp(): Promise<void> {
    await this.#saturate()
    await this.#place()
  }

  async takeTurn(): Promise<void> {
    const before = { cpu: cpuMicros([this.#tollgate.pid]), at: performance.now() }
    const result = await this.#place()
    const turn = {
      result,
      cpuMicros: cpuMicros([this.#tollgate.pid]) - before.cpu,
      seconds: (performance.now() - before.at) / 1_000,
    }
    this.#turns.push(turn)
    console.log(
      `  ${this.#name}: ${result.succeeded} of ${result.calls} calls, ` +
        `${round(turn.cpuMicros / Math.max(1, result.succeeded))} µs with what is used without them, ` +
        `set-up mean ${result.setupMeanMs.toFixed(1)}, p99 ${result.setupP99Ms.toFixed(1)} ms`,
    )
  }

  /** Measures what is used without calls. */
  async rest(): Promise<void> {
    const before = cpuMicros([this.#tollgate.pid])
    const from = performance.now()
    await pause(IDLE_MS)
    const seconds = (performance.now() - from) / 1_000
    this.idleMicrosPerSecond = (cpuMicros([this.#tollgate.pid]) - before) / seconds
  }

  /** Measures requests to the API, each with the next key. */
  async ask(): Promise<void> {
    const before = cpuMicros([this.#tollgate.pid])
    const from = performance.now()
    const answered = await this.#saturate()
    const idle = (this.idleMicrosPerSecond * (performance.now() - from)) / 1_000
    this.microsPerRequest = (cpuMicros([this.#tollgate.pid]) - before - idle) / answered
  }

  get microsPerCall(): readonly number[] {
    return this.#turns.map((turn, index) => {
      const idle = (this.idleMicrosPerSecond * turn.seconds) / Math.max(1, turn.result.succeeded)
      return (this.rawMicrosPerCall[index] ?? 0) - idle
    })
  }

  /** With what is used without calls. */
  get rawMicrosPerCall(): readonly number[] {
    return this.#turns.map(
      ({ result, cpuMicros: micros }) => micros / Math.max(1, result.succeeded),
    )
  }

  get meanMs(): readonly number[] {
    return this.#turns.map(({ result }) => result.setupMeanMs)
  }

  get p99Ms(): readonly number[] {
    return this.#turns.map(({ result }) => result.setupP99Ms)
  }

  get megabytes(): number {
    return residentMegabytes(this.#tollgate.pid)
  }

  async stop(): Promise<void> {
    await this.#tollgate.kill()
    await this.#tollgate.stop()
    await this.#liveCalls?.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #place(): Promise<LoadResult> {
    const { rate, seconds } = this.#plan
    return placeCalls(this.#tollgate.sipPort, rate, rate * seconds, caller)
  }

  /** A connection that rests for ten seconds is closed. */
  async #saturate(): Promise<number> {
    const { apiPort } = this.#tollgate
    const api = await HttpLoad.open(apiPort, '/api/v1/health', this.#tokens, CONNECTIONS)
    const answered = await api.saturate(ASKING_MS)
    api.close()
    return answered
  }

  /** How many live calls go on. Whose INVITE got 503 never was one; a record of any other tells how it ended. */
  async tellLive(wanted: number): Promise<void> {
    if (this.#liveCalls === undefined) return
    const address = `http://127.0.0.1:${this.#tollgate.apiPort}/api/v1/metrics/telemetry`
    const headers = { authorization: `Bearer ${this.#tokens[0]}` }
    const answer = await fetch(address, { headers })
    const { data } = (await answer.json()) as { data: { calls: { active: number } } }
    const { active } = data.calls
    const refused = this.#liveCalls.refused()
    const lost = wanted - refused - active
    const records = this.#tollgate.query(
      `SELECT disposition, sip_code, hangup_cause, denial_code, count(*) AS calls
       FROM cdr WHERE id > ? GROUP BY 1, 2, 3, 4`,
      this.#lastRecord,
    )
    const told = lost > 0 ? `; ${lost} lost  ← WRONG: ${JSON.stringify(records)}` : ''
    const refusals = refused > 0 ? `, ${refused} refused with 503` : ''
    console.log(`  ${this.#name}: ${round(active)} of ${round(wanted)} live${refusals}${told}`)
    const overload = this.#tollgate.log.filter((line) => line.includes('overload'))
    for (const line of overload) console.log(`  ${this.#name}: ${line}`)
  }
}

/** Records are filled in once; each program gets a copy. */
function copyRecords(records: number, folder: string, path: string): void {
  const filled = join(folder, `records-${records}.db`)
  if (!existsSync(filled)) fillRecords(filled, records, (text) => console.log(`  ${text}`))
  copyFileSync(filled, path, constants.COPYFILE_FICLONE)
  // What is not on the disk yet is written while calls wait for their commits.
  const copy = openSync(path, 'r+')
  fsyncSync(copy)
  closeSync(copy)
}

/** Calls go to the first set; the rates are of as many prefixes, and one of them is that of the calls. */
function seedOf({ nodes, rates }: Size, ports: readonly number[]): object {
  const seed = oneCustomer(ports.slice(0, nodes))
  const digits = String(Math.max(0, rates - 1)).length
  const prefixes = Array.from({ length: rates }, (_, index) => ({
    rate_plan: 'load',
    rate_per_minute: '0.01',
    prefix: `1${String(index).padStart(digits, '0')}`,
  }))
  return { ...seed, rates: [...seed.rates, ...prefixes] }
}

function rowOf(name: string, empty: Program, grown: Program): string {
  const ratios = (micros: (program: Program) => readonly number[]): readonly number[] =>
    micros(grown).map((each, turn) => each / (micros(empty)[turn] ?? 0))
  const own = (program: Program) => program.microsPerCall
  const raw = (program: Program) => program.rawMicrosPerCall
  const both = (values: (program: Program) => number, digits = 0): string =>
    `${values(empty).toFixed(digits)} → ${values(grown).toFixed(digits)}`
  return [
    `  ${name.padEnd(8)} CPU µs/call ${both((program) => median(own(program)))} × ${spread(ratios(own), 2)}`,
    `with it ${both((program) => median(raw(program)))} × ${spread(ratios(raw), 2)}`,
    `set-up mean ${both((program) => median(program.meanMs), 1)} ms`,
    `p99 ${both((program) => median(program.p99Ms), 1)} ms`,
    `without calls ${both((program) => program.idleMicrosPerSecond / 1e4, 1)} % of a core`,
    `API ${both((program) => program.microsPerRequest, 1)} µs/request`,
    `${both((program) => program.megabytes)} MB${median(ratios(own)) > MOST_GROWTH ? '  ← more than 10 %' : ''}`,
  ].join('; ')
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

const round = (value: number): string => Math.round(value).toLocaleString('en')
