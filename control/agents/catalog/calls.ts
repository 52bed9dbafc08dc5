/** Tools for live calls: list them, hang one up, and simulate one. */
import { z } from 'zod'
import type { ActiveCall } from '../../../schema/contracts/calls.ts'
import { toolsFor } from '../../../schema/contracts/denials.ts'
import { ApiError } from '../../http/api-error.ts'
import { cleanText } from '../../http/clean-text.ts'
import { text } from '../../http/fields.ts'
import { findTrace, traceView } from '../../calls/trace.ts'
import { planHangUp } from '../../calls/hangup-plan.ts'
import { simulateBody, simulateFor } from '../../calls/simulate.ts'
import {
  type LiveCallView,
  liveCall,
  liveCallView,
  liveStateOf,
  liveStates,
} from '../../instances/live-call.ts'
import type { PeerRequests } from '../../instances/other-instances.ts'
import {
  cut,
  defineChange,
  defineTool,
  endOfPage,
  type ToolUse,
  toolRequest,
  callUuid,
  MAX_ROWS,
  pageInput,
  pageOutput,
} from './tool.ts'
import { dataOf } from '../../instances/instance-client.ts'

export const listActiveCalls = defineTool({
  name: 'list_active_calls',
  title: 'List live calls',
  description: 'Lists the live calls. Oldest first; total counts all matching calls.',
  effect: 'reads',
  scopes: ['calls:read'],
  input: z.strictObject({
    state: z.enum(liveStates).optional(),
    limit: z.int().min(1).max(MAX_ROWS).default(50),
    cursor: text(100)
      .regex(/^\d{4}-\S+Z [\da-f-]{36}$/, 'must be the cursor of an earlier answer')
      .optional(),
  }),
  output: z.object({
    calls: z.array(liveCall),
    ...pageOutput,
    unreachable_instances: z
      .array(z.string())
      .optional()
      .describe('Instances of Tollgate that did not answer: their calls are missing.'),
  }),
  async run({ state, limit, cursor = '' }, use) {
    const { engine, steadyNow } = use
    const calls = engine.calls
      .list()
      .filter(
        (call) => isVisible(call, use) && (state === undefined || liveStateOf(call) === state),
      )
    // Each instance shows those after the cursor; which of them come first is seen when all have
    // answered.
    const own = calls
      .map((call) => liveCallView(call, steadyNow()))
      .filter((call) => placeOf(call) > cursor)
      .toSorted(byPlace)
    const others =
      use.peers === undefined
        ? undefined
        : await listsOfPeers(use.peers, { state, limit, ...(cursor !== '' && { cursor }) })
    const all = [...own, ...(others?.calls ?? [])].toSorted(byPlace)
    const listed = all.slice(0, limit)
    const last = listed.at(-1)
    const complete = listed.length === all.length && others?.isComplete !== false
    return {
      calls: listed,
      total: calls.length + (others?.total ?? 0),
      complete,
      cursor: complete || last === undefined ? null : placeOf(last),
      ...(others &&
        others.unreachable.length > 0 && { unreachable_instances: [...others.unreachable] }),
    }
  },
})

type Place = Pick<LiveCallView, 'start_stamp' | 'call_uuid'>

const placeOf = ({ start_stamp, call_uuid }: Place): string => `${start_stamp} ${call_uuid}`

const byPlace = (one: Place, other: Place): number => (placeOf(one) < placeOf(other) ? -1 : 1)

/** An instance of an older version writes states in upper case. */
const listedCall = liveCall.extend({ state: z.string().toLowerCase().pipe(z.enum(liveStates)) })
const listed = z.object({
  calls: z.array(listedCall).max(MAX_ROWS),
  total: z.int(),
  complete: z.boolean().default(true),
})

/** Each instance runs the tool for itself. */
async function listsOfPeers(
  peers: PeerRequests,
  input: { readonly state?: string | undefined; readonly limit: number; readonly cursor?: string },
) {
  const { answers, unreachable } = await peers.gather(toolRequest('list_active_calls', input))
  const lists = answers.flatMap((answer) => dataOf(answer, listed) ?? [])
  return {
    calls: lists.flatMap(({ calls }) => calls),
    total: lists.reduce((sum, { total }) => sum + total, 0),
    isComplete: lists.every(({ complete }) => complete),
    unreachable,
  }
}

