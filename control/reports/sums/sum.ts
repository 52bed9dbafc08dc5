/**
 * What calls come to, added up in place. Hot when records are added to the kept sums: figures of a group lie side by side
 * in one array of numbers, and texts are compared once for a record. `npm run bench -- sums` measures it.
 */
import type { SqlValue } from '../../../schema/sql/sql-value.ts'
import { OTHERS } from './dimensions.ts'

/** A record, or a change of its cost, which counts no call. */
export interface Counted {
  readonly calls: 0 | 1
  readonly id: number
  readonly startedAt: number
  readonly tenantId: number
  readonly customerId: number
  readonly caller: string
  readonly calleePrefix: string
  readonly ratePrefix: string
  readonly node: string
  readonly carrier: string
  readonly denialCode: string
  readonly answered: 0 | 1
  readonly denied: 0 | 1
  readonly failed: 0 | 1
  readonly billsec: number
  readonly pddMs: number
  readonly pddCalls: 0 | 1
  readonly costMicros: number
  readonly currency: string
  /** Of the record, whatever changed it. */
  readonly wholeCostMicros: number
}

/** Where a figure of a group is, after the place of the group. */
const [CALLS, ANSWERED, DENIED, FAILED, BILLSEC, PDD_MS, PDD_CALLS] = [0, 1, 2, 3, 4, 5, 6]
const [FIRST_AT, LAST_AT, FIRST_ID, LAST_ID, COST, DEAREST, DEAREST_ID] = [7, 8, 9, 10, 11, 12, 13]
const WIDTH = 16

/** The figures of all groups. */
class Figures {
  #values = new Float64Array(1_024 * WIDTH)
  #end = 0
  /** Numbers are exact up to 2^53: costs beyond. */
  readonly #large = new Map<number, bigint>()

