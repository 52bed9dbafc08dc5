/** The tool that tells what would happen to a call, before it is made or anything is changed. */
import { z } from 'zod'
import { toolsFor } from '../../../schema/contracts/denials.ts'
import { simulateBody, simulateFor } from '../../calls/simulate.ts'
import { defineTool } from '../tool.ts'

const nullable = z.string().nullable()

export const simulateCall = defineTool({
  name: 'simulate_call',
  title: 'Simulate a call',
  description:
    'Tells what would happen to a call now, without placing it: payer, price, verdict, destinations in order, and why not others. ' +
    'Use it to find a cause, and before and after a change. explain_call explains a call that was placed.',
  effect: 'reads',
  scopes: ['calls:read'],
  input: simulateBody,
  output: z.object({
    verdict: z.enum(['goes_on', 'refused', 'dropped']),
    explanation: z.string(),
    advice: nullable,
    sip_code: z.int().nullable(),
    code: nullable,
    denial_text: nullable,
    direction: z.string(),
    emergency: z.boolean(),
    source: z.object({ kind: z.string(), id: z.int().nullable(), name: nullable }),
    payment: z.object({
      kind: z.string(),
      customer_id: z.int().nullable(),
      customer: nullable,
      rate: z
        .object({ prefix: z.string(), rate_per_minute_exact: z.string(), currency: z.string() })
        .nullable(),
      longest_seconds: z.int().nullable(),
    }),
    order: z.string(),
    candidates: z.array(
      z.object({ kind: z.string(), uri: z.string(), share: z.number(), withheld: nullable }),
    ),
    passed_over: z.array(z.object({ kind: z.string(), name: z.string(), why: z.string() })),
  }),
  async run(asked, use) {
    const simulation = await simulateFor(use.principal, asked, use)
    const { verdict, sip_code, code, denial_text } = simulation
    const explanation = {
      goes_on: 'The call is admitted and an INVITE is sent; the answer of the destination decides.',
      refused: `The platform would refuse the call with ${sip_code ?? 0}. ${denial_text ?? ''}`,
      dropped: 'The source is banned: the platform would not answer.',
    }[verdict]
    const advice = verdict === 'refused' && code !== null ? toolsFor(code) : null
    return { ...simulation, explanation, advice }
  },
})
