import { expect, test } from 'vitest'
import { openControl } from '../support/control.ts'

test('GET /api/v1/health is success for a valid key', async () => {
  const control = openControl()
  const answer = await control.request('/api/v1/health', { token: control.key() })
  expect(answer.status).toBe(200)
  expect(answer.body).toEqual({
    success: true,
    data: { status: 'ok', service: 'tollgate', version: '0.0.0-test' },
  })
})
