/** Dispatcher sets and nodes as rows. An update keeps the ids and operator states of unchanged nodes. */
import { everywhere, type RequestScope } from '../../auth/tenants.ts'
import { fromFlag, toFlag } from '../../../schema/columns.ts'
import { nodeClaim } from '../../../schema/ownership/claims.ts'
import type { Store } from '../../../schema/open.ts'
import { all, execute, first, insert } from '../../../schema/sql/query.ts'
import { ApiError, notFound } from '../../http/api-error.ts'
import { withoutRelay } from '../media-fields.ts'
import { refuseUnsupported } from '../not-supported.ts'
import { tenantOf } from '../references.ts'
import type { Resource, Rows, Slice } from '../resource.ts'
import { contains, grouped, same, write } from '../../http/rows.ts'
import { refuseForeignPlaces, nothingReserved, type Reserved } from '../source-claims.ts'
import { writeWithinLimits } from '../../auth/tenant-limits.ts'
import { dispatcherBody, nodeKey, type DispatcherBody, type NodeBody } from './dispatcher-body.ts'
import { columnsOf, destinationsOf, nodeColumnsOf, urisOf } from './dispatcher-columns.ts'
import { nodeUri, refuseGateways, type WrittenDestination } from '../gateway-reach.ts'
import { refuseOwnPlaces } from '../own-places.ts'
import {
  nodeDocument,
  nodeIn,
  viewOf,
  type DispatcherView,
  type NodeRow,
  type NodeView,
  type SetRow,
} from './dispatcher-view.ts'

export class DispatcherStore implements Resource<typeof dispatcherBody, DispatcherView> {
  readonly noun = 'Dispatcher set'
  readonly body = dispatcherBody
  readonly #store: Store
  readonly #isUnresolvable: (nodeId: number) => boolean
  readonly #reserved: Reserved
  readonly #hasMediaRelay: boolean

  /** `isUnresolvable`: whether DNS does not know the node's name; unknown for a seed file. */
  constructor(
    store: Store,
    isUnresolvable: (nodeId: number) => boolean = () => false,
    reserved = nothingReserved,
    hasMediaRelay = false,
  ) {
    this.#hasMediaRelay = hasMediaRelay
    this.#store = store
    this.#isUnresolvable = isUnresolvable
    this.#reserved = reserved
  }

  async list(scope: RequestScope, { limit, offset, search }: Slice): Promise<Rows<DispatcherView>> {
    const matching = this.#visible(scope).where((row) =>
      contains(row, ['dispatcher_set.endpoint_name'], search),
    )
    const total = await first(
      this.#store,
      matching.select((row) => row.fn.countAll<number>().as('n')),
    )
    const rows = matching
      .selectAll('dispatcher_set')
      .select('tenant.slug')
      .orderBy('set_id')
      .limit(limit)
      .offset(offset)
    return { rows: await this.#views(await all(this.#store, rows)), total: total?.n ?? 0 }
  }

