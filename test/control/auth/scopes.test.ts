import fc from 'fast-check'
import { expect, test } from 'vitest'
import { allScopes, expandScopes, isGrantable, mayGrant } from '../../../control/auth/scopes.ts'
import { routeNotes } from '../../../control/http/validate.ts'
import { openControl } from '../../support/control.ts'

const labels = ['*', '*:read', 'ocs', 'keys:*', 'calls:*', ...allScopes].filter(isGrantable)

test.each([
  ['*', allScopes],
  ['cdrs:read', ['cdrs:read']],
  ['cdrs:*', ['cdrs:read', 'cdrs:write']],
  ['*:read', allScopes.filter((scope) => scope.endsWith(':read'))],
  [
    'calls:*',
    ['calls:read', 'calls:write', 'calls:originate', 'calls:control', 'calls:spy', 'calls:record'],
  ],
  ['ocs', ['ocs:read', 'ocs:write']],
  ['nonsense', []],
])('the label %s stands for exactly these scopes', (label, scopes) => {
  expect([...expandScopes([label])].toSorted()).toEqual([...scopes].toSorted())
})

test.each(['', 'cdrs', '*:*', '*:write', 'cdrs:', ':read', 'cdrs:read ', 'CDRS:READ', 'keys:spy'])(
  'the label "%s" is not in the vocabulary',
  (label) => expect(isGrantable(label)).toBe(false),
)

test('whatever may be granted, the grant holds no scope that its grantor lacks', () => {
  const some = fc.subarray(labels)
  fc.assert(
    fc.property(some, fc.constantFrom(...labels), (holder, label) => {
      fc.pre(mayGrant(holder, label))
      const held = expandScopes(holder)
      for (const scope of expandScopes([label])) expect(held).toContain(scope)
    }),
  )
})

test('only a holder of a wildcard, or of a wider one, can grant it', () => {
  expect(mayGrant([...allScopes], '*')).toBe(false)
  expect(mayGrant(['cdrs:read', 'cdrs:write'], 'cdrs:*')).toBe(false)
  expect(mayGrant(['cdrs:*'], 'cdrs:*')).toBe(true)
  expect(mayGrant(['*:read'], 'cdrs:read')).toBe(true)
  expect(mayGrant(['*:read'], 'cdrs:*')).toBe(false)
  expect(mayGrant(['*'], '*:read')).toBe(true)
})

const { app, edge } = await openControl()
const routes = [...routeNotes(app), ...routeNotes(edge)].map(
  (note) => [`${note.method} ${note.path}`, note] as const,
)

test.each(routes)('%s says who may come in', (_, { access }) => {
  expect(access).toBeDefined()
})

/** Reachable without a credential: each one is a decision. */
test('only these routes are open to all', () => {
  const open = routes.filter(([, { access }]) => access?.kind === 'public')
  expect([...new Set(open.map(([name]) => name))].toSorted()).toEqual([
    'GET /',
    // Whoever signs in by an identity provider has nothing to show yet.
    'GET /api/v1/auth/callback/:id',
    'GET /api/v1/auth/providers',
    'GET /api/v1/auth/providers/:id/start',
    'GET /api/v1/auth/session',
    // Whoever verifies our signatures reads the certificate.
    'GET /api/v1/stir/certificates/:name',
    'GET /console',
    'GET /console/:screen',
    'GET /console/:screen/:item',
    'GET /console/assets/:file',
    // Its link is the credential.
    'GET /decide',
    'GET /docs',
    'GET /docs/:file',
    'GET /guide',
    'GET /health',
    'GET /livez',
    'GET /openapi.json',
    'GET /readyz',
    'POST /api/client/auth/login',
    'POST /api/client/payments/webhook',
    'POST /api/v1/auth/login',
    // The challenge that they take proves a password.
    'POST /api/v1/auth/login/code',
    'POST /api/v1/auth/login/enrolment',
    'POST /api/v1/auth/session',
    'POST /api/v1/auth/session/code',
    'POST /decide',
  ])
})

test.each(routes.filter(([, { access }]) => access?.kind !== 'public'))(
  '%s is 401 without a credential and with an unknown one',
  async (_, { method, path }) => {
    const control = await openControl()
    const unknown = `sbc_live_${'x'.repeat(64)}`
    const at = path.replaceAll(/:\w+/g, '1')
    for (const headers of [{}, { authorization: `Bearer ${unknown}` }, { 'x-api-key': unknown }]) {
      const answer = await control.request(at, { method, headers })
      expect([answer.status, answer.code]).toEqual([401, 'unauthorized'])
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    }
  },
)

test.each(routes.filter(([, { access }]) => access?.kind === 'scope'))(
  '%s is 403 for a key that holds every other scope',
  async (_, { method, path, access }) => {
    const control = await openControl()
    const needed = access?.kind === 'scope' ? access.scope : ''
    const token = await control.key({ scopes: allScopes.filter((scope) => scope !== needed) })
    const answer = await control.request(path.replaceAll(/:\w+/g, '1'), { method, token })
    expect([answer.status, answer.code]).toEqual([403, 'insufficient_scope'])
  },
)
