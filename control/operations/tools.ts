import { z } from 'zod'
import { data, type Operations } from '../http/openapi/operation.ts'

const tag = 'Tools for AI agents'

const scope = z.string().meta({ examples: ['dispatcher:read'] })
const schema = z.looseObject({ type: z.literal('object') }).describe('JSON Schema 2020-12.')
const tool = z
  .strictObject({
    name: z.string(),
    title: z.string(),
    description: z.string(),
    inputSchema: schema,
    outputSchema: schema,
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

export const toolOperations: Operations = {
  'GET /api/v1/mcp/tools': {
    id: 'listTools',
    tag,
    summary: 'List the tools that MCP clients find at /mcp',
    answer: data(z.strictObject({ tools: z.array(tool), total: z.int() }), {
      tools: [exampleTool],
      total: 1,
    }),
  },
  'GET /api/v1/mcp/tools/:name': {
    id: 'getTool',
    tag,
    summary: 'Describe a tool, with its full schemas',
    answer: data(tool, exampleTool),
    refusals: [400, 404],
  },
  'POST /api/v1/mcp/tools/:name': {
    id: 'callTool',
    tag,
    summary: 'Call a tool. The list has its input and output schemas.',
    answer: data(z.record(z.string(), z.unknown()), {
      message: 'The dispatcher sets were reloaded.',
      status: 'synchronized',
    }),
    body: { setId: 1 },
    refusals: [400, 404, 409, 503],
  },
}
