/**
 * `GET /reports/cdrs` (SPECIFICATION.md §4.1): the calls that started in a period, in the bare
 * shape, with totals of all matching records; or as CSV or NDJSON of any length, chosen by `format`
 * or `Accept`. `GET /reports/carriers`: what calls came to by carrier. `GET /reports/calls`: by
 * customer, destination, node …
 */
import { requestScope } from '../auth/tenants.ts'
import { Hono } from 'hono'
import { z } from 'zod'
import { DAY_MS } from '../../schema/clock.ts'
import {
  attestations,
  dispositions,
  directions,
  hangupParties,
  mosSources,
  recordingErrors,
  verifications,
  verstats,
} from '../../schema/contracts/field-values.ts'
import { requires } from '../auth/requires.ts'
import type { Platform } from '../http/platform.ts'
import type { WithReports, Reports } from './reports.ts'
import { badRequest } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { DEFAULT_LIMIT, ok, pageQuery } from '../http/envelope.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { timeZone, zonedQueryTime } from '../http/fields.ts'
import { lengthIn, periodIn, zoneOfReport } from './report-zones.ts'
import {
  askSummary,
  queryReference,
  refuseForNow,
  reportZoneText,
  splitFilters,
  summary,
  summaryQuery,
} from './summary.ts'
import { allMargins, askMargins, marginCsv, marginQuery, marginReport } from './margins.ts'
import { matchOf, matchQuery } from './cdr-match.ts'
import { type RecordSort, sortKeys } from './columns/find-records.ts'
import { readCursor } from './record-cursor.ts'
import type { PageRequest, ReportRequest } from './report-chunks.ts'
import { bare, data, either, text } from '../http/operation.ts'
import {
  count,
  decimal,
  denialTextField,
  exampleTime,
  moment,
  tagsField,
} from '../http/view-fields.ts'
import type { CarrierSums } from './carrier-sums.ts'
import type { FilterTotals } from './columns/record-totals.ts'
import type { CdrView } from './cdr-view.ts'
import { tenantOf } from '../resources/references.ts'

const exampleUuid = '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11'

const attempt = z.strictObject({
  destination: z.string(),
  status: z.int(),
  reason: z.string(),
  presented: z
    .strictObject({
      number: z.string().describe('Empty: the call was anonymous.'),
      asserted: z.string().describe('The number that the network was told.'),
      attestation: z.enum(['A', 'B', 'C']),
      why: z.string().describe('Why this number.'),
    })
    .optional()
    .describe('What it was shown of the caller. Absent: no rules said anything.'),
  sent: z
    .strictObject({
      called: z.string(),
      caller: z.string().describe('Empty: the call was anonymous.'),
    })
    .optional()
    .describe('Both numbers as they were sent to it.'),
  start_stamp: moment,
  end_stamp: moment,
})

const mosSource = z
  .enum(mosSources)
  .describe(
    '`measured` by the media relay, `computed` out of jitter and loss, `reported` by a phone.',
  )

const streamQuality = z
  .strictObject({
    mos: z.number().nullable(),
    mos_source: mosSource.nullable(),
    jitter_ms: z.number().nullable(),
    packet_loss_pct: z.number().nullable(),
    round_trip_ms: z.number().nullable(),
    packets: count,
  })
  .meta({ id: 'StreamQuality' })

const mediaQuality = z
  .strictObject({ caller: streamQuality.nullable(), callee: streamQuality.nullable() })
  .describe('What was heard from each party.')
  .meta({ id: 'MediaQuality' })

const recording = z
  .strictObject({
    duration: count.describe('Seconds.'),
    bytes: count,
    sha256: z.string().describe('Of the file, in hexadecimal digits.'),
  })
  .describe('`GET /calls/{uuid}/recording` has the file. Null when there is none.')

const recordingError = z
  .enum(recordingErrors)
  .describe(
    'Why a call that was to be recorded has no recording: its media passed no relay ' +
      '(`not_relayed`), the relay did not start the recording (`relay_failed`), it has captured ' +
      'nothing, or no codec that can be decoded, or the file could not be written for a week. ' +
      'Null when it has one, was not to be recorded, or is still being written.',
  )

const carrierCostFields = {
  carrier_cost: z
    .number()
    .nullable()
    .describe(
      'What the carrier that has answered takes, by its rate plan. Null when no carrier has, ' +
        'when its plan has no price for the number, and for credentials of a tenant that does ' +
        'not own the carrier.',
    ),
  carrier_cost_exact: decimal.nullable(),
  carrier_currency: z.string().nullable(),
  carrier_prefix: z.string().nullable().describe('Prefix in the plan of the carrier.'),
  margin: z
    .number()
    .nullable()
    .describe('Cost less carrier cost. Null when one is not known, or the currencies differ.'),
  margin_exact: decimal.nullable(),
}

