/** A large table is taken over while calls go on, and whatever is written meanwhile is in it. */
import { expect, test } from 'vitest'
import { Rates } from '../../../../engine/charging/pricing/rates.ts'
import { addPlan, freshStore, start } from '../../../support/books.ts'

const count = 2_500

function open() {
  const store = freshStore()
  const rate = { first_rate_per_minute_micros: 1, rate_per_minute_micros: 1 }
  const planId = store.sqlite.transaction(() =>
    addPlan(
      store,
      Array.from({ length: count }, (_, index) => ({ prefix: String(10_000 + index), ...rate })),
    ),
  )()
  const rates = new Rates(store)
  const set = (price: number, prefix?: string) =>
    store.sqlite
      .prepare(
        `UPDATE rate SET rate_per_minute_micros = ? ${prefix ? `WHERE prefix = ${prefix}` : ''}`,
      )
      .run(price)
  const priceOf = (prefix: string) =>
    rates.table.find(planId, `${prefix}55`, start)?.tariff.ratePerMinuteMicros
  return { rates, planId, set, priceOf }
}

const [early, late] = ['10000', '12499']

test('the new rates hold when it is done, and the old ones until then', async () => {
  const { rates, set, priceOf } = open()
  set(2)
  let pauses = 0
  await rates.reloadGently(() => {
    pauses += 1
    expect([priceOf(early), priceOf(late)]).toEqual([1, 1])
    return Promise.resolve()
  })
  expect([priceOf(early), priceOf(late), pauses]).toEqual([2, 2, 3])
})

test('a rate that is written after its slice was read is not lost', async () => {
  const { rates, planId, set, priceOf } = open()
  set(2)
  await rates.reloadGently(() => {
    set(3, early)
    rates.reloadPrefix(planId, early)
    expect(priceOf(early)).toBe(3)
    return Promise.resolve()
  })
  expect([priceOf(early), priceOf(late)]).toEqual([3, 2])
})

test('what was loaded whole meanwhile is not replaced by what is older', async () => {
  const { rates, set, priceOf } = open()
  set(2)
  let isFirst = true
  await rates.reloadGently(() => {
    if (isFirst) {
      set(3)
      rates.reload()
    }
    isFirst = false
    return Promise.resolve()
  })
  expect([priceOf(early), priceOf(late)]).toEqual([3, 3])
})

test('of two that overlap the later one stays', async () => {
  const { rates, set, priceOf } = open()
  const first = rates.reloadGently(() => Promise.resolve())
  set(2)
  await Promise.all([first, rates.reloadGently(() => Promise.resolve())])
  expect([priceOf(early), priceOf(late)]).toEqual([2, 2])
})
