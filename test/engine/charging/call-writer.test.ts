/** When a caller may be told that a call has ended. */
import { expect, test } from 'vitest'
import type { CallQuality } from '../../../schema/contracts/field-values.ts'
import { first } from '../../../schema/sql/query.ts'
import { AccountingEvents } from '../../../engine/charging/accounting-events.ts'
import { CallWriter } from '../../../engine/charging/call-writer.ts'
import { Ledger } from '../../../engine/charging/ledger/ledger.ts'
import { noCharge } from '../../../engine/charging/settlement/settlement.ts'
import { CallJournal } from '../../../schema/journal/call-journal.ts'
import { endedCall, freshStore, start } from '../../support/books.ts'
import { deferred } from '../../support/deferred.ts'
import { Disk } from '../../support/journals.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { eventually, turnOfEventLoop } from '../../support/waiting.ts'

function openWriter(file = new Disk(), store = freshStore()) {
  const time = new ManualTime(start)
  const shared = { schedule: time.schedule, log: () => undefined }
  const journal = new CallJournal(file, { ...shared, storage: store.storage })
  const writer = new CallWriter({
    ...shared,
    store,
    journal,
    ledger: new Ledger(store),
    now: time.now,
    wallNow: time.wallNow,
    events: new AccountingEvents(undefined),
    onFailure: () => undefined,
  })
  const told: string[] = []
  const end = (callUuid: string, billsec = 20, quality?: Promise<CallQuality | undefined>) => {
    const record = { ...endedCall(callUuid, 20), billsec }
    const safe = () => told.push(callUuid)
    const following = { committed: () => undefined, safe, quality }
    return writer.write({ record, charge: noCharge }, following)
  }
  const mosOf = (callUuid: string) =>
    first(store, store.db.selectFrom('cdr').select('mos_score').where('call_uuid', '=', callUuid))
  return { time, file, journal, told, end, writer, mosOf }
}

test('safe: when the database has the record before the journal has the end', async () => {
  const { time, file, told, end } = openWriter()
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
  const { time, file, told, end } = openWriter()
  file.isFull = true
  const stored = end('a', -1)
  time.advance(100)
  await expect(stored).rejects.toThrow('CHECK')
  expect(told).toEqual(['a'])
})

test('the journal has a call until the disk has its record', async () => {
  const store = freshStore()
  const disk = deferred()
  store.statements.onDisk = () => disk.promise
  const { time, journal, end, mosOf } = openWriter(undefined, store)
  const stored = end('a')
  time.advance(100)
  await eventually(async () => expect(await mosOf('a')).toEqual({ mos_score: null }))
  time.advance(1_000)
  await turnOfEventLoop()
  expect(journal.size).toBe(1)
  disk.resolve()
  await stored
  expect(journal.size).toBe(0)
})

test('a batch on a file has at most twenty calls', async () => {
  const { end, writer } = openWriter()
  const stored = Array.from({ length: 50 }, (_, number) => end(`call ${number}`))
  expect(await writer.flush()).toBe(true)
  await Promise.all(stored)
  expect(writer.stats()).toMatchObject({ commits: 3, waiting: 0 })
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
  const { time, told, end, mosOf } = openWriter()
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
  const { time, end, mosOf } = openWriter()
  const stored = end('a', 20, Promise.resolve(undefined))
  await Promise.resolve()
  time.advance(100)
  await stored
  expect(await mosOf('a')).toEqual({ mos_score: null })
})

test('a stop waits for no quality, and one that comes later changes nothing', async () => {
  const { end, writer, mosOf } = openWriter()
  const { promise, resolve } = later()
  const stored = end('a', 20, promise)
  expect(await writer.stop()).toEqual([])
  await stored
  resolve({ caller: heard, callee: null })
  await promise
  expect(await mosOf('a')).toEqual({ mos_score: null })
})
