/**
 * A resource is one definition: its table of fields, its place in the database, and its checks.
 * From it come the rows (here), the five routes (`resource-routes.ts`), the seed file (`seed.ts`),
 * undo (`kinds.ts`) and the OpenAPI document; where it has `general` words, also tools and a screen
 * of the console. Hooks that several nouns have are properties of the definition; those of one noun
 * are methods of its own `ResourceStore`, which it names in `store`.
 */
import { type Compilable, type RawBuilder, sql } from 'kysely'
import type { z } from 'zod'
import type { LedgerPort } from '../../schema/contracts/charging.ts'
import type { Database } from '../../schema/tables/database.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, execute, first } from '../../schema/sql/query.ts'
import type { BeyondScope, WrittenRow } from '../auth/requires.ts'
import { type LimitedKind, writeWithinLimits } from '../auth/tenant-limits.ts'
import type { Scope, ScopedResource } from '../auth/scopes.ts'
import { everywhere, type RequestScope } from '../auth/tenants.ts'
import type { ChangeDeps, ChangeKind } from '../changes/kinds.ts'
import { ApiError, type RequestProblem } from '../http/api-error.ts'
import { contains } from '../http/rows.ts'
import type { FoundBy } from '../http/found-by.ts'
import type { ResourceDescription } from '../http/resource-operations.ts'
import type { Row } from '../http/field-columns.ts'
import { type FieldTable, shownOf } from '../http/field-table.ts'
import { versionOf } from '../http/precondition.ts'
import { nothingReserved, type ReservedAddresses, reservedBy } from './gateway-reach.ts'
import { withoutRelay } from './media-fields.ts'
import { either, resolve, tenantOf } from './references.ts'
import {
  childrenOf,
  type ChildTable,
  type ColumnPath,
  compiled,
  insertRow,
  rowWith,
  updateRow,
} from './table-rows.ts'

export interface Slice {
  readonly limit: number
  readonly offset: number
  /** Part of the name; undefined matches all. */
  readonly search: string | undefined
}

export interface Rows<View> {
  readonly rows: readonly View[]
  /** The number of rows beyond this slice too. */
  readonly total: number
}

/** Dependencies of the checks of resources. */
export interface ResourceDeps {
  readonly store: Store
  /** Addresses that no row may name. */
  readonly reserved: ReservedAddresses
  /** Whether `RTPENGINE` names media relays. */
  readonly hasMediaRelay: boolean
  /** Whether webhooks may go to private networks. */
  readonly allowsPrivateTargets: boolean
  /** Whether certificates may come from private networks, and by plain HTTP. */
  readonly allowsPrivateCertificates: boolean
  /** Makes secrets; absent: bodies have to name them. */
  readonly randomBytes?: ((size: number) => Buffer) | undefined
  /** The only way to a balance; only customers need it. */
  readonly ledger?: LedgerPort | undefined
  /** The amount reserved for the live calls of a customer. */
  readonly reservedOf: (customerId: number) => bigint
  /** Whether DNS does not know the name of a dispatcher node. */
  readonly isUnresolvable: (nodeId: number) => boolean
  /**
   * After each write of a tenant, also one that failed: meanwhile others may have read what was not
   * committed.
   */
  readonly tenantsChanged: () => void
}

/**
 * Without `reserved` no address is refused; without `hasMediaRelay` no media field is accepted that
 * needs one.
 */
export type ResourceOptions = Pick<ResourceDeps, 'store'> & Partial<ResourceDeps>

/** Rows below a row, shown as a list in one of its fields. */
interface Children extends Pick<ChildTable, 'table' | 'parent'> {
  readonly order: ColumnPath
  readonly view: (row: Row) => unknown
  /** The element of the body that would write the child; absent: the view. */
  document?(view: object): unknown
}

/** The view of a row. */
export type ViewOf<View extends z.ZodObject> = z.output<View> & { readonly id: number }

/** A row, and the version that it has (`http/precondition.ts`). */
export interface Versioned<Shown> {
  readonly view: Shown
  readonly version: string
}

