import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { streamedBody } from '../../../control/nodes/peer-answers.ts'
import { ManualTime } from '../../support/manual-time.ts'

function opened() {
  const time = new ManualTime(0)
  const source = new Readable({ read: () => undefined })
  const seen = { cuts: 0 }
  const cut = (): void => void (seen.cuts += 1)
  const reader = streamedBody(source, { schedule: time.schedule, cut }).getReader()
  const read = async (text: string): Promise<void> => {
    source.push(Buffer.from(text))
    const { value } = await reader.read()
    expect(Buffer.from(value ?? []).toString()).toBe(text)
  }
  const isOver = (cuts: number): boolean =>
    seen.cuts === cuts && source.destroyed && time.waiting === 0
  return { time, source, reader, read, isOver }
}

test('a response whose source says nothing for ten seconds while it is waited for is cut', async () => {
  const { time, source, reader, read, isOver } = opened()
  await read('first')
  void reader.read()
  time.advance(9_999)
  expect(source.destroyed).toBe(false)
  time.advance(1)
  expect(isOver(1)).toBe(true)
})

test('a reader that takes nothing for a minute loses the rest, also before its first byte', async () => {
  const { time, source, read, isOver } = opened()
  await read('first')
  time.advance(59_999)
  expect(source.destroyed).toBe(false)
  time.advance(1)
  expect(isOver(1)).toBe(true)
  const other = opened()
  other.time.advance(60_000)
  expect(other.isOver(1)).toBe(true)
})

test('a reader that takes a little every now and then loses the rest after four hours', async () => {
  const { time, source, read, isOver } = opened()
  for (let minutes = 0; minutes < 4 * 60; minutes += 1) {
    expect(source.destroyed).toBe(false)
    await read('a')
    time.advance(30_000)
    await read('b')
    time.advance(30_000)
  }
  expect(isOver(1)).toBe(true)
})

test('a response that was read to its end, or is not wanted any more, leaves no timer and no open source', async () => {
  const ended = opened()
  await ended.read('all')
  ended.source.push(null)
  expect((await ended.reader.read()).done).toBe(true)
  const unwanted = opened()
  await unwanted.read('some')
  await unwanted.reader.cancel()
  for (const { isOver } of [ended, unwanted]) expect(isOver(0)).toBe(true)
})

test('a response whose source fails is cut, and has no text of the error in it', async () => {
  const { source, reader, read, isOver } = opened()
  await read('first')
  const rest = reader.read()
  source.destroy(new Error('the disk is gone'))
  await new Promise((resolve) => void setImmediate(resolve))
  expect(isOver(1)).toBe(true)
  await reader.cancel()
  expect((await rest).value).toBeUndefined()
})
