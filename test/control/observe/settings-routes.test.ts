import { expect, test } from 'vitest'
import { openControl } from '../../support/control.ts'

const path = '/api/v1/settings'

test('an administrator of the platform sees the settings in force; a reader and a tenant do not', async () => {
  const control = await openControl()
  await control.tenant('acme')
  const ask = async (body: Readonly<Record<string, unknown>>) => {
    const answer = await control.request(path, { token: await control.key(body) })
    return [answer.status, answer.code]
  }
  const seen = await control.request(path, { token: await control.key() })
  const { settings } = seen.data<{
    settings: { name: string; is_secret: boolean; value: null }[]
  }>()
  expect(settings.find(({ name }) => name === 'DRAIN_SECONDS')).toMatchObject({
    value: '30',
    source: 'default',
    is_set: true,
  })
  expect(settings.filter(({ is_secret }) => is_secret).map(({ value }) => value)).not.toContain('')
  expect(await ask({ scopes: ['settings:view'] })).toEqual([200, undefined])
  expect(await ask({ scopes: ['*:read'] })).toEqual([403, 'insufficient_scope'])
  expect(await ask({ tenant_scope: 'tenant', tenant_slug: 'acme' })).toEqual([403, 'wrong_tenant'])
})
