/**
 * Extensions and domains for registrar and calls. All are in memory, so that neither a REGISTER nor
 * an INVITE waits for the database; who writes them calls `changed` or `reloadTenants` before it
 * answers.
 */
import { Buckets } from '../../schema/buckets.ts'
import { fromFlag, type Flag } from '../../schema/columns.ts'
import type { CallRecording } from '../../schema/contracts/calls.ts'
import type { MediaRules } from '../../schema/contracts/field-values.ts'
import { inheritedRules, mediaRulesOf, type MediaColumns } from '../../schema/rules/media.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, inSlices, SLICE, slicesOf } from '../../schema/sql/query.ts'

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

/** An extension in memory: about 390 bytes with its entries in the tables. */
interface Entry {
  readonly extensionId: number
  readonly tenantId: number
  readonly customerId: number | null
  readonly domain: string
  readonly extension: string
  readonly displayName: string
  readonly isVoicemailEnabled: boolean
  readonly media: MediaRules | undefined
  readonly callRecording: CallRecording
  readonly ha1Md5: string
  readonly ha1Sha256: string
}

interface Tenant {
  readonly isActive: boolean
  readonly media: MediaRules | undefined
  /** One of its domains, and their number. */
  readonly domain: string
  readonly domains: number
}

export class ExtensionDirectory {
  readonly #store: Store
  readonly #reads = new OneAtATime(() => this.#readAll())
  #extensions = new Extensions()
  readonly #tenants = new Map<number, Tenant>()
  readonly #domains = new Map<string, number>()

  /** Empty until `load`. */
  constructor(store: Store) {
    this.#store = store
  }

  /** `domain` in small letters. */
  find(domain: string, extension: string): ExtensionRecord | undefined {
    const entry = this.#extensions.find(domain, extension)
    const tenant = entry && this.#tenants.get(entry.tenantId)
    return entry && tenant?.isActive ? recordOf(entry, tenant) : undefined
  }

  /** Extensions with this number that `isMeant`, of whatever domain: two at most. */
  named(
    extension: string,
    isMeant: (found: Pick<ExtensionRecord, 'tenantId'>) => boolean,
  ): readonly ExtensionRecord[] {
    const found: ExtensionRecord[] = []
    for (const domain of this.#extensions.domains()) {
      const record = this.find(domain, extension)
      if (record && isMeant(record)) found.push(record)
      if (found.length === 2) break
    }
    return found
  }

  /** The digest secret by SHA-256 of an extension that `find` finds. */
  secretOf(domain: string, extension: string): string | undefined {
    const entry = this.#extensions.find(domain, extension)
    return entry && this.#tenants.get(entry.tenantId)?.isActive ? entry.ha1Sha256 : undefined
  }

  /** The tenant of a domain (small letters); undefined: none of ours. */
  tenantOf(domain: string): number | undefined {
    return this.#domains.get(domain)
  }

  /** The domain of a tenant that has exactly one. */
  onlyDomainOf(tenantId: number): string | undefined {
    const tenant = this.#tenants.get(tenantId)
    return tenant?.domains === 1 ? tenant.domain : undefined
  }

  /** Reads all extensions. The former ones stay until all are read. */
  load(): Promise<void> {
    return this.#reads.request()
  }

