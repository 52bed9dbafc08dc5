/**
 * The tools over plain REST (SPECIFICATION.md §4.4), with the same checks, results and audit entries as over
 * MCP.
 */
import { Hono } from 'hono'
import { z } from 'zod'
import { requires } from '../auth/requires.ts'
import { ApiError } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { validate } from '../http/validate.ts'
import type { OtherNodes } from '../nodes/other-nodes.ts'
import { callerOf, type Toolbox } from './toolbox.ts'
import { didYouMean } from '../../schema/rules/did-you-mean.ts'

const toolPath = z.strictObject({ name: z.string().max(100) })

/** Any object: the tool validates it, so that a refusal is audited. */
const toolArguments = z.record(z.string(), z.unknown())

export const toolRoutes = (toolbox: Toolbox, others: OtherNodes | undefined) =>
  new Hono<ControlEnv>()
    .get('/mcp/tools', requires('mcp:read'), (c) => {
      const tools = toolbox.list()
      return ok(c, { tools, total: tools.length })
    })

    .get('/mcp/tools/:name', requires('mcp:read'), validate('param', toolPath), (c) => {
      const { name } = c.req.valid('param')
      const tool = toolbox.list().find((each) => each.name === name)
      if (tool === undefined) throw unknownTool(name, toolbox)
      return ok(c, tool)
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
          callerOf(c, others),
        )
        c.set('isAudited', true)
        if (answer === undefined) throw unknownTool(c.req.valid('param').name, toolbox)
        if (answer.kind === 'refused') throw answer.error
        return ok(c, answer.data)
      },
    )

const unknownTool = (name: string, toolbox: Toolbox): ApiError =>
  new ApiError(
    404,
    'unknown_tool',
    `Unknown tool: GET /api/v1/mcp/tools lists the tools.${didYouMean(
      name,
      toolbox.list().map((tool) => tool.name),
    )}`,
  )
