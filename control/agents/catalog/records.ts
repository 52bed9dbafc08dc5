/** Tools for call records: search, count and explain them. */
import { z } from 'zod'
import { DAY_MS } from '../../../schema/clock.ts'
import { moneyToDecimal, timeToText } from '../../../schema/columns.ts'
import { storedDenialText, toolsFor } from '../../../schema/contracts/denials.ts'
import {
  directions,
  dispositions,
  hangupParties,
  mosSources,
} from '../../../schema/contracts/field-values.ts'
import { numberOrText } from '../../../schema/rules/numbers.ts'
import { ApiError, badRequest } from '../../http/api-error.ts'
import { money, text, time as timeInput } from '../../http/fields.ts'
import { liveCall, liveCallView } from '../../instances/live-call.ts'
import { unusualAbout } from '../../observe/causes/failures.ts'
import { type CdrRow, findRecord, recordsOf } from '../../reports/cdr-store.ts'
import { viewOf as recordView } from '../../reports/cdr-view.ts'
import type { CallFilters } from '../../reports/call-filters.ts'
import { type CdrMatch, matchOf, matchQuery } from '../../reports/cdr-match.ts'
import type { RowPosition } from '../../reports/columns/best-rows.ts'
import { askMargins, marginInput, marginReport } from '../../reports/margins.ts'
import {
  askSummary,
  callFilterInput,
  filtersOf,
  refuseForNow,
  summary,
  summaryInput,
} from '../../reports/summary.ts'
import { capsOfCall } from '../../resources/spending-cap-store.ts'
import { defineTool, callUuid, MAX_ROWS, time } from './tool.ts'
import { findCall } from './calls.ts'
import { requestScope } from '../../auth/tenants.ts'

const callRecord = z.object({
  call_uuid: z.string(),
  direction: z.enum(directions),
  caller_id_number: z.string(),
  destination_number: z.string(),
  start_stamp: time,
  answer_stamp: time.nullable(),
  end_stamp: time,
  duration: z.int(),
  billsec: z.int(),
  disposition: z.enum(dispositions),
  sip_code: z.int(),
  hangup_cause: z.string(),
  hangup_by: z.enum(hangupParties),
  denial_code: z.string().nullable().describe('Why this platform refused or ended the call.'),
  denial_text: z.string().nullable().describe('The same in a sentence, with what to do.'),
  post_dial_delay_ms: z.number().nullable(),
  set_id: z.int().nullable(),
  node: z.string().nullable(),
  instance: z
    .string()
    .nullable()
    .describe('The instance of Tollgate that had the call; null: not known.'),
  carrier: z.string().nullable(),
  customer_id: z.int().nullable(),
  tenant_slug: z.string().nullable(),
  cost_exact: z.string().nullable(),
  currency: z.string().nullable(),
  carrier_cost_exact: z
    .string()
    .nullable()
    .describe('What the carrier takes; only for the platform and the owner of the carrier.'),
  carrier_currency: z.string().nullable(),
  carrier_prefix: z.string().nullable(),
  margin_exact: z
    .string()
    .nullable()
    .describe('Cost less carrier cost; null in different currencies. Negative: a loss.'),
  mos_score: z.number().nullable().describe('Of the worse direction, 1 to 4.5.'),
  mos_source: z.enum(mosSources).nullable(),
  jitter_ms: z.number().nullable(),
  packet_loss_pct: z.number().nullable(),
  attempts: z.array(
    z.object({
      destination: z.string(),
      status: z.int().describe('0 when there was no response.'),
      reason: z.string(),
      start_stamp: time,
      end_stamp: time,
    }),
  ),
})

/** A call in about 120 bytes. */
const briefCall = z.object({
  call_uuid: z.string(),
  call: z.string().describe('Start, caller>callee, disposition or denial_code, seconds, cost.'),
})

const recordFields = z.enum(Object.keys(callRecord.shape) as [keyof typeof callRecord.shape])

