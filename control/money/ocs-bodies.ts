/** Requests and answers of `/api/ocs/*` (SPECIFICATION.md §13.3). */
import { z } from 'zod'
import { directions, dispositions, hangupParties } from '../../schema/contracts/field-values.ts'
import { moneyToDecimal, moneyToNumber } from '../../schema/columns.ts'
import type { CallRecord } from '../../schema/call-record.ts'
import type { NodeExtension, NodeGrant, ReportAnswer } from '../../schema/contracts/ocs.ts'
import { readUserPart, withoutSeparators } from '../../schema/rules/phone-number.ts'

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
/** Of an ended call: no record is refused for its spelling. */
const endedCallee = calleeText.transform((user) => {
  const { text } = readUserPart(user)
  return withoutSeparators(text) || text
})
const time = z.iso.datetime({ offset: true })

/** Unknown fields are ignored: nodes of other makes send their own. */
export const authorizeQuery = z.object({
  caller,
  callee,
  /** Absent: a new one is generated and returned. */
  call_uuid: callUuid.optional(),
  /** The customer that the node already knows, by a carrier or an extension. */
  customer_id: z.coerce.number().int().positive().optional(),
})

export const extendBody = z.object({
  call_uuid: callUuid,
  /** Since the answer. */
  used_seconds: z.number().int().min(0).max(31_536_000),
})

export const cdrBody = z.object({
  call_uuid: callUuid,
  caller,
  callee: endedCallee,
  billsec: z
    .number()
    .int()
    .min(0)
    .max(31_536_000)
    .describe(
      'Seconds from answer to end. 0: not answered, unless there is an answer stamp, the disposition ANSWERED or, without a disposition, a 2xx status. An answered call is charged one second at least.',
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

/** The record of a reported call; missing fields follow from `billsec` and the time of the report. */
export function reportedRecord(body: z.output<typeof cdrBody>, now: number): CallRecord {
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
export function authorizedView(grant: NodeGrant) {
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

export const grantView = ({
  grantedSeconds,
  reservedMicros,
}: Extract<NodeExtension, { kind: 'granted' }>) => ({
  granted_seconds: finite(grantedSeconds),
  reserved: moneyToNumber(reservedMicros),
})

export const settledView = (
  callUuid: string,
  answer: Extract<ReportAnswer, { kind: 'settled' }>,
) => ({
  call_uuid: callUuid,
  cost: moneyToNumber(answer.costMicros),
  cost_exact: moneyToDecimal(answer.costMicros),
  currency: answer.currency,
  balance_after:
    answer.balanceAfterMicros === null ? null : moneyToNumber(answer.balanceAfterMicros),
  duplicate: answer.isDuplicate,
})

const finite = (seconds: number): number | null => (seconds === Infinity ? null : seconds)
