/** Numbers and SIP domains of tenants, as the platform has listed them. */
import type { ExitCodes } from '../../schema/contracts/charging.ts'
import {
  ANY_INTERNATIONAL,
  codeLength,
  internationalPrefix,
  withoutPlus as digitsOf,
} from '../../schema/rules/numbers.ts'
import type { TenantRecord } from './routing-records.ts'

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
   * Of nested blocks the smallest decides, so that a part of one may belong to another tenant. Two
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

// Longest prefix of a called number: one map look-up per digit, however many prefixes there are.

export class PrefixTable<Value> {
  readonly #values = new Map<string, Value[]>()
  #longest = 0
  readonly #exitCodes: ExitCodes | undefined

  /** @param exitCodes a prefix may begin with one of them. */
  constructor(entries: Iterable<readonly [string, Value]>, exitCodes?: ExitCodes) {
    this.#exitCodes = exitCodes
    for (const [prefix, value] of entries) this.add(prefix, value)
  }

  add(prefix: string, value: Value): void {
    const digits = internationalPrefix(prefix, this.#exitCodes)
    const values = this.#values.get(digits)
    if (values) values.push(value)
    else this.#values.set(digits, [value])
    this.#longest = Math.max(this.#longest, digits.length)
  }

  delete(prefix: string, value: Value): void {
    const digits = internationalPrefix(prefix, this.#exitCodes)
    const values = this.#values.get(digits) ?? []
    const index = values.indexOf(value)
    if (index !== -1) values.splice(index, 1)
    if (values.length === 0) this.#values.delete(digits)
  }

  /** The values under the prefixes of a number, longest first; equal prefixes together. */
  matching(number: string): readonly (readonly Value[])[] {
    const found: (readonly Value[])[] = []
    if (this.#values.size === 0) return found
    const digits = digitsOf(number)
    const abroad = codeLength(number, this.#exitCodes) ?? -1
    const longest = Math.max(abroad, Math.min(digits.length, this.#longest))
    for (let length = longest; length >= 0; length -= 1) {
      const international = length === abroad ? this.#values.get(ANY_INTERNATIONAL) : undefined
      if (international) found.push(international)
      const values = this.#values.get(digits.slice(0, length))
      if (values) found.push(values)
    }
    return found
  }
}
