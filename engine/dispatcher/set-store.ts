/** Dispatcher sets in the database, and the decisions of operators about their nodes. */
import type { Selectable } from 'kysely'
import { fromFlag } from '../../schema/columns.ts'
import type { Database } from '../../schema/tables/database.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, execute } from '../../schema/sql/query.ts'
import { mediaRulesOf } from '../../schema/rules/media.ts'
import { isAlgorithmCode } from './algorithms.ts'
import type { NodeRecord, ProbeSettings, SetRecord, StatusRange } from './destination-set.ts'
import type { OperatorState } from './node-health.ts'

/**
 * All sets with their enabled nodes, by set id. A disabled node does not exist for calls and
 * probes.
 */
export async function loadSets(store: Store): Promise<readonly SetRecord[]> {
  const enabled = store.db.selectFrom('dispatcher_node').selectAll().where('is_enabled', '=', 1)
  const nodes = await all(store, enabled.orderBy('id'))
  const sets = await all(store, store.db.selectFrom('dispatcher_set').selectAll().orderBy('set_id'))
  return sets.map((row) =>
    setOf(row, nodes.filter((node) => node.dispatcher_set_id === row.id).map(nodeOf)),
  )
}

/**
 * Stores the decision of an operator, which survives restarts. Resolves with false, and stores
 * nothing, when no other node of the set would stay in service (SPECIFICATION.md §3.2).
 */
export async function saveOperatorState(
  store: Store,
  nodeId: number,
  state: OperatorState,
): Promise<boolean> {
  const node = store.db
    .updateTable('dispatcher_node')
    .where('id', '=', nodeId)
    .set({ operator_state: state })
  const isAllowed = node.where((row) =>
    row.or([
      row('operator_state', '=', 'inactive'),
      row.exists(
        row
          .selectFrom('dispatcher_node as other')
          .select('other.id')
          .whereRef('other.dispatcher_set_id', '=', 'dispatcher_node.dispatcher_set_id')
          .whereRef('other.id', '<>', 'dispatcher_node.id')
          .where('other.is_enabled', '=', 1)
          .where('other.operator_state', '=', 'active'),
      ),
    ]),
  )
  return (await execute(store, state === 'active' ? node : isAllowed)) > 0
}

function setOf(
  row: Selectable<Database['dispatcher_set']>,
  nodes: readonly NodeRecord[],
): SetRecord {
  return {
    setId: row.set_id,
    name: row.endpoint_name,
    tenantId: row.tenant_id,
    // The column's CHECK allows no other number.
    algorithm: isAlgorithmCode(row.algorithm) ? row.algorithm : 8,
    probe: probeOf(row),
    voicemailUri: row.voicemail_uri,
    spyUri: row.spy_uri,
    isByTenant: fromFlag(row.is_by_tenant) || undefined,
    media: mediaRulesOf(row),
    nodes,
  }
}

function nodeOf(row: Selectable<Database['dispatcher_node']>): NodeRecord {
  return {
    nodeId: row.id,
    host: row.host,
    port: row.internal_port,
    externalPort: row.external_port,
    transport: row.transport,
    weight: row.weight,
    priority: row.priority,
    description: row.description,
    maxCalls: row.max_calls,
    operatorState: row.operator_state,
    isByTenant: fromFlag(row.is_by_tenant) || undefined,
  }
}

/** The settings of the set itself: null columns leave the process's defaults. */
function probeOf(row: Selectable<Database['dispatcher_set']>): Partial<ProbeSettings> {
  const okCodes = row.probe_ok_codes === null ? undefined : parseOkCodes(row.probe_ok_codes)
  return {
    ...(row.probe_interval_ms !== null && { intervalMs: row.probe_interval_ms }),
    ...(row.probe_timeout_ms !== null && { timeoutMs: row.probe_timeout_ms }),
    ...(row.probe_fail_threshold !== null && { failuresToProbing: row.probe_fail_threshold }),
    ...(row.probe_recover_threshold !== null && { successesToActive: row.probe_recover_threshold }),
    ...(okCodes && { okCodes }),
  }
}

/**
 * Statuses that mean "up": a JSON array of numbers and ranges, such as `["200-299", 404]`.
 * Undefined, and so the default, when it is not such an array or empty.
 */
export function parseOkCodes(json: string): readonly StatusRange[] | undefined {
  const list = readList(json)
  const ranges = list.map((each) => /^([1-6]\d\d)(?:-([1-6]\d\d))?$/.exec(String(each)))
  const codes: StatusRange[] = []
  for (const range of ranges) {
    if (!range) return undefined
    const [, from = '', to = from] = range
    codes.push({ from: Number(from), to: Number(to) })
  }
  return codes.length === 0 ? undefined : codes
}

function readList(json: string): readonly unknown[] {
  try {
    const list: unknown = JSON.parse(json)
    return Array.isArray(list) ? list : []
  } catch {
    return []
  }
}
