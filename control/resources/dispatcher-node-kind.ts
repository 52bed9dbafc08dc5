/** Nodes of dispatcher sets: the state that an operator set. Their id is `<set_id>/<destination>`. */
import type { RestorableKind, ChangeDeps, Json } from '../changes/kinds.ts'
import { first } from '../../schema/sql/query.ts'
import type { NodeState, SetStateResult } from '../../schema/contracts/dispatcher.ts'
import { ApiError, conflict, notFound } from '../http/api-error.ts'

export const nodeTargetId = (setId: number, destination: string): string =>
  `${setId}/${destination}`

export const dispatcherNodeKind: RestorableKind = {
  // The engine decides whether it is the last one in service, and keeps the state in memory, too.
  isRow: false,
  read: (id, world) => readNodeState(id, world),
  async restore(id, state, { engine }, { actor }) {
    const { setId, destination } = placeOf(id)
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
      .where('set_id', '=', placeOf(id).setId)
      .where('tenant_id', '=', tenantId)
    if ((await first(store, query)) === undefined) throw notFound('Dispatcher set')
  },
}

/** Why the engine did not set a state. */
export function stateRefusal(
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
 * What the operator decided is in the table: another node may have stored it a moment ago. What probes found is in the
 * memory of each.
 */
export async function readNodeState(
  id: string,
  { engine, store }: ChangeDeps,
): Promise<NodeState | null> {
  const { setId, destination } = placeOf(id)
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

function placeOf(id: string) {
  const end = id.indexOf('/')
  return { setId: Number(id.slice(0, end)), destination: id.slice(end + 1) }
}

const isNodeState = (state: Json | null): state is NodeState =>
  state === 'active' || state === 'probing' || state === 'inactive'

/** Undefined: it is not there. */
const isInService = (state: Json | null): boolean | undefined =>
  isNodeState(state) ? state !== 'inactive' : undefined
