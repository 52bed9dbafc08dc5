/** Live calls: list them (SPECIFICATION.md §2.5) and hang one up. */
import type { ChangeDeps } from '../changes/kinds.ts'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import type { Principal } from '../auth/principal.ts'
import { requires, admitScope } from '../auth/requires.ts'
import { repeatable } from '../auth/idempotency.ts'
import { type ChangeOrder, change, recordChange, writeQuery } from '../changes/change.ts'
import { planHangUp } from './hangup-plan.ts'
import type { ActiveCall, TransferResult } from '../../schema/contracts/calls.ts'
import { roundings } from '../../schema/contracts/tariff.ts'
import { type Platform } from '../http/platform.ts'
import { notFound, conflict } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { atInstanceOfCall } from '../instances/peer-answers.ts'
import type { PeerRequests, WithOthers } from '../instances/other-instances.ts'
import {
  activeCallView,
  exampleCallUuid,
  isVisible,
  liveCallOf,
  type ActiveCallView,
} from './active-call-view.ts'
import { refusedStart } from './originate-routes.ts'
import { phoneNumber } from '../http/fields.ts'
import { bare, data, type Operation } from '../http/operation.ts'
import { count, decimal, exampleTime, moment, tagsField } from '../http/view-fields.ts'
import { direction, transfer } from './call-status.ts'

const otherUuid = '7d3f4d0e-58f1-4a0b-8d2e-3f2d1c9b8a77'

const price = z
  .strictObject({
    currency: z.string(),
    connect_fee: decimal,
    first_increment: count.describe('Seconds.'),
    first_rate_per_minute: decimal,
    increment: count.describe('Seconds.'),
    rate_per_minute: decimal,
    decimals: count.describe('To which the price is rounded.'),
    rounding: z.enum(roundings),
  })
  .describe(
    'Connect fee, first increment, then each further increment begun. Null when the call ' +
      'is free, or another OCS charges it.',
  )
  .meta({ id: 'CallPrice' })

const activeCall: z.ZodType<ActiveCallView> = z
  .strictObject({
    uuid: z.string().describe('Same value as `call_uuid`.'),
    call_uuid: z.string(),
    caller_id_number: z.string(),
    destination_number: z.string(),
    duration_seconds: count.describe('Seconds since the answer, or since the start before it.'),
    state: z.enum(['DIALING', 'RINGING', 'EARLY', 'ACTIVE', 'HELD']),
    direction,
    start_stamp: moment,
    answer_stamp: moment.nullable(),
    set_id: z.int().nullable(),
    node: z.string().nullable(),
    instance: z.string().describe('Node of this platform that has the call.'),
    node_state: z
      .enum(['active', 'probing', 'inactive'])
      .nullable()
      .describe('`inactive` when the node is being drained. The call continues until it ends.'),
    carrier: z.string().nullable(),
    caller_address: z.string().nullable().describe('Remote address of the caller leg.'),
    callee_address: z
      .string()
      .nullable()
      .describe('Remote address of the callee leg. Null before the answer.'),
    customer_id: z.int().nullable(),
    tags: tagsField,
    transfer,
    recording: z.boolean().describe('Whether the call is being recorded.'),
    cost: z
      .number()
      .nullable()
      .describe('Cost if the call ended now. Null when another OCS charges the call.'),
    cost_exact: decimal.nullable(),
    currency: z.string().nullable(),
    price: price.nullable(),
  })
  .meta({ id: 'ActiveCall' })

const transferred = z
  .strictObject({
    call_uuid: z.string(),
    transfer_uuid: z.string().describe('The call to the transfer destination.'),
    destination: z.string(),
    leg: z.enum(['caller', 'callee']),
    mode: z.literal('blind'),
    status: z.literal('transferring'),
  })
  .meta({ id: 'TransferredCall' })

const transferCall = (id: string, summary: string, body: object): Operation => ({
  id,
  tag: 'Calls',
  summary,
  body,
  answer: data(
    transferred,
    {
      call_uuid: exampleCallUuid,
      transfer_uuid: otherUuid,
      destination: '101',
      leg: 'caller',
      mode: 'blind',
      status: 'transferring',
    },
    202,
  ),
  instances: 'call',
  refusals: [402, 404, 409, 503],
})

const listQuery = z.strictObject({
  node: z
    .string()
    .max(300)
    .optional()
    .describe('Only calls on this node, for example while it drains.'),
})

const callUuid = z.guid()
const hangUpBody = z.strictObject({
  call_uuid: callUuid,
  /** Q.850: 16 is normal clearing. */
  cause: z.int().min(1).max(127).default(16),
})

type CallDeps = ChangeDeps & Pick<Platform, 'steadyNow'> & WithOthers

export function callRoutes(deps: CallDeps) {
  return new Hono<ControlEnv>()
    .route('/', transferRoutes(deps))
    .route('/', listActiveCallsRoute(deps))
    .route('/', hangUpCallRoute(deps))
}

