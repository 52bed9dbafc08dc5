import { cpSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  type Converter,
  Finisher,
  FinishedRecordings,
} from '../../../../engine/media/recording/finisher.ts'
import type { EngineHappening, OutgoingEvent } from '../../../../schema/contracts/engine.ts'
import type { LocalStore } from '../../../../schema/storage/store.ts'
import { all } from '../../../../schema/sql/query.ts'
import { readWav } from '../../../support/audio.ts'
import { emptyStore } from '../../../support/empty-store.ts'
import { ManualTime } from '../../../support/manual-time.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { eventually } from '../../../support/waiting.ts'
import { ConversionThread } from '../../../../engine/media/recording/conversion-thread.ts'
import {
  UnfinishedRecordings,
  type UnfinishedRecording,
} from '../../../../engine/media/recording/unfinished-recordings.ts'

const vectors = new URL('../../../vectors/recording/', import.meta.url).pathname
const talk = JSON.parse(readFileSync(join(vectors, 'talk.json'), 'utf8')) as {
  readonly sessionId: string
  readonly startedAt: number
  readonly endedAt: number
}
const callUuid = '019ab0c4-1e7f-7a37-9d1f-0f6a5f5e9c11'
const note: UnfinishedRecording = {
  callUuid,
  tenantId: 3,
  isOn: false,
  startedAt: talk.startedAt,
  endedAt: talk.endedAt,
  tracks: [
    {
      sessionId: talk.sessionId,
      relay: '127.0.0.1:2223',
      startedAt: talk.startedAt,
      caller: [{ address: '127.0.0.1', port: 41_222 }],
      callee: [{ address: '127.0.0.1', port: 41_200 }],
    },
  ],
}

const root = temporaryFolder()
let count = 0

function open({ converter = new ConversionThread() }: { readonly converter?: Converter } = {}) {
  const base = join(root, String((count += 1)))
  const [folder, spool] = [join(base, 'files'), join(base, 'spool')]
  cpSync(vectors, spool, { recursive: true })
  mkdirSync(join(spool, 'tmp'))
  const store: LocalStore = emptyStore()
  const webhooks: OutgoingEvent[] = []
  const events: EngineHappening[] = []
  const logged: string[] = []
  const time = new ManualTime(talk.endedAt)
  const unfinished = new UnfinishedRecordings(folder)
  const finisher = new Finisher({
    folder,
    spool,
    unfinished,
    converter,
    store: new FinishedRecordings(store, {
      wants: () => true,
      writeAll: async (events) => void webhooks.push(...events),
    }),
    schedule: time.schedule,
    now: time.now,
    onEvent: (event) => void events.push(event),
    isOurs: (name) => name.startsWith('tg-'),
    log: (_, message) => void logged.push(message),
  })
  const rows = () => all(store, store.db.selectFrom('recording').selectAll())
  const captures = () => [
    ...readdirSync(join(spool, 'pcaps')),
    ...readdirSync(join(spool, 'metadata')),
  ]
  const file = join(folder, `${callUuid}.wav`)
  return {
    folder,
    spool,
    file,
    store,
    webhooks,
    events,
    logged,
    time,
    unfinished,
    finisher,
    rows,
    captures,
  }
}

test('a call that is over becomes a file, a row and a webhook; its captures are gone', async () => {
  const { finisher, unfinished, file, rows, webhooks, events, captures } = open()
  await unfinished.write(note)
  finisher.add(note)
  await eventually(() => expect(finisher.totals).toEqual({ made: 1, failed: 0, waiting: 0 }))
  const [row] = await rows()
  expect(row).toMatchObject({ call_uuid: callUuid, tenant_id: 3, started_at: talk.startedAt })
  expect(readWav(readFileSync(file)).seconds).toBeCloseTo((row?.duration_ms ?? 0) / 1_000, 3)
  const [event] = webhooks
  const { duration_ms: ms, bytes, sha256 } = row ?? {}
  expect(event).toEqual({
    type: 'recording.ready',
    tenantId: 3,
    data: {
      call_uuid: callUuid,
      duration: Math.round((ms ?? 0) / 1_000),
      bytes,
      sha256,
      url: `/api/v1/calls/${callUuid}/recording`,
    },
  })
  expect(events.map(({ type }) => type)).toEqual(['recording.ready'])
  expect([captures(), await unfinished.all()]).toEqual([[], []])
})

test('every step may be repeated: there is one row, one event, and the same file', async () => {
  const { finisher, unfinished, file, rows, webhooks, spool, captures } = open()
  finisher.add(note)
  await eventually(() => expect(finisher.totals.waiting).toBe(0))
  const before = readFileSync(file)
  // As after a crash between the row and the removal.
  cpSync(vectors, spool, { recursive: true })
  await unfinished.write(note)
  finisher.add(note)
  await eventually(() => expect(finisher.totals.waiting).toBe(0))
  expect(readFileSync(file).equals(before)).toBe(true)
  expect([(await rows()).length, webhooks.length, captures().length]).toEqual([1, 1, 0])
})

test('while the disk is full captures are kept, and the file is made when there is room', async () => {
  const real = new ConversionThread()
  let isFull = true
  const { finisher, unfinished, time, rows, captures, logged } = open({
    converter: {
      stop: () => real.stop(),
      convert: (order) =>
        isFull ? Promise.resolve({ kind: 'failed', reason: 'ENOSPC' }) : real.convert(order),
    },
  })
  await unfinished.write(note)
  finisher.add(note)
  await eventually(() => expect(logged).toHaveLength(1))
  expect([(await rows()).length, captures().length, (await unfinished.all()).length]).toEqual([
    0, 4, 1,
  ])
  isFull = false
  time.advance(60_000)
  await eventually(async () => expect(await rows()).toHaveLength(1))
})

test('a call of which nothing was captured says so, and is not tried again', async () => {
  const { finisher, unfinished, events, time, rows, folder } = open()
  const silent = { ...note, tracks: note.tracks.map((track) => ({ ...track, sessionId: 'tg-2' })) }
  await unfinished.write(silent)
  finisher.add(silent)
  await eventually(() => expect(finisher.totals.failed).toBe(1))
  expect(events).toEqual([
    { type: 'recording.failed', tenantId: 3, callUuid, reason: 'nothing was captured' },
  ])
  await eventually(async () => expect(await unfinished.all()).toEqual([]))
  expect([await rows(), time.waiting]).toEqual([[], 0])
  expect(readdirSync(folder)).toEqual(['.unfinished'])
})

test('captures of ours that no call claims are removed after a week, others never', async () => {
  const { finisher, spool, time, captures } = open()
  const foreign = join(spool, 'pcaps', 'other-0123456789abcdef.pcap')
  writeFileSync(foreign, '')
  const young = join(spool, 'pcaps', 'tg-3-0123456789abcdef.pcap')
  writeFileSync(young, '')
  const seconds = time.now() / 1_000
  utimesSync(young, seconds, seconds)
  for (const folder of ['pcaps', 'metadata'])
    for (const name of readdirSync(join(spool, folder)))
      if (!name.startsWith('tg-3'))
        utimesSync(join(spool, folder, name), seconds - 700_000, seconds - 700_000)
  await finisher.removeOrphans()
  expect(captures().toSorted()).toEqual([
    'other-0123456789abcdef.pcap',
    'tg-3-0123456789abcdef.pcap',
  ])
})
