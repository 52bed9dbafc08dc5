/** `/rates/decks`: what carriers send is previewed, compared, imported and undone. */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { moneyToDecimal, timeToText } from '../../../schema/columns.ts'
import type { OcsPort } from '../../../schema/contracts/charging.ts'
import { type Tables, first, readApart } from '../../../schema/sql/query.ts'
import { requires } from '../../auth/requires.ts'
import { type RequestScope, requestScope } from '../../auth/tenants.ts'
import type { ChangeDeps } from '../../changes/kinds.ts'
import { ApiError, badRequest, type RequestProblem } from '../../http/api-error.ts'
import { parseJson, readBody } from '../../http/body.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { ok, offsetOf, pageMeta, pageQuery, queryId } from '../../http/envelope.ts'
import { data, list } from '../../http/operation.ts'
import { pageOf } from '../../http/rows.ts'
import { describeRoute, problemsOf, validate } from '../../http/validate.ts'
import { count, decimal, exampleTime, moment, timeOrNull } from '../../http/view-fields.ts'
import { followRates } from '../follow-rates.ts'
import type { RateImports } from '../rate-imports.ts'
import { planFor, type NamedPlan } from '../rate-plan-reference.ts'
import { either, resolve } from '../references.ts'
import type { RateChangeKind } from './deck-changes.ts'
import { type ChangedRate, MAX_SHOWN_CHANGES } from './deck-diff.ts'
import type { LossOfCustomer, Losses } from './deck-margins.ts'
import { deckMapping, deckMappingDocument, type WrittenMapping } from './deck-mapping.ts'
import type { DeckPreview, PreviewLine } from './deck-preview.ts'
import type { DeckOutcome, DeckReport, DeckWork } from './deck-work.ts'

interface DeckDeps extends ChangeDeps {
  readonly ocs: OcsPort
  readonly rateImports: RateImports
}

export const deckRoutes = (deps: DeckDeps) =>
  new Hono<ControlEnv>()
    .route('/', previewRoute(deps))
    .route('/', diffRoute(deps))
    .route('/', importRoute(deps))
    .route('/', progressRoute(deps))
    .route('/', listRoute(deps))
    .route('/', undoRoute(deps))

const planQuery = {
  rate_plan: z.string().max(100).optional(),
  rate_plan_id: queryId.optional(),
  carrier: z.string().max(100).optional().describe('The carrier whose rate plan is meant.'),
  carrier_id: queryId.optional(),
}

const MAX_MAPPING_LENGTH = 8_192

const deckQuery = {
  ...planQuery,
  mapping: z
    .string()
    .max(MAX_MAPPING_LENGTH)
    .optional()
    .describe('JSON of a DeckMapping. Absent: the `deck_mapping` of the rate plan.'),
}

const yesOrNo = z.enum(['true', 'false']).default('false')

const orderQuery = {
  ...deckQuery,
  mode: z
    .enum(['merge', 'replace'])
    .default('merge')
    .describe('`replace`: prefixes that the deck does not have end when it comes into force.'),
  allow_default: yesOrNo.describe(
    '`true`: accepts an empty prefix, which prices every number without another rate.',
  ),
}

const changeKinds = ['new', 'dearer', 'cheaper', 'changed', 'gone'] as const

const diffQuery = {
  ...orderQuery,
  show: z.enum(changeKinds).optional().describe('Only changes of this kind; absent: of each.'),
  limit: z.coerce.number().int().min(1).max(MAX_SHOWN_CHANGES).default(100),
}

type DeckQuery = z.output<z.ZodObject<typeof deckQuery>>

const countsView = z.strictObject({
  new: count,
  dearer: count,
  cheaper: count,
  changed: count.describe('Other terms than the price, such as increments.'),
  same: count,
  gone: count.describe('Prefixes of the plan that the deck does not have.'),
})

const reportFields = {
  lines: count,
  prefixes: count,
  repeated: count,
  skipped: count,
  expanded: count.describe('Prefixes of ranges and lists, beyond one of each line.'),
  changes: countsView,
  short_notice: count.describe("Prefixes that become dearer with less than seven days' notice."),
  warnings: z.array(z.string()),
}