  async find(scope: RequestScope, id: number): Promise<DispatcherView | undefined> {
    const rows = this.#visible(scope)
      .selectAll('dispatcher_set')
      .select('tenant.slug')
      .where('dispatcher_set.id', '=', id)
    return (await this.#views(await all(this.#store, rows)))[0]
  }

  async identify({ endpoint_name, tenant }: DispatcherBody): Promise<number | undefined> {
    const tenantId = await tenantOf(this.#store, tenant, everywhere)
    const query = this.#store.db
      .selectFrom('dispatcher_set')
      .select('id')
      .where('endpoint_name', '=', endpoint_name)
      .where('tenant_id', same(tenantId), tenantId)
    return (await first(this.#store, query))?.id
  }

  async document(scope: RequestScope, id: number): Promise<DispatcherBody | undefined> {
    const set = await this.find(scope, id)
    if (set === undefined) return undefined
    const { id: _id, created_at: _created, updated_at: _updated, nodes, ...body } = set
    return { ...body, nodes: nodes.map(nodeDocument) }
  }

  destinations(body: DispatcherBody): readonly string[] {
    return destinationsOf(body).map(({ uri }) => uri)
  }

  async insert(body: DispatcherBody, scope: RequestScope): Promise<number> {
    return writeWithinLimits(this.#store, scope, ['sets', 'nodes'], async () => {
      refuseUnsupported(withoutRelay(body, undefined, this.#hasMediaRelay))
      await this.#refuseTakenName(body.endpoint_name, undefined, scope)
      const tenantId = await tenantOf(this.#store, body.tenant, scope)
      await refuseGateways(this.#store, destinationsOf(body), tenantId, scope)
      await this.#refuseForeign(body.nodes, tenantId, scope)
      const written = this.#admitNew(urisOf(body), scope)
      const id = await insert(
        this.#store,
        this.#store.db
          .insertInto('dispatcher_set')
          .values({
            ...columnsOf(body),
            ...written,
            set_id: body.set_id ?? (await this.#freeSetId()),
            tenant_id: tenantId,
            created_at: scope.now,
            updated_at: scope.now,
          })
          .returning('id'),
      )
      await this.#putNodes(id, body.nodes, scope)
      return id
    })
  }

  /** Without `set_id`, the set keeps its number. */
  async replace(id: number, body: DispatcherBody, scope: RequestScope): Promise<void> {
    await writeWithinLimits(this.#store, scope, ['sets', 'nodes'], async () => {
      const before = await this.#existing(scope, id)
      refuseUnsupported(withoutRelay(body, before, this.#hasMediaRelay))
      if (body.endpoint_name !== before.endpoint_name)
        await this.#refuseTakenName(body.endpoint_name, id, scope)
      const tenantId = await tenantOf(this.#store, body.tenant, scope)
      await refuseGateways(this.#store, destinationsOf(body), tenantId, scope)
      await this.#refuseForeign(body.nodes, tenantId, scope)
      const kept = urisOf(before)
      const fresh = urisOf(body).filter(
        ({ path, uri }) => !kept.some((each) => each.path === path && each.uri === uri),
      )
      const written = fresh.length === 0 ? {} : this.#admitNew(fresh, scope)
      const set_id = body.set_id ?? before.set_id
      if (set_id !== before.set_id) await this.#renumber(before.set_id, set_id)
      await execute(
        this.#store,
        this.#store.db
          .updateTable('dispatcher_set')
          .set({
            ...columnsOf(body),
            ...written,
            set_id,
            tenant_id: tenantId,
            updated_at: scope.now,
          })
          .where('id', '=', id),
      )
      await this.#putNodes(id, body.nodes, scope)
    })
  }

  async remove(id: number, scope: RequestScope): Promise<'removed' | 'absent'> {
    return write(this.#store, async () => {
      const set = await this.find(scope, id)
      if (set === undefined) return 'absent'
      const user = await this.#userOf(set.set_id, scope)
      if (user !== undefined)
        throw new ApiError(409, 'in_use', `${user} still sends calls to this set`)
      await execute(this.#store, this.#store.db.deleteFrom('dispatcher_set').where('id', '=', id))
      return 'removed'
    })
  }

  /** Adds one node; 409 when the set already has it. */
  async insertNode(scope: RequestScope, id: number, node: NodeBody) {
    return writeWithinLimits(this.#store, scope, ['sets', 'nodes'], async () => {
      const set = await this.#existing(scope, id)
      if (set.nodes.length >= 100)
        throw new ApiError(409, 'set_full', 'A set has at most 100 nodes')
      await this.#refuseGateway(node, set, scope)
      const nodeId = await this.#insertNode(id, node, scope, 'host')
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
    return write(this.#store, async () => {
      const before = await this.#existing(scope, id)
      const { nodes } = before
      const present = nodeIn(before, nodeId)
      const node = change(present)
      await this.#refuseGateway(node, before, scope)
      const isKept = nodeKey(present) === nodeKey(node)
      const written = isKept ? {} : this.#admitNew([{ path: 'host', uri: nodeUri(node) }], scope)
      const after = nodes.map((each) => {
        if (each.id !== nodeId) return each
        // With another host it is another node, without a known state.
        return { ...each, ...node, id: node.host === each.host ? nodeId : undefined }
      })
      this.#refuseEmptySet(nodes, after)
      await execute(
        this.#store,
        this.#store.db
          .updateTable('dispatcher_node')
          .set({ ...nodeColumnsOf(node), ...written })
          .where('id', '=', nodeId),
      )
      return { before, after: await this.#existing(scope, id) }
    })
  }

  /** Resolves with the set before. */
  async removeNode(scope: RequestScope, id: number, nodeId: number): Promise<DispatcherView> {
    return write(this.#store, async () => {
      const before = await this.#existing(scope, id)
      nodeIn(before, nodeId)
      this.#refuseEmptySet(
        before.nodes,
        before.nodes.filter((node) => node.id !== nodeId),
      )
      await execute(
        this.#store,
        this.#store.db.deleteFrom('dispatcher_node').where('id', '=', nodeId),
      )
      return before
    })
  }

  /**
   * SPECIFICATION.md §3.2: a set always has a node in service; removing the last one is rejected. A node
   * whose name DNS does not know is not in service, but a set without any may still be changed.
   */
  #refuseEmptySet(before: readonly MemberState[], after: readonly MemberState[]): void {
    const isReachable = (node: MemberState): boolean =>
      isInService(node) && (node.id === undefined || !this.#isUnresolvable(node.id))
    const isKept = after.some(isReachable) || !before.some(isReachable)
    if (after.some(isInService) && isKept) return
    throw new ApiError(409, 'last_active_node', 'The set would have no node in service')
  }

  async #refuseGateway(
    node: NodeBody,
    { tenant }: DispatcherView,
    scope: RequestScope,
  ): Promise<void> {
    const tenantId = await tenantOf(this.#store, tenant, scope)
    const uri = nodeUri(node)
    await refuseGateways(
      this.#store,
      node.is_enabled ? [{ path: 'host', uri }] : [],
      tenantId,
      scope,
    )
    await this.#refuseForeign([node], tenantId, scope, () => 'host')
  }

  /** Throws unless the scope may write these destinations; the columns that say who has. */
  #admitNew(destinations: readonly WrittenDestination[], scope: RequestScope) {
    refuseOwnPlaces(destinations, scope, this.#reserved.own)
    return { is_by_tenant: toFlag(scope.tenantId !== null) }
  }

  async #refuseForeign(
    nodes: readonly NodeBody[],
    tenantId: number | null,
    scope: RequestScope,
    path = (index: number) => `nodes.${index}.host`,
  ): Promise<void> {
    const claims = nodes.map(nodeClaim)
    await refuseForeignPlaces(
      this.#store,
      { tenantId, scope },
      claims,
      this.#reserved.networks,
      path,
    )
  }

  /**
   * A name is unique among the sets that the writer sees: a tenant's among its own (enforced by the index),
   * one written by the platform among all (SPECIFICATION.md §2.6).
   */
  async #refuseTakenName(
    name: string,
    except: number | undefined,
    { tenantId }: RequestScope,
  ): Promise<void> {
    if (tenantId !== null) return
    const query = this.#store.db
      .selectFrom('dispatcher_set')
      .select('id')
      .where('endpoint_name', '=', name)
      .where('id', '<>', except ?? 0)
    if ((await first(this.#store, query.limit(1))) === undefined) return
    throw new ApiError(409, 'duplicate', 'Another set has this endpoint name', {
      details: [{ path: 'endpoint_name', message: 'is already taken' }],
    })
  }

  /** A carrier or inbound route that uses the set; its name, where the caller may see it. */
  async #userOf(setId: number, { tenantId }: RequestScope): Promise<string | undefined> {
    const { db } = this.#store
    const carriers = db
      .selectFrom('carrier')
      .select(['name', 'tenant_id'])
      .where('inbound_set_id', '=', setId)
    const routes = db
      .selectFrom('inbound_route')
      .select(['name', 'tenant_id'])
      .where('target_type', '=', 'set')
      .where('target', '=', String(setId))
    const user = await first(this.#store, carriers.unionAll(routes).limit(1))
    return user && (tenantId === null || user.tenant_id === tenantId ? user.name : 'The platform')
  }

  /** References to a set follow its new number. */
  async #renumber(from: number, to: number): Promise<void> {
    const { db } = this.#store
    await execute(
      this.#store,
      db.updateTable('carrier').set({ inbound_set_id: to }).where('inbound_set_id', '=', from),
    )
    await execute(
      this.#store,
      db
        .updateTable('inbound_route')
        .set({ target: String(to) })
        .where('target_type', '=', 'set')
        .where('target', '=', String(from)),
    )
  }

  async #existing(scope: RequestScope, id: number): Promise<DispatcherView> {
    const set = await this.find(scope, id)
    if (set === undefined) throw notFound(this.noun)
    return set
  }

  /** Updates unchanged nodes in place, so that live calls and probe state keep their node. */
  async #putNodes(
    setRowId: number,
    nodes: readonly NodeBody[],
    scope: RequestScope,
  ): Promise<void> {
    const { db } = this.#store
    const before = new Map((await this.#nodesOf([setRowId])).map((row) => [nodeKey(row), row]))
    const kept = nodes.map((node) => before.get(nodeKey(node)))
    this.#refuseEmptySet(
      [...before.values()].map((row) => ({ ...row, is_enabled: fromFlag(row.is_enabled) })),
      nodes.map((node, index) => ({
        id: kept[index]?.id,
        is_enabled: node.is_enabled,
        operator_state: kept[index]?.operator_state ?? 'active',
      })),
    )
    for (const row of before.values())
      if (!kept.includes(row))
        await execute(this.#store, db.deleteFrom('dispatcher_node').where('id', '=', row.id))
    for (const [index, node] of nodes.entries()) {
      const row = kept[index]
      if (row === undefined) await this.#insertNode(setRowId, node, scope, `nodes.${index}.host`)
      else
        await execute(
          this.#store,
          db.updateTable('dispatcher_node').set(nodeColumnsOf(node)).where('id', '=', row.id),
        )
    }
  }

  async #insertNode(
    setRowId: number,
    node: NodeBody,
    scope: RequestScope,
    path: string,
  ): Promise<number> {
    const written = this.#admitNew([{ path, uri: nodeUri(node) }], scope)
    return insert(
      this.#store,
      this.#store.db
        .insertInto('dispatcher_node')
        .values({ dispatcher_set_id: setRowId, ...nodeColumnsOf(node), ...written })
        .returning('id'),
    )
  }

  async #freeSetId(): Promise<number> {
    const taken = await all(
      this.#store,
      this.#store.db.selectFrom('dispatcher_set').select('set_id'),
    )
    const numbers = new Set(taken.map(({ set_id }) => set_id))
    for (let candidate = 1; candidate <= 65_535; candidate += 1)
      if (!numbers.has(candidate)) return candidate
    throw new ApiError(409, 'no_free_set_id', 'All dispatcher set ids are in use')
  }

  async #views(rows: readonly SetRow[]): Promise<DispatcherView[]> {
    const nodes = grouped(
      await this.#nodesOf(rows.map(({ id }) => id)),
      (node) => node.dispatcher_set_id,
    )
    return rows.map((row) => viewOf(row, nodes.get(row.id) ?? []))
  }

  async #nodesOf(setRowIds: readonly number[]): Promise<NodeRow[]> {
    const query = this.#store.db
      .selectFrom('dispatcher_node')
      .selectAll()
      .where('dispatcher_set_id', 'in', setRowIds)
      .orderBy('id')
    return all(this.#store, query)
  }

  #visible({ tenantId }: RequestScope) {
    return this.#store.db
      .selectFrom('dispatcher_set')
      .leftJoin('tenant', 'tenant.id', 'dispatcher_set.tenant_id')
      .$if(tenantId !== null, (query) => query.where('dispatcher_set.tenant_id', '=', tenantId))
  }
}

interface MemberState extends Pick<NodeView, 'is_enabled' | 'operator_state'> {
  /** Undefined for a new one. */
  readonly id?: number | undefined
}

const isInService = ({ is_enabled, operator_state }: MemberState): boolean =>
  is_enabled && operator_state === 'active'
