/** A large table is taken over while calls go on, and whatever is written meanwhile is in it. */
import { expect, test } from 'vitest'
import { Rates } from '../../../../engine/charging/pricing/rates.ts'
import { transaction } from '../../../../schema/sql/query.ts'
import { addPlan, openStore, start } from '../../../support/books.ts'
import { runSql } from '../../../support/stored.ts'

const count = 2_500

async function open() {
  const store = await openStore()
  const rate = { first_rate_per_minute_micros: 1, rate_per_minute_micros: 1 }
  const planId = await transaction(store, () =>
    addPlan(
      store,
      Array.from({ length: count }, (_, index) => ({ prefix: String(10_000 + index), ...rate })),
    ),
  )
  const between = { pause: (): Promise<void> => Promise.resolve() }
  const rates = new Rates(store, () => between.pause())
  await rates.reload()
  const set = (price: number, prefix?: string) =>
    runSql(
      store,
      `UPDATE rate SET rate_per_minute_micros = ? ${prefix ? `WHERE prefix = '${prefix}'` : ''}`,
      price,
    )
  const priceOf = (prefix: string) =>
    rates.table.find(planId, `${prefix}55`, start)?.tariff.ratePerMinuteMicros
  return { rates, planId, set, priceOf, between }
}

const [early, late] = ['10000', '12499']

test('the new rates hold when it is done, and the old ones until then', async () => {
  const { rates, set, priceOf, between } = await open()
  await set(2)
  let pauses = 0
  between.pause = () => {
    pauses += 1
    expect([priceOf(early), priceOf(late)]).toEqual([1, 1])
    return Promise.resolve()
  }
  await rates.reload()
  expect([priceOf(early), priceOf(late), pauses]).toEqual([2, 2, 3])
})

test('a rate that is written after its slice was read is not lost', async () => {
  const { rates, planId, set, priceOf, between } = await open()
  await set(2)
  between.pause = async () => {
    await set(3, early)
    await rates.reloadPrefix(planId, early)
    expect(priceOf(early)).toBe(3)
  }
  await rates.reload()
  expect([priceOf(early), priceOf(late)]).toEqual([3, 2])
})

test('what is written while a table loads is in the table that is asked for then', async () => {
  const { rates, set, priceOf, between } = await open()
  await set(2)
  let later: Promise<void> | undefined
  between.pause = async () => {
    if (later !== undefined) return
    await set(3)
    later ??= rates.reload()
  }
  await rates.reload()
  await later
  expect([priceOf(early), priceOf(late)]).toEqual([3, 3])
})

test('a plan is taken over whole, whatever loads meanwhile, and one that is gone has no rates', async () => {
  const { rates, planId, set, priceOf, between } = await open()
  await set(2)
  await rates.reloadPlan(planId)
  expect([priceOf(early), priceOf(late)]).toEqual([2, 2])
  let later: Promise<number> | undefined
  between.pause = async () => {
    if (later !== undefined) return
    await set(3)
    later = rates.reloadPlan(planId)
  }
  await rates.reload()
  await later
  expect([priceOf(early), priceOf(late)]).toEqual([3, 3])
  await rates.reloadPlan(planId + 1)
  expect(priceOf(early)).toBe(3)
  expect(rates.table.find(planId + 1, early, 0)).toBeUndefined()
})
