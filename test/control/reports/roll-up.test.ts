/**
 * How records come into the kept sums: once each, whatever happens meanwhile, and never too many
 * groups.
 */
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openSums, type CallSources } from '../../../control/reports/call-filters.ts'
import { Retention } from '../../../control/observe/retention/retention.ts'
import { outboxStatements } from '../../../engine/charging/external/cdr-outbox.ts'
import { migrate } from '../../../schema/migrations/migrate.ts'
import { openDatabase } from '../../../schema/sqlite/open.ts'
import { transaction } from '../../../schema/sql/query.ts'
import { aroundStatements } from '../../support/around-statements.ts'
import { deferred } from '../../support/deferred.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { eachDatabase, sharedDatabase } from '../../support/shared-database.ts'
import { readColumn, readValue, runSql } from '../../support/stored.ts'
import {
  aRecord,
  DAY,
  firstDay,
  placeOf,
  rollUpAt,
  storeRecords,
  summarizeAt,
} from '../../support/summed-calls.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const callsIn = async (place: CallSources): Promise<number> =>
  (await summarizeAt(place, { groupBy: 'caller' })).totals.calls

/** Without what the records say. */
const keptCalls = ({ sums }: CallSources) =>
  readValue(sums, "SELECT sum(calls) FROM call_sum WHERE dimension = 'minute'")

const manyRecords = (count: number, columns: (n: number) => object = () => ({})) =>
  Array.from({ length: count }, (_, n) => aRecord(columns(n)))

async function storeMany(place: CallSources, count: number, columns?: (n: number) => object) {
  const records = manyRecords(count, columns)
  for (let from = 0; from < count; from += 500)
    await storeRecords(place, records.slice(from, from + 500))
}

/** As `place`, but its `limit`-th statement on the sums and all later ones fail. */
function failingAfter(place: CallSources, limit: number): CallSources {
  let left = limit
  const sums = aroundStatements(place.sums, (work) => {
    left -= 1
    return left < 0 ? Promise.reject(new Error('the process is gone')) : work()
  })
  // On a server, the records are in the same database.
  return { ...place, store: place.store === place.sums ? sums : place.store, sums }
}

describe.each(eachDatabase)('kept sums on $database', ({ open }) => {
  test('a process that dies at any statement of it leaves no record out, and none twice', async () => {
    const place = placeOf(await open())
    let stored = 0
    for (let limit = 1; limit < 40; limit += 1) {
      await storeRecords(place, manyRecords(3))
      stored += 3
      await rollUpAt(failingAfter(place, limit)).catch(() => undefined)
      expect([limit, await callsIn(place)]).toEqual([limit, stored])
    }
    expect(await rollUpAt(place)).toBe(0)
    expect(Number(await keptCalls(place))).toBe(stored)
  })

  test('a cost that was changed before its record came in counts once, behind any number of other changes', async () => {
    const place = placeOf(await open())
    await storeRecords(place, [
      aRecord({ cost_micros: 5_000_000, currency: 'USD', disposition: 'ANSWERED' }),
      aRecord({ disposition: 'ANSWERED' }),
    ])
    await runSql(
      place.store,
      `INSERT INTO cdr_cost_change (cdr_id, cost_micros, currency)
       WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
       SELECT (SELECT max(id) FROM cdr), CASE WHEN i % 2 = 0 THEN 1 ELSE -1 END, 'USD' FROM n`,
    )
    await runSql(
      place.store,
      `INSERT INTO cdr_cost_change (cdr_id, cost_micros, currency)
       SELECT min(id), 5000000, 'USD' FROM cdr`,
    )
    expect(await rollUpAt(place)).toBe(0)
    const kept = "SELECT sum(cost_micros) FROM call_sum WHERE dimension = 'minute'"
    expect(Number(await readValue(place.sums, kept))).toBe(5_000_000)
    expect(Number(await keptCalls(place))).toBe(2)
  })

  test('callers with random numbers cannot make the sums grow; totals have them all', async () => {
    const place = placeOf(await open())
    const random = (n: number) => ({ caller_id_number: `flood ${n}` })
    await storeRecords(place, [aRecord({ caller_id_number: 'known' })])
    await rollUpAt(place)
    await storeMany(place, 7_000, random)
    await storeRecords(place, [aRecord({ caller_id_number: 'known' })])
    await rollUpAt(place)
    const rows = await readValue(
      place.sums,
      "SELECT count(*) FROM call_sum WHERE dimension = 'caller'",
    )
    expect(Number(rows)).toBeLessThanOrEqual(5_001)
    const found = await summarizeAt(place, { groupBy: 'caller' })
    expect(found).toMatchObject({ totals: { calls: 7_002 }, other_calls: 2_001 })
    expect(found.groups[0]).toMatchObject({ group: 'known', calls: 2 })
    // One that the sums do not keep apart is counted in the records.
    const filters = { members: { caller: 'flood 6999' } }
    const one = await summarizeAt(place, { groupBy: 'tenant', filters })
    expect(one).toMatchObject({ source: 'records', complete: true, totals: { calls: 1 } })
  })

  test('of more groups than a day keeps, those that cost most are kept', async () => {
    const place = placeOf(await open())
    await storeMany(place, 4_999, (n) => ({ caller_id_number: `free ${n}` }))
    await rollUpAt(place)
    const paid = { caller_id_number: 'paid', cost_micros: 5, currency: 'USD' }
    await storeRecords(place, [...manyRecords(20, (n) => ({ caller_id_number: `more ${n}` }))])
    await storeRecords(place, [aRecord(paid)])
    await rollUpAt(place)
    const found = await summarizeAt(place, { groupBy: 'caller', orderBy: 'cost', limit: 1 })
    expect(found.groups).toMatchObject([{ group: 'paid', calls: 1 }])
  })

  test('a cost that is known later is in the sums, whether they had the record or not', async () => {
    const store = await open()
    const place = placeOf(store)
    const settle = async (callUuid: string, costMicros: number, currency: string) => {
      const { costGone, setCost, costCome } = outboxStatements(store)
      await transaction(store, async () => {
        await costGone.run({ callUuid })
        await setCost.run({ callUuid, costMicros, currency })
        await costCome.run({ callUuid })
      })
    }
    const cost = async () => (await summarizeAt(place, { groupBy: 'caller' })).totals.cost
    const records = manyRecords(2)
    await storeRecords(place, records.slice(0, 1))
    await rollUpAt(place)
    await storeRecords(place, records.slice(1))
    for (const [index, expected] of [{ USD: '0.50' }, { USD: '1.00' }].entries()) {
      await settle(records[index]?.call_uuid ?? '', 500_000, 'USD')
      expect(await cost()).toEqual(expected)
    }
    await rollUpAt(place)
    expect(await cost()).toEqual({ USD: '1.00' })
    await settle(records[1]?.call_uuid ?? '', 700_000, 'EUR')
    expect(await cost()).toEqual({ EUR: '0.70', USD: '0.50' })
    await rollUpAt(place)
    await rollUpAt(place)
    expect(await cost()).toEqual({ EUR: '0.70', USD: '0.50' })
    const dearest = (await summarizeAt(place, { groupBy: 'caller' })).groups[0]?.call_uuids[0]
    expect(dearest).toBe(records[1]?.call_uuid)
  })

  test('sums of a day go with its records, and not before', async () => {
    const store = await open()
    const place = placeOf(store)
    await storeRecords(
      place,
      [0, 1, 2].map((day) => aRecord({ start_stamp: firstDay + day * DAY + 5 })),
    )
    const now = firstDay + 31.5 * DAY
    const retainedFrom = now - 30 * DAY
    await rollUpAt(place, now, retainedFrom)
    const retention = new Retention(
      { store, now: () => now, log: () => undefined },
      { callRecordDays: 30, auditDays: 0 },
    )
    await retention.step()
    await rollUpAt(place, now, retainedFrom)
    const days = await readColumn(place.sums, 'SELECT DISTINCT day FROM call_sum ORDER BY day')
    expect(days).toEqual([firstDay + DAY, firstDay + 2 * DAY])
    expect(await callsIn(place)).toBe(2)
  })
})

