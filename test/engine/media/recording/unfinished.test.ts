import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import {
  UnfinishedRecordings,
  type UnfinishedRecording,
} from '../../../../engine/media/recording/unfinished-recordings.ts'

const callUuid = '019ab0c4-1e7f-7a37-9d1f-0f6a5f5e9c11'
const note: UnfinishedRecording = {
  callUuid,
  tenantId: 3,
  startedAt: 1_000,
  endedAt: null,
  isOn: true,
  tracks: [
    {
      sessionId: 'tg-1',
      relay: '127.0.0.1:2223',
      startedAt: 1_000,
      caller: [{ address: '10.0.0.1', port: 4_000 }],
      callee: [],
    },
  ],
}

const root = temporaryFolder()
let count = 0

function open() {
  const folder = join(root, String((count += 1)))
  return { folder, notes: new UnfinishedRecordings(folder) }
}

test('a note is read by the next process, replaced by a newer one, and removed', async () => {
  const { folder, notes } = open()
  void notes.write(note)
  await notes.write({ ...note, endedAt: 2_000, isOn: false })
  const next = new UnfinishedRecordings(folder)
  expect(await next.all()).toEqual([{ ...note, endedAt: 2_000, isOn: false }])
  await next.remove(callUuid)
  expect(await next.all()).toEqual([])
  expect(readdirSync(join(folder, '.unfinished'))).toEqual([])
})

test('a note that is damaged, or not where its call belongs, is left alone', async () => {
  const { folder, notes } = open()
  const write = (name: string, content: unknown): void =>
    writeFileSync(join(folder, '.unfinished', `${name}.json`), JSON.stringify(content))
  const [track] = note.tracks
  const other = callUuid.replace('019a', '029a')
  write(other, note)
  write('not-a-uuid', { ...note, callUuid: 'not-a-uuid' })
  for (const broken of [
    'text',
    null,
    { ...note, startedAt: 'now' },
    { ...note, tracks: [{ ...track, sessionId: '../../etc' }] },
    { ...note, tracks: [{ ...track, caller: [null] }] },
  ]) {
    write(callUuid, broken)
    expect(await notes.all()).toEqual([])
  }
  await expect(async () => notes.write({ ...note, callUuid: '../x' })).rejects.toThrow('no uuid')
})
