/** Live calls: list them (SPECIFICATION.md §2.5) and hang one up. */
import type { ChangeWorld } from '../changes/kinds.ts'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { requires } from '../auth/requires.ts'
import type { Principal } from '../auth/principal.ts'
import { tellEntered, writeQuery } from '../changes/enter-write.ts'
import { planHangUp } from './hangup-plan.ts'
import { type ChangeOrder, makeChange } from '../changes/make-change.ts'
import type { ActiveCall } from '../../schema/contracts/calls.ts'
import { newUuid, type Platform } from '../http/platform.ts'
import { notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { validate } from '../http/validate.ts'
import { atNodeOfCall } from '../nodes/elsewhere.ts'
import { mergedRows, ROW_SEPARATOR, rowsIn } from '../nodes/merge-calls.ts'
import type { AskedNodes, WithOthers } from '../nodes/other-nodes.ts'
import { activeCallView } from './active-call-view.ts'
import { transferRoutes } from './transfer-routes.ts'

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

type CallDeps = ChangeWorld & Pick<Platform, 'steadyNow'> & WithOthers

export function callRoutes(deps: CallDeps) {
  const { calls } = deps.engine
  const hereOnly = { engine: deps.engine, steadyNow: deps.steadyNow }
  const find = (principal: Principal, uuid: string): ActiveCall => {
    const call = calls.find(uuid)
    if (call === undefined || !isVisible(call, principal)) throw notFound('call')
    return call
  }

  return new Hono<ControlEnv>()
    .route('/', transferRoutes(deps))
    .get('/pbx/calls/active', requires('calls:read'), validate('query', listQuery), async (c) => {
      const { node } = c.req.valid('query')
      const shown = calls
        .list()
        .filter((call) => isVisible(call, c.var.principal))
        .filter((call) => node === undefined || call.node === node)
      const own = listOf(shown, deps)
      const asked = deps.others?.of(c)
      const list = asked === undefined ? await own : await listOfAll(c, own, asked)
      return c.body(list, 200, { 'Content-Type': 'application/json' })
    })

    .post(
      '/telephony/hangup',
      requires('calls:control'),
      validate('query', writeQuery),
      validate('json', hangUpBody),
      atNodeOfCall(deps),
      async (c) => {
        const { call_uuid: uuid, cause } = c.req.valid('json')
        const { reason = null } = c.req.valid('query')
        const { principal } = c.var
        const before = activeCallView(deps)(find(principal, uuid))
        const { tenantId } = principal
        // A node asks its peers before it comes here.
        const plan = () => planHangUp({ callUuid: uuid, cause, tenantId }, hereOnly)
        const changeId = newUuid(deps.randomBytes)
        const order: ChangeOrder = {
          principal,
          tool: 'hangup_call',
          scopes: ['calls:control'],
          reason,
          changeId,
          isDryRun: false,
          expiresAt: null,
        }
        await makeChange(order, plan, deps)
        tellEntered(c, changeId, { before, after: null }, reason)
        return ok(c, { call_uuid: uuid, status: 'ending' })
      },
    )
}

/** Rows written per slice: about 5 ms. There may be 20,000 calls, and SIP shares the thread. */
const SLICE = 500

async function listOf(shown: readonly ActiveCall[], deps: CallDeps): Promise<string> {
  const view = activeCallView(deps)
  const parts: string[] = []
  for (let start = 0; start < shown.length; start += SLICE) {
    if (start > 0) await nextTurn()
    const slice = shown.slice(start, start + SLICE)
    parts.push(slice.map((call) => JSON.stringify(view(call))).join(ROW_SEPARATOR))
  }
  return `[${parts.join(ROW_SEPARATOR)}]`
}

/** Each node applies the same filter to its own calls, for the same principal. */
async function listOfAll(
  c: Context<ControlEnv>,
  own: Promise<string>,
  asked: AskedNodes,
): Promise<string> {
  const answers = await asked.all({ method: 'GET', target: c.env.incoming.url ?? '' })
  const lists = [await own, ...answers.map(({ body }) => body.toString('utf8'))]
  return mergedRows(lists.map((list) => rowsIn(list) ?? []))
}

const isVisible = (call: ActiveCall, { tenantId }: Principal): boolean =>
  tenantId === null || call.tenantId === tenantId
