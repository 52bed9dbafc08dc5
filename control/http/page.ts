/** `page` and `limit` of every list (decisions.md §6): default 50, at most 200, clamped. */
import { z } from 'zod'
import type { PageMeta } from './envelope.ts'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200

/**
 * The longest lists (audit, ledgers, call records, deliveries) end here, newest first: whoever counts or
 * skips more holds up calls. What is older is found by narrowing the list.
 */
export const MAX_LISTED = 100_000

/** Their rows are counted this far: one more tells that there are older ones. */
export const MAX_COUNTED = MAX_LISTED + 1

/** Digits only: `Number` would also take `1e3`, `0x10` and blanks. */
const positiveInteger = z
  .string()
  .regex(/^[1-9][0-9]{0,8}$/, 'Expected an integer of at least 1')
  .transform(Number)

/** Spread into a query schema: `z.strictObject({ ...pageQuery, search: … })`. */
export const pageQuery = {
  page: positiveInteger.default(1),
  limit: positiveInteger.transform((limit) => Math.min(limit, MAX_LIMIT)).default(DEFAULT_LIMIT),
}

export interface Page {
  readonly page: number
  readonly limit: number
}

export const offsetOf = ({ page, limit }: Page): number => (page - 1) * limit

export const pageMeta = ({ page, limit }: Page, total: number): PageMeta => ({ page, limit, total })

/** Of a list that ends at `MAX_LISTED`: says so where there would be more. */
export const endingMeta = (page: Page, counted: number): PageMeta =>
  counted > MAX_LISTED
    ? { ...pageMeta(page, MAX_LISTED), truncated: true }
    : pageMeta(page, counted)

/** `%text%` for LIKE … ESCAPE '\', with the text's own wildcards taken literally. */
export const likePattern = (search: string): string =>
  `%${search.replaceAll(/[\\%_]/g, (wildcard) => `\\${wildcard}`)}%`
