/**
 * Programs that take turns under the same load, and what a call costs each of them. A cost counts
 * only where the program held the rate: one that loses calls spends its time on repetitions, and a
 * ratio to it would flatter the other.
 */
import { median, spread } from './figures.ts'
import type { LoopLag } from './loop-lag.ts'
import { caller } from './one-customer.ts'
import { cpuMicros } from './process-cpu.ts'
import { placeCalls, type LoadResult } from './sipp-load.ts'

export interface TurnPlan {
  readonly rates: readonly number[]
  readonly seconds: number
  /** How many turns each contestant has at each rate. */
  readonly rounds: number
  /** Seconds of load before the first turn, the same for each contestant. */
  readonly warm: number
  /** Seconds of load at the head of each turn, which belong to no figure, of either side. */
  readonly settle: number
}

/** One that takes its turn. */
export interface Contestant {
  readonly name: string
  /** They get the same number of calls. */
  readonly sipPorts: readonly number[]
  /** Processes whose CPU is counted, by part. */
  readonly parts: () => readonly (readonly number[])[]
  /** The delays of its event loop since it was asked last. */
  readonly lag?: () => Promise<LoopLag>
  /** It gets no higher rate than the first that it has not held. */
  readonly isPeer?: boolean
  /** Calls a second before its first turn, if the usual ones are more than it takes. */
  readonly warmRate?: number
}

export interface Turn {
  readonly result: LoadResult
  /** CPU µs per succeeded call, by part. */
  readonly micros: readonly number[]
  readonly lag: LoopLag | undefined
}

export interface TakenTurns {
  of(name: string, rate: number): readonly Turn[]
}

/** At 100/s V8 would compile through the turns. */
const WARM_UP_RATE = 500

/** The order rotates, so that no side always runs on a warmer machine. */
export async function takeTurns(
  contestants: readonly Contestant[],
  { rates, seconds, rounds, warm, settle }: TurnPlan,
  note: (contestant: Contestant, result: LoadResult) => void,
): Promise<TakenTurns> {
  const taken = new Map<string, Turn[]>()
  const of = (name: string, rate: number): readonly Turn[] => taken.get(`${name} ${rate}`) ?? []
  // A process runs for months. The first calls are compiled while they run: they belong to no
  // figure.
  if (warm > 0)
    for (const each of contestants)
      note(each, await place(each, Math.min(WARM_UP_RATE, each.warmRate ?? Infinity), warm))
  console.log(
    '  rate  round  success  retrans  setup p50/p99 ms  loop lag p50/p99/max ms  CPU µs/call',
  )
  for (const rate of rates.toSorted((one, other) => one - other)) {
    const lower = rates.filter((each) => each < rate)
    const inTurn = contestants.filter(
      ({ name, isPeer }) => isPeer !== true || lower.every((each) => holds(of(name, each))),
    )
    for (let round = 0; round < rounds; round += 1)
      for (let at = 0; at < inTurn.length; at += 1) {
        const each = inTurn[(at + round) % inTurn.length]
        if (each === undefined) continue
        // While the others had their turns it did nothing.
        if (settle > 0) note(each, await place(each, rate, settle))
        await each.lag?.()
        const before = each.parts().map(cpuMicros)
        const result = await place(each, rate, seconds)
        const calls = Math.max(1, result.succeeded)
        const micros = each
          .parts()
          .map((pids, part) => (cpuMicros(pids) - (before[part] ?? 0)) / calls)
        const turn = { result, micros, lag: await each.lag?.() }
        note(each, result)
        printTurn(rate, round, each.name, turn)
        taken.set(`${each.name} ${rate}`, [...of(each.name, rate), turn])
      }
  }
  return { of }
}

async function place(
  { sipPorts }: Pick<Contestant, 'sipPorts'>,
  rate: number,
  seconds: number,
): Promise<LoadResult> {
  const share = Math.ceil(rate / sipPorts.length)
  const results = await Promise.all(
    sipPorts.map((port) => placeCalls(port, share, share * seconds, caller)),
  )
  const sum = (of: (result: LoadResult) => number) => sumOf(results.map(of))
  const longest = (of: (result: LoadResult) => number) => Math.max(...results.map(of))
  return {
    calls: sum(({ calls }) => calls),
    succeeded: sum(({ succeeded }) => succeeded),
    refused: sum(({ refused }) => refused),
    retransmissions: sum(({ retransmissions }) => retransmissions),
    setupP50Ms: longest(({ setupP50Ms }) => setupP50Ms),
    setupP99Ms: longest(({ setupP99Ms }) => setupP99Ms),
  }
}

