import { expect, test } from 'vitest'
import { prefixOf } from '../../../engine/media/create-media.ts'

const one = prefixOf('tollgate-0', '/data/tollgate.db', 'a')

test.each([
  ['in containers of the same name', prefixOf('tollgate-0', '/data/tollgate.db', 'b')],
  ['with a copy of a database', prefixOf('tollgate-1', '/data/tollgate.db', 'a')],
  ['beside another on one machine', prefixOf('tollgate-0', '/data/other.db', 'a')],
])('an installation %s takes no session of another for its own', (_, other) => {
  expect(other).not.toBe(one)
  expect(prefixOf('tollgate-0', '/data/tollgate.db', 'a')).toBe(one)
})
