/**
 * Dispatcher sets and their nodes (SPECIFICATION.md §2.6, §4.7 and §8). An update keeps the ids and
 * operator states of unchanged nodes, so that live calls and probe state keep their node.
 */
import { sql } from 'kysely'
import { z } from 'zod'
import { timeToText, toFlag } from '../../schema/columns.ts'
import type {
  NodeState,
  NodeStatus,
  ProbedStatus,
  SetStatus,
} from '../../schema/contracts/engine.ts'
import type { Store } from '../../schema/storage/store.ts'
import { nodeClaim } from '../../schema/rules/ownership.ts'
import { renderSpyUri, type SpyValues } from '../../schema/rules/media.ts'
import { all, execute, first } from '../../schema/sql/query.ts'
import type { ScopedResource } from '../auth/scopes.ts'
import { writeWithinLimits } from '../auth/tenant-limits.ts'
import { everywhere, type RequestScope } from '../auth/tenants.ts'
import { ApiError, notFound } from '../http/api-error.ts'
import { host, limit, port, sipUri, text, transport } from '../http/fields.ts'
import type { FoundTable } from '../http/found-by.ts'
import { write } from '../http/rows.ts'
import { count, exampleProbed, probed } from '../http/view-fields.ts'
import { type Column, nested, type Row } from '../http/field-columns.ts'
import {
  nodeUri,
  refuseForeignAddresses,
  refuseGateways,
  refuseOwnAddresses,
  type WrittenDestination,
} from './gateway-reach.ts'
import * as field from '../http/field-table.ts'
import { callerIdentity, refuseForeignCaller } from './caller-fields.ts'
import { mediaFields } from './media-fields.ts'
import { tenantOf } from './references.ts'
import {
  type Definition,
  type ResourceOptions,
  type ResourceDeps,
  ResourceStore,
  type ViewOf,
  type Writing,
} from './resource.ts'
import { childrenOf, insertRow, keyOf, putChildren, rowWith, updateRow } from './table-rows.ts'

/** The nodes of a set. A node is known by the destination of its calls. */
const nodeRows = {
  table: 'dispatcher_node',
  parent: 'dispatcher_set_id',
  keys: ['host', 'internal_port', 'transport'],
} as const

/**
 * SPECIFICATION.md §2.6: failover, round robin, weight, random, Call-ID hash. HTML forms send text;
 * a pattern accepts it, because client generators would give 8 and "8" of two enums the same name.
 */
const algorithms =
  'must be 8 (failover), 4 (round robin), 9 (weight), 6 (random) or 0 (Call-ID hash)'
const algorithm = z
  .union([z.literal([8, 4, 9, 6, 0]), z.string().regex(/^[84960]$/, algorithms)], {
    error: algorithms,
  })
  .transform(Number)

/** `404`, `"404"` or `"200-299"`: final responses to OPTIONS that mean "up". */
const okCode = z
  .union([z.int(), z.string()], { error: 'must be a status or a range of them' })
  .transform(String)
  .refine((code) => {
    const [, from, to = from] = /^([2-6]\d\d)(?:-([2-6]\d\d))?$/.exec(code) ?? []
    return from !== undefined && Number(from) <= Number(to)
  }, 'must be a final SIP status such as 404, or a range such as "200-299"')

/** Absent values default to the settings of the process (`PROBE_…`). */
const probe = z
  .strictObject({
    interval_ms: z.int().min(100).max(60_000).optional(),
    timeout_ms: z.int().min(50).max(30_000).optional(),
    fail_threshold: z.int().min(1).max(20).optional(),
    recover_threshold: z.int().min(1).max(20).optional(),
    ok_codes: z.array(okCode).min(1).max(20).optional(),
  })
  .refine(
    ({ interval_ms, timeout_ms }) =>
      interval_ms === undefined || timeout_ms === undefined || timeout_ms <= interval_ms,
    { path: ['timeout_ms'], message: 'must not exceed interval_ms' },
  )

export const nodeBody = z.strictObject({
  host,
  internal_port: port.default(5060).describe('Port to which calls and probes are sent.'),
  external_port: port
    .default(5080)
    .describe('A second port from which calls of the node are accepted.'),
  weight: z.int().min(1).max(100).default(100),
  priority: z.int().min(1).max(100).default(10).describe('A lower number is preferred.'),
  description: text(100).nullish(),
  transport: transport.default('udp'),
  is_enabled: z.boolean().default(true),
  max_calls: limit.default(0).describe('0: unlimited.'),
})