  /** These extensions were written or deleted. */
  changed(extensionIds: readonly number[]): Promise<void> {
    return this.#reads.between(async () => {
      for await (const ids of inSlices(extensionIds)) {
        const rows = await all(this.#store, this.#query().where('extension.id', 'in', ids))
        for (const id of ids) this.#extensions.delete(id)
        for (const row of rows) this.#extensions.set(row)
      }
    })
  }

  /** Tenants or their domains were written; undefined: perhaps all. */
  reloadTenants(tenantIds?: readonly number[]): Promise<void> {
    return this.#reads.between(() => this.#readTenants(tenantIds))
  }

  async #readAll(): Promise<void> {
    await this.#readTenants()
    const extensions = new Extensions()
    const slice = this.#query().orderBy('extension.id').limit(SLICE)
    for await (const rows of slicesOf((after) =>
      all(this.#store, slice.where('extension.id', '>', after)),
    ))
      for (const row of rows) extensions.set(row)
    this.#extensions = extensions
  }

  async #readTenants(ids?: readonly number[]): Promise<void> {
    const { db } = this.#store
    const columns = ['id', 'is_active', 'media', 'media_profile', 'codecs', 'dtmf'] as const
    const ofDomains = db.selectFrom('tenant_domain').select(['domain', 'tenant_id'])
    const ofTenants = db.selectFrom('tenant').select(columns)
    const domains = await all(
      this.#store,
      ids ? ofDomains.where('tenant_id', 'in', ids) : ofDomains,
    )
    const rows = await all(this.#store, ids ? ofTenants.where('id', 'in', ids) : ofTenants)
    const byTenant = new Buckets<number, { readonly domain: string }>()
    for (const row of domains) byTenant.add(row.tenant_id, row)
    const isMeant = ids === undefined ? () => true : (id: number) => ids.includes(id)
    for (const [domain, id] of this.#domains) if (isMeant(id)) this.#domains.delete(domain)
    for (const id of this.#tenants.keys()) if (isMeant(id)) this.#tenants.delete(id)
    for (const row of rows) this.#tenants.set(row.id, tenantOf(row, byTenant.of(row.id)))
    for (const row of domains) this.#domains.set(row.domain, row.tenant_id)
  }

  #query() {
    return this.#store.db
      .selectFrom('extension')
      .select(['id', 'tenant_id', 'customer_id', 'domain', 'extension'])
      .select(['display_name', 'voicemail_enabled', 'call_recording', 'ha1_md5', 'ha1_sha256'])
      .select(['media', 'media_profile', 'codecs', 'dtmf'])
  }
}

const tenantOf = (
  row: MediaColumns & { readonly is_active: Flag },
  domains: readonly { readonly domain: string }[],
): Tenant => ({
  isActive: fromFlag(row.is_active),
  media: mediaRulesOf(row),
  domain: domains[0]?.domain ?? '',
  domains: domains.length,
})

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
}

/** By number and address. */
class Extensions {
  readonly #byId = new Map<number, Entry>()
  readonly #byDomain = new Map<string, Map<string, Entry>>()
  /** One copy of the texts that many rows have. */
  readonly #recordings = new Map<string, CallRecording>()

  find(domain: string, extension: string): Entry | undefined {
    return this.#byDomain.get(domain)?.get(extension)
  }

  domains(): Iterable<string> {
    return this.#byDomain.keys()
  }

  set(row: Row): void {
    const others = this.#byDomain.get(row.domain) ?? new Map<string, Entry>()
    const [first] = others.values()
    const entry = this.#entryOf(row, first?.domain ?? row.domain)
    this.#byDomain.set(entry.domain, others.set(entry.extension, entry))
    this.#byId.set(entry.extensionId, entry)
  }

  delete(extensionId: number): void {
    const entry = this.#byId.get(extensionId)
    if (entry === undefined) return
    this.#byId.delete(extensionId)
    const others = this.#byDomain.get(entry.domain)
    // Its number may belong to another one by now.
    if (others?.get(entry.extension) === entry) others.delete(entry.extension)
    if (others?.size === 0) this.#byDomain.delete(entry.domain)
  }

  #entryOf(row: Row, domain: string): Entry {
    const { extension, display_name: name, call_recording: recording } = row
    const callRecording = this.#recordings.get(recording) ?? recording
    this.#recordings.set(recording, callRecording)
    return {
      extensionId: row.id,
      tenantId: row.tenant_id,
      customerId: row.customer_id,
      domain,
      extension,
      displayName: name === extension ? extension : name,
      isVoicemailEnabled: fromFlag(row.voicemail_enabled),
      media: mediaRulesOf(row),
      callRecording,
      ha1Md5: row.ha1_md5,
      ha1Sha256: row.ha1_sha256,
    }
  }
}

const recordOf = ({ media, ha1Md5, ha1Sha256, ...entry }: Entry, tenant: Tenant) => ({
  ...entry,
  media: inheritedRules(media, tenant.media),
  secrets: { MD5: ha1Md5, 'SHA-256': ha1Sha256 },
})
