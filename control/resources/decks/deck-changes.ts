/** Compares a deck with its plan: both are walked through side by side, prefix by prefix. */
import type { NewRate } from '../bulk-rates.ts'
import { byPrefixAndPeriod, type DeckRate, keyOf } from './deck-rate.ts'
import type { PrefixAndPeriod, RateKey } from './deck-rate.ts'
import type { DeckRates } from './packed-rates.ts'
import { byPrefix, inForce, type PlanRate, type PrefixRates } from './plan-rates.ts'

export type RateChangeKind = 'new' | 'dearer' | 'cheaper' | 'changed' | 'same' | 'gone'

export interface DeckOrder {
  /** `replace`: prefixes that the deck does not have end when it comes into force. */
  readonly mode: 'merge' | 'replace'
  /** Milliseconds UTC. */
  readonly now: number
}

/** The columns of a rate that a deck may change. */
export type KeptTerms = Pick<
  NewRate,
  | 'description'
  | 'rate_per_minute_micros'
  | 'connect_fee_micros'
  | 'is_blocked'
  | 'first_increment_seconds'
  | 'first_rate_per_minute_micros'
  | 'increment_seconds'
  | 'effective_to_at'
>

export interface RateWrite extends RateKey {
  /** Undefined: it was not there. */
  readonly before: (KeptTerms & { readonly id: number }) | undefined
  /** Undefined: it is removed. */
  readonly after: KeptTerms | undefined
}

export interface PrefixChange {
  readonly kind: RateChangeKind
  readonly prefix: string
  /** Null: the price of no period. */
  readonly period: string | null
  /** Undefined: the deck does not have the prefix. */
  readonly rate: DeckRate | undefined
  /** The rate that is in force before, when the new one begins. */
  readonly before: PlanRate | undefined
  /** Rows to write; none where nothing changes. */
  readonly writes: readonly RateWrite[]
}

/**
 * One change for each rate of the deck, and for each prefix and period that it does not have, as
 * many at a time as are read of the plan.
 *
 * @param deck in the order of prefixes, periods and starts.
 * @param stored the plan in the same order.
 */
export async function* deckChanges(
  deck: DeckRates,
  stored: AsyncIterable<readonly PlanRate[]>,
  order: DeckOrder,
): AsyncGenerator<readonly PrefixChange[]> {
  const end = endOfOthers(deck, order.now)
  let at = 0
  for await (const groups of byPrefix(stored)) {
    let changes: PrefixChange[] = []
    for (const group of groups) {
      for (let rate = deck.at(at); rate && byGroup(rate, group) < 0; rate = deck.at(at)) {
        at += 1
        changes.push(withoutStored(rate))
        if (changes.length < MOST_CHANGES) continue
        yield changes
        changes = []
      }
      const first = at
      for (let rate = deck.at(at); rate && byGroup(rate, group) === 0; rate = deck.at(at)) at += 1
      if (first === at) changes.push(goneChange(group, end, order))
      else changes.push(...changesOf(deck.slice(first, at), group.rates, order))
    }
    yield changes
  }
  for (; at < deck.length; at += MOST_CHANGES)
    yield deck.slice(at, at + MOST_CHANGES).map(withoutStored)
}

/** Changes that are given at a time. */
const MOST_CHANGES = 2_000

const byGroup = (rate: DeckRate, group: PrefixAndPeriod): number =>
  byPrefixAndPeriod(keyOf(rate), group)

/** The latest start of the deck, when a carrier announces it; undefined: it holds at once. */
export function endOfOthers(deck: DeckRates, now: number): number | undefined {
  const latest = Math.max(now, deck.latestStart() ?? now)
  return latest > now ? latest : undefined
}

const withoutStored = (rate: DeckRate): PrefixChange => ({
  kind: 'new',
  prefix: rate.prefix,
  period: rate.terms.period,
  rate,
  before: undefined,
  writes: [writeOf(rate)],
})

function writeOf(rate: DeckRate, before?: PlanRate): RateWrite {
  const { terms, description, prefix } = rate
  const after = {
    description,
    rate_per_minute_micros: terms.rate_per_minute_micros,
    connect_fee_micros: terms.connect_fee_micros,
    is_blocked: terms.is_blocked,
    first_increment_seconds: terms.first_increment_seconds,
    first_rate_per_minute_micros: terms.first_rate_per_minute_micros,
    increment_seconds: terms.increment_seconds,
    effective_to_at: terms.effective_to_at,
  }
  const { period, effective_from_at } = terms
  return { prefix, period, effective_from_at, before, after }
}

