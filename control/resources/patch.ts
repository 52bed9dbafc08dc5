/** PATCH: an absent field keeps its value, null clears it or restores its default (SPECIFICATION.md §4.5). */
import { z } from 'zod'
import { badRequest } from '../http/api-error.ts'

/**
 * The schema of a PATCH: every field of the body except those of `except`; none required, none with a
 * default.
 */
export function patchOf(body: z.ZodObject, except: readonly string[] = []): z.ZodObject {
  const fields = Object.entries(shapeOf(body))
    .filter(([field]) => !except.includes(field))
    .map(([field, type]) => [field, withoutDefault(type).nullish()] as const)
  return z.strictObject(Object.fromEntries(fields))
}

const shapeOf = (body: z.ZodObject): Readonly<Record<string, z.core.$ZodType>> => body.shape

function withoutDefault(type: z.core.$ZodType): z.ZodType {
  const inner = type instanceof z.ZodDefault ? type.unwrap() : type
  if (inner instanceof z.ZodType) return inner
  throw new TypeError('body schemas must be classic zod types')
}

/**
 * Returns the whole body after a PATCH, both already validated. A reference replaces its other form
 * (`carrier`, `carrier_id`). Throws 400 for null in a required field.
 */
export function patched<Body extends z.ZodObject>(
  body: Body,
  document: z.output<Body>,
  patch: Readonly<Record<string, unknown>>,
): z.output<Body> {
  const merged: Record<string, unknown> = { ...document }
  for (const [field, value] of Object.entries(patch)) {
    if (value === undefined) continue
    delete merged[otherSpelling(field)]
    merged[field] = value ?? cleared(body, field)
  }
  return merged as z.output<Body>
}

/**
 * Returns the whole body of a new element that names only some fields.
 *
 * @throws {ApiError} 400: a required field is missing.
 */
export function completed<Body extends z.ZodObject>(
  body: Body,
  named: Readonly<Record<string, unknown>>,
): z.output<Body> {
  const whole: Record<string, unknown> = {}
  for (const field of Object.keys(shapeOf(body)))
    whole[field] = named[field] ?? cleared(body, field, 'is required')
  return whole as z.output<Body>
}

const otherSpelling = (field: string): string =>
  field.endsWith('_id') ? field.slice(0, -3) : `${field}_id`

function cleared(body: z.ZodObject, field: string, problem = 'cannot be cleared'): unknown {
  const type = shapeOf(body)[field]
  if (type !== undefined)
    for (const empty of [null, undefined]) {
      const parsed = z.safeParse(type, empty)
      if (parsed.success) return parsed.data
    }
  throw badRequest('The body is invalid', [{ path: field, message: problem }])
}
