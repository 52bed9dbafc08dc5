/**
 * `GET /reports/cdrs` (specification §4.1): the calls that began in a period, in the bare shape,
 * with totals over the whole filter; as CSV or NDJSON of any length where `Accept` asks for it.
 */
import { setImmediate } from 'node:timers/promises'
import { Hono } from 'hono'
import { z } from 'zod'
import { requires } from '../../auth/requires.ts'
import type { ControlDeps } from '../../deps.ts'
import { badRequest } from '../../http/api-error.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { offsetOf, pageMeta, pageQuery } from '../../http/page.ts'
import { validate } from '../../http/validate.ts'
import { time } from '../../provisioning/fields.ts'
import { CdrStore } from './cdr-store.ts'
import { contentTypes, exportFormatOf, exportStream } from './cdr-export.ts'
import { viewOf } from './cdr-view.ts'

/** Without `page` and `limit` an answer holds no more than this (decisions §1.12). */
const MAX_RECORDS = 10_000

const dispositions = ['ANSWERED', 'NO ANSWER', 'BUSY', 'CANCELED', 'FAILED', 'CONGESTION'] as const

const reportQuery = z.strictObject({
  start_date: time,
  end_date: time,
  disposition: z.enum(dispositions).optional(),
  page: pageQuery.page.unwrap().optional(),
  limit: pageQuery.limit.unwrap().optional(),
})

export function reportRoutes(deps: Pick<ControlDeps, 'store'>) {
  const cdrs = new CdrStore(deps.store, nextTurn)
  return new Hono<ControlEnv>().get(
    '/reports/cdrs',
    requires('cdrs:read'),
    validate('query', reportQuery),
    async (c) => {
      const query = c.req.valid('query')
      if (query.end_date < query.start_date)
        throw badRequest('The period is not valid', [
          { path: 'end_date', message: 'must not be before start_date' },
        ])
      const { tenantId } = c.var.principal
      const { start_date: from, end_date: before, disposition } = query
      const filter = { tenantId, from, before, disposition }
      const format = exportFormatOf(c.req.header('accept'))
      if (format !== undefined)
        return c.body(exportStream(cdrs.slices(filter), format), 200, {
          'Content-Type': contentTypes[format],
          'Content-Disposition': `attachment; filename="cdrs.${format}"`,
        })

      const page = pageOf(query)
      const limit = page?.limit ?? MAX_RECORDS
      const rows = await cdrs.page(filter, page === undefined ? 0 : offsetOf(page), limit)
      const totals = await cdrs.totals(filter)
      const isTruncated = page === undefined && totals.calls > rows.length
      return c.json({
        total_calls: totals.calls,
        total_billsec: totals.billsec,
        records: rows.map(viewOf),
        ...(isTruncated ? { truncated: true } : {}),
        ...(page === undefined ? {} : { meta: pageMeta(page, totals.calls) }),
      })
    },
  )
}

/** Either of the two asks for paging. */
function pageOf({ page, limit }: { page?: number | undefined; limit?: number | undefined }) {
  if (page === undefined && limit === undefined) return undefined
  return { page: page ?? 1, limit: limit ?? 50 }
}

const nextTurn = async (): Promise<void> => {
  await setImmediate()
}
