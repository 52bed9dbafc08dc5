import { z } from 'zod'
import { keyStates } from '../auth/app-key.ts'
import type { keyView } from '../resources/keys/key-view.ts'
import type { userView } from '../auth/user-store.ts'
import { data, list, type Operations } from '../http/openapi/operation.ts'
import { deleted, resourceOperations } from '../http/openapi/resource-operations.ts'
import { tenants } from '../resources/tenants.ts'
import { count, exampleMedia, exampleTime, moment } from '../http/view-fields.ts'

const keyFields = z.strictObject({
  uuid: z.string(),
  kind: z.enum(['sbc', 'pbx', 'billing']),
  name: z.string(),
  description: z.string().nullable(),
  key_prefix: z.string().describe('The first 12 characters of the token.'),
  scopes: z.array(z.string()),
  rate_limit_rpm: z.int(),
  expires_at: moment.nullable(),
  is_active: z.boolean(),
  state: z.enum(keyStates),
  suspended_at: moment.nullable().describe('Until it is resumed.'),
  revoked_at: moment.nullable(),
  tenant_scope: z.enum(['global', 'tenant']),
  tenant_slug: z.string().nullable(),
  domain: z.string().nullable(),
  allowed_ips: z.array(z.string()),
  owner_username: z.string().nullable(),
  request_count: count,
  last_used_at: moment.nullable(),
  created_at: moment,
})
export const key: z.ZodType<ReturnType<typeof keyView>> = keyFields.meta({ id: 'ApplicationKey' })
const newKey = keyFields
  .extend({
    token: z
      .string()
      .optional()
      .describe('Shown only in this response: absent when an Idempotency-Key repeats it.'),
    token_omitted: z.string().optional().describe('Why a repeated response has no token.'),
  })
  .meta({ id: 'NewApplicationKey' })
const ownKey = keyFields.extend({ permissions: z.array(z.string()) }).meta({ id: 'OwnKey' })

const keyUsage = z
  .strictObject({
    days: z
      .array(z.strictObject({ date: z.iso.date(), requests: count }))
      .describe('The last 30 days in UTC, oldest first.'),
  })
  .meta({ id: 'KeyUsage' })

const user: z.ZodType<ReturnType<typeof userView>> = z
  .strictObject({
    id: z.int(),
    username: z.string(),
    role: z.enum(['admin', 'operator', 'auditor']),
    tenant_slug: z.string().nullable(),
    is_active: z.boolean(),
    created_at: moment,
    updated_at: moment,
  })
  .meta({ id: 'User' })

const customerLogin = z
  .strictObject({
    id: z.int(),
    name: z.string(),
    email: z.string().nullable(),
    role: z.literal('customer'),
  })
  .meta({ id: 'CustomerLogin' })

const session = (who: z.ZodType) =>
  z.strictObject({
    token: z.string().describe('A JWT.'),
    token_type: z.literal('Bearer'),
    expires_in: z.int().describe('Lifetime in seconds.'),
    user: who,
  })

const permissions = {
  scopes: z.array(z.string()),
  permissions: z.array(z.string()).describe('The scopes with wildcards expanded.'),
  tenant_slug: z.string().nullable(),
  domain: z.string().nullable(),
}
const profile = z
  .discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('key'), uuid: z.string(), ...permissions }),
    z.strictObject({
      kind: z.literal('user'),
      id: z.int(),
      username: z.string(),
      role: z.string(),
      is_active: z.boolean(),
      created_at: moment,
      updated_at: moment,
      ...permissions,
      expires_at: moment,
    }),
  ])
  .meta({ id: 'Profile' })

const loggedOut = z.strictObject({ logged_out: z.literal(true) })

export const exampleKey = {
  uuid: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11',
  kind: 'sbc',
  name: 'monitoring',
  description: null,
  key_prefix: 'sbc_live_a1B',
  scopes: ['*:read'],
  rate_limit_rpm: 1200,
  expires_at: null,
  is_active: true,
  state: 'active',
  suspended_at: null,
  revoked_at: null,
  tenant_scope: 'global',
  tenant_slug: null,
  domain: null,
  allowed_ips: [],
  owner_username: 'ada',
  request_count: 0,
  last_used_at: null,
  created_at: exampleTime,
}
const exampleUser = {
  id: 1,
  username: 'ada',
  role: 'admin',
  tenant_slug: null,
  is_active: true,
  created_at: exampleTime,
  updated_at: exampleTime,
}
const exampleLogin = { id: 7, name: 'Acme', email: 'billing@acme.example', role: 'customer' }
const exampleSession = (who: object) => ({
  token: 'eyJhbGciOiJIUzI1NiJ9.e30.x',
  token_type: 'Bearer',
  expires_in: 28_800,
  user: who,
})