export const searchCdrs = defineTool({
  name: 'search_cdrs',
  title: 'Search call records',
  description:
    'Finds calls of a period, newest or dearest first. If the result has a ' +
    'cursor, there may be older calls: ' +
    'call again with it and the same arguments. format brief is short; ' +
    'summarize_calls counts calls by group, ' +
    'explain_call explains one call.',
  effect: 'reads',
  readsMuch: true,
  scopes: ['cdrs:read'],
  input: z.strictObject({
    start: timeInput.optional().describe('RFC 3339 or a date. Defaults to one day before end.'),
    end: timeInput.optional().describe('Exclusive. Defaults to now.'),
    start_date: timeInput.optional().describe('Earlier name of start.'),
    end_date: timeInput.optional().describe('Earlier name of end.'),
    number: text(64).min(1).optional().describe('Part of the calling or the called number.'),
    ...callFilterInput,
    where: text(1_000)
      .min(1)
      .optional()
      .describe('Filters of GET /reports/cdrs: code=486,503&duration_from=60&mos_to=3.'),
    min_cost: money().optional().describe('The least cost of a call, in any currency.'),
    order_by: z.enum(['newest', 'cost']).default('newest'),
    format: z.enum(['full', 'brief']).default('full'),
    fields: z.array(recordFields).min(1).optional().describe('Fields of full records to return.'),
    limit: z.int().min(1).max(MAX_ROWS).default(20),
    cursor: z
      .string()
      .regex(/^(?:(?:\d{1,16}|n)~)?\d{1,15}-\d{1,15}$/, 'must be the cursor of an earlier answer')
      .optional(),
  }),
  output: z.object({
    records: z.array(z.union([briefCall, callRecord.partial()])),
    cursor: z.string().nullable().describe('Null when the whole period was searched.'),
  }),
  async run({ start, end, start_date, end_date, format, fields, order_by: order, ...asked }, use) {
    const { number, limit, cursor, min_cost: minCostMicros } = asked
    const before = oneOf({ end, end_date }) ?? use.now() + 1
    const from = oneOf({ start, start_date }) ?? before - DAY_MS
    if (before < from)
      throw badRequest('The period ends before it begins: end (end_date) must be after start')
    const scope = requestScope(use.principal, use.now)
    const { tenantId, filters } = await filtersOf(asked, use.store, scope)
    const shown = (rows: readonly CdrRow[]) => {
      const views = rows.map((row) => (format === 'brief' ? briefOf(row) : recordView(row)))
      return fields === undefined || format === 'brief' ? views : views.map(only(fields))
    }
    if (asked.where !== undefined) {
      const match = matchOfAll(asked.where, number, { ...filters, minCostMicros })
      const page = await use.reports.find({
        scope: { tenantId, from, before, match },
        sort: { by: order === 'cost' ? 'cost' : 'start', isDescending: true },
        offset: 0,
        limit,
        after: cursor === undefined ? undefined : readPlace(cursor),
        withTotals: false,
      })
      if (page === undefined) refuseForNow()
      const last = page.rows.at(-1)
      const ids = page.rows.map(({ id }) => id)
      return {
        records: shown(await recordsOf(ids, use)),
        cursor: page.hasMore && last !== undefined ? placeOf(last, order) : null,
      }
    }
    const found = await use.reports.search({
      tenantId,
      from,
      before,
      order,
      limit,
      filters: { ...filters, minCostMicros },
      number: number === undefined ? undefined : numberOrText(number),
      after: positionOf(cursor),
    })
    if (found === undefined) refuseForNow()
    const { ids, stoppedAt } = found
    const rows = await recordsOf(ids, use)
    return {
      records: shown(rows),
      cursor: stoppedAt === undefined ? null : `${stoppedAt.startStamp}-${stoppedAt.id}`,
    }
  },
})

/** @throws {ApiError} 400: it has both names. */
function oneOf(named: Readonly<Record<string, number | undefined>>): number | undefined {
  const [given, ...more] = Object.values(named).filter((at) => at !== undefined)
  if (more.length > 0) throw badRequest(`Give ${Object.keys(named).join(' or ')}, not both`)
  return given
}

const only = (fields: readonly string[]) => (view: object) =>
  Object.fromEntries(Object.entries(view).filter(([name]) => fields.includes(name)))

function briefOf(row: CdrRow): z.input<typeof briefCall> {
  const { call_uuid, billsec, cost_micros: cost, currency } = row
  const words = [
    // The time is shown without milliseconds.
    timeToText(row.start_stamp).replace(/\.\d+/, ''),
    `${oneWord(row.caller_id_number)}>${oneWord(row.destination_number)}`,
    row.denial_code ?? row.disposition,
    ...(billsec > 0 ? [`${billsec}s`] : []),
    ...(cost !== null && cost > 0 ? [moneyToDecimal(cost), currency ?? ''] : []),
  ]
  return { call_uuid, call: words.join(' ').trimEnd() }
}

/** Text of a caller cannot add words to the line. */
const oneWord = (written: string): string => written.replaceAll(/[\s>]+/g, '_')

