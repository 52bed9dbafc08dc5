/**
 * Charging over HTTP for nodes with a key of scope `ocs`: answers without envelope
 * (SPECIFICATION.md §2.7), mounted at `/api/ocs`.
 */
import { Hono } from 'hono'
import { z } from 'zod'
import type { CallRecord } from '../../schema/contracts/call-record.ts'
import { moneyToDecimal, moneyToNumber } from '../../schema/columns.ts'
import type {
  DenialCode,
  OcsRefusal,
  NodeExtension,
  NodeGrant,
  OcsPort,
  ReportAnswer,
} from '../../schema/contracts/charging.ts'
import { denialText } from '../../schema/contracts/denials.ts'
import { directions, dispositions, hangupParties } from '../../schema/contracts/field-values.ts'
import { readUserPart, withoutSeparators } from '../../schema/rules/numbers.ts'
import { requiresGlobal } from '../auth/requires.ts'
import { ApiError, conflict, type ErrorStatus } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { type Platform, newUuid } from '../http/platform.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { amount, currency } from '../resources/rate-routes.ts'
import { bare } from '../http/operation.ts'
import { decimal } from '../http/view-fields.ts'

const grantFields = {
  granted_seconds: z.int().nullable().describe('Null when unlimited.'),
  reserved: amount,
}

type OcsRoutesDeps = Pick<Platform, 'now' | 'randomBytes'>

/**
 * Authorizing reserves money, so even the GET needs the scope to write. A node asks for calls of
 * every tenant, so its key is global.
 */
const node = requiresGlobal('ocs:write')

export function ocsRoutes(ocs: OcsPort, deps: OcsRoutesDeps) {
  return new Hono<ControlEnv>()
    .route('/', authorizeCallRoute(ocs, deps))
    .route('/', extendCallRoute(ocs))
    .route('/', reportCallRoute(ocs, deps))
}

const authorizeCallRoute = (ocs: OcsPort, { now, randomBytes }: OcsRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/authorize',
    describeRoute({
      id: 'authorizeCall',
      tag: 'Charging',
      summary: 'Authorize a call and reserve money for it',
      answer: bare(
        z
          .strictObject({
            authorized: z.literal(true),
            call_uuid: z.string(),
            customer_id: z.int().nullable(),
            rate_prefix: z.string().nullable(),
            rate_per_minute: amount,
            connect_fee: amount,
            currency: currency.nullable(),
            max_duration_seconds: z.int().nullable(),
            ...grantFields,
          })
          .meta({ id: 'Authorization' }),
        {
          authorized: true,
          call_uuid: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11',
          customer_id: 7,
          rate_prefix: '49',
          rate_per_minute: 0.1,
          connect_fee: 0.4,
          currency: 'USD',
          max_duration_seconds: 14_700,
          granted_seconds: 60,
          reserved: 0.6,
        },
      ),
      refusals: [402, 404, 503],
    }),
    node,
    validate('query', authorizeQuery),
    async (c) => {
      const { caller, callee, call_uuid, customer_id } = c.req.valid('query')
      const verdict = await ocs.authorizeForNode({
        callUuid: call_uuid ?? newUuid(randomBytes),
        caller,
        callee,
        customerId: customer_id ?? null,
        startedAt: now(),
      })
      if (verdict.kind === 'overloaded') throw overloaded(verdict.by)
      if (verdict.kind === 'denied') throw denied(verdict.code, verdict.detail)
      return c.json(authorizedView(verdict))
    },
  )

