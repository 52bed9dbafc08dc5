/** Claims of a provider about a person, and the role that they give here. Pure. */
import { z } from 'zod'
import { permissionsOf } from '../scopes.ts'
import type { Scope } from '../scopes.ts'

const MAX_MAPPINGS = 100
/** Values of one claim that are looked at. */
const MAX_VALUES = 1_000

const mapping = z.strictObject({
  value: z.string().min(1).max(200).describe('The claim is it, or has it in its list.'),
  role: z.enum(['admin', 'operator', 'auditor']),
  tenant: z
    .string()
    .min(1)
    .max(63)
    .nullish()
    .describe(
      'Slug of the tenant of the user. Absent: that of the provider; for a provider of the ' +
        'platform, the user sees all tenants.',
    ),
})

export const roleMappings = z.array(mapping).min(1).max(MAX_MAPPINGS)
export type RoleMapping = z.output<typeof mapping>

export const shownMappings = z.array(
  z.strictObject({
    value: z.string(),
    role: z.string(),
    tenant: z.string().nullable().optional(),
  }),
)

type Claims = Readonly<Record<string, unknown>>

/**
 * The value of a claim: by its name, or by a path of names with dots between them, such as
 * `realm_access.roles`.
 */
function claimAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  let value: unknown = claims
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Claims)[name]
  }
  return value
}

/** The first mapping whose value the claim has; undefined: the person has no role here. */
export function mappingFor(
  claims: Claims,
  roleClaim: string,
  mappings: readonly RoleMapping[],
): RoleMapping | undefined {
  const claim = claimAt(claims, roleClaim)
  const list: readonly unknown[] = Array.isArray(claim) ? claim.slice(0, MAX_VALUES) : [claim]
  const values = new Set(list.filter((value) => typeof value === 'string'))
  return mappings.find(({ value }) => values.has(value))
}

/** A name for a user that has no other one, from a claim. */
export function usernameIn(claims: Claims, path: string, subject: string): string {
  const claim = [path, 'preferred_username', 'email'].map((each) => claimAt(claims, each))
  const isName = (value: unknown): value is string => typeof value === 'string' && value !== ''
  const name = (claim.find(isName) ?? subject).toLowerCase().replaceAll(/[^\w.@+-]/g, '-')
  return name.slice(0, MAX_NAME_LENGTH)
}

/** Room is left for what tells it from another one. */
const MAX_NAME_LENGTH = 54

/** Whoever writes these mappings gives these scopes away. */
export const scopesOf = (mappings: readonly Pick<RoleMapping, 'role'>[]): readonly Scope[] => [
  ...new Set(mappings.flatMap(({ role }) => [...permissionsOf(role)])),
]
