/** Charging over HTTP for nodes with a key of scope `ocs`: answers without envelope (SPECIFICATION.md §2.7), mounted at `/api/ocs`. */
import { Hono } from 'hono'
import type { DenialCode, OcsPort } from '../../schema/contracts/ocs.ts'
import { requiresGlobal } from '../auth/requires.ts'
import { ApiError, conflict, type ErrorStatus } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { validate } from '../http/validate.ts'
import { newUuid } from '../uuid.ts'
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
      if (verdict.kind === 'overloaded') throw overloaded()
      if (verdict.kind === 'denied') throw denied(verdict.code)
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
      if (answer.kind === 'unstored') throw overloaded()
      if (answer.kind === 'conflict')
        throw conflict('cdr_conflict', 'The call was already reported with another duration')
      return c.json(settledView(body.call_uuid, answer))
    })
}

const denials: Readonly<Record<DenialCode, readonly [ErrorStatus, string]>> = {
  insufficient_funds: [402, 'The balance does not cover this call'],
  customer_inactive: [403, 'The customer is not active'],
  destination_blocked: [403, 'Calls to this destination are blocked'],
  concurrent_limit: [403, 'The customer has reached its limit of open calls'],
  cps_limit: [403, 'The customer has reached its limit of calls per second'],
  daily_spend_limit: [403, 'The customer has reached its daily spending limit'],
  spend_guard: [403, 'A spend guard stops calls to this destination'],
  max_call_seconds: [403, 'The call has reached its longest allowed duration'],
  payer_of_other_tenant: [403, 'The paying customer belongs to another tenant'],
  no_payer: [403, 'The source of the call has no customer'],
  unknown_caller: [404, 'The caller belongs to no customer'],
  no_rate: [404, 'There is no rate for this destination'],
  unknown_call: [404, 'There is no open call with this uuid'],
  ocs_unreachable: [503, 'No money can be promised at present'],
}

function denied(code: DenialCode): ApiError {
  const [status, message] = denials[code]
  return new ApiError(status, code, message)
}

const overloaded = (): ApiError =>
  new ApiError(503, 'overloaded', 'Records cannot be stored at present', {
    headers: { 'Retry-After': '5' },
  })