/** A write, as the checks of its resource see it. */
export interface Writing<Body extends z.ZodObject, View extends z.ZodObject> {
  readonly body: z.output<Body>
  /** Undefined for a new row. */
  readonly before: ViewOf<View> | undefined
  readonly scope: RequestScope
  /** The tenant of the row; null: the platform's. */
  readonly tenantId: number | null
  /** The columns of the row, with the ids of its references. */
  readonly columns: Row
  /** The hash of the body's password, where it was computed before the write. */
  readonly secretHash: string | undefined
  readonly deps: ResourceDeps
}

export interface Definition<Body extends z.ZodObject, View extends z.ZodObject> {
  /** Its name in an error: `Carrier not found`. */
  readonly noun: string
  readonly table: keyof Database
  /** Below `/api/v1`: `/routing/carriers`. */
  readonly path: string
  /** Requires its `:read` and `:write`. */
  readonly scope: ScopedResource
  /** The kind under which its changes are recorded, and undone; absent: the name of its table. */
  readonly kind?: ChangeKind
  /** Its fields: what is written, what is shown, and where that stands. */
  readonly fields: FieldTable<Body, View>
  /** Whoever adds more to the five routes mounts them, too; absent: `plainResourceRoutes` does. */
  readonly hasOwnRoutes?: true
  /** Absent: its tools and its screen are written by hand. */
  readonly general?: NounWords
  /** The part of the OpenAPI document that does not follow from the fields. */
  readonly described: Omit<ResourceDescription, 'example'> & Partial<ResourceDescription>
  readonly children?: Readonly<Record<string, Children>>
  /**
   * Joins in addition to those of the tenant and the references, and the columns selected from
   * them.
   */
  readonly joins?: RawBuilder<unknown>
  readonly selected?: RawBuilder<unknown>
  /** The column with the tenant of a row; absent: `tenant_id`. */
  readonly owner?: ColumnPath
  /** The column with the SIP domain to which a key may be limited. */
  readonly domain?: ColumnPath
  /** How `GET /search` finds its rows; absent: it finds them where `general` is there. */
  readonly found?: FoundBy
  /** The columns in which a list is searched. */
  readonly search: readonly ColumnPath[]
  /** The columns by which a list is sorted. */
  readonly order: readonly (ColumnPath | RawBuilder<unknown>)[]
  /** The limits of a tenant that a new row counts against. */
  readonly limits?: readonly LimitedKind[]
  /** The limits of a tenant that its children count against. */
  readonly childLimits?: readonly LimitedKind[]
  /** The store of an odd noun; absent: `ResourceStore`. */
  store?(deps: ResourceOptions): ResourceStore<Body, View>
  /** Fills in what a body leaves to another of its fields, such as a preset. */
  prepare?(body: z.output<Body>): z.output<Body>
  /** Returns the id of the row that a body names; absent: by its name and its tenant. */
  identify?(body: z.output<Body>, deps: ResourceDeps): Promise<number | undefined>
  /** URIs of a body whose names are looked up before the write, which must not wait. */
  destinations?(body: z.output<Body>): readonly string[]
  /**
   * Before the row is written. Returns columns in addition to those of the body. Throws an
   * `ApiError`.
   */
  check?(writing: Writing<Body, View>): Promise<Row | undefined>
  /** After the row was written, in its transaction: children, secrets, money. */
  written?(id: number, writing: Writing<Body, View>): Promise<void>
  /** Throws an `ApiError` when the row has to stay. */
  removing?(view: ViewOf<View>, scope: RequestScope, deps: ResourceDeps): Promise<void>
  /** Fields that require another scope than `scope`, of those that a write has changed. */
  beyond?(written: WrittenRow<ViewOf<View>>): readonly BeyondScope[]
  /**
   * Updates this process after the commit of a write or its undoing, before the response. Absent:
   * it has no memory of the rows.
   */
  follow?(
    deps: ChangeDeps,
    change: {
      readonly id: number
      readonly before?: ViewOf<View> | undefined
      readonly after?: ViewOf<View> | undefined
    },
  ): Promise<void>
}

