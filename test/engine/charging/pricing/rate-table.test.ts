import fc from 'fast-check'
import { expect, test } from 'vitest'
import { PlanTimes } from '../../../../engine/charging/pricing/plan-times.ts'
import { RateDeck } from '../../../../engine/charging/pricing/rate-table.ts'
import type { Rate } from '../../../../schema/contracts/charging.ts'

const rate = (prefix: string, more: Partial<Rate> = {}): Rate => ({
  planId: 1,
  tariff: {
    prefix,
    currency: 'USD',
    connectFeeMicros: 0,
    firstIncrementSeconds: 1,
    firstRatePerMinuteMicros: 1,
    incrementSeconds: 1,
    ratePerMinuteMicros: 1,
    decimals: 4,
  },
  isBlocked: false,
  effectiveFrom: null,
  effectiveTo: null,
  ...more,
})

const prefixFor = (table: RateDeck, number: string, at = 1_000): string | undefined =>
  table.find(1, number, at)?.tariff.prefix

test('the longest prefix wins, with or without a leading plus on either side', () => {
  const table = new RateDeck([rate(''), rate('49'), rate('+4930'), rate('4930123')])
  expect(prefixFor(table, '+49301239')).toBe('4930123')
  expect(prefixFor(table, '49305')).toBe('+4930')
  expect(prefixFor(table, '+4989')).toBe('49')
  expect(prefixFor(table, 'reception')).toBe('')
})

test('a plan without a matching prefix, and an unknown plan, have no rate', () => {
  const table = new RateDeck([rate('49')])
  expect(table.find(1, '44', 0)).toBeUndefined()
  expect(table.find(2, '49', 0)).toBeUndefined()
})

test('a rate holds from its first to before its last moment; outside, a shorter prefix does', () => {
  const table = new RateDeck([rate('4'), rate('49', { effectiveFrom: 1_000, effectiveTo: 2_000 })])
  expect([999, 1_000, 1_999, 2_000].map((at) => prefixFor(table, '491', at))).toEqual([
    '4',
    '49',
    '49',
    '4',
  ])
})

test('of two rates in force for a prefix the one that began later holds', () => {
  const blocked = rate('49', { effectiveFrom: 500, isBlocked: true })
  const table = new RateDeck([rate('49'), blocked])
  expect(table.find(1, '491', 499)?.isBlocked).toBe(false)
  expect(table.find(1, '491', 500)?.isBlocked).toBe(true)
})

test('a number that still begins with an exit code has the price of numbers abroad, not that of national ones', () => {
  const codes = ['011', '00']
  const table = new RateDeck([rate(''), rate('0'), rate('00'), rate('33')], codes)
  for (const number of ['+441632960000', '00441632960000', '0042'])
    expect([number, prefixFor(table, number)]).toEqual([number, '00'])
  for (const number of ['000441632960000', '+000441632960000', '00*441632960000'])
    expect([number, prefixFor(table, number)]).toEqual([number, '00'])
  expect(['01632960000', '441632960000'].map((each) => prefixFor(table, each))).toEqual(['0', ''])
  expect(prefixFor(new RateDeck([rate('00')], codes), '000441632960000')).toBe('00')
})

const priced = (prefix: string, ratePerMinuteMicros: number, more: Partial<Rate> = {}): Rate => {
  const plain = rate(prefix, more)
  const price = { firstRatePerMinuteMicros: ratePerMinuteMicros, ratePerMinuteMicros }
  return { ...plain, tariff: { ...plain.tariff, decimals: 6, ...price } }
}

/** The rate that holds at 1000, whichever is read first, and when one of them is written later. */
const held = (rates: readonly Rate[], exitCodes: readonly string[]): readonly string[] => {
  const spelling = rates[0]?.tariff.prefix.replace('+', '') ?? ''
  const later = rates.filter(({ tariff }) => tariff.prefix.replace('+', '') === spelling)
  const written = new RateDeck(
    rates.filter((each) => !later.includes(each)),
    exitCodes,
  )
  written.replace(1, spelling, later)
  const tables = [new RateDeck(rates, exitCodes), new RateDeck(rates.toReversed(), exitCodes)]
  return [...tables, written].map((table) => prefixFor(table, '+441632960000') ?? '')
}

