import { expect, test } from 'vitest'
import {
  endedCall,
  liveCall,
  openToolRig,
  storeRecord,
  type ToolRig,
} from '../../../support/tools-rig.ts'
import { readRow, runSql } from '../../../support/stored.ts'

type Found = { records: { call_uuid: string }[]; cursor: string | null }

test('search_cdrs shows every record once, newest first, over as many answers as it takes', async () => {
  const rig = await openToolRig()
  await runSql(rig.store, 'DELETE FROM cdr')
  // Several begin in the same millisecond.
  for (let index = 0; index < 1_203; index += 1)
    await storeRecord(rig, null, `call ${index}`, {
      start_stamp: rig.now() - 1_000_000 + Math.floor(index / 3),
      caller_id_number: index % 100 === 7 ? 'wanted' : 'other',
    })
  const search = async (given: object) => {
    const seen: string[] = []
    for (let cursor: string | null | undefined; cursor !== null;) {
      const answer = await rig.tool('search_cdrs', {
        ...given,
        ...(cursor !== undefined && { cursor }),
      })
      const found = answer.data<Found>()
      seen.push(...found.records.map(({ call_uuid }) => call_uuid))
      cursor = found.cursor
    }
    return seen
  }
  const expected = Array.from({ length: 1_203 }, (_, index) => `call ${1_202 - index}`)
  expect(await search({ limit: 200 })).toEqual(expected)
  expect(await search({ limit: 5, number: 'want' })).toEqual(
    expected.filter((_, index) => (1_202 - index) % 100 === 7),
  )
  expect(await search({ disposition: 'BUSY' })).toEqual([])
  expect(await search({ end_date: '2020-01-01T00:00:00Z' })).toEqual([])
})

test('a search through many records gives way to everything else, and says where it stopped', async () => {
  const rig = await openToolRig()
  await multiply(rig, 10_600)
  let turns = 0
  const count = (): void => {
    turns += 1
    if (turns < 1_000) setImmediate(count)
  }
  const asked = rig.tool('search_cdrs', { number: 'unknown' })
  setImmediate(count)
  const found = (await asked).data<Found>()
  const seen = turns
  turns = 1_000
  expect(found.records).toEqual([])
  expect(found.cursor).not.toBeNull()
  expect(seen).toBeGreaterThanOrEqual(15)
  const rest = await rig.tool('search_cdrs', { number: 'unknown', cursor: found.cursor })
  expect(rest.data<Found>().cursor).toBeNull()
})

test('get_call shows a live call as live', async () => {
  const rig = await openToolRig()
  const answer = await rig.tool('get_call', { call_uuid: liveCall })
  expect(answer.data()).toMatchObject({ live: { duration_seconds: 3 }, record: null })
})

/** Copies of one record, a millisecond apart, in one statement: one by one they take seconds. */
async function multiply({ store, now }: ToolRig, count: number): Promise<void> {
  const record = await readRow(store, 'SELECT * FROM cdr WHERE call_uuid = ?', endedCall)
  const columns = Object.keys(record ?? {})
    .filter((name) => !['id', 'call_uuid', 'start_stamp'].includes(name))
    .join(', ')
  await runSql(
    store,
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
       INSERT INTO cdr (call_uuid, start_stamp, ${columns})
       SELECT 'copy ' || i, ${now()} - 1000000 + i, ${columns} FROM n, cdr WHERE cdr.call_uuid = ?`,
    endedCall,
  )
  await runSql(store, "DELETE FROM cdr WHERE call_uuid NOT LIKE 'copy %'")
}