/** The words of the tools and of the screen that follow from a definition. */
export interface NounWords {
  /** One sentence about it: `A contact is a name for a telephone number.` */
  readonly about: string
  /** One sentence about its deletion: `Its number is shown without a name.` */
  readonly removal: string
  /** The group of the menu in which the screen stands. */
  readonly group: 'Calls' | 'Routing' | 'Billing' | 'Access' | 'Platform'
  /** Its tools require these beside its own scope: all that `beyond` may ask for. */
  readonly scopes?: readonly Scope[]
  /** Its tools beside the one that lists: the list of all tools is short. Absent: all three. */
  readonly tools?: readonly ('add' | 'change' | 'remove')[]
  /** Its screen is written by hand. */
  readonly hasOwnScreen?: true
}

/** Any noun. */
export type AnyDefinition = Definition<z.ZodObject, z.ZodObject>

export const kindOf = ({ kind, table }: Pick<AnyDefinition, 'kind' | 'table'>): ChangeKind =>
  kind ?? table

/** The rows of a resource, in its own store where it has one. */
export const storeOf = <Body extends z.ZodObject, View extends z.ZodObject>(
  definition: Definition<Body, View>,
  deps: ResourceOptions,
): ResourceStore<Body, View> => definition.store?.(deps) ?? new ResourceStore(definition, deps)

/**
 * The rows of a resource. Every rejection is an `ApiError` whose details contain the path in the
 * body.
 */
export class ResourceStore<Body extends z.ZodObject, View extends z.ZodObject> {
  readonly definition: Definition<Body, View>
  protected readonly deps: ResourceDeps

  constructor(definition: Definition<Body, View>, deps: ResourceOptions) {
    this.definition = definition
    this.deps = { ...noDeps, ...deps }
  }

  get noun(): string {
    return this.definition.noun
  }

  get body(): Body {
    return this.definition.fields.body
  }

  /** Further conditions of a list, by the fields of its query. */
  protected matching(_query: Row): readonly RawBuilder<boolean>[] {
    return []
  }

  /** Fields of a view that are no columns. */
  protected computed(_row: Row): Row {
    return {}
  }

  /** Throws 403 when the scope may write none of these rows. */
  protected admitWriter(_scope: RequestScope): void {
    // Everyone with the scope of the resource may.
  }

  /** Which fields of a body have no effect. */
  protected unsupported(_body: z.output<Body>): readonly (RequestProblem | false)[] {
    return []
  }

  /** The tenant of a row: the one that the body names, or the writer's. */
  protected async tenantOf(body: z.output<Body>, scope: RequestScope): Promise<number | null> {
    const { tenant }: Row = body
    return tenantOf(this.deps.store, tenant, scope)
  }

  /** When a write was rolled back: meanwhile others may have read what was not committed. */
  protected failed(): void {
    // The rows are read from the database.
  }

  /** Throws 409 when undoing the creation would remove what was made later, too. */
  async refuseUndoing(_id: number): Promise<void> {
    // Nothing is below a row.
  }

  /** Whether a body contains a secret, shown by no response, that differs from the stored one. */
  async isNewSecret(_id: number, _body: z.output<Body>): Promise<boolean> {
    return false
  }

  /**
   * Computes the slow hash of a body's password off the event loop; without it, the write computes
   * it.
   */
  async hashSecret(_body: z.output<Body>): Promise<string | undefined> {
    return undefined
  }

