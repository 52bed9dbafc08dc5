/**
 * The tests of a filter, by columns: all groups must match, of a group one test. A block
 * says by its head which of them none of its records passes, or all.
 */
import type { CdrMatch, ValueLimits } from '../cdr-match.ts'
import type { CallFilters } from '../call-filters.ts'
import { codesOfNumber, codesOfStart, type CodeRange } from './number-code.ts'
import {
  type BlockColumn,
  type BlockHead,
  type CallIdColumn,
  type NumberColumn,
  type PhoneColumn,
  tagText,
  type WordColumn,
} from './record-block.ts'
import { numberOrText, withoutPlus } from '../../../schema/rules/numbers.ts'
import { textHash } from './text-hash.ts'

/** Prices as a reader sees them: a column may have more. */
export type SeenPrice = 'cost' | 'margin'

type Test =
  | {
      readonly kind: 'range'
      readonly column: NumberColumn | CallIdColumn
      readonly from: number
      readonly to: number
    }
  | {
      readonly kind: 'price'
      readonly price: SeenPrice
      readonly from: number
      readonly to: number
    }
  | { readonly kind: 'among'; readonly column: NumberColumn; readonly values: ReadonlySet<number> }
  | {
      readonly kind: 'word'
      readonly column: WordColumn
      readonly isWanted: (word: string) => boolean
    }
  | {
      readonly kind: 'phone'
      readonly column: PhoneColumn
      readonly codes: CodeRange | undefined
      /** For numbers without a code. */
      readonly isWanted: (text: string) => boolean
    }
  | { readonly kind: 'tag'; readonly hash: number }

export type TestGroup = readonly Test[]

/** Milliseconds UTC; `before` is exclusive. */
export interface RecordScope {
  /** Null for all tenants. */
  readonly tenantId: number | null
  readonly from: number
  readonly before: number
  readonly match?: CdrMatch | undefined
  /** All of these must match, too. */
  readonly filters?: CallFilters | undefined
}

export function testsOf(scope: RecordScope): readonly TestGroup[] {
  const { tenantId, from, before, match = {}, filters = {} } = scope
  const { number, caller, called, extension } = match
  return [
    [{ kind: 'range', column: 'start_stamp', from, to: before - 1 }],
    ...given(tenantId ?? undefined, (id) => [range('tenant_id', [id, id])]),
    ...given(match.customer_id, (ids) => [among('customer_id', ids)]),
    ...given(match.set_id, (ids) => [among('set_id', ids)]),
    ...given(match.code, (codes) => [among('sip_code', codes)]),
    ...given(match.disposition, (words) => [oneOf('disposition', words)]),
    ...given(match.direction, (words) => [oneOf('direction', words)]),
    ...given(match.carrier, (words) => [oneOf('carrier', words)]),
    ...given(match.instance, (words) => [oneOf('instance', words)]),
    ...given(match.verification, (word) => [oneOf('verification', [word])]),
    ...given(match.attestation, (word) => [oneOf('attestation', [word])]),
    ...given(match.node, (nodes) => [{ kind: 'word', column: 'node', isWanted: onOneOf(nodes) }]),
    ...given(match.cause, (causes) => [
      oneOf(
        'hangup_cause',
        causes.map((cause) => cause.toUpperCase()),
      ),
      oneOf(
        'denial_code',
        causes.map((cause) => cause.toLowerCase()),
      ),
    ]),
    ...given(number, (text) => [
      phone('caller_id_number', text),
      phone('destination_number', text),
    ]),
    ...given(caller, (text) => [phone('caller_id_number', text)]),
    ...given(called, (text) => [phone('destination_number', text)]),
    ...given(extension, (texts) =>
      texts.flatMap((text) => [phone('caller_id_number', text), phone('destination_number', text)]),
    ),
    ...given(match.duration, (limits) => [range('duration', limits)]),
    ...given(match.billsec, (limits) => [range('billsec', limits)]),
    ...given(match.mos, (limits) => [range('mos_score', limits)]),
    ...given(match.pdd, (limits) => [range('post_dial_delay_ms', limits)]),
    ...given(match.cost, (limits) => [price('cost', limits)]),
    ...given(match.margin, (limits) => [price('margin', limits)]),
    ...given(match.call_id, (text) => [range('call_id', [textHash(text), textHash(text)])]),
    ...given(match.tag, (tag) => [{ kind: 'tag', hash: textHash(tagTextOf(tag)) }]),
    ...testsOfFilters(filters),
  ]
}

