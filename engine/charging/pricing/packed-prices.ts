/**
 * The prices of a plan as it was read, in lists of numbers: 500,000 of them take 15 MB. As objects
 * they would take 150 MB, and each collection of garbage would visit them.
 */
import type { Rate } from '../../../schema/contracts/charging.ts'

/** Digits of a prefix that are exact in a number. */
const MAX_DIGITS = 15

/** All rates of a plan share it. */
export interface PlanOfRates {
  readonly planId: number
  readonly currency: string
  readonly decimals: number
  readonly rounding: Rate['tariff']['rounding']
  readonly isByRoutingNumber: boolean
}

/** Each price is a place in the list of terms: most lines of a deck share theirs with others. */
export class PackedPrices {
  readonly #plan: PlanOfRates
  readonly #terms = new Terms()
  /**
   * The digits of each prefix, filled with zeros to `MAX_DIGITS`. Prefixes are in the order of
   * text, which is that of these digits, then of the length.
   */
  #digits = new Float64Array(FIRST_SIZE)
  #lengths = new Uint8Array(FIRST_SIZE)
  /** The longest other prefix that it begins with; -1: there is none. */
  #parents = new Int32Array(FIRST_SIZE)
  /** The place of its first price; those of one prefix stand together, the earliest start first. */
  #prices = new Uint32Array(FIRST_SIZE)
  #termsOfPrice = new Uint32Array(FIRST_SIZE)
  #prefixCount = 0
  #priceCount = 0
  readonly lengths = new Set<number>()

  constructor(plan: PlanOfRates) {
    this.#plan = plan
  }

  /** After the last price is added. */
  end(): void {
    this.#terms.forgetTexts()
  }

  /**
   * False: it is not taken, because its prefix is not of digits, or comes out of order. Prefixes
   * come in the order of text, the prices of one by their start.
   */
  add(prefix: string, row: PriceRow): boolean {
    if (prefix.length > MAX_DIGITS) return false
    const digits = filledDigits(prefix)
    if (digits === undefined) return false
    const last = this.#prefixCount - 1
    const difference = last === -1 ? 1 : this.#compare(last, digits, prefix.length)
    if (difference < 0) return false
    if (difference > 0) this.#addPrefix(digits, prefix.length)
    if (this.#priceCount === this.#termsOfPrice.length)
      this.#termsOfPrice = doubled(this.#termsOfPrice, Uint32Array)
    this.#termsOfPrice[this.#priceCount] = this.#terms.placeOf(termsOf(row))
    this.#priceCount += 1
    return true
  }

  #addPrefix(digits: number, length: number): void {
    const place = this.#prefixCount
    if (place === this.#digits.length) this.#grow()
    let parent = place - 1
    while (parent !== -1 && !this.#begins(parent, digits, length)) parent = this.#parentOf(parent)
    this.#digits[place] = digits
    this.#lengths[place] = length
    this.#parents[place] = parent
    this.#prices[place] = this.#priceCount
    this.#prefixCount += 1
    this.lengths.add(length)
  }

  #grow(): void {
    this.#digits = doubled(this.#digits, Float64Array)
    this.#lengths = doubled(this.#lengths, Uint8Array)
    this.#parents = doubled(this.#parents, Int32Array)
    this.#prices = doubled(this.#prices, Uint32Array)
  }

  /**
   * The place of the longest prefix of a number; -1: there is none. Whatever stands between a
   * prefix and a number that it begins also begins with it: the last prefix that is not after the
   * number is the answer, or leads to it.
   */
  longestOf(number: string): number {
    let length = 0
    let digits = 0
    for (; length < number.length && length < MAX_DIGITS; length += 1) {
      const digit = number.charCodeAt(length) - 48
      if (!(digit >= 0 && digit <= 9)) break
      digits = digits * 10 + digit
    }
    digits *= powerOfTen(MAX_DIGITS - length)
    let [low, high] = [0, this.#prefixCount]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#compare(middle, digits, length) >= 0) low = middle + 1
      else high = middle
    }
    let place = low - 1
    while (place !== -1 && !this.#begins(place, digits, length)) place = this.#parentOf(place)
    return place
  }

  /** The next shorter prefix of the same number; -1: there is none. */
  shorterOf(place: number): number {
    return this.#parentOf(place)
  }

  /** The digits of the prefix at a place; -1 for the place -1. */
  lengthOf(place: number): number {
    return this.#lengths[place] ?? -1
  }

  /** The newest price that is in force. */
  inForce(place: number, number: string, at: number): Rate | undefined {
    const first = this.#prices[place] ?? 0
    for (let price = this.#endOf(place) - 1; price >= first; price -= 1) {
      const terms = this.#termsOfPrice[price] ?? 0
      if (this.#terms.isInForce(terms, at))
        return this.#rateOf(number.slice(0, this.#lengths[place]), terms)
    }
    return undefined
  }

  /** All prices of exactly this prefix. */
  ratesOf(prefix: string): readonly Rate[] {
    const place = this.longestOf(prefix)
    if (place === -1 || this.#lengths[place] !== prefix.length) return []
    const terms = this.#termsOfPrice.subarray(this.#prices[place], this.#endOf(place))
    return Array.from(terms, (each) => this.#rateOf(prefix, each))
  }

  #endOf(place: number): number {
    return place + 1 < this.#prefixCount ? (this.#prices[place + 1] ?? 0) : this.#priceCount
  }

  /** Positive: the prefix at this place comes first. */
  #compare(place: number, digits: number, length: number): number {
    return digits - (this.#digits[place] ?? 0) || length - (this.#lengths[place] ?? 0)
  }

  #begins(place: number, digits: number, length: number): boolean {
    const own = this.#lengths[place] ?? 0
    if (own > length) return false
    const first = this.#digits[place] ?? 0
    return digits < first + powerOfTen(MAX_DIGITS - own)
  }

  #parentOf(place: number): number {
    return this.#parents[place] ?? -1
  }

  #rateOf(prefix: string, place: number): Rate {
    const { planId, currency, decimals, rounding, isByRoutingNumber } = this.#plan
    const [terms, at] = this.#terms.listOf(place)
    const valueOf = (name: keyof typeof termPlaces): number => terms[at + termPlaces[name]] ?? 0
    return {
      planId,
      tariff: {
        prefix,
        currency,
        connectFeeMicros: valueOf('connectFeeMicros'),
        firstIncrementSeconds: valueOf('firstIncrementSeconds'),
        firstRatePerMinuteMicros: valueOf('firstRatePerMinuteMicros'),
        incrementSeconds: valueOf('incrementSeconds'),
        ratePerMinuteMicros: valueOf('ratePerMinuteMicros'),
        decimals,
        rounding,
      },
      isBlocked: valueOf('isBlocked') === 1,
      ...(isByRoutingNumber && { isByRoutingNumber: true }),
      effectiveFrom: orNull(valueOf('effectiveFrom')),
      effectiveTo: orNull(valueOf('effectiveTo')),
    }
  }
}

const FIRST_SIZE = 8

/** The columns of a price, in this order; a time that is null is infinite. */
const termPlaces = {
  connectFeeMicros: 0,
  firstIncrementSeconds: 1,
  firstRatePerMinuteMicros: 2,
  incrementSeconds: 3,
  ratePerMinuteMicros: 4,
  isBlocked: 5,
  effectiveFrom: 6,
  effectiveTo: 7,
} as const

const WIDTH = 8

/** Terms of one list: a list that is full is never copied. */
const LIST = 4_096
/** Terms that are known by their text while a plan is read. */
const MAX_KNOWN = 20_000

class Terms {
  readonly #lists: Float64Array[] = []
  readonly #known = new Map<string, number>()
  #count = 0

