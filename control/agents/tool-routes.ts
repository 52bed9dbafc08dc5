/**
 * The tools over plain REST (SPECIFICATION.md §4.4), with the same checks, results and audit
 * entries as over MCP.
 */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { requires } from '../auth/requires.ts'
import { repeatable } from '../auth/idempotency.ts'
import { ApiError } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { validate, describeRoute } from '../http/validate.ts'
import type { WithOthers } from '../instances/other-instances.ts'
import { callerOf, type Toolbox } from './toolbox.ts'
import { didYouMean } from '../../schema/rules/names.ts'
import { data } from '../http/operation.ts'

const scope = z.string().meta({ examples: ['dispatcher:read'] })

const schemaView = z.looseObject({ type: z.literal('object') }).describe('JSON Schema 2020-12.')

const toolView = z
  .strictObject({
    name: z.string(),
    title: z.string(),
    description: z.string(),
    inputSchema: schemaView,
    outputSchema: schemaView,
    annotations: z.strictObject({
      readOnlyHint: z.boolean(),
      destructiveHint: z.boolean(),
      idempotentHint: z.boolean(),
      openWorldHint: z.literal(false),
    }),
    scopes: z.array(scope).describe('All of them are required.'),
  })
  .meta({ id: 'Tool' })

const exampleTool = {
  name: 'reload_dispatchers',
  title: 'Reload dispatchers',
  description: 'Reads the dispatcher sets from the database into memory again.',
  inputSchema: { type: 'object', properties: {}, additionalProperties: false },
  outputSchema: { type: 'object' },
  annotations: {
    readOnlyHint: false,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: false,
  },
  scopes: ['mcp:write', 'dispatcher:reload'],
}

const toolPath = z.strictObject({ name: z.string().max(100) })

/** Any object: the tool validates it, so that a refusal is audited. */
const toolArguments = z.record(z.string(), z.unknown())

interface ToolRoutesDeps extends WithOthers {
  readonly toolbox: Toolbox
}

export function toolRoutes(deps: ToolRoutesDeps) {
  return new Hono<ControlEnv>()
    .route('/', listToolsRoute(deps))
    .route('/', getToolRoute(deps))
    .route('/', callToolRoute(deps))
}

const listToolsRoute = ({ toolbox }: ToolRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/mcp/tools',
    describeRoute({
      id: 'listTools',
      tag: 'Tools for AI agents',
      summary: 'List the tools that MCP clients find at /mcp',
      answer: data(z.strictObject({ tools: z.array(toolView), total: z.int() }), {
        tools: [exampleTool],
        total: 1,
      }),
    }),
    requires('mcp:read'),
    (c) => {
      const tools = toolbox.list()
      return ok(c, { tools, total: tools.length })
    },
  )

const getToolRoute = ({ toolbox }: ToolRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/mcp/tools/:name',
    describeRoute({
      id: 'getTool',
      tag: 'Tools for AI agents',
      summary: 'Describe a tool, with its full schemas',
      answer: data(toolView, exampleTool),
      refusals: [400, 404],
    }),
    requires('mcp:read'),
    validate('param', toolPath),
    (c) => {
      const { name } = c.req.valid('param')
      const tool = toolbox.list().find((each) => each.name === name)
      if (tool === undefined) throw unknownTool(name, toolbox)
      return ok(c, tool)
    },
  )

const callToolRoute = (deps: ToolRoutesDeps) =>
  new Hono<ControlEnv>().post(
    '/mcp/tools/:name',
    describeRoute({
      id: 'callTool',
      tag: 'Tools for AI agents',
      summary: 'Call a tool. The list has its input and output schemas.',
      answer: data(z.record(z.string(), z.unknown()), {
        message: 'The dispatcher sets were reloaded.',
        status: 'synchronized',
      }),
      body: { setId: 1 },
      refusals: [400, 404, 409, 503],
    }),
    requires('mcp:read'),
    validate('param', toolPath),
    validate('json', toolArguments),
    // An earlier answer is repeated only to those who may still call the tool.
    (c, next) => {
      const { name } = c.req.valid('param')
      if (deps.toolbox.admits(name, c.get('principal'))) return next()
      return callTool(c, deps, name, c.req.valid('json'))
    },
    repeatable(),
    (c) => callTool(c, deps, c.req.valid('param').name, c.req.valid('json')),
  )

async function callTool(
  c: Context<ControlEnv>,
  { toolbox, others }: ToolRoutesDeps,
  name: string,
  given: object,
): Promise<Response> {
  const answer = await toolbox.call(name, given, callerOf(c, others))
  c.set('isAudited', true)
  if (answer === undefined) throw unknownTool(name, toolbox)
  if (answer.kind === 'refused') throw answer.error
  return ok(c, answer.data)
}

const unknownTool = (name: string, toolbox: Toolbox): ApiError =>
  new ApiError(
    404,
    'unknown_tool',
    `Unknown tool: GET /api/v1/mcp/tools lists the tools.${didYouMean(
      name,
      toolbox.list().map((tool) => tool.name),
    )}`,
  )
