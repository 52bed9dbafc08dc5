/**
 * Scopes: the permissions of a credential, as `resource:action` labels (SPECIFICATION.md §5.9). A
 * grant may use `resource:*`, `*:read` or `*`; a route always requires one exact scope.
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
  'proposals',
] as const

/** The part of a scope before the colon. */
export type ScopedResource = (typeof resources)[number]

/** Actions beyond `read` and `write`. `*:read` does not reach what people said to each other. */
const specialScopes = [
  'calls:originate',
  'calls:control',
  'calls:spy',
  'calls:record',
  'dispatcher:reload',
  'recordings:listen',
  'recordings:delete',
  'settings:view',
  'mcp:propose',
] as const

/** One exact permission, as required by a route. */
export type Scope = `${ScopedResource}:${'read' | 'write'}` | (typeof specialScopes)[number]

export const allScopes: readonly Scope[] = [
  ...resources.flatMap((resource): Scope[] => [`${resource}:read`, `${resource}:write`]),
  ...specialScopes,
]

/** All labels that a key may be granted. `ocs` is the label that billing nodes use for `ocs:*`. */
const grantable: ReadonlySet<string> = new Set<string>([
  '*',
  '*:read',
  'ocs',
  ...resources.map((resource) => `${resource}:*`),
  ...allScopes,
])

/** Short forms to choose from, instead of one line per resource. */
export const scopeGrammar =
  `"*", "*:read", or one of ${resources.join(', ')} with ":read", ":write" or ":*"; ` +
  `also ${specialScopes.join(', ')}`

export const isGrantable = (label: string): boolean => grantable.has(label)

/** Maximum labels of a key; the whole vocabulary fits. */
export const MAX_SCOPES = 64

/** Returns the exact scopes that these labels cover; unknown labels cover nothing. */
export function expandScopes(labels: readonly string[]): ReadonlySet<Scope> {
  return new Set(allScopes.filter((scope) => labels.some((label) => covers(label, scope))))
}

function covers(label: string, scope: Scope): boolean {
  if (label === '*' || label === scope) return true
  const [resource = '', action = ''] = scope.split(':')
  return label === `*:${action}` || label === `${resource}:*` || label === resource
}

/**
 * Whether the holder of `holder` may grant `label`. A wildcard is compared as a wildcard, because
 * it also covers scopes that are added later.
 */
export function mayGrant(holder: readonly string[], label: string): boolean {
  if (holder.includes('*') || holder.includes(label)) return true
  const [resource = '', action = '*'] = label.split(':')
  if (holder.includes(`${resource}:*`) || holder.includes(resource)) return resource !== '*'
  return action !== '*' && holder.includes(`*:${action}`)
}

export type Role = 'admin' | 'operator' | 'auditor' | 'customer'

/**
 * A customer can access only its own wallet and call records under `/api/client/`; it has no
 * scopes.
 */
export const roleScopes: Readonly<Record<Role, readonly string[]>> = {
  admin: ['*'],
  operator: ['*:read', 'dispatcher:*', 'calls:*'],
  auditor: ['*:read'],
  customer: [],
}

/** An operator decides on what agents propose, too, as far as it could do that itself. */
export const permissionsOf = (role: Role): ReadonlySet<Scope> =>
  expandScopes(role === 'operator' ? [...roleScopes.operator, 'proposals:write'] : roleScopes[role])
