import { expect, test } from 'vitest'
import { openToolRig } from '../../../support/tools-rig.ts'

test('an agent of the platform sees its nodes, an agent of a tenant does not', async () => {
  const rig = await openToolRig()
  const answer = await rig.tool('list_instances')
  expect(answer.data()).toEqual({
    total: 1,
    complete: true,
    cursor: null,
    instances: [
      {
        name: 'test-1',
        state: 'serving',
        epoch: 0,
        version: '0.0.0-test',
        live_calls: 0,
        heartbeat_at: '2026-01-01T00:00:00.000Z',
        is_this: true,
        differing_settings: [],
      },
    ],
  })
  const ofTenant = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  expect((await rig.tool('list_instances', {}, ofTenant)).status).toBe(403)
})
