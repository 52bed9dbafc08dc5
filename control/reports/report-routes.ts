/**
 * `GET /reports/cdrs` (SPECIFICATION.md §4.1): the calls that started in a period, in the bare shape, with
 * totals of all matching records; or as CSV or NDJSON of any length, chosen by `format` or `Accept`.
 * `GET /reports/carriers`: what calls came to by carrier. `GET /reports/calls`: by customer, destination, node …
 */
import { requestScope } from '../auth/tenants.ts'
import { Hono } from 'hono'
import { z } from 'zod'
import { DAY_MS } from '../../schema/clock.ts'
import { dispositions } from '../../schema/contracts/field-values.ts'
import { requires } from '../auth/requires.ts'
import type { Platform } from '../http/platform.ts'
import type { WithReports, Reports } from './reports.ts'
import { badRequest } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok, pageQuery } from '../http/envelope.ts'
import { validate } from '../http/validate.ts'
import { queryTime } from '../http/fields.ts'
import { askSummary, refuseForNow, summaryQuery } from './sums/summary-input.ts'
import { matchOf, matchQuery } from './cdr-match.ts'
import type { ReportRequest } from './report-chunks.ts'

const reportQuery = z.strictObject({
  start_date: queryTime,
  end_date: queryTime,
  disposition: z.enum(dispositions).optional(),
  ...matchQuery,
  order: z.enum(['oldest', 'newest']).default('oldest').describe('Order by start time.'),
  format: z
    .enum(['json', 'csv', 'ndjson'])
    .optional()
    .describe('Takes precedence over the `Accept` header.'),
  page: pageQuery.page.unwrap().optional(),
  limit: pageQuery.limit.unwrap().optional(),
})

/** Sums of a longer period would keep the thread of reports busy for long. */
const MAX_SUMMED_DAYS = 31

const sumsQuery = z.strictObject({ start_date: queryTime, end_date: queryTime })

export function reportRoutes({
  reports,
  store,
  now,
}: Pick<Platform, 'store' | 'now'> & WithReports) {
  return new Hono<ControlEnv>()
    .get('/reports/calls', requires('cdrs:read'), validate('query', summaryQuery), async (c) => {
      const { start_date: from, end_date: before, ...asked } = c.req.valid('query')
      const scope = requestScope(c.var.principal, now)
      return ok(c, await askSummary({ ...asked, from, before }, { store, reports }, scope))
    })

    .get('/reports/carriers', requires('cdrs:read'), validate('query', sumsQuery), async (c) => {
      const { start_date: from, end_date: before } = c.req.valid('query')
      refuseBackwards(from, before)
      if (before - from > MAX_SUMMED_DAYS * DAY_MS)
        throw badRequest('The period is too long', [
          {
            path: 'start_date',
            message: `must be at most ${MAX_SUMMED_DAYS} days before end_date`,
          },
        ])
      const { tenantId } = c.var.principal
      const filter = { tenantId, from, before, disposition: undefined }
      const body = await bodyOf(reports, { filter, format: 'carriers', page: undefined })
      return c.body(body, 200, { 'Content-Type': 'application/json' })
    })

    .get('/reports/cdrs', requires('cdrs:read'), validate('query', reportQuery), async (c) => {
      const query = c.req.valid('query')
      refuseBackwards(query.start_date, query.end_date)
      const { tenantId } = c.var.principal
      const { start_date: from, end_date: before, disposition, order } = query
      const format = query.format ?? formatOf(c.req.header('accept'))
      const filter = { tenantId, from, before, disposition, match: matchOf(query), order }
      const body = await bodyOf(reports, { filter, format, page: pageOf(query) })
      return c.body(body, 200, headersOf(format))
    })
}

function refuseBackwards(from: number, before: number): void {
  if (before < from)
    throw badRequest('The period is invalid', [
      { path: 'end_date', message: 'must not be before start_date' },
    ])
}

type Format = Exclude<ReportRequest['format'], 'carriers'>

/** Chooses by `Accept`; the first of equal preferences, and JSON by default, as specified. */
function formatOf(accept: string | undefined): Format {
  let best: { readonly format: Format; readonly quality: number } | undefined
  for (const range of (accept ?? '').toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
    const format = formats[type]
    const weight = parameters.find((parameter) => /^q\s*=/.test(parameter))
    const quality = weight === undefined ? 1 : Number(weight.slice(weight.indexOf('=') + 1))
    if (format !== undefined && quality > (best?.quality ?? 0)) best = { format, quality }
  }
  return best?.format ?? 'json'
}

const formats: Readonly<Record<string, Format>> = {
  'text/csv': 'csv',
  'application/x-ndjson': 'ndjson',
  'application/ndjson': 'ndjson',
  'application/json': 'json',
  '*/*': 'json',
}

const contentTypes: Readonly<Record<Format, string>> = {
  json: 'application/json',
  csv: 'text/csv; charset=utf-8; header=present',
  ndjson: 'application/x-ndjson',
}

const headersOf = (format: Format) => ({
  'Content-Type': contentTypes[format],
  ...(format !== 'json' && { 'Content-Disposition': `attachment; filename="cdrs.${format}"` }),
})

/** Either parameter requests paging. */
function pageOf({ page, limit }: { page?: number | undefined; limit?: number | undefined }) {
  if (page === undefined && limit === undefined) return undefined
  return { page: page ?? 1, limit: limit ?? 50 }
}

/** Pieces buffered for the reader; a slow reader delays the report instead of filling memory. */
const READY = 1

/** Waits for the first piece: an error there still has its own response. */
async function bodyOf(reports: Reports, request: ReportRequest): Promise<ReadableStream> {
  const pieces = reports.open(request)
  if (pieces === undefined) refuseForNow()
  let ready: IteratorResult<Uint8Array, void> | undefined = await pieces.next()
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const piece = ready ?? (await pieces.next())
        ready = undefined
        if (piece.done === true) controller.close()
        else controller.enqueue(piece.value)
      },
      cancel: async () => {
        await pieces.return()
      },
    },
    { highWaterMark: READY },
  )
}
