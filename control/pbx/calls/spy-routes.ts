/**
 * `POST /telephony/spy`: a supervisor listens to a live call. Somebody has to mix the media for that,
 * and Tollgate has no mixer: media flows between the phones, or through a relay that only relays.
 */
import { Hono } from 'hono'
import { z } from 'zod'
import { requires } from '../../auth/requires.ts'
import type { CallsPort } from '../../deps.ts'
import { ApiError, notFound } from '../../http/api-error.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { validate } from '../../http/validate.ts'
import { extensionNumber } from '../extension-body.ts'

const spyBody = z.strictObject({
  call_uuid: z.uuid(),
  supervisor_extension: extensionNumber,
  mode: z.enum(['listen', 'whisper', 'barge']),
  side: z.enum(['caller', 'callee', 'both']).default('both').describe('Who hears a whisper.'),
})

export function spyRoutes(calls: Pick<CallsPort, 'find'>) {
  return new Hono<ControlEnv>().post(
    '/telephony/spy',
    requires('calls:spy'),
    validate('json', spyBody),
    (c) => {
      const { call_uuid: uuid, mode } = c.req.valid('json')
      const { tenantId } = c.var.principal
      const call = calls.find(uuid)
      if (call === undefined || (tenantId !== null && call.tenantId !== tenantId))
        throw notFound('call')
      throw new ApiError(
        501,
        'spy_mode_unavailable',
        `No media server of this deployment can let a supervisor ${mode}`,
      )
    },
  )
}
