import { z } from 'zod'
import { bare, data, type Answer, type Operations } from '../operation.ts'

const tag = 'Tools for agents'

/** Its own schema is in its listing. */
const tool = z.looseObject({ name: z.string(), description: z.string() }).meta({ id: 'Tool' })

const message = z
  .looseObject({ jsonrpc: z.literal('2.0') })
  .describe('As in the Model Context Protocol.')
  .meta({ id: 'JsonRpcMessage' })

const rpc: Answer = bare(message, { jsonrpc: '2.0', id: 1, result: { tools: [] } })

export const toolOperations: Operations = {
  'GET /api/v1/mcp/tools': {
    ...{ id: 'listTools', tag, summary: 'What agents may use, with schemas' },
    answer: data(z.strictObject({ tools: z.array(tool), total: z.int() }), {
      tools: [{ name: 'get_dispatcher_status', description: 'Nodes and their states' }],
      total: 1,
    }),
  },
  'POST /api/v1/mcp/tools/:name': {
    ...{ id: 'callTool', tag, summary: 'Use a tool over plain REST' },
    body: { setId: 1 },
    answer: data(z.record(z.string(), z.unknown()), { setId: 1, totalNodes: 2, activeNodes: 2 }),
    refusals: [409, 503],
  },
  'POST /mcp': {
    ...{ id: 'sendMcpMessage', tag, summary: 'Model Context Protocol over Streamable HTTP' },
    bodyType: 'application/json',
    body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    answer: rpc,
    refusals: [405],
  },
  'GET /mcp': {
    ...{ id: 'openMcpStream', tag, summary: 'Streams are not kept: 405' },
    answer: rpc,
    refusals: [405],
  },
  'DELETE /mcp': {
    ...{ id: 'closeMcpSession', tag, summary: 'Sessions are not kept: 405' },
    answer: rpc,
    refusals: [405],
  },
}