const listActiveCallsRoute = (deps: CallDeps) =>
  new Hono<ControlEnv>().get(
    '/pbx/calls/active',
    describeRoute({
      id: 'listActiveCalls',
      tag: 'Calls',
      summary: 'List live calls',
      instances: 'all',
      answer: bare(z.array(activeCall), [
        {
          uuid: exampleCallUuid,
          call_uuid: exampleCallUuid,
          caller_id_number: '4930100',
          destination_number: '4940200',
          duration_seconds: 12,
          state: 'ACTIVE',
          direction: 'inbound',
          start_stamp: exampleTime,
          answer_stamp: exampleTime,
          set_id: 1,
          node: 'sip:10.0.0.11:5060;transport=udp',
          node_state: 'active',
          carrier: null,
          instance: 'sbc-1',
          caller_address: '203.0.113.7:5060',
          callee_address: '10.0.0.11:5060',
          customer_id: 7,
          tags: null,
          transfer: null,
          recording: false,
          cost: 0.6,
          cost_exact: '0.60',
          currency: 'USD',
          price: {
            currency: 'USD',
            connect_fee: '0.00',
            first_increment: 60,
            first_rate_per_minute: '0.60',
            increment: 1,
            rate_per_minute: '0.60',
            decimals: 4,
            rounding: 'up',
          },
        },
      ]),
    }),
    requires('calls:read'),
    validate('query', listQuery),
    async (c) => {
      const { node } = c.req.valid('query')
      const shown = deps.engine.calls
        .list()
        .filter((call) => isVisible(call.tenantId, c.var.principal))
        .filter((call) => node === undefined || call.node === node)
      const own = listOf(shown, deps, c.var.principal)
      const peers = deps.others?.of(c)
      const list = peers === undefined ? await own : await listOfAll(c, own, peers)
      return c.body(list, 200, { 'Content-Type': 'application/json' })
    },
  )

const hangUpCallRoute = (deps: CallDeps) =>
  new Hono<ControlEnv>().post(
    '/telephony/hangup',
    describeRoute({
      id: 'hangUpCall',
      tag: 'Calls',
      summary: 'Hang up a live call',
      body: { call_uuid: exampleCallUuid, cause: 16 },
      answer: data(z.strictObject({ call_uuid: z.string(), status: z.literal('ending') }), {
        call_uuid: exampleCallUuid,
        status: 'ending',
      }),
      instances: 'call',
      refusals: [404, 409],
    }),
    requires('calls:control'),
    validate('query', writeQuery),
    validate('json', hangUpBody),
    repeatable(),
    atInstanceOfCall(deps),
    async (c) => {
      const { call_uuid: uuid, cause } = c.req.valid('json')
      const { reason = null } = c.req.valid('query')
      const { principal } = c.var
      const before = activeCallView(deps, principal)(liveCallOf(deps.engine, uuid, principal))
      const { tenantId } = principal
      // An instance asks its peers before it comes here.
      const hereOnly = { engine: deps.engine, steadyNow: deps.steadyNow }
      const plan = () => planHangUp({ callUuid: uuid, cause, tenantId }, hereOnly)
      const order: ChangeOrder = {
        principal,
        tool: 'hangup_call',
        scopes: ['calls:control'],
        reason,
      }
      const { changeId } = await change(deps, order, plan)
      recordChange(c, changeId, { before, after: null }, reason)
      return ok(c, { call_uuid: uuid, status: 'ending' })
    },
  )

/** Rows written per slice: about 5 ms. There may be 20,000 calls, and SIP shares the thread. */
const SLICE = 500

async function listOf(
  shown: readonly ActiveCall[],
  deps: CallDeps,
  principal: Principal,
): Promise<string> {
  const view = activeCallView(deps, principal)
  const parts: string[] = []
  for (let start = 0; start < shown.length; start += SLICE) {
    if (start > 0) await nextTurn()
    const slice = shown.slice(start, start + SLICE)
    parts.push(slice.map((call) => JSON.stringify(view(call))).join(ROW_SEPARATOR))
  }
  return `[${parts.join(ROW_SEPARATOR)}]`
}

/** Each instance applies the same filter to its own calls, for the same principal. */
async function listOfAll(
  c: Context<ControlEnv>,
  own: Promise<string>,
  peers: PeerRequests,
): Promise<string> {
  const answers = await peers.all({ method: 'GET', target: c.env.incoming.url ?? '' })
  const lists = [await own, ...answers.map(({ body }) => body.toString('utf8'))]
  return mergedRows(lists.map((list) => rowsIn(list) ?? []))
}

