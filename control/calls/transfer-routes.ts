/**
 * `POST /telephony/transfer`: transfers one party of an answered call. The other party stays connected
 * until the destination answers. A transferred phone pays for the new call as if it had sent REFER itself
 * (SPECIFICATION.md §12.2); otherwise the payer of the call continues to pay.
 */
import { Hono, type Context } from 'hono'
import { z } from 'zod'
import { admitScope, requires } from '../auth/requires.ts'
import type { TransferResult } from '../../schema/contracts/calls.ts'
import type { Platform } from '../http/platform.ts'
import type { WithOthers } from '../nodes/other-nodes.ts'
import { conflict, notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { atNodeOfCall } from '../nodes/elsewhere.ts'
import { validate } from '../http/validate.ts'
import { phoneNumber } from '../http/fields.ts'
import { refusedStart } from './refused-start.ts'

const what = z.strictObject({
  destination: phoneNumber({ least: 2, most: 32 }).describe(
    'An extension or a number, as the paying party would dial it.',
  ),
  leg: z
    .enum(['caller', 'callee'])
    .default('caller')
    .describe('The party to transfer. The other party is released when the destination answers.'),
  mode: z.literal('blind').default('blind'),
})
const transferBody = what.extend({ call_uuid: z.guid() })
const path = z.strictObject({ uuid: z.guid() })

export function transferRoutes({ engine, others }: Pick<Platform, 'engine'> & WithOthers) {
  const atNode = atNodeOfCall({ engine, others })
  const start = async (c: Context<ControlEnv>, uuid: string, body: z.output<typeof what>) => {
    const { tenantId } = c.var.principal
    // A transferred phone pays for a new call.
    admitScope(c.var.principal, 'calls:originate')
    const call = engine.calls.find(uuid)
    if (call === undefined || (tenantId !== null && call.tenantId !== tenantId))
      throw notFound('call')
    const { destination, leg, mode } = body
    const transferUuid = startedOrThrow(
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
      requires('calls:control'),
      validate('json', transferBody),
      atNode,
      (c) => {
        const { call_uuid: uuid, ...body } = c.req.valid('json')
        return start(c, uuid, body)
      },
    )
    .post(
      '/pbx/calls/:uuid/transfer',
      requires('calls:control'),
      validate('param', path),
      validate('json', what),
      atNode,
      (c) => start(c, c.req.valid('param').uuid, c.req.valid('json')),
    )
}

function startedOrThrow(result: TransferResult): string {
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
