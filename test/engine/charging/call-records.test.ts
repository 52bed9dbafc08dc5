/** When a caller may be told that a call has ended. */
import { expect, test } from 'vitest'
import { CallRecords } from '../../../engine/charging/call-records.ts'
import { GroupCommit } from '../../../schema/group-commit.ts'
import { CallJournal } from '../../../schema/journal/journal.ts'
import { endedCall, freshStore, start } from '../../support/books.ts'
import { Disk } from '../../support/journals.ts'
import { ManualTime } from '../../support/manual-time.ts'

const terms = { payerId: null, tariff: null, costMicros: 0, isReported: false }
const cost = { costMicros: 0, currency: null }

function openRecords() {
  const [store, time, file] = [freshStore(), new ManualTime(start), new Disk()]
  const shared = { schedule: time.schedule, log: () => undefined }
  const group = new GroupCommit({ ...shared, store, onFailure: () => undefined })
  const journal = new CallJournal(file, { ...shared, storage: store.storage })
  const records = new CallRecords(store, group, journal)
  const told: string[] = []
  const end = (callUuid: string, billsec = 20) => {
    const record = { ...endedCall(callUuid, 20), billsec }
    const run = () => records.insert(record, cost)
    const safe = () => told.push(callUuid)
    return records.queue(record, terms, { run, committed: () => undefined, safe })
  }
  return { time, file, told, end }
}

test('safe: when the journal has the end, and once', async () => {
  const { time, told, end } = openRecords()
  const stored = end('a')
  time.advance(9)
  expect(told).toEqual([])
  time.advance(1)
  expect(told).toEqual(['a'])
  time.advance(5_000)
  await stored
  expect(told).toEqual(['a'])
})

test('safe: when the database has the record before the journal has the end', async () => {
  const { time, file, told, end } = openRecords()
  file.isFull = true
  const stored = end('a')
  time.advance(99)
  expect(told).toEqual([])
  time.advance(1)
  await stored
  expect(told).toEqual(['a'])
  time.advance(5_000)
  expect(told).toEqual(['a'])
})

test('safe: when the database can never store the record', async () => {
  const { time, file, told, end } = openRecords()
  file.isFull = true
  const stored = end('a', -1)
  time.advance(100)
  await expect(stored).rejects.toThrow('CHECK')
  expect(told).toEqual(['a'])
})
