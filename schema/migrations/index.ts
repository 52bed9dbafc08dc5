/**
 * Every migration, oldest first. Both databases run the same list. The first one makes the tables, by subject; whatever
 * comes later is a migration of its own.
 */
import * as access from './first/access.ts'
import * as calls from './first/calls.ts'
import * as changes from './first/changes.ts'
import * as money from './first/money.ts'
import * as nodes from './first/nodes.ts'
import * as routing from './first/routing.ts'
import * as tenants from './first/tenants.ts'
import * as webhooks from './first/webhooks.ts'
import type { SchemaText } from './for-postgres.ts'

export interface Migration extends SchemaText {
  /** 1, 2, 3 … without gaps. */
  readonly version: number
  readonly name: string
}

/** A table comes after those that it refers to. */
const subjects: readonly SchemaText[] = [
  nodes,
  tenants,
  money,
  routing,
  calls,
  access,
  changes,
  webhooks,
]

export const migrations: readonly Migration[] = [
  {
    version: 1,
    name: 'first',
    sql: subjects.map(({ sql }) => sql).join(''),
    forServer: subjects.map(({ forServer = '' }) => forServer).join(''),
  },
]

export const newestVersion = migrations.length