const rateFields = {
  rate_prefix: z.string().nullable().describe('The prefix by which the call was rated.'),
  rate: decimal
    .nullable()
    .describe(
      'For a minute, at the answer. Null: nobody paid here, or an earlier version rated it.',
    ),
  rate_first: decimal.nullable().describe('The same of the first increment.'),
  connect_fee: decimal.nullable(),
  first_increment: z.int().nullable().describe('Seconds.'),
  increment: z.int().nullable().describe('Seconds.'),
}

const callRecord: z.ZodType<CdrView> = z
  .strictObject({
    call_uuid: z.string(),
    caller_id_number: z.string(),
    destination_number: z.string(),
    start_stamp: moment,
    billsec: count,
    disposition: z.enum(dispositions),
    mos_score: z
      .number()
      .nullable()
      .describe('1 to 4.5, of the worse direction. Null when nothing is known.'),
    cost: z
      .number()
      .nullable()
      .describe('Null: a customer of the platform pays, and a credential of the tenant asks.'),
    cost_exact: decimal.nullable(),
    currency: z.string().nullable(),
    answer_stamp: moment.nullable(),
    end_stamp: moment,
    duration: count,
    post_dial_delay_ms: count.nullable(),
    sip_code: z.int(),
    hangup_cause: z.string(),
    hangup_by: z.enum(hangupParties),
    denial_code: z.string().nullable(),
    direction: z.enum(directions),
    set_id: z.int().nullable(),
    node: z.string().nullable(),
    instance: z
      .string()
      .nullable()
      .describe(
        'Node of this platform that had the call. Null when an earlier version recorded ' +
          'it, or another system reported it.',
      ),
    carrier: z.string().nullable(),
    attempts: z.array(attempt),
    jitter_ms: z.number().nullable(),
    packet_loss_pct: z.number().nullable(),
    customer_id: z.int().nullable(),
    tenant_slug: z.string().nullable(),
    call_id: z.string(),
    recovered: z.boolean(),
    unauthorized_by_ocs: z.boolean(),
    mos_source: mosSource.nullable(),
    media_quality: mediaQuality.nullable(),
    recording: recording.nullable(),
    recording_error: recordingError.nullable(),
    denial_text: denialTextField,
    tags: tagsField,
    verification: z
      .enum(verifications)
      .nullable()
      .describe('What Identity headers have proved of the caller. Null: nobody has looked.'),
    verstat: z.enum(verstats).nullable().describe('The same as 3GPP TS 24.229 writes it.'),
    attestation: z
      .enum(attestations)
      .nullable()
      .describe(
        'How far the network of a verified caller vouches for the number; of a call that we ' +
          'have signed, how far we do.',
      ),
    ...carrierCostFields,
    customer_name: z.string().nullable().describe('Null for those of another tenant.'),
    ...rateFields,
    number_dialled: z
      .string()
      .nullable()
      .describe('The called number as it came. Null: the call began here, or it is not known.'),
    number_sent: z
      .string()
      .nullable()
      .describe('The called number as it went to the destination that was tried last.'),
    caller_sent: z.string().nullable().describe("The caller's number that was shown there."),
  })
  .meta({ id: 'CallRecord' })

const amounts = z.record(z.string(), decimal).describe('Exact amount by currency.')

const totalsView: z.ZodType<FilterTotals> = z
  .strictObject({
    calls: count,
    answered: count,
    billsec: count,
    asr_percent: z.number().nullable().describe('Answered of all. Null without a call.'),
    acd_seconds: z.number().nullable().describe('The mean call. Null without an answered one.'),
    cost: amounts,
    carrier_cost: amounts,
    margin: amounts,
  })
  .describe('What the calls on all pages come to, by the prices that the reader may see.')
  .meta({ id: 'CallTotals' })

