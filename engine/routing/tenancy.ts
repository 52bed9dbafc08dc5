/** Numbers and SIP domains of tenants, as the platform has listed them. */
import type { ExitCodes } from '../../schema/contracts/charging.ts'
import type { TenantRecord } from './routing-records.ts'
import { PrefixTable } from './prefix-table.ts'

export class Tenancy {
  readonly #byId = new Map<number, TenantRecord>()
  readonly #numbers: PrefixTable<number>
  readonly #domains = new Map<string, number>()
  readonly #slugs = new Map<string, number>()

  constructor(tenants: readonly TenantRecord[], exitCodes?: ExitCodes) {
    this.#numbers = new PrefixTable([], exitCodes)
    for (const tenant of tenants) this.set(tenant)
  }

  set(tenant: TenantRecord): void {
    const { tenantId, slug, domains, numbers, isActive } = tenant
    this.delete(tenantId)
    this.#byId.set(tenantId, tenant)
    for (const start of numbers) this.#numbers.add(start, tenantId)
    for (const domain of domains) this.#domains.set(domain, tenantId)
    if (isActive) this.#slugs.set(slug, tenantId)
  }

  delete(tenantId: number): void {
    const { slug, domains, numbers } = this.#byId.get(tenantId) ?? nothing
    this.#byId.delete(tenantId)
    for (const start of numbers) this.#numbers.delete(start, tenantId)
    for (const domain of domains)
      if (this.#domains.get(domain) === tenantId) this.#domains.delete(domain)
    if (this.#slugs.get(slug) === tenantId) this.#slugs.delete(slug)
  }

  ownsNumber(tenantId: number, number: string): boolean {
    return this.ownerOf(number) === tenantId
  }

  /**
   * The smallest of nested blocks decides, so that a part of one may belong to another tenant. Two
   * blocks may be one with an exit code: it belongs to the older tenant.
   */
  ownerOf(number: string): number | undefined {
    const [owners] = this.#numbers.matching(number)
    return owners && Math.min(...owners)
  }

  ownsDomain(tenantId: number, domain: string): boolean {
    return this.#domains.get(domain.toLowerCase()) === tenantId
  }

  /** The ids of tenants that exist and are active. */
  idsOf(slugs: readonly string[]): readonly number[] {
    return slugs.flatMap((slug) => this.#slugs.get(slug) ?? [])
  }
}

const nothing = { slug: '', domains: [], numbers: [] }