const extendCallRoute = (ocs: OcsPort) =>
  new Hono<ControlEnv>().post(
    '/extend',
    describeRoute({
      id: 'extendCall',
      tag: 'Charging',
      summary: 'Extend the grant of a live call',
      body: { call_uuid: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11', used_seconds: 50 },
      answer: bare(z.strictObject({ call_uuid: z.string(), ...grantFields }), {
        call_uuid: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11',
        granted_seconds: 120,
        reserved: 0.7,
      }),
      refusals: [402, 404],
    }),
    node,
    validate('json', extendBody),
    async (c) => {
      const { call_uuid, used_seconds } = c.req.valid('json')
      const answer = await ocs.extendForNode(call_uuid, used_seconds)
      if (answer.kind === 'denied') throw denied(answer.code)
      return c.json({ call_uuid, ...grantView(answer) })
    },
  )

const reportCallRoute = (ocs: OcsPort, { now }: OcsRoutesDeps) =>
  new Hono<ControlEnv>().post(
    '/cdr',
    describeRoute({
      id: 'reportCall',
      tag: 'Charging',
      summary: 'Report an ended call. Safe to repeat.',
      body: {
        call_uuid: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11',
        caller: '4930100',
        callee: '4940200',
        billsec: 20,
      },
      answer: bare(
        z
          .strictObject({
            call_uuid: z.string(),
            cost: amount,
            cost_exact: decimal,
            currency: currency.nullable(),
            balance_after: amount.nullable(),
            duplicate: z.boolean(),
          })
          .meta({ id: 'ChargedCall' }),
        {
          call_uuid: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11',
          cost: 0.6,
          cost_exact: '0.60',
          currency: 'USD',
          balance_after: 24.4,
          duplicate: false,
        },
      ),
      refusals: [409],
    }),
    node,
    validate('json', cdrBody),
    async (c) => {
      const body = c.req.valid('json')
      const record = reportedRecord(body, now())
      const answer = await ocs.reportFromNode(record, JSON.stringify(body))
      if (answer.kind === 'unstored') throw overloaded('records_waiting')
      if (answer.kind === 'conflict')
        throw conflict('cdr_conflict', 'The call was already reported with another duration')
      return c.json(settledView(body.call_uuid, answer))
    },
  )

const statuses: Readonly<Record<DenialCode, ErrorStatus>> = {
  insufficient_funds: 402,
  customer_inactive: 403,
  destination_blocked: 403,
  concurrent_limit: 403,
  cps_limit: 403,
  daily_spend_limit: 403,
  spend_guard: 403,
  max_call_seconds: 403,
  payer_of_other_tenant: 403,
  no_payer: 403,
  unknown_caller: 404,
  no_rate: 404,
  unknown_call: 404,
  ocs_unreachable: 503,
}

const denied = (code: DenialCode, detail?: string): ApiError =>
  new ApiError(statuses[code], code, denialText(code, detail))

const overloaded = (by: OcsRefusal): ApiError =>
  new ApiError(503, 'overloaded', denialText(by), {
    headers: { 'Retry-After': '5' },
  })

const callUuid = z.string().regex(/^[\x21-\x7e]{1,128}$/, 'must be 1 to 128 printable characters')
/** Nodes send the user part of a URI as it is. Empty: the caller withholds the number. */
const caller = z
  .string()
  .max(128)
  .transform((user) => readUserPart(user).text)
const calleeText = z.string().min(1).max(128)
/** A name has the price of its digits, so that a letter makes no number cheaper. */
const callee = calleeText.transform((user, context) => {
  const { kind, text } = readUserPart(user)
  if (kind === 'number') return text
  if (kind === 'name') return text.replaceAll(/[^0-9*#]/g, '') || text
  context.addIssue({ code: 'custom', message: 'must be a telephone number or a user name' })
  return z.NEVER
})
/** The called number of an ended call: no record is refused for its spelling. */
const endedCallee = calleeText.transform((user) => {
  const { text } = readUserPart(user)
  return withoutSeparators(text) || text
})
const time = z.iso.datetime({ offset: true })

/** Unknown fields are ignored: nodes of other makes send their own. */
const authorizeQuery = z.object({
  caller,
  callee,
  /** Absent: a new one is generated and returned. */
  call_uuid: callUuid.optional(),
  /** The customer that the node already knows, by a carrier or an extension. */
  customer_id: z.coerce.number().int().positive().optional(),
})

const extendBody = z.object({
  call_uuid: callUuid,
  /** Since the answer. */
  used_seconds: z.number().int().min(0).max(31_536_000),
})

const cdrBody = z.object({
  call_uuid: callUuid,
  caller,
  callee: endedCallee,
  billsec: z
    .number()
    .int()
    .min(0)
    .max(31_536_000)
    .describe(
      'Seconds from answer to end. 0: not answered, unless there is an answer stamp, the ' +
        'disposition ANSWERED or, without a disposition, a 2xx status. An answered call is ' +
        'charged one second at least.',
    ),
  customer_id: z.number().int().positive().nullish(),
  call_id: z.string().max(256).optional(),
  direction: z.enum(directions).optional(),
  start_stamp: time.optional(),
  answer_stamp: time.nullish(),
  end_stamp: time.optional(),
  disposition: z.enum(dispositions).optional(),
  sip_code: z.number().int().min(0).max(699).optional(),
  hangup_cause: z.string().max(128).optional(),
  hangup_by: z.enum(hangupParties).optional(),
  recovered: z.boolean().optional(),
  unauthorized_by_ocs: z.boolean().optional(),
})

/**
 * The record of a reported call; missing fields follow from `billsec` and the time of the report.
 */
function reportedRecord(body: z.output<typeof cdrBody>, now: number): CallRecord {
  const isAnswered = wasAnswered(body)
  // Nodes that round down, or to the nearest second, report short calls as 0.
  const billsec = isAnswered ? Math.max(1, body.billsec) : 0
  const endedAt = stamp(body.end_stamp) ?? now
  const answeredAt = isAnswered ? (stamp(body.answer_stamp) ?? endedAt - billsec * 1_000) : null
  return {
    callUuid: body.call_uuid,
    callId: body.call_id ?? body.call_uuid,
    direction: body.direction ?? 'outbound',
    callerNumber: body.caller,
    callerName: null,
    calledNumber: body.callee,
    startedAt: stamp(body.start_stamp) ?? answeredAt ?? endedAt,
    answeredAt,
    endedAt,
    postDialDelayMs: null,
    billsec,
    disposition: body.disposition ?? (isAnswered ? 'ANSWERED' : 'NO ANSWER'),
    sipCode: body.sip_code ?? (isAnswered ? 200 : 480),
    hangupCause: body.hangup_cause ?? 'REPORTED_BY_NODE',
    hangupBy: body.hangup_by ?? 'caller',
    denialCode: null,
    setId: null,
    node: null,
    carrier: null,
    attempts: [],
    tenantId: null,
    customerId: body.customer_id ?? null,
    ratePrefix: null,
    currency: null,
    sourceAddress: '',
    isRecovered: body.recovered ?? false,
    isUnauthorizedByOcs: body.unauthorized_by_ocs ?? false,
  }
}

/** With `billsec` 0, any other sign of an answer counts. */
function wasAnswered({
  billsec,
  disposition,
  answer_stamp: answeredAt,
  sip_code: status = 0,
}: z.output<typeof cdrBody>): boolean {
  if (billsec > 0 || answeredAt != null || disposition === 'ANSWERED') return true
  return disposition === undefined && status >= 200 && status < 300
}

const stamp = (text: string | null | undefined): number | undefined =>
  text === null || text === undefined ? undefined : Date.parse(text)

/** `null` seconds: unlimited, because more talk costs nothing more. */
function authorizedView(grant: NodeGrant) {
  const { callUuid, customerId, tariff, affordableSeconds } = grant
  return {
    authorized: true,
    call_uuid: callUuid,
    customer_id: customerId,
    rate_prefix: tariff?.prefix ?? null,
    rate_per_minute: moneyToNumber(tariff?.ratePerMinuteMicros ?? 0),
    connect_fee: moneyToNumber(tariff?.connectFeeMicros ?? 0),
    currency: tariff?.currency ?? null,
    max_duration_seconds: finite(affordableSeconds),
    ...grantView(grant),
  }
}

const grantView = ({
  grantedSeconds,
  reservedMicros,
}: Extract<NodeExtension, { kind: 'granted' }>) => ({
  granted_seconds: finite(grantedSeconds),
  reserved: moneyToNumber(reservedMicros),
})

const settledView = (callUuid: string, answer: Extract<ReportAnswer, { kind: 'settled' }>) => ({
  call_uuid: callUuid,
  cost: moneyToNumber(answer.costMicros),
  cost_exact: moneyToDecimal(answer.costMicros),
  currency: answer.currency,
  balance_after:
    answer.balanceAfterMicros === null ? null : moneyToNumber(answer.balanceAfterMicros),
  duplicate: answer.isDuplicate,
})

const finite = (seconds: number): number | null => (seconds === Infinity ? null : seconds)
