/** Where calls go, in the fields of a resource: a dispatcher set, an extension or an AI agent. */
import { sql } from 'kysely'
import { all, first, type Tables } from '../../schema/sql/query.ts'
import { domain, reference } from '../http/fields.ts'
import type { Row } from '../http/field-columns.ts'
import { extensionNumber } from './extensions.ts'
import * as field from '../http/field-table.ts'
import { badReference, chosen, either, type Owner, resolve } from './references.ts'
import type { RequestScope } from '../auth/tenants.ts'

export type TargetType = 'set' | 'extension' | 'agent'

/** The target of a row, in the field of its type; `check` writes it. */
const target = (type: TargetType, part: (text: string) => unknown) =>
  ({
    isStoredElsewhere: true,
    stored: () => ({
      read: (row: Row) => (row['target_type'] === type ? part(String(row['target'])) : null),
    }),
  }) as const

/** @param example Number of a set. */
export const targetFields = (example: number | null) => ({
  set: field.written(reference.nullish(), { about: 'Number or name of a dispatcher set.' }),
  set_id: field.idOf({ ...target('set', Number), example }),
  extension: field.optional(
    field.asText(extensionNumber),
    target('extension', (text) => text.split('@')[0]),
  ),
  extension_domain: field.optional(field.asText(domain), {
    ...target('extension', (text) => text.split('@')[1] ?? ''),
    about: 'Domain of the extension. May be absent if only one domain has the extension.',
  }),
  agent: field.optional(field.name, { isStoredElsewhere: true, about: 'Name of an AI agent.' }),
})

/** Joins the agent of a target, for its name. */
export const agentJoin = sql`LEFT JOIN ai_agent
  ON ai_agent.id = CASE WHEN target_type = 'agent' THEN CAST(target AS integer) END`

export interface TargetBody {
  readonly set?: unknown
  readonly set_id?: unknown
  readonly extension?: string | null | undefined
  readonly extension_domain?: string | null | undefined
  readonly agent?: string | null | undefined
}

/** The target of a row as its view shows it. */
interface ShownTarget {
  readonly id: number
  readonly set_id: number | null
  readonly extension: string | null
  readonly extension_domain: string | null
  readonly agent: string | null
}

export interface TargetWriting {
  readonly body: TargetBody
  readonly before?: ShownTarget | undefined
  readonly tenantId: number | null
  readonly scope: RequestScope
  readonly store: Tables
  readonly table: 'inbound_route' | 'phone_number'
}

/**
 * Resolves the target of a body, as far as the writer can see it; the row's current target stays
 * allowed. Returns a set's number, `<extension>@<domain>` or an agent's id. Null: there is none.
 * Throws 400.
 */
export async function targetOf(
  writing: TargetWriting,
): Promise<readonly [TargetType, string] | null> {
  const { body, before, tenantId, scope, store } = writing
  const set = either('set', body.set, body.set_id)
  const { extension = null, extension_domain: domainOfIt = null, agent = null } = body
  const given = [set, extension, agent].filter((each) => each !== null).length
  if (given > 1) throw badReference('set_id', 'give exactly one of set_id, extension and agent')
  if (domainOfIt !== null && extension === null)
    throw badReference('extension_domain', 'has no meaning without extension')
  if (given === 0) return null
  if (extension !== null) {
    const isSame = before?.extension === extension && before.extension_domain === domainOfIt
    const home = isSame ? domainOfIt : await domainOf(store, extension, domainOfIt, tenantId)
    return ['extension', `${extension}@${home ?? ''}`]
  }
  if (agent !== null) return ['agent', String(await agentOf(agent, writing))]
  const current = before?.set_id ?? null
  const owner = { tenantId, scope, path: body.set_id == null ? 'set' : 'set_id', current }
  return ['set', String(await resolve(store, 'dispatcher_set', set, owner))]
}

async function domainOf(
  store: Tables,
  extension: string,
  named: string | null,
  tenantId: number | null,
): Promise<string> {
  const [only, second] = await all(
    store,
    store.db
      .selectFrom('extension')
      .select('domain')
      .where('extension', '=', extension)
      .$if(tenantId !== null, (query) => query.where('tenant_id', '=', tenantId ?? 0))
      .$if(named !== null, (query) => query.where('domain', '=', named ?? ''))
      .limit(2),
  )
  if (only === undefined)
    throw badReference('extension', `unknown extension ${JSON.stringify(extension)}`)
  if (second !== undefined)
    throw badReference('extension_domain', 'is required: several domains have this extension')
  return only.domain
}

async function agentOf(
  agent: string,
  { before, tenantId, scope, store, table }: TargetWriting,
): Promise<number> {
  const { db } = store
  const rows = await all(
    store,
    db.selectFrom('ai_agent').select(['id', 'tenant_id']).where('name', '=', agent),
  )
  // A row of the platform may use agents and extensions of every tenant.
  const writer: Owner = { scope, tenantId: tenantId ?? 'any' }
  const targets = db.selectFrom(table).select('target')
  const current =
    before?.agent === agent
      ? Number((await first(store, targets.where('id', '=', before.id)))?.target)
      : undefined
  return chosen(rows, { path: 'agent', noun: 'agent', reference: agent }, writer, current).id
}
