/** Parts that are read while the ones before are worked on. */
import { expect, test } from 'vitest'
import { inParts, readAhead } from '../../../control/reports/read-ahead.ts'

test('parts come in their order, and from a server one more than is worked on is asked for', async () => {
  for (const [isAhead, most] of [
    [true, 2],
    [false, 1],
  ] as const) {
    let asked = 0
    const seen: number[] = []
    const read = async (part: readonly number[]) => {
      asked += 1
      return part
    }
    for await (const part of readAhead(inParts([1, 2, 3, 4, 5], 2), read, isAhead)) {
      seen.push(...part)
      expect(asked).toBe(Math.min(3, Math.ceil(seen.length / 2) + most - 1))
    }
    expect(seen).toEqual([1, 2, 3, 4, 5])
  }
})

test('a reader that ends early needs no later part, even one that cannot be read', async () => {
  const read = async (part: number) => {
    if (part > 1) throw new Error('no server')
    return part
  }
  for await (const part of readAhead([1, 2], read, true)) {
    expect(part).toBe(1)
    break
  }
  const all = async () => {
    for await (const part of readAhead([1, 2], read, true)) expect(part).toBe(1)
  }
  await expect(all()).rejects.toThrow('no server')
})
