/** Extensions as rows. The password is stored only as digest secrets. */
import { everywhere, type RequestScope } from '../../auth/tenants.ts'
import type { Selectable } from 'kysely'
import { fromFlag, timeToText, toFlag } from '../../../schema/columns.ts'
import type { ExtensionTable } from '../../../schema/database.ts'
import type { Store } from '../../../schema/open.ts'
import { all, execute, first, insert } from '../../../schema/sql/query.ts'
import { readApart } from '../../../schema/sql/read-apart.ts'
import { refuseBraked, refuseOtherPayer } from '../guards/braked.ts'
import { notFound } from '../../http/api-error.ts'
import { mediaColumnsOf, mediaViewOf, withoutRelay, type MediaView } from '../media-fields.ts'
import { refuseUnsupported } from '../not-supported.ts'
import { badReference, either, resolve } from '../references.ts'
import type { Resource, Rows, Slice } from '../resource.ts'
import { contains, write } from '../../http/rows.ts'
import { writeWithinLimits } from '../../auth/tenant-limits.ts'
import { digestSecrets } from './digest-secret.ts'
import { extensionBody, type ExtensionBody } from './extension-body.ts'
import { homeOf, type Home } from './home-domain.ts'
import { refuseTakenNumber } from './taken-number.ts'

interface Row extends Selectable<ExtensionTable> {
  readonly slug: string
  readonly customer: string | null
}

/** All fields of an extension except its secrets. */
export interface ExtensionView extends MediaView {
  readonly id: number
  readonly extension: string
  readonly domain: string
  readonly tenant: string
  readonly display_name: string
  readonly email: string | null
  readonly customer_id: number | null
  readonly customer: string | null
  readonly voicemail_enabled: boolean
  readonly call_recording: 'always' | 'never' | 'on_demand'
  readonly created_at: string
  readonly updated_at: string
}

export class ExtensionStore implements Resource<typeof extensionBody, ExtensionView> {
  readonly noun = 'Extension'
  readonly body = extensionBody
  readonly #store: Store
  readonly #hasMediaRelay: boolean

  constructor(store: Store, hasMediaRelay = false) {
    this.#store = store
    this.#hasMediaRelay = hasMediaRelay
  }

