/**
 * Extensions and domains as the registrar needs them. What was read is remembered until this process
 * changes any of them, which triggers report: a changed password takes effect immediately. After changes of another
 * process the engine calls `forget`.
 */
import { fromFlag } from '../../schema/columns.ts'
import { compile, type Statement } from '../../schema/sql/compiled.ts'
import type { CallRecording } from '../../schema/contracts/recordings.ts'
import type { Flag } from '../../schema/database.ts'
import type { MediaRules } from '../../schema/contracts/media.ts'
import { inheritedRules, mediaRulesOf, type MediaColumns } from '../../schema/rules/media.ts'
import type { LocalStore } from '../../schema/open.ts'
import { Recent } from './recent.ts'

/** An extension of an active tenant. */
export interface ExtensionRecord {
  readonly extensionId: number
  readonly tenantId: number
  readonly customerId: number | null
  readonly domain: string
  readonly extension: string
  readonly displayName: string
  readonly isVoicemailEnabled: boolean
  /** Its own, and for the rest its tenant's. */
  readonly media?: MediaRules | undefined
  /** Absent: `never`. */
  readonly callRecording?: CallRecording
  /** Digest secrets H(A1); small hexadecimal digits. */
  readonly secrets: { readonly MD5: string; readonly 'SHA-256': string }
}

interface Row extends MediaColumns {
  readonly id: number
  readonly tenant_id: number
  readonly customer_id: number | null
  readonly domain: string
  readonly extension: string
  readonly display_name: string
  readonly voicemail_enabled: Flag
  readonly call_recording: CallRecording
  readonly ha1_md5: string
  readonly ha1_sha256: string
  readonly tenant_media: MediaColumns['media']
  readonly tenant_media_profile: MediaColumns['media_profile']
  readonly tenant_codecs: MediaColumns['codecs']
  readonly tenant_dtmf: MediaColumns['dtmf']
}

/** About 600 bytes each. */
const MAX_EXTENSIONS = 20_000
const MAX_DOMAINS = 5_000
const CHANGES = ['INSERT', 'UPDATE', 'DELETE'] as const
const TABLES = ['extension', 'tenant', 'tenant_domain'] as const

export class ExtensionDirectory {
  readonly #extensions: Recent<ExtensionRecord | undefined>
  /** Null: none of ours. */
  readonly #tenants: Recent<number | null>
  readonly #find: Statement<{ domain: string; extension: string }, Row>
  readonly #domain: Statement<{ domain: string }, { tenant_id: number }>
  readonly #domainsOf: Statement<{ tenantId: number }, { domain: string }>

  constructor(store: LocalStore) {
    this.#extensions = new Recent(MAX_EXTENSIONS, (address) => {
      const space = address.indexOf(' ')
      const row = this.#find.get({
        domain: address.slice(0, space),
        extension: address.slice(space + 1),
      })
      return row && recordOf(row)
    })
    this.#tenants = new Recent(
      MAX_DOMAINS,
      (domain) => this.#domain.get({ domain })?.tenant_id ?? null,
    )
    this.#watch(store)
    this.#find = compile(store, (db, param) =>
      db
        .selectFrom('extension')
        .innerJoin('tenant', 'tenant.id', 'extension.tenant_id')
        .select(['extension.id', 'tenant_id', 'customer_id', 'domain', 'extension'])
        .select(['display_name', 'voicemail_enabled', 'call_recording', 'ha1_md5', 'ha1_sha256'])
        .select([
          'extension.media',
          'extension.media_profile',
          'extension.codecs',
          'extension.dtmf',
        ])
        .select(['tenant.media as tenant_media', 'tenant.media_profile as tenant_media_profile'])
        .select(['tenant.codecs as tenant_codecs', 'tenant.dtmf as tenant_dtmf'])
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
    // A domain holds no blank.
    return domain.includes(' ') ? undefined : this.#extensions.get(`${domain} ${extension}`)
  }

  /** The tenant of a domain (small letters); undefined: none of ours. */
  tenantOf(domain: string): number | undefined {
    return this.#tenants.get(domain) ?? undefined
  }

  /** Another process has written to the database. */
  forget(): void {
    this.#extensions.forget()
    this.#tenants.forget()
  }

  /** On this connection only, and gone with it. */
  #watch({ sqlite }: LocalStore): void {
    sqlite.function('tollgate_forget_extensions', () => {
      this.forget()
      return null
    })
    for (const table of TABLES)
      for (const change of CHANGES)
        sqlite.exec(
          `CREATE TEMP TRIGGER IF NOT EXISTS forget_on_${change}_of_${table} AFTER ${change}
           ON main.${table} BEGIN SELECT tollgate_forget_extensions(); END`,
        )
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
  callRecording: row.call_recording,
  media: inheritedRules(mediaRulesOf(row), mediaRulesOf(tenantColumns(row))),
  secrets: { MD5: row.ha1_md5, 'SHA-256': row.ha1_sha256 },
})

const tenantColumns = (row: Row): MediaColumns => ({
  media: row.tenant_media,
  media_profile: row.tenant_media_profile,
  codecs: row.tenant_codecs,
  dtmf: row.tenant_dtmf,
})
