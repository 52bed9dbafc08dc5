/** The actions of the palette: each opens its form, for those who may do what it is for. */
import { isGlobal, may } from '../api/session.ts'
import type { SearchHit } from '../api/views.ts'
import { formPath } from '../parts/prefill.ts'
import { pathOf } from '../parts/address.ts'
import type { PaletteAction } from './palette-entries.ts'

interface Allowed {
  readonly scope: string
  readonly isGlobalOnly?: boolean
}

export const paletteActions = (): readonly PaletteAction[] =>
  [...actions, ...creations.map(creation)].filter(
    ({ scope, isGlobalOnly }) => may(scope) && (isGlobalOnly !== true || isGlobal()),
  )

/** The filter of the list of calls that finds those of a thing. */
const filterOf = (hit: SearchHit | undefined): Readonly<Record<string, string>> =>
  hit?.kind === 'carrier' ? { carrier: hit.title } : { customer_id: hit?.id ?? '' }

const actions: readonly (PaletteAction & Allowed)[] = [
  {
    verbs: ['top up', 'topup'],
    of: 'customer',
    scope: 'wallets:write',
    title: (name) => `Top up ${name}`,
    to: (_, hit) => formPath('customers', {}, { item: hit?.id ?? '', action: 'top-up' }),
  },
  {
    verbs: ['calls of'],
    of: ['customer', 'carrier'],
    scope: 'cdrs:read',
    title: (name) => `Calls of ${name}`,
    to: (_, hit) => pathOf('history', undefined, { period: '7d', ...filterOf(hit) }),
  },
  {
    verbs: ['failed calls of', 'failed'],
    of: ['customer', 'carrier'],
    scope: 'cdrs:read',
    title: (name) => `Failed calls of ${name}`,
    to: (_, hit) =>
      pathOf('history', undefined, {
        period: '7d',
        ...filterOf(hit),
        disposition: 'FAILED,CONGESTION',
      }),
  },
  {
    verbs: ['drain'],
    of: 'node',
    scope: 'dispatcher:write',
    title: (name) => `Drain ${name}`,
    to: (_, hit) => formPath('nodes', {}, { action: 'drain', of: hit?.id ?? '' }),
  },
  {
    verbs: ['take back'],
    of: 'node',
    scope: 'dispatcher:write',
    title: (name) => `Take ${name} back`,
    to: (_, hit) => formPath('nodes', {}, { action: 'take-back', of: hit?.id ?? '' }),
  },
  {
    verbs: ['end call', 'end', 'hang up'],
    of: 'call',
    isMeant: ({ detail }) => detail.startsWith('live'),
    scope: 'calls:control',
    title: (name) => `End the call ${name}`,
    to: (_, hit) => formPath('calls', {}, { action: 'hang-up', of: hit?.id ?? '' }),
  },
  {
    verbs: ['change customer', 'change'],
    of: 'customer',
    scope: 'customers:write',
    title: (name) => `Change ${name}`,
    to: (_, hit) => formPath('customers', {}, { item: hit?.id ?? '', action: 'change' }),
  },
  {
    verbs: ['change carrier'],
    of: 'carrier',
    scope: 'carriers:write',
    title: (name) => `Change ${name}`,
    to: (_, hit) => formPath('carriers', {}, { item: hit?.id ?? '', action: 'change' }),
  },
  {
    verbs: ['test call'],
    of: 'carrier',
    scope: 'calls:originate',
    title: (name) => `Place a test call through ${name}`,
    to: (_, hit) => formPath('carriers', {}, { item: hit?.id ?? '', action: 'test-call' }),
  },
  {
    verbs: ['suspend key', 'suspend'],
    of: 'key',
    scope: 'keys:write',
    title: (name) => `Suspend the key ${name}`,
    to: (_, hit) => formPath('keys', {}, { action: 'suspend', of: hit?.id ?? '' }),
  },
  {
    verbs: ['block', 'block calls to', 'spend guard', 'guard'],
    pattern: /^(\+?[\d ]{0,40})$/,
    scope: 'guard:write',
    title: (prefix) => (prefix === '' ? 'Set a spend guard' : `Block calls to ${prefix}`),
    to: (prefix) =>
      formPath('spend-guards', { prefix: prefix.replaceAll(' ', ''), action: 'block' }),
  },
  {
    verbs: ['ban', 'ban address'],
    pattern: /^[\da-f.:, ]*$/i,
    scope: 'guard:write',
    isGlobalOnly: true,
    title: (address) => `Ban ${address === '' ? 'an address' : address}`,
    to: (address) => formPath('bans', { address }),
  },
  {
    verbs: ['simulate', 'route', 'simulate a call to'],
    pattern: /^\+?[\d ]*$/,
    scope: 'calls:read',
    title: (number) => `Simulate a call${number === '' ? '' : ` to ${number}`}`,
    to: (number) => pathOf('simulator', undefined, { to: number.replaceAll(' ', '') }),
  },
]

/** Which form makes one: on which screen, and in which field the name is. */
const creations = [
  ['customer', 'customers', 'name', 'customers:write'],
  ['carrier', 'carriers', 'name', 'carriers:write'],
  ['extension', 'phones', 'extension', 'extensions:write'],
  ['number', 'numbers', 'number', 'customers:write'],
  ['rate plan', 'rate-plans', 'name', 'rates:write'],
  ['outbound route', 'outbound-routes', 'name', 'routes:write'],
  ['inbound route', 'inbound-routes', 'name', 'routes:write'],
  ['dispatcher set', 'dispatcher-sets', 'endpoint_name', 'dispatcher:write'],
  ['AI agent', 'ai-agents', 'name', 'agents:write'],
  ['tenant', 'tenants', 'slug', 'tenants:write'],
  ['user', 'users', 'username', 'users:write'],
  ['key', 'keys', 'name', 'keys:write'],
  ['webhook', 'webhooks', 'url', 'webhooks:write'],
] as const

const creation = ([one, screen, field, scope]: (typeof creations)[number]): PaletteAction &
  Allowed => ({
  verbs: [`new ${one}`.toLowerCase()],
  scope,
  isGlobalOnly: screen === 'tenants',
  title: (name) => `New ${one}${name === '' ? '' : ` ${name}`}`,
  to: (name) => formPath(screen, { [field]: name === '' ? undefined : name }),
})
