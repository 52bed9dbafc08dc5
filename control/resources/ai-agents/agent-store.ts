/** AI agents as rows. */
import type { RequestScope } from '../../auth/tenants.ts'
import type { Selectable } from 'kysely'
import { fromFlag, timeToText, toFlag } from '../../../schema/columns.ts'
import type { AiAgentTable } from '../../../schema/tables/agent.ts'
import type { Store } from '../../../schema/open.ts'
import { all, execute, first, insert } from '../../../schema/sql/query.ts'
import { ApiError } from '../../http/api-error.ts'
import { mediaColumnsOf, mediaViewOf, withoutRelay, type MediaView } from '../media-fields.ts'
import { refuseUnsupported } from '../not-supported.ts'
import { filledIn, overTls } from '../presets.ts'
import { stripHeadersColumn, stripHeadersView } from '../stripped-headers.ts'
import { identified, tenantOf } from '../references.ts'
import type { Resource, Rows, Slice } from '../resource.ts'
import { contains, write } from '../../http/rows.ts'
import { writeWithinLimits } from '../../auth/tenant-limits.ts'
import { refuseGateways } from '../gateway-reach.ts'
import { refuseOwnPlaces } from '../own-places.ts'
import { nowhere, type OwnPlaces } from '../../../schema/rules/own-places.ts'
import { agentBody, type AgentBody } from './agent-body.ts'
import { refuseTakenNumber } from '../extensions/taken-number.ts'

interface Row extends Selectable<AiAgentTable> {
  readonly slug: string | null
}

export interface AgentView extends MediaView {
  readonly strip_headers: string[]
  readonly id: number
  readonly name: string
  readonly tenant: string | null
  readonly extension: string
  readonly sip_uri: string
  readonly description: string | null
  readonly max_calls: number
  readonly is_active: boolean
  readonly created_at: string
  readonly updated_at: string
  /** The engine's call counts. */
  readonly active_calls?: number
}

export class AgentStore implements Resource<typeof agentBody, AgentView> {
  readonly noun = 'AI agent'
  readonly body = agentBody
  readonly onlyAtCreation = ['preset']
  readonly #store: Store
  readonly #places: OwnPlaces
  readonly #hasMediaRelay: boolean

  constructor(store: Store, places = nowhere, hasMediaRelay = false) {
    this.#store = store
    this.#places = places
    this.#hasMediaRelay = hasMediaRelay
  }

  async list(scope: RequestScope, { limit, offset, search }: Slice): Promise<Rows<AgentView>> {
    const matching = this.#visible(scope).where((row) =>
      contains(row, ['ai_agent.name', 'extension'], search),
    )
    const total = await first(
      this.#store,
      matching.select((row) => row.fn.countAll<number>().as('n')),
    )
    const rows = matching
      .selectAll('ai_agent')
      .select('tenant.slug')
      .orderBy('ai_agent.name')
      .limit(limit)
      .offset(offset)
    return { rows: (await all(this.#store, rows)).map(viewOf), total: total?.n ?? 0 }
  }

  async find(scope: RequestScope, id: number): Promise<AgentView | undefined> {
    const query = this.#visible(scope)
      .selectAll('ai_agent')
      .select('tenant.slug')
      .where('ai_agent.id', '=', id)
    const row = await first(this.#store, query)
    return row && viewOf(row)
  }

  async identify(body: AgentBody): Promise<number | undefined> {
    return identified(this.#store, 'ai_agent', body)
  }

  async document(scope: RequestScope, id: number): Promise<AgentBody | undefined> {
    const agent = await this.find(scope, id)
    if (agent === undefined) return undefined
    const { id: _id, created_at: _created, updated_at: _updated, ...body } = agent
    return body
  }

  destinations(body: AgentBody): readonly string[] {
    return body.is_active ? [withPreset(body).sip_uri] : []
  }

  async insert(given: AgentBody, scope: RequestScope): Promise<number> {
    const body = withPreset(given)
    return writeWithinLimits(this.#store, scope, ['agents'], async () => {
      const columns = { ...(await this.#columnsOf(body, scope)), created_at: scope.now }
      return insert(
        this.#store,
        this.#store.db.insertInto('ai_agent').values(columns).returning('id'),
      )
    })
  }

  async replace(id: number, given: AgentBody, scope: RequestScope): Promise<void> {
    const body = withPreset(given)
    await write(this.#store, async () => {
      const columns = await this.#columnsOf(body, scope, await this.find(scope, id))
      await execute(
        this.#store,
        this.#store.db.updateTable('ai_agent').set(columns).where('id', '=', id),
      )
    })
  }

  async remove(id: number, scope: RequestScope): Promise<'removed' | 'absent'> {
    return write(this.#store, async () => {
      if ((await this.find(scope, id)) === undefined) return 'absent'
      const { db } = this.#store
      const route = await first(
        this.#store,
        db
          .selectFrom('inbound_route')
          .select(['name', 'tenant_id'])
          .where('target_type', '=', 'agent')
          .where('target', '=', String(id)),
      )
      if (route !== undefined) {
        const isKnown = scope.tenantId === null || route.tenant_id === scope.tenantId
        const who = isKnown ? route.name : 'The platform'
        throw new ApiError(409, 'in_use', `${who} still sends calls to this agent`)
      }
      await execute(this.#store, db.deleteFrom('ai_agent').where('id', '=', id))
      return 'removed'
    })
  }

  async #columnsOf(body: AgentBody, scope: RequestScope, before?: AgentView) {
    refuseUnsupported(withoutRelay(body, before, this.#hasMediaRelay))
    const tenantId = await tenantOf(this.#store, body.tenant, scope)
    await refuseTakenNumber(this.#store, 'extension', body.extension, tenantId)
    const destination = { path: 'sip_uri', uri: body.sip_uri }
    await refuseGateways(this.#store, body.is_active ? [destination] : [], tenantId, scope)
    const isKept = before?.sip_uri === body.sip_uri
    if (!isKept) refuseOwnPlaces([destination], scope, this.#places)
    return {
      ...(isKept ? {} : { is_by_tenant: toFlag(scope.tenantId !== null) }),
      tenant_id: tenantId,
      name: body.name,
      extension: body.extension,
      sip_uri: body.sip_uri,
      description: body.description ?? null,
      max_calls: body.max_calls,
      is_active: toFlag(body.is_active),
      ...mediaColumnsOf(body),
      strip_headers: stripHeadersColumn(body.strip_headers),
      updated_at: scope.now,
    }
  }

  #visible({ tenantId }: RequestScope) {
    return this.#store.db
      .selectFrom('ai_agent')
      .leftJoin('tenant', 'tenant.id', 'ai_agent.tenant_id')
      .$if(tenantId !== null, (query) => query.where('ai_agent.tenant_id', '=', tenantId))
  }
}

/** A preset also means TLS, where the URI names no transport. */
function withPreset(given: AgentBody): AgentBody {
  const body = filledIn(given)
  return body.preset === undefined ? body : { ...body, sip_uri: overTls(body.sip_uri) }
}

const viewOf = (row: Row): AgentView => ({
  id: row.id,
  name: row.name,
  tenant: row.slug,
  extension: row.extension,
  sip_uri: row.sip_uri,
  description: row.description,
  max_calls: row.max_calls,
  is_active: fromFlag(row.is_active),
  ...mediaViewOf(row),
  strip_headers: stripHeadersView(row.strip_headers),
  created_at: timeToText(row.created_at),
  updated_at: timeToText(row.updated_at),
})