export type NodeBody = z.output<typeof nodeBody>

const nodes = z
  .array(nodeBody)
  .min(1)
  .max(100)
  .superRefine((members, context) => {
    const seen = new Set<string>()
    for (const [index, node] of members.entries()) {
      const key = keyOf(nodeRows, node)
      if (seen.has(key))
        context.addIssue({
          code: 'custom',
          path: [index, 'host'],
          message: 'is already in the set with the same port and transport',
        })
      seen.add(key)
    }
  })

/** Once the placeholders are replaced, it must be a SIP URI. */
const spyUri = z
  .string()
  .max(300)
  .refine((template) => template.includes('{call_uuid}'), 'must contain {call_uuid}')
  .refine(
    (template) => sipUri.safeParse(renderSpyUri(template, exampleSpy)).success,
    'must be a SIP URI such as "sip:spy-{mode}-{call_uuid}@{node}", with no other ' +
      'placeholder but {side}',
  )

const exampleSpy: SpyValues = {
  call_uuid: '00000000-0000-4000-8000-000000000001',
  mode: 'listen',
  side: 'caller',
  node: '192.0.2.1:5060',
}

const nodeView = z.strictObject({
  id: z.int(),
  host: z.string(),
  internal_port: z.int(),
  external_port: z.int(),
  weight: z.int().min(1).max(100),
  priority: z.int().min(1).max(100),
  description: z.string().nullable(),
  transport,
  is_enabled: z.boolean(),
  max_calls: count,
  operator_state: z.enum(['active', 'inactive']).describe('The state that an operator set.'),
  destination: z.string(),
})

const probeColumns = nested({
  interval_ms: 'probe_interval_ms',
  timeout_ms: 'probe_timeout_ms',
  fail_threshold: 'probe_fail_threshold',
  recover_threshold: 'probe_recover_threshold',
  ok_codes: 'probe_ok_codes',
})

/** Null columns are absent in the view; the view is null when all are. */
const probeColumn: Column = {
  read(row) {
    const given = Object.entries(probeColumns.read(row) as Row).filter(
      ([, value]) => value !== null,
    )
    if (given.length === 0) return null
    return Object.fromEntries(
      given.map(([field, value]) => [
        field,
        typeof value === 'string' ? (JSON.parse(value) as unknown) : value,
      ]),
    )
  },
  write: (given) => {
    const { ok_codes: codes, ...numbers } = (given ?? {}) as Partial<z.output<typeof probe>>
    const ok_codes = codes === undefined ? undefined : JSON.stringify(codes)
    return probeColumns.write?.({ ...numbers, ok_codes }) ?? {}
  },
}

export const exampleNode = {
  id: 1,
  host: '10.0.0.11',
  internal_port: 5060,
  external_port: 5080,
  weight: 100,
  priority: 10,
  description: null,
  transport: 'udp',
  is_enabled: true,
  max_calls: 0,
  operator_state: 'active',
  destination: 'sip:10.0.0.11:5060;transport=udp',
  status: { ...exampleProbed, active_calls: 3 },
}

const fields = field.table(
  {
    id: field.id,
    endpoint_name: field.required(field.name, { example: 'pbx' }),
    algorithm: field.required(
      { body: algorithm, view: z.literal([8, 4, 9, 6, 0]) },
      { example: 8 },
    ),
    set_id: field.required(
      { body: z.int().min(1).max(65_535).optional(), view: z.int() },
      { isStoredElsewhere: true, about: 'Defaults to the lowest free number.', example: 1 },
    ),
    tenant: field.tenant(),
    nodes: field.required({ body: nodes, view: z.array(nodeView) }, { example: [exampleNode] }),
    probe: field.optional({
      body: probe,
      view: z.strictObject({
        interval_ms: z.int().optional(),
        timeout_ms: z.int().optional(),
        fail_threshold: z.int().optional(),
        recover_threshold: z.int().optional(),
        ok_codes: z.array(z.string()).optional(),
      }),
      stored: () => probeColumn,
    }),
    voicemail_uri: field.optional(field.asText(sipUri), {
      about:
        'Receives calls that no phone of the tenant answers. The tenant’s set with the ' +
        'lowest number counts.',
    }),
    spy_uri: field.optional(field.asText(spyUri), {
      about:
        'SIP URI at which a supervisor joins a call. Must contain {call_uuid}; may contain ' +
        '{mode}, {side} and {node}.',
    }),
    caller_identity: callerIdentity,
    ...mediaFields,
    created_at: field.createdAt,
    updated_at: field.updatedAt,
  },
  {
    first: [
      'id',
      'set_id',
      'endpoint_name',
      'algorithm',
      'tenant',
      'probe',
      'voicemail_uri',
      'spy_uri',
      'media',
      'media_profile',
      'codecs',
      'dtmf',
    ],
  },
)

