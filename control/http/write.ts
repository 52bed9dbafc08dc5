/** Wraps every write: one transaction, and constraint violations as error responses. */
import type { Store } from '../../schema/open.ts'
import { failureOf, type Unique } from '../../schema/sql/failure.ts'
import { transaction } from '../../schema/sql/query.ts'
import { ApiError } from './api-error.ts'

/** Runs `work` in one transaction. Throws 409 for a duplicate and for a row that is still referenced. */
export async function write<T>(store: Store, work: () => Promise<T>): Promise<T> {
  try {
    return await transaction(store, work)
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

/** The database checks unique indexes and foreign keys, so that no race inserts a second row. */
function asConflict(error: unknown): ApiError | undefined {
  const failure = failureOf(error)
  if (failure?.kind === 'unique') return duplicate(failure.unique)
  if (failure?.kind === 'reference')
    return new ApiError(409, 'in_use', 'Still referenced by other resources')
  return undefined
}

function duplicate(unique: Unique): ApiError {
  const taken = 'index' in unique ? `index '${unique.index}'` : (unique.columns.at(-1) ?? '')
  const path = fieldNames[taken] ?? taken.replace(/^.*\./, '')
  return new ApiError(409, 'duplicate', `Another resource has this ${path.replaceAll('_', ' ')}`, {
    details: [{ path, message: 'is already taken' }],
  })
}
