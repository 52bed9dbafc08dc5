import { expect, test } from 'vitest'
import { ByteWriter } from '../../../control/reports/report-chunks.ts'

const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

test('what was added since the last time comes as bytes of its own, of any length', () => {
  const writer = new ByteWriter()
  writer.add('eins ')
  writer.add('€😀')
  const first = writer.take()
  const long = 'ü'.repeat(3_000_000)
  writer.add('a')
  writer.add(long)
  expect(textOf(writer.take())).toBe(`a${long}`)
  expect(textOf(first)).toBe('eins €😀')
  expect(first.buffer.byteLength).toBe(first.length)
  expect(writer.take()).toHaveLength(0)
})
