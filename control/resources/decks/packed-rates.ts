/**
 * The rates of a deck in lists of numbers. As objects 500,000 of them take 100 MB, and hold what is
 * read beside them in memory for longer.
 */
import type { DeckRate, DeckTerms } from './deck-rate.ts'

export interface DeckRates {
  readonly length: number
  at(place: number): DeckRate | undefined
  /** Those from a place to before another one. */
  slice(from: number, to: number): readonly DeckRate[]
  /** Undefined: all of them have no start. */
  latestStart(): number | undefined
}

const FIRST_SIZE = 1_024
/** A prefix has up to twenty digits: it is two numbers of ten. */
const HALF = 10
/** Descriptions, and terms, whose places are known. */
const MAX_KNOWN = 20_000

export class PackedRates implements DeckRates {
  /** The digits of a prefix, with zeros behind them. */
  #starts = new Float64Array(FIRST_SIZE)
  #rests = new Float64Array(FIRST_SIZE)
  #digits = new Uint8Array(FIRST_SIZE)
  #lines = new Uint32Array(FIRST_SIZE)
  #descriptionPlaces = new Uint32Array(FIRST_SIZE)
  #termPlaces = new Uint32Array(FIRST_SIZE)
  readonly #descriptions = new Descriptions()
  readonly #terms = new PackedTerms()
  #count = 0
  /** Places in the order of prefixes; undefined: rates are being added. */
  #order: Uint32Array | undefined

  get length(): number {
    return this.#order?.length ?? this.#count
  }

