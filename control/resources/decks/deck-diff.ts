/** Counts what a deck changes, keeps the largest changes of each kind, and warns. */
import type { RateChangeKind, PrefixChange } from './deck-changes.ts'

export interface ChangedRate {
  readonly kind: RateChangeKind
  readonly prefix: string
  /** Null: the price of no period. */
  readonly period: string | null
  readonly description: string | null
  readonly line: number | null
  /** Micro-units a minute; null: there is no rate, or it is blocked. */
  readonly beforeMicros: number | null
  readonly afterMicros: number | null
  /** Change of the price of a minute; null: one of both is not there, or 0. */
  readonly percent: number | null
  readonly effectiveFrom: number | null
}

export type ChangeCounts = Readonly<Record<RateChangeKind, number>>

/** Changes of each kind that are shown. */
export const MAX_SHOWN_CHANGES = 200
const DAY_MS = 86_400_000
/** Carriers announce dearer prices a week before. */
const NOTICE_DAYS = 7

export class DeckDiff {
  readonly #now: number
  readonly #counts: Record<RateChangeKind, number> = {
    new: 0,
    dearer: 0,
    cheaper: 0,
    changed: 0,
    same: 0,
    gone: 0,
  }
  readonly #largest = new Map<RateChangeKind, ChangedRate[]>()
  #short = 0
  #firstShortLine = 0

  constructor(now: number) {
    this.#now = now
  }

  add(change: PrefixChange): void {
    this.#counts[change.kind] += 1
    this.#noteNotice(change)
    if (change.kind === 'same') return
    const kept = this.#largest.get(change.kind) ?? []
    this.#largest.set(change.kind, kept)
    kept.push(changedRate(change))
    // Sorting often enough bounds the list, and seldom enough costs nothing.
    if (kept.length >= MAX_SHOWN_CHANGES * 10) this.#largest.set(change.kind, largestOf(kept))
  }

  get counts(): ChangeCounts {
    return this.#counts
  }

  /** Dearer or blocked within the next seven days. */
  get shortNotice(): number {
    return this.#short
  }

  largest(kinds: readonly RateChangeKind[], most: number): readonly ChangedRate[] {
    return kinds.flatMap((kind) => largestOf(this.#largest.get(kind) ?? [])).slice(0, most)
  }

  get warnings(): readonly string[] {
    if (this.#short === 0) return []
    const prefixes = this.#short === 1 ? '1 prefix becomes' : `${this.#short} prefixes become`
    return [
      `${prefixes} dearer, or blocked, with less than ${NOTICE_DAYS} days' notice; the first ` +
        `is on line ${this.#firstShortLine}`,
    ]
  }

  #noteNotice({ kind, rate, before }: PrefixChange): void {
    if (rate === undefined || before === undefined) return
    const isWorse = kind === 'dearer' || (rate.terms.is_blocked === 1 && before.is_blocked === 0)
    const start = rate.terms.effective_from_at ?? this.#now
    if (!isWorse || start >= this.#now + NOTICE_DAYS * DAY_MS) return
    this.#short += 1
    if (this.#firstShortLine === 0 || rate.line < this.#firstShortLine)
      this.#firstShortLine = rate.line
  }
}

/** The largest change in per cent first; those without one as they are in the plan. */
const largestOf = (changes: readonly ChangedRate[]): ChangedRate[] =>
  changes
    .toSorted((one, other) => Math.abs(other.percent ?? 0) - Math.abs(one.percent ?? 0))
    .slice(0, MAX_SHOWN_CHANGES)

function changedRate({ kind, prefix, period, rate, before }: PrefixChange): ChangedRate {
  const beforeMicros = priceOf(before)
  const afterMicros = priceOf(rate?.terms)
  return {
    kind,
    prefix,
    period,
    description: rate?.description ?? before?.description ?? null,
    line: rate?.line ?? null,
    beforeMicros,
    afterMicros,
    percent: percentOf(beforeMicros, afterMicros),
    effectiveFrom: rate?.terms.effective_from_at ?? null,
  }
}

export const priceOf = (
  terms: { readonly is_blocked: 0 | 1; readonly rate_per_minute_micros: number } | undefined,
): number | null =>
  terms === undefined || terms.is_blocked === 1 ? null : terms.rate_per_minute_micros

/** To a tenth of a per cent. */
const percentOf = (before: number | null, after: number | null): number | null =>
  before === null || after === null || before === 0
    ? null
    : Math.round(((after - before) / before) * 1_000) / 10
