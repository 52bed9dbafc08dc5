/** Explains a call record: its outcome, the reason, and what an operator can do. */
import { z } from 'zod'
import { moneyToDecimal } from '../../../schema/columns.ts'
import { storedDenialText, toolsFor } from '../../../schema/contracts/denials.ts'
import { unusualAbout } from '../../observe/causes/unusual-call.ts'
import type { CdrRow } from '../../reports/cdr-store.ts'
import { viewOf as recordView } from '../../reports/cdr-view.ts'
import { findRecord } from '../../reports/find-record.ts'
import { guardsOfCall } from '../../resources/guards/guards-of-call.ts'
import { defineTool } from '../tool.ts'
import { liveCall, liveCallView } from '../../nodes/live-call.ts'
import { findCall } from './call-tools.ts'
import { callRecord, noCall } from './record-tools.ts'
import { callUuid } from './shapes.ts'

export const explainCall = defineTool({
  name: 'explain_call',
  title: 'Explain a call',
  description:
    'Explains the outcome of one call: who ended or refused it, and what each destination answered. ' +
    'Also what it cost at which rate, what was unusual against the past of its customer, and what to check next; of a call refused for money, what it needed and what there was.',
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
        cost_exact: z.string(),
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
    const { signs, compared } = await unusualAbout(
      { store: use.store, tenantId: use.principal.tenantId },
      row,
    )
    const guards = row.denial_code === 'spend_guard' ? await guardsOfCall(row, use) : undefined
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
