/** Why a call went as it did: from the words of its record to what an operator does about it. */
import { z } from 'zod'
import type { CdrRow } from '../../pbx/reports/cdr-store.ts'
import { viewOf as recordView } from '../../pbx/reports/cdr-view.ts'
import { defineTool } from '../tool.ts'
import { findRecord } from './call-records.ts'
import { findCall, liveCall, viewOf as liveView } from './call-tools.ts'
import { callRecord, noCall } from './record-tools.ts'
import { callUuid } from './shapes.ts'

/** `denial_code` of a record → why, and what helps. */
const denials: Readonly<Record<string, readonly [why: string, advice: string]>> = {
  insufficient_funds: [
    'The customer has too little money left.',
    'get_customer_balance shows it; a person may top the wallet up.',
  ],
  customer_inactive: ['The customer is switched off.', 'Only a person may switch it on again.'],
  destination_blocked: [
    'A blocked prefix or route forbids this destination.',
    'lookup_rate shows whether the rate is blocked.',
  ],
  concurrent_limit: [
    'The customer had as many calls as it may have at once.',
    'list_active_calls shows them.',
  ],
  cps_limit: ['The customer started calls faster than it may.', 'Spread them over more time.'],
  daily_spend_limit: ['The customer spent its limit of the day.', 'It opens again at 0:00 UTC.'],
  unknown_caller: [
    'No customer has the caller number, so there is no payer.',
    'A person adds the number to a customer.',
  ],
  payer_of_other_tenant: [
    'The call would have been paid by a customer of another tenant than its source.',
    'Look whose customer has the caller number, or is named by carrier or extension.',
  ],
  no_payer: [
    'The carrier has no customer, so there is no payer.',
    'A person names its customer, or sets payer to from_number.',
  ],
  no_rate: ['The rate plan has no rate for this number.', 'lookup_rate confirms it.'],
  max_call_seconds: ['The call reached the longest duration of the customer.', 'Nothing is wrong.'],
  ocs_unreachable: ['Charging did not answer in time.', 'Look at the charging system.'],
  no_candidate: [
    'No node of the dispatcher set was in service.',
    'get_dispatcher_status shows the nodes.',
  ],
  node_limit: ['Every node had as many calls as it may have.', 'get_dispatcher_status shows them.'],
  no_gateway: ['No carrier gateway was usable for this number.', 'Look at carriers and routes.'],
  carrier_limit: ['The carrier had as many calls as it may have.', 'Raise its limit or wait.'],
  agent_limit: ['The AI agent had as many calls as it may have.', 'Raise its limit or wait.'],
  unknown_source: [
    'The source is neither a carrier, a node nor trusted.',
    'If it should be, a person adds it as a gateway.',
  ],
  unknown_extension: ['No phone is registered for this extension.', 'Check the registration.'],
  no_number: ['The request named no number.', 'The caller must dial one.'],
  malformed_number: [
    'What was dialled is no telephone number.',
    'Only digits, *, # and a leading + count; a number rule of the carrier may help.',
  ],
  unknown_name: [
    'A user name was called, and only numbers can be.',
    'A number rule of the carrier may turn the name into a number.',
  ],
  unknown_agent: ['There is no such AI agent in service.', 'Check the agent.'],
  overload: ['The platform was overloaded.', 'get_telemetry shows its load.'],
  draining: ['The process was about to stop.', 'Nothing is wrong if it was restarted.'],
  loop: ['The call came back to where it had been.', 'Check the routes of the node.'],
}

export const explainCall = defineTool({
  name: 'explain_call',
  title: 'Explain a call',
  description:
    'Tells why one call went as it did: who ended or refused it, which destinations were tried with what answer, ' +
    'what it cost at which rate, and what to look at next.',
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
        explanation: 'The call is going on; it has no record before its end.',
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
      advice: 'The attempts of the record say what each destination answered.',
    }
  const whys = {
    BUSY: 'The called side was busy.',
    CANCELED: 'The caller gave up before the answer.',
    'NO ANSWER': 'Nobody answered.',
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
      `The call was answered and lasted ${row.billsec} s; it was ended by the ${row.hangup_by}.` +
      (cut === undefined ? tried : ` It was cut: ${cut[0]}`),
    advice: cut?.[1] ?? null,
  }
}

const triedText = (attempts: number): string =>
  attempts === 0 ? ' No destination was tried.' : ` Destinations tried: ${attempts}.`