const exampleReport = {
  lines: 2,
  prefixes: 2,
  repeated: 0,
  skipped: 0,
  expanded: 0,
  changes: { new: 1, dearer: 1, cheaper: 0, changed: 0, same: 0, gone: 0 },
  short_notice: 0,
  warnings: [],
}

const reportOf = (report: DeckReport) => ({
  lines: report.lines,
  prefixes: report.imported,
  repeated: report.repeated,
  skipped: report.skipped,
  expanded: report.expanded,
  changes: report.counts,
  short_notice: report.shortNotice,
  warnings: report.warnings,
})

const problemView = z.strictObject({ path: z.string(), message: z.string() })

const previewView = z
  .strictObject({
    format: z.enum(['csv', 'xlsx']),
    encoding: z.string().nullable(),
    separator: z.string().nullable(),
    mapping: deckMappingDocument.nullable(),
    mapping_source: z.enum(['request', 'remembered', 'proposed', 'none']),
    lines: z.array(
      z.strictObject({
        line: z.int(),
        cells: z.array(z.string()),
        rates: z.array(
          z.strictObject({
            prefix: z.string(),
            description: z.string().nullable(),
            rate_per_minute_exact: decimal,
            connect_fee_exact: decimal,
            first_increment: count,
            increment: z.int(),
            blocked: z.boolean(),
            period: z.string().nullable(),
            effective_from: moment.nullable(),
          }),
        ),
        problems: z.array(problemView),
      }),
    ),
  })
  .meta({ id: 'DeckPreview' })

export type DeckPreviewView = z.output<typeof previewView>

function previewRoute(deps: DeckDeps) {
  return new Hono<ControlEnv>().post(
    '/rates/decks/preview',
    describeRoute({
      id: 'previewDeck',
      tag: 'Rates',
      summary: 'Show how the first lines of a deck are read, and propose a mapping',
      bodyType: 'text/csv',
      body: 'Code,Rate\n49,0.10\n',
      answer: data(previewView, {
        format: 'csv',
        encoding: 'utf-8',
        separator: ',',
        mapping: { columns: { prefix: 'Code', rate_per_minute: 'Rate' }, header_line: 1 },
        mapping_source: 'proposed',
        lines: [{ line: 1, cells: ['Code', 'Rate'], rates: [], problems: [] }],
      }),
      refusals: [415, 429, 503],
    }),
    requires('rates:write'),
    validate('query', z.strictObject(deckQuery)),
    async (c) => {
      const outcome = await onDeck(deps, c, 'preview', c.req.valid('query'))
      return ok(c, previewOf(expected(outcome, 'preview').preview))
    },
  )
}

const previewOf = ({ mappingSource, lines, ...preview }: DeckPreview) => ({
  ...preview,
  mapping_source: mappingSource,
  lines: lines.map(previewLineOf),
})

const previewLineOf = ({ line, cells, rates, problems }: PreviewLine) => ({
  line,
  cells,
  rates: rates.map(({ prefix, description, terms }) => ({
    prefix,
    description,
    rate_per_minute_exact: moneyToDecimal(terms.rate_per_minute_micros),
    connect_fee_exact: moneyToDecimal(terms.connect_fee_micros),
    first_increment: terms.first_increment_seconds,
    increment: terms.increment_seconds,
    blocked: terms.is_blocked === 1,
    period: terms.period,
    effective_from: timeOrNull(terms.effective_from_at),
  })),
  problems,
})

const amountOrNull = decimal.nullable()

