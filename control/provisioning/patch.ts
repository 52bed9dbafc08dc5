/** A PATCH body: absent keeps, null clears (decisions.md §5). */
import { z } from 'zod'
import { badRequest } from '../http/api-error.ts'
import { problemsOf } from '../http/validate.ts'

/** The shape of a PATCH: every field of the body, none required, without defaults. */
export function patchOf(body: z.ZodObject): z.ZodObject {
  const fields = Object.entries(body.shape).map(
    ([field, type]) => [field, withoutDefault(type).nullish()] as const,
  )
  return z.strictObject(Object.fromEntries(fields))
}

function withoutDefault(type: z.core.$ZodType): z.ZodType {
  const inner = type instanceof z.ZodDefault ? type.unwrap() : type
  if (inner instanceof z.ZodType) return inner
  throw new TypeError('only classic zod types are used in bodies')
}

/**
 * The whole body after a PATCH: the stored document with the given fields in place of its own,
 * checked again as a whole. A reference replaces the other spelling of itself (`carrier`, `carrier_id`).
 */
export function patched<Body extends z.ZodObject>(
  body: Body,
  document: z.input<Body>,
  patch: Readonly<Record<string, unknown>>,
): z.output<Body> {
  const merged: Record<string, unknown> = { ...document }
  for (const [field, value] of Object.entries(patch)) {
    if (value === undefined) continue
    delete merged[otherSpelling(field)]
    if (value === null) delete merged[field]
    else merged[field] = value
  }
  const parsed = body.safeParse(merged)
  if (!parsed.success) throw badRequest('The body is not valid', problemsOf(parsed.error))
  return parsed.data
}

const otherSpelling = (field: string): string =>
  field.endsWith('_id') ? field.slice(0, -3) : `${field}_id`