  async list(
    scope: RequestScope,
    { limit, offset, search, ...query }: Slice & Row,
  ): Promise<Rows<ViewOf<View>>> {
    const { definition } = this
    const where = sql.join(
      [...this.#visible(scope), contains(definition.search, search), ...this.matching(query)],
      sql` AND `,
    )
    const count = sql<{ n: number }>`SELECT count(*) AS n ${this.#from()} WHERE ${where}`
    const total = await first<{ n: number }>(this.deps.store, this.#compiled(count))
    const order = sql.join(
      definition.order.map((column) => (typeof column === 'string' ? sql.ref(column) : column)),
    )
    const rows = await all<Row>(
      this.deps.store,
      this.#compiled(
        sql<Row>`${this.#selected()} WHERE ${where}
          ORDER BY ${order} LIMIT ${limit} OFFSET ${offset}`,
      ),
    )
    return { rows: await this.#views(rows), total: total?.n ?? 0 }
  }

  async find(scope: RequestScope, id: number): Promise<ViewOf<View> | undefined> {
    const row = await this.#row(scope, id)
    return row === undefined ? undefined : (await this.#views([row]))[0]
  }

  /** A row as `find` returns it, with the version of what a body may write. */
  async versioned(scope: RequestScope, id: number): Promise<Versioned<ViewOf<View>> | undefined> {
    const row = await this.#row(scope, id)
    if (row === undefined) return undefined
    // Both are made of one reading of the row: another one may be of a later version.
    const [view] = await this.#views([row])
    if (view === undefined) return undefined
    const { updated_at: at = null }: Row = view
    return { view, version: versionOf([this.documentOf(row, view), at]) }
  }

  /** Returns the id of the row that a body names: this makes a seed file repeatable. */
  async identify(body: z.output<Body>): Promise<number | undefined> {
    const { definition } = this
    if (definition.identify !== undefined) return definition.identify(body, this.deps)
    const { name, tenant } = body as Row
    return this.idOf({ name, tenant_id: await tenantOf(this.deps.store, tenant, everywhere) })
  }

  /** Returns the id of the row with these columns. */
  async idOf(columns: Row): Promise<number | undefined> {
    return rowWith(this.deps.store, this.definition.table, columns)
  }

  /**
   * Returns a row as a body that would write it, without secrets and fields of creation, so that an
   * update is the document with some fields replaced.
   */
  async document(scope: RequestScope, id: number): Promise<z.output<Body> | undefined> {
    const row = await this.#row(scope, id)
    if (row === undefined) return undefined
    const [view] = await this.#views([row])
    return asDocument<Body>(this.documentOf(row, view ?? {}))
  }

  /** A row as a body: the fields of its view that a body has. */
  protected documentOf(row: Row, view: Row): Row {
    const { fields, children = {} } = this.definition
    const { body, columns, references, leftOut } = fields
    const isLeftOut = (field: string) =>
      !Object.hasOwn(body.shape, field) ||
      Object.hasOwn(references, field) ||
      leftOut.includes(field)
    const entries = Object.entries(view)
      .filter(([field]) => !isLeftOut(field))
      .map(([field, value]) => {
        const asBody = children[field]?.document
        if (asBody !== undefined) return [field, (value as object[]).map((child) => asBody(child))]
        return [field, columns[field]?.document?.(row) ?? value]
      })
    return Object.fromEntries(entries) as Row
  }

  destinations(body: z.output<Body>): readonly string[] {
    return this.definition.destinations?.(this.#prepared(body)) ?? []
  }

  async insert(given: z.output<Body>, scope: RequestScope, secretHash?: string): Promise<number> {
    const { store } = this.deps
    const { table, limits = [], childLimits = [] } = this.definition
    const body = this.#prepared(given)
    return this.#written(scope, [...limits, ...childLimits], async () => {
      const writing = await this.#writing(body, scope, { secretHash })
      const row = {
        ...writing.columns,
        ...(this.#hasTime('created_at') && { created_at: scope.now }),
      }
      const id = await insertRow(store, table, row)
      await this.definition.written?.(id, writing)
      return id
    })
  }

  /** Replaces row `id` with `body`; absent secrets keep their values. */
  async replace(
    id: number,
    given: z.output<Body>,
    scope: RequestScope,
    secretHash?: string,
  ): Promise<void> {
    const { store } = this.deps
    const { table, childLimits = [] } = this.definition
    const body = this.#prepared(given)
    await this.#written(scope, childLimits, async () => {
      const before = await this.find(scope, id)
      const writing = await this.#writing(body, scope, { secretHash, before })
      await updateRow(store, table, id, writing.columns)
      await this.definition.written?.(id, writing)
    })
  }

  /** 409 while other rows refer to it. */
  async remove(id: number, scope: RequestScope): Promise<'removed' | 'absent'> {
    const { store } = this.deps
    return this.#written(scope, [], async () => {
      const view = await this.find(scope, id)
      if (view === undefined) return 'absent'
      await this.definition.removing?.(view, scope, this.deps)
      const removed = sql`DELETE FROM ${sql.table(this.definition.table)} WHERE id = ${id}`
      await execute(store, this.#compiled(removed))
      return 'removed'
    })
  }

