/**
 * A spend guard of the platform, and the deletion of what it brakes, at the same moment on two
 * instances.
 */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { customers } from '../../../control/resources/customers.ts'
import { extensions } from '../../../control/resources/extensions.ts'
import { SpendingCapStore } from '../../../control/resources/spending-cap-store.ts'
import { storeOf } from '../../../control/resources/resource.ts'
import { transaction } from '../../../schema/sql/query.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { openResources } from '../../support/resources.ts'
import { sharedDatabase } from '../../support/shared-database.ts'
import { addGuard } from '../../support/spending-caps.ts'
import { readColumn, readValue, runScript, runSql } from '../../support/stored.ts'
import { eventually } from '../../support/waiting.ts'

const asTenant = { tenantId: 1, actor: 'user:ada', now: 1_000 }

/** Money is not moved here. */
const ledger = {
  post: () => Promise.reject(new Error('no')),
  endDepletion: () => Promise.resolve(),
}

describe.runIf(hasPostgres)('beside a spending cap of another instance', () => {
  test.each(['extension', 'customer'] as const)(
    'the %s is not deleted when the guard was set before the deletion ended',
    async (owner) => {
      const { open } = await sharedDatabase()
      const [store, other, third] = [await open(), await open(), await open()]
      await runScript(
        store,
        `INSERT INTO tenant (id, slug, name, created_at) VALUES (1, 'acme', 'acme', 0);
         INSERT INTO tenant_domain (domain, tenant_id) VALUES ('acme.example', 1);
         INSERT INTO customer (id, name, tenant_id, created_at, updated_at) VALUES (7, 'c', 1, 0, 0);
         INSERT INTO extension (id, tenant_id, domain, extension, display_name, ha1_md5, ha1_sha256, created_at, updated_at)
           VALUES (7, 1, 'acme.example', '101', 'x', '', '', 0, 0)`,
      )
      const resources =
        owner === 'extension'
          ? storeOf(extensions, { store })
          : storeOf(customers, { store, ledger })
      let deleted: Promise<unknown> = Promise.resolve()
      // It lets guards refer to the row, and holds its deletion up behind the check for guards.
      await transaction(third, async () => {
        await runSql(third, `SELECT 1 FROM ${owner} WHERE id = 7 FOR KEY SHARE`)
        deleted = resources.remove(7, asTenant).catch((error: unknown) => error)
        await eventually(async () =>
          expect(
            await readValue(
              other,
              "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
            ),
          ).toBeGreaterThan(0),
        )
        await addGuard(other, 'aaaaaaaa-0000-4000-8000-000000000001', { [`${owner}_id`]: 7 })
      })
      expect(await deleted).toMatchObject({ status: 409, code: 'spend_guard_holds' })
      expect(await readColumn(store, `SELECT id FROM ${owner}`)).toEqual([7])
      expect(await readColumn(store, `SELECT ${owner}_id FROM spend_guard`)).toEqual([7])
    },
  )
})

test('a guard is not set on an extension that was deleted since it was looked up', async () => {
  const world = await openResources()
  await world.tenant('acme', ['acme.example'])
  const phone = { extension: '101', password: 'long enough', display_name: 'x', tenant: 'acme' }
  expect((await world.call('POST', '/pbx/extensions', phone)).status).toBe(201)
  const lookedUp = vi
    .spyOn(SpendingCapStore.prototype, 'present')
    .mockImplementationOnce(async () => {
      await runSql(world.store, 'DELETE FROM extension')
      return undefined
    })
  onTestFinished(() => lookedUp.mockRestore())
  const guard = { extension: '101', prefix: '1900', action: 'block', reason: 'too dear' }
  const refused = await world.call('POST', '/spend-guards', guard)
  const details = [{ path: 'extension', message: 'does not exist' }]
  expect(refused.body).toMatchObject({ statusCode: 400, details })
  const left = "SELECT count(*) FROM change_entry WHERE target_kind = 'spend_guard'"
  expect(await readValue(world.store, left)).toBe(0)
})