function testsOfFilters(filters: CallFilters): readonly TestGroup[] {
  const { customerId, members = {}, direction, disposition, minCostMicros } = filters
  const { caller, callee_prefix: start, node, carrier, denial_code: denial } = members
  return [
    ...given(customerId, (id) => [among('customer_id', [id])]),
    ...given(caller, (text) => [wholePhone('caller_id_number', text)]),
    ...given(start, (text) => [phoneStart('destination_number', text)]),
    ...given(node, (uri) => [{ kind: 'word', column: 'node', isWanted: onOneOf([uri]) }]),
    ...given(carrier, (name) => [oneOf('carrier', [name])]),
    ...given(denial, (code) => [oneOf('denial_code', [code])]),
    ...given(direction, (word) => [oneOf('direction', [word])]),
    ...given(disposition, (word) => [oneOf('disposition', [word])]),
    ...given(minCostMicros, (micros) => [price('cost', [micros, undefined])]),
  ]
}

const given = <T>(value: T | undefined, group: (value: T) => TestGroup): readonly TestGroup[] =>
  value === undefined ? [] : [group(value)]

export const range = (column: NumberColumn | CallIdColumn, [from, to]: ValueLimits): Test => ({
  kind: 'range',
  column,
  from: from ?? -Infinity,
  to: to ?? Infinity,
})

const price = (name: SeenPrice, [from, to]: ValueLimits): Test => ({
  kind: 'price',
  price: name,
  from: from ?? -Infinity,
  to: to ?? Infinity,
})

const among = (column: NumberColumn, values: readonly number[]): Test => ({
  kind: 'among',
  column,
  values: new Set(values),
})

const oneOf = (column: WordColumn, words: readonly string[]): Test => {
  const wanted = new Set(words)
  return { kind: 'word', column, isWanted: (word) => wanted.has(word) }
}

const tagTextOf = (tag: string): string => {
  const colon = tag.indexOf(':')
  return tagText(tag.slice(0, colon), tag.slice(colon + 1))
}

/** Stored as `sip:host:port;transport=udp`: the filter may end before the port or the transport. */
function onOneOf(nodes: readonly string[]): (word: string) => boolean {
  const addresses = nodes.map((node) => `sip:${node.toLowerCase().replace(/^sips?:/, '')}`)
  return (word) => {
    const uri = word.toLowerCase()
    return addresses.some((address) => {
      if (!uri.startsWith(address)) return false
      const next = uri.charAt(address.length)
      return next === '' || next === ':' || next === ';'
    })
  }
}

/** A number with `*` at its end is a beginning. */
function phone(column: PhoneColumn, text: string): Test {
  return text.endsWith('*') && text.length > 1
    ? phoneStart(column, text.slice(0, -1))
    : wholePhone(column, text)
}

export function phoneStart(column: PhoneColumn, text: string): Test {
  const start = withoutPlus(text)
  const isWanted = (stored: string) => withoutPlus(stored).startsWith(start)
  return { kind: 'phone', column, codes: codesOfStart(start), isWanted }
}

export function wholePhone(column: PhoneColumn, text: string): Test {
  const digits = withoutPlus(numberOrText(text))
  return {
    kind: 'phone',
    column,
    codes: codesOfNumber(digits),
    isWanted: (stored) => stored === text || withoutPlus(stored) === digits,
  }
}

/** A test of the records of one block. */
export interface BlockTest {
  readonly columns: readonly BlockColumn[]
  /** Undefined: of what the columns say together. */
  readonly price?: SeenPrice
  readonly isPassed: (values: Float64Array, row: number) => boolean
  /** By the rows of another column. */
  readonly tag?: number
}

