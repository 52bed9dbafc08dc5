import type { Context } from 'hono'
import type { ControlEnv } from '../http/control-env.ts'
import type { ToolCaller } from './toolbox.ts'

/** Who a request that `requires(…)` has let in is, for the tools. */
export const callerOf = (c: Context<ControlEnv>): ToolCaller => ({
  principal: c.get('principal'),
  address: c.get('clientAddress'),
  correlationId: c.get('correlationId'),
})
