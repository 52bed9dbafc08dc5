/**
 * Spend guards on the call path: whether a call is blocked, and on which caps it counts. Without a
 * guard a call asks one flag; with any number of them it looks up its payer, its extension and its
 * tenants.
 */
import type { AuthorizationRequest, ExitCodes } from '../../../schema/contracts/charging.ts'
import { OneAtATime } from '../../../schema/one-at-a-time.ts'
import { Caps, type CapsDeps } from './caps.ts'
import { loadCaps } from './cap-rows.ts'
import type { Meter } from './meter.ts'
import type { Brake, SpendingCap, CapScope } from '../../../schema/contracts/limits.ts'
import { comparedPrefix, spellingsOf } from '../../../schema/rules/numbers.ts'

/** Facts of a call that guards may ask for; it may have no uuid yet. */
export type Cappable = Omit<AuthorizationRequest, 'callUuid'>

/** Facts of its payer that guards need. */
interface Payer {
  readonly terms: {
    readonly customerId: number
    readonly tenantId: number | null
    readonly currency: string | null
  }
}

/** Verdict of the guards on a call. */
export type Capped =
  | { readonly kind: 'blocked'; readonly capUuid: string }
  | { readonly kind: 'capped'; readonly meters: readonly Meter[] }

interface SpendingCapsDeps extends CapsDeps {
  /** Prefixes dialled in place of `+`; absent: the usual ones. */
  readonly exitCodes?: ExitCodes | undefined
  /** There is a cap that was not there before: live calls count on it, too. */
  readonly onNewCap: () => void
}

export class SpendingCaps {
  readonly caps: Caps
  readonly #deps: SpendingCapsDeps
  readonly #reloads = new OneAtATime(() => this.#load())
  #table = new CapTable()
  #capUuids: ReadonlySet<string> = new Set()

  constructor(deps: SpendingCapsDeps) {
    this.#deps = deps
    this.caps = new Caps(deps)
  }

  /** Takes over what is stored now. Resolves when it applies. */
  reload(): Promise<void> {
    return this.#reloads.request()
  }

