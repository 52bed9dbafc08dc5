/** Explains a call record: its outcome, the reason, and what an operator can do. */
import { z } from 'zod'
import type { CdrRow } from '../../pbx/reports/cdr-store.ts'
import { viewOf as recordView } from '../../pbx/reports/cdr-view.ts'
import { defineTool } from '../tool.ts'
import { findRecord } from './call-records.ts'
import { findCall, liveCall, viewOf as liveView } from './call-tools.ts'
import { callRecord, noCall } from './record-tools.ts'
import { callUuid } from './shapes.ts'

/** `denial_code` of a record → reason and advice. */
const denials: Readonly<Record<string, readonly [why: string, advice: string]>> = {
  insufficient_funds: [
    'The customer has insufficient funds.',
    'get_customer_balance shows the balance. A person can top up the wallet.',
  ],
  media_timeout: [
    'No audio came from either party for a while, so the platform ended the call as of its last packet.',
    'MEDIA_TIMEOUT_SECONDS says how long a call may be silent.',
  ],
  customer_inactive: ['The customer is inactive.', 'A person must activate it again.'],
  destination_blocked: [
    'A blocked prefix or route covers this destination.',
    'lookup_rate shows whether the rate is blocked.',
  ],
  concurrent_limit: [
    'The customer reached its limit of concurrent calls.',
    'list_active_calls shows them.',
  ],
  cps_limit: [
    'The customer exceeded its limit of calls per second.',
    'Spread the calls over more time.',
  ],
  daily_spend_limit: [
    'The customer reached its daily spending limit.',
    'The limit resets at 00:00 UTC.',
  ],
  unknown_caller: [
    'No customer owns the calling number, so the call has no payer.',
    'A person can add the number to a customer.',
  ],
  payer_of_other_tenant: [
    'The paying customer belongs to another tenant than the source of the call.',
    'Check which customer owns the calling number, or is set on the carrier or extension.',
  ],
  no_payer: [
    'The carrier has no customer, so the call has no payer.',
    'A person can set its customer, or set payer to from_number.',
  ],
  no_rate: ['The rate plan has no rate for this number.', 'lookup_rate confirms it.'],
  max_call_seconds: ['The call reached the maximum duration of the customer.', 'Nothing is wrong.'],
  ocs_unreachable: ['The charging system did not answer in time.', 'Check the charging system.'],
  no_candidate: [
    'No node of the dispatcher set was in service.',
    'get_dispatcher_status shows the nodes.',
  ],
  node_limit: ['Every node reached its limit of calls.', 'get_dispatcher_status shows them.'],
  no_gateway: ['No carrier gateway was usable for this number.', 'Check the carriers and routes.'],
  carrier_limit: ['The carrier reached its limit of calls.', 'Raise the limit or wait.'],
  agent_limit: ['The AI agent reached its limit of calls.', 'Raise the limit or wait.'],
  unknown_source: [
    'The source is not a carrier, a node or a trusted address.',
    'If it is a carrier, a person can add it as a gateway.',
  ],
  unknown_extension: ['No phone is registered for this extension.', 'Check the registration.'],
  no_number: ['The request contains no number.', 'The caller must dial a number.'],
  malformed_number: [
    'The dialled text is not a telephone number.',
    'Only digits, *, # and a leading + are allowed. A number rule of the carrier may help.',
  ],
  unknown_name: [
    'The call is to a user name; only numbers can be called.',
    'A number rule of the carrier can map the name to a number.',
  ],
  unknown_agent: ['The AI agent does not exist or is inactive.', 'Check the agent.'],
  overload: ['The platform was overloaded.', 'get_telemetry shows its load.'],
  draining: ['The process was stopping.', 'Nothing is wrong if it was restarted.'],
  loop: ['The call looped: it returned to this platform.', 'Check the routes of the node.'],
}

export const explainCall = defineTool({
  name: 'explain_call',
  title: 'Explain a call',
  description:
    'Explains the outcome of one call: who ended or refused it, which destinations were tried and what they answered, ' +
    'what it cost at which rate, and what to check next.',
  effect: 'reads',
  scopes: ['calls:read', 'cdrs:read'],
  input: z.strictObject({ call_uuid: callUuid }),
  output: z.object({
    outcome: z.enum(['live', 'answered', 'refused_by_platform', 'failed', 'not_answered']),
    explanation: z.string(),
    advice: z.string().nullable(),
    charge: z
      .object({
        cost_exact: z.string(),
        currency: z.string().nullable(),
        rate_prefix: z.string().nullable(),
        billsec: z.int(),
        customer_id: z.int().nullable(),
      })
      .nullable(),
    live: liveCall.nullable(),
    record: callRecord.nullable(),
  }),
  run({ call_uuid: uuid }, use) {
    const live = findCall(uuid, use)
    if (live !== undefined)
      return {
        outcome: 'live' as const,
        explanation: 'The call is live. It has no record until it ends.',
        advice: null,
        charge: null,
        live: liveView(live, use.steadyNow()),
        record: null,
      }
    const row = findRecord(uuid, use)
    if (row === undefined) throw noCall()
    const record = recordView(row)
    const { cost_exact, currency, billsec, customer_id } = record
    const charge = { cost_exact, currency, rate_prefix: row.rate_prefix, billsec, customer_id }
    return { ...verdict(row, record.attempts.length), charge, live: null, record }
  },
})

function verdict(row: CdrRow, attempts: number) {
  const tried = triedText(attempts)
  if (row.disposition === 'ANSWERED')
    return { outcome: 'answered' as const, ...answered(row, tried) }
  if (row.denial_code !== null) {
    const [why, advice] = denials[row.denial_code] ?? [`The reason is ${row.denial_code}.`, null]
    const explanation = `The platform refused the call with ${row.sip_code}. ${why}${tried}`
    return { outcome: 'refused_by_platform' as const, explanation, advice }
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
  const cut =
    row.denial_code === null ? undefined : (denials[row.denial_code] ?? [row.denial_code, null])
  return {
    explanation:
      `The call was answered and lasted ${row.billsec} s. It was ended by the ${row.hangup_by}.` +
      (cut === undefined ? tried : ` The platform ended it: ${cut[0]}`),
    advice: cut?.[1] ?? null,
  }
}

const triedText = (attempts: number): string =>
  attempts === 0 ? ' No destination was tried.' : ` Destinations tried: ${attempts}.`
