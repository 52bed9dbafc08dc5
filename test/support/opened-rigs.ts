/**
 * Closes the databases that a test has opened on a server, when it ends; those of its file, when
 * that ends.
 */
import { afterAll, afterEach, beforeEach } from 'vitest'
import { dropDatabases } from './reused-database.ts'
import { openedStores } from './test-store.ts'

let ofFile = 0

beforeEach(() => {
  ofFile = openedStores.length
})

afterEach(async () => {
  for (const { close } of openedStores.splice(ofFile)) await close()
})

afterAll(async () => {
  for (const { close } of openedStores.splice(0)) await close()
  if (process.env['TEST_DATABASE_URL'] !== undefined) await dropDatabases()
})
