/** Each request that can be in the audit log is a sentence for people. */
import { expect, test } from 'vitest'
import { auditText } from '../../../../../control/console/web/screens/audit-words.ts'
import { operations } from '../../../../../control/client/operations.ts'

const entry = (action: string, target: string, more: object = {}) => ({
  actor: 'user:ada',
  actor_name: null,
  action,
  target,
  target_name: null,
  outcome: 'success' as const,
  code: null,
  effect: null,
  after_digest: 'x',
  ...more,
})

test('a user is told from a key, and what it was about has its name', () => {
  const patch = entry('PATCH /api/v1/customers/:id', '/api/v1/customers/7', { target_name: 'acme' })
  expect(auditText(patch)).toBe('user ada changed customer "acme"')
  expect(auditText({ ...patch, target_name: null })).toBe('user ada changed customer 7')
  expect(auditText({ ...patch, actor: 'key:0b4c1c1e-7f0a', actor_name: 'crm' })).toBe(
    'key crm changed customer "acme"',
  )
  expect(auditText({ ...patch, outcome: 'refused', code: 'in_use' })).toBe(
    'user ada was not allowed to change customer "acme" (in use)',
  )
  expect(
    auditText(
      entry('PATCH /api/v1/dispatcher/:id/nodes/:nodeId', '/api/v1/dispatcher/1/nodes/2', {
        target_name: 'office',
      }),
    ),
  ).toBe('user ada changed PBX node 2 of dispatcher set "office"')
  expect(auditText(entry('command seed', 'seed.json', { actor: 'console' }))).toBe(
    'the command line ran command seed',
  )
  expect(auditText(entry('expire suspend_api_key', 'api_key 7', { actor: 'platform' }))).toBe(
    'the platform took back a change that was for a time',
  )
  expect(auditText(entry('POST /api/v1/stir/keys', '/api/v1/stir/keys'))).toBe(
    'user ada created a signing key',
  )
})

test('no request is told by its path, by the words of a table, or in two verbs', () => {
  const told = Object.values(operations)
    .filter(({ method, path }) => method !== 'GET' && path.startsWith('/api/v1/'))
    .map(({ method, path }) => {
      const route = path.replaceAll(/\{(\w+)\}/g, ':$1')
      const target = path.replaceAll(/\{\w+\}/g, '7')
      return auditText(entry(`${method} ${route}`, target))
    })
  expect(told.length).toBeGreaterThan(90)
  for (const text of told) {
    expect(text).toMatch(/^user ada [a-z]/)
    expect(text).not.toMatch(/[/_:{}%|]|\bdid\b|undefined|PATCH|POST|PUT|DELETE/)
  }
})
