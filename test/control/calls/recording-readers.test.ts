import { expect, test } from 'vitest'
import { RecordingReaders } from '../../../control/calls/recording-routes.ts'

const enter = (readers: RecordingReaders, tenantId: number | null, count: number) =>
  Array.from({ length: count }, () => readers.enter(tenantId)).filter((leave) => leave)

test('16 of one tenant, 64 in all; each that leaves makes place', () => {
  const readers = new RecordingReaders()
  const first = enter(readers, 1, 20)
  expect(first).toHaveLength(16)
  expect([2, 3, 4].map((tenantId) => enter(readers, tenantId, 15).length)).toEqual([15, 15, 15])
  expect(enter(readers, null, 5)).toHaveLength(3)
  expect(enter(readers, 2, 1)).toHaveLength(0)
  first[0]?.()
  expect(enter(readers, 1, 2)).toHaveLength(1)
  expect(enter(readers, 2, 1)).toHaveLength(0)
})

test('readers of no tenant may take every place', () => {
  expect(enter(new RecordingReaders(), null, 70)).toHaveLength(64)
})
