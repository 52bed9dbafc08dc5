/** Tenants and their domains as rows. A tenant credential sees only its own tenant. */
import type { RequestScope } from '../../auth/tenants.ts'
import type { Selectable } from 'kysely'
import { fromFlag, timeToText, toFlag } from '../../../schema/columns.ts'
import type { TenantTable } from '../../../schema/database.ts'
import type { Store } from '../../../schema/open.ts'
import { all, execute, first, insert } from '../../../schema/sql/query.ts'
import { ApiError } from '../../http/api-error.ts'
import { mediaColumnsOf, mediaViewOf, withoutRelay, type MediaView } from '../media-fields.ts'
import { refuseUnsupported } from '../not-supported.ts'
import { contains, grouped, write } from '../../http/rows.ts'
import type { Resource, Rows, Slice } from '../resource.ts'
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
  readonly #onWrite: () => void

  /** `onWrite` is called after each write, also one that failed: meanwhile others may have read what was not committed. */
  constructor(store: Store, hasMediaRelay = false, onWrite: () => void = () => undefined) {
    this.#store = store
    this.#hasMediaRelay = hasMediaRelay
    this.#onWrite = onWrite
  }

  async list(scope: RequestScope, { limit, offset, search }: Slice): Promise<Rows<TenantView>> {
    const matching = this.#visible(scope).where((row) => contains(row, ['slug', 'name'], search))
    const total = await first(
      this.#store,
      matching.select((row) => row.fn.countAll<number>().as('n')),
    )
    const rows = await all(
      this.#store,
      matching.selectAll().orderBy('slug').limit(limit).offset(offset),
    )
    return { rows: await this.#views(rows), total: total?.n ?? 0 }
  }

  async find(scope: RequestScope, id: number): Promise<TenantView | undefined> {
    const rows = await all(this.#store, this.#visible(scope).selectAll().where('id', '=', id))
    return (await this.#views(rows))[0]
  }

  async identify({ slug }: TenantBody): Promise<number | undefined> {
    const query = this.#store.db.selectFrom('tenant').select('id').where('slug', '=', slug)
    return (await first(this.#store, query))?.id
  }

  async document(scope: RequestScope, id: number): Promise<TenantBody | undefined> {
    const tenant = await this.find(scope, id)
    if (tenant === undefined) return undefined
    const { id: _id, created_at: _created, domains, numbers, ...body } = tenant
    return { ...body, domains: [...domains], numbers: [...numbers] }
  }

  async insert(body: TenantBody, scope: RequestScope): Promise<number> {
    refuseTenantCredential(scope)
    refuseUnsupported(withoutRelay(body, undefined, this.#hasMediaRelay))
    return this.#write(async () => {
      const id = await insert(
        this.#store,
        this.#store.db
          .insertInto('tenant')
          .values({ ...columnsOf(body), created_at: scope.now })
          .returning('id'),
      )
      await this.#putDomains(id, body.domains)
      await this.#putNumbers(id, body.numbers)
      return id
    })
  }

  async replace(id: number, body: TenantBody, scope: RequestScope): Promise<void> {
    refuseTenantCredential(scope)
    refuseUnsupported(withoutRelay(body, await this.find(scope, id), this.#hasMediaRelay))
    await this.#write(async () => {
      await execute(
        this.#store,
        this.#store.db.updateTable('tenant').set(columnsOf(body)).where('id', '=', id),
      )
      await this.#putDomains(id, body.domains)
      await this.#putNumbers(id, body.numbers)
    })
  }

  /** Rejects with 409 while anything belongs to the tenant, including its call records. */
  async remove(id: number, scope: RequestScope): Promise<'removed' | 'absent'> {
    refuseTenantCredential(scope)
    return this.#write(async () => {
      const { db } = this.#store
      const cdr = await first(
        this.#store,
        db.selectFrom('cdr').select('id').where('tenant_id', '=', id),
      )
      if (cdr !== undefined)
        throw new ApiError(409, 'in_use', 'The tenant has call records: deactivate it instead')
      const removed = await execute(this.#store, db.deleteFrom('tenant').where('id', '=', id))
      return removed === 0 ? 'absent' : 'removed'
    })
  }

  async #write<T>(work: () => Promise<T>): Promise<T> {
    try {
      const done = await write(this.#store, work)
      this.#store.statements.afterCommit(this.#onWrite)
      return done
    } catch (error) {
      this.#onWrite()
      throw error
    }
  }

  /** Keeps unchanged domains, because extensions refer to them. */
  async #putDomains(tenantId: number, domains: readonly string[]): Promise<void> {
    const { db } = this.#store
    const before = (await this.#domainsOf([tenantId])).map(({ domain }) => domain)
    for (const domain of before.filter((known) => !domains.includes(known)))
      await execute(this.#store, db.deleteFrom('tenant_domain').where('domain', '=', domain))
    for (const domain of domains.filter((wanted) => !before.includes(wanted)))
      await execute(
        this.#store,
        db.insertInto('tenant_domain').values({ domain, tenant_id: tenantId }),
      )
  }

  async #putNumbers(tenantId: number, numbers: readonly string[]): Promise<void> {
    const { db } = this.#store
    const before = (await this.#numbersOf([tenantId])).map(({ prefix }) => prefix)
    const [known, wanted] = [new Set(before), new Set(numbers)]
    for (const prefix of before)
      if (!wanted.has(prefix))
        await execute(this.#store, db.deleteFrom('tenant_number').where('prefix', '=', prefix))
    for (const prefix of numbers)
      if (!known.has(prefix))
        await execute(
          this.#store,
          db.insertInto('tenant_number').values({ prefix, tenant_id: tenantId }),
        )
  }

  async #views(rows: readonly Selectable<TenantTable>[]): Promise<TenantView[]> {
    const ids = rows.map(({ id }) => id)
    const domains = await this.#domainsOf(ids)
    const numbers = grouped(await this.#numbersOf(ids), (number) => number.tenant_id)
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