const diffView = z
  .strictObject({
    ...reportFields,
    rates: z.array(
      z.strictObject({
        kind: z.enum(changeKinds),
        prefix: z.string(),
        description: z.string().nullable(),
        line: z.int().nullable(),
        before_exact: amountOrNull,
        after_exact: amountOrNull,
        percent: z.number().nullable(),
        period: z.string().nullable(),
        effective_from: moment.nullable(),
      }),
    ),
    losses: z
      .strictObject({
        customers: count.describe('Customers that the deck makes a loss with, and did not before.'),
        is_complete: z.boolean().describe('`false`: the plans have too many rates to compare.'),
        shown: z
          .array(
            z.strictObject({
              customer_id: z.int(),
              customer: z.string(),
              rate_plan: z.string(),
              prefixes: count,
              prefix: z.string().describe('The one with the largest loss of a minute.'),
              sold_exact: decimal,
              cost_exact: decimal,
            }),
          )
          .describe('Empty without the scope `customers:read`.'),
      })
      .describe('By the price of a minute, without increments and fees.'),
  })
  .meta({ id: 'DeckDiff' })

export type DeckDiffView = z.output<typeof diffView>

function diffRoute(deps: DeckDeps) {
  return new Hono<ControlEnv>().post(
    '/rates/decks/diff',
    describeRoute({
      id: 'compareDeck',
      tag: 'Rates',
      summary: 'Compare a deck with its rate plan. Nothing is stored.',
      bodyType: 'text/csv',
      body: 'Code,Rate\n49,0.10\n',
      answer: data(diffView, {
        ...exampleReport,
        rates: [],
        losses: { customers: 0, is_complete: true, shown: [] },
      }),
      refusals: [415, 429, 503],
    }),
    requires('rates:write'),
    validate('query', z.strictObject(diffQuery)),
    async (c) => {
      const query = c.req.valid('query')
      const outcome = expected(await onDeck(deps, c, 'diff', query, query), 'diff')
      return ok(c, {
        ...reportOf(outcome.report),
        rates: outcome.changes.map(changeOf),
        losses: lossesOf(outcome.losses, c.var.principal.scopes.has('customers:read')),
      })
    },
  )
}

const exactOrNull = (micros: number | null): string | null =>
  micros === null ? null : moneyToDecimal(micros)

const changeOf = (change: ChangedRate) => ({
  kind: change.kind,
  prefix: change.prefix,
  description: change.description,
  line: change.line,
  before_exact: exactOrNull(change.beforeMicros),
  after_exact: exactOrNull(change.afterMicros),
  percent: change.percent,
  period: change.period,
  effective_from: timeOrNull(change.effectiveFrom),
})

const lossesOf = (losses: Losses, showsCustomers: boolean) =>
  losses.kind === 'compared'
    ? {
        customers: losses.customers,
        is_complete: true,
        shown: showsCustomers ? losses.shown.map(lossOf) : [],
      }
    : { customers: 0, is_complete: false, shown: [] }

const lossOf = ({ customerId, customer, ratePlan, prefixes, worst }: LossOfCustomer) => ({
  customer_id: customerId,
  customer,
  rate_plan: ratePlan,
  prefixes,
  prefix: worst.prefix,
  sold_exact: moneyToDecimal(worst.soldMicros),
  cost_exact: moneyToDecimal(worst.costMicros),
})

const importView = z
  .strictObject({ id: z.int(), created: count, updated: count, removed: count, ...reportFields })
  .meta({ id: 'DeckImport' })

export type DeckImportView = z.output<typeof importView>

function importRoute(deps: DeckDeps) {
  return new Hono<ControlEnv>().post(
    '/rates/decks',
    describeRoute({
      id: 'importDeck',
      tag: 'Rates',
      summary: 'Import a deck as a carrier sends it, CSV or XLSX. All lines are imported, or none.',
      bodyType: 'text/csv',
      body: 'Code,Rate\n49,0.10\n',
      answer: data(importView, { id: 1, created: 1, updated: 1, removed: 0, ...exampleReport }),
      refusals: [404, 409, 415, 429, 503],
    }),
    requires('rates:write'),
    validate('query', z.strictObject({ ...orderQuery, file_name: fileName.optional() })),
    async (c) => {
      const query = c.req.valid('query')
      const outcome = expected(await onDeck(deps, c, 'import', query, query), 'import')
      c.get('budget')?.takeWork(await followRates(deps.ocs, outcome.changed))
      const report = { ...outcome.stored, ...reportOf(outcome.report) }
      c.set('change', { before: null, after: report })
      return ok(c, report)
    },
  )
}

