/**
 * All spend guards in force, in memory. A call looks up its customer, its extension and its tenants, and of each one map
 * entry per length of prefix: what it costs does not grow with the number of guards.
 */
import type { GuardScope, SpendGuard } from '../../../schema/contracts/limits.ts'
import { comparedPrefix, type ExitCodes, spellingsOf } from '../../../schema/rules/numbers.ts'

/** What a guard may name of a call. */
export interface GuardedCall {
  /** The payer; null: there is none. */
  readonly customerId: number | null
  /** The phone or click-to-call source; null: the call comes from elsewhere. */
  readonly extensionId: number | null
  /** Of the payer and of the source. */
  readonly tenantIds: readonly number[]
  /** May name an extension of `tenantIds`; null: it names none. */
  readonly caller: string | null
  readonly callee: string
  /** What gateways would get in its place. */
  readonly sentAs?: (() => readonly string[]) | undefined
}

export class GuardTable {
  readonly #scopes: Readonly<Record<GuardScope, Map<number, Prefixes>>> = {
    customer: new Map(),
    extension: new Map(),
    tenant: new Map(),
  }
  /** Extensions by their number, as a PBX or a proxy of the tenant shows it. */
  readonly #extensions = new Map<string, number>()
  readonly isEmpty: boolean
  /** Whether any of them ends calls that were live when it was set. */
  readonly endsCalls: boolean

  readonly #exitCodes: ExitCodes | undefined

  constructor(guards: readonly SpendGuard[] = [], exitCodes?: ExitCodes) {
    this.#exitCodes = exitCodes
    this.isEmpty = guards.length === 0
    this.endsCalls = guards.some(({ endsCallsBefore }) => endsCallsBefore !== null)
    for (const guard of guards) {
      const { scope, scopeId, extension } = guard
      const prefixes = this.#scopes[scope].get(scopeId) ?? new Prefixes()
      this.#scopes[scope].set(scopeId, prefixes)
      prefixes.add(guard, comparedPrefix(guard.prefix, exitCodes))
      if (extension !== null)
        this.#extensions.set(keyOf(extension.tenantId, extension.number), scopeId)
    }
  }

  /** Those that cover a call and have not expired at `at` (milliseconds UTC); of each scope the longest prefix first. */
  covering(call: GuardedCall, at: number): readonly SpendGuard[] {
    const { customer, extension, tenant } = this.#scopes
    const sets: Prefixes[] = []
    const add = (set: Prefixes | undefined): void => void (set && sets.push(set))
    if (call.customerId !== null) add(customer.get(call.customerId))
    const extensionIds = extension.size === 0 ? [] : this.#extensionsOf(call)
    for (const id of extensionIds) add(extension.get(id))
    for (const id of call.tenantIds) add(tenant.get(id))
    if (sets.length === 0) return none
    const numbers = [call.callee, ...(call.sentAs?.() ?? [])]
    const spellings = new Set(numbers.flatMap((number) => spellingsOf(number, this.#exitCodes)))
    const found = new Set<SpendGuard>()
    for (const set of sets) for (const digits of spellings) set.find(digits, at, found)
    return found.size === 0 ? none : [...found]
  }

  #extensionsOf({ extensionId, tenantIds, caller }: GuardedCall): readonly number[] {
    if (extensionId !== null) return [extensionId]
    if (caller === null) return []
    return tenantIds.flatMap((id) => this.#extensions.get(keyOf(id, caller)) ?? [])
  }
}

const none: readonly SpendGuard[] = []

const keyOf = (tenantId: number, extension: string): string =>
  `${tenantId} ${extension.replace(/^\+/, '')}`

class Prefixes {
  readonly #byPrefix = new Map<string, SpendGuard[]>()
  /** The longest first. */
  #lengths: readonly number[] = []

  add(guard: SpendGuard, prefix: string): void {
    const others = this.#byPrefix.get(prefix)
    if (others === undefined) this.#byPrefix.set(prefix, [guard])
    else others.push(guard)
    if (!this.#lengths.includes(prefix.length))
      this.#lengths = [...this.#lengths, prefix.length].toSorted((a, b) => b - a)
  }

  find(digits: string, at: number, into: Set<SpendGuard>): void {
    for (const length of this.#lengths) {
      if (length > digits.length) continue
      for (const guard of this.#byPrefix.get(digits.slice(0, length)) ?? [])
        if (guard.expiresAt === null || at < guard.expiresAt) into.add(guard)
    }
  }
}
