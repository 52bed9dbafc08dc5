import { expect, test } from 'vitest'
import { PrintedLines } from '../../../engine/hooks/printed-lines.ts'

test('pieces become lines, and a second has 50 of them', () => {
  const printed = new PrintedLines()
  printed.add('info', 'one ')
  printed.add('warn', 'other\n')
  printed.add('info', 'line\n\n')
  expect(printed.take()).toEqual({
    lines: [
      { level: 'warn', text: 'other' },
      { level: 'info', text: 'one line' },
    ],
    dropped: 0,
  })
  expect(printed.take()).toBeUndefined()
  for (let count = 0; count < 1_000; count++) printed.add('info', `line ${count}\n`)
  expect(printed.take()).toMatchObject({ dropped: 952 })
  printed.renew()
  printed.add('info', `${'x'.repeat(5_000)}\n`)
  expect(printed.take()?.lines).toMatchObject([{ text: 'x'.repeat(1_000) }])
})

test('a line without an end keeps no more memory than a line', () => {
  const printed = new PrintedLines()
  for (let count = 0; count < 100; count++) printed.add('info', 'x'.repeat(10_000))
  printed.add('info', '\n')
  expect(printed.take()?.lines).toHaveLength(1)
})