  async #load(): Promise<void> {
    const { store, wallNow, onNewCap } = this.#deps
    const guards = await loadCaps(store, wallNow())
    const caps = guards.filter(({ action }) => action === 'cap')
    await this.caps.load(caps)
    this.#table = new CapTable(guards, this.#deps.exitCodes)
    const before = this.#capUuids
    this.#capUuids = new Set(caps.map(({ capUuid }) => capUuid))
    if (caps.some(({ capUuid }) => !before.has(capUuid))) onNewCap()
  }

  /**
   * Undefined: no guard covers the call. A call without a payer spends nothing, and no cap counts
   * it.
   */
  of(call: Cappable, payer: Payer | undefined): Capped | undefined {
    if (this.#table.isEmpty || call.isEmergencyNumber === true) return undefined
    const guards = this.#table.covering(facts(call, payer), this.#deps.wallNow())
    if (guards.length === 0) return undefined
    const block = guards.find((guard) => isBlocked(guard, payer))
    if (block !== undefined) return { kind: 'blocked', capUuid: block.capUuid }
    return payer && { kind: 'capped', meters: guards.map((guard) => this.caps.meterOf(guard)) }
  }

  /** Caps that a live call counts on: a block that was set meanwhile does not end it. */
  metersOf(call: Cappable, payer: Payer): readonly Meter[] {
    if (this.#table.isEmpty || call.isEmergencyNumber === true) return none
    return this.#table
      .covering(facts(call, payer), this.#deps.wallNow())
      .filter((guard) => !isBlocked(guard, payer))
      .map((guard) => this.caps.meterOf(guard))
  }

  /** Whether any guard ends calls that were live when it was set. */
  get endsCalls(): boolean {
    return this.#table.endsCalls
  }

  /** Whether this call was live when a guard was set that ends such calls. */
  isEnded(call: Cappable, payer: Payer | undefined): boolean {
    if (call.isEmergencyNumber === true) return false
    return this.#table
      .covering(facts(call, payer), this.#deps.wallNow())
      .some(({ endsCallsBefore }) => endsCallsBefore !== null && call.startedAt < endsCallsBefore)
  }
}

const none: readonly Meter[] = []

/** How many of these live calls a guard covers that is set now. */
export function countUnder(brake: Brake, calls: Iterable<LiveCall>, exitCodes?: ExitCodes): number {
  const noAmounts = {
    amountMicros: 0,
    currency: null,
    per: null,
    expiresAt: null,
    endsCallsBefore: null,
  }
  const guard = { ...brake, ...noAmounts, capUuid: '', action: 'block', startsAt: 0 } as const
  const table = new CapTable([guard], exitCodes)
  let count = 0
  for (const { asked, payer, isEnded } of calls)
    if (asked !== undefined && !isEnded && table.covering(facts(asked, payer), 0).length > 0)
      count += 1
  return count
}

interface LiveCall {
  readonly asked?: Cappable
  readonly payer: Payer | undefined
  readonly isEnded: boolean
}

/** A call in another currency than the cap cannot be counted on it. */
const isBlocked = ({ action, currency }: SpendingCap, payer: Payer | undefined): boolean =>
  action === 'block' ||
  (payer !== undefined && payer.terms.currency !== null && payer.terms.currency !== currency)

function facts(call: Cappable, payer: Payer | undefined): CappedCall {
  const { callee, caller, extensionId = null, mayNamePayer = true } = call
  const { customerId = null, tenantId = null } = payer?.terms ?? {}
  const sourceTenantId = sourceTenantOf(call)
  const tenantIds = [tenantId, sourceTenantId === tenantId ? null : sourceTenantId].filter(
    (id) => id !== null,
  )
  const routed = call.routingNumber === undefined ? [] : [call.routingNumber]
  const sentAs = () => [...(call.sentAs?.(customerId, tenantId) ?? []), ...routed]
  const source = { extensionId, caller: mayNamePayer ? caller : null }
  return { customerId, ...source, tenantIds, callee, sentAs }
}

/** Only the payer tells which tenant calls through a proxy that serves several. */
export function sourceTenantOf({ payerTenantId = null }: Cappable): number | null {
  if (typeof payerTenantId !== 'object' || payerTenantId === null) return payerTenantId
  return payerTenantId.length === 1 ? (payerTenantId[0] ?? null) : null
}

/** Facts of a call that a guard may name. */
export interface CappedCall {
  /** The payer; null: there is none. */
  readonly customerId: number | null
  /** The phone or click-to-call source; null: the call comes from elsewhere. */
  readonly extensionId: number | null
  /** Tenants of the payer and of the source. */
  readonly tenantIds: readonly number[]
  /** May name an extension of `tenantIds`; null: it names none. */
  readonly caller: string | null
  readonly callee: string
  /** Returns the numbers that gateways would get in its place. */
  readonly sentAs?: (() => readonly string[]) | undefined
}

class CapTable {
  readonly #scopes: Readonly<Record<CapScope, Map<number, Prefixes>>> = {
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

  constructor(guards: readonly SpendingCap[] = [], exitCodes?: ExitCodes) {
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

  /**
   * Those that cover a call and have not expired at `at` (milliseconds UTC); of each scope the
   * longest prefix first.
   */
  covering(call: CappedCall, at: number): readonly SpendingCap[] {
    const { customer, extension, tenant } = this.#scopes
    const sets: Prefixes[] = []
    const add = (set: Prefixes | undefined): void => void (set && sets.push(set))
    if (call.customerId !== null) add(customer.get(call.customerId))
    const extensionIds = extension.size === 0 ? [] : this.#extensionsOf(call)
    for (const id of extensionIds) add(extension.get(id))
    for (const id of call.tenantIds) add(tenant.get(id))
    if (sets.length === 0) return noCaps
    const numbers = [call.callee, ...(call.sentAs?.() ?? [])]
    const spellings = new Set(numbers.flatMap((number) => spellingsOf(number, this.#exitCodes)))
    const found = new Set<SpendingCap>()
    for (const set of sets) for (const digits of spellings) set.find(digits, at, found)
    return found.size === 0 ? noCaps : [...found]
  }

  #extensionsOf({ extensionId, tenantIds, caller }: CappedCall): readonly number[] {
    if (extensionId !== null) return [extensionId]
    if (caller === null) return []
    return tenantIds.flatMap((id) => this.#extensions.get(keyOf(id, caller)) ?? [])
  }
}

const noCaps: readonly SpendingCap[] = []

const keyOf = (tenantId: number, extension: string): string =>
  `${tenantId} ${extension.replace(/^\+/, '')}`

class Prefixes {
  readonly #byPrefix = new Map<string, SpendingCap[]>()
  /** The longest first. */
  #lengths: readonly number[] = []

  add(guard: SpendingCap, prefix: string): void {
    const others = this.#byPrefix.get(prefix)
    if (others === undefined) this.#byPrefix.set(prefix, [guard])
    else others.push(guard)
    if (!this.#lengths.includes(prefix.length))
      this.#lengths = [...this.#lengths, prefix.length].toSorted((a, b) => b - a)
  }

  find(digits: string, at: number, into: Set<SpendingCap>): void {
    for (const length of this.#lengths) {
      if (length > digits.length) continue
      for (const guard of this.#byPrefix.get(digits.slice(0, length)) ?? [])
        if (guard.expiresAt === null || at < guard.expiresAt) into.add(guard)
    }
  }
}