export const hangUpCall = defineChange({
  name: 'hangup_call',
  title: 'Hang up a call',
  description:
    'Hangs up one live call on both legs. This cannot be undone. With dry_run true, it ' +
    'only returns the call that would end. ' +
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

/** The figures that order routes, and that loss protection judges. */
const expected = z
  .object({
    seconds: z.int(),
    price_exact: nullable,
    cost_exact: nullable,
    margin_exact: nullable,
    is_below_margin: z.boolean(),
  })
  .nullable()
  .describe('The expected call by this carrier.')

export const simulateCall = defineTool({
  name: 'simulate_call',
  title: 'Simulate a call',
  description:
    'Tells what would happen to a call now, without placing it. ' +
    'Payer, price, cost and margin, verdict, destinations in order, and why not others; ' +
    'without source it chooses one. ' +
    'Use it to find a cause, and before and after a change. explain_call explains a call ' +
    'that was placed.',
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
        presented: z.object({ number: z.string(), why: z.string() }).nullable(),
        ruled_by: z.array(z.int()).describe('Header rules of the carrier that change its INVITE.'),
        hunting: z
          .object({ next_on: z.array(z.string()).nullable(), redirects: z.string() })
          .nullable()
          .describe('Rules of the carrier about the next try. Null: the usual ones.'),
        signature: nullable.describe('Its attestation, or unsigned. Null: none is wanted.'),
        carrier_price_exact: nullable.describe('The cost of one minute.'),
        margin_exact: nullable.describe('Price of one minute less that cost.'),
        expected,
      }),
    ),
    passed_over: z.array(
      z.object({ kind: z.string(), name: z.string(), why: z.string(), expected }),
    ),
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

const step = z.object({
  ms: z.int().describe('Since the first step.'),
  leg: z.int().nullable().describe('Index into legs. Null: a decision of this platform.'),
  direction: z.enum(['received', 'sent']).nullable(),
  what: z.string().describe('Start line of a message, or the decision.'),
  detail: z
    .string()
    .describe('The address of the peer; of a decision its facts; with text the message.'),
})

export const getCallLadder = defineTool({
  name: 'get_call_ladder',
  title: 'SIP ladder of a call',
  description:
    'Returns the SIP messages and decisions of one call. In order, with milliseconds. ' +
    'Of live calls, and of calls that ended a moment ago. text true has the messages in ' +
    'full, without secrets.',
  effect: 'reads',
  isAboutCall: true,
  scopes: ['calls:read'],
  input: z.strictObject({
    call_uuid: callUuid,
    text: z.boolean().default(false),
    ...pageInput(MAX_ROWS, 50),
  }),
  output: z.object({
    started_at: z.string(),
    legs: z.array(z.object({ role: nullable, name: nullable, address: nullable })),
    is_complete: z.boolean().describe('False: the first messages are no longer stored.'),
    steps: z.array(step),
    ...pageOutput,
  }),
  async run({ call_uuid: uuid, text: isWhole, ...page }, use) {
    const trace = await findTrace(use.engine, uuid, use.principal)
    if (trace === undefined)
      throw new ApiError(
        404,
        'not_found',
        'No ladder of this call is stored any more. explain_call explains it from its record',
      )
    const { entries, peers, is_complete } = await traceView(uuid, trace, use.principal, use)
    const start = Date.parse(entries[0]?.at ?? '')
    const steps = entries.map((entry) => {
      const ms = Date.parse(entry.at) - start
      if (entry.kind === 'decision') {
        const detail = cleanText(JSON.stringify(entry.detail), MAX_DETAIL)
        return { ms, leg: null, direction: null, what: entry.what, detail }
      }
      const { leg, direction, summary, text: message, transport, address } = entry
      const detail = isWhole ? message : `${transport}/${address}`
      return { ms, leg, direction, what: summary, detail }
    })
    const listed = cut(steps, page)
    return {
      started_at: entries[0]?.at ?? '',
      legs: peers.map(({ role, name, address }) => ({ role, name, address })),
      is_complete,
      steps: [...listed],
      ...endOfPage(page, listed.length, steps.length),
    }
  },
})

const MAX_DETAIL = 400
