/**
 * `GET /pbx/calls/{uuid}`: the state of a live call, or the result of an ended one (SPECIFICATION.md
 * §12.2).
 */
import { Hono } from 'hono'
import { z } from 'zod'
import { timeToText } from '../../schema/columns.ts'
import { storedDenialText } from '../../schema/contracts/denials.ts'
import type { CdrTable } from '../../schema/database.ts'
import type { Store } from '../../schema/open.ts'
import { first } from '../../schema/sql/query.ts'
import { requires } from '../auth/requires.ts'
import type { ActiveCall, EndedCall } from '../../schema/contracts/calls.ts'
import type { Platform } from '../http/platform.ts'
import type { WithOthers } from '../nodes/other-nodes.ts'
import { notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { fromElsewhere } from '../nodes/elsewhere.ts'
import { validate } from '../http/validate.ts'
import { isVisible, transferView } from './active-call-view.ts'

type Status =
  | 'originating'
  | 'ringing'
  | 'answered'
  | 'completed'
  | 'busy'
  | 'no_answer'
  | 'failed'
  | 'canceled'

/** The uuid of a call that a node reported may be any text. */
const path = z.strictObject({ uuid: z.string().max(200) })

export function callStatusRoutes({
  store,
  engine,
  others,
}: Pick<Platform, 'store' | 'engine'> & WithOthers) {
  return new Hono<ControlEnv>().get(
    '/pbx/calls/:uuid',
    requires('calls:read'),
    validate('param', path),
    async (c) => {
      const { uuid } = c.req.valid('param')
      const { principal } = c.var
      const live = engine.calls.find(uuid)
      if (live !== undefined && isVisible(live.tenantId, principal)) return ok(c, liveView(live))
      const ended = engine.calls.recent(uuid) ?? (await recorded(store, uuid))
      if (ended !== undefined && isVisible(ended.tenantId, principal))
        return ok(c, endedView(ended))
      // The record of a call is there for all nodes; before that, the node of the call alone knows it.
      const answer = ended === undefined ? await fromElsewhere(c, others) : undefined
      if (answer === undefined) throw notFound('call')
      return answer
    },
  )
}

function liveView(call: ActiveCall) {
  return {
    call_uuid: call.callUuid,
    status: liveStatus[call.state],
    caller_id_number: call.callerNumber,
    destination_number: call.calledNumber,
    direction: call.direction,
    start_stamp: timeToText(call.startedAt + call.stampOffsetMs),
    answer_stamp:
      call.answeredAt === null ? null : timeToText(call.answeredAt + call.stampOffsetMs),
    end_stamp: null,
    billsec: null,
    disposition: null,
    sip_code: null,
    hangup_cause: null,
    hangup_by: null,
    denial_code: null,
    denial_text: null,
    transfer: transferView(call),
  }
}

const liveStatus: Readonly<Record<ActiveCall['state'], Status>> = {
  DIALING: 'originating',
  RINGING: 'ringing',
  EARLY: 'ringing',
  ACTIVE: 'answered',
  HELD: 'answered',
}

export type CallStatusView = ReturnType<typeof liveView> | ReturnType<typeof endedView>

function endedView(call: EndedCall) {
  return {
    call_uuid: call.callUuid,
    status: endedStatus[call.disposition],
    caller_id_number: call.callerNumber,
    destination_number: call.calledNumber,
    direction: call.direction,
    start_stamp: timeToText(call.startedAt),
    answer_stamp: call.answeredAt === null ? null : timeToText(call.answeredAt),
    end_stamp: timeToText(call.endedAt),
    billsec: call.billsec,
    disposition: call.disposition,
    sip_code: call.sipCode,
    hangup_cause: call.hangupCause,
    hangup_by: call.hangupBy,
    denial_code: call.denialCode,
    denial_text: storedDenialText(call.denialCode, call.denialText ?? null),
    transfer: null,
  }
}

const endedStatus: Readonly<Record<CdrTable['disposition'], Status>> = {
  ANSWERED: 'completed',
  BUSY: 'busy',
  'NO ANSWER': 'no_answer',
  CANCELED: 'canceled',
  FAILED: 'failed',
  CONGESTION: 'failed',
}

async function recorded(store: Store, uuid: string): Promise<EndedCall | undefined> {
  const query = store.db
    .selectFrom('cdr')
    .select([
      'call_uuid as callUuid',
      'caller_id_number as callerNumber',
      'destination_number as calledNumber',
      'direction',
      'start_stamp as startedAt',
      'answer_stamp as answeredAt',
      'end_stamp as endedAt',
      'billsec',
      'disposition',
      'sip_code as sipCode',
      'hangup_cause as hangupCause',
      'hangup_by as hangupBy',
      'denial_code as denialCode',
      'denial_text as denialText',
      'tenant_id as tenantId',
    ])
    .where('call_uuid', '=', uuid)
  const row = await first(store, query)
  return row && { ...row, denialText: row.denialText ?? undefined }
}
