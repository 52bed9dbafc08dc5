/** Limits that count on all nodes of a database together. */
import { SharedLimits, type SharedLimitsDeps } from '../limits/shared-limits.ts'
import { membersOf } from './members.ts'
import type { Stores } from './stores.ts'

interface Deps extends Pick<SharedLimitsDeps, 'schedule' | 'log'> {
  readonly steadyNow: () => number
  readonly randomBytes: (size: number) => Buffer
}

/** Undefined: no other process uses the database. */
export function limitsOf(
  stores: Stores,
  { steadyNow: now, schedule, log, randomBytes }: Deps,
): SharedLimits | undefined {
  const members = membersOf(stores)
  if (members === undefined) return undefined
  const { store, node } = stores
  return new SharedLimits({
    store,
    now,
    schedule,
    log,
    members: {
      name: node.identity.name,
      process: randomBytes(8).toString('hex'),
      notices: members.notices,
      size: members.size,
      canHold: () => node.isHolding(),
      gone: () => node.gone(),
    },
  })
}
