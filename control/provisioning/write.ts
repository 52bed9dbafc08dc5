/** Wraps every write: one transaction, and constraint violations as error responses. */
import type { Store } from '../../schema/open.ts'
import { transaction } from '../../schema/sql/sync-query.ts'
import { ApiError } from '../http/api-error.ts'

/** Runs `work` in one transaction. Throws 409 for a duplicate and for a row that is still referenced. */
export function write<T>(store: Store, work: () => T): T {
  try {
    return transaction(store, work)
  } catch (error) {
    throw asConflict(error) ?? error
  }
}

/** Maps column names to the field names of the body. */
const fieldNames: Readonly<Record<string, string>> = {
  'customer_number.number': 'numbers',
  'tenant_domain.domain': 'domains',
  'tenant_number.prefix': 'numbers',
  'dispatcher_node.transport': 'host',
  "index 'rate_identity'": 'prefix',
  "index 'ai_agent_extension'": 'extension',
  "index 'rate_plan_name'": 'name',
  "index 'customer_name'": 'name',
  "index 'customer_email'": 'email',
  "index 'carrier_name'": 'name',
  "index 'outbound_route_name'": 'name',
  "index 'inbound_route_name'": 'name',
  "index 'ai_agent_name'": 'name',
  "index 'dispatcher_set_name'": 'endpoint_name',
}

/** SQLite checks UNIQUE and foreign keys, so that no race inserts a second row. */
function asConflict(error: unknown): ApiError | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  if (error.code === 'SQLITE_CONSTRAINT_UNIQUE' || error.code === 'SQLITE_CONSTRAINT_PRIMARYKEY')
    return duplicate(error.message)
  if (error.code === 'SQLITE_CONSTRAINT_FOREIGNKEY')
    return new ApiError(409, 'in_use', 'Still referenced by other resources')
  return undefined
}

function duplicate(message: string): ApiError {
  const [, constraint = ''] = /constraint failed: (.*)$/.exec(message) ?? []
  const columns = constraint.split(', ')
  const column = columns.at(-1) ?? ''
  const path = fieldNames[constraint] ?? fieldNames[column] ?? column.replace(/^.*\./, '')
  return new ApiError(409, 'duplicate', `Another resource has this ${path.replaceAll('_', ' ')}`, {
    details: [{ path, message: 'is already taken' }],
  })
}