const transferFields = z.strictObject({
  destination: phoneNumber({ least: 2, most: 32 }).describe(
    'An extension or a number, as the paying party would dial it.',
  ),
  leg: z
    .enum(['caller', 'callee'])
    .default('caller')
    .describe('The party to transfer. The other party is released when the destination answers.'),
  mode: z.literal('blind').default('blind'),
})
const transferBody = transferFields.extend({ call_uuid: z.guid() })
const callPath = z.strictObject({ uuid: z.guid() })

/**
 * `POST /telephony/transfer`: transfers one party of an answered call. The other party stays
 * connected until the destination answers. A transferred phone pays for the new call as if it had
 * sent REFER itself (SPECIFICATION.md §12.2); otherwise the payer of the call continues to pay.
 */
function transferRoutes({ engine, others }: Pick<Platform, 'engine'> & WithOthers) {
  const atInstance = atInstanceOfCall({ engine, others })
  const start = async (
    c: Context<ControlEnv>,
    uuid: string,
    body: z.output<typeof transferFields>,
  ) => {
    // A transferred phone pays for a new call.
    admitScope(c.var.principal, 'calls:originate')
    liveCallOf(engine, uuid, c.var.principal)
    const { destination, leg, mode } = body
    const transferUuid = transferStartedOrThrow(
      await engine.transfer({ callUuid: uuid, destination, moved: leg }),
    )
    const started = {
      call_uuid: uuid,
      transfer_uuid: transferUuid,
      destination,
      leg,
      mode,
      status: 'transferring' as const,
    }
    c.set('change', { before: null, after: started })
    c.header('Location', `/api/v1/pbx/calls/${transferUuid}`)
    return c.json({ success: true, data: started }, 202)
  }

  return new Hono<ControlEnv>()
    .post(
      '/telephony/transfer',
      describeRoute(
        transferCall('transferCall', 'Transfer one party of an answered call', {
          call_uuid: exampleCallUuid,
          destination: '101',
        }),
      ),
      requires('calls:control'),
      validate('json', transferBody),
      repeatable(),
      atInstance,
      (c) => {
        const { call_uuid: uuid, ...body } = c.req.valid('json')
        return start(c, uuid, body)
      },
    )
    .post(
      '/pbx/calls/:uuid/transfer',
      describeRoute(
        transferCall('transferCallByPath', 'Alias of `POST /api/v1/telephony/transfer`', {
          destination: '101',
        }),
      ),
      requires('calls:control'),
      validate('param', callPath),
      validate('json', transferFields),
      repeatable(),
      atInstance,
      (c) => start(c, c.req.valid('param').uuid, c.req.valid('json')),
    )
}

function transferStartedOrThrow(result: TransferResult): string {
  switch (result.kind) {
    case 'transferring':
      return result.callUuid
    case 'not_found':
      throw notFound('call')
    case 'not_answered':
      throw conflict('call_not_answered', 'The call is not answered yet')
    case 'already_ending':
      throw conflict('call_ending', 'The call is already ending')
    case 'transfer_in_progress':
      throw conflict(result.kind, 'The call is already being transferred')
    case 'not_transferable':
      throw conflict(result.kind, 'No party of the call is a phone or node with a paying customer')
    case 'denied':
    default:
      throw refusedStart(result.code)
  }
}

/**
 * Between the rows of a list. JSON texts have no line breaks inside, so a list is split without
 * parsing it.
 */
const ROW_SEPARATOR = ',\n'
/** Rows between two turns of the event loop: about 5 ms. SIP shares the thread. */
const MERGED_SLICE = 2_000

/** Undefined: it is no list of rows. */
function rowsIn(list: string): readonly string[] | undefined {
  if (!list.startsWith('[') || !list.endsWith(']')) return undefined
  return list === '[]' ? [] : list.slice(1, -1).split(ROW_SEPARATOR)
}

/**
 * Lists of live calls of several instances as one: oldest first, as each of them is. `lists`: rows
 * as JSON texts, each list in the order of `start_stamp`.
 */
async function mergedRows(lists: readonly (readonly string[])[]): Promise<string> {
  const heads = lists
    .map((rows) => ({ rows, at: 0, start: startOf(rows[0]) }))
    .filter(({ rows }) => rows.length > 0)
  const merged: string[] = []
  while (heads.length > 0) {
    let first = heads[0]
    for (const head of heads) if (first === undefined || head.start < first.start) first = head
    if (first === undefined) break
    merged.push(first.rows[first.at] ?? '')
    first.at += 1
    if (first.at === first.rows.length) heads.splice(heads.indexOf(first), 1)
    else first.start = startOf(first.rows[first.at])
    if (merged.length % MERGED_SLICE === 0) await nextTurn()
  }
  return `[${merged.join(ROW_SEPARATOR)}]`
}

/** A text of JSON has the name of a field between quotes that no string inside can have. */
const startOf = (row: string | undefined): string =>
  /"start_stamp":"([^"]*)"/.exec(row ?? '')?.[1] ?? ''
