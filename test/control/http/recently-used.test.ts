import { expect, test } from 'vitest'
import { recentlyUsed } from '../../../control/http/recently-used.ts'

test('of more entries than it may have, those stay that were used last', () => {
  const entries = recentlyUsed<number, { readonly key: number }>(3)
  for (const key of [1, 2, 3]) entries.set(key, { key })
  entries.get(1)
  entries.set(4, { key: 4 })
  entries.set(4, { key: 5 })
  expect(new Set(entries.keys())).toEqual(new Set([1, 3, 4]))
  expect(entries.get(4)).toEqual({ key: 5 })
})