/** All filters of the tool as one: a call matches them all. */
function matchOfAll(
  where: string,
  number: string | undefined,
  { customerId, members = {}, direction, disposition, minCostMicros }: CallFilters,
): CdrMatch | undefined {
  const asked = readWhere(where)
  const { caller, callee_prefix: prefix, node, carrier, denial_code: code } = members
  const others: CdrMatch = {
    ...(number !== undefined && { number }),
    ...(caller !== undefined && { caller }),
    ...(prefix !== undefined && { called: `${prefix}*` }),
    ...(node !== undefined && { node: [node] }),
    ...(carrier !== undefined && { carrier: [carrier] }),
    ...(code !== undefined && { cause: [code] }),
    ...(customerId !== undefined && { customer_id: [customerId] }),
    ...(direction !== undefined && { direction: [direction] }),
    ...(disposition !== undefined && { disposition: [disposition] }),
    ...(minCostMicros !== undefined && { cost: [minCostMicros, undefined] }),
  }
  const twice = Object.keys(others).find((name) => asked?.[name as keyof CdrMatch] !== undefined)
  if (twice !== undefined)
    throw badRequest(`where has ${twice}, and so has another argument`, [
      { path: 'where', message: `must not have ${twice}` },
    ])
  return { ...asked, ...others }
}

const whereFilters = z.strictObject(matchQuery)

function readWhere(where: string): CdrMatch | undefined {
  const read = whereFilters.safeParse(Object.fromEntries(new URLSearchParams(where)))
  if (read.success) return matchOf(read.data)
  const problems = read.error.issues.map(
    ({ path, message }) => `${path.length === 0 ? '' : `${path.join('.')}: `}${message}`,
  )
  throw badRequest('where is invalid', [{ path: 'where', message: problems.join('; ') }])
}

/** The start is its own key; `n`: the call has no cost. */
const placeOf = ({ key, start, id }: RowPosition, order: 'newest' | 'cost'): string =>
  order === 'newest' ? `${start}-${id}` : `${key ?? 'n'}~${start}-${id}`

function readPlace(cursor: string): RowPosition {
  const [key, rest] = cursor.includes('~') ? cursor.split('~') : [undefined, cursor]
  const [start = 0, id = 0] = (rest ?? '').split('-').map(Number)
  return { key: key === undefined ? start : key === 'n' ? null : Number(key), start, id }
}

function positionOf(cursor: string | undefined) {
  if (cursor === undefined) return undefined
  const [startStamp = 0, id = 0] = cursor.split('-').map(Number)
  return { startStamp, id }
}

export const getCall = defineTool({
  name: 'get_call',
  title: 'Get a call',
  description:
    'Returns one call by its uuid, live or ended. Prefer explain_call, which also says why ' +
    'it ended so.',
  effect: 'reads',
  scopes: ['calls:read', 'cdrs:read'],
  input: z.strictObject({ call_uuid: callUuid }),
  output: z.object({ live: liveCall.nullable(), record: callRecord.nullable() }),
  async run({ call_uuid: uuid }, use) {
    const live = findCall(uuid, use)
    const record = live === undefined ? await findRecord(uuid, use) : undefined
    if (live === undefined && record === undefined) throw noCall()
    return {
      live: live === undefined ? null : liveCallView(live, use.steadyNow()),
      record: record === undefined ? null : recordView(record),
    }
  },
})

const noCall = (): ApiError =>
  new ApiError(
    404,
    'not_found',
    'No call has this uuid. list_active_calls and search_cdrs show the uuids of calls',
  )

export const summarizeCalls = defineTool({
  name: 'summarize_calls',
  title: 'Summarize calls',
  description:
    'Counts the calls of a period by group. Each has answered, denied, failed, ASR, exact ' +
    'cost, and call uuids as evidence. ' +
    'Use it before search_cdrs. callee_prefix groups by the first 4 digits of the called ' +
    'number. Grouping with one filter, ' +
    'or with customer, covers months; other filters read records, newest first, for a ' +
    'second: complete says so.',
  effect: 'reads',
  scopes: ['cdrs:read'],
  input: summaryInput,
  output: summary,
  run: ({ start: from, end: before, ...asked }, use) =>
    askSummary({ ...asked, from, before }, use, requestScope(use.principal, use.now)),
})

export const summarizeMargins = defineTool({
  name: 'summarize_margins',
  title: 'Summarize margins',
  description:
    'Finds what loses money. Revenue less carrier cost by group, the greatest losses first; ' +
    'then search_cdrs and lookup_rate say why. A tenant has calls of its own carriers.',
  effect: 'reads',
  scopes: ['cdrs:read'],
  input: marginInput,
  output: marginReport,
  run: ({ start: from, end: before, ...asked }, use) =>
    askMargins({ ...asked, from, before }, use, requestScope(use.principal, use.now)),
})