  /** Returns the place of a new group. */
  make(): number {
    const place = this.#end
    this.#end += WIDTH
    if (this.#end > this.#values.length) {
      const larger = new Float64Array(2 * this.#values.length)
      larger.set(this.#values)
      this.#values = larger
    }
    this.#values.fill(Infinity, place + FIRST_AT, place + LAST_ID + 1)
    this.#values[place + LAST_AT] = -Infinity
    this.#values[place + LAST_ID] = -Infinity
    return place
  }

  count(place: number, counted: Counted): void {
    const values = this.#values
    add(values, place + CALLS, counted.calls)
    add(values, place + ANSWERED, counted.answered)
    add(values, place + DENIED, counted.denied)
    add(values, place + FAILED, counted.failed)
    add(values, place + BILLSEC, counted.billsec)
    add(values, place + PDD_MS, counted.pddMs)
    add(values, place + PDD_CALLS, counted.pddCalls)
    const { startedAt, id, costMicros, wholeCostMicros } = counted
    lower(values, place + FIRST_AT, startedAt)
    raise(values, place + LAST_AT, startedAt)
    lower(values, place + FIRST_ID, id)
    raise(values, place + LAST_ID, id)
    if (costMicros !== 0) this.#addCost(place, costMicros)
    if (wholeCostMicros > 0) compareDearest(values, place, wholeCostMicros, id)
  }

  merge(place: number, other: number): void {
    const values = this.#values
    for (let figure = CALLS; figure <= PDD_CALLS; figure += 1)
      add(values, place + figure, at(values, other + figure))
    lower(values, place + FIRST_AT, at(values, other + FIRST_AT))
    raise(values, place + LAST_AT, at(values, other + LAST_AT))
    lower(values, place + FIRST_ID, at(values, other + FIRST_ID))
    raise(values, place + LAST_ID, at(values, other + LAST_ID))
    this.#addCost(place, at(values, other + COST))
    const large = this.#large.get(other)
    if (large !== undefined) this.#large.set(place, (this.#large.get(place) ?? 0n) + large)
    compareDearest(values, place, at(values, other + DEAREST), at(values, other + DEAREST_ID))
  }

  /** Adds them in the order of the columns of `call_sum`. */
  write(place: number, row: SqlValue[]): void {
    const values = this.#values
    for (let figure = CALLS; figure <= BILLSEC; figure += 1) row.push(at(values, place + figure))
    row.push(this.costOf(place))
    for (let figure = PDD_MS; figure <= LAST_ID; figure += 1) row.push(at(values, place + figure))
    const dearest = at(values, place + DEAREST)
    const id = at(values, place + DEAREST_ID)
    // 10^18 and the cost, `-`, the id: the greatest text. Empty: all were free.
    row.push(dearest === 0 ? '' : `1${String(dearest).padStart(18, '0')}-${id}`)
  }

  costOf(place: number): bigint {
    return (this.#large.get(place) ?? 0n) + BigInt(at(this.#values, place + COST))
  }

  callsOf(place: number): number {
    return at(this.#values, place + CALLS)
  }

  #addCost(place: number, micros: number): void {
    const known = at(this.#values, place + COST)
    const cost = known + micros
    if (!Number.isSafeInteger(cost))
      this.#large.set(place, (this.#large.get(place) ?? 0n) + BigInt(known))
    this.#values[place + COST] = Number.isSafeInteger(cost) ? cost : micros
  }
}

/** The place is always inside. */
const at = (values: Float64Array, index: number): number => values[index] ?? 0

function add(values: Float64Array, index: number, value: number): void {
  values[index] = at(values, index) + value
}

function lower(values: Float64Array, index: number, value: number): void {
  if (value < at(values, index)) values[index] = value
}

function raise(values: Float64Array, index: number, value: number): void {
  if (value > at(values, index)) values[index] = value
}

/** Of calls that cost the same, the greatest text has the id that is greater as text. */
function compareDearest(values: Float64Array, place: number, micros: number, id: number): void {
  const dearest = at(values, place + DEAREST)
  if (micros < dearest) return
  if (micros === dearest && !isLaterText(id, at(values, place + DEAREST_ID))) return
  values[place + DEAREST] = micros
  values[place + DEAREST_ID] = id
}

/** Numbers with as many digits compare as their texts do. */
const isLaterText = (one: number, other: number): boolean =>
  digits(one) === digits(other) ? one > other : String(one) > String(other)

function digits(id: number): number {
  let count = 1
  for (let limit = 10; id >= limit; limit *= 10) count += 1
  return count
}

/** Of a slice, which has fewer records. The name of a group is a small number, which a map finds fastest. */
const MAX_TEXTS = 2 ** 24

/** What the groups of one tally have in common. */
export class Ledger {
  readonly figures = new Figures()
  readonly #numbers = new Map<string, number>()
  readonly #texts: string[] = []
  /** Few: their numbers are small. */
  readonly #currencies: string[] = []

  /** The name of the first group of a currency; a member's number is added to it. */
  nameOf(currency: string): number {
    const known = this.#currencies.indexOf(currency)
    return (known === -1 ? this.#currencies.push(currency) - 1 : known) * MAX_TEXTS
  }

  currencyOf(name: number): string {
    return this.#currencies[Math.floor(name / MAX_TEXTS)] ?? ''
  }

  numberOf(text: string): number {
    let number = this.#numbers.get(text)
    if (number === undefined) {
      number = this.#texts.push(text) - 1
      this.#numbers.set(text, number)
    }
    return number
  }

  textOf(number: number): string {
    return this.#texts[number] ?? ''
  }
}

/** Groups by member and currency. */
export class Sums {
  readonly #ledger: Ledger
  readonly #places = new Map<number, number>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  get size(): number {
    return this.#places.size
  }

  count(name: number, counted: Counted): void {
    this.#ledger.figures.count(this.#placeOf(name), counted)
  }

  merge(other: Sums, as?: string): void {
    const member = as === undefined ? undefined : this.#ledger.numberOf(as)
    for (const [name, place] of other.#places) this.#merge(place, name, member)
  }

  /** Of new members the dearest are kept, then those with most calls; what comes beyond is added to others. */
  bounded(known: ReadonlySet<string>, most: number): Sums {
    const members = new Set(known)
    const bounded = new Sums(this.#ledger)
    const others = this.#ledger.numberOf(OTHERS)
    for (const [name, place] of [...this.#places].toSorted(this.#byWeight)) {
      const member = this.#memberOf(name)
      const isKept = members.has(member) || members.size < most
      if (isKept) members.add(member)
      bounded.#merge(place, name, isKept ? undefined : others)
    }
    return bounded
  }

  /** A row of `call_sum` for each group, which begins with `scope`. */
  *rows(scope: readonly SqlValue[]): Generator<SqlValue[], void, undefined> {
    const ledger = this.#ledger
    for (const [name, place] of this.#places) {
      const row = [...scope, this.#memberOf(name), ledger.currencyOf(name)]
      ledger.figures.write(place, row)
      yield row
    }
  }

  #merge(place: number, name: number, member: number | undefined): void {
    const own = member === undefined ? name : name - (name % MAX_TEXTS) + member
    this.#ledger.figures.merge(this.#placeOf(own), place)
  }

  #placeOf(name: number): number {
    let place = this.#places.get(name)
    if (place === undefined) {
      place = this.#ledger.figures.make()
      this.#places.set(name, place)
    }
    return place
  }

  #memberOf(name: number): string {
    return this.#ledger.textOf(name % MAX_TEXTS)
  }

  readonly #byWeight = (one: Place, other: Place): number => {
    const { figures } = this.#ledger
    const [cost, otherCost] = [figures.costOf(one[1]), figures.costOf(other[1])]
    if (cost !== otherCost) return cost > otherCost ? -1 : 1
    return figures.callsOf(other[1]) - figures.callsOf(one[1])
  }
}

type Place = readonly [name: number, place: number]
