import { expect, test } from 'vitest'
import { openControl } from '../../support/control.ts'
import { readValue } from '../../support/stored.ts'

const USERS = '/api/v1/users'

async function opened() {
  const control = await openControl()
  const token = await control.key()
  return {
    ...control,
    token,
    post: (body: unknown, from = token) => control.request(USERS, { token: from, body }),
    patch: (id: number, body: unknown, from = token) =>
      control.request(`${USERS}/${id}`, { token: from, method: 'PATCH', body }),
    remove: (id: number, from = token) =>
      control.request(`${USERS}/${id}`, { token: from, method: 'DELETE' }),
  }
}

interface User {
  readonly id: number
}

const ada = { username: 'Ada', password: 'correct horse', role: 'admin' }

test('users are created, listed, read, changed and removed; no answer holds a password', async () => {
  const { post, request, token, patch, remove } = await opened()
  await post({ ...ada, username: 'root' })
  const created = await post(ada)
  const { id } = created.data<User>()
  expect(created.status).toBe(201)
  expect(created.headers.get('location')).toBe(`${USERS}/${id}`)
  expect(created.body).toMatchObject({ data: { username: 'ada', role: 'admin', is_active: true } })

  const list = await request(`${USERS}?search=ad`, { token })
  expect(list.body).toMatchObject({ data: [{ username: 'ada' }], meta: { total: 1 } })
  expect((await patch(id, { role: 'auditor' })).body).toMatchObject({ data: { role: 'auditor' } })
  const read = await request(`${USERS}/${id}`, { token })
  for (const { text } of [created, list, read]) expect(text).not.toMatch(/argon2|horse|password/)
  expect((await remove(id)).status).toBe(200)
  expect((await request(`${USERS}/${id}`, { token })).status).toBe(404)
})

test('a password is stored as argon2id only', async () => {
  const { post, store } = await opened()
  await post(ada)
  expect(await readValue(store, 'SELECT password_hash FROM "user"')).toMatch(
    /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/,
  )
})

test('the last active admin can be neither removed nor demoted nor switched off', async () => {
  const { post, patch, remove } = await opened()
  const { id } = (await post(ada)).data<User>()
  for (const answer of [
    await patch(id, { role: 'auditor' }),
    await patch(id, { is_active: false }),
    await remove(id),
  ])
    expect([answer.status, answer.code]).toEqual([409, 'last_admin'])
})

test('of two admins that are removed or demoted at once one remains', async () => {
  for (const change of ['remove', 'demote']) {
    const { post, patch, remove } = await opened()
    const made = [await post({ ...ada, username: 'one' }), await post({ ...ada, username: 'two' })]
    const answers = await Promise.all(
      made.map((answer) => {
        const { id } = answer.data<User>()
        return change === 'remove' ? remove(id) : patch(id, { role: 'auditor' })
      }),
    )
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
      200, 409,
    ])
  }
})

test('a user cannot create, change or delete a user with more permissions', async () => {
  const { post, patch, remove, key } = await opened()
  const { id } = (await post(ada)).data<User>()
  const limited = await key({ scopes: ['users:*', '*:read'] })
  for (const answer of [
    await post({ ...ada, username: 'eve' }, limited),
    await patch(id, { password: 'mine, all mine' }, limited),
    await remove(id, limited),
  ])
    expect([answer.status, answer.code]).toEqual([403, 'scope_escalation'])
  const auditor = { ...ada, username: 'bob', role: 'auditor' }
  expect((await post(auditor, limited)).status).toBe(201)
})