type DispatcherBody = z.output<typeof fields.body>

/** A node with its state in the engine. */
export const liveNodeView = nodeView
  .extend({
    status: probed
      .extend({
        active_calls: count.describe(
          'Live calls on this node. A drained node can be stopped when this is 0.',
        ),
      })
      .nullable()
      .describe('Current health as the engine sees it. Null when the node is disabled.'),
  })
  .meta({ id: 'DispatcherNode' })

export const liveSetView = fields.view
  .extend({ nodes: z.array(liveNodeView) })
  .meta({ id: 'DispatcherSet' })

type SetWriting = Writing<typeof fields.body, typeof fields.view>
export type SetView = ViewOf<typeof fields.view>
export type NodeView = z.output<typeof nodeView>
export type LiveNode = z.output<typeof liveNodeView>
export type LiveSet = z.output<typeof liveSetView>

/** How a search finds the nodes of sets. */
export const foundNodes = {
  kind: 'node',
  scope: 'dispatcher',
  table: sql.table('dispatcher_node'),
  joins: sql`JOIN dispatcher_set ON dispatcher_set.id = dispatcher_node.dispatcher_set_id`,
  id: 'dispatcher_node.id',
  owner: 'dispatcher_set.tenant_id',
  title: sql<string>`dispatcher_node.host || ':' || CAST(dispatcher_node.internal_port AS TEXT)`,
  beside: ['dispatcher_node.description', 'dispatcher_set.endpoint_name'],
  screen: 'nodes',
} as const satisfies FoundTable & { readonly scope: ScopedResource }

export const dispatcherSets: Definition<typeof fields.body, typeof fields.view> = {
  noun: 'Dispatcher set',
  table: 'dispatcher_set',
  path: '/dispatcher',
  scope: 'dispatcher',
  fields,
  hasOwnRoutes: true,
  children: {
    nodes: {
      ...nodeRows,
      order: 'id',
      view: ({ dispatcher_set_id: _set, is_by_tenant: _writer, ...row }) => ({
        ...row,
        is_enabled: row['is_enabled'] === 1,
        destination: nodeUri(row as Row & NodeBody),
      }),
      document: nodeDocument,
    },
  },
  found: { title: 'dispatcher_set.endpoint_name', screen: 'dispatcher-sets' },
  search: ['dispatcher_set.endpoint_name'],
  order: ['set_id'],
  limits: ['sets'],
  childLimits: ['nodes'],
  destinations: (set) => destinationsOf(set).map(({ uri }) => uri),
  async identify({ endpoint_name, tenant }, { store }) {
    const tenant_id = await tenantOf(store, tenant, everywhere)
    return rowWith(store, 'dispatcher_set', { endpoint_name, tenant_id })
  },
  async check({ body: set, before, scope, tenantId, deps }) {
    const { store } = deps
    if (set.endpoint_name !== before?.endpoint_name)
      await refuseTakenName(store, set.endpoint_name, before?.id, scope)
    await refuseGateways(store, destinationsOf(set), tenantId, scope)
    await refuseForeign(set.nodes, tenantId, scope, deps)
    await refuseForeignCaller(store, scope, set, before)
    const present = before === undefined ? [] : urisOf(before)
    const fresh = urisOf(set).filter(
      ({ path, uri }) => !present.some((each) => each.path === path && each.uri === uri),
    )
    const set_id = set.set_id ?? before?.set_id ?? (await freeSetId(store))
    if (before !== undefined && set_id !== before.set_id)
      await renumber(store, before.set_id, set_id)
    const isWritten = before === undefined || fresh.length > 0
    return { set_id, ...(isWritten && admitNew(fresh, scope, deps)) }
  },
  written: (id, writing) => putNodes(id, writing),
  async removing({ set_id }, scope, { store }) {
    const user = await userOf(store, set_id, scope)
    if (user === undefined) return
    throw new ApiError(409, 'in_use', `${user} still sends calls to this set`)
  },
  /** The next INVITE uses the stored sets; live calls keep their node. */
  async follow(deps, { id, before, after }) {
    const { engine, store } = deps
    await engine.dispatcher.reload()
    // Carriers and routes name a set by its number, and follow when that changes.
    const known = [before, after].flatMap((set) => set?.set_id ?? [])
    if (known.length > 0 && new Set(known).size === 1) return
    const rows = store.db.selectFrom('dispatcher_set').select('set_id').where('id', '=', id)
    const ids = known.length > 0 ? known : (await all(store, rows)).map(({ set_id }) => set_id)
    if (ids.length > 0) await engine.reloadRouting({ of: 'dispatcher_set', ids })
  },
  described: {
    tag: 'Dispatcher',
    shown: liveSetView,
    instances: 'all',
    body: { endpoint_name: 'pbx', algorithm: 8, set_id: 1, nodes: [{ host: '10.0.0.11' }] },
    patch: { algorithm: 4 },
  },
}

