/** The envelope of SPECIFICATION.md §2.7: every response except the bare ones of §4.1 and §4.3. */
import type { Context } from 'hono'
import { z } from 'zod'
import type { ApiError } from './api-error.ts'

/** `limit` is the applied one, after clamping. */
export interface PageMeta {
  readonly page: number
  readonly limit: number
  readonly total: number
  /** Older entries exist; only a narrower query returns them. */
  readonly truncated?: true
}

/**
 * `data`, or `never` for a promise, and for an object that has one: it would be written as `{}`.
 */
export type WithoutPromises<T> =
  T extends PromiseLike<unknown>
    ? never
    : T extends readonly unknown[]
      ? T
      : T extends object
        ? { readonly [name in keyof T]: T[name] extends PromiseLike<unknown> ? never : T[name] }
        : T

export const ok = <T>(c: Context, data: WithoutPromises<T>, meta?: PageMeta): Response =>
  c.json(meta === undefined ? { success: true, data } : { success: true, data, meta })

/** 201; `location` is the path of the created resource, relative to the server. */
export function created<T>(c: Context, location: string, data: WithoutPromises<T>): Response {
  c.header('Location', location)
  return c.json({ success: true, data }, 201)
}

export type ErrorBody = ReturnType<typeof errorBody>

export const errorBody = (error: ApiError, requestId: string) => ({
  success: false,
  error: error.message,
  statusCode: error.status,
  code: error.code,
  ...(error.details !== undefined && { details: error.details }),
  ...(error.current !== undefined && { current: error.current }),
  request_id: requestId,
})

/** `page` and `limit` of every list (SPECIFICATION.md §8): default 50, at most 200, clamped. */
export const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200

/**
 * The longest lists (audit, ledgers, call records, deliveries) end here, newest first: counting or
 * skipping more rows would delay calls. A narrower filter finds older entries.
 */
export const MAX_LISTED = 100_000

/** Rows are counted up to here; one more shows that older ones exist. */
export const MAX_COUNTED = MAX_LISTED + 1

/**
 * A number in a query: text on the wire, an integer in the document. Digits only, because `Number`
 * would also accept `1e3`, `0x10` and blanks.
 */
export const queryInteger = (digits: RegExp, message: string, minimum: number) =>
  z
    .string()
    .refine((text) => digits.test(text), message)
    .transform(Number)
    .meta({ type: 'integer', minimum })

/** An id used as a filter. */
export const queryId = queryInteger(/^[1-9]\d{0,14}$/, 'must be an id', 1)

const positiveInteger = queryInteger(/^[1-9]\d{0,8}$/, 'Expected an integer of at least 1', 1)

/** Spread into a query schema: `z.strictObject({ ...pageQuery, search: … })`. */
export const pageQuery = {
  page: positiveInteger.default(1).meta({ default: 1 }),
  limit: positiveInteger
    .transform((limit) => Math.min(limit, MAX_LIMIT))
    .default(DEFAULT_LIMIT)
    .meta({ default: DEFAULT_LIMIT, description: `More than ${MAX_LIMIT} are never given.` }),
}

/** Position in a list that goes on where an earlier answer ended. */
export const cursorQuery = z
  .string()
  .regex(/^\d{1,6}$/, 'must be the cursor of an earlier answer')
  .optional()
  .describe('From an earlier answer with the same arguments.')

/** Rows before those that are asked for. */
export const skippedBy = (cursor: string | undefined): number => Number(cursor ?? 0)

export const pageEndView = {
  complete: z.boolean().describe('False: there is more; ask again with the cursor.'),
  cursor: z.string().nullable().describe('For what comes next. Null: these are the last.'),
}

/** @param end rows that were given so far. */
export const pageEnd = (end: number, total: number) => ({
  complete: end >= total,
  cursor: end >= total ? null : String(end),
})

export interface RequestedPage {
  readonly page: number
  readonly limit: number
}

export const offsetOf = ({ page, limit }: RequestedPage): number => (page - 1) * limit

export const pageMeta = ({ page, limit }: RequestedPage, total: number): PageMeta => ({
  page,
  limit,
  total,
})

/** Meta of a list that ends at `MAX_LISTED`: says whether there would be more. */
export const endingMeta = (page: RequestedPage, counted: number): PageMeta =>
  counted > MAX_LISTED
    ? { ...pageMeta(page, MAX_LISTED), truncated: true }
    : pageMeta(page, counted)

/** `%text%` for LIKE … ESCAPE '\', with the text's own wildcards taken literally. */
export const likePattern = (search: string): string =>
  `%${search.replaceAll(/[\\%_]/g, (wildcard) => `\\${wildcard}`)}%`

/** `text%`. */
export const startPattern = (start: string): string => likePattern(start).slice(1)
