import type { Context } from 'hono'
import type { ControlEnv } from '../http/control-env.ts'
import type { OtherNodes } from '../nodes/other-nodes.ts'
import type { ToolCaller } from './toolbox.ts'

/** Returns the caller of a tool from a request that passed `requires(…)`. */
export const callerOf = (c: Context<ControlEnv>, others: OtherNodes | undefined): ToolCaller => ({
  elsewhere: others?.of(c),
  isNode: c.get('nodeRequest') !== undefined,
  principal: c.get('principal'),
  address: c.get('clientAddress'),
  correlationId: c.get('correlationId'),
})