/** Dispatcher sets, with writes of a single node: a node is a part of its set. */
export class DispatcherSets extends ResourceStore<typeof fields.body, typeof fields.view> {
  constructor(deps: ResourceOptions) {
    super(dispatcherSets, deps)
  }

  /** Adds one node; 409 when the set already has it. */
  async insertNode(scope: RequestScope, id: number, node: NodeBody) {
    const { store } = this.deps
    return writeWithinLimits(store, scope, ['sets', 'nodes'], async () => {
      const set = await this.#existing(scope, id)
      if (set.nodes.length >= 100)
        throw new ApiError(409, 'set_full', 'A set has at most 100 nodes')
      await this.#refuseGateway(node, set, scope)
      const written = admitNew([{ path: 'host', uri: nodeUri(node) }], scope, this.deps)
      const row = { dispatcher_set_id: id, ...nodeColumnsOf(node), ...written }
      const nodeId = await insertRow(store, 'dispatcher_node', row)
      return { nodeId, after: await this.#existing(scope, id) }
    })
  }

  /** `change` makes the new node of the present one. Resolves with the set before and after. */
  async replaceNode(
    scope: RequestScope,
    id: number,
    nodeId: number,
    change: (node: NodeView) => NodeBody,
  ) {
    const { store } = this.deps
    return write(store, async () => {
      const before = await this.#existing(scope, id)
      const { nodes: present } = before
      const node = nodeIn(before, nodeId)
      const next = change(node)
      await this.#refuseGateway(next, before, scope)
      const isSameNode = keyOf(nodeRows, node) === keyOf(nodeRows, next)
      const destination = { path: 'host', uri: nodeUri(next) }
      const written = isSameNode ? {} : admitNew([destination], scope, this.deps)
      const after = present.map((each) => {
        if (each.id !== nodeId) return each
        // A node with another host is another node, whose state is not known.
        return { ...each, ...next, id: next.host === each.host ? nodeId : undefined }
      })
      refuseEmptySet(present, after, this.deps)
      await updateRow(store, 'dispatcher_node', nodeId, { ...nodeColumnsOf(next), ...written })
      return { before, after: await this.#existing(scope, id) }
    })
  }

  /** `admit` throws where this node is not to go. Resolves with the set before. */
  async removeNode(
    scope: RequestScope,
    id: number,
    nodeId: number,
    admit: (node: NodeView) => void = () => undefined,
  ): Promise<SetView> {
    const { store } = this.deps
    return write(store, async () => {
      const before = await this.#existing(scope, id)
      admit(nodeIn(before, nodeId))
      const rest = before.nodes.filter((node) => node.id !== nodeId)
      refuseEmptySet(before.nodes, rest, this.deps)
      await execute(store, store.db.deleteFrom('dispatcher_node').where('id', '=', nodeId))
      return before
    })
  }

  async #existing(scope: RequestScope, id: number): Promise<SetView> {
    const set = await this.find(scope, id)
    if (set === undefined) throw notFound(this.noun)
    return set
  }

  async #refuseGateway(node: NodeBody, { tenant }: SetView, scope: RequestScope): Promise<void> {
    const { store } = this.deps
    const tenantId = await tenantOf(store, tenant, scope)
    const called = node.is_enabled ? [{ path: 'host', uri: nodeUri(node) }] : []
    await refuseGateways(store, called, tenantId, scope)
    await refuseForeign([node], tenantId, scope, this.deps, () => 'host')
  }
}

