/** The period of a question. */
import { z } from 'zod'
import { DAY_MS } from '../../../schema/clock.ts'
import { parseTime } from '../../../schema/columns.ts'
import { badRequest } from '../../http/api-error.ts'

const date = /^\d{4}-\d{2}-\d{2}$/

/** RFC 3339, or a date: its first moment in UTC. */
const momentInput = z
  .string()
  .transform((text, context) => {
    const at = parseTime(date.test(text) ? `${text}T00:00:00Z` : text)
    if (at !== undefined) return at
    context.addIssue({ code: 'custom', message: 'must be a date or an RFC 3339 date-time' })
    return z.NEVER
  })
  .meta({ format: 'date-time' })

/** Of tools. */
export const periodInput = {
  start: momentInput.optional().describe('Date or RFC 3339. Defaults to 24 hours before end.'),
  end: momentInput.optional().describe('Date or RFC 3339, exclusive. Defaults to now.'),
}

export interface Period {
  /** Milliseconds UTC; `before` is exclusive. */
  readonly from: number
  readonly before: number
}

/** @param days the longest period, and how much of it is meant without `start`. */
export function periodOf(
  { start, end }: { readonly start?: number | undefined; readonly end?: number | undefined },
  now: number,
  { longestDays, usualDays = 1 }: { readonly longestDays: number; readonly usualDays?: number },
): Period {
  const before = end ?? now + 1
  const from = start ?? before - usualDays * DAY_MS
  if (before <= from)
    throw badRequest('The period ends before it begins: end must be after start', [
      { path: 'end', message: 'must be after start' },
    ])
  if (before - from > longestDays * DAY_MS + 1)
    throw badRequest(`The period is too long: ask for at most ${longestDays} days`, [
      { path: 'start', message: `must be at most ${longestDays} days before end` },
    ])
  return { from, before }
}