test.each([
  ['the dearer holds', [priced('0044', 2), priced('44', 3)], '44'],
  ['the dearer holds', [priced('44', 2), priced('0044', 3)], '0044'],
  ['a blocked one holds', [priced('44', 1, { isBlocked: true }), priced('0044', 3)], '44'],
  [
    'a block is not lifted by a later price',
    [priced('44', 1, { isBlocked: true }), priced('0044', 3, { effectiveFrom: 500 })],
    '44',
  ],
  [
    'one that is over does not count',
    [priced('44', 9, { effectiveTo: 900 }), priced('0044', 3)],
    '0044',
  ],
  [
    'the connect fee counts',
    [
      priced('44', 60),
      { ...priced('0044', 0), tariff: { ...priced('0044', 0).tariff, connectFeeMicros: 61 } },
    ],
    '0044',
  ],
  ['equal ones are told by their text', [priced('44', 3), priced('0044', 3)], '0044'],
  [
    'of three spellings the dearest holds',
    [priced('44', 3), priced('01144', 5), priced('0044', 4)],
    '01144',
  ],
])(
  'two prefixes that an exit code makes one: %s, in whatever order they are read',
  (_, rates, prefix) => {
    expect(held(rates, ['011', '00'])).toEqual([prefix, prefix, prefix])
  },
)

test('a prefix that is stored with and without a plus, from the same moment: the dearer holds', () => {
  expect(held([priced('+44', 2), priced('44', 3)], [])).toEqual(['44', '44', '44'])
  const blocked = priced('+44', 1, { isBlocked: true })
  const table = new RateDeck([priced('44', 3), blocked])
  expect(table.find(1, '+441632960000', 1_000)).toBe(blocked)
})

test('every answer is that of trying all prefixes', () => {
  const digits = fc.string({ unit: fc.constantFrom('1', '2', '3'), maxLength: 6 })
  fc.assert(
    fc.property(fc.uniqueArray(digits, { maxLength: 30 }), digits, (prefixes, number) => {
      const table = new RateDeck(prefixes.map((prefix) => rate(prefix)))
      const longest = prefixes
        .filter((prefix) => number.startsWith(prefix))
        .toSorted((a, b) => b.length - a.length)[0]
      expect(prefixFor(table, number)).toBe(longest)
    }),
    { numRuns: 500 },
  )
})

test('a table in which prefixes were replaced answers as one made anew', () => {
  const prefix = fc.stringMatching(/^[12]{0,4}$/)
  const start = fc.constantFrom(null, 500, 900)
  const writes = fc.array(fc.tuple(prefix, fc.array(start, { maxLength: 2 })), { maxLength: 20 })
  fc.assert(
    fc.property(writes, fc.stringMatching(/^[12]{5}$/), (history, number) => {
      const table = new RateDeck([rate('1'), rate('12')])
      const stored = new Map([
        ['1', [rate('1')]],
        ['12', [rate('12')]],
      ])
      for (const [changed, starts] of history) {
        const rates = starts.map((effectiveFrom) => rate(changed, { effectiveFrom }))
        table.replace(1, `+${changed}`, rates)
        stored.set(changed, rates)
      }
      const fresh = new RateDeck([...stored.values()].flat())
      for (const at of [0, 600, 1_000])
        expect(table.find(1, number, at)).toEqual(fresh.find(1, number, at))
    }),
  )
})

test('of the dated prices of a prefix the newest that is in force holds', () => {
  const moment = fc.integer({ min: 0, max: 20 })
  const dated = fc.record({ from: fc.option(moment), to: fc.option(moment) })
  const many = fc.uniqueArray(dated, { maxLength: 12, selector: ({ from }) => from })
  fc.assert(
    fc.property(many, fc.array(fc.integer({ min: 1, max: 4 })), (prices, cuts) => {
      const rates = prices.map(({ from, to }) =>
        rate('49', { effectiveFrom: from, effectiveTo: to }),
      )
      const table = new RateDeck()
      const rest = [...rates]
      for (const length of cuts) table.add(rest.splice(0, length))
      table.add(rest)
      const newestFirst = rates.toSorted(
        (a, b) => (b.effectiveFrom ?? -1) - (a.effectiveFrom ?? -1),
      )
      for (let at = -1; at <= 21; at += 1)
        expect(table.find(1, '4930', at)).toBe(
          newestFirst.find(
            ({ effectiveFrom, effectiveTo }) =>
              (effectiveFrom ?? -1) <= at && at < (effectiveTo ?? Infinity),
          ),
        )
    }),
    { numRuns: 300 },
  )
})

