/** Live calls: what is going on (specification §2.5), and the end of one by hand. */
import { Hono } from 'hono'
import { z } from 'zod'
import { timeToText } from '../../schema/columns.ts'
import { requires } from '../auth/requires.ts'
import type { Principal } from '../auth/principal.ts'
import type { ActiveCall, ControlDeps } from '../deps.ts'
import { conflict, notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { validate } from '../http/validate.ts'

const callUuid = z.uuid()
const hangUpBody = z.strictObject({
  call_uuid: callUuid,
  /** Q.850: 16 is normal clearing. */
  cause: z.int().min(1).max(127).default(16),
})

export function callRoutes(deps: Pick<ControlDeps, 'engine' | 'now'>) {
  const { now } = deps
  const { calls } = deps.engine
  const find = (principal: Principal, uuid: string): ActiveCall => {
    const call = calls.find(uuid)
    if (call === undefined || !isVisible(call, principal)) throw notFound('call')
    return call
  }

  return new Hono<ControlEnv>()
    .get('/pbx/calls/active', requires('calls:read'), (c) =>
      c.json(
        calls
          .list()
          .filter((call) => isVisible(call, c.var.principal))
          .map((call) => viewOf(call, now())),
      ),
    )

    .post('/telephony/hangup', requires('calls:control'), validate('json', hangUpBody), (c) => {
      const { call_uuid: uuid, cause } = c.req.valid('json')
      const call = find(c.var.principal, uuid)
      const result = calls.hangUp(uuid, cause)
      if (result === 'not_found') throw notFound('call')
      if (result === 'already_ending') throw conflict('call_ending', 'The call is ending already')
      c.set('change', { before: viewOf(call, now()), after: null })
      return ok(c, { call_uuid: uuid, status: 'ending' })
    })
}

const isVisible = (call: ActiveCall, { tenantId }: Principal): boolean =>
  tenantId === null || call.tenantId === tenantId

/** The five fields of §2.5 first. */
function viewOf(call: ActiveCall, now: number) {
  const since = call.answeredAt ?? call.startedAt
  return {
    uuid: call.callUuid,
    caller_id_number: call.callerNumber,
    destination_number: call.calledNumber,
    duration_seconds: Math.max(0, Math.floor((now - since) / 1_000)),
    state: call.state,
    direction: call.direction,
    start_stamp: timeToText(call.startedAt),
    answer_stamp: call.answeredAt === null ? null : timeToText(call.answeredAt),
    set_id: call.setId,
    node: call.node,
    carrier: call.carrier,
    customer_id: call.customerId,
  }
}
