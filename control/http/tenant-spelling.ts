/**
 * The tenant of a body, a query or the arguments of a tool may be called `tenant` or `tenant_slug`.
 */
import { z } from 'zod'

/** Maps the documented field of a schema to the spelling that a client may use instead. */
const otherSpellings = { tenant: 'tenant_slug', tenant_slug: 'tenant' } as const

/** Both spellings at once are left to the schema, which refuses the one that it does not know. */
export function withKnownTenant(schema: z.ZodType, given: unknown): unknown {
  if (!(schema instanceof z.ZodObject) || typeof given !== 'object' || given === null) return given
  const shape: object = schema.shape
  for (const [known, other] of Object.entries(otherSpellings)) {
    if (!Object.hasOwn(given, other) || Object.hasOwn(given, known)) continue
    if (!Object.hasOwn(shape, known) || Object.hasOwn(shape, other)) continue
    const { [other]: tenant, ...rest } = given as Readonly<Record<string, unknown>>
    return { ...rest, [known]: tenant }
  }
  return given
}