/** The tests of a group that some records of the block may pass; `all`: all of them do. */
export function testsOfBlock(group: TestGroup, head: BlockHead): readonly BlockTest[] | 'all' {
  const tests: BlockTest[] = []
  for (const test of group) {
    const found = testOfBlock(test, head)
    if (found === 'all') return 'all'
    if (found !== 'none') tests.push(found)
  }
  return tests
}

function testOfBlock(test: Test, head: BlockHead): BlockTest | 'all' | 'none' {
  switch (test.kind) {
    case 'range':
      return rangeTest(test, head)
    case 'among':
      return amongTest(test, head)
    case 'word':
      return wordTest(test, head)
    case 'phone':
      return phoneTest(test, head)
    case 'tag':
      if (head.tags === 0) return 'none'
      return { columns: ['tag_row', 'tag_hash'], tag: test.hash, isPassed: () => false }
    case 'price':
      return priceTest(test, head)
  }
}

type TestOf<Kind extends Test['kind']> = Extract<Test, { readonly kind: Kind }>

function rangeTest({ column, from, to }: TestOf<'range'>, head: BlockHead) {
  const { min = null, max = null, hasNull = false } = head.columns[column] ?? {}
  if (min === null || max === null || max < from || min > to) return 'none'
  if (min >= from && max <= to && !hasNull) return 'all'
  return within([column], from, to)
}

const within = (columns: readonly BlockColumn[], from: number, to: number): BlockTest => ({
  columns,
  isPassed: (values, row) => {
    const value = values[row] ?? NaN
    return value >= from && value <= to
  },
})

function amongTest({ column, values: wanted }: TestOf<'among'>, head: BlockHead) {
  const { min = null, max = null, hasNull = false } = head.columns[column] ?? {}
  if (min === null || max === null) return 'none'
  if (![...wanted].some((value) => value >= min && value <= max)) return 'none'
  if (min === max && !hasNull) return 'all'
  const isPassed = (values: Float64Array, row: number) => wanted.has(values[row] ?? NaN)
  return { columns: [column], isPassed }
}

function wordTest({ column, isWanted }: TestOf<'word'>, head: BlockHead) {
  const words = head.words[column] ?? []
  const wanted = Uint8Array.from(words, (word) => (isWanted(word) ? 1 : 0))
  if (!wanted.includes(1)) return 'none'
  if (!wanted.includes(0) && head.columns[column]?.hasNull === false) return 'all'
  const isPassed = (values: Float64Array, row: number) => wanted[values[row] ?? NaN] === 1
  return { columns: [column], isPassed }
}

function phoneTest({ column, codes, isWanted }: TestOf<'phone'>, head: BlockHead) {
  const others = Uint8Array.from(head.words[column] ?? [], (text) => (isWanted(text) ? 1 : 0))
  const { min = null, max = null } = head.columns[column] ?? {}
  if (min === null || max === null) return 'none'
  const { from, to } = codes ?? { from: Infinity, to: Infinity }
  const isAmong = codes !== undefined && max >= from && min <= to
  if (!isAmong && !others.includes(1)) return 'none'
  if (!others.includes(1)) return within([column], from, to)
  const isPassed = (values: Float64Array, row: number) => {
    const value = values[row] ?? NaN
    return value < 0 ? others[-1 - value] === 1 : value >= from && value <= to
  }
  return { columns: [column], isPassed }
}

/** Columns by which a reader's prices are known. */
export const priceColumns: Readonly<Record<SeenPrice, readonly BlockColumn[]>> = {
  cost: ['cost_micros', 'customer_id'],
  margin: [
    'cost_micros',
    'customer_id',
    'currency',
    'carrier_cost_micros',
    'carrier_currency',
    'carrier_tenant_id',
  ],
}

function priceTest({ price: name, from, to }: TestOf<'price'>, head: BlockHead) {
  const { min = null, max = null } = head.columns['cost_micros'] ?? {}
  const isKnown = name === 'cost' || head.columns['carrier_cost_micros']?.max != null
  if (min === null || max === null || !isKnown) return 'none'
  if (name === 'cost' && (max < from || min > to)) return 'none'
  return { ...within(priceColumns[name], from, to), price: name }
}