const fileName = z
  .string()
  .max(200)
  // eslint-disable-next-line no-control-regex -- these are what is refused
  .regex(/^[^\u0000-\u001f\u007f]*$/, 'contains a control character')

const progressView = z
  .strictObject({
    stage: z.enum(['none', 'reading', 'comparing', 'storing']),
    done: count,
    of: count.nullable(),
  })
  .meta({ id: 'DeckProgress' })

export type DeckProgressView = z.output<typeof progressView>

function progressRoute({ rateImports, now }: DeckDeps) {
  return new Hono<ControlEnv>().get(
    '/rates/decks/progress',
    describeRoute({
      id: 'getDeckProgress',
      tag: 'Rates',
      summary: 'How far the deck under way on this instance is',
      answer: data(progressView, { stage: 'storing', done: 20_000, of: 500_000 }),
    }),
    requires('rates:read'),
    (c) => {
      const progress = rateImports.progress(requestScope(c.var.principal, now).tenantId)
      const { stage = 'none', done = 0, of = null } = progress ?? {}
      return ok(c, { stage, done, of })
    },
  )
}

const storedView = z
  .strictObject({
    id: z.int(),
    rate_plan_id: z.int(),
    rate_plan: z.string(),
    file_name: z.string().nullable(),
    mode: z.enum(['merge', 'replace']),
    lines: count,
    prefixes: count,
    created: count,
    updated: count,
    removed: count,
    imported_by: z.string(),
    imported_at: moment,
    undone_by: z.string().nullable(),
    undone_at: moment.nullable(),
  })
  .meta({ id: 'StoredDeck' })

export type StoredDeckView = z.output<typeof storedView>

const exampleStored = {
  id: 1,
  rate_plan_id: 1,
  rate_plan: 'cost of north',
  file_name: 'north.csv',
  mode: 'merge',
  lines: 2,
  prefixes: 2,
  created: 1,
  updated: 1,
  removed: 0,
  imported_by: 'user:admin',
  imported_at: exampleTime,
  undone_by: null,
  undone_at: null,
}

function listRoute({ store, now }: DeckDeps) {
  return new Hono<ControlEnv>().get(
    '/rates/decks',
    describeRoute({
      id: 'listDecks',
      tag: 'Rates',
      summary: 'List the decks that were imported, newest first',
      answer: list(storedView, exampleStored),
    }),
    requires('rates:read'),
    validate('query', z.strictObject({ ...pageQuery, rate_plan_id: queryId.optional() })),
    async (c) => {
      const { page, limit, rate_plan_id: planId } = c.req.valid('query')
      const { tenantId } = requestScope(c.var.principal, now)
      const query = store.db
        .selectFrom('rate_deck')
        .innerJoin('rate_plan', 'rate_plan.id', 'rate_deck.rate_plan_id')
        .selectAll('rate_deck')
        .select('rate_plan.name as plan')
        .$if(tenantId !== null, (rows) => rows.where('rate_plan.tenant_id', '=', tenantId))
        .$if(planId !== undefined, (rows) => rows.where('rate_plan_id', '=', planId ?? 0))
        .orderBy('rate_deck.id', 'desc')
      const slice = { limit, offset: offsetOf({ page, limit }) }
      const { rows, total } = await readApart(store, tenantId, () => pageOf(store, query, slice))
      const decks = rows.map(({ plan, imported, imported_at, undone_at, ...row }) => ({
        ...row,
        rate_plan: plan,
        prefixes: imported,
        imported_at: timeToText(imported_at),
        undone_at: timeOrNull(undone_at),
      }))
      return ok(c, decks, pageMeta({ page, limit }, total))
    },
  )
}

