/** `/dispatcher`: sets, their state in the engine, and operations on nodes. */
import type { ChangeDeps } from '../changes/kinds.ts'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import type { Principal } from '../auth/principal.ts'
import { requires } from '../auth/requires.ts'
import { repeatable } from '../auth/idempotency.ts'
import type { EnginePort } from '../../schema/contracts/engine.ts'
import {
  changeDuration,
  type ChangeOrder,
  changeReason,
  change,
  recordChange,
  writeQuery,
  writesOf,
} from '../changes/change.ts'
import { type NodeStateOrder, type NodeStateDeps, planNodeState, planReload } from './node-plan.ts'
import { type WithOthers, countsOfPeers } from '../instances/other-instances.ts'
import { conflict } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { created, ok } from '../http/envelope.ts'
import { refuseOtherVersion, showVersion, versioned, versionOf } from '../http/precondition.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { patched, patchOf } from './patch.ts'
import { found, id, idParam, resourceRoutes, withLookUp } from './resource-routes.ts'
import { nodeUri } from './gateway-reach.ts'
import { type RequestScope, requestScope } from '../auth/tenants.ts'
import { resourceDeps } from './resource.ts'
import {
  DispatcherSets,
  dispatcherSets,
  type LiveNode,
  type LiveSet,
  nodeBody,
  type NodeBody,
  nodeDocument,
  nodeIn,
  type NodeView,
  type SetView,
  withStatus,
  exampleNode,
  liveNodeView,
} from './dispatcher-sets.ts'
import { data } from '../http/operation.ts'
import { deleted } from '../http/resource-operations.ts'

const noun = 'Dispatcher set'
const nodeParam = z.strictObject({ id: id(noun), nodeId: id('Node') })
const states = ['active', 'probing', 'inactive'] as const
const stateBody = z.strictObject({
  state: z.enum(states),
  expected_state: z
    .enum(states)
    .optional()
    .describe('Refused with 409 when the node has another state.'),
  reason: changeReason.optional(),
  duration: changeDuration.optional(),
})

type DispatcherDeps = ChangeDeps & WithOthers

export function dispatcherRoutes(deps: DispatcherDeps) {
  const parts = partsOf(deps)
  const { show, withOthers } = parts
  return new Hono<ControlEnv>()
    .route('/', reloadDispatcherRoute(deps))
    .route('/', resourceRoutes(deps, dispatcherSets, { show, withOthers }))
    .route('/', nodeRoutes(parts))
}

function reloadDispatcherRoute(deps: DispatcherDeps) {
  return new Hono<ControlEnv>().post(
    '/dispatcher/reload',
    describeRoute({
      id: 'reloadDispatcher',
      tag: 'Dispatcher',
      summary: 'Reload sets and nodes from the database',
      answer: data(z.strictObject({ message: z.string(), status: z.literal('synchronized') }), {
        message: 'Dispatcher sets were reloaded',
        status: 'synchronized',
      }),
    }),
    requires('dispatcher:reload'),
    validate('query', writeQuery),
    async (c) => {
      const { reason = null } = c.req.valid('query')
      const order: ChangeOrder = {
        principal: c.var.principal,
        tool: 'reload_dispatchers',
        reason,
        scopes: ['dispatcher:reload'],
      }
      const { plan, changeId } = await change(deps, order, () => planReload(deps))
      recordChange(c, changeId, plan, reason)
      return ok(c, { message: 'Dispatcher sets were reloaded', status: 'synchronized' })
    },
  )
}

type DispatcherParts = ReturnType<typeof partsOf>

/** Parts that the routes share. */
function partsOf(deps: DispatcherDeps) {
  const { now, engine } = deps
  const sets = new DispatcherSets(resourceDeps(deps))
  const show = (set: SetView) => withStatus(set, engine.dispatcher.status(set.set_id))
  const withOthers = withCallsOfPeers(deps.others)
  const setIn = async (scope: RequestScope, setRow: number): Promise<SetView> =>
    found(await sets.find(scope, setRow), noun)
  const lookUp: EnginePort['lookUp'] = (uris) => engine.lookUp(uris)
  const writes = writesOf(deps, 'dispatcher_set', noun)
  return {
    deps,
    now,
    engine,
    sets,
    show,
    withOthers,
    setIn,
    nodeOf: (set: SetView, nodeId: number): LiveNode => nodeIn(show(set), nodeId),
    /** The set with figures of all instances. */
    wholeSet: async (c: Context<ControlEnv>, setRow: number): Promise<LiveSet> => {
      const set = show(await setIn(requestScope(c.var.principal, now), setRow))
      const [whole = set] = await withOthers(c, [set])
      return whole
    },
    lookedUp: (scope: RequestScope, node: NodeBody): Promise<RequestScope> =>
      withLookUp(scope, lookUp, node.is_enabled ? [nodeUri(node)] : []),
    entered: async <T>(
      c: Context<ControlEnv>,
      setRow: number,
      reason: string | null,
      work: () => Promise<T>,
    ) => {
      const write = async () => ({ written: await work(), scopes: ['dispatcher:write' as const] })
      return writes(c, setRow, { given: {}, reason }, write)
    },
  }
}

