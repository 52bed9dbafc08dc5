import { z } from 'zod'
import { directions, dispositions, mosSources } from '../../schema/contracts/field-values.ts'
import { data, list, type Operations } from '../http/openapi/operation.ts'
import { examplePrice, ledgerFields, price } from './billing.ts'
import { count, decimal, denialTextField, exampleTime, moment } from '../http/view-fields.ts'

const tag = 'Customer edge'

const ownWallet = z
  .strictObject({
    currency: z.string().nullable(),
    balance: decimal,
    balance_number: z.number(),
    credit_limit: z.number(),
    reserved: decimal,
    available: decimal,
    open_calls: count,
    low_balance_threshold: z.number(),
    is_balance_low: z.boolean(),
  })
  .meta({ id: 'OwnWallet' })

const ownEntry = ledgerFields
  .omit({ ref: true, actor: true })
  .extend({ call_uuid: z.string().nullable().describe('The charged call.') })
  .meta({ id: 'OwnLedgerEntry' })

const ownCall = z
  .strictObject({
    call_uuid: z.string(),
    direction: z.enum(directions),
    caller_id_number: z.string(),
    destination_number: z.string(),
    start_stamp: moment,
    answer_stamp: moment.nullable(),
    end_stamp: moment,
    billsec: count,
    disposition: z.enum(dispositions),
    denial_code: z.string().nullable(),
    denial_text: denialTextField,
    mos_score: z.number().nullable(),
    mos_source: z.enum(mosSources).nullable(),
    cost: z.number(),
    cost_exact: decimal,
    currency: z.string().nullable(),
    rate_prefix: z.string().nullable(),
  })
  .meta({ id: 'OwnCall' })

export const selfServiceOperations: Operations = {
  'GET /api/client/wallet': {
    id: 'getOwnWallet',
    tag,
    summary: 'Get the wallet',
    answer: data(ownWallet, {
      currency: 'USD',
      balance: '25.00',
      balance_number: 25,
      credit_limit: 0,
      reserved: '0.00',
      available: '25.00',
      open_calls: 0,
      low_balance_threshold: 5,
      is_balance_low: false,
    }),
    refusals: [404],
  },
  'GET /api/client/ledger': {
    id: 'listOwnLedgerEntries',
    tag,
    summary: 'List ledger entries: every change of the balance',
    answer: list(ownEntry, {
      id: 1,
      kind: 'topup',
      amount: 25,
      amount_exact: '25.00',
      balance_after: 25,
      balance_after_exact: '25.00',
      note: null,
      created_at: exampleTime,
      call_uuid: null,
    }),
  },
  'GET /api/client/cdrs': {
    id: 'listOwnCalls',
    tag,
    summary: 'List calls, newest first',
    answer: list(ownCall, {
      call_uuid: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11',
      direction: 'outbound',
      caller_id_number: '4930100',
      destination_number: '4940200',
      start_stamp: exampleTime,
      answer_stamp: exampleTime,
      end_stamp: exampleTime,
      billsec: 20,
      disposition: 'ANSWERED',
      denial_code: null,
      mos_score: null,
      mos_source: null,
      denial_text: null,
      cost: 0.6,
      cost_exact: '0.60',
      currency: 'USD',
      rate_prefix: '49',
    }),
  },
  'GET /api/client/rates/lookup': {
    id: 'lookUpOwnRate',
    tag,
    summary: 'Look up the price of a call',
    answer: data(price, examplePrice),
    refusals: [404],
  },
}
