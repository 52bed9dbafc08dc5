import { expect, test } from 'vitest'
import { prefixOf } from '../../../engine/media/create-media.ts'

const one = { host: 'tollgate-0', databasePath: '/data/tollgate.db', databaseId: 'a' }

test.each([
  ['in containers of the same name', { databaseId: 'b' }],
  ['with a copy of a database', { host: 'tollgate-1' }],
  ['beside another on one machine', { databasePath: '/data/other.db' }],
])('an installation %s takes no session of another for its own', (_, changes) => {
  expect(prefixOf({ ...one, ...changes })).not.toBe(prefixOf(one))
  expect(prefixOf({ ...one })).toBe(prefixOf(one))
})
