/** Extensions, as rows. The password becomes digest secrets and is not kept. */
import { toFlag } from '../../schema/columns.ts'
import type { Store } from '../../schema/open.ts'
import { all, execute, first, insert } from '../../schema/query.ts'
import { badReference, either, resolve, tenantOf } from '../provisioning/references.ts'
import type { Reach, Writable } from '../provisioning/resource.ts'
import { write } from '../provisioning/write.ts'
import { digestSecrets } from './digest-secret.ts'
import { extensionBody, type ExtensionBody } from './extension-body.ts'

export class ExtensionStore implements Writable<typeof extensionBody> {
  readonly noun = 'Extension'
  readonly body = extensionBody
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  identify(body: ExtensionBody): number | undefined {
    const { domain } = this.#homeOf(body, { tenantId: null, actor: '', now: 0 })
    const query = this.#store.db
      .selectFrom('extension')
      .select('id')
      .where('domain', '=', domain)
      .where('extension', '=', body.extension)
    return first(this.#store, query)?.id
  }

  insert(body: ExtensionBody, reach: Reach): number {
    if (body.password == null) throw badReference('password', 'is required')
    return write(this.#store, () => {
      const home = this.#homeOf(body, reach)
      return insert(
        this.#store,
        this.#store.db.insertInto('extension').values({
          ...this.#columnsOf(body, reach, home),
          ...secretColumns(body.extension, home.domain, body.password ?? ''),
          created_at: reach.now,
        }),
      )
    })
  }

  /** Without a password the secrets stay; a new number or domain needs one, because they hold both. */
  replace(id: number, body: ExtensionBody, reach: Reach): void {
    write(this.#store, () => {
      const home = this.#homeOf(body, reach)
      const before = first(
        this.#store,
        this.#store.db.selectFrom('extension').selectAll().where('id', '=', id),
      )
      const isRenamed = before?.extension !== body.extension || before.domain !== home.domain
      if (isRenamed && body.password == null)
        throw badReference('password', 'is required with a new extension or domain')
      execute(
        this.#store,
        this.#store.db
          .updateTable('extension')
          .set({
            ...this.#columnsOf(body, reach, home, before?.customer_id),
            ...(body.password == null
              ? {}
              : secretColumns(body.extension, home.domain, body.password)),
          })
          .where('id', '=', id),
      )
    })
  }

  #columnsOf(body: ExtensionBody, reach: Reach, home: Home, currentCustomer?: number | null) {
    const customer = either('customer', body.customer, body.customer_id)
    const owner = { tenantId: home.tenantId, reach }
    return {
      tenant_id: home.tenantId,
      domain: home.domain,
      extension: body.extension,
      display_name: body.display_name,
      email: body.email ?? null,
      customer_id: resolve(this.#store, 'customer', customer, owner, currentCustomer),
      voicemail_enabled: toFlag(body.voicemail_enabled),
      call_recording: body.call_recording,
      updated_at: reach.now,
    }
  }

  /** The domain that the body names, or the only one of its tenant. */
  #homeOf(body: ExtensionBody, reach: Reach): Home {
    const tenantId = tenantOf(this.#store, body.tenant, reach)
    if (tenantId === null && body.domain == null) throw badReference('tenant', 'is required')
    const domains = all(
      this.#store,
      this.#store.db
        .selectFrom('tenant_domain')
        .selectAll()
        .$if(tenantId !== null, (query) => query.where('tenant_id', '=', tenantId ?? 0))
        .$if(body.domain != null, (query) => query.where('domain', '=', body.domain ?? ''))
        .limit(2),
    )
    const [home] = domains
    if (home === undefined)
      throw badReference('domain', body.domain == null ? 'the tenant has none' : 'is not known')
    if (domains.length > 1) throw badReference('domain', 'is required: the tenant has several')
    return { tenantId: home.tenant_id, domain: home.domain }
  }
}

interface Home {
  readonly tenantId: number
  readonly domain: string
}

function secretColumns(extension: string, domain: string, password: string) {
  const { md5, sha256 } = digestSecrets(extension, domain, password)
  return { ha1_md5: md5, ha1_sha256: sha256 }
}
