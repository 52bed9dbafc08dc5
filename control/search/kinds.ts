/** All that a search finds in tables: each noun says by itself how, and so do some stores. */
import { sql } from 'kysely'
import { foundKeys } from '../auth/key-store.ts'
import type { ScopedResource } from '../auth/scopes.ts'
import { foundUsers } from '../auth/user-store.ts'
import type { FoundBy, FoundTable } from '../http/found-by.ts'
import { wordsFor } from '../http/resource-operations.ts'
import { foundNodes } from '../resources/dispatcher-sets.ts'
import { nouns } from '../resources/nouns.ts'
import { type AnyDefinition, kindOf } from '../resources/resource.ts'
import { foundEndpoints } from '../webhooks/endpoint-store.ts'

export interface SearchedKind extends FoundTable {
  /** Its `:read` is needed. */
  readonly scope: ScopedResource
}

/** In the order in which groups of the same rank are shown. */
export const searchedKinds = (): readonly SearchedKind[] => [
  ...Object.values<AnyDefinition>(nouns).flatMap(kindOfNoun),
  ...[foundNodes, foundKeys, foundUsers, foundEndpoints],
]

function kindOfNoun(noun: AnyDefinition): readonly SearchedKind[] {
  const found = foundBy(noun)
  if (found === undefined) return []
  const { table, scope, owner = `${table}.tenant_id`, domain } = noun
  return [
    {
      ...found,
      kind: found.kind ?? kindOf(noun),
      table: sql.table(table),
      id: `${table}.id`,
      owner,
      domain: domain === undefined ? undefined : `${table}.${domain}`,
      scope,
    },
  ]
}

/** A noun whose screen follows from its definition is found by what its list is searched by. */
function foundBy({ found, general, search, table, noun }: AnyDefinition): FoundBy | undefined {
  const [title, ...beside] = search
  if (found !== undefined || general === undefined || title === undefined) return found
  const whole = (column: string): string => (column.includes('.') ? column : `${table}.${column}`)
  const screen = wordsFor(noun).many.replaceAll(' ', '-').toLowerCase()
  return { title: whole(title), beside: beside.map(whole), screen }
}
