/**
 * Names of what entries of the audit log are about: the log has paths with ids, people know names.
 */
import { sql } from 'kysely'
import { all, type Tables } from '../../schema/sql/query.ts'
import type { Database } from '../../schema/tables/database.ts'
import { hostOr } from './field-words.ts'

interface NamedTable {
  readonly table: keyof Database
  /** The column with its name. */
  readonly name: string
  /** The column that paths have; absent: `id`. */
  readonly id?: string
  /** Rows that belong to nobody, or to whoever has their parent, are named to the platform only. */
  readonly isOfPlatform?: true
}

/** By the path below `/api/v1`, up to the id. */
const tables: Readonly<Record<string, NamedTable>> = {
  'application-keys': { table: 'application_key', name: 'name', id: 'uuid' },
  'alert-channels': { table: 'alert_channel', name: 'name' },
  'alert-rules': { table: 'alert_rule', name: 'name' },
  customers: { table: 'customer', name: 'name' },
  dispatcher: { table: 'dispatcher_set', name: 'endpoint_name' },
  'identity-providers': { table: 'identity_provider', name: 'name' },
  'inbound-routes': { table: 'inbound_route', name: 'name' },
  numbers: { table: 'phone_number', name: 'number' },
  'outbound-routes': { table: 'outbound_route', name: 'name' },
  'pbx/extensions': { table: 'extension', name: 'extension' },
  'rate-plans': { table: 'rate_plan', name: 'name' },
  'routing-webhooks': { table: 'routing_webhook', name: 'url' },
  'routing/carriers': { table: 'carrier', name: 'name' },
  'stir/authorities': { table: 'stir_authority', name: 'name', isOfPlatform: true },
  'stir/keys': { table: 'stir_key', name: 'name' },
  'telephony/ai-agents': { table: 'ai_agent', name: 'name' },
  tenants: { table: 'tenant', name: 'slug', isOfPlatform: true },
  users: { table: 'user', name: 'username' },
  webhooks: { table: 'webhook_endpoint', name: 'url' },
}

/**
 * Names by target, of those that are still there and that a reader of this tenant may see; null: of
 * the platform, which sees all.
 */
export async function targetNames(
  store: Tables,
  targets: readonly string[],
  tenantId: number | null,
): Promise<ReadonlyMap<string, string>> {
  const wanted = new Map<string, Map<string, string[]>>()
  for (const target of new Set(targets)) {
    const [, path = '', id = ''] =
      /^\/api\/v1\/([a-z/-]+)\/([\da-f-]{1,36})(?:\/|$)/.exec(target) ?? []
    if (!Object.hasOwn(tables, path)) continue
    const ofPath = wanted.get(path) ?? new Map<string, string[]>()
    ofPath.set(id, [...(ofPath.get(id) ?? []), target])
    wanted.set(path, ofPath)
  }
  const names = new Map<string, string>()
  for (const [path, ofPath] of wanted)
    for (const { id, name } of await rowsOf(store, tables[path], [...ofPath.keys()], tenantId))
      // An address may hold a secret of its receiver: its host says enough.
      for (const target of ofPath.get(String(id)) ?? []) names.set(target, hostOr(name))
  return names
}

interface NamedRow {
  readonly id: number | string
  readonly name: string
}

async function rowsOf(
  store: Tables,
  named: NamedTable | undefined,
  given: readonly string[],
  tenantId: number | null,
): Promise<readonly NamedRow[]> {
  if (named === undefined) return []
  const { table, name, id: key = 'id', isOfPlatform = false } = named
  const ids = key === 'id' ? given.filter(isId).map(Number) : given
  if (ids.length === 0 || (isOfPlatform && tenantId !== null)) return []
  const owned = tenantId === null ? sql`` : sql`AND tenant_id = ${tenantId}`
  const query = sql<NamedRow>`
    SELECT ${sql.ref(key)} AS id, ${sql.ref(name)} AS name FROM ${sql.table(table)}
    WHERE ${sql.ref(key)} IN (${sql.join(ids)}) ${owned}`
  return all<NamedRow>(store, { compile: () => query.compile(store.db) })
}

const isId = (text: string): boolean => /^[1-9]\d{0,14}$/.test(text)