const reportView = z
  .strictObject({
    total_calls: count
      .optional()
      .describe('Calls that match the filter, on all pages. Absent with `totals=false`.'),
    total_billsec: count.optional(),
    totals: totalsView.optional(),
    complete: z.boolean().describe('False: `missing` says what the answer lacks.'),
    missing: z
      .strictObject({
        records: z
          .enum(['none', 'some'])
          .describe('`some`: list and order are of the records that were read in time.'),
        totals: z
          .enum(['none', 'some', 'carrier_costs'])
          .describe(
            '`some`: they are of these records. `carrier_costs`: they are those of the daily ' +
              'sums, without `carrier_cost` and `margin`.',
          ),
        without_columns: count.describe(
          'About so many records are still being prepared for searches.',
        ),
        text: z.string().describe('The same as a sentence.'),
      })
      .optional()
      .describe('Absent when the answer is complete.'),
    next_cursor: z
      .string()
      .nullable()
      .optional()
      .describe('For the next page. Null: this is the last. Absent when no page is asked for.'),
    total_refused: z
      .strictObject({ unknown_source: count, overload: count })
      .optional()
      .describe(
        'Calls of the period that were refused without a record. Absent when there are ' +
          'none, when a filter is set, and for tenant credentials.',
      ),
    records: z.array(callRecord),
    truncated: z
      .literal(true)
      .optional()
      .describe('True when the list was cut at 10,000 records because `page` was absent.'),
    meta: z.strictObject({ page: z.int(), limit: z.int(), total: count }).optional(),
  })
  .meta({ id: 'CallReport' })

const exampleRecord = {
  call_uuid: exampleUuid,
  caller_id_number: '4930100',
  destination_number: '4940200',
  start_stamp: exampleTime,
  billsec: 20,
  disposition: 'ANSWERED',
  mos_score: null,
  cost: 0.6,
  cost_exact: '0.60',
  currency: 'USD',
  answer_stamp: exampleTime,
  end_stamp: '2026-01-01T00:00:20.000Z',
  duration: 20,
  post_dial_delay_ms: 180,
  sip_code: 200,
  hangup_cause: 'NORMAL_CLEARING',
  hangup_by: 'caller',
  denial_code: null,
  direction: 'inbound',
  set_id: 1,
  node: 'sip:10.0.0.11:5060;transport=udp',
  instance: 'sbc-1',
  carrier: null,
  attempts: [],
  jitter_ms: null,
  packet_loss_pct: null,
  customer_id: 7,
  tenant_slug: null,
  call_id: 'a84b4c76e66710',
  recovered: false,
  unauthorized_by_ocs: false,
  mos_source: null,
  media_quality: null,
  recording: null,
  recording_error: null,
  denial_text: null,
  tags: { crm: '42' },
  verification: 'passed',
  verstat: 'TN-Validation-Passed',
  attestation: 'A',
  carrier_cost: null,
  carrier_cost_exact: null,
  carrier_currency: null,
  carrier_prefix: null,
  margin: null,
  margin_exact: null,
  customer_name: 'Acme',
  rate_prefix: '49',
  rate: '1.80',
  rate_first: '1.80',
  connect_fee: '0.00',
  first_increment: 1,
  increment: 1,
  number_dialled: '004940200',
  number_sent: '4940200',
  caller_sent: '4930100',
}

const exampleTotals = {
  calls: 1,
  answered: 1,
  billsec: 20,
  asr_percent: 100,
  acd_seconds: 20,
  cost: { USD: '0.60' },
  carrier_cost: {},
  margin: {},
}

const directionSums = z
  .strictObject({
    calls: count,
    answered: count,
    billsec: count,
    asr_percent: z.number().nullable().describe('Answered of all. Null without a call.'),
    acd_seconds: z.number().nullable().describe('The mean call. Null without an answered one.'),
  })
  .meta({ id: 'DirectionSums' })

const carrierSums: z.ZodType<CarrierSums> = z
  .strictObject({ carrier: z.string(), outbound: directionSums, inbound: directionSums })
  .describe('A call counts at the carrier that took it, or that was tried last.')
  .meta({ id: 'CarrierSums' })

const exampleFigures = {
  calls: 20,
  answered: 12,
  denied: 2,
  failed: 1,
  asr_percent: 60,
  billsec: 900,
  cost: { USD: '16.50' },
  mean_pdd_ms: 180,
  first_call: exampleTime,
  last_call: exampleTime,
}

const reportQuery = z.strictObject({
  start_date: zonedQueryTime,
  end_date: zonedQueryTime,
  time_zone: timeZone
    .optional()
    .describe(`${reportZoneText} The times of a CSV are those of a zone that is asked for.`),
  tenant: queryReference.optional().describe('Id or slug.'),
  ...matchQuery,
  order: z
    .enum(['oldest', 'newest'])
    .optional()
    .describe('Order by start time. Without it and `sort`: the oldest first.'),
  sort: z
    .enum(sortKeys.flatMap((key) => [key, `-${key}`] as const))
    .optional()
    .describe('With `-`: the greatest first. Records without the value come last.'),
  cursor: z
    .string()
    .min(1)
    .optional()
    .describe('`next_cursor` of an earlier answer with the same arguments.'),
  totals: z.enum(['true', 'false']).optional().describe('`false`: without totals.'),
  format: z
    .enum(['json', 'csv', 'ndjson'])
    .optional()
    .describe('Takes precedence over the `Accept` header.'),
  page: pageQuery.page.unwrap().optional(),
  limit: pageQuery.limit.unwrap().optional(),
})

