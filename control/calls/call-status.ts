/**
 * `GET /pbx/calls/{uuid}`: the state of a live call, or the result of an ended one
 * (SPECIFICATION.md §12.2).
 */
import { Hono } from 'hono'
import { sql } from 'kysely'
import { z } from 'zod'
import { timeToText } from '../../schema/columns.ts'
import { storedDenialText } from '../../schema/contracts/denials.ts'
import type { Store } from '../../schema/storage/store.ts'
import { first } from '../../schema/sql/query.ts'
import { hasOwnPrice } from '../reports/own-prices.ts'
import type { Principal } from '../auth/principal.ts'
import { requires } from '../auth/requires.ts'
import type { ActiveCall, EndedCall } from '../../schema/contracts/calls.ts'
import type { Platform } from '../http/platform.ts'
import type { WithOthers } from '../instances/other-instances.ts'
import { notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { answerOfPeer } from '../instances/peer-answers.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { isVisible, transferView, exampleCallUuid } from './active-call-view.ts'
import { count, denialTextField, exampleTime, moment, timeOrNull } from '../http/view-fields.ts'
import { data } from '../http/operation.ts'
import { directions, dispositions, hangupParties } from '../../schema/contracts/field-values.ts'
import type { CdrTable } from '../../schema/tables/calls.ts'

const disposition = z.enum(dispositions)

const hangupBy = z.enum(hangupParties)

export const direction = z.enum(directions)

export const transfer = z
  .strictObject({
    state: z.enum(['transferring', 'transferred', 'failed']),
    call_uuid: z
      .string()
      .describe(
        'The related call: the call to the transfer destination, or the call being transferred.',
      ),
    destination: z.string(),
    sip_code: z.int().nullable().describe('The SIP status with which the transfer failed.'),
  })
  .nullable()
  .describe('Null when the call was not transferred.')

const callStatus = z
  .strictObject({
    call_uuid: z.string(),
    status: z.enum([
      'originating',
      'ringing',
      'answered',
      'completed',
      'busy',
      'no_answer',
      'failed',
      'canceled',
    ]),
    caller_id_number: z.string(),
    destination_number: z.string(),
    direction,
    start_stamp: moment,
    answer_stamp: moment.nullable(),
    end_stamp: moment.nullable(),
    billsec: count.nullable(),
    disposition: disposition.nullable(),
    sip_code: z.int().nullable(),
    hangup_cause: z.string().nullable(),
    hangup_by: hangupBy.nullable(),
    denial_code: z.string().nullable(),
    denial_text: denialTextField,
    transfer,
  })
  .meta({ id: 'CallStatus' })

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
    describeRoute({
      id: 'getCall',
      tag: 'Calls',
      summary: 'Get the state of a live call, or how a call ended',
      answer: data(callStatus, {
        call_uuid: exampleCallUuid,
        status: 'completed',
        caller_id_number: '4930100',
        destination_number: '4940200',
        direction: 'outbound',
        start_stamp: exampleTime,
        answer_stamp: exampleTime,
        end_stamp: exampleTime,
        billsec: 20,
        disposition: 'ANSWERED',
        sip_code: 200,
        hangup_cause: 'NORMAL_CLEARING',
        hangup_by: 'caller',
        denial_code: null,
        denial_text: null,
        transfer: null,
      }),
      instances: 'call',
    }),
    requires('calls:read'),
    validate('param', path),
    async (c) => {
      const { uuid } = c.req.valid('param')
      const { principal } = c.var
      const live = engine.calls.find(uuid)
      if (live !== undefined && isVisible(live.tenantId, principal)) return ok(c, liveView(live))
      const ended = engine.calls.recent(uuid) ?? (await recorded(store, uuid))
      if (ended !== undefined && isVisible(ended.tenantId, principal))
        return ok(c, endedView(ended, principal))
      // The record of a call is there for all instances; before that, the instance of the call
      // alone knows it.
      const answer = ended === undefined ? await answerOfPeer(c, others) : undefined
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

function endedView(call: EndedCall, { tenantId }: Pick<Principal, 'tenantId'>) {
  // The text names the money of the payer.
  const isHidden = tenantId !== null && call.isPaidByPlatform === true
  return {
    call_uuid: call.callUuid,
    status: endedStatus[call.disposition],
    caller_id_number: call.callerNumber,
    destination_number: call.calledNumber,
    direction: call.direction,
    start_stamp: timeToText(call.startedAt),
    answer_stamp: timeOrNull(call.answeredAt),
    end_stamp: timeToText(call.endedAt),
    billsec: call.billsec,
    disposition: call.disposition,
    sip_code: call.sipCode,
    hangup_cause: call.hangupCause,
    hangup_by: call.hangupBy,
    denial_code: call.denialCode,
    denial_text: storedDenialText(call.denialCode, isHidden ? null : (call.denialText ?? null)),
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
    .select(sql<number>`CASE WHEN ${hasOwnPrice} THEN 1 ELSE 0 END`.as('hasOwnPrice'))
    .where('call_uuid', '=', uuid)
  const row = await first(store, query)
  if (row === undefined) return undefined
  const { hasOwnPrice: isOwn, denialText, ...call } = row
  return {
    ...call,
    denialText: denialText ?? undefined,
    ...(call.tenantId !== null && isOwn === 0 && { isPaidByPlatform: true as const }),
  }
}
