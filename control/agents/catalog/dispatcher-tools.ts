/** Tools for dispatcher sets and nodes (SPECIFICATION.md §2.6, §3.2). */
import { z } from 'zod'
import { all } from '../../../schema/sql/query.ts'
import type { NodeStatus, SetStatus } from '../../../schema/contracts/dispatcher.ts'
import { ApiError } from '../../http/api-error.ts'
import { defineTool, type ToolUse } from '../tool.ts'
import { MAX_ROWS, setId } from './shapes.ts'

const flags = { active: 'ACTIVE', probing: 'PROBING', inactive: 'INACTIVE' } as const

const node = z.object({
  id: z.int(),
  setId: z.int(),
  destination: z.string().describe('SIP URI, as set_dispatcher_state expects it.'),
  state: z.enum(['active', 'probing', 'inactive']),
  flags: z.enum(['ACTIVE', 'PROBING', 'INACTIVE']).describe('The same as state.'),
  priority: z.int().describe('A lower number is preferred.'),
  weight: z.int(),
  latencyMs: z
    .number()
    .nullable()
    .describe('Smoothed round-trip time of OPTIONS. Null before the first answer.'),
  description: z.string().nullable(),
  activeCalls: z.int().describe('A drained node can be stopped when this is 0.'),
})

export const getDispatcherStatus = defineTool({
  name: 'get_dispatcher_status',
  title: 'Dispatcher status',
  description:
    'Returns the PBX nodes of one dispatcher set, or of all, with state, latency and live calls. ' +
    'A probing node has failed OPTIONS and gets no calls until it answers again. An inactive one was taken out of service by an operator.',
  effect: 'reads',
  scopes: ['dispatcher:read'],
  input: z.strictObject({ setId: setId.optional().describe('Defaults to all sets.') }),
  output: z.object({
    setId: z.int().nullable().describe('Null for all sets.'),
    totalNodes: z.int(),
    activeNodes: z.int(),
    probingNodes: z.int(),
    nodes: z.array(node).describe(`At most ${MAX_ROWS}.`),
  }),
  async run({ setId: wanted }, use) {
    const sets = wanted === undefined ? await visibleSets(use) : [await theSet(wanted, use)]
    const nodes = sets.flatMap((set) => set.nodes.map((member) => nodeView(set.setId, member)))
    return {
      setId: wanted ?? null,
      totalNodes: nodes.length,
      activeNodes: nodes.filter((member) => member.flags === 'ACTIVE').length,
      probingNodes: nodes.filter((member) => member.flags === 'PROBING').length,
      nodes: nodes.slice(0, MAX_ROWS),
    }
  },
})

export const listSbcEndpoints = defineTool({
  name: 'list_sbc_endpoints',
  title: 'List SBC endpoints',
  description:
    'Lists the addresses of the nodes of all dispatcher sets. Prefer get_dispatcher_status, which also has their state.',
  effect: 'reads',
  scopes: ['dispatcher:read'],
  input: z.strictObject({}),
  output: z.object({
    totalEndpoints: z.int(),
    endpoints: z
      .array(
        z.object({
          endpointId: z.int(),
          address: z.string().describe('SIP URI.'),
          description: z.string().nullable(),
          setId: z.int(),
        }),
      )
      .describe(`At most ${MAX_ROWS}.`),
  }),
  async run(_, use) {
    const endpoints = (await visibleSets(use)).flatMap((set) =>
      set.nodes.map((member) => ({
        endpointId: member.nodeId,
        address: member.destination,
        description: member.description,
        setId: set.setId,
      })),
    )
    return { totalEndpoints: endpoints.length, endpoints: endpoints.slice(0, MAX_ROWS) }
  },
})

/** Limits a tenant to its own sets. */
async function visibleSets({
  engine,
  store,
  principal: { tenantId },
}: ToolUse): Promise<readonly SetStatus[]> {
  if (tenantId === null) return engine.dispatcher.status()
  const query = store.db
    .selectFrom('dispatcher_set')
    .select('set_id')
    .where('tenant_id', '=', tenantId)
  const own = new Set((await all(store, query)).map(({ set_id }) => set_id))
  return engine.dispatcher.status().filter((set) => own.has(set.setId))
}

/** Throws 404. */
export async function theSet(wanted: number, use: ToolUse): Promise<SetStatus> {
  const set = (await visibleSets(use)).find((each) => each.setId === wanted)
  if (set !== undefined) return set
  throw new ApiError(
    404,
    'unknown_set',
    `There is no dispatcher set ${wanted}. get_dispatcher_status without setId shows all sets`,
  )
}

const nodeView = (set: number, member: NodeStatus) => ({
  id: member.nodeId,
  setId: set,
  destination: member.destination,
  state: member.state,
  flags: flags[member.state],
  priority: member.priority,
  weight: member.weight,
  latencyMs: member.latencyMs,
  description: member.description,
  activeCalls: member.activeCalls,
})
