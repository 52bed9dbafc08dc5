import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { timeOrderedUuid } from '../../schema/time-ordered-uuid.ts'

test('a uuid of a call begins with its time, and is one of version 7', () => {
  const uuid = timeOrderedUuid('8d0b3a5e-2f4c-4a1b-9c3d-5e6f70819243', 0x01_9a_bc_de_f0_12)
  expect(uuid).toBe('019abcde-f012-7a1b-9c3d-5e6f70819243')
})

test('later ones are greater, and those of one millisecond are different', () => {
  const at = (now: number) => timeOrderedUuid(randomUUID(), now)
  expect(at(1_767_607_200_000) < at(1_767_607_200_001)).toBe(true)
  expect(at(1_767_607_200_000)).not.toBe(at(1_767_607_200_000))
})
