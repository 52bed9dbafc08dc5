import type { Context } from 'hono'
import type { ControlEnv } from '../http/control-env.ts'
import type { ToolCaller } from './toolbox.ts'

/** Returns the caller of a tool from a request that passed `requires(…)`. */
export const callerOf = (c: Context<ControlEnv>): ToolCaller => ({
  principal: c.get('principal'),
  address: c.get('clientAddress'),
  correlationId: c.get('correlationId'),
})
