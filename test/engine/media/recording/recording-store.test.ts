import { describe, expect, test } from 'vitest'
import { RecordingStore } from '../../../../engine/media/recording/finisher.ts'
import type { OutgoingEvent } from '../../../../schema/contracts/engine.ts'
import { all } from '../../../../schema/sql/query.ts'
import { eachDatabase } from '../../../support/shared-database.ts'

const recording = {
  callUuid: '019ab0c4-1e7f-7a37-9d1f-0f6a5f5e9c11',
  tenantId: null,
  startedAt: 1_000,
  durationMs: 2_000,
  bytes: 32_044,
  sha256: 'ab'.repeat(32),
}

describe.each(eachDatabase)('recordings on $database', ({ open }) => {
  const start = async (writeAll?: () => Promise<void>) => {
    const store = await open()
    const events: OutgoingEvent[] = []
    const written = async (more: readonly OutgoingEvent[]) => void events.push(...more)
    const sink = { wants: () => true, writeAll: writeAll ?? written }
    const rows = () => all(store, store.db.selectFrom('recording').selectAll())
    return { recordings: new RecordingStore(store, sink), events, rows }
  }

  test('without its event a recording is not stored', async () => {
    const { recordings, rows } = await start(() => Promise.reject(new Error('no')))
    await expect(recordings.add(recording)).rejects.toThrow('no')
    expect(await rows()).toEqual([])
  })
})