const read = requires('dispatcher:read')
const write = requires('dispatcher:write')

/**
 * The nodes of one set: a node is a part of its set, so a write of a node is a change of the set.
 */
function nodeRoutes(parts: DispatcherParts) {
  return new Hono<ControlEnv>()
    .route('/', listDispatcherNodesRoute(parts))
    .route('/', getDispatcherNodeRoute(parts))
    .route('/', createDispatcherNodeRoute(parts))
    .route('/', updateDispatcherNodeRoute(parts))
    .route('/', deleteDispatcherNodeRoute(parts))
    .route('/', setDispatcherNodeStateRoute(parts))
}

function listDispatcherNodesRoute(parts: DispatcherParts) {
  const { wholeSet } = parts
  return new Hono<ControlEnv>().get(
    '/dispatcher/:id/nodes',
    describeRoute({
      id: 'listDispatcherNodes',
      tag: 'Dispatcher',
      instances: 'all',
      summary: 'List the nodes of a set',
      answer: data(z.array(liveNodeView), [exampleNode]),
    }),
    read,
    validate('param', idParam(noun)),
    async (c) => {
      return ok(c, (await wholeSet(c, c.req.valid('param').id)).nodes)
    },
  )
}

function getDispatcherNodeRoute(parts: DispatcherParts) {
  const { wholeSet } = parts
  return new Hono<ControlEnv>().get(
    '/dispatcher/:id/nodes/:nodeId',
    describeRoute({
      id: 'getDispatcherNode',
      tag: 'Dispatcher',
      instances: 'all',
      summary: 'Get a node',
      answer: data(liveNodeView, exampleNode),
    }),
    read,
    versioned(),
    validate('param', nodeParam),
    async (c) => {
      const { id: setRow, nodeId } = c.req.valid('param')
      const node = nodeIn(await wholeSet(c, setRow), nodeId)
      showVersion(c, versionOfNode(node))
      return ok(c, node)
    },
  )
}

function createDispatcherNodeRoute(parts: DispatcherParts) {
  const { now, engine, sets, setIn, nodeOf, lookedUp, entered } = parts
  return new Hono<ControlEnv>().post(
    '/dispatcher/:id/nodes',
    describeRoute({
      id: 'createDispatcherNode',
      tag: 'Dispatcher',
      summary: 'Add a node to a set',
      body: { host: '10.0.0.12', priority: 20 },
      answer: data(liveNodeView, exampleNode, 201),
      refusals: [409],
    }),
    write,
    validate('param', idParam(noun)),
    validate('query', writeQuery),
    validate('json', nodeBody),
    repeatable(),
    async (c) => {
      const { id: setRow } = c.req.valid('param')
      const { reason = null } = c.req.valid('query')
      const body = c.req.valid('json')
      const asker = requestScope(c.var.principal, now)
      await setIn(asker, setRow)
      const scope = await lookedUp(asker, body)
      const insertion = () => sets.insertNode(scope, setRow, body)
      const { written: stored, changeId } = await entered(c, setRow, reason, insertion)
      await engine.dispatcher.reload()
      const { nodeId } = stored
      const after = nodeOf(stored.after, nodeId)
      recordChange(c, changeId, { before: null, after: lasting(after) }, reason)
      return created(c, `/api/v1/dispatcher/${setRow}/nodes/${nodeId}`, after)
    },
  )
}

function updateDispatcherNodeRoute(parts: DispatcherParts) {
  const { now, engine, sets, setIn, nodeOf, lookedUp, entered } = parts
  return new Hono<ControlEnv>().patch(
    '/dispatcher/:id/nodes/:nodeId',
    describeRoute({
      id: 'updateDispatcherNode',
      tag: 'Dispatcher',
      summary: 'Update a node',
      body: { weight: 50 },
      answer: data(liveNodeView, exampleNode),
      refusals: [409],
    }),
    write,
    versioned(),
    validate('param', nodeParam),
    validate('query', writeQuery),
    validate('json', patchOf(nodeBody)),
    async (c) => {
      const { id: setRow, nodeId } = c.req.valid('param')
      const { reason = null } = c.req.valid('query')
      const asker = requestScope(c.var.principal, now)
      const bodyOver = (node: SetView['nodes'][number]) =>
        patched(nodeBody, nodeDocument(node), c.req.valid('json'))
      const scope = await lookedUp(asker, bodyOver(nodeIn(await setIn(asker, setRow), nodeId)))
      // Read again: another request may have changed it meanwhile.
      const replacement = () =>
        sets.replaceNode(scope, setRow, nodeId, (node) => {
          refuseOther(c, node)
          return bodyOver(node)
        })
      const { written: stored, changeId } = await entered(c, setRow, reason, replacement)
      const before = nodeOf(stored.before, nodeId)
      await engine.dispatcher.reload()
      const after = nodeOf(stored.after, nodeId)
      recordChange(c, changeId, { before: lasting(before), after: lasting(after) }, reason)
      showVersion(c, versionOfNode(after))
      return ok(c, after)
    },
  )
}

