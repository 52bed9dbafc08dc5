/** Decks that meet each other, and the removal of their plan. */
import { expect, test } from 'vitest'
import { openResources } from '../../../support/resources.ts'

const mapping = JSON.stringify({ columns: { prefix: 'Code', rate_per_minute: 'Rate' } })

const deckOf = (count: number, price: string): string =>
  ['Code,Rate', ...Array.from({ length: count }, (_, at) => `44${1000 + at},${price}`)].join('\n')

async function withPlan() {
  const control = await openResources()
  const { id } = (
    await control.call('POST', '/rate-plans', { name: 'cost', currency: 'USD' })
  ).data<{ id: number }>()
  const send = (deck: string, more = '') =>
    control.call(
      'POST',
      `/rates/decks?rate_plan_id=${id}&mapping=${encodeURIComponent(mapping)}${more}`,
      deck,
      { headers: { 'content-type': 'text/csv' } },
    )
  const undo = (deckId: number) => control.call('POST', `/rates/decks/${deckId}/undo`)
  const prices = async () => {
    const answer = await control.call('GET', `/rates?rate_plan_id=${id}&limit=200`)
    const rates = answer.data<{ rate_per_minute_exact: string }[]>()
    return [...new Set(rates.map((rate) => rate.rate_per_minute_exact))]
  }
  return { ...control, id, send, undo, prices }
}

interface Imported {
  readonly id: number
  readonly created: number
  readonly updated: number
}

test('of two decks at once each is whole, and they are undone in their order alone', async () => {
  const { send, undo, prices } = await withPlan()
  const answers = await Promise.all([send(deckOf(300, '0.01')), send(deckOf(300, '0.02'))])
  const [first, second] = answers
    .map((answer) => answer.data<Imported>())
    .toSorted((one, other) => one.id - other.id)
  expect([first?.created, first?.updated]).toEqual([300, 0])
  expect([second?.created, second?.updated]).toEqual([0, 300])
  expect(await prices()).toHaveLength(1)
  const [one, other] = [first?.id ?? 0, second?.id ?? 0]
  expect((await undo(one)).body).toMatchObject({ statusCode: 409, code: 'later_deck' })
  const twice = await Promise.all([undo(other), undo(other)])
  expect(twice.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409])
  expect((await undo(one)).status).toBe(200)
  expect(await prices()).toEqual([])
  expect((await undo(one)).body).toMatchObject({ statusCode: 409, code: 'already_undone' })
})

test('a plan that is removed while a deck comes is gone, or has the deck', async () => {
  for (let turns = 0; turns < 12; turns += 1) {
    const { call, id, send } = await withPlan()
    const importing = send(deckOf(500, '0.01'))
    for (let turn = 0; turn < turns * 3; turn += 1)
      await new Promise((resolve) => setImmediate(resolve))
    const removal = await call('DELETE', `/rate-plans/${id}`)
    const answer = await importing
    expect([removal.status, answer.status]).toSatisfy(
      ([removed, imported]: [number, number]) =>
        [200, 204, 409].includes(removed) && [200, 400, 404, 409].includes(imported),
    )
  }
})

test('a plan that changes its currency while a deck comes does not take prices of another', async () => {
  const { call, id, send, prices } = await withPlan()
  let isDone = false
  const importing = send(`Code,Rate\n${'49,0.10 USD\n'.repeat(200_000)}`).finally(() => {
    isDone = true
  })
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  const change = await call('PATCH', `/rate-plans/${id}`, { currency: 'EUR' })
  expect([change.status, isDone]).toEqual([200, false])
  expect((await importing).body).toMatchObject({ statusCode: 409, code: 'changed_since' })
  expect(await prices()).toEqual([])
})
