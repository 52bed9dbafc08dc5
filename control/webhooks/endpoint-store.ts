/** Endpoints as rows: URL, event types and secrets. */
import { type Selectable, sql, type Updateable } from 'kysely'
import { z } from 'zod'
import { toFlag } from '../../schema/columns.ts'
import { type EventType, eventTypes } from '../../schema/contracts/engine.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, execute, first, insert, readApart } from '../../schema/sql/query.ts'
import type { ScopedResource } from '../auth/scopes.ts'
import type { RequestScope } from '../auth/tenants.ts'
import { ApiError } from '../http/api-error.ts'
import { reference, text } from '../http/fields.ts'
import { type Column, json } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import type { FoundTable } from '../http/found-by.ts'
import type { Rows } from '../resources/resource.ts'
import { problemOfUrl } from '../../schema/net/http-target.ts'
import { pageOf, write } from '../http/rows.ts'
import { pageQuery } from '../http/envelope.ts'
import type { WebhookEndpointTable } from '../../schema/tables/changes.ts'

/** How a search finds endpoints. */
export const foundEndpoints = {
  kind: 'webhook',
  scope: 'webhooks',
  table: sql.table('webhook_endpoint'),
  id: 'webhook_endpoint.id',
  owner: 'webhook_endpoint.tenant_id',
  title: 'webhook_endpoint.url',
  beside: ['webhook_endpoint.description'],
  screen: 'webhooks',
  page: 'webhook_endpoint.id',
} as const satisfies FoundTable & { readonly scope: ScopedResource }

export type EndpointRow = Selectable<WebhookEndpointTable>

export type EndpointChange = Omit<EndpointPatch, 'approval_links'> & {
  /** Null: its events have no links. */
  readonly approver_id?: number | null
}

/** Endpoints of one tenant or of the platform: each subscribed owner costs one write an event. */
const maxEndpoints = 200