/** Throws 404. */
export function nodeIn<Node extends { readonly id: number }>(
  { nodes: members }: { readonly nodes: readonly Node[] },
  nodeId: number,
): Node {
  const found = members.find((node) => node.id === nodeId)
  if (found === undefined) throw notFound('Node')
  return found
}

/** A node as its request body. */
export function nodeDocument(node: NodeView): NodeBody {
  const { id: _id, destination: _destination, operator_state: _state, ...given } = node
  return given
}

/** The set with the engine's state of each node. */
export function withStatus(set: SetView, [seen]: readonly SetStatus[]): LiveSet {
  const byNode = new Map(seen?.nodes.map((status) => [status.nodeId, status]))
  const members = set.nodes.map((node) => {
    const status = byNode.get(node.id)
    return { ...node, status: status === undefined ? null : statusView(status) }
  })
  return { ...set, nodes: members }
}

const statusView = (status: NodeStatus) => ({
  ...probedStatusView(status),
  active_calls: status.activeCalls,
})

/** The destinations of a set's calls. */
function destinationsOf(set: DispatcherBody): WrittenDestination[] {
  const members = set.nodes.flatMap((node, index) =>
    node.is_enabled ? [{ path: `nodes.${index}.host`, uri: nodeUri(node) }] : [],
  )
  return [...members, ...urisOf(set)]
}

/** The destinations of a set that are not its nodes. */
const urisOf = (set: Pick<DispatcherBody, 'voicemail_uri' | 'spy_uri'>): WrittenDestination[] =>
  (['voicemail_uri', 'spy_uri'] as const).flatMap((path) => {
    const uri = set[path]
    return uri == null ? [] : [{ path, uri }]
  })

const nodeColumnsOf = (node: NodeBody) => ({
  ...node,
  description: node.description ?? null,
  is_enabled: toFlag(node.is_enabled),
})

/** Throws unless the scope may write these destinations; the columns that say who has. */
function admitNew(
  destinations: readonly WrittenDestination[],
  scope: RequestScope,
  { reserved }: ResourceDeps,
) {
  refuseOwnAddresses(destinations, scope, reserved.own)
  return { is_by_tenant: toFlag(scope.tenantId !== null) }
}

async function refuseForeign(
  members: readonly NodeBody[],
  tenantId: number | null,
  scope: RequestScope,
  { store, reserved }: ResourceDeps,
  path = (index: number) => `nodes.${index}.host`,
): Promise<void> {
  const owner = { tenantId, scope }
  await refuseForeignAddresses(store, owner, members.map(nodeClaim), reserved.networks, path)
}

interface MemberState extends Pick<NodeView, 'is_enabled' | 'operator_state'> {
  /** Undefined for a new one. */
  readonly id?: number | undefined
}

const isInService = ({ is_enabled, operator_state }: MemberState): boolean =>
  is_enabled && operator_state === 'active'

/**
 * SPECIFICATION.md §3.2: a set always has a node in service; removing the last one is rejected. A
 * node whose name DNS does not know is not in service, but a set without any may still be changed.
 */
function refuseEmptySet(
  before: readonly MemberState[],
  after: readonly MemberState[],
  { isUnresolvable }: ResourceDeps,
): void {
  const isReachable = (node: MemberState): boolean =>
    isInService(node) && (node.id === undefined || !isUnresolvable(node.id))
  const staysReachable = after.some(isReachable) || !before.some(isReachable)
  if (after.some(isInService) && staysReachable) return
  throw new ApiError(409, 'last_active_node', 'The set would have no node in service')
}

