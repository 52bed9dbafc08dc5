/** Plans for setting the state of a dispatcher node, and for reloading the sets. */
import { timeToText } from '../../schema/columns.ts'
import type { NamedNode, NodeState, SetStateResult } from '../../schema/contracts/engine.ts'
import { didYouMean } from '../../schema/rules/names.ts'
import { all, first } from '../../schema/sql/query.ts'
import type { Plan } from '../changes/change.ts'
import type { ChangeDeps, Json, RestorableKind } from '../changes/kinds.ts'
import { ApiError, conflict, notFound } from '../http/api-error.ts'
import { quoted } from '../http/clean-text.ts'
import { type PeerRequests, countsFrom } from '../instances/other-instances.ts'

export interface NodeStateOrder {
  readonly setId: number
  /** The SIP URI, as the caller writes it. */
  readonly destination: string
  readonly state: NodeState
  /** Refused when the node has another one. */
  readonly expectedState: NodeState | undefined
  /** The operator, for the history of the node. */
  readonly by: string
  /** The duration as the end of a clause, such as ` for 24 h`; absent: until it is undone. */
  readonly lasting?: string
}

export interface NodeStateDeps extends ChangeDeps {
  /** The other instances of the installation; undefined: there is none to ask. */
  readonly peers?: PeerRequests | undefined
}

/** A dry run, and a call that changes nothing, return `preview`. */
export async function planNodeState(
  { setId, destination, state, expectedState, by, lasting = '' }: NodeStateOrder,
  deps: NodeStateDeps,
): Promise<Plan<{ readonly message: string }>> {
  const { engine } = deps
  const node = engine.dispatcher.find(setId, destination)
  const id = node && nodeTargetId(setId, node.destination)
  const before = id === undefined ? null : await readNodeState(id, deps)
  if (node === undefined || id === undefined || before === null)
    throw stateRefusal('unknown_destination', setId, similarNodes(setId, destination, deps))
  if (expectedState !== undefined && expectedState !== before)
    throw conflict(
      'state_differs',
      `The node is ${before}, not ${expectedState}. Nothing changed: look at ` +
        `get_dispatcher_status with setId ${setId} again`,
    )
  if (state === 'inactive' && before !== 'inactive' && node.isLastInService)
    throw stateRefusal('last_active_node', setId)
  const isSame = before === state
  return {
    target: { kind: 'dispatcher_node', id },
    row: `dispatcher_node ${node.nodeId}`,
    before,
    after: state,
    undo: 'restores',
    effect: isSame
      ? `Nothing changes: the node is ${state} already.`
      : `Node ${quoted(node.destination)} of set ${setId} goes from ${before} to ` +
        `${state}${lasting}: ${meaning[state]}.`,
    affected: await affectedBy(setId, node, state, deps),
    preview: {
      message: isSame
        ? `The node is ${state} already.`
        : `The node would be ${state} from the next call.`,
    },
    async apply() {
      const result = await engine.dispatcher.setState(setId, node.destination, state, by)
      if (result !== 'changed') throw stateRefusal(result, setId)
      return { message: `The node is ${state} from the next call.` }
    },
  }
}

function similarNodes(setId: number, wrong: string, { engine }: NodeStateDeps): string {
  const nodes = engine.dispatcher.status(setId).flatMap((set) => set.nodes)
  return didYouMean(
    wrong,
    nodes.map((node) => node.destination),
  )
}

const meaning: Readonly<Record<NodeState, string>> = {
  active: 'it gets new calls',
  inactive: 'its live calls continue, and it gets no new ones',
  probing: 'it gets new calls as soon as its probes succeed',
}

/** The figures of the set after the change. */
async function affectedBy(
  setId: number,
  node: NamedNode,
  state: NodeState,
  { engine, store, peers }: NodeStateDeps,
): Promise<Record<string, number>> {
  const nodes = engine.dispatcher.status(setId)[0]?.nodes ?? []
  const ids = nodes.map(({ nodeId }) => nodeId)
  const more = (await countsFrom(peers, 'nodes', ids)) ?? (() => 0)
  const callsOf = ({ nodeId, activeCalls }: typeof node | (typeof nodes)[number]) =>
    activeCalls + more(nodeId)
  const active = nodes
    .filter((each) => (each.nodeId === node.nodeId ? state : each.state) === 'active')
    .map(({ nodeId }) => nodeId)
  const query = store.db.selectFrom('dispatcher_node').select('max_calls').where('id', 'in', ids)
  const limits = active.length === 0 ? [] : await all(store, query.where('id', 'in', active))
  const isLimited = limits.every(({ max_calls: limit }) => limit > 0)
  return {
    live_calls_of_node: callsOf(node),
    live_calls_of_set: nodes.reduce((sum, each) => sum + callsOf(each), 0),
    active_nodes_then: active.length,
    // Absent: without a limit.
    ...(isLimited && { max_calls_then: limits.reduce((sum, each) => sum + each.max_calls, 0) }),
  }
}

