/** Tenants and their domains as rows. A tenant credential sees only its own tenant. */
import type { Selectable } from 'kysely'
import { fromFlag, timeToText, toFlag } from '../../schema/columns.ts'
import type { TenantTable } from '../../schema/database.ts'
import type { Store } from '../../schema/open.ts'
import { all, execute, first, insert } from '../../schema/sql/sync-query.ts'
import { ApiError } from '../http/api-error.ts'
import {
  mediaColumnsOf,
  mediaViewOf,
  withoutRelay,
  type MediaView,
} from '../provisioning/media-fields.ts'
import { refuseUnsupported } from '../provisioning/not-supported.ts'
import { contains, grouped } from '../provisioning/rows.ts'
import type { RequestScope, Resource, Rows, Slice } from '../provisioning/resource.ts'
import { write } from '../provisioning/write.ts'
import { tenantBody, type TenantBody } from './tenant-body.ts'

export interface TenantView extends MediaView {
  readonly id: number
  readonly slug: string
  readonly name: string
  readonly is_active: boolean
  readonly domains: readonly string[]
  readonly numbers: readonly string[]
  readonly created_at: string
}

export class TenantStore implements Resource<typeof tenantBody, TenantView> {
  readonly noun = 'Tenant'
  readonly body = tenantBody
  readonly #store: Store
  readonly #hasMediaRelay: boolean

  constructor(store: Store, hasMediaRelay = false) {
    this.#store = store
    this.#hasMediaRelay = hasMediaRelay
  }

  list(scope: RequestScope, { limit, offset, search }: Slice): Rows<TenantView> {
    const matching = this.#visible(scope).where((row) => contains(row, ['slug', 'name'], search))
    const total = first(
      this.#store,
      matching.select((row) => row.fn.countAll<number>().as('n')),
    )
    const rows = all(this.#store, matching.selectAll().orderBy('slug').limit(limit).offset(offset))
    return { rows: this.#views(rows), total: total?.n ?? 0 }
  }

  find(scope: RequestScope, id: number): TenantView | undefined {
    const rows = all(this.#store, this.#visible(scope).selectAll().where('id', '=', id))
    return this.#views(rows)[0]
  }

  identify({ slug }: TenantBody): number | undefined {
    const query = this.#store.db.selectFrom('tenant').select('id').where('slug', '=', slug)
    return first(this.#store, query)?.id
  }

  document(scope: RequestScope, id: number): TenantBody | undefined {
    const tenant = this.find(scope, id)
    if (tenant === undefined) return undefined
    const { id: _id, created_at: _created, domains, numbers, ...body } = tenant
    return { ...body, domains: [...domains], numbers: [...numbers] }
  }

  insert(body: TenantBody, scope: RequestScope): number {
    refuseTenantCredential(scope)
    refuseUnsupported(withoutRelay(body, undefined, this.#hasMediaRelay))
    return write(this.#store, () => {
      const id = insert(
        this.#store,
        this.#store.db.insertInto('tenant').values({ ...columnsOf(body), created_at: scope.now }),
      )
      this.#putDomains(id, body.domains)
      this.#putNumbers(id, body.numbers)
      return id
    })
  }

  replace(id: number, body: TenantBody, scope: RequestScope): void {
    refuseTenantCredential(scope)
    refuseUnsupported(withoutRelay(body, this.find(scope, id), this.#hasMediaRelay))
    write(this.#store, () => {
      execute(
        this.#store,
        this.#store.db.updateTable('tenant').set(columnsOf(body)).where('id', '=', id),
      )
      this.#putDomains(id, body.domains)
      this.#putNumbers(id, body.numbers)
    })
  }

  /** Rejects with 409 while anything belongs to the tenant, including its call records. */
  remove(id: number, scope: RequestScope): 'removed' | 'absent' {
    refuseTenantCredential(scope)
    return write(this.#store, () => {
      const { db } = this.#store
      const cdr = first(this.#store, db.selectFrom('cdr').select('id').where('tenant_id', '=', id))
      if (cdr !== undefined)
        throw new ApiError(409, 'in_use', 'The tenant has call records: deactivate it instead')
      const removed = execute(this.#store, db.deleteFrom('tenant').where('id', '=', id))
      return removed === 0 ? 'absent' : 'removed'
    })
  }

  /** Keeps unchanged domains, because extensions refer to them. */
  #putDomains(tenantId: number, domains: readonly string[]): void {
    const { db } = this.#store
    const before = this.#domainsOf([tenantId]).map(({ domain }) => domain)
    for (const domain of before.filter((known) => !domains.includes(known)))
      execute(this.#store, db.deleteFrom('tenant_domain').where('domain', '=', domain))
    for (const domain of domains.filter((wanted) => !before.includes(wanted)))
      execute(this.#store, db.insertInto('tenant_domain').values({ domain, tenant_id: tenantId }))
  }

  #putNumbers(tenantId: number, numbers: readonly string[]): void {
    const { db } = this.#store
    const before = this.#numbersOf([tenantId]).map(({ prefix }) => prefix)
    const [known, wanted] = [new Set(before), new Set(numbers)]
    for (const prefix of before)
      if (!wanted.has(prefix))
        execute(this.#store, db.deleteFrom('tenant_number').where('prefix', '=', prefix))
    for (const prefix of numbers)
      if (!known.has(prefix))
        execute(this.#store, db.insertInto('tenant_number').values({ prefix, tenant_id: tenantId }))
  }

  #views(rows: readonly Selectable<TenantTable>[]): TenantView[] {
    const ids = rows.map(({ id }) => id)
    const domains = this.#domainsOf(ids)
    const numbers = grouped(this.#numbersOf(ids), (number) => number.tenant_id)
    return rows.map((row) => ({
      id: row.id,
      slug: row.slug,
      name: row.name,
      is_active: fromFlag(row.is_active),
      domains: domains.filter((each) => each.tenant_id === row.id).map(({ domain }) => domain),
      numbers: numbers.get(row.id)?.map(({ prefix }) => prefix) ?? [],
      ...mediaViewOf(row),
      created_at: timeToText(row.created_at),
    }))
  }

  #domainsOf(tenantIds: readonly number[]) {
    const query = this.#store.db
      .selectFrom('tenant_domain')
      .selectAll()
      .where('tenant_id', 'in', tenantIds)
      .orderBy('domain')
    return all(this.#store, query)
  }

  #numbersOf(tenantIds: readonly number[]) {
    const query = this.#store.db
      .selectFrom('tenant_number')
      .selectAll()
      .where('tenant_id', 'in', tenantIds)
      .orderBy('prefix')
    return all(this.#store, query)
  }

  #visible({ tenantId }: RequestScope) {
    return this.#store.db
      .selectFrom('tenant')
      .$if(tenantId !== null, (query) => query.where('id', '=', tenantId))
  }
}

const columnsOf = ({ slug, name, is_active, ...media }: TenantBody) => ({
  ...mediaColumnsOf(media),
  slug,
  name: name ?? slug,
  is_active: toFlag(is_active),
})

/** A tenant credential cannot create tenants, nor assign domains or numbers. */
function refuseTenantCredential(scope: RequestScope): void {
  if (scope.tenantId === null) return
  throw new ApiError(403, 'wrong_tenant', 'Only a global credential may change tenants')
}