function printTurn(rate: number, round: number, name: string, { result, micros, lag }: Turn): void {
  const success = (100 * partOf(result)).toFixed(2)
  const delays = `${result.setupP50Ms.toFixed(1)}/${result.setupP99Ms.toFixed(1)}`
  const lags = lag === undefined ? '-' : lagText([lag.p50Ms, lag.p99Ms, lag.maxMs])
  const parts = micros.map((part) => part.toFixed(0)).join(' + ')
  const sum = micros.length > 1 ? ` = ${sumOf(micros).toFixed(0)}` : ''
  console.log(
    `  ${String(rate).padStart(4)}  ${String(round + 1).padStart(5)}  ${success.padStart(6)}%` +
      `  ${String(result.retransmissions).padStart(7)}  ${delays.padStart(16)}  ${lags.padStart(23)}  ${parts}${sum}  (${name})`,
  )
}

const lagText = (ms: readonly number[]): string => ms.map((each) => each.toFixed(1)).join('/')

/** The first contestant against each of the others. */
export function printComparison(
  contestants: readonly Contestant[],
  rates: readonly number[],
  turns: TakenTurns,
): void {
  for (const { name } of contestants) {
    console.log(`\n  ${name}: CPU µs per call, median (least to most)`)
    for (const rate of rates) {
      const taken = turns.of(name, rate)
      if (taken.length === 0) console.log(`  ${rateText(rate)}  not tried: it held no lower rate`)
      else console.log(`  ${rateText(rate)}  ${summaryOf(taken)}`)
    }
    const clean = rates.filter((rate) => isClean(turns.of(name, rate)))
    console.log(`  highest rate with 99.9 % success in every turn: ${Math.max(0, ...clean)}/s`)
  }
  const [own, ...others] = contestants
  if (own === undefined) return
  for (const { name } of others)
    for (const rate of rates) {
      const ratio = ratioOf(turns.of(own.name, rate), turns.of(name, rate), name)
      console.log(`  ${rate}/s: ${own.name} / ${name} = ${ratio}`)
    }
}

const rateText = (rate: number): string => `${String(rate).padStart(4)}/s`

function summaryOf(taken: readonly Turn[]): string {
  const held = taken.map(({ result }) => 100 * partOf(result))
  const setup = taken.map(({ result }) => result.setupP50Ms)
  const setupP99 = taken.map(({ result }) => result.setupP99Ms)
  const lags = taken.flatMap(({ lag }) => (lag ? [lag.p99Ms] : []))
  const lag = lags.length > 0 ? `  loop lag p99 ${spread(lags, 1)} ms` : ''
  return (
    `${spread(taken.map(costOf))}  held ${spread(held, 2)} % of the calls  ` +
    `setup p50 ${median(setup).toFixed(1)} ms, p99 ${spread(setupP99, 1)} ms${lag}`
  )
}

const partOf = ({ succeeded, calls }: LoadResult): number => succeeded / Math.max(1, calls)

const costOf = ({ micros }: Turn): number => sumOf(micros)

const isClean = (taken: readonly Turn[]): boolean =>
  taken.length > 0 && taken.every(({ result }) => partOf(result) >= 0.999)

/** The part of the calls that must succeed, or the turn says nothing about a cost. */
const LEAST_HELD = 0.99

const isHeld = ({ result }: Turn): boolean => partOf(result) >= LEAST_HELD

/** In most of its turns. */
const holds = (taken: readonly Turn[]): boolean => taken.filter(isHeld).length > taken.length / 2

/** The ratio of what a call costs, of rounds in which both held the rate, if these are most. */
export function ratioOf(own: readonly Turn[], other: readonly Turn[], name: string): string {
  const ratios = own.flatMap((turn, round) => {
    const beside = other[round]
    const isFair = beside !== undefined && isHeld(turn) && isHeld(beside)
    return isFair ? [costOf(turn) / costOf(beside)] : []
  })
  if (ratios.length > own.length / 2) {
    const rounds = ratios.length < own.length ? ` in ${ratios.length} of ${own.length} rounds` : ''
    return `${spread(ratios, 2)}${rounds}`
  }
  if (other.length === 0) return `not comparable at this rate: ${name} held no lower one`
  const missing = [holds(own) ? [] : ['this program'], holds(other) ? [] : [name]].flat()
  const who = missing.length > 0 ? missing.join(' and ') : 'one or the other'
  return `not comparable at this rate: ${who} did not hold it`
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)
