/** What becomes of a dispatcher set when an operator sets the state of one of its nodes. */
import type { ChangeDeps } from '../changes/kinds.ts'
import { all } from '../../schema/sql/query.ts'
import type { FoundNode, NodeState } from '../../schema/contracts/dispatcher.ts'
import { conflict } from '../http/api-error.ts'
import { type AskedNodes, countsOfAsked } from '../nodes/other-nodes.ts'
import { didYouMean } from '../../schema/rules/did-you-mean.ts'
import { quoted } from '../http/clean-text.ts'
import { nodeTargetId, readNodeState, stateRefusal } from './dispatcher-node-kind.ts'
import type { Plan } from '../changes/change.ts'

export interface NodeStateOrder {
  readonly setId: number
  /** As the caller writes it. */
  readonly destination: string
  readonly state: NodeState
  /** Refused when the node has another one. */
  readonly expectedState: NodeState | undefined
  /** The operator, for the history of the node. */
  readonly by: string
}

export interface NodeStateWorld extends ChangeDeps {
  /** The other nodes of the installation; undefined: there is none to ask. */
  readonly elsewhere?: AskedNodes | undefined
}

/** The tool's own words about it; a dry run and a call that changes nothing get `preview`. */
export async function planNodeState(
  { setId, destination, state, expectedState, by }: NodeStateOrder,
  world: NodeStateWorld,
): Promise<Plan<{ readonly message: string }>> {
  const { engine } = world
  const node = engine.dispatcher.find(setId, destination)
  const id = node && nodeTargetId(setId, node.destination)
  const before = id === undefined ? null : await readNodeState(id, world)
  if (node === undefined || id === undefined || before === null)
    throw stateRefusal('unknown_destination', setId, similarNodes(setId, destination, world))
  if (expectedState !== undefined && expectedState !== before)
    throw conflict(
      'state_differs',
      `The node is ${before}, not ${expectedState}. Nothing changed: look at get_dispatcher_status with setId ${setId} again`,
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
      : `Node ${quoted(node.destination)} of set ${setId} goes from ${before} to ${state}: ${meaning[state]}.`,
    affected: await affectedBy(setId, node, state, world),
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

function similarNodes(setId: number, wrong: string, { engine }: NodeStateWorld): string {
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

/** What the set has then. */
async function affectedBy(
  setId: number,
  node: FoundNode,
  state: NodeState,
  { engine, store, elsewhere }: NodeStateWorld,
): Promise<Record<string, number>> {
  const nodes = engine.dispatcher.status(setId)[0]?.nodes ?? []
  const ids = nodes.map(({ nodeId }) => nodeId)
  const more = (await countsOfAsked(elsewhere, 'nodes', ids)) ?? (() => 0)
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
