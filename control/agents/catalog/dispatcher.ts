/**
 * Tools for dispatcher sets and nodes (SPECIFICATION.md §2.6, §3.2): their state now, and since
 * when.
 */
import { z } from 'zod'
import type { NodeStatus, SetStatus } from '../../../schema/contracts/engine.ts'
import { ApiError } from '../../http/api-error.ts'
import { text } from '../../http/fields.ts'
import {
  nodeHistory,
  nodeHistoryOf,
  periodInput,
  periodOf,
  visibleSets,
} from '../../observe/causes/state-history.ts'
import { planNodeState, planReload } from '../../resources/node-plan.ts'
import { recentCalls, recentView } from '../../reports/recent-calls.ts'
import { pageEndView } from '../../http/envelope.ts'
import { all } from '../../../schema/sql/query.ts'
import {
  cut,
  defineChange,
  defineTool,
  endOfPage,
  type ToolUse,
  MAX_ROWS,
  pageInput,
  setId,
  sliceOf,
} from './tool.ts'

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
  maxCalls: z.int().describe('Calls at once that it may have; 0: no limit.'),
  recent: recentView,
})

export const getDispatcherStatus = defineTool({
  name: 'get_dispatcher_status',
  title: 'Dispatcher status',
  description:
    'Returns the PBX nodes of one dispatcher set, or of all. With state, latency, live ' +
    'calls and their limit, and how many calls of the last hour were answered. ' +
    'A probing node has failed OPTIONS and gets no calls until it answers again. An ' +
    'inactive one was taken out of service by an operator.',
  effect: 'reads',
  scopes: ['dispatcher:read'],
  input: z.strictObject({
    setId: setId.optional().describe('Defaults to all sets.'),
    ...pageInput(MAX_ROWS, MAX_ROWS),
  }),
  output: z.object({
    setId: z.int().nullable().describe('Null for all sets.'),
    totalNodes: z.int(),
    activeNodes: z.int(),
    probingNodes: z.int(),
    nodes: z.array(node),
    ...pageEndView,
  }),
  async run({ setId: wanted, ...page }, use) {
    const sets =
      wanted === undefined
        ? await visibleSets(use, use.principal.tenantId)
        : [await theSet(wanted, use)]
    const members = sets.flatMap((set) => set.nodes.map((member) => ({ set: set.setId, member })))
    const nodes = members.map(({ set, member }) => nodeView(set, member))
    const listed = cut(nodes, page)
    const limits = await maxCallsOf(use, listed)
    const recent = await recentCalls(use, 'node', use.principal.tenantId)
    const { complete, cursor } = endOfPage(page, listed.length, nodes.length)
    return {
      setId: wanted ?? null,
      totalNodes: nodes.length,
      activeNodes: nodes.filter((member) => member.flags === 'ACTIVE').length,
      probingNodes: nodes.filter((member) => member.flags === 'PROBING').length,
      nodes: listed.map((each) => ({
        ...each,
        maxCalls: limits.get(each.id) ?? 0,
        recent: recent?.(each.destination) ?? null,
      })),
      complete,
      cursor,
    }
  },
})

/** Reads `max_calls` by the id of the node. */
async function maxCallsOf(
  { store }: ToolUse,
  nodes: readonly { readonly id: number }[],
): Promise<ReadonlyMap<number, number>> {
  const ids = nodes.map(({ id }) => id)
  if (ids.length === 0) return new Map()
  const query = store.db.selectFrom('dispatcher_node').select(['id', 'max_calls'])
  const rows = await all(store, query.where('id', 'in', ids))
  return new Map(rows.map(({ id, max_calls: most }) => [id, most]))
}

export const listSbcEndpoints = defineTool({
  name: 'list_sbc_endpoints',
  title: 'List SBC endpoints',
  description:
    'Lists the addresses of the nodes of all dispatcher sets. Prefer ' +
    'get_dispatcher_status, which also has their state.',
  effect: 'reads',
  scopes: ['dispatcher:read'],
  input: z.strictObject(pageInput(MAX_ROWS, MAX_ROWS)),
  output: z.object({
    totalEndpoints: z.int(),
    endpoints: z.array(
      z.object({
        endpointId: z.int(),
        address: z.string().describe('SIP URI.'),
        description: z.string().nullable(),
        setId: z.int(),
      }),
    ),
    ...pageEndView,
  }),
  async run(page, use) {
    const endpoints = (await visibleSets(use, use.principal.tenantId)).flatMap((set) =>
      set.nodes.map((member) => ({
        endpointId: member.nodeId,
        address: member.destination,
        description: member.description,
        setId: set.setId,
      })),
    )
    const listed = cut(endpoints, page)
    const { total, ...end } = endOfPage(page, listed.length, endpoints.length)
    return { totalEndpoints: total, endpoints: [...listed], ...end }
  },
})

