/** What belongs to which tenant: numbers and SIP domains, as the platform has listed them. */
import type { ExitCodes } from '../../schema/rules/exit-codes.ts'
import { PrefixTable } from './prefix-table.ts'
import type { TenantRecord } from './routing-records.ts'

export class Tenancy {
  readonly #numbers: PrefixTable<number>
  readonly #domains = new Map<string, number>()
  readonly #slugs = new Map<string, number>()

  constructor(tenants: readonly TenantRecord[], exitCodes?: ExitCodes) {
    this.#numbers = new PrefixTable(
      tenants.flatMap(({ tenantId, numbers }) =>
        numbers.map((start) => [start, tenantId] as const),
      ),
      exitCodes,
    )
    for (const { tenantId, slug, domains, isActive } of tenants) {
      for (const domain of domains) this.#domains.set(domain, tenantId)
      if (isActive) this.#slugs.set(slug, tenantId)
    }
  }

  /** Of nested blocks the smallest decides, so that a part of one may belong to another tenant. */
  ownsNumber(tenantId: number, number: string): boolean {
    for (const [owner] of this.#numbers.matching(number)) return owner === tenantId
    return false
  }

  ownsDomain(tenantId: number, domain: string): boolean {
    return this.#domains.get(domain.toLowerCase()) === tenantId
  }

  /** Of those that exist and are active. */
  idsOf(slugs: readonly string[]): readonly number[] {
    return slugs.flatMap((slug) => this.#slugs.get(slug) ?? [])
  }
}
