/**
 * What a credential may do, as `resource:action` labels (SPECIFICATION.md §5.9). A grant may use
 * `resource:*`, `*:read` or `*`; a route always demands one exact scope.
 */

const resources = [
  'keys',
  'extensions',
  'cdrs',
  'calls',
  'dispatcher',
  'carriers',
  'routes',
  'customers',
  'rates',
  'wallets',
  'metrics',
  'webhooks',
  'audit',
  'agents',
  'mcp',
  'ocs',
  'users',
  'tenants',
  'guard',
] as const

type Resource = (typeof resources)[number]

/** Actions beyond `read` and `write`. */
const specialScopes = [
  'calls:originate',
  'calls:control',
  'calls:spy',
  'dispatcher:reload',
] as const

/** One exact permission: what a route demands. */
export type Scope = `${Resource}:${'read' | 'write'}` | (typeof specialScopes)[number]

export const allScopes: readonly Scope[] = [
  ...resources.flatMap((resource): Scope[] => [`${resource}:read`, `${resource}:write`]),
  ...specialScopes,
]

/** Everything that a key may be granted. `ocs` alone is the label that billing nodes use for `ocs:*`. */
const grantable: ReadonlySet<string> = new Set<string>([
  '*',
  '*:read',
  'ocs',
  ...resources.map((resource) => `${resource}:*`),
  ...allScopes,
])

/** For a person who chooses: one line per resource would be long, this is short. */
export const scopeGrammar =
  `"*", "*:read", or one of ${resources.join(', ')} with ":read", ":write" or ":*"; ` +
  `also ${specialScopes.join(', ')}`

export const isGrantable = (label: string): boolean => grantable.has(label)

/** A key may carry this many labels; the whole vocabulary fits. */
export const MAX_SCOPES = 64

/** The exact scopes that these labels stand for; unknown labels stand for nothing. */
export function expandScopes(labels: readonly string[]): ReadonlySet<Scope> {
  return new Set(allScopes.filter((scope) => labels.some((label) => covers(label, scope))))
}

function covers(label: string, scope: Scope): boolean {
  if (label === '*' || label === scope) return true
  const [resource = '', action = ''] = scope.split(':')
  return label === `*:${action}` || label === `${resource}:*` || label === resource
}

/**
 * Whether somebody who holds `holder` may hand out `label`. A wildcard is compared as a wildcard:
 * it would also cover scopes that are added later.
 */
export function mayGrant(holder: readonly string[], label: string): boolean {
  if (holder.includes('*') || holder.includes(label)) return true
  const [resource = '', action = '*'] = label.split(':')
  if (holder.includes(`${resource}:*`) || holder.includes(resource)) return resource !== '*'
  return action !== '*' && holder.includes(`*:${action}`)
}

export type Role = 'admin' | 'operator' | 'auditor' | 'customer'

/** A customer reaches its own wallet and call records under `/api/client/` only; it holds no scope. */
export const roleScopes: Readonly<Record<Role, readonly string[]>> = {
  admin: ['*'],
  operator: ['*:read', 'dispatcher:*', 'calls:*'],
  auditor: ['*:read'],
  customer: [],
}
