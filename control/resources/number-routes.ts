/** `/numbers`: telephone numbers, their import and export. */
import { Hono } from 'hono'
import { z } from 'zod'
import { readApart } from '../../schema/sql/query.ts'
import { requires } from '../auth/requires.ts'
import { requestScope } from '../auth/tenants.ts'
import type { ChangeDeps } from '../changes/kinds.ts'
import { readBody } from '../http/body.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { data, text } from '../http/operation.ts'
import { describeRoute, validate } from '../http/validate.ts'
import { count } from '../http/view-fields.ts'
import { csvLine } from './csv-table.ts'
import {
  type ExportedNumber,
  numberCells,
  numberCsvColumns,
  type NumberOutcome,
  numbersAfter,
  type NumberWork,
} from './number-import.ts'
import { numbers } from './numbers.ts'
import type { RateImports } from './rate-imports.ts'
import { refuseOtherType } from './rate-routes.ts'
import { resourceRoutes } from './resource-routes.ts'

interface NumberDeps extends ChangeDeps {
  readonly rateImports: RateImports
}

export function numberRoutes(deps: NumberDeps) {
  return new Hono<ControlEnv>()
    .route('/', exportNumbersRoute(deps))
    .route('/', importNumbersRoute(deps))
    .route('/', resourceRoutes(deps, numbers))
}

function exportNumbersRoute({ store, now }: NumberDeps) {
  return new Hono<ControlEnv>().get(
    '/numbers/export',
    describeRoute({
      id: 'exportPhoneNumbers',
      tag: 'Routing',
      summary: 'Export numbers as CSV',
      answer: text('text/csv', 'number,last_number,customer\n+4930100,,Acme\n'),
    }),
    requires('customers:read'),
    validate('query', z.strictObject({})),
    (c) => {
      const scope = requestScope(c.var.principal, now)
      const pageAfter = (id: number) =>
        readApart(store, scope.tenantId, () => numbersAfter(store, scope, id, exportSlice))
      c.header('Content-Type', 'text/csv; charset=utf-8')
      c.header('Content-Disposition', 'attachment; filename="numbers.csv"')
      return c.body(exported(pageAfter))
    },
  )
}

const exportSlice = 1_000

/** Streams header and lines, a slice at a time. */
function exported(
  pageAfter: (id: number) => Promise<readonly ExportedNumber[]>,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let after = 0
  return new ReadableStream({
    start: (controller) => controller.enqueue(encoder.encode(`${csvLine(numberCsvColumns)}\n`)),
    async pull(controller) {
      const rows = await pageAfter(after)
      for (const row of rows) controller.enqueue(encoder.encode(`${csvLine(numberCells(row))}\n`))
      after = rows.at(-1)?.id ?? after
      if (rows.length < exportSlice) controller.close()
    },
  })
}

const importQuery = z.strictObject({
  dry_run: z
    .enum(['true', 'false'])
    .default('false')
    .describe('`true`: only checks the table, and says what the import would do.'),
})

function importNumbersRoute(deps: NumberDeps) {
  const { now, rateImports } = deps
  return new Hono<ControlEnv>().post(
    '/numbers/import',
    describeRoute({
      id: 'importPhoneNumbers',
      tag: 'Routing',
      summary: 'Import numbers from CSV. All rows are imported, or none.',
      bodyType: 'text/csv',
      body: 'number,customer\n+4930100,Acme\n',
      answer: data(
        z.strictObject({ imported: count, created: count, updated: count }).meta({
          id: 'PhoneNumberImportReport',
        }),
        { imported: 1, created: 1, updated: 0 },
      ),
      refusals: [409, 415],
    }),
    requires('customers:write'),
    validate('query', importQuery),
    async (c) => {
      const isDryRun = c.req.valid('query').dry_run === 'true'
      refuseOtherType(c)
      const { principal } = c.var
      const { report, changed } = await imported(rateImports, {
        kind: 'numbers',
        table: await readBody(c),
        isDryRun,
        may: {
          targets: principal.scopes.has('routes:write'),
          fees: principal.scopes.has('rates:write') || principal.scopes.has('wallets:write'),
        },
        scope: requestScope(principal, now),
      })
      if (isDryRun) return ok(c, report)
      await follow(deps, changed)
      c.set('change', { before: null, after: report })
      return ok(c, report)
    },
  )
}

async function imported(imports: RateImports, work: NumberWork): Promise<NumberOutcome> {
  const outcome = await imports.run(work)
  if (outcome.kind === 'numbers') return outcome
  throw new Error('an import of numbers has imported something else')
}

/** Beyond so many, all rows are read again. */
const FEW_ROWS = 5_000

async function follow(
  { engine, ocs }: NumberDeps,
  { ids, customerIds }: NumberOutcome['changed'],
): Promise<void> {
  await engine.reloadNumbers(ids.length > FEW_ROWS ? undefined : { of: 'number', ids })
  if (customerIds.length > 0) await ocs?.reloadCustomers({ of: 'customer', ids: customerIds })
}