/** Sums of a longer period would keep the thread of reports busy for long. */
const MAX_SUMMED_DAYS = 31

const sumsQuery = z.strictObject({
  start_date: zonedQueryTime,
  end_date: zonedQueryTime,
  time_zone: timeZone.optional().describe(reportZoneText),
})

type ReportRoutesDeps = Pick<Platform, 'store' | 'now'> & WithReports

export function reportRoutes(deps: ReportRoutesDeps) {
  return new Hono<ControlEnv>()
    .route('/', summarizeCallsRoute(deps))
    .route('/', listMarginsRoute(deps))
    .route('/', listCarrierSumsRoute(deps))
    .route('/', listCallRecordsRoute(deps))
}

const summarizeCallsRoute = ({ store, now, reports }: ReportRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/reports/calls',
    describeRoute({
      id: 'summarizeCalls',
      tag: 'Calls',
      summary:
        'Count the calls of a period of 100 days at most by customer, tenant, caller, ' +
        'first digits of the called number, node, carrier, denial code, minute or hour',
      answer: data(summary.meta({ id: 'CallSummary' }), {
        start: exampleTime,
        end: '2026-01-02T00:00:00.000Z',
        complete: true,
        cursor: null,
        time_zone: 'UTC',
        source: 'sums',
        totals: { groups: 1, ...exampleFigures },
        other_calls: 0,
        groups: [{ group: '7', name: 'Acme', ...exampleFigures, call_uuids: [exampleUuid] }],
      }),
      refusals: [503],
    }),
    requires('cdrs:read'),
    validate('query', summaryQuery),
    async (c) => {
      const query = c.req.valid('query')
      const { start_date: from, end_date: before, group_by, time_zone } = query
      const { order_by, limit, cursor } = query
      const { simple, match } = splitFilters(query)
      const asked = { ...simple, match, from, before, group_by, time_zone, order_by, limit, cursor }
      const scope = requestScope(c.var.principal, now)
      return ok(c, await askSummary(asked, { store, reports }, scope))
    },
  )

const exampleMargin = {
  calls: 12,
  billsec: 640,
  losses: 9,
  currency: 'USD',
  revenue: '0.53',
  carrier_currency: 'USD',
  carrier_cost: '0.71',
  margin: '-0.18',
  margin_percent: -34,
}

const listMarginsRoute = ({ store, reports, now }: ReportRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/reports/margins',
    describeRoute({
      id: 'listMargins',
      tag: 'Calls',
      summary:
        'Get what calls were sold for, less what carriers took, by customer, carrier, ' +
        'destination or day, of 100 days at most; the greatest losses first',
      answer: either(
        data(marginReport, {
          start: exampleTime,
          end: '2026-01-02T00:00:00.000Z',
          time_zone: 'UTC',
          complete: true,
          cursor: null,
          totals: [exampleMargin],
          groups: [{ group: 'north', name: null, ...exampleMargin }],
        }),
        text('text/csv', 'group,name,calls\r\n'),
      ),
      refusals: [503],
    }),
    requires('cdrs:read'),
    validate('query', marginQuery),
    async (c) => {
      const { start_date: from, end_date: before, format, ...asked } = c.req.valid('query')
      const scope = requestScope(c.var.principal, now)
      const query = { ...asked, from, before }
      if (format === 'json') return ok(c, await askMargins(query, { store, reports }, scope))
      const report = await askMargins(allMargins(query), { store, reports }, scope)
      return c.body(marginCsv(report), 200, {
        'Content-Type': 'text/csv; charset=utf-8',
        'Content-Disposition': 'attachment; filename="margins.csv"',
      })
    },
  )

