import { expect, test, describe } from 'vitest'
import { inTurn } from '../../../control/reports/searches.ts'
import { openToolRig } from '../../support/tools-rig.ts'
import { FairTurns } from '../../../control/http/fair-turns.ts'
import { tooManySearches } from '../../../control/reports/searches.ts'
import { turnOfEventLoop } from '../../support/waiting.ts'
import { type SearchResult, search, type SearchRequest } from '../../../control/reports/search.ts'
import { eachDatabase } from '../../support/shared-database.ts'
import {
  aRecord,
  firstDay,
  placeOf,
  resultOf,
  rollUpAt,
  storeRecords,
} from '../../support/summed-calls.ts'

test('one search works at a time, two of a tenant may wait, and a further one is refused at once', async () => {
  const rig = await openToolRig()
  const acme = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  const order: string[] = []
  let end = (): void => undefined
  const ended = new Promise<void>((resolve) => (end = resolve))
  const own = { store: rig.store, tenantId: 1 }
  const first = inTurn(own, async () => {
    await ended
    order.push('first')
  })
  const second = inTurn(own, async () => {
    order.push('second')
  })
  for (const [tool, given] of [
    ['find_anomalies', {}],
    ['get_telemetry', { start: new Date(rig.now() - 60_000).toISOString() }],
  ] as const) {
    const refused = await rig.tool(tool, given, acme)
    expect([tool, refused.status, refused.code]).toEqual([tool, 503, 'too_many_searches'])
  }
  // Those of others wait for their turn.
  const platform = rig.tool('find_anomalies')
  expect(order).toEqual([])
  end()
  await Promise.all([first, second])
  expect(order).toEqual(['first', 'second'])
  expect((await platform).status).toBe(200)
  expect((await rig.tool('find_anomalies', {}, acme)).status).toBe(200)
})

/** Work that ends when it is told to, and in which order it began. */
function opened(places: number) {
  const turns = new FairTurns<number | null>(places, 100, tooManySearches)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const run = (reader: number | null, name: string) =>
    turns.run(reader, async () => {
      begun.push(name)
      await new Promise<void>((resolve) => ends.set(name, resolve))
    })
  const end = async (name: string): Promise<void> => {
    await turnOfEventLoop()
    ends.get(name)?.()
    await turnOfEventLoop()
  }
  return { begun, run, end }
}

test('who asks once waits for one question of a reader that asks a hundred times', async () => {
  const { begun, run, end } = opened(1)
  void run(1, 'many 1')
  for (let each = 2; each <= 4; each += 1) void run(1, `many ${each}`)
  void run(2, 'one')
  void run(null, 'platform')
  await end('many 1')
  await end('many 2')
  await end('one')
  await end('platform')
  await end('many 3')
  expect(begun).toEqual(['many 1', 'many 2', 'one', 'platform', 'many 3', 'many 4'])
})

test('a reader that waits for a hundred questions is refused, others are not', async () => {
  const { run, begun, end } = opened(1)
  for (let each = 0; each <= 100; each += 1) void run(1, `many ${each}`)
  await expect(run(1, 'too many')).rejects.toMatchObject({ status: 503, code: 'too_many_searches' })
  void run(2, 'other')
  await end('many 0')
  await end('many 1')
  expect(begun).toEqual(['many 0', 'many 1', 'other'])
})

describe.each(eachDatabase)('a search on $database', ({ open }) => {
  test('through many records gives way to everything else, says where it stopped, and goes on there', async () => {
    const place = placeOf(await open())
    const count = 10_600
    const records = Array.from({ length: count }, (_, n) =>
      aRecord({
        start_stamp: firstDay + Math.floor(n / 3),
        caller_id_number: n % 1_000 === 7 ? 'wanted' : 'other',
        cost_micros: n,
      }),
    )
    for (let from = 0; from < count; from += 530)
      await storeRecords(place, records.slice(from, from + 530))
    const look = async (given: Partial<SearchRequest>): Promise<SearchResult> => {
      const work = search(
        place,
        {
          tenantId: null,
          from: firstDay,
          before: firstDay + 100_000,
          filters: {},
          number: 'wanted',
          order: 'newest',
          limit: 20,
          ...given,
        },
        1,
      )
      return resultOf(work)
    }
    const wanted = records.flatMap((_, n) => (n % 1_000 === 7 ? [n + 1] : [])).toReversed()
    for (const order of ['newest', 'cost'] as const) {
      const first = await look({ order })
      expect(first.stoppedAt).toBeDefined()
      const rest = await look({ order, after: first.stoppedAt })
      expect(rest.stoppedAt).toBeUndefined()
      expect([...first.ids, ...rest.ids]).toEqual(wanted)
    }
    // The sums know when there were calls of a caller: no other records are looked through.
    await storeRecords(place, [
      aRecord({ start_stamp: firstDay + 10, caller_id_number: 'once' }),
      aRecord({ start_stamp: firstDay + 20, caller_id_number: 'once' }),
    ])
    const once = { number: undefined, filters: { members: { caller: 'once' } } }
    expect((await look(once)).stoppedAt).toBeDefined()
    await rollUpAt(place)
    expect(await look(once)).toEqual({ ids: [count + 2, count + 1] })
    const nowhere = { startStamp: 1, id: 1 }
    expect(await look({ ...once, after: nowhere })).toEqual({ ids: [] })
    const few = await look({ limit: 3 })
    expect(few.ids).toEqual(wanted.slice(0, 3))
    expect((await look({ limit: 3, after: few.stoppedAt })).ids).toEqual(wanted.slice(3, 6))
  })
})
