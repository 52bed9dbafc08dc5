/** The tools over plain REST (SPECIFICATION.md §4.4): the same checks, results and audit as over MCP. */
import { Hono } from 'hono'
import { z } from 'zod'
import { requires } from '../auth/requires.ts'
import { ApiError } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { validate } from '../http/validate.ts'
import { callerOf } from './caller.ts'
import type { Toolbox } from './toolbox.ts'

const toolPath = z.strictObject({ name: z.string().max(100) })

/** Any object: the tool checks it, so that a refusal is in the audit. */
const toolArguments = z.record(z.string(), z.unknown())

export const toolRoutes = (toolbox: Toolbox) =>
  new Hono<ControlEnv>()
    .get('/mcp/tools', requires('mcp:read'), (c) => {
      const tools = toolbox.list()
      return ok(c, { tools, total: tools.length })
    })

    .post(
      '/mcp/tools/:name',
      requires('mcp:read'),
      validate('param', toolPath),
      validate('json', toolArguments),
      async (c) => {
        const answer = await toolbox.call(
          c.req.valid('param').name,
          c.req.valid('json'),
          callerOf(c),
        )
        c.set('isAudited', true)
        if (answer === undefined)
          throw new ApiError(
            404,
            'unknown_tool',
            'There is no such tool: GET /api/v1/mcp/tools names them',
          )
        if (answer.kind === 'refused') throw answer.error
        return ok(c, answer.data)
      },
    )