async function putNodes(id: number, { body: set, scope, deps }: SetWriting): Promise<void> {
  const { store } = deps
  const present = (await childrenOf(store, nodeRows, [id], 'id')).get(id) ?? []
  const known = new Map(present.map((row) => [keyOf(nodeRows, row), row]))
  refuseEmptySet(
    present.map(memberOf),
    set.nodes.map((node) => {
      const row = known.get(keyOf(nodeRows, node))
      return row === undefined
        ? { is_enabled: node.is_enabled, operator_state: 'active' }
        : { ...memberOf(row), is_enabled: node.is_enabled }
    }),
    deps,
  )
  const rows = set.nodes.map((node, index): Row => {
    if (known.has(keyOf(nodeRows, node))) return nodeColumnsOf(node)
    const destination = { path: `nodes.${index}.host`, uri: nodeUri(node) }
    return { ...nodeColumnsOf(node), ...admitNew([destination], scope, deps) }
  })
  await putChildren(store, nodeRows, id, rows)
}

const memberOf = (row: Row): MemberState => ({
  id: Number(row['id']),
  is_enabled: row['is_enabled'] === 1,
  operator_state: row['operator_state'] === 'inactive' ? 'inactive' : 'active',
})

/**
 * A name is unique among the sets that the writer sees: a tenant's among its own (enforced by the
 * index), one written by the platform among all (SPECIFICATION.md §2.6).
 */
async function refuseTakenName(
  store: Store,
  endpointName: string,
  except: number | undefined,
  { tenantId }: RequestScope,
): Promise<void> {
  if (tenantId !== null) return
  const query = store.db
    .selectFrom('dispatcher_set')
    .select('id')
    .where('endpoint_name', '=', endpointName)
    .where('id', '<>', except ?? 0)
  if ((await first(store, query.limit(1))) === undefined) return
  throw new ApiError(409, 'duplicate', 'Another set has this endpoint name', {
    details: [{ path: 'endpoint_name', message: 'is already taken' }],
  })
}

/** A carrier or inbound route that uses the set; its name, where the caller may see it. */
async function userOf(
  store: Store,
  setId: number,
  { tenantId }: RequestScope,
): Promise<string | undefined> {
  const carriers = store.db
    .selectFrom('carrier')
    .select(['name', 'tenant_id'])
    .where('inbound_set_id', '=', setId)
  const routes = store.db
    .selectFrom('inbound_route')
    .select(['name', 'tenant_id'])
    .where('target_type', '=', 'set')
    .where('target', '=', String(setId))
  const user = await first(store, carriers.unionAll(routes).limit(1))
  return user && (tenantId === null || user.tenant_id === tenantId ? user.name : 'The platform')
}

/** References to a set follow its new number. */
async function renumber(store: Store, from: number, to: number): Promise<void> {
  const { db } = store
  const carriers = db.updateTable('carrier').set({ inbound_set_id: to })
  await execute(store, carriers.where('inbound_set_id', '=', from))
  await execute(
    store,
    db
      .updateTable('inbound_route')
      .set({ target: String(to) })
      .where('target_type', '=', 'set')
      .where('target', '=', String(from)),
  )
}

async function freeSetId(store: Store): Promise<number> {
  const taken = await all(store, store.db.selectFrom('dispatcher_set').select('set_id'))
  const numbers = new Set(taken.map(({ set_id }) => set_id))
  for (let candidate = 1; candidate <= 65_535; candidate += 1)
    if (!numbers.has(candidate)) return candidate
  throw new ApiError(409, 'no_free_set_id', 'All dispatcher set ids are in use')
}

/** Probe results of a dispatcher node or a carrier gateway, as the API shows them. */
export interface ProbedStatusView {
  readonly state: NodeState
  /** Smoothed round-trip time of the probes. */
  readonly latency_ms: number | null
  /** Status 0 when there was no response; `reason` says why. */
  readonly last_probe: {
    readonly at: string
    readonly status: number
    readonly reason: string
  } | null
  readonly probes: ProbedStatus['probes']
}

export const probedStatusView = ({
  state,
  latencyMs,
  lastProbe,
  probes,
}: ProbedStatus): ProbedStatusView => ({
  state,
  latency_ms: latencyMs,
  last_probe: lastProbe && { ...lastProbe, at: timeToText(lastProbe.at) },
  probes,
})