/** The rates as they are read from the database, a slice at a time. */
function readTable(rates: readonly Rate[], slice: number, exitCodes: readonly string[]): RateDeck {
  const table = new RateDeck([], exitCodes)
  const plan = {
    planId: 1,
    currency: 'USD',
    decimals: 4,
    rounding: 'up' as const,
    isByRoutingNumber: false,
  }
  const inOrder = rates.toSorted((a, b) =>
    a.tariff.prefix === b.tariff.prefix
      ? byText(a.period ?? '', b.period ?? '') || (a.effectiveFrom ?? -1) - (b.effectiveFrom ?? -1)
      : a.tariff.prefix < b.tariff.prefix
        ? -1
        : 1,
  )
  for (let start = 0; start < inOrder.length; start += slice)
    table.addRead(
      plan,
      inOrder
        .slice(start, start + slice)
        .map(({ tariff, period = null, ...row }) => ({ ...tariff, ...row, period })),
    )
  table.endReading()
  return table
}

const byText = (a: string, b: string): number => Number(a > b) - Number(a < b)

interface Written {
  readonly prefix: string
  readonly period: string | undefined
  readonly from: number | null
  readonly to: number | null
  readonly price: number
  readonly isBlocked: boolean
}

/** Both hold at the times of the test, and the first of them counts. */
const nights = new PlanTimes({
  zone: 'UTC',
  periods: ['night', 'day'].map((name) => ({
    name,
    days: ['wed', 'thu'],
    from: '00:00',
    to: '24:00',
  })),
  holidays: [],
  priceChange: 'hold',
})

test('a table that is read answers as one of single rates, before and after a change', () => {
  const moment = fc.option(fc.integer({ min: 0, max: 9 }))
  const written: fc.Arbitrary<Written> = fc.record({
    prefix: fc.oneof(
      fc.stringMatching(/^[0-2]{0,5}$/),
      fc.stringMatching(/^\+?0?0?[12]{0,3}[*#]?$/),
      fc.stringMatching(/^[01]{14,18}$/),
    ),
    period: fc.constantFrom(undefined, undefined, 'night', 'day'),
    from: moment,
    to: moment,
    price: fc.integer({ min: 0, max: 3 }),
    isBlocked: fc.boolean(),
  })
  const prices = fc.uniqueArray(written, {
    maxLength: 40,
    selector: ({ prefix, period, from }) => `${prefix} ${period ?? ''} ${from ?? -1}`,
  })
  const ratesOf = (list: readonly Written[]): readonly Rate[] =>
    list.map(({ prefix, period, from, to, price, isBlocked }) => {
      const dates = { effectiveFrom: from, effectiveTo: to }
      const plain = priced(prefix, price, { ...dates, isBlocked, ...(period && { period }) })
      return { ...plain, tariff: { ...plain.tariff, decimals: 4, rounding: 'up' } }
    })
  const numbers = fc.array(fc.stringMatching(/^\+?[0-2]{1,17}[*]?$/), {
    minLength: 1,
    maxLength: 9,
  })
  const exits = fc.constantFrom([], ['00'], ['011', '00'])
  fc.assert(
    fc.property(
      ...([prices, prices, numbers, exits, fc.integer({ min: 1, max: 9 })] as const),
      (list, changes, called, exitCodes, slice) => {
        const rates = ratesOf(list)
        const [single, read] = [new RateDeck(rates, exitCodes), readTable(rates, slice, exitCodes)]
        for (const table of [single, read]) table.setTimes(new Map([[1, nights]]))
        const compare = (): void => {
          for (const number of called)
            for (let at = -1; at <= 10; at += 1)
              expect(read.find(1, number, at)).toEqual(single.find(1, number, at))
        }
        compare()
        for (const [index, { tariff }] of ratesOf(changes).entries()) {
          const prefix = index % 3 === 0 ? (rates[index]?.tariff.prefix ?? '') : tariff.prefix
          const others = ratesOf(changes).filter((each) => each.tariff.prefix === prefix)
          for (const table of [single, read]) table.replace(1, prefix, others)
        }
        compare()
      },
    ),
    { numRuns: 1_000 },
  )
})

test('a hundred thousand dated prices of one prefix are taken over and found within seconds', () => {
  const rates = Array.from({ length: 100_000 }, (_, day) =>
    rate('49', { effectiveFrom: (day * 7_919) % 100_000 }),
  )
  const began = performance.now()
  const table = new RateDeck()
  for (let start = 0; start < rates.length; start += 250) table.add(rates.slice(start, start + 250))
  for (let at = 0; at < 100_000; at += 10) expect(table.find(1, '4930', at)?.effectiveFrom).toBe(at)
  expect(performance.now() - began).toBeLessThan(10_000)
})