export const explainCall = defineTool({
  name: 'explain_call',
  title: 'Explain a call',
  description:
    'Explains the outcome of one call. Who ended or refused it, and what each destination ' +
    'answered. ' +
    'Also what it cost at which rate, what was unusual against the past of its customer, ' +
    'and what to check next; of a call refused for money, what it needed and what there ' +
    'was.',
  effect: 'reads',
  readsMuch: true,
  isAboutCall: true,
  scopes: ['calls:read', 'cdrs:read'],
  input: z.strictObject({ call_uuid: callUuid }),
  output: z.object({
    outcome: z.enum(['live', 'answered', 'refused_by_platform', 'failed', 'not_answered']),
    explanation: z.string(),
    advice: z.string().nullable(),
    charge: z
      .object({
        cost_exact: z.string().nullable(),
        currency: z.string().nullable(),
        rate_prefix: z.string().nullable(),
        billsec: z.int(),
        customer_id: z.int().nullable(),
      })
      .nullable(),
    money: z
      .object({
        required: z.string().describe('For its first second, with connect fee and increment.'),
        available: z.string(),
        currency: z.string().nullable(),
      })
      .nullable()
      .describe('When it was refused; null: it was not refused for money, or it was not recorded.'),
    source_address: z.string().nullable(),
    unusual: z.array(z.string()).describe('Empty: nothing, or too little to compare it with.'),
    compared_with: z.int().describe('Calls of the customer in the 14 days before, 2,000 at most.'),
    spend_guards: z.array(z.string()).optional().describe('guard_id of those that stopped it.'),
    live: liveCall.nullable(),
    record: callRecord.nullable(),
  }),
  async run({ call_uuid: uuid }, use) {
    const live = findCall(uuid, use)
    if (live !== undefined)
      return {
        outcome: 'live' as const,
        explanation: 'The call is live. It has no record until it ends.',
        advice: null,
        charge: null,
        money: null,
        source_address: null,
        unusual: [],
        compared_with: 0,
        live: liveCallView(live, use.steadyNow()),
        record: null,
      }
    const row = await findRecord(uuid, use)
    if (row === undefined) throw noCall()
    const record = recordView(row)
    const { cost_exact, currency, billsec, customer_id } = record
    const charge = { cost_exact, currency, rate_prefix: row.rate_prefix, billsec, customer_id }
    const { cost_micros } = row
    // A call without a price is compared with none.
    const { signs, compared } =
      cost_micros === null
        ? { signs: [], compared: 0 }
        : await unusualAbout(
            { store: use.store, tenantId: use.principal.tenantId },
            { ...row, cost_micros },
          )
    const guards = row.denial_code === 'spend_guard' ? await capsOfCall(row, use) : undefined
    return {
      ...verdict(row, record.attempts.length),
      charge,
      money: moneyOf(row),
      source_address: row.source_address,
      ...(guards && { spend_guards: guards }),
      unusual: [...signs],
      compared_with: compared,
      live: null,
      record,
    }
  },
})

function moneyOf({ required_micros: required, available_micros: available, currency }: CdrRow) {
  if (required === null || available === null) return null
  return { required: moneyToDecimal(required), available: moneyToDecimal(available), currency }
}

function verdict(row: CdrRow, attempts: number) {
  const tried = triedText(attempts)
  if (row.disposition === 'ANSWERED')
    return { outcome: 'answered' as const, ...answered(row, tried) }
  if (row.denial_code !== null) {
    const text = storedDenialText(row.denial_code, row.denial_text)
    const explanation = `The platform refused the call with ${row.sip_code}. ${text}${tried}`
    return {
      outcome: 'refused_by_platform' as const,
      explanation,
      advice: toolsFor(row.denial_code),
    }
  }
  if (row.disposition === 'FAILED' || row.disposition === 'CONGESTION')
    return {
      outcome: 'failed' as const,
      explanation: `The call failed with ${row.sip_code}.${tried}`,
      advice: 'The attempts of the record show what each destination answered.',
    }
  const whys = {
    BUSY: 'The callee was busy.',
    CANCELED: 'The caller cancelled before the answer.',
    'NO ANSWER': 'The callee did not answer.',
  } as const
  return {
    outcome: 'not_answered' as const,
    explanation: `${whys[row.disposition]}${tried}`,
    advice: null,
  }
}

function answered(row: CdrRow, tried: string) {
  const { denial_code: code } = row
  const cut = storedDenialText(code, row.denial_text)
  return {
    explanation:
      `The call was answered and lasted ${row.billsec} s. It was ended by the ${row.hangup_by}.` +
      (cut === null ? tried : ` The platform ended it. ${cut}`),
    advice: code === null ? null : toolsFor(code),
  }
}

const triedText = (attempts: number): string =>
  attempts === 0 ? ' No destination was tried.' : ` Destinations tried: ${attempts}.`
