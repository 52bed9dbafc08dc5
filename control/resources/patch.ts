/**
 * PATCH: an absent field keeps its value, null clears it or restores its default, and an object is
 * merged member by member; a list is replaced (RFC 7396, SPECIFICATION.md §4.5).
 */
import { z } from 'zod'
import { badRequest } from '../http/api-error.ts'
import { problemsOf } from '../http/validate.ts'

/**
 * The schema of a PATCH: every field of the body except those of `except`; none required, none with
 * a default, also in objects of the body.
 */
export function patchOf(body: z.ZodObject, except: readonly string[] = []): z.ZodObject {
  const fields = Object.entries(shapeOf(body))
    .filter(([field]) => !except.includes(field))
    .map(([field, type]) => {
      const members = objectOf(type)
      return [field, (members ? patchOf(members) : withoutDefault(type)).nullish()] as const
    })
  return z.strictObject(Object.fromEntries(fields))
}

const shapeOf = (body: z.ZodObject): Readonly<Record<string, z.core.$ZodType>> => body.shape

function withoutDefault(type: z.core.$ZodType): z.ZodType {
  const inner = type instanceof z.ZodDefault ? type.unwrap() : type
  if (inner instanceof z.ZodType) return inner
  throw new TypeError('body schemas must be classic zod types')
}

/** The object that a field has for its value; undefined: another value. */
function objectOf(type: z.core.$ZodType): z.ZodObject | undefined {
  if (type instanceof z.ZodObject) return type
  const isWrapped =
    type instanceof z.ZodDefault || type instanceof z.ZodOptional || type instanceof z.ZodNullable
  return isWrapped ? objectOf(type.unwrap()) : undefined
}

/**
 * Returns the whole body after a PATCH, both already validated. A reference replaces its other form
 * (`carrier`, `carrier_id`). Throws 400 for null in a required field, and for an object that is not
 * valid once it is merged.
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
    const members = objectOf(shapeOf(body)[field] ?? z.unknown())
    merged[field] =
      members !== undefined && isObject(value)
        ? validObject(body, field, mergedObject(members, merged[field], value))
        : (value ?? cleared(body, field))
  }
  return merged as z.output<Body>
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * RFC 7396 §2. The schema of the object fills in the default of a member that null has removed. One
 * that may be null is null: a secret that no document shows would stay if it were absent.
 */
function mergedObject(
  members: z.ZodObject,
  before: unknown,
  patch: Readonly<Record<string, unknown>>,
): unknown {
  const whole: Record<string, unknown> = { ...(isObject(before) && before) }
  for (const [member, value] of Object.entries(patch)) {
    const type = shapeOf(members)[member] ?? z.unknown()
    const inner = objectOf(type)
    if (value === null && !z.safeParse(type, null).success) delete whole[member]
    else if (inner !== undefined && isObject(value))
      whole[member] = mergedObject(inner, whole[member], value)
    else if (value !== undefined) whole[member] = value
  }
  return whole
}

function validObject(body: z.ZodObject, field: string, whole: unknown): unknown {
  const parsed = z.safeParse(shapeOf(body)[field] ?? z.unknown(), whole)
  if (parsed.success) return parsed.data
  const problems = problemsOf(new z.ZodError(parsed.error.issues))
  throw badRequest(
    'The body is not valid',
    problems.map(({ path, message }) => ({ path: `${field}.${path}`, message })),
  )
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
