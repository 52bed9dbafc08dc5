/** Rules about callers from the database. */
import { all, inSlices } from '../../../schema/sql/query.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { readCallerRules } from '../../../schema/rules/caller-rules.ts'
import type { PolicySource, ReadPolicies, StoredPolicy } from './caller-policies.ts'

interface Row {
  readonly id: number
  readonly tenant_id: number | null
  readonly caller_identity: string | null
  readonly number: string | null
}

export const policyReader =
  (store: Store, onProblem: (problem: string) => void): ReadPolicies =>
  async (of, ids) => {
    const rows: Row[] = []
    if (ids === undefined) rows.push(...(await rowsOf(store, of)))
    else for await (const some of inSlices(ids)) rows.push(...(await rowsOf(store, of, some)))
    return rows.map((row) => policyOf(row, of, onProblem))
  }

/** Rules that cannot be read are no reason to show any number: then only owned ones are shown. */
function policyOf(row: Row, of: PolicySource, onProblem: (problem: string) => void): StoredPolicy {
  const { id, caller_identity: text, number, tenant_id: tenantId } = row
  const rules = text === null ? undefined : readCallerRules(text)
  if (text !== null && rules === undefined)
    onProblem(`caller_identity of ${of} ${id} is no object: only owned numbers are presented`)
  const isPlatforms = tenantId === null ? { isPlatforms: true as const } : {}
  const known = text === null ? undefined : { ...rules, ...isPlatforms }
  return { id, rules: known, number: number ?? undefined }
}

function rowsOf(store: Store, of: PolicySource, ids?: readonly number[]): Promise<readonly Row[]> {
  const { db } = store
  switch (of) {
    case 'extension': {
      const query = db
        .selectFrom('extension')
        .select(['id', 'tenant_id', 'caller_identity', 'caller_number as number'])
        .where((row) =>
          row.or([row('caller_identity', 'is not', null), row('caller_number', 'is not', null)]),
        )
      return all(store, ids ? query.where('id', 'in', ids) : query)
    }
    case 'customer': {
      const query = db
        .selectFrom('customer')
        .select(['id', 'tenant_id', 'caller_identity', 'default_number as number'])
        .where((row) =>
          row.or([row('caller_identity', 'is not', null), row('default_number', 'is not', null)]),
        )
      return all(store, ids ? query.where('id', 'in', ids) : query)
    }
    case 'dispatcher_set': {
      const query = db
        .selectFrom('dispatcher_set')
        .select(['set_id as id', 'tenant_id', 'caller_identity'])
        .select((row) => row.val<string | null>(null).as('number'))
        .where('caller_identity', 'is not', null)
      return all(store, query)
    }
    case 'carrier':
    default: {
      const query = db
        .selectFrom('carrier')
        .select(['id', 'tenant_id', 'caller_identity'])
        .select((row) => row.val<string | null>(null).as('number'))
        .where('caller_identity', 'is not', null)
      return all(store, ids ? query.where('id', 'in', ids) : query)
    }
  }
}