function undoRoute(deps: DeckDeps) {
  return new Hono<ControlEnv>().post(
    '/rates/decks/:id/undo',
    describeRoute({
      id: 'undoDeck',
      tag: 'Rates',
      summary: 'Bring a rate plan back to what it was before its newest deck',
      answer: data(z.strictObject({ id: z.int(), restored: count }).meta({ id: 'DeckUndo' }), {
        id: 1,
        restored: 2,
      }),
      refusals: [404, 409, 429, 503],
    }),
    requires('rates:write'),
    validate('param', z.strictObject({ id: queryId })),
    async (c) => {
      const { id } = c.req.valid('param')
      const scope = requestScope(c.var.principal, deps.now)
      const outcome = await deps.rateImports.onDeck({ kind: 'undo', deckId: id, scope })
      const { restored, changed } = expected(outcome, 'undo')
      c.get('budget')?.takeWork(await followRates(deps.ocs, changed))
      c.set('change', { before: { deck: id }, after: { restored } })
      return ok(c, { id, restored })
    },
  )
}

interface Order {
  readonly mode: DeckWork['mode']
  readonly allow_default: 'true' | 'false'
  readonly file_name?: string | undefined
  readonly show?: RateChangeKind | undefined
  readonly limit?: number
}

const noOrder: Order = { mode: 'merge', allow_default: 'false' }

async function onDeck(
  { store, now, rateImports }: DeckDeps,
  c: Context<ControlEnv>,
  kind: DeckWork['kind'],
  { mapping, ...named }: DeckQuery,
  order: Order = noOrder,
): Promise<DeckOutcome> {
  refuseOtherType(c)
  const scope = requestScope(c.var.principal, now)
  return rateImports.onDeck({
    kind,
    plan: await planOf(store, named, scope),
    mapping: mapping === undefined ? undefined : mappingIn(mapping),
    table: await readBody(c),
    mode: order.mode,
    allowsDefault: order.allow_default === 'true',
    fileName: order.file_name,
    show: order.show === undefined ? changeKinds : [order.show],
    limit: order.limit ?? 0,
    scope,
  })
}

function expected<Kind extends DeckOutcome['kind']>(
  outcome: DeckOutcome,
  kind: Kind,
): DeckOutcome & { readonly kind: Kind } {
  if (outcome.kind !== kind) throw new Error(`the work on a deck answered ${outcome.kind}`)
  return outcome as DeckOutcome & { readonly kind: Kind }
}

function mappingIn(text: string): WrittenMapping {
  const parsed = parseJson(text)
  if (parsed.kind === 'problem') throw wrongMapping([{ path: '', message: parsed.problem.message }])
  const checked = deckMapping.safeParse(parsed.value)
  if (!checked.success) throw wrongMapping(problemsOf(checked.error))
  return parsed.value as WrittenMapping
}

const wrongMapping = (problems: readonly RequestProblem[]): ApiError =>
  badRequest(
    'The mapping is not valid',
    problems.map(({ path, message }) => ({
      path: path === '' ? 'mapping' : `mapping.${path}`,
      message,
    })),
  )

type PlanQuery = z.output<z.ZodObject<typeof planQuery>>

/** The plan that is named, or that of the carrier. */
async function planOf(
  store: Tables,
  { carrier, carrier_id, ...plan }: PlanQuery,
  scope: RequestScope,
): Promise<NamedPlan> {
  if (carrier === undefined && carrier_id === undefined) return plan
  const reference = either('carrier', carrier, carrier_id)
  const id = await resolve(store, 'carrier', reference, { tenantId: 'any', scope })
  const query = store.db
    .selectFrom('carrier')
    .select('rate_plan_id')
    .where('id', '=', id ?? 0)
  const found = (await first(store, query))?.rate_plan_id
  if (found == null)
    throw badRequest('The query is not valid', [
      { path: 'carrier', message: 'has no rate plan: give it one of its own' },
    ])
  return { rate_plan_id: await planFor(store, { rate_plan_id: found }, scope) }
}

const types: ReadonlySet<string> = new Set([
  'text/csv',
  'application/csv',
  'text/plain',
  'application/octet-stream',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
])

/** 415: another type. */
function refuseOtherType(c: Context<ControlEnv>): void {
  const type = (c.req.header('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (types.has(type)) return
  throw new ApiError(
    415,
    'unsupported_media_type',
    'The body must be text/csv, or a workbook (.xlsx) as application/octet-stream',
  )
}