export class EndpointStore {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  async list(
    { tenantId }: RequestScope,
    slice: { readonly limit: number; readonly offset: number },
  ): Promise<Rows<EndpointView>> {
    const sorted = this.#visible(tenantId).selectAll().orderBy('id')
    const { rows, total } = await readApart(this.#store, tenantId, () =>
      pageOf(this.#store, sorted, slice),
    )
    return { rows: rows.map(endpointView), total }
  }

  find({ tenantId }: RequestScope, id: number): Promise<EndpointRow | undefined> {
    return first(this.#store, this.#visible(tenantId).selectAll().where('id', '=', id))
  }

  /** Reads the endpoints and decrypts their secrets; one with an unreadable secret is reported. */
  async active(onDamaged: (endpointId: number) => void = () => undefined): Promise<EndpointRow[]> {
    const rows = await all(this.#store, this.#visible(null).selectAll().where('is_active', '=', 1))
    return rows.flatMap((row) => {
      const opened = this.#opened(row)
      if (opened === undefined) onDamaged(row.id)
      return opened === undefined ? [] : [opened]
    })
  }

  async insert(
    body: Omit<NewEndpoint, 'approval_links'>,
    secret: string,
    tenantId: number | null,
    now: number,
    approverId: number | null = null,
  ): Promise<number> {
    return write(this.#store, async () => {
      const count = this.#visible(null)
        .where('tenant_id', 'is not distinct from', tenantId)
        .select((row) => row.fn.countAll<number>().as('n'))
      if (((await first(this.#store, count))?.n ?? 0) >= maxEndpoints)
        throw new ApiError(409, 'too_many_endpoints', `There are already ${maxEndpoints} endpoints`)
      const row = {
        tenant_id: tenantId,
        url: body.url,
        description: body.description,
        events: JSON.stringify(body.events),
        is_active: toFlag(body.is_active),
        approver_id: approverId,
        // Encrypted for its row, which does not exist yet.
        secret: '',
        created_at: now,
        updated_at: now,
      }
      const query = this.#store.db.insertInto('webhook_endpoint').values(row).returning('id')
      const id = await insert(this.#store, query)
      await this.#set(id, { secret: this.#seal(id, 'secret', secret) })
      return id
    })
  }

  /** Reactivating an endpoint resets its failure state. */
  async update(id: number, change: EndpointChange, now: number): Promise<void> {
    const { events, is_active: isActive, ...columns } = change
    await this.#set(id, {
      ...columns,
      ...(events !== undefined && { events: JSON.stringify(events) }),
      ...(isActive !== undefined && { is_active: toFlag(isActive) }),
      ...(isActive === true && { disabled_reason: null }),
      updated_at: now,
    })
  }

  /** Both secrets sign until the old one expires. */
  async rotate(
    endpoint: EndpointRow,
    secret: string,
    oldExpiresAt: number,
    now: number,
  ): Promise<void> {
    const old = oldExpiresAt <= now ? undefined : this.#opened(endpoint)?.secret
    const isOver = old === undefined
    await this.#set(endpoint.id, {
      secret: this.#seal(endpoint.id, 'secret', secret),
      previous_secret: isOver ? null : this.#seal(endpoint.id, 'previous_secret', old),
      previous_secret_expires_at: isOver ? null : oldExpiresAt,
      updated_at: now,
    })
  }

  /** Runs in the caller's transaction. */
  disable(id: number, reason: 'gone' | 'backlog', now: number): Promise<void> {
    return this.#set(id, { is_active: 0, disabled_reason: reason, updated_at: now })
  }

  /** Hides it immediately; `sweep` deletes it. Resolves with false when it is hidden already. */
  async remove(id: number, now: number): Promise<boolean> {
    const query = this.#store.db
      .updateTable('webhook_endpoint')
      .set({ is_active: 0, removed_at: now })
      .where('id', '=', id)
      .where('removed_at', 'is', null)
    return (await execute(this.#store, query)) > 0
  }

  /**
   * Deletes removed endpoints and at most `limit` of their deliveries. Returns whether any remain.
   */
  async sweep(limit: number): Promise<boolean> {
    const { db } = this.#store
    const removed = db
      .selectFrom('webhook_endpoint')
      .select('id')
      .where('removed_at', 'is not', null)
    const row = await first(this.#store, removed.orderBy('id').limit(1))
    if (row === undefined) return false
    const some = db
      .selectFrom('webhook_delivery')
      .select('id')
      .where('endpoint_id', '=', row.id)
      .limit(limit)
    const deliveries = db.deleteFrom('webhook_delivery').where('id', 'in', some)
    const count = await execute(this.#store, deliveries)
    if (count < limit)
      await execute(this.#store, db.deleteFrom('webhook_endpoint').where('id', '=', row.id))
    return (await first(this.#store, removed.limit(1))) !== undefined
  }

  #opened(row: EndpointRow): EndpointRow | undefined {
    const { secrets } = this.#store
    const secret = secrets.open(secretRef(row.id, 'secret'), row.secret)
    const previous =
      row.previous_secret === null
        ? null
        : secrets.open(secretRef(row.id, 'previous_secret'), row.previous_secret)
    return secret === undefined || previous === undefined
      ? undefined
      : { ...row, secret, previous_secret: previous }
  }

  #seal(id: number, column: SecretColumn, secret: string): string {
    return this.#store.secrets.seal(secretRef(id, column), secret)
  }

  async #set(id: number, columns: Updateable<WebhookEndpointTable>): Promise<void> {
    await execute(
      this.#store,
      this.#store.db.updateTable('webhook_endpoint').set(columns).where('id', '=', id),
    )
  }

  #visible(tenantId: number | null) {
    return this.#store.db
      .selectFrom('webhook_endpoint')
      .where('removed_at', 'is', null)
      .$if(tenantId !== null, (query) => query.where('tenant_id', '=', tenantId))
  }
}

type SecretColumn = 'secret' | 'previous_secret'

const secretRef = (row: number, column: SecretColumn) =>
  ({ table: 'webhook_endpoint', column, row }) as const

/** The event types of an endpoint. Only this store writes them. */
export const typesOf = (row: Pick<EndpointRow, 'events'>): readonly (EventType | '*')[] =>
  JSON.parse(row.events) as (EventType | '*')[]

/** Decrypted secrets of an active endpoint that sign at `now`, newest first. */
export const secretsOf = (row: EndpointRow, now: number): readonly string[] =>
  row.previous_secret !== null && (row.previous_secret_expires_at ?? 0) > now
    ? [row.secret, row.previous_secret]
    : [row.secret]

export type EndpointView = z.output<typeof endpointFields.view>

export const endpointView = (row: EndpointRow): EndpointView => field.shownOf(endpointFields, row)

const eventName = z.enum(['*', ...eventTypes])

const eventNames = z
  .array(eventName)
  .min(1)
  .max(eventTypes.length + 1)
  .transform((types) => [...new Set(types)])

const approvalLinks = z
  .boolean()
  .describe(
    'Whether `proposal.created` has `approve_url`: who follows it decides with the rights of ' +
      'the user who has set this.',
  )

const hasApprover: Column = { read: (row) => row['approver_id'] !== null }

/**
 * The bodies, answers and example of endpoints follow from this table. Secrets are in none of them,
 * so endpoints are no `Definition`: their store seals and rotates what an undo could not restore.
 */
export const endpointFields = field.table(
  {
    id: field.id,
    url: field.required(field.text(2_000), { example: 'https://crm.example/hook' }),
    events: field.of(
      { body: eventNames, view: z.array(eventName), stored: json },
      { default: ['*'] },
    ),
    description: field.of(
      { body: text(500).nullable(), view: z.string().nullable() },
      { default: null },
    ),
    is_active: field.of(field.yesOrNo, { default: true }),
    approval_links: field.of(
      { body: approvalLinks, view: z.boolean(), stored: () => hasApprover },
      { default: false },
    ),
    tenant: field.written(reference.nullish()),
    disabled_reason: field.shown(z.enum(['gone', 'backlog']).nullable(), { example: null }),
    previous_secret_expires_at: field.timeOrNull(),
    created_at: field.createdAt,
    updated_at: field.updatedAt,
  },
  { schemaId: 'WebhookEndpoint', first: ['id', 'url', 'description'] },
)

const reachableUrl = (allowPrivate: boolean) =>
  endpointFields.body.shape.url.superRefine((value, context) => {
    const message = problemOfUrl(value, allowPrivate)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })

export const newEndpointBody = (allowPrivate: boolean) =>
  endpointFields.body.extend({ url: reachableUrl(allowPrivate) })
type NewEndpoint = z.output<ReturnType<typeof newEndpointBody>>

export function endpointPatch(allowPrivate: boolean) {
  const { events, description, is_active, approval_links } = endpointFields.body.shape
  return z
    .strictObject({
      url: reachableUrl(allowPrivate),
      events: events.unwrap(),
      description: description.unwrap(),
      is_active: is_active.unwrap(),
      approval_links: approval_links.unwrap(),
    })
    .partial()
}
export type EndpointPatch = z.output<ReturnType<typeof endpointPatch>>

export const deliveryQuery = z.strictObject({
  ...pageQuery,
  state: z.enum(['pending', 'delivered', 'failed']).optional(),
})