const listCarrierSumsRoute = ({ store, reports }: ReportRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/reports/carriers',
    describeRoute({
      id: 'listCarrierSums',
      tag: 'Calls',
      summary: 'Get calls, answer-seizure ratio and mean length by carrier, of 31 days at most',
      answer: data(z.array(carrierSums), [
        {
          carrier: 'telco',
          outbound: { calls: 20, answered: 12, billsec: 900, asr_percent: 60, acd_seconds: 75 },
          inbound: { calls: 0, answered: 0, billsec: 0, asr_percent: null, acd_seconds: null },
        },
      ]),
      refusals: [503],
    }),
    requires('cdrs:read'),
    validate('query', sumsQuery),
    async (c) => {
      const query = c.req.valid('query')
      const { tenantId } = c.var.principal
      const zone = await zoneOfReport(store, { asked: query.time_zone, tenantId })
      const { from, before } = periodIn(zone, boundsOf(query))
      refuseBackwards(from, before)
      if (lengthIn(zone, { from, before }) > MAX_SUMMED_DAYS * DAY_MS)
        throw badRequest('The period is too long', [
          {
            path: 'start_date',
            message: `must be at most ${MAX_SUMMED_DAYS} days before end_date`,
          },
        ])
      const sort = { by: 'start', isDescending: false } as const
      const request = { format: 'carriers', sort, page: undefined, withTotals: false } as const
      const body = await bodyOf(reports, { filter: { tenantId, from, before }, ...request })
      return c.body(body, 200, { 'Content-Type': 'application/json' })
    },
  )

const listCallRecordsRoute = ({ store, reports, now }: ReportRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/reports/cdrs',
    describeRoute({
      id: 'listCallRecords',
      tag: 'Calls',
      summary: 'List the call records of a period. CSV and NDJSON have no length limit.',
      answer: either(
        bare(reportView, {
          total_calls: 1,
          total_billsec: 20,
          totals: exampleTotals,
          complete: true,
          records: [exampleRecord],
        }),
        text('text/csv', 'call_uuid,caller_id_number\r\n'),
        text('application/x-ndjson', '{"call_uuid":"0b4c1c1e"}\n'),
      ),
      refusals: [503],
    }),
    requires('cdrs:read'),
    validate('query', reportQuery),
    async (c) => {
      const query = c.req.valid('query')
      const format = query.format ?? formatOf(c.req.header('accept'))
      const sort = sortOf(query)
      refuseMixed(query, format, sort)
      const tenantId = await tenantOf(store, query.tenant, requestScope(c.var.principal, now))
      const { customer_id: customers, time_zone: asked } = query
      const customerId = customers?.length === 1 ? customers[0] : undefined
      const zone = await zoneOfReport(store, { asked, customerId, tenantId })
      const { from, before } = periodIn(zone, boundsOf(query))
      refuseBackwards(from, before)
      const filter = { tenantId, from, before, match: matchOf(query) }
      const page = pageOf(query, sort)
      const withTotals = query.totals !== 'false'
      const request = { filter, format, sort, page, withTotals, zone: asked }
      const body = await bodyOf(reports, request)
      return c.body(body, 200, headersOf(format))
    },
  )

const boundsOf = ({ start_date: from, end_date: before }: z.output<typeof sumsQuery>) => ({
  from,
  before,
})
type ReportQuery = z.output<typeof reportQuery>

const sortOf = ({ order, sort }: ReportQuery): RecordSort => {
  if (sort === undefined) return { by: 'start', isDescending: order === 'newest' }
  const isDescending = sort.startsWith('-')
  const by = sortKeys.find((key) => key === (isDescending ? sort.slice(1) : sort)) ?? 'start'
  return { by, isDescending }
}

function refuseMixed({ order, sort, cursor, page }: ReportQuery, format: Format, by: RecordSort) {
  const refuse = (path: string, message: string) => {
    throw badRequest('The query is invalid', [{ path, message }])
  }
  if (order !== undefined && sort !== undefined) refuse('sort', 'must not be given with order')
  if (cursor !== undefined && page !== undefined) refuse('cursor', 'must not be given with page')
  if (format === 'json') return
  if (by.by !== 'start') refuse('sort', `must be start or -start with format ${format}`)
  if (cursor !== undefined) refuse('cursor', `must not be given with format ${format}`)
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

/** Each of these parameters requests paging. */
function pageOf(query: ReportQuery, sort: RecordSort): PageRequest | undefined {
  const { page, limit = DEFAULT_LIMIT, cursor } = query
  if (cursor !== undefined) {
    const after = readCursor(cursor, sort)
    if (after !== undefined) return { after, limit }
    throw badRequest('The query is invalid', [
      { path: 'cursor', message: 'must be the next_cursor of an answer with the same sort' },
    ])
  }
  if (page === undefined && query.sort === undefined && query.limit === undefined) return undefined
  return { page: page ?? 1, limit }
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