const keys: Operations = {
  'POST /api/v1/application-keys': {
    id: 'createApplicationKey',
    tag: 'Keys',
    summary: 'Create a key. Only this response contains the token.',
    body: { name: 'monitoring', scopes: ['*:read'] },
    answer: data(newKey, { ...exampleKey, token: `sbc_live_${'a'.repeat(64)}` }, 201),
  },
  'GET /api/v1/application-keys': {
    id: 'listApplicationKeys',
    tag: 'Keys',
    summary: 'List keys',
    answer: list(key, exampleKey),
  },
  'GET /api/v1/application-keys/self': {
    id: 'getOwnKey',
    tag: 'Keys',
    summary: 'Get the presented key and its permissions',
    answer: data(ownKey, { ...exampleKey, permissions: ['calls:read'] }),
    refusals: [404],
  },
  'GET /api/v1/application-keys/:uuid': {
    id: 'getApplicationKey',
    tag: 'Keys',
    summary: 'Get a key',
    answer: data(key, exampleKey),
  },
  'GET /api/v1/application-keys/:uuid/usage': {
    id: 'getKeyUsage',
    tag: 'Keys',
    summary: 'Get the successful requests of a key by day',
    answer: data(keyUsage, { days: [{ date: '2026-01-01', requests: 120 }] }),
  },
  'PATCH /api/v1/application-keys/:uuid': {
    id: 'updateApplicationKey',
    tag: 'Keys',
    summary: 'Update a key. Takes effect immediately.',
    body: { is_active: false },
    answer: data(key, exampleKey),
    refusals: [409],
  },
  'POST /api/v1/application-keys/:uuid/rotate': {
    id: 'rotateApplicationKey',
    tag: 'Keys',
    summary: 'Rotate the token of a key. The old token stays valid during the grace period.',
    body: { grace_seconds: 3_600 },
    answer: data(newKey, { ...exampleKey, token: `sbc_live_${'b'.repeat(64)}` }, 201),
  },
  'DELETE /api/v1/application-keys/:uuid': {
    id: 'revokeApplicationKey',
    tag: 'Keys',
    summary: 'Revoke a key permanently',
    answer: data(key, { ...exampleKey, state: 'revoked', is_active: false }),
    refusals: [409],
  },
}

const sessions: Operations = {
  'POST /api/v1/auth/login': {
    id: 'login',
    tag: 'Sessions',
    summary: 'Log in as staff',
    body: { username: 'ada', password: 'correct horse' },
    answer: data(session(user), exampleSession(exampleUser)),
    refusals: [401],
  },
  'POST /api/v1/auth/session': {
    id: 'openSession',
    tag: 'Sessions',
    summary: 'Sign in to the console: the session is a cookie that scripts cannot read',
    body: { username: 'ada', password: 'correct horse' },
    answer: data(z.strictObject({ user, expires_in: z.int().describe('Lifetime in seconds.') }), {
      user: exampleUser,
      expires_in: 3_600,
    }),
    refusals: [401],
  },
  'GET /api/v1/auth/session': {
    id: 'getSession',
    tag: 'Sessions',
    summary:
      'Get the user of this session; null without a session. Renews a session by cookie of which less than half is left.',
    answer: data(z.strictObject({ profile: profile.nullable() }), { profile: null }),
  },
  'DELETE /api/v1/auth/session': {
    id: 'closeSession',
    tag: 'Sessions',
    summary: 'Sign out of the console',
    answer: data(loggedOut, { logged_out: true }),
  },
  'GET /api/v1/auth/me': {
    id: 'getProfile',
    tag: 'Sessions',
    summary: 'Get the principal of the presented credential',
    answer: data(profile, {
      kind: 'key',
      uuid: exampleKey.uuid,
      scopes: ['*:read'],
      permissions: ['calls:read'],
      tenant_slug: null,
      domain: null,
    }),
  },
  'POST /api/v1/auth/logout': {
    id: 'logout',
    tag: 'Sessions',
    summary: 'Log out: end this session',
    answer: data(loggedOut, { logged_out: true }),
  },
  'POST /api/client/auth/login': {
    id: 'loginCustomer',
    tag: 'Sessions',
    summary: 'Log in as a customer',
    body: { email: 'billing@acme.example', password: 'correct horse' },
    answer: data(session(customerLogin), exampleSession(exampleLogin)),
    refusals: [401],
  },
  'GET /api/client/auth/me': {
    id: 'getCustomerProfile',
    tag: 'Sessions',
    summary: 'Get the customer of this session',
    answer: data(customerLogin, exampleLogin),
  },
  'POST /api/client/auth/logout': {
    id: 'logoutCustomer',
    tag: 'Sessions',
    summary: 'Log out: end this customer session',
    answer: data(loggedOut, { logged_out: true }),
  },
}

const users: Operations = {
  'POST /api/v1/users': {
    id: 'createUser',
    tag: 'Users',
    summary: 'Create a staff account',
    body: { username: 'ada', password: 'correct horse', role: 'operator' },
    answer: data(user, exampleUser, 201),
    refusals: [409],
  },
  'GET /api/v1/users': {
    id: 'listUsers',
    tag: 'Users',
    summary: 'List staff accounts',
    answer: list(user, exampleUser),
  },
  'GET /api/v1/users/:id': {
    id: 'getUser',
    tag: 'Users',
    summary: 'Get a staff account',
    answer: data(user, exampleUser),
  },
  'PATCH /api/v1/users/:id': {
    id: 'updateUser',
    tag: 'Users',
    summary: 'Update a staff account',
    body: { role: 'auditor' },
    answer: data(user, exampleUser),
    refusals: [409],
  },
  'DELETE /api/v1/users/:id': {
    id: 'deleteUser',
    tag: 'Users',
    summary: 'Delete a staff account',
    answer: data(deleted, { id: 1, deleted: true }),
    refusals: [409],
  },
}

export const accessOperations: Operations = {
  ...keys,
  ...sessions,
  ...users,
  ...resourceOperations({
    path: '/api/v1/tenants',
    noun: 'tenant',
    plural: 'tenants',
    tag: 'Tenants',
    view: tenants.view,
    example: {
      id: 1,
      slug: 'acme',
      name: 'Acme',
      is_active: true,
      domains: ['acme.example'],
      ...exampleMedia,
      numbers: ['1555010'],
      created_at: exampleTime,
    },
    body: { slug: 'acme', name: 'Acme', domains: ['acme.example'], numbers: ['+1555010'] },
    patch: { domains: ['acme.example', 'voice.acme.example'] },
  }),
}
