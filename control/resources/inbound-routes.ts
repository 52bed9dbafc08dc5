/** Inbound routes: where a call from a carrier goes (SPECIFICATION.md §4.7 and §10.2). */
import { sql } from 'kysely'
import { verifications } from '../../schema/contracts/field-values.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, first } from '../../schema/sql/query.ts'
import { domain, prefix, reference } from '../http/fields.ts'
import type { Row } from '../http/field-columns.ts'
import { extensionNumber } from './extensions.ts'
import * as field from '../http/field-table.ts'
import { badReference, chosen, either, type Owner, resolve } from './references.ts'
import type { Definition, ViewOf, Writing } from './resource.ts'
import { refuseForeignDomain } from './tenancy.ts'

type TargetType = 'set' | 'extension' | 'agent'

/** The target of a row, in the field of its type; `check` writes it. */
const target = (type: TargetType, part: (text: string) => unknown) =>
  ({
    isStoredElsewhere: true,
    stored: () => ({
      read: (row: Row) => (row['target_type'] === type ? part(String(row['target'])) : null),
    }),
  }) as const

const fields = field.table(
  {
    id: field.id,
    name: field.required(field.name, { example: 'main number' }),
    tenant: field.tenant(),
    carrier: field.refersTo('carrier', { about: 'Absent: any carrier.' }),
    carrier_id: field.idOf(),
    prefix: field.optional(field.asText(prefix), {
      about: 'Start of the called number; absent: every number.',
      example: '4930',
    }),
    domain: field.optional(field.asText(domain), {
      about: 'Domain of the Request-URI. Absent: every domain.',
    }),
    verification: field.optional(field.oneOf(verifications), {
      about:
        'What the Identity headers of a call must have proved. Absent: anything. Only calls of ' +
        'carriers with `stir.verify` have proved anything, or nothing.',
    }),
    priority: field.of(field.integer(1, 100), {
      default: 10,
      about: 'A lower number is preferred.',
    }),
    is_active: field.of(field.yesOrNo, { default: true }),
    set: field.written(reference.nullish(), { about: 'Number or name of a dispatcher set.' }),
    set_id: field.idOf({ ...target('set', Number), example: 1 }),
    extension: field.optional(
      field.asText(extensionNumber),
      target('extension', (text) => text.split('@')[0]),
    ),
    extension_domain: field.optional(field.asText(domain), {
      ...target('extension', (text) => text.split('@')[1] ?? ''),
      about: 'Domain of the extension. May be absent if only one domain has the extension.',
    }),
    agent: field.optional(field.name, { isStoredElsewhere: true, about: 'Name of an AI agent.' }),
    created_at: field.createdAt,
  },
  { schemaId: 'InboundRoute' },
)

type RouteWriting = Writing<typeof fields.body, typeof fields.view>
export type InboundRouteView = ViewOf<typeof fields.view>

export const inboundRoutes: Definition<typeof fields.body, typeof fields.view> = {
  noun: 'Inbound route',
  table: 'inbound_route',
  path: '/inbound-routes',
  scope: 'routes',
  fields,
  joins: sql`LEFT JOIN ai_agent
    ON ai_agent.id = CASE WHEN target_type = 'agent' THEN CAST(target AS integer) END`,
  selected: sql`ai_agent.name AS agent`,
  search: ['inbound_route.name', 'prefix', 'inbound_route.domain'],
  order: ['inbound_route.name'],
  limits: ['inbound_routes'],
  async check(writing) {
    const { body: route, before, tenantId, deps } = writing
    if (route.domain !== before?.domain)
      await refuseForeignDomain(deps.store, route.domain, tenantId)
    const [target_type, target] = await targetOf(writing)
    return { target_type, target }
  },
  follow: ({ engine }, { id }) => engine.reloadRouting({ of: 'inbound_route', ids: [id] }),
  described: {
    tag: 'Routing',
    body: { name: 'main number', prefix: '4930', set_id: 1 },
    patch: { is_active: false },
  },
}

/**
 * Resolves the target of a body, as far as the writer can see it; the route's current target stays
 * allowed. Returns a set's number, `<extension>@<domain>` or an agent's id. Throws 400.
 */
async function targetOf({
  body: route,
  before,
  tenantId,
  scope,
  deps: { store },
}: RouteWriting): Promise<readonly [TargetType, string]> {
  const set = either('set', route.set, route.set_id)
  const { extension = null, extension_domain: domainOfIt = null, agent = null } = route
  if ([set, extension, agent].filter((target) => target !== null).length !== 1)
    throw badReference('set_id', 'give exactly one of set_id, extension and agent')
  if (domainOfIt !== null && extension === null)
    throw badReference('extension_domain', 'has no meaning without extension')
  if (extension !== null) {
    const isSame = before?.extension === extension && before.extension_domain === domainOfIt
    const home = isSame ? domainOfIt : await domainOf(store, extension, domainOfIt, tenantId)
    return ['extension', `${extension}@${home ?? ''}`]
  }
  const owner = { tenantId, scope }
  if (agent !== null) return ['agent', String(await agentOf(store, agent, owner, before))]
  const current = before?.set_id ?? null
  const setId = await resolve(store, 'dispatcher_set', set, { ...owner, path: 'set', current })
  return ['set', String(setId)]
}

async function domainOf(
  store: Store,
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
  store: Store,
  agent: string,
  owner: Owner,
  before: RouteWriting['before'],
): Promise<number> {
  const { db } = store
  const rows = await all(
    store,
    db.selectFrom('ai_agent').select(['id', 'tenant_id']).where('name', '=', agent),
  )
  // A platform route may use agents and extensions of every tenant.
  const writer: Owner = { ...owner, tenantId: owner.tenantId ?? 'any' }
  const routes = db.selectFrom('inbound_route').select('target')
  const current =
    before?.agent === agent
      ? Number((await first(store, routes.where('id', '=', before.id)))?.target)
      : undefined
  return chosen(rows, { path: 'agent', noun: 'agent', reference: agent }, writer, current).id
}