  push({ prefix, description, terms, line }: DeckRate): void {
    const place = this.#count
    if (place === this.#lines.length) this.#grow()
    this.#count += 1
    this.#starts[place] = Number(prefix.slice(0, HALF).padEnd(HALF, '0'))
    this.#rests[place] = prefix.length > HALF ? Number(prefix.slice(HALF).padEnd(HALF, '0')) : 0
    this.#digits[place] = prefix.length
    this.#lines[place] = line
    this.#descriptionPlaces[place] = this.#descriptions.placeOf(description)
    this.#termPlaces[place] = this.#terms.placeOf(terms)
  }

  /**
   * Brings all rates into the order of prefixes, periods and starts, each once: of two the first
   * stays. Returns the number of those that are left out.
   *
   * @param onTwin learns which rate is left out, and for which.
   */
  end(onTwin: (first: DeckRate, twin: DeckRate) => void): number {
    this.#descriptions.end()
    this.#terms.end()
    const order = this.#sorted()
    let kept = 0
    for (const place of order) {
      const last = kept === 0 ? undefined : order[kept - 1]
      if (last !== undefined && this.#compare(last, place) === 0)
        onTwin(this.#rateAt(last), this.#rateAt(place))
      else order[kept++] = place
    }
    this.#order = order.subarray(0, kept)
    return order.length - kept
  }

  at(place: number): DeckRate | undefined {
    if (place < 0 || place >= this.length) return undefined
    return this.#rateAt(this.#order?.[place] ?? place)
  }

  slice(from: number, to: number): readonly DeckRate[] {
    const rates: DeckRate[] = []
    for (let place = from; place < to; place += 1) {
      const rate = this.at(place)
      if (rate === undefined) break
      rates.push(rate)
    }
    return rates
  }

  latestStart(): number | undefined {
    return this.#terms.latestStart()
  }

  #sorted(): Uint32Array {
    const order = Uint32Array.from({ length: this.#count }, (_, place) => place)
    const isSorted = order.every((place) => place === 0 || this.#compare(place - 1, place) <= 0)
    if (isSorted) return order
    return order.toSorted((one, other) => this.#compare(one, other) || one - other)
  }

  /** As the databases compare: `44` is before `440`, and a price without a start is first. */
  #compare(one: number, other: number): number {
    return (
      (this.#starts[one] ?? 0) - (this.#starts[other] ?? 0) ||
      (this.#rests[one] ?? 0) - (this.#rests[other] ?? 0) ||
      (this.#digits[one] ?? 0) - (this.#digits[other] ?? 0) ||
      this.#terms.compare(this.#termPlaces[one] ?? 0, this.#termPlaces[other] ?? 0)
    )
  }

  #rateAt(place: number): DeckRate {
    const [start, rest] = [this.#starts[place] ?? 0, this.#rests[place] ?? 0]
    const digits = this.#digits[place] ?? 0
    // No prefix begins with a zero.
    const ofStart = String(start)
    const all = digits > HALF ? ofStart + String(rest).padStart(HALF, '0') : ofStart
    return {
      prefix: all.slice(0, digits),
      description: this.#descriptions.at(this.#descriptionPlaces[place] ?? 0),
      terms: this.#terms.at(this.#termPlaces[place] ?? 0),
      line: this.#lines[place] ?? 0,
    }
  }

  #grow(): void {
    this.#starts = doubled(this.#starts, Float64Array)
    this.#rests = doubled(this.#rests, Float64Array)
    this.#digits = doubled(this.#digits, Uint8Array)
    this.#lines = doubled(this.#lines, Uint32Array)
    this.#descriptionPlaces = doubled(this.#descriptionPlaces, Uint32Array)
    this.#termPlaces = doubled(this.#termPlaces, Uint32Array)
  }
}

class Descriptions {
  readonly #texts: (string | null)[] = [null]
  readonly #known = new Map<string, number>()

  placeOf(text: string | null): number {
    if (text === null) return 0
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const place = this.#texts.push(text) - 1
    if (this.#known.size < MAX_KNOWN) this.#known.set(text, place)
    return place
  }

  at(place: number): string | null {
    return this.#texts[place] ?? null
  }

  end(): void {
    this.#known.clear()
  }
}

/** The columns of terms, in this order; a time that is null is -1. */
const WIDTH = 9
const PERIOD = 3
const FROM = 7

class PackedTerms {
  #columns = new Float64Array(FIRST_SIZE * WIDTH)
  #count = 0
  /** The first is that of no period. */
  readonly #periods: (string | null)[] = [null]
  readonly #known = new Map<DeckTerms, number>()

  /** The place of the same object, where it is still known. */
  placeOf(terms: DeckTerms): number {
    const known = this.#known.get(terms)
    if (known !== undefined) return known
    const place = this.#count
    this.#count += 1
    if (place * WIDTH === this.#columns.length) this.#columns = doubled(this.#columns, Float64Array)
    this.#columns.set(this.#listOf(terms), place * WIDTH)
    if (this.#known.size < MAX_KNOWN) this.#known.set(terms, place)
    return place
  }

  #listOf(terms: DeckTerms): readonly number[] {
    return [
      terms.rate_per_minute_micros,
      terms.connect_fee_micros,
      terms.is_blocked,
      this.#placeOfPeriod(terms.period),
      terms.first_increment_seconds,
      terms.first_rate_per_minute_micros,
      terms.increment_seconds,
      terms.effective_from_at ?? -1,
      terms.effective_to_at ?? -1,
    ]
  }

  #placeOfPeriod(period: string | null): number {
    const known = this.#periods.indexOf(period)
    return known === -1 ? this.#periods.push(period) - 1 : known
  }

  /** By period and start. */
  compare(one: number, other: number): number {
    if (one === other) return 0
    const [first, second] = [one * WIDTH, other * WIDTH]
    const [ofFirst, ofSecond] = [this.#period(first), this.#period(second)]
    if (ofFirst !== ofSecond) return (ofFirst ?? '') < (ofSecond ?? '') ? -1 : 1
    return this.#column(first, FROM) - this.#column(second, FROM)
  }

  latestStart(): number | undefined {
    let latest = -1
    for (let place = 0; place < this.#count; place += 1)
      latest = Math.max(latest, this.#column(place * WIDTH, FROM))
    return latest === -1 ? undefined : latest
  }

  at(place: number): DeckTerms {
    const at = place * WIDTH
    return {
      rate_per_minute_micros: this.#column(at, 0),
      connect_fee_micros: this.#column(at, 1),
      is_blocked: this.#column(at, 2) === 1 ? 1 : 0,
      period: this.#period(at),
      first_increment_seconds: this.#column(at, 4),
      first_rate_per_minute_micros: this.#column(at, 5),
      increment_seconds: this.#column(at, 6),
      effective_from_at: timeOrNull(this.#column(at, FROM)),
      effective_to_at: timeOrNull(this.#column(at, 8)),
    }
  }

  end(): void {
    this.#known.clear()
  }

  #period(at: number): string | null {
    return this.#periods[this.#column(at, PERIOD)] ?? null
  }

  #column(at: number, column: number): number {
    return this.#columns[at + column] ?? 0
  }
}

const timeOrNull = (time: number): number | null => (time === -1 ? null : time)

type NumberList = Float64Array<ArrayBuffer> | Uint32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>

/** The shorter list is empty from then on, instead of garbage. */
const doubled = <List extends NumberList>(
  list: List,
  Kind: new (buffer: ArrayBuffer) => List,
): List => new Kind(list.buffer.transfer(list.byteLength * 2))
