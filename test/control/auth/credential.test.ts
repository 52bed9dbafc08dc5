import { expect, test } from 'vitest'
import { readCredential } from '../../../control/auth/authenticate.ts'
import { openControl } from '../../support/control.ts'

const token = `sbc_live_${'x'.repeat(64)}`

test.each([
  [`Bearer ${token}`, undefined, { kind: 'key', token }],
  [`bearer ${token}`, undefined, { kind: 'key', token }],
  [undefined, token, { kind: 'key', token }],
  [`Bearer ${token}`, 'other', { kind: 'key', token }],
  ['Bearer a.b.c', undefined, { kind: 'session', token: 'a.b.c' }],
  [undefined, 'a.b.c', { kind: 'unreadable' }],
  ['Basic YTpi', undefined, { kind: 'unreadable' }],
  ['Bearer ', undefined, { kind: 'unreadable' }],
  [`Bearer ${token}x`, undefined, { kind: 'unreadable' }],
  [`Bearer ${token}, Bearer ${token}`, undefined, { kind: 'unreadable' }],
  [`Bearer ${'a'.repeat(3_000)}.b.c`, undefined, { kind: 'unreadable' }],
  [undefined, undefined, undefined],
])('Authorization %s with X-API-Key %s', (authorization, apiKey, credential) => {
  expect(readCredential(authorization, apiKey)).toEqual(credential)
})

test('X-API-Key is accepted in any case of its name', async () => {
  const control = await openControl()
  const key = await control.key()
  for (const name of ['X-API-Key', 'x-api-key']) {
    const answer = await control.request('/api/v1/health', { headers: { [name]: key } })
    expect(answer.status).toBe(200)
  }
})
