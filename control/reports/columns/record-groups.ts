/** Calls of blocks in sums by group: row by row, without a statement. */
import { HOUR_MS, MINUTE_MS } from '../../../schema/clock.ts'
import { type Grouping, PREFIX_LENGTH, QUARTER_MS } from '../call-filters.ts'
import { type Figures, type GroupRow, noFigures } from '../figures.ts'
import type { BlockMatches } from './block-scan.ts'
import { CodeTable } from './code-table.ts'
import { digitsOfStart, numberOfCode, startOfCode } from './number-code.ts'
import type { BlockColumn, BlockHead } from './record-block.ts'

interface NumberGroups {
  readonly column: BlockColumn
  /** The number of a group, out of that of a record. */
  readonly groupOf: (value: number) => number
  readonly memberOf: (group: number) => string
  /** The member of a number without a code. */
  readonly memberOfText?: (text: string) => string
}

type GroupKind = NumberGroups | { readonly words: 'node' | 'carrier' | 'denial_code' }

const same = (value: number): number => value

const times = (lengthMs: number): NumberGroups => ({
  column: 'start_stamp',
  groupOf: (at) => at - (at % lengthMs),
  memberOf: String,
})

const kinds: Readonly<Record<Grouping, GroupKind>> = {
  customer: { column: 'customer_id', groupOf: same, memberOf: String },
  tenant: { column: 'tenant_id', groupOf: same, memberOf: String },
  caller: {
    column: 'caller_id_number',
    groupOf: same,
    memberOf: numberOfCode,
    memberOfText: (text) => text,
  },
  callee_prefix: {
    column: 'destination_number',
    groupOf: (code) => startOfCode(code, PREFIX_LENGTH),
    memberOf: (start) => digitsOfStart(start, PREFIX_LENGTH),
    memberOfText: (text) => text.replace(/^\++/, '').slice(0, PREFIX_LENGTH),
  },
  node: { words: 'node' },
  carrier: { words: 'carrier' },
  denial_code: { words: 'denial_code' },
  minute: times(MINUTE_MS),
  quarter: times(QUARTER_MS),
  hour: times(HOUR_MS),
}

/** Columns that sums by group need. */
export function groupedColumns(groupBy: Grouping): readonly BlockColumn[] {
  const kind = kinds[groupBy]
  const own = 'words' in kind ? kind.words : kind.column
  return [
    ...new Set<BlockColumn>([
      own,
      'id',
      'start_stamp',
      'disposition',
      'denial_code',
      'billsec',
      'post_dial_delay_ms',
      'cost_micros',
      'currency',
      'customer_id',
    ]),
  ]
}

/** Figures of a group lie beside each other: each record changes most of them. */
const figure = {
  calls: 0,
  answered: 1,
  denied: 2,
  failed: 3,
  billsec: 4,
  pdd_ms: 5,
  pdd_calls: 6,
  first_at: 7,
  last_at: 8,
  first_id: 9,
  last_id: 10,
  dearestCost: 11,
  dearestId: 12,
} as const
const WIDTH = 16

/** Those of a group without a call; the rest of its numbers are zero. */
const emptyFigures = Float64Array.from({ length: WIDTH }, () => 0)
for (const name of ['first_at', 'first_id'] as const) emptyFigures[figure[name]] = Infinity
for (const name of ['last_at', 'last_id'] as const) emptyFigures[figure[name]] = -Infinity

const LEAST_GROUPS = 256

/** Some numbers for each group; `empty` are those of a new one. */
class GroupNumbers {
  values = new Float64Array(0)
  readonly #empty: Float64Array

  constructor(empty: Float64Array) {
    this.#empty = empty
  }

  makeRoom(groups: number): void {
    const { values } = this
    const width = this.#empty.length
    if (groups * width <= values.length) return
    const larger = new Float64Array(Math.max(LEAST_GROUPS, 2 * groups) * width)
    larger.set(values)
    for (let at = values.length; at < larger.length; at += width) larger.set(this.#empty, at)
    this.values = larger
  }
}

const noAmount = Float64Array.of(NaN)

/** Amounts of groups in one currency. NaN: there is none. */
class GroupAmounts {
  readonly numbers = new GroupNumbers(noAmount)
  /** Sums that would not be exact are moved there. */
  readonly large = new Map<number, bigint>()

