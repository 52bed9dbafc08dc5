import { expect, test } from 'vitest'
import { Memory, SecondTexts } from '../../../control/reports/cdr-text.ts'
import { timeToText } from '../../../schema/columns.ts'

test('a text is made once as long as it is remembered, and no more than 10,000 are', () => {
  let made = 0
  const memory = new Memory((key: number) => `${key}:${++made}`)
  expect([memory.of(1), memory.of(1), memory.of(2)]).toEqual(['1:1', '1:1', '2:2'])
  for (let key = 3; key <= 10_001; key++) memory.of(key)
  expect(memory.of(1)).not.toBe('1:1')
})

test('a time is written to the millisecond, whichever second came before it', () => {
  const texts = new SecondTexts(timeToText)
  const base = Date.UTC(2026, 1, 28, 23, 59, 59)
  const times = [0, 7, 999, 1_000, 16_384_000, 0, -1, 86_400_000, 16_384_001].map((ms) => base + ms)
  expect(times.map((ms) => texts.of(ms))).toEqual(times.map(timeToText))
})