function deleteDispatcherNodeRoute(parts: DispatcherParts) {
  const { now, engine, sets, nodeOf, entered } = parts
  return new Hono<ControlEnv>().delete(
    '/dispatcher/:id/nodes/:nodeId',
    describeRoute({
      id: 'deleteDispatcherNode',
      tag: 'Dispatcher',
      summary: 'Remove a node from its set',
      answer: data(deleted, { id: 1, deleted: true }),
      refusals: [409],
    }),
    write,
    versioned(),
    validate('param', nodeParam),
    validate('query', writeQuery),
    async (c) => {
      const { id: setRow, nodeId } = c.req.valid('param')
      const { reason = null } = c.req.valid('query')
      const scope = requestScope(c.var.principal, now)
      const removal = () => sets.removeNode(scope, setRow, nodeId, (node) => refuseOther(c, node))
      const { written, changeId } = await entered(c, setRow, reason, removal)
      const before = nodeOf(written, nodeId)
      await engine.dispatcher.reload()
      recordChange(c, changeId, { before: lasting(before), after: null }, reason)
      return ok(c, { id: nodeId, deleted: true })
    },
  )
}

function setDispatcherNodeStateRoute(parts: DispatcherParts) {
  const { deps, now, setIn, nodeOf } = parts
  return new Hono<ControlEnv>().put(
    '/dispatcher/:id/nodes/:nodeId/state',
    describeRoute({
      id: 'setDispatcherNodeState',
      tag: 'Dispatcher',
      summary: "Set a node's state: drain it, or return it to service. Live calls continue.",
      body: { state: 'inactive' },
      answer: data(
        liveNodeView
          .extend({
            state: z.enum(['active', 'probing', 'inactive']),
            change_id: z.string().nullable().describe('Null: it was so already.'),
          })
          .meta({ id: 'DispatcherNodeInState' }),
        { ...exampleNode, state: 'inactive', change_id: '3c1f2a52-8c0f-4a86-9f53-2d3f9d3f7c10' },
      ),
      refusals: [409],
    }),
    write,
    validate('param', nodeParam),
    validate('json', stateBody),
    async (c) => {
      const { id: setRow, nodeId } = c.req.valid('param')
      const body = c.req.valid('json')
      const { principal } = c.var
      const scope = requestScope(principal, now)
      const set = await setIn(scope, setRow)
      const before = nodeOf(set, nodeId)
      const target = { setId: set.set_id, destination: before.destination }
      const nodeDeps = { ...deps, peers: deps.others?.of(c) }
      const { changeId } = await setState(target, body, principal, nodeDeps)
      const after = nodeOf(await setIn(scope, setRow), nodeId)
      const states = { before: lasting(before), after: lasting(after) }
      recordChange(c, changeId, states, body.reason ?? null)
      return ok(c, { ...after, state: body.state, change_id: changeId })
    },
  )
}

const withCallsOfPeers =
  (others: WithOthers['others']) => async (c: Context<ControlEnv>, listed: readonly LiveSet[]) => {
    const ids = listed.flatMap(({ nodes }) => nodes.map(({ id: nodeId }) => nodeId))
    const more = await countsOfPeers(c, others, 'nodes', ids)
    if (more === undefined) return listed
    return listed.map((set) => ({
      ...set,
      nodes: set.nodes.map(({ status, ...node }) => ({
        ...node,
        status: status && { ...status, active_calls: status.active_calls + more(node.id) },
      })),
    }))
  }

/** Results of probes are no part of it. */
function versionOfNode(node: NodeView): string {
  const { id, operator_state: state, destination } = node
  return versionOf([id, state, destination, ...fieldsOfNode.map((field) => node[field])])
}

const fieldsOfNode = nodeBody.keyof().options

function refuseOther(c: Context<ControlEnv>, node: NodeView): void {
  const isReader = c.var.principal.scopes.has('dispatcher:read')
  const shown = isReader ? () => node : undefined
  refuseOtherVersion(c, { version: versionOfNode(node), shown })
}

/** A node in the audit log: without volatile fields such as latencies. */
const lasting = ({ status, ...node }: LiveNode) => ({ ...node, state: status?.state ?? null })

/** Sets the state as the tool set_dispatcher_state does. */
function setState(
  target: Pick<NodeStateOrder, 'setId' | 'destination'>,
  { state, expected_state: expectedState, reason, duration }: z.output<typeof stateBody>,
  principal: Principal,
  nodeDeps: NodeStateDeps,
) {
  const { engine, now } = nodeDeps
  if (engine.dispatcher.find(target.setId, target.destination) === undefined)
    throw conflict('node_disabled', 'The node is not enabled')
  const wanted = { ...target, state, expectedState, by: principal.actor }
  const order: ChangeOrder = {
    principal,
    tool: 'set_dispatcher_state',
    scopes: ['dispatcher:write'],
    reason: reason ?? null,
    expiresAt: duration === undefined ? null : now() + duration * 1_000,
  }
  return change(nodeDeps, order, () => planNodeState(wanted, nodeDeps))
}