const changesOf = (
  rates: readonly DeckRate[],
  stored: readonly PlanRate[],
  { mode, now }: DeckOrder,
): readonly PrefixChange[] =>
  rates.map((rate, index) => {
    const { effective_from_at: from } = rate.terms
    const twin = stored.find((row) => (row.effective_from_at ?? -1) === (from ?? -1))
    const write = writeOf(rate, twin)
    const before = inForce(stored, Math.max(from ?? now, now))
    const writes = twin !== undefined && isSame(twin, write.after) ? [] : [write]
    // An announced price that the whole deck does not have any more is withdrawn.
    const dropped = mode === 'replace' && index === 0 ? dropLater(rates, stored, from) : []
    return {
      kind: kindOf(rate, before),
      prefix: rate.prefix,
      period: rate.terms.period,
      rate,
      before,
      writes: dropped.length === 0 ? writes : [...writes, ...dropped],
    }
  })

function dropLater(
  rates: readonly DeckRate[],
  stored: readonly PlanRate[],
  first: number | null,
): readonly RateWrite[] {
  const kept = new Set(rates.map(({ terms }) => terms.effective_from_at ?? -1))
  return stored
    .filter(({ effective_from_at: from }) => !kept.has(from ?? -1) && (from ?? -1) > (first ?? -1))
    .map(removalOf)
}

const removalOf = (row: PlanRate): RateWrite => ({
  prefix: row.prefix,
  period: row.period,
  effective_from_at: row.effective_from_at,
  before: row,
  after: undefined,
})

function goneChange(
  { prefix, period, rates: stored }: PrefixRates,
  end: number | undefined,
  { mode, now }: DeckOrder,
): PrefixChange {
  const before = inForce(stored, end ?? now)
  const change = { kind: 'gone' as const, prefix, period, rate: undefined, before }
  if (mode === 'merge') return { ...change, writes: [] }
  if (end === undefined) return { ...change, writes: stored.map(removalOf) }
  return { ...change, writes: stored.flatMap((row) => endedAt(row, end)) }
}

function endedAt(row: PlanRate, end: number): readonly RateWrite[] {
  if ((row.effective_from_at ?? -1) >= end) return [removalOf(row)]
  if (row.effective_to_at !== null && row.effective_to_at <= end) return []
  return [{ ...removalOf(row), after: { ...row, effective_to_at: end } }]
}

export const isSame = (one: KeptTerms, other: KeptTerms | undefined): boolean =>
  other !== undefined &&
  one.rate_per_minute_micros === other.rate_per_minute_micros &&
  one.description === other.description &&
  one.connect_fee_micros === other.connect_fee_micros &&
  one.is_blocked === other.is_blocked &&
  one.first_increment_seconds === other.first_increment_seconds &&
  one.first_rate_per_minute_micros === other.first_rate_per_minute_micros &&
  one.increment_seconds === other.increment_seconds &&
  one.effective_to_at === other.effective_to_at

/** A rate as a list, for what is stored of a change. */
export type TermsList = readonly [
  description: string | null,
  ratePerMinuteMicros: number,
  connectFeeMicros: number,
  isBlocked: 0 | 1,
  firstIncrementSeconds: number,
  firstRatePerMinuteMicros: number,
  incrementSeconds: number,
  effectiveToAt: number | null,
]

export const listOf = (terms: KeptTerms): TermsList => [
  terms.description,
  terms.rate_per_minute_micros,
  terms.connect_fee_micros,
  terms.is_blocked,
  terms.first_increment_seconds,
  terms.first_rate_per_minute_micros,
  terms.increment_seconds,
  terms.effective_to_at,
]

export const termsOf = (list: TermsList): KeptTerms => ({
  description: list[0],
  rate_per_minute_micros: list[1],
  connect_fee_micros: list[2],
  is_blocked: list[3],
  first_increment_seconds: list[4],
  first_rate_per_minute_micros: list[5],
  increment_seconds: list[6],
  effective_to_at: list[7],
})

/** By the price of a minute first, then by what the first one costs beside it. */
function kindOf({ terms, description }: DeckRate, before: PlanRate | undefined): RateChangeKind {
  if (before === undefined) return 'new'
  if (terms.is_blocked !== before.is_blocked) return 'changed'
  const difference =
    terms.rate_per_minute_micros - before.rate_per_minute_micros ||
    terms.connect_fee_micros - before.connect_fee_micros ||
    terms.first_rate_per_minute_micros - before.first_rate_per_minute_micros
  if (difference !== 0) return difference > 0 ? 'dearer' : 'cheaper'
  const isEqual =
    terms.first_increment_seconds === before.first_increment_seconds &&
    terms.increment_seconds === before.increment_seconds &&
    terms.effective_to_at === before.effective_to_at &&
    description === before.description
  return isEqual ? 'same' : 'changed'
}
