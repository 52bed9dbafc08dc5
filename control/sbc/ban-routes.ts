/** `/guard/bans`: lists banned SIP sources, bans a source, and lifts a ban. */
import { isIP } from 'node:net'
import { Hono } from 'hono'
import { z } from 'zod'
import { timeToText } from '../../schema/columns.ts'
import { requiresGlobal } from '../auth/requires.ts'
import type { Ban } from '../../schema/contracts/engine-port.ts'
import type { ControlDeps } from '../deps.ts'
import { notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { created, ok } from '../http/envelope.ts'
import { validate } from '../http/validate.ts'

const path = '/guard/bans'
const day = 86_400

const newBan = z.strictObject({
  address: z
    .string()
    .max(45)
    .refine((text) => isIP(text) !== 0, 'Expected an IP address'),
  duration_seconds: z
    .int()
    .min(1)
    .max(30 * day)
    .default(600),
})
/** An address, or a source as in the list. */
const oneBan = z.strictObject({ source: z.string().min(1).max(60) })

export function banRoutes({ engine }: Pick<ControlDeps, 'engine'>) {
  const { guard } = engine
  return new Hono<ControlEnv>()
    .get(path, requiresGlobal('guard:read'), (c) => ok(c, guard.bans().map(viewOf)))

    .post(path, requiresGlobal('guard:write'), validate('json', newBan), async (c) => {
      const { address, duration_seconds: seconds } = c.req.valid('json')
      await guard.ban(address, seconds * 1_000)
      const data = { address, duration_seconds: seconds }
      c.set('change', { before: null, after: data })
      return created(c, `/api/v1${path}/${encodeURIComponent(address)}`, data)
    })

    .delete(
      `${path}/:source`,
      requiresGlobal('guard:write'),
      validate('param', oneBan),
      async (c) => {
        const { source } = c.req.valid('param')
        if (!(await guard.unban(source))) throw notFound('ban')
        c.set('change', { before: { source }, after: null })
        return ok(c, { source, banned: false })
      },
    )
}

const viewOf = ({ source, reason, since, until, dropped }: Ban) => ({
  source,
  reason,
  since: timeToText(since),
  until: timeToText(until),
  dropped_packets: dropped,
})