  async #written<T>(
    scope: RequestScope,
    limits: readonly LimitedKind[],
    work: () => Promise<T>,
  ): Promise<T> {
    this.admitWriter(scope)
    try {
      return await writeWithinLimits(this.deps.store, scope, limits, work)
    } catch (error) {
      this.failed()
      throw error
    }
  }

  #prepared(body: z.output<Body>): z.output<Body> {
    return this.definition.prepare?.(body) ?? body
  }

  #hasTime(column: string): boolean {
    return Object.hasOwn(this.definition.fields.view.shape, column)
  }

  async #writing(
    body: z.output<Body>,
    scope: RequestScope,
    { before, secretHash }: Partial<Pick<Writing<Body, View>, 'before' | 'secretHash'>>,
  ): Promise<Writing<Body, View>> {
    const { definition } = this
    const fields: Row = body
    refuseUnsupported([
      ...this.unsupported(body),
      ...withoutRelay(fields, before, this.deps.hasMediaRelay),
    ])
    const tenantId = await this.tenantOf(body, scope)
    const columns = {
      ...(definition.owner === undefined && { tenant_id: tenantId }),
      ...this.#columnsOf(fields),
      ...(await this.#references(fields, { tenantId, scope, before })),
      ...(this.#hasTime('updated_at') && { updated_at: scope.now }),
    }
    const writing = { body, before, scope, tenantId, columns, secretHash, deps: this.deps }
    return { ...writing, columns: { ...columns, ...(await definition.check?.(writing)) } }
  }

  #columnsOf(body: Row): Row {
    const { fields, children = {} } = this.definition
    const { columns, references, storedElsewhere } = fields
    const elsewhere = new Set([
      'tenant',
      ...storedElsewhere,
      ...Object.keys(children),
      ...Object.keys(references).flatMap((field) => [field, `${field}_id`]),
    ])
    return Object.assign(
      {},
      ...Object.keys(this.body.shape)
        .filter((field) => !elsewhere.has(field))
        .map((field) => columns[field]?.write?.(body[field]) ?? { [field]: body[field] ?? null }),
    ) as Row
  }

  async #references(
    body: Row,
    { before, ...owner }: Pick<Writing<Body, View>, 'tenantId' | 'scope' | 'before'>,
  ): Promise<Row> {
    const { references } = this.definition.fields
    const known: Row = before ?? {}
    const columns: Record<string, unknown> = {}
    for (const [field, kind] of Object.entries(references)) {
      const reference = either(field, body[field], body[`${field}_id`])
      const current = known[`${field}_id`]
      columns[`${field}_id`] = await resolve(this.deps.store, kind, reference, {
        ...owner,
        path: field,
        current: typeof current === 'number' ? current : null,
      })
    }
    return columns
  }

  async #row(scope: RequestScope, id: number): Promise<Row | undefined> {
    const ofRow = sql<boolean>`${sql.ref(`${this.definition.table}.id`)} = ${id}`
    const where = sql.join([...this.#visible(scope), ofRow], sql` AND `)
    return first<Row>(this.deps.store, this.#compiled(sql<Row>`${this.#selected()} WHERE ${where}`))
  }

  async #views(rows: readonly Row[]): Promise<ViewOf<View>[]> {
    const { fields: table, children = {} } = this.definition
    const below = new Map<string, ReadonlyMap<unknown, readonly Row[]>>()
    const ids = rows.map(({ id }) => id)
    for (const [field, child] of Object.entries(children))
      below.set(field, await childrenOf(this.deps.store, child, ids, child.order))
    return rows.map((row) => {
      const lists = Object.entries(children).map(([field, child]) => [
        field,
        (below.get(field)?.get(row['id']) ?? []).map(child.view),
      ])
      const computed = { ...(Object.fromEntries(lists) as Row), ...this.computed(row) }
      return shownOf(table, row, computed) as ViewOf<View>
    })
  }

  #selected(): RawBuilder<unknown> {
    const { table, fields, selected } = this.definition
    const names = Object.entries(fields.references).flatMap(([field, kind]) =>
      kind === 'dispatcher_set' ? [] : [sql`${sql.ref(`${field}.name`)} AS ${sql.ref(field)}`],
    )
    const columns = sql.join([
      sql`${sql.table(table)}.*`,
      ...(this.#isOfTenants() ? [sql`tenant.slug`] : []),
      ...names,
      ...(selected === undefined ? [] : [selected]),
    ])
    return sql`SELECT ${columns} ${this.#from()}`
  }

  #from(): RawBuilder<unknown> {
    const { table, fields, joins } = this.definition
    const named = Object.entries(fields.references)
      .filter(([, kind]) => kind !== 'dispatcher_set')
      .map(
        ([field, kind]) =>
          sql`LEFT JOIN ${sql.table(kind)} AS ${sql.ref(field)}
            ON ${sql.ref(`${field}.id`)} = ${sql.ref(`${table}.${field}_id`)}`,
      )
    return sql.join(
      [
        sql`FROM ${sql.table(table)}`,
        ...(this.#isOfTenants()
          ? [sql`LEFT JOIN tenant ON tenant.id = ${sql.ref(`${table}.tenant_id`)}`]
          : []),
        ...named,
        ...(joins === undefined ? [] : [joins]),
      ],
      sql` `,
    )
  }

  #isOfTenants(): boolean {
    return this.definition.owner === undefined
  }

  /** The conditions that limit rows to those that the scope may see. */
  #visible({ tenantId, domain }: RequestScope): readonly RawBuilder<boolean>[] {
    const { table, owner = `${table}.tenant_id`, domain: domainColumn } = this.definition
    return [
      tenantId === null ? sql<boolean>`true` : sql<boolean>`${sql.ref(owner)} = ${tenantId}`,
      ...(domainColumn === undefined || domain == null
        ? []
        : [sql<boolean>`${sql.ref(domainColumn)} = ${domain}`]),
    ]
  }

  #compiled<R>(query: RawBuilder<R>): Compilable<R> {
    return compiled(this.deps.store, query)
  }
}

