/** Charging over HTTP for nodes with a key of scope `ocs`: answers without envelope (SPECIFICATION.md §2.7), mounted at `/api/ocs`. */
import { Hono } from 'hono'
import { denialText } from '../../schema/contracts/denials.ts'
import type { Guard } from '../../schema/contracts/charging.ts'
import type { DenialCode, OcsPort } from '../../schema/contracts/ocs.ts'
import { requiresGlobal } from '../auth/requires.ts'
import { ApiError, conflict, type ErrorStatus } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { validate } from '../http/validate.ts'
import { newUuid } from '../http/platform.ts'
import {
  authorizedView,
  authorizeQuery,
  cdrBody,
  extendBody,
  grantView,
  reportedRecord,
  settledView,
} from './ocs-bodies.ts'

interface OcsRoutesDeps {
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly randomBytes: (size: number) => Buffer
}

export function ocsRoutes(ocs: OcsPort, { now, randomBytes }: OcsRoutesDeps) {
  // Authorizing reserves money, so even the GET needs the scope to write.
  // A node asks for calls of every tenant, so its key is global.
  const node = requiresGlobal('ocs:write')
  return new Hono<ControlEnv>()
    .get('/authorize', node, validate('query', authorizeQuery), async (c) => {
      const { caller, callee, call_uuid, customer_id } = c.req.valid('query')
      const verdict = await ocs.authorizeForNode({
        callUuid: call_uuid ?? newUuid(randomBytes),
        caller,
        callee,
        customerId: customer_id ?? null,
        startedAt: now(),
      })
      if (verdict.kind === 'overloaded') throw overloaded(verdict.by)
      if (verdict.kind === 'denied') throw denied(verdict.code, verdict.detail)
      return c.json(authorizedView(verdict))
    })
    .post('/extend', node, validate('json', extendBody), async (c) => {
      const { call_uuid, used_seconds } = c.req.valid('json')
      const answer = await ocs.extendForNode(call_uuid, used_seconds)
      if (answer.kind === 'denied') throw denied(answer.code)
      return c.json({ call_uuid, ...grantView(answer) })
    })
    .post('/cdr', node, validate('json', cdrBody), async (c) => {
      const body = c.req.valid('json')
      const record = reportedRecord(body, now())
      const answer = await ocs.reportFromNode(record, JSON.stringify(body))
      if (answer.kind === 'unstored') throw overloaded('records_waiting')
      if (answer.kind === 'conflict')
        throw conflict('cdr_conflict', 'The call was already reported with another duration')
      return c.json(settledView(body.call_uuid, answer))
    })
}

const statuses: Readonly<Record<DenialCode, ErrorStatus>> = {
  insufficient_funds: 402,
  customer_inactive: 403,
  destination_blocked: 403,
  concurrent_limit: 403,
  cps_limit: 403,
  daily_spend_limit: 403,
  spend_guard: 403,
  max_call_seconds: 403,
  payer_of_other_tenant: 403,
  no_payer: 403,
  unknown_caller: 404,
  no_rate: 404,
  unknown_call: 404,
  ocs_unreachable: 503,
}

const denied = (code: DenialCode, detail?: string): ApiError =>
  new ApiError(statuses[code], code, denialText(code, detail))

const overloaded = (by: Guard): ApiError =>
  new ApiError(503, 'overloaded', denialText(by), {
    headers: { 'Retry-After': '5' },
  })