  add(group: number, micros: number): void {
    const { values } = this.numbers
    const known = values[group] ?? NaN
    const sum = Number.isNaN(known) ? micros : known + micros
    if (Number.isSafeInteger(sum)) values[group] = sum
    else {
      this.large.set(group, (this.large.get(group) ?? 0n) + BigInt(known))
      values[group] = micros
    }
  }

  of(group: number): bigint | undefined {
    const sum = this.numbers.values[group] ?? NaN
    return Number.isNaN(sum) ? undefined : BigInt(sum) + (this.large.get(group) ?? 0n)
  }
}

export class RecordGroups {
  readonly #kind: GroupKind
  #members: string[] = []
  #byMember = new Map<string, number>()
  #byNumber = new CodeTable()
  #figures = new GroupNumbers(emptyFigures)
  #amounts = new Map<string, GroupAmounts>()
  #groups = new Int32Array(0)

  constructor(groupBy: Grouping) {
    this.#kind = kinds[groupBy]
  }

  get size(): number {
    return this.#members.length
  }

  add(match: BlockMatches): void {
    const groups = this.#groupsOf(match)
    this.#makeRoom()
    this.#addCalls(match, groups)
    this.#addCosts(match, groups)
  }

  /** The groups and their sums; there are none then. A group has a row for each currency. */
  *take(): Generator<GroupRow, void> {
    const [members, amounts, { values }] = [this.#members, this.#amounts, this.#figures]
    this.#members = []
    this.#byMember = new Map()
    this.#byNumber = new CodeTable()
    this.#figures = new GroupNumbers(emptyFigures)
    this.#amounts = new Map()
    for (const [group, member] of members.entries()) {
      const figures = figuresAt(values, group * WIDTH)
      yield { ...figures, member, currency: '', cost_micros: '0' }
      for (const [currency, each] of amounts) {
        const micros = each.of(group)
        if (micros !== undefined)
          yield { ...noFigures(), member, currency, cost_micros: String(micros) }
      }
    }
  }

  /** The group of each matching row. */
  #groupsOf({ block: { head }, rows, numbers }: BlockMatches): Int32Array {
    const kind = this.#kind
    if (this.#groups.length < rows.length) this.#groups = new Int32Array(rows.length)
    const groups = this.#groups
    if ('words' in kind) {
      const codes = numbers.of(kind.words)
      const byCode = new Map<number, number>()
      const words = head.words[kind.words] ?? []
      for (let at = 0; at < rows.length; at += 1) {
        const code = codes[rows[at] ?? 0] ?? NaN
        let group = byCode.get(code)
        if (group === undefined) {
          group = this.#groupOf(words[code] ?? '')
          byCode.set(code, group)
        }
        groups[at] = group
      }
      return groups
    }
    const values = numbers.of(kind.column)
    let [last, group] = [NaN, -1]
    for (let at = 0; at < rows.length; at += 1) {
      const value = values[rows[at] ?? 0] ?? NaN
      // Neighbours are often of one group.
      if (value !== last || group < 0) {
        group = this.#groupOfNumber(kind, head, value)
        last = value
      }
      groups[at] = group
    }
    return groups
  }

  #groupOfNumber(kind: NumberGroups, head: BlockHead, value: number): number {
    if (Number.isNaN(value)) return this.#groupOf('')
    if (value < 0 && kind.memberOfText !== undefined)
      return this.#groupOf(kind.memberOfText(head.words[kind.column]?.[-1 - value] ?? ''))
    const number = kind.groupOf(value)
    let group = this.#byNumber.get(number)
    if (group < 0) {
      group = this.#groupOf(kind.memberOf(number))
      this.#byNumber.set(number, group)
    }
    return group
  }

  #groupOf(member: string): number {
    const known = this.#byMember.get(member)
    if (known !== undefined) return known
    const group = this.#members.length
    this.#members.push(member)
    this.#byMember.set(member, group)
    return group
  }

  #makeRoom(): void {
    const { size } = this
    this.#figures.makeRoom(size)
    for (const { numbers } of this.#amounts.values()) numbers.makeRoom(size)
  }

