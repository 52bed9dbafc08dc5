import { expect, test } from 'vitest'
import { auditText } from '../../../../../control/console/web/screens/audit-words.ts'

const entry = {
  actor: 'user:admin',
  actor_name: null,
  action: 'POST /api/v1/outbound-routes',
  target: '/api/v1/outbound-routes',
  outcome: 'success',
  code: null,
  effect: null,
  after_digest: 'x',
} as const

const signIn = {
  action: 'POST /api/v1/auth/login',
  outcome: 'refused',
  code: 'bad_credentials',
} as const
const rates = { action: 'POST /api/v1/rates/import', target: '/api/v1/rates/import' }

test.each([
  [{}, 'admin created an outbound route'],
  [{ action: 'POST /api/v1/pbx/extensions' }, 'admin created an extension'],
  [{ action: 'POST /api/v1/users' }, 'admin created a user'],
  [
    { outcome: 'refused', code: 'no_such_plan', action: 'POST /api/v1/telephony/ai-agents' },
    'admin was not allowed to create an AI agent (no such plan)',
  ],
  [{ ...rates }, 'admin imported rates'],
  [{ ...rates, after_digest: null }, 'admin checked an import of rates'],
  [{ ...rates, outcome: 'failed' }, 'admin could not import rates'],
  [{ ...signIn, actor: 'anonymous' }, 'a sign-in was refused (bad credentials)'],
  [{ ...signIn }, 'admin was not allowed to sign in (bad credentials)'],
  [{ effect: 'The key "crm" is created.' }, 'admin created the key "crm"'],
  [
    { effect: 'The rate for "49" of the plan "a" is removed.' },
    'admin removed the rate for "49" of the plan "a"',
  ],
  [
    { effect: 'The key "crm" is changed: its token.' },
    'admin: The key "crm" is changed: its token.',
  ],
] as const)('%o is "%s"', (part, sentence) => {
  expect(auditText({ ...entry, ...part })).toBe(sentence)
})
