import { expect, test } from 'vitest'
import { openControl } from '../../support/control.ts'
import { readValue } from '../../support/stored.ts'

const VIEWS = '/api/v1/saved-views'
const password = 'a long password'

async function opened() {
  const control = await openControl()
  const root = await control.key()
  await control.tenant('acme')
  await control.tenant('other')
  const admin = { username: 'chief', password, role: 'admin' }
  await control.request('/api/v1/users', { token: root, body: admin })
  const signIn = async (username: string, tenant?: string) => {
    const body = { username, password, role: 'auditor', ...(tenant && { tenant_slug: tenant }) }
    const made = await control.request('/api/v1/users', { token: root, body })
    const login = await control.request('/api/v1/auth/login', {
      body: { username, password },
      headers: tenant === undefined ? {} : { 'X-Tenant-Slug': tenant },
    })
    const { token } = login.data<{ token: string }>()
    const view = (name: string) => `${VIEWS}/calls/${encodeURIComponent(name)}`
    return {
      id: made.data<{ id: number }>().id,
      save: (name: string, query: unknown, headers = {}) =>
        control.request(view(name), { token, method: 'PUT', body: { query }, headers }),
      remove: (name: string) => control.request(view(name), { token, method: 'DELETE' }),
      names: async (headers = {}) => {
        const list = await control.request(VIEWS, { token, headers })
        return list.data<{ name: string }[]>().map(({ name }) => name)
      },
    }
  }
  return { ...control, root, signIn }
}

test('a user keeps views by name, replaces, and removes them; also one who may only read', async () => {
  const { signIn } = await opened()
  const ada = await signIn('ada')
  expect((await ada.save('Failed', 'disposition=FAILED')).status).toBe(200)
  await ada.save('Überfällig: 100 %', 'period=today')
  const again = await ada.save('Failed', 'disposition=FAILED,BUSY&sort=-cost')
  const view = { screen: 'calls', name: 'Failed', query: 'disposition=FAILED,BUSY&sort=-cost' }
  expect(again.data()).toEqual(view)
  expect(await ada.names()).toEqual(['Failed', 'Überfällig: 100 %'])
  expect((await ada.remove('Failed')).data()).toEqual(view)
  expect(await ada.names()).toEqual(['Überfällig: 100 %'])
  expect((await ada.remove('Failed')).status).toBe(404)
})

test('views are seen and changed by nobody else, of the same tenant or another, and a key has none', async () => {
  const { signIn, request, root } = await opened()
  const ours = await signIn('ada', 'acme')
  const colleague = await signIn('bob', 'acme')
  const namesake = await signIn('ada', 'other')
  const platform = await signIn('ada')
  await ours.save('Mine', 'caller=canary')
  for (const each of [colleague, namesake, platform]) {
    expect(await each.names()).toEqual([])
    expect((await each.remove('Mine')).status).toBe(404)
    await each.save('Mine', 'period=today')
  }
  expect(await platform.names({ 'X-Tenant-Slug': 'acme' })).toEqual(['Mine'])
  expect((await ours.remove('Mine')).data()).toMatchObject({ query: 'caller=canary' })
  expect((await request(VIEWS, { token: root })).data()).toEqual([])
  const byKey = await request(`${VIEWS}/calls/Mine`, {
    token: root,
    method: 'PUT',
    body: { query: '' },
  })
  expect([byKey.status, byKey.code]).toEqual([403, 'insufficient_scope'])
})

test('fifty views are kept, and replaced; one more is refused', async () => {
  const { signIn } = await opened()
  const ada = await signIn('ada')
  for (let view = 1; view <= 50; view += 1)
    expect((await ada.save(`view ${view}`, 'period=today')).status).toBe(200)
  const more = await ada.save('one more', 'period=today')
  expect([more.status, more.code]).toEqual([409, 'too_many_views'])
  expect((await ada.save('view 1', 'period=yesterday')).status).toBe(200)
  await ada.remove('view 2')
  expect((await ada.save('one more', 'period=today')).status).toBe(200)
  expect(await ada.names()).toHaveLength(50)
})

test.each([
  ['another screen', '/api/v1/saved-views/settings/Mine', { query: '' }, 'screen'],
  ['a name that is too long', `${VIEWS}/calls/${'n'.repeat(61)}`, { query: '' }, 'name'],
  ['a name with spaces around', `${VIEWS}/calls/%20Mine`, { query: '' }, 'name'],
  ['a query that is too long', `${VIEWS}/calls/Mine`, { query: 'q'.repeat(2_001) }, 'query'],
  ['no query', `${VIEWS}/calls/Mine`, {}, 'query'],
  ['another field', `${VIEWS}/calls/Mine`, { query: '', colour: 'red' }, 'colour'],
])('%s is refused by its field', async (_, path, body, field) => {
  const { request, root } = await opened()
  const answer = await request(path, { token: root, method: 'PUT', body })
  expect([answer.status, answer.code]).toEqual([400, 'validation_failed'])
  expect(answer.body).toMatchObject({ details: [{ path: field }] })
})

test('a user who is removed takes the views along', async () => {
  const { signIn, request, root, store } = await opened()
  const ada = await signIn('ada')
  await ada.save('Mine', 'period=today')
  const removed = await request(`/api/v1/users/${ada.id}`, { token: root, method: 'DELETE' })
  expect(removed.status).toBe(200)
  expect(await readValue(store, 'SELECT count(*) FROM saved_view')).toBe(0)
})