describe.runIf(hasPostgres)('kept sums of several instances', () => {
  test('instances that add records at the same time add each once', async () => {
    const { open } = await sharedDatabase()
    const places = [placeOf(await open()), placeOf(await open())] as const
    let stored = 0
    for (let round = 0; round < 8; round += 1) {
      const work = places.flatMap((place) => [
        storeRecords(place, manyRecords(40)),
        rollUpAt(place),
        callsIn(place),
      ])
      await Promise.all(work)
      stored += 80
    }
    await rollUpAt(places[0])
    expect(Number(await keptCalls(places[0]))).toBe(stored)
    expect(await callsIn(places[1])).toBe(stored)
  })

  test('a record that is committed after one with a later id is not left out', async () => {
    const { open } = await sharedDatabase()
    const [slow, quick] = [placeOf(await open()), placeOf(await open())]
    await storeRecords(quick, manyRecords(1))
    const [isStored, mayCommit] = [deferred(), deferred()]
    const late = transaction(slow.store, async () => {
      await storeRecords(slow, manyRecords(2))
      isStored.resolve()
      await mayCommit.promise
    })
    await isStored.promise
    await storeRecords(quick, manyRecords(1))
    await rollUpAt(quick)
    expect(await callsIn(quick)).toBe(2)
    mayCommit.resolve()
    await late
    expect(await callsIn(quick)).toBe(4)
    await rollUpAt(quick)
    expect(await callsIn(quick)).toBe(4)
    expect(Number(await keptCalls(quick))).toBe(4)
    const hour = 3_600_001
    await rollUpAt(quick, firstDay + hour)
    await storeRecords(quick, manyRecords(1))
    await rollUpAt(quick, firstDay + hour)
    expect(await readValue(quick.sums, 'SELECT count(*) FROM call_sum_gap')).toBe(0)
  })
})

describe('the file of the sums beside an SQLite database', () => {
  function openFile(path: string) {
    const store = openDatabase(path)
    migrate(store.sqlite, 0)
    onTestFinished(() => store.close())
    return { place: { ...placeOf(store), sums: openSums(path) } }
  }

  test('it is for the owner of the database alone', () => {
    const path = join(temporaryFolder(), 'a.db')
    openFile(path)
    expect(statSync(`${path}.sums`).mode & 0o777).toBe(0o600)
  })

  test('it is made again when it is damaged, or the database beside it is another one', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'a.db')
    const { place } = openFile(path)
    await storeRecords(place, manyRecords(3))
    await rollUpAt(place)
    await runSql(place.store, 'DELETE FROM cdr')
    await storeRecords(place, manyRecords(4))
    expect(await callsIn(place)).toBe(4)
    await rollUpAt(place)
    expect(await callsIn(place)).toBe(4)
    expect(Number(await keptCalls(place))).toBe(4)
    writeFileSync(`${path}.sums`, 'no database')
    const again = { ...place, sums: openSums(path) }
    expect(await callsIn(again)).toBe(4)
    await rollUpAt(again)
    expect(Number(await keptCalls(again))).toBe(4)
    expect(existsSync(`${path}.sums`)).toBe(true)
  })
})
