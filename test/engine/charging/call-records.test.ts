/** When a caller may be told that a call has ended. */
import { expect, test } from 'vitest'
import type { CallQuality } from '../../../schema/contracts/field-values.ts'
import { first } from '../../../schema/sql/query.ts'
import { AccountingEvents } from '../../../engine/charging/accounting-events.ts'
import { CallRecords } from '../../../engine/charging/call-records.ts'
import { CallStore } from '../../../engine/charging/call-store.ts'
import { noCharge } from '../../../engine/charging/settlement/charge.ts'
import type { LeftLines } from '../../../schema/journal/journal-file.ts'
import { CallJournal } from '../../../schema/journal/journal.ts'
import { endedCall, freshStore, openCall, start } from '../../support/books.ts'
import { Disk } from '../../support/journals.ts'
import { ManualTime } from '../../support/manual-time.ts'

const terms = { payerId: null, tariff: null, costMicros: 0, isReported: false }

function openRecords(file = new Disk()) {
  const [store, time] = [freshStore(), new ManualTime(start)]
  const shared = { schedule: time.schedule, log: () => undefined }
  const calls = new CallStore({
    ...shared,
    store,
    now: time.now,
    wallNow: time.wallNow,
    events: new AccountingEvents(undefined),
    onFailure: () => undefined,
  })
  const journal = new CallJournal(file, { ...shared, storage: store.storage })
  const records = new CallRecords(calls, journal)
  const told: string[] = []
  const end = (callUuid: string, billsec = 20, quality?: Promise<CallQuality | undefined>) => {
    const record = { ...endedCall(callUuid, 20), billsec }
    const safe = () => told.push(callUuid)
    const following = { committed: () => undefined, safe, quality }
    return records.queue({ record, charge: noCharge }, terms, following)
  }
  const mosOf = (callUuid: string) =>
    first(store, store.db.selectFrom('cdr').select('mos_score').where('call_uuid', '=', callUuid))
  return { time, file, told, end, records, calls, mosOf }
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

/** Of a process beside another one, which has ended. */
class DiskOfTwo extends Disk {
  readonly #other: Disk

  constructor(other: Disk) {
    super()
    this.#other = other
  }

  override takeOver(): LeftLines {
    return this.#other.read()
  }
}

async function takenOver(stored: () => Promise<ReadonlySet<string>>) {
  const old = openRecords()
  const answered = old.records.answered(openCall('a', start), null, start, { text: 'state' })
  old.time.advance(10)
  expect(await answered).toBe(true)
  const { time, calls, records } = openRecords(new DiskOfTwo(old.file))
  calls.stored = stored
  return { time, records, left: records.leftBeside(time.now(), time.schedule) }
}

test('calls of a process that has ended go on while the database does not answer', async () => {
  const { time, records, left } = await takenOver(() => new Promise(() => undefined))
  time.advance(1_000)
  expect((await left).saved.map(({ callUuid }) => callUuid)).toEqual(['a'])
  expect(records.takeSaved('a')).toBeDefined()
})

test('calls of a process that has ended go on while the database is away', async () => {
  const { left } = await takenOver(() => Promise.reject(new Error('ECONNREFUSED')))
  expect((await left).saved.map(({ callUuid }) => callUuid)).toEqual(['a'])
})

test('calls of a process that has ended do not go on when the database has their records', async () => {
  const { left } = await takenOver(() => Promise.resolve(new Set(['a'])))
  expect(await left).toEqual({ toClose: [], saved: [] })
})

function later() {
  let resolve: (quality: CallQuality) => void = () => undefined
  const promise = new Promise<CallQuality | undefined>((tell) => (resolve = tell))
  return { promise, resolve: (quality: CallQuality) => resolve(quality) }
}

const heard = {
  mos: 4.1,
  mosSource: 'measured' as const,
  jitterMs: 1,
  packetLossPct: 0,
  roundTripMs: 20,
  packets: 500,
}

test('the database waits for the quality of a call, the journal does not', async () => {
  const { time, told, end, mosOf } = openRecords()
  const { promise, resolve } = later()
  const stored = end('a', 20, promise)
  time.advance(10)
  expect(told).toEqual(['a'])
  time.advance(490)
  expect(await mosOf('a')).toBeUndefined()
  resolve({ caller: heard, callee: null })
  await promise
  time.advance(100)
  await stored
  expect(await mosOf('a')).toEqual({ mos_score: 4.1 })
})

test('a quality that is not known is null', async () => {
  const { time, end, mosOf } = openRecords()
  const stored = end('a', 20, Promise.resolve(undefined))
  await Promise.resolve()
  time.advance(100)
  await stored
  expect(await mosOf('a')).toEqual({ mos_score: null })
})

test('a stop waits for no quality, and one that comes later changes nothing', async () => {
  const { end, records, mosOf } = openRecords()
  const { promise, resolve } = later()
  const stored = end('a', 20, promise)
  expect(await records.stop()).toEqual([])
  await stored
  resolve({ caller: heard, callee: null })
  await promise
  expect(await mosOf('a')).toEqual({ mos_score: null })
})