  /** `search` is part of a number, name or e-mail address. */
  list(scope: RequestScope, slice: Slice): Promise<Rows<ExtensionView>> {
    return readApart(this.#store, scope.tenantId, () => this.#list(scope, slice))
  }

  async #list(scope: RequestScope, { limit, offset, search }: Slice): Promise<Rows<ExtensionView>> {
    const matching = this.#visible(scope).where((row) =>
      contains(row, ['extension', 'display_name', 'extension.email'], search),
    )
    const total = await first(
      this.#store,
      matching.select((row) => row.fn.countAll<number>().as('n')),
    )
    const rows = matching
      .selectAll('extension')
      .select(names)
      .orderBy('extension')
      .orderBy('domain')
      .limit(limit)
      .offset(offset)
    return { rows: (await all(this.#store, rows)).map(viewOf), total: total?.n ?? 0 }
  }

  async find(scope: RequestScope, id: number): Promise<ExtensionView | undefined> {
    const query = this.#visible(scope)
      .selectAll('extension')
      .select(names)
      .where('extension.id', '=', id)
    const row = await first(this.#store, query)
    return row && viewOf(row)
  }

  async identify(body: ExtensionBody): Promise<number | undefined> {
    const { domain } = await homeOf(this.#store, body, everywhere)
    const query = this.#store.db
      .selectFrom('extension')
      .select('id')
      .where('domain', '=', domain)
      .where('extension', '=', body.extension)
    return (await first(this.#store, query))?.id
  }

  async document(scope: RequestScope, id: number): Promise<ExtensionBody | undefined> {
    const extension = await this.find(scope, id)
    if (extension === undefined) return undefined
    const { id: _id, created_at: _created, updated_at: _updated, customer: _, ...body } = extension
    return body
  }

  async insert(body: ExtensionBody, scope: RequestScope): Promise<number> {
    const { password } = body
    if (password == null) throw badReference('password', 'is required')
    return writeWithinLimits(this.#store, scope, ['extensions'], async () => {
      const home = await homeOf(this.#store, body, scope)
      await refuseTakenNumber(this.#store, 'ai_agent', body.extension, home.tenantId)
      return insert(
        this.#store,
        this.#store.db
          .insertInto('extension')
          .values({
            ...(await this.#columnsOf(body, scope, home)),
            ...secretColumns(body.extension, home.domain, password),
            created_at: scope.now,
          })
          .returning('id'),
      )
    })
  }

  /**
   * Without a password the secrets stay. A new number or domain requires one, because the secrets contain
   * both.
   */
  async replace(id: number, body: ExtensionBody, scope: RequestScope): Promise<void> {
    await write(this.#store, async () => {
      const before = await this.find(scope, id)
      if (before === undefined) throw notFound(this.noun)
      const home = await homeOf(this.#store, body, scope)
      await refuseTakenNumber(this.#store, 'ai_agent', body.extension, home.tenantId)
      const isRenamed = before.extension !== body.extension || before.domain !== home.domain
      if (isRenamed && body.password == null)
        throw badReference('password', 'is required with a new extension or domain')
      if (isRenamed) await refuseBraked(this.#store, 'extension', id, scope)
      const columns = await this.#columnsOf(body, scope, home, before)
      await refuseOtherPayer(this.#store, before, columns, scope)
      const isNew = isRenamed || (await this.isNewSecret(id, body))
      await execute(
        this.#store,
        this.#store.db
          .updateTable('extension')
          .set({
            ...columns,
            ...(body.password == null
              ? {}
              : secretColumns(body.extension, home.domain, body.password)),
          })
          .where('id', '=', id),
      )
      // Phones have registered with the old password. Here, so that no crash leaves them registered.
      if (isNew)
        await execute(
          this.#store,
          this.#store.db.deleteFrom('binding').where('extension_id', '=', id),
        )
    })
  }

  async isNewSecret(id: number, { password }: ExtensionBody): Promise<boolean> {
    if (password == null) return false
    const query = this.#store.db
      .selectFrom('extension')
      .select(['extension', 'domain', 'ha1_sha256'])
      .where('id', '=', id)
    const row = await first(this.#store, query)
    return (
      row?.ha1_sha256 !== digestSecrets(row?.extension ?? '', row?.domain ?? '', password).sha256
    )
  }

  async remove(id: number, scope: RequestScope): Promise<'removed' | 'absent'> {
    const removed = this.#store.db.deleteFrom('extension').where('id', '=', id)
    return write(this.#store, async () => {
      if ((await this.find(scope, id)) === undefined) return 'absent'
      await refuseBraked(this.#store, 'extension', id, scope)
      await execute(this.#store, removed)
      return 'removed'
    })
  }

  async #columnsOf(body: ExtensionBody, scope: RequestScope, home: Home, before?: ExtensionView) {
    refuseUnsupported(withoutRelay(body, before, this.#hasMediaRelay))
    const customer = either('customer', body.customer, body.customer_id)
    const owner = { tenantId: home.tenantId, scope }
    return {
      tenant_id: home.tenantId,
      domain: home.domain,
      extension: body.extension,
      display_name: body.display_name,
      email: body.email ?? null,
      customer_id: await resolve(this.#store, 'customer', customer, owner, before?.customer_id),
      voicemail_enabled: toFlag(body.voicemail_enabled),
      call_recording: body.call_recording,
      ...mediaColumnsOf(body),
      updated_at: scope.now,
    }
  }

  #visible({ tenantId, domain }: RequestScope) {
    return this.#store.db
      .selectFrom('extension')
      .innerJoin('tenant', 'tenant.id', 'extension.tenant_id')
      .leftJoin('customer', 'customer.id', 'extension.customer_id')
      .$if(tenantId !== null, (query) => query.where('extension.tenant_id', '=', tenantId ?? 0))
      .$if(domain != null, (query) => query.where('domain', '=', domain ?? ''))
  }
}

const names = ['tenant.slug', 'customer.name as customer'] as const

function secretColumns(extension: string, domain: string, password: string) {
  const { md5, sha256 } = digestSecrets(extension, domain, password)
  return { ha1_md5: md5, ha1_sha256: sha256 }
}

const viewOf = (row: Row): ExtensionView => ({
  id: row.id,
  extension: row.extension,
  domain: row.domain,
  tenant: row.slug,
  display_name: row.display_name,
  email: row.email,
  customer_id: row.customer_id,
  customer: row.customer,
  voicemail_enabled: fromFlag(row.voicemail_enabled),
  call_recording: row.call_recording,
  ...mediaViewOf(row),
  created_at: timeToText(row.created_at),
  updated_at: timeToText(row.updated_at),
})