const noDeps = {
  reserved: nothingReserved,
  hasMediaRelay: false,
  allowsPrivateTargets: false,
  allowsPrivateCertificates: false,
  reservedOf: () => 0n,
  isUnresolvable: () => false,
  tenantsChanged: () => undefined,
}

function asDocument<Body extends z.ZodObject>(fields: unknown): z.output<Body> {
  return fields as z.output<Body>
}

/** The dependencies of a serving process. */
export const resourceDeps = ({
  store,
  settings,
  ocs,
  engine,
  tenants,
  randomBytes,
}: ChangeDeps): ResourceDeps => ({
  store,
  reserved: reservedBy(settings),
  hasMediaRelay: settings.hasMediaRelay,
  allowsPrivateTargets: settings.allowsPrivateTargets === true,
  allowsPrivateCertificates: settings.allowsPrivateCertificates === true,
  randomBytes,
  ledger: ocs?.ledger,
  reservedOf: (id) => ocs?.balanceOf(id)?.reservedMicros ?? 0n,
  isUnresolvable: (nodeId) => engine.dispatcher.isUnresolvable(nodeId),
  tenantsChanged: () => tenants.clear(),
})

/** Throws 400 `not_supported` when `details` is not empty. */
function refuseUnsupported(details: readonly (RequestProblem | false)[]): void {
  const problems = details.filter((detail) => detail !== false)
  if (problems.length === 0) return
  throw new ApiError(400, 'not_supported', 'The body contains unsupported fields', {
    details: problems,
  })
}
