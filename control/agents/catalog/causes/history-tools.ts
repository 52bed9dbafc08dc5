/** Since when a node or a trunk is down, and why; what a key did. */
import { z } from 'zod'
import { activityOf, keyActivityView } from '../../../observe/causes/key-activity.ts'
import { nodeHistory, nodeHistoryOf } from '../../../observe/causes/node-history.ts'
import { trunksOf, trunksView } from '../../../observe/causes/trunks.ts'
import { visibleSets } from '../../../observe/causes/visible-sets.ts'
import type { AppKey } from '../../../auth/app-key.ts'
import { ApiError } from '../../../http/api-error.ts'
import { text } from '../../../http/fields.ts'
import { defineTool, type ToolUse } from '../../tool.ts'
import { periodInput, periodOf } from '../../../observe/causes/period.ts'

export const getNodeHistory = defineTool({
  name: 'get_node_history',
  title: 'History of a node',
  description:
    'Tells since when a node is out of service, and what changed its state and why. ' +
    'Failed probes, live calls and operators change it; set_dispatcher_state does, too.',
  effect: 'reads',
  readsMuch: true,
  scopes: ['dispatcher:read'],
  input: z.strictObject({
    node: z
      .union([z.int().min(1), text(300).min(1)])
      .describe('Id of the node, or its SIP URI as get_dispatcher_status shows it.'),
    ...periodInput,
    limit: z.int().min(1).max(100).default(20),
  }),
  output: nodeHistoryOf,
  async run({ node: wanted, start, end, limit }, use) {
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
    return nodeHistory({ store: use.store, tenantId }, found, { ...period, limit })
  },
})

export const listTrunks = defineTool({
  name: 'list_trunks',
  title: 'List trunks',
  description:
    'Lists carriers, those that are down first: since when and why. ' +
    'With registration, gateways, live calls and the last failure.',
  effect: 'reads',
  readsMuch: true,
  scopes: ['carriers:read'],
  input: z.strictObject({
    search: text(100).optional().describe('Part of the name.'),
    troubled: z.boolean().default(false).describe('Only those that are not up.'),
    limit: z.int().min(1).max(50).default(10),
  }),
  output: trunksView,
  async run({ search, troubled, limit }, use) {
    const { store, engine, elsewhere, principal } = use
    const reader = { store, tenantId: principal.tenantId }
    const { trunks, total } = await trunksOf({ ...reader, engine, elsewhere }, search, troubled)
    return { trunks: trunks.slice(0, limit), total }
  },
})

export const getKeyActivity = defineTool({
  name: 'get_key_activity',
  title: 'Activity of a key',
  description:
    'Tells what an application key did: addresses, routes, refused attempts, changes, requests per hour. ' +
    'Use it when a key may have leaked; suspend_api_key stops a key until resume_api_key.',
  effect: 'reads',
  readsMuch: true,
  scopes: ['keys:read', 'audit:read'],
  input: z.strictObject({
    uuid: text(100).min(1).describe('Of the key, or its exact name.'),
    ...periodInput,
    limit: z.int().min(1).max(50).default(10).describe('Of each list.'),
  }),
  output: keyActivityView,
  async run({ uuid, start, end, limit }, use) {
    const { store, now } = use
    const period = periodOf({ start, end }, now(), { longestDays: 31 })
    return activityOf(store, await theKey(uuid, use), { ...period, limit }, now())
  },
})

async function theKey(wanted: string, { keys, now, principal }: ToolUse): Promise<AppKey> {
  const { tenantId, domain } = principal
  const byUuid = await keys.byUuid(wanted.toLowerCase(), tenantId)
  if (byUuid !== undefined && (domain === null || byUuid.domain === domain)) return byUuid
  const filter = { tenantId, domain, name: wanted }
  const [key, other] = (await keys.list(filter, now(), { limit: 2, offset: 0 })).keys
  if (key !== undefined && other === undefined) return key
  throw key === undefined
    ? new ApiError(
        404,
        'not_found',
        'No key has this uuid or name. list_sbc_api_keys and list_api_keys show both',
      )
    : new ApiError(409, 'ambiguous_name', 'Several keys have this name: call again with the uuid')
}
