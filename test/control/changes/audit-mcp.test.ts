import { expect, test } from 'vitest'
import { openControl } from '../../support/control.ts'
import { connectClient, eras } from '../../support/mcp-client.ts'
import { readRows, runSql } from '../../support/stored.ts'

test.each(eras)(
  'whatever is read or tried by MCP leaves one entry that names the key: %s',
  async (era) => {
    const control = await openControl()
    const token = await control.key({ name: 'watcher', scopes: ['*:read'] })
    const client = await connectClient(control.app, token, era)
    const query = 'SELECT action, code, actor_name, actor_key_prefix FROM audit_entry ORDER BY id'
    const seen: unknown[] = []
    const expectOne = async (work: Promise<unknown>, action: string, code: string | null) => {
      await work.catch(() => undefined)
      const key = { actor_name: 'watcher', actor_key_prefix: token.slice(0, 12) }
      seen.push({ action: `tool ${action}`, code, ...key })
      expect(await readRows(control.store, query)).toEqual(seen)
    }
    await client.listTools()
    await client.listResources()
    await expectOne(
      client.callTool({ name: 'get_telemetry', arguments: {} }),
      'get_telemetry',
      null,
    )
    await expectOne(client.readResource({ uri: 'tollgate://telemetry' }), 'get_telemetry', null)
    const refused = { name: 'revoke_sbc_api_key', arguments: { identifier: 'x' } }
    await expectOne(client.callTool(refused), 'revoke_sbc_api_key', 'insufficient_scope')
    await expectOne(
      client.callTool({ name: 'format_disk', arguments: {} }),
      'format_disk',
      'unknown_tool',
    )
    await client.close()
  },
)

test('an entry keeps the name that its key had then; one of an older version shows the name of now', async () => {
  const control = await openControl()
  const token = await control.key({ name: 'before' })
  const self = await control.request('/api/v1/application-keys/self', { token })
  const { uuid } = self.data<{ uuid: string }>()
  const rename = { token, method: 'PATCH', body: { name: 'after' } }
  await control.request(`/api/v1/application-keys/${uuid}`, rename)
  await runSql(
    control.store,
    `
    INSERT INTO audit_entry (at, actor, address, action, target, outcome, status, correlation_id)
    VALUES (0, 'key:${uuid}', '', 'DELETE /x', '/x', 'success', 200, '')`,
  )
  const { body } = await control.request('/api/v1/audit', { token })
  expect(body).toMatchObject({
    data: [
      { actor: `key:${uuid}`, actor_name: 'before', actor_key_prefix: token.slice(0, 12) },
      { actor: `key:${uuid}`, actor_name: 'after', actor_key_prefix: token.slice(0, 12) },
    ],
  })
})
