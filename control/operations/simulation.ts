import { z } from 'zod'
import { directions } from '../../schema/contracts/field-values.ts'
import { passedOverReasons } from '../../schema/contracts/simulation.ts'
import { data, type Operations } from '../http/openapi/operation.ts'
import { decimal, denialTextField, exampleTime, moment } from '../http/view-fields.ts'

const candidate = z.strictObject({
  kind: z.enum(['node', 'gateway', 'agent', 'extension', 'domain']),
  uri: z.string(),
  name: z.string().nullable().describe('Of the carrier, the agent or the extension.'),
  id: z.int().nullable().describe('Of the node, the carrier or the agent.'),
  number: z.string().nullable().describe('The number sent there. Null: as dialled.'),
  route: z.string().nullable().describe('The outbound route.'),
  phones: z.int().nullable().describe('Registered phones of an extension.'),
  withheld: z
    .string()
    .nullable()
    .describe('Why nothing would be sent there, as a `denial_code`. Null: it is tried.'),
  withheld_text: z.string().nullable().describe('The same in a sentence, with what to do.'),
  share: z.number().min(0).max(1).describe('The part of many such calls that is sent here first.'),
  carrier_price_exact: decimal
    .nullable()
    .describe('Least-cost routes: what a call of one minute costs by this carrier.'),
})

const simulation = z
  .strictObject({
    verdict: z
      .enum(['goes_on', 'refused', 'dropped'])
      .describe(
        '`goes_on`: an INVITE is sent. `dropped`: the source is banned; no answer is sent.',
      ),
    sip_code: z.int().nullable().describe('With which the call would be refused.'),
    reason: z.string().nullable(),
    code: z.string().nullable().describe('As `denial_code` of a call record.'),
    denial_text: denialTextField,
    from: z.string(),
    to: z.string().describe('After the number rules of the carrier that calls.'),
    direction: z.enum(directions),
    emergency: z.boolean().describe('It skips the wallet and all limits.'),
    source: z
      .strictObject({
        kind: z.enum(['trusted', 'carrier', 'node', 'proxy', 'extension', 'unknown']),
        id: z.int().nullable(),
        name: z.string().nullable(),
      })
      .describe('Who would be recognized as the caller.'),
    payment: z.strictObject({
      kind: z
        .enum(['asked', 'free', 'not_asked', 'elsewhere'])
        .describe(
          '`free`: no wallet is asked. `not_asked`: the call ends before. `elsewhere`: another system charges.',
        ),
      customer_id: z.int().nullable(),
      customer: z.string().nullable(),
      code: z.string().nullable().describe('Why charging would refuse.'),
      rate: z
        .strictObject({
          prefix: z.string(),
          currency: z.string(),
          connect_fee_exact: decimal,
          rate_per_minute_exact: decimal,
          first_increment: z.int(),
          increment: z.int(),
        })
        .nullable()
        .describe('Null: there is none, or the credential lacks `rates:read`.'),
      at: moment.nullable().describe('When that rate is in force.'),
      longest_seconds: z
        .int()
        .nullable()
        .describe(
          'The longest call that the wallet pays for now. Null: not limited, or not known.',
        ),
    }),
    order: z
      .enum(['fixed', 'turn', 'drawn', 'call_id'])
      .describe(
        'Of the candidates. `turn`: that of the next call. `drawn`: by chance; the most probable one is shown. `call_id`: that of this Call-ID.',
      ),
    set_id: z.int().nullable().describe('The dispatcher set that was asked.'),
    candidates: z.array(candidate).describe('In the order in which they are tried.'),
    passed_over: z
      .array(
        z.strictObject({
          kind: z.enum(['node', 'route', 'gateway']),
          name: z.string(),
          uri: z.string().nullable(),
          why: z.enum(passedOverReasons),
        }),
      )
      .describe('What takes no part, and why; at most 50.'),
  })
  .meta({ id: 'Simulation' })

export const simulationOperations: Operations = {
  'POST /api/v1/telephony/simulate': {
    id: 'simulateCall',
    tag: 'Calls',
    summary: 'Tell what would happen to a call now: source, payer, price and destinations',
    body: { from: '4930100', to: '4940200', source: 'trunk' },
    answer: data(simulation, {
      verdict: 'goes_on',
      sip_code: null,
      reason: null,
      code: null,
      denial_text: null,
      from: '4930100',
      to: '4940200',
      direction: 'inbound',
      emergency: false,
      source: { kind: 'carrier', id: 1, name: 'trunk' },
      payment: {
        kind: 'asked',
        customer_id: 7,
        customer: 'acme',
        code: null,
        rate: {
          prefix: '49',
          currency: 'USD',
          connect_fee_exact: '0.00',
          rate_per_minute_exact: '0.60',
          first_increment: 1,
          increment: 1,
        },
        at: exampleTime,
        longest_seconds: 1_000,
      },
      order: 'turn',
      set_id: 1,
      candidates: [
        {
          kind: 'node',
          uri: 'sip:10.0.0.11:5060;transport=udp',
          name: null,
          id: 1,
          number: null,
          route: null,
          phones: null,
          withheld: null,
          share: 1,
          withheld_text: null,
          carrier_price_exact: null,
        },
      ],
      passed_over: [
        {
          kind: 'node',
          name: 'sip:10.0.0.12:5060;transport=udp',
          uri: 'sip:10.0.0.12:5060;transport=udp',
          why: 'drained',
        },
      ],
    }),
    refusals: [404],
  },
}