  #addCalls({ block: { head }, rows, numbers }: BlockMatches, groups: Int32Array): void {
    const ends = endsOf(head)
    const [ids, starts] = [numbers.of('id'), numbers.of('start_stamp')]
    const [dispositions, denials] = [numbers.of('disposition'), numbers.of('denial_code')]
    const [seconds, delays] = [numbers.of('billsec'), numbers.of('post_dial_delay_ms')]
    const { values } = this.#figures
    for (let at = 0; at < rows.length; at += 1) {
      const row = rows[at] ?? 0
      const to = (groups[at] ?? 0) * WIDTH
      plus(values, to + figure.calls, 1)
      const disposition = dispositions[row] ?? NaN
      const isRefused = ends.isRefusal[denials[row] ?? NaN] === 1
      if (disposition === ends.answered) plus(values, to + figure.answered, 1)
      else if (isRefused) plus(values, to + figure.denied, 1)
      if (!isRefused && ends.isFailure[disposition] === 1) plus(values, to + figure.failed, 1)
      plus(values, to + figure.billsec, seconds[row] ?? 0)
      const delay = delays[row] ?? NaN
      if (!Number.isNaN(delay)) {
        plus(values, to + figure.pdd_ms, delay)
        plus(values, to + figure.pdd_calls, 1)
      }
      span(values, to + figure.first_at, starts[row] ?? 0)
      span(values, to + figure.first_id, ids[row] ?? 0)
    }
  }

  #addCosts(match: BlockMatches, groups: Int32Array): void {
    const { block, rows, numbers, prices } = match
    const amounts = (block.head.words['currency'] ?? []).map((word) => this.#amountsIn(word))
    const [costs, currencies, ids] = [prices.of('cost'), numbers.of('currency'), numbers.of('id')]
    for (let at = 0; at < rows.length; at += 1) {
      const [row, group] = [rows[at] ?? 0, groups[at] ?? 0]
      const cost = costs[row] ?? NaN
      // The reader does not see it.
      if (Number.isNaN(cost)) continue
      const amount = amounts[currencies[row] ?? NaN]
      if (amount !== undefined) amount.add(group, cost)
      else if (cost !== 0) this.#amountsIn('').add(group, cost)
      if (cost > 0) this.#compareDearest(group, cost, ids[row] ?? 0)
    }
  }

  #amountsIn(currency: string): GroupAmounts {
    const known = this.#amounts.get(currency)
    if (known !== undefined) return known
    const amounts = new GroupAmounts()
    amounts.numbers.makeRoom(this.size)
    this.#amounts.set(currency, amounts)
    return amounts
  }

  /** As `foldOf` compares them: of the same cost, the greater text of the id. */
  #compareDearest(group: number, cost: number, id: number): void {
    const { values } = this.#figures
    const at = group * WIDTH + figure.dearestCost
    const known = values[at] ?? 0
    if (cost < known || (cost === known && String(id) <= String(values[at + 1]))) return
    values[at] = cost
    values[at + 1] = id
  }
}

/** Added to the cost of the dearest call: texts of the same length are compared. */
const DEAREST = 10n ** 18n

function plus(values: Float64Array, at: number, more: number): void {
  values[at] = (values[at] ?? 0) + more
}

/** The least of all values, and after it the greatest. */
function span(values: Float64Array, at: number, value: number): void {
  if (value < (values[at] ?? 0)) values[at] = value
  if (value > (values[at + 1] ?? 0)) values[at + 1] = value
}

const { dearestCost: DEAREST_COST, dearestId: DEAREST_ID, ...plain } = figure
const plainFigures = Object.entries(plain) as readonly (readonly [keyof typeof plain, number])[]

function figuresAt(values: Float64Array, from: number): Figures {
  const figures = noFigures()
  for (const [name, at] of plainFigures) figures[name] = values[from + at] ?? 0
  const cost = values[from + DEAREST_COST] ?? 0
  if (cost > 0) figures.dearest = `${DEAREST + BigInt(cost)}-${values[from + DEAREST_ID]}`
  return figures
}

/** How calls of a block have ended, by the codes of its words. */
function endsOf({ words }: BlockHead) {
  const { disposition = [], denial_code: denials = [] } = words
  const isFailure = (word: string) => word === 'FAILED' || word === 'CONGESTION'
  return {
    answered: disposition.indexOf('ANSWERED'),
    isFailure: Uint8Array.from(disposition, (word) => (isFailure(word) ? 1 : 0)),
    isRefusal: Uint8Array.from(denials, (word) => (word === '' ? 0 : 1)),
  }
}
