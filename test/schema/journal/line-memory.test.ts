import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type StoredLine, LineMemory } from '../../../schema/journal/open-calls.ts'

const textOf = ({ slot, length }: StoredLine): string => slot.toString('latin1', 0, length)

test('lines of any length stay as they are while others are kept and released', () => {
  const steps = fc.array(
    fc.record({ length: fc.integer({ min: 1, max: 6_000 }), released: fc.nat(20) }),
    { minLength: 1, maxLength: 300 },
  )
  fc.assert(
    fc.property(steps, (list) => {
      const memory = new LineMemory()
      const kept: { readonly line: StoredLine; readonly text: string }[] = []
      for (const [index, { length, released }] of list.entries()) {
        const text = String.fromCodePoint(33 + (index % 90)).repeat(length)
        kept.push({ line: memory.keep(Buffer.from(text)), text })
        const [gone] = released < kept.length ? kept.splice(released, 1) : []
        if (gone) memory.release(gone.line)
        for (const { line, text: expected } of kept) expect(textOf(line)).toBe(expected)
      }
    }),
    { numRuns: 50 },
  )
})

test('memory that is released is used again', () => {
  const memory = new LineMemory()
  const first = memory.keep(Buffer.from('a'.repeat(2_000)))
  memory.release(first)
  expect(memory.keep(Buffer.from('b'.repeat(1_900))).slot).toBe(first.slot)
})
