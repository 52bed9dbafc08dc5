/** Extensions and domains as the registrar needs them, read when asked: a changed password holds at once. */
import { fromFlag } from '../../schema/columns.ts'
import { compile, type Statement } from '../../schema/compiled.ts'
import type { Flag } from '../../schema/database.ts'
import type { Store } from '../../schema/open.ts'

/** An extension of an active tenant. */
export interface ExtensionRecord {
  readonly extensionId: number
  readonly tenantId: number
  readonly customerId: number | null
  readonly domain: string
  readonly extension: string
  readonly displayName: string
  readonly isVoicemailEnabled: boolean
  /** Digest secrets H(A1); small hexadecimal digits. */
  readonly secrets: { readonly MD5: string; readonly 'SHA-256': string }
}

interface Row {
  readonly id: number
  readonly tenant_id: number
  readonly customer_id: number | null
  readonly domain: string
  readonly extension: string
  readonly display_name: string
  readonly voicemail_enabled: Flag
  readonly ha1_md5: string
  readonly ha1_sha256: string
}

export class ExtensionDirectory {
  readonly #find: Statement<{ domain: string; extension: string }, Row>
  readonly #domain: Statement<{ domain: string }, { tenant_id: number }>
  readonly #domainsOf: Statement<{ tenantId: number }, { domain: string }>

  constructor(store: Store) {
    this.#find = compile(store, (db, param) =>
      db
        .selectFrom('extension')
        .innerJoin('tenant', 'tenant.id', 'extension.tenant_id')
        .select(['extension.id', 'tenant_id', 'customer_id', 'domain', 'extension'])
        .select(['display_name', 'voicemail_enabled', 'ha1_md5', 'ha1_sha256'])
        .where('domain', '=', param('domain'))
        .where('extension', '=', param('extension'))
        .where('tenant.is_active', '=', 1),
    )
    this.#domain = compile(store, (db, param) =>
      db.selectFrom('tenant_domain').select('tenant_id').where('domain', '=', param('domain')),
    )
    this.#domainsOf = compile(store, (db, param) =>
      db
        .selectFrom('tenant_domain')
        .select('domain')
        .where('tenant_id', '=', param('tenantId'))
        .limit(2),
    )
  }

  /** `domain` in small letters. */
  find(domain: string, extension: string): ExtensionRecord | undefined {
    const row = this.#find.get({ domain, extension })
    return row && recordOf(row)
  }

  /** The tenant of a domain (small letters); undefined: none of ours. */
  tenantOf(domain: string): number | undefined {
    return this.#domain.get({ domain })?.tenant_id
  }

  /** The domain of a tenant that has exactly one. */
  onlyDomainOf(tenantId: number): string | undefined {
    const [first, second] = this.#domainsOf.all({ tenantId })
    return second === undefined ? first?.domain : undefined
  }
}

const recordOf = (row: Row): ExtensionRecord => ({
  extensionId: row.id,
  tenantId: row.tenant_id,
  customerId: row.customer_id,
  domain: row.domain,
  extension: row.extension,
  displayName: row.display_name,
  isVoicemailEnabled: fromFlag(row.voicemail_enabled),
  secrets: { MD5: row.ha1_md5, 'SHA-256': row.ha1_sha256 },
})
