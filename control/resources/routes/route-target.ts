/** The target of an inbound route: a dispatcher set, an extension or an AI agent. */
import type { Store } from '../../../schema/open.ts'
import { all, first } from '../../../schema/sql/query.ts'
import { badReference, chosen, either, type Owner } from '../references.ts'
import type { InboundRouteBody } from './route-body.ts'
import { resolveSet } from '../set-reference.ts'

/** Set id, `<extension>@<domain>` or agent id. */
interface StoredTarget {
  readonly target_type: 'set' | 'extension' | 'agent'
  readonly target: string
}

/** As shown; exactly one of the three is not null. */
export interface RouteTarget {
  readonly set_id: number | null
  readonly extension: string | null
  readonly extension_domain: string | null
  /** Its name. */
  readonly agent: string | null
}

interface StoredRoute extends RouteTarget {
  readonly id: number
}

/**
 * Resolves the target of a body, as far as the writer can see it; the route's current target stays allowed.
 * Throws 400.
 */
export async function resolveTarget(
  store: Store,
  body: InboundRouteBody,
  owner: Owner,
  before?: StoredRoute,
): Promise<StoredTarget> {
  const set = either('set', body.set, body.set_id)
  const { extension = null, extension_domain: domain = null, agent = null } = body
  if ([set, extension, agent].filter((target) => target !== null).length !== 1)
    throw badReference('set_id', 'give exactly one of set_id, extension and agent')
  if (domain !== null && extension === null)
    throw badReference('extension_domain', 'has no meaning without extension')
  if (extension !== null) return extensionTarget(store, { extension, domain }, owner, before)
  if (agent !== null) return agentTarget(store, agent, owner, before)
  const setId = await resolveSet(store, 'set', set, owner, before?.set_id)
  return { target_type: 'set', target: String(setId) }
}

async function extensionTarget(
  store: Store,
  { extension, domain }: { readonly extension: string; readonly domain: string | null },
  owner: Owner,
  before: RouteTarget | undefined,
): Promise<StoredTarget> {
  const isUnchanged = before?.extension === extension && before.extension_domain === domain
  if (isUnchanged) return { target_type: 'extension', target: `${extension}@${domain ?? ''}` }
  const tenantId = owner.tenantId === 'any' ? null : owner.tenantId
  const [only, second] = await all(
    store,
    store.db
      .selectFrom('extension')
      .select('domain')
      .where('extension', '=', extension)
      .$if(tenantId !== null, (query) => query.where('tenant_id', '=', tenantId ?? 0))
      .$if(domain !== null, (query) => query.where('domain', '=', domain ?? ''))
      .limit(2),
  )
  if (only === undefined)
    throw badReference('extension', `unknown extension ${JSON.stringify(extension)}`)
  if (second !== undefined)
    throw badReference('extension_domain', 'is required: several domains have this extension')
  return { target_type: 'extension', target: `${extension}@${only.domain}` }
}

async function agentTarget(
  store: Store,
  agent: string,
  owner: Owner,
  before: StoredRoute | undefined,
): Promise<StoredTarget> {
  const { db } = store
  const rows = await all(
    store,
    db.selectFrom('ai_agent').select(['id', 'tenant_id']).where('name', '=', agent),
  )
  // A platform route may use agents and extensions of every tenant.
  const writer: Owner = { ...owner, tenantId: owner.tenantId ?? 'any' }
  const current = before?.agent === agent ? await agentOf(store, before.id) : undefined
  const { id } = chosen(rows, { path: 'agent', noun: 'agent', reference: agent }, writer, current)
  return { target_type: 'agent', target: String(id) }
}

async function agentOf(store: Store, routeId: number): Promise<number | undefined> {
  const { db } = store
  const row = await first(
    store,
    db.selectFrom('inbound_route').select('target').where('id', '=', routeId),
  )
  return row && Number(row.target)
}
