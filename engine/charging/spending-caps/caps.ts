/**
 * The amounts that the processes of an installation may spend within caps. Each has a share of a
 * cap in each period of it: the money that its calls have spent and hold. The shares are never more
 * than the cap, and so the sum of all grants; what calls have not spent goes back within a second.
 * A share outlives its process: what that held when it died counts as spent.
 */
import { capResource, type Hold, type SpendingCap } from '../../../schema/contracts/limits.ts'
import type { Store } from '../../../schema/storage/store.ts'
import type { ShareKind } from '../../shares/instance-share.ts'
import {
  InstanceShares,
  type InstanceSharesDeps,
  onlyMember,
  type ShareMembers,
} from '../../shares/instance-shares.ts'
import { startOfDay } from '../customers/customer.ts'
import { loadUse } from './cap-rows.ts'
import { Meter } from './meter.ts'

export interface CapsDeps extends Omit<InstanceSharesDeps, 'members'> {
  readonly store: Store
  /** Milliseconds UTC: days of caps are those of the calendar. */
  readonly wallNow: () => number
  /** Absent: no other process grants under the same caps. */
  readonly members?: ShareMembers | undefined
}

export const capShares: ShareKind = { kind: 'cap', aheadSeconds: 0, idlePolls: 1, busyWaitMs: 500 }

export class Caps {
  readonly #deps: CapsDeps
  /** Undefined: there was no cap so far. */
  #shares: InstanceShares | undefined
  readonly #meters = new Map<string, Meter>()

  constructor(deps: CapsDeps) {
    this.#deps = deps
  }

  /** The meter of the present period. */
  meterOf(guard: SpendingCap): Meter {
    const start = this.#periodOf(guard)
    const known = this.#meters.get(guard.capUuid)
    if (known?.periodStart === start) return known
    // The free part of the period before is worth nothing in this one.
    if (known !== undefined) this.#shares?.forget(known.share.resource)
    const { members = onlyMember, ...deps } = this.#deps
    // A part taken of a cap is this process's own for ever.
    const own = { ...members, canHold: () => true, gone: () => [] }
    this.#shares ??= new InstanceShares(capShares, { ...deps, members: own })
    const meter = new Meter(guard, start, this.#shares)
    this.#meters.set(guard.capUuid, meter)
    return meter
  }

  #periodOf({ per, startsAt }: SpendingCap): number {
    return per === 'day' ? Math.max(startsAt, startOfDay(this.#deps.wallNow())) : startsAt
  }

  /** Takes over what guards say now, and what was taken of them. `caps` are all that there are. */
  async load(caps: readonly SpendingCap[]): Promise<void> {
    const byUuid = new Map(caps.map((guard) => [guard.capUuid, guard]))
    for (const [uuid, meter] of this.#meters) {
      const guard = byUuid.get(uuid)
      if (guard !== undefined) {
        meter.follow(guard)
        continue
      }
      this.#shares?.forget(meter.share.resource)
      if (meter.isIdle) this.#meters.delete(uuid)
    }
    if (caps.length === 0) return
    const guards = new Map(
      caps.map((guard) => [capResource(guard.capUuid, this.#periodOf(guard)), guard]),
    )
    const rows = await loadUse(this.#deps.store, [...guards.keys()])
    const { process } = this.#deps.members ?? onlyMember
    const known = new Set(this.#meters.values())
    for (const meter of known) meter.share.elsewhere = 0
    for (const { resource, process: taker, amount } of rows) {
      const guard = guards.get(resource)
      const meter = guard && this.meterOf(guard)
      if (meter === undefined) continue
      if (taker !== process) meter.share.elsewhere += amount
      else if (!known.has(meter)) meter.spentBefore(amount)
    }
  }

  /** Resolves when so much is held on each of them, or when there is no more. */
  async obtain(meters: readonly Meter[], micros: number): Promise<Hold> {
    const holds = await Promise.all(meters.map((meter) => meter.obtain(micros)))
    return {
      isGiven: holds.every(({ isGiven }) => isGiven),
      isKnown: holds.every(({ isKnown }) => isKnown),
      end: () => {
        for (const hold of holds) hold.end()
      },
    }
  }

  /** Gives back what no call holds. */
  stop(): Promise<void> {
    return this.#shares?.stop() ?? Promise.resolve()
  }
}
