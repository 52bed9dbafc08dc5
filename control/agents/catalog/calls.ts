/** Tools for live calls: list them, hang one up, and simulate one. */
import { z } from 'zod'
import type { ActiveCall } from '../../../schema/contracts/calls.ts'
import { toolsFor } from '../../../schema/contracts/denials.ts'
import { planHangUp } from '../../calls/hangup-plan.ts'
import { simulateBody, simulateFor } from '../../calls/simulate.ts'
import { liveCall, liveCallView, liveStateOf, liveStates } from '../../nodes/live-call.ts'
import type { PeerRequests } from '../../nodes/other-nodes.ts'
import { defineChange, defineTool, type ToolUse, toolRequest, callUuid, MAX_ROWS } from './tool.ts'
import { dataOf } from '../../nodes/node-client.ts'

export const listActiveCalls = defineTool({
  name: 'list_active_calls',
  title: 'List live calls',
  description: `Lists the live calls, oldest first, at most ${MAX_ROWS}. total counts all matching calls.`,
  effect: 'reads',
  scopes: ['calls:read'],
  input: z.strictObject({
    state: z.enum(liveStates).optional(),
    limit: z.int().min(1).max(MAX_ROWS).default(50),
  }),
  output: z.object({
    calls: z.array(liveCall),
    total: z.int(),
    unreachable_nodes: z
      .array(z.string())
      .optional()
      .describe('Nodes of the platform that did not answer: their calls are missing.'),
  }),
  async run({ state, limit }, use) {
    const { engine, steadyNow } = use
    const calls = engine.calls
      .list()
      .filter(
        (call) => isVisible(call, use) && (state === undefined || liveStateOf(call) === state),
      )
    const own = calls.slice(0, limit).map((call) => liveCallView(call, steadyNow()))
    if (use.peers === undefined) return { calls: own, total: calls.length }
    const others = await listsOfPeers(use.peers, { state, limit })
    const all = [...own, ...others.calls].toSorted((a, b) =>
      a.start_stamp < b.start_stamp ? -1 : 1,
    )
    return {
      calls: all.slice(0, limit),
      total: calls.length + others.total,
      ...(others.unreachable.length > 0 && { unreachable_nodes: [...others.unreachable] }),
    }
  },
})

/** A node of an older version writes states in upper case. */
const listedCall = liveCall.extend({ state: z.string().toLowerCase().pipe(z.enum(liveStates)) })
const listed = z.object({ calls: z.array(listedCall).max(MAX_ROWS), total: z.int() })

/** Each node runs the tool for itself. */
async function listsOfPeers(
  peers: PeerRequests,
  input: { readonly state?: string | undefined; readonly limit: number },
) {
  const { answers, unreachable } = await peers.gather(toolRequest('list_active_calls', input))
  const lists = answers.flatMap((answer) => dataOf(answer, listed) ?? [])
  return {
    calls: lists.flatMap(({ calls }) => calls),
    total: lists.reduce((sum, { total }) => sum + total, 0),
    unreachable,
  }
}

export const hangUpCall = defineChange({
  name: 'hangup_call',
  title: 'Hang up a call',
  description:
    'Hangs up one live call on both legs. This cannot be undone. With dry_run true, it only returns the call that would end. ' +
    'Do a dry run first, and have a person confirm it.',
  effect: 'destroys',
  reason: 'optional',
  scopes: ['calls:control'],
  input: z.strictObject({
    call_uuid: callUuid,
    cause: z.int().min(1).max(127).default(16).describe('Q.850; 16 is normal clearing.'),
  }),
  output: z.object({ status: z.enum(['ending', 'would_end']), call: liveCall }),
  plan({ call_uuid: callUuid, cause }, use) {
    const { tenantId } = use.principal
    return planHangUp({ callUuid, cause, tenantId }, use)
  },
})

/** Returns a live call of the caller's tenant. */
export function findCall(uuid: string, use: ToolUse): ActiveCall | undefined {
  const call = use.engine.calls.find(uuid)
  return call !== undefined && isVisible(call, use) ? call : undefined
}

const isVisible = (call: ActiveCall, { principal: { tenantId } }: ToolUse): boolean =>
  tenantId === null || call.tenantId === tenantId

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
    other_sources: z.array(z.string()).describe('What source may name instead of the chosen one.'),
    payment: z.object({
      kind: z.string(),
      customer_id: z.int().nullable(),
      customer: nullable,
      rate: z
        .object({ prefix: z.string(), rate_per_minute_exact: z.string(), currency: z.string() })
        .nullable(),
      price_exact: nullable.describe('Of one minute, to the customer.'),
      longest_seconds: z.int().nullable(),
    }),
    order: z.string(),
    candidates: z.array(
      z.object({
        kind: z.string(),
        uri: z.string(),
        name: nullable,
        number: nullable,
        route: nullable,
        share: z.number(),
        withheld: nullable,
        carrier_price_exact: nullable.describe('The cost of one minute.'),
        margin_exact: nullable.describe('Price of one minute less that cost.'),
      }),
    ),
    passed_over: z.array(z.object({ kind: z.string(), name: z.string(), why: z.string() })),
  }),
  async run(request, use) {
    const simulation = await simulateFor(use.principal, request, use)
    const { verdict, sip_code, code, denial_text } = simulation
    const explanation = {
      goes_on: 'The call is admitted and an INVITE is sent; the answer of the destination decides.',
      refused: `The platform would refuse the call with ${sip_code ?? 0}. ${denial_text ?? ''}`,
      dropped: denial_text ?? '',
    }[verdict]
    const advice = verdict === 'refused' && code !== null ? toolsFor(code) : null
    return { ...simulation, explanation, advice }
  },
})