/**
 * Nodes of dispatcher sets: the state that an operator set. Their id is `<set_id>/<destination>`.
 */
export const nodeTargetId = (setId: number, destination: string): string =>
  `${setId}/${destination}`

export const dispatcherNodeKind: RestorableKind = {
  // The engine decides whether it is the last one in service, and keeps the state in memory, too.
  isRow: false,
  read: (id, deps) => readNodeState(id, deps),
  async restore(id, state, { engine }, { actor }) {
    const { setId, destination } = parsedId(id)
    if (!isNodeState(state)) throw notFound('Node')
    const result = await engine.dispatcher.setState(setId, destination, state, actor)
    if (result !== 'changed') throw stateRefusal(result, setId)
  },
  /** Probes move a node between active and probing by themselves. */
  isSame: (one, other) => isInService(one) === isInService(other),
  async admit(id, _, { tenantId }, { store }) {
    if (tenantId === null) return
    const query = store.db
      .selectFrom('dispatcher_set')
      .select('id')
      .where('set_id', '=', parsedId(id).setId)
      .where('tenant_id', '=', tenantId)
    if ((await first(store, query)) === undefined) throw notFound('Dispatcher set')
  },
}

/** Why the engine did not set a state. */
function stateRefusal(
  result: Exclude<SetStateResult, 'changed'>,
  setId: number,
  hint = '',
): ApiError {
  if (result === 'last_active_node')
    return conflict(
      result,
      'This is the last active node of the set. Without it, every call would be refused. ' +
        'Nothing changed: set another node of the set to active first',
    )
  return new ApiError(
    404,
    'unknown_destination',
    `Set ${setId} has no enabled node with this destination. Nothing changed: ` +
      `get_dispatcher_status with setId ${setId} shows the destinations.${hint}`,
  )
}

/**
 * The operator's state comes from the table, because another instance may have just stored it. The
 * result of probes is in the memory of each instance.
 */
async function readNodeState(id: string, { engine, store }: ChangeDeps): Promise<NodeState | null> {
  const { setId, destination } = parsedId(id)
  const [set] = engine.dispatcher.status(setId)
  const node = set?.nodes.find((each) => each.destination === destination)
  if (node === undefined) return null
  const query = store.db
    .selectFrom('dispatcher_node')
    .select('operator_state')
    .where('id', '=', node.nodeId)
  const row = await first(store, query)
  if (row === undefined) return null
  if (row.operator_state === 'inactive') return 'inactive'
  return node.state === 'inactive' ? 'active' : node.state
}

function parsedId(id: string) {
  const end = id.indexOf('/')
  return { setId: Number(id.slice(0, end)), destination: id.slice(end + 1) }
}

const isNodeState = (state: Json | null): state is NodeState =>
  state === 'active' || state === 'probing' || state === 'inactive'

/** Undefined: the node does not exist. */
const isInService = (state: Json | null): boolean | undefined =>
  isNodeState(state) ? state !== 'inactive' : undefined

interface ReloadResult {
  readonly message: string
  /** `would_reload`: a dry run. */
  readonly status: 'synchronized' | 'would_reload'
}

export const planReload = ({
  engine,
  now,
}: Pick<ChangeDeps, 'engine' | 'now'>): Plan<ReloadResult> => ({
  target: { kind: 'dispatcher_sets', id: 'all' },
  before: null,
  after: { loaded_at: timeToText(now()) },
  effect: 'This process reads all dispatcher sets and routes from the database again.',
  affected: { sets: engine.dispatcher.status().length },
  undo: 'none',
  preview: { message: 'The dispatcher sets would be reloaded.', status: 'would_reload' },
  async apply() {
    await engine.dispatcher.reload()
    await engine.reloadRouting()
    return { message: 'The dispatcher sets were reloaded.', status: 'synchronized' }
  },
})