/** Throws 404. */
async function theSet(wanted: number, use: ToolUse): Promise<SetStatus> {
  const set = (await visibleSets(use, use.principal.tenantId)).find((each) => each.setId === wanted)
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

const states = ['active', 'inactive', 'probing'] as const

export const setDispatcherState = defineChange({
  name: 'set_dispatcher_state',
  title: 'Set the state of a node',
  description:
    'Takes a node out of service, or back. inactive: live calls continue, no new calls; ' +
    'active: in service; probing: ' +
    'in service after successful probes. Takes effect from the next INVITE. The last ' +
    'active node of a set cannot be taken out. ' +
    'Do a dry run first. undo_change brings the previous state back, and so does the end ' +
    'of duration.',
  effect: 'destroys',
  reason: 'optional',
  expires: true,
  scopes: ['dispatcher:write'],
  input: z.strictObject({
    state: z.enum(states),
    setId,
    destination: text(300)
      .min(1)
      .describe('SIP URI of the node, such as sip:10.0.0.1:5060;transport=udp.'),
    expected_state: z
      .enum(states)
      .optional()
      .describe('Refused with state_differs when the node has another state now.'),
  }),
  output: z.object({
    message: z.string(),
    setId: z.int(),
    destination: z.string(),
    newState: z.enum(states),
  }),
  async plan({ state, setId: wanted, destination, expected_state: expectedState }, use) {
    await theSet(wanted, use)
    const by = use.principal.actor
    const { lasting } = use
    const order = { setId: wanted, destination, state, expectedState, by, lasting }
    const plan = await planNodeState(order, use)
    const own = { setId: wanted, destination, newState: state }
    return {
      ...plan,
      preview: { ...own, ...plan.preview },
      apply: async () => ({ ...own, ...(await plan.apply()) }),
    }
  },
})

export const reloadDispatchers = defineChange({
  name: 'reload_dispatchers',
  title: 'Reload dispatchers',
  description:
    'Reloads the dispatcher sets from the database. Live calls are not affected. ' +
    'Changes through the API take effect without it. Use it after editing the database directly.',
  effect: 'changes',
  reason: 'optional',
  scopes: ['dispatcher:reload'],
  input: z.strictObject({}),
  output: z.object({
    message: z.string(),
    status: z.enum(['synchronized', 'would_reload']).describe('would_reload: a dry run.'),
  }),
  plan: (_, use) => planReload(use),
})

export const getNodeHistory = defineTool({
  name: 'get_node_history',
  title: 'History of a node',
  description:
    'Tells what changed the state of a node. Since when it is out of service, and why. ' +
    'Failed probes, live calls and operators change it; set_dispatcher_state does, too.',
  effect: 'reads',
  readsMuch: true,
  scopes: ['dispatcher:read'],
  input: z.strictObject({
    node: z
      .union([z.int().min(1), text(300).min(1)])
      .describe('Id of the node, or its SIP URI as get_dispatcher_status shows it.'),
    ...periodInput,
    ...pageInput(100, 20),
  }),
  output: nodeHistoryOf,
  async run({ node: wanted, start, end, ...page }, use) {
    const period = periodOf({ start, end }, use.now(), { longestDays: 90, usualDays: 7 })
    const { tenantId } = use.principal
    const nodes = (await visibleSets(use, tenantId)).flatMap(({ setId, nodes: members }) =>
      members.map((node) => ({ setId, node })),
    )
    const found = nodes.find(
      ({ node }) => node.nodeId === wanted || node.destination === String(wanted),
    )
    if (found === undefined)
      throw new ApiError(
        404,
        'not_found',
        'No enabled node has this id or SIP URI. get_dispatcher_status shows the nodes',
      )
    return nodeHistory({ store: use.store, tenantId }, found, { ...period, ...sliceOf(page) })
  },
})