  /** The place of equal terms, where they are still known. */
  placeOf(terms: readonly number[]): number {
    const text = terms.join()
    const found = this.#known.get(text)
    if (found !== undefined) return found
    const place = this.#count
    this.#count += 1
    const [list, at] = this.#roomFor(place)
    list.set(terms, at)
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(text, place)
    return place
  }

  #roomFor(place: number): readonly [list: Float64Array, at: number] {
    const index = Math.floor(place / LIST)
    const at = WIDTH * (place % LIST)
    // Most plans are small.
    let list = this.#lists[index] ?? new Float64Array(WIDTH * (index === 0 ? 1 : LIST))
    if (at === list.length) list = doubled(list, Float64Array)
    this.#lists[index] = list
    return [list, at]
  }

  forgetTexts(): void {
    this.#known.clear()
  }

  listOf(place: number): readonly [list: Float64Array, at: number] {
    return [this.#lists[Math.floor(place / LIST)] ?? none, WIDTH * (place % LIST)]
  }

  isInForce(place: number, at: number): boolean {
    const [terms, start] = this.listOf(place)
    const from = terms[start + termPlaces.effectiveFrom] ?? 0
    const to = terms[start + termPlaces.effectiveTo] ?? 0
    return from <= at && at < to
  }
}

const none = new Float64Array(0)

/** The columns of a row; null of a time: without a start, or without an end. */
export interface PriceRow {
  readonly connectFeeMicros: number
  readonly firstIncrementSeconds: number
  readonly firstRatePerMinuteMicros: number
  readonly incrementSeconds: number
  readonly ratePerMinuteMicros: number
  readonly isBlocked: boolean
  readonly effectiveFrom: number | null
  readonly effectiveTo: number | null
}

/** In the order of `termPlaces`. */
const termsOf = (row: PriceRow): readonly number[] => [
  row.connectFeeMicros,
  row.firstIncrementSeconds,
  row.firstRatePerMinuteMicros,
  row.incrementSeconds,
  row.ratePerMinuteMicros,
  row.isBlocked ? 1 : 0,
  row.effectiveFrom ?? -Infinity,
  row.effectiveTo ?? Infinity,
]

const orNull = (time: number): number | null => (Number.isFinite(time) ? time : null)

const powersOfTen = Array.from({ length: MAX_DIGITS + 1 }, (_, power) => 10 ** power)
const powerOfTen = (power: number): number => powersOfTen[power] ?? 1

/** Undefined: it is not of digits alone. */
function filledDigits(prefix: string): number | undefined {
  let digits = 0
  for (let at = 0; at < prefix.length; at += 1) {
    const digit = prefix.charCodeAt(at) - 48
    if (!(digit >= 0 && digit <= 9)) return undefined
    digits = digits * 10 + digit
  }
  return digits * powerOfTen(MAX_DIGITS - prefix.length)
}

interface Numbers {
  readonly length: number
  set(from: this): void
}

function doubled<List extends Numbers>(list: List, Kind: new (length: number) => List): List {
  const longer = new Kind(list.length * 2)
  longer.set(list)
  return longer
}
