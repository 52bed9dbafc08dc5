/** `POST /telephony/simulate`: what would happen to a call now. Nothing changes. */
import { Hono } from 'hono'
import { requires } from '../auth/requires.ts'
import type { Platform } from '../http/platform.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { validate } from '../http/validate.ts'
import { simulateBody, simulateFor } from './simulate.ts'

export const simulateRoutes = (deps: Pick<Platform, 'store' | 'engine' | 'now'>) =>
  new Hono<ControlEnv>().post(
    '/telephony/simulate',
    requires('calls:read'),
    validate('json', simulateBody),
    async (c) => ok(c, await simulateFor(c.var.principal, c.req.valid('json'), deps)),
  )
