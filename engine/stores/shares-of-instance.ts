/** Wallets and limits that this instance shares with the others of a database. */
import type { InstanceStatus } from '../../schema/contracts/instances.ts'
import type { ShareKind } from '../shares/instance-share.ts'
import {
  InstanceShares,
  type InstanceSharesDeps,
  type ShareMembers,
} from '../shares/instance-shares.ts'
import type { Stores } from './stores.ts'

interface Deps extends Pick<InstanceSharesDeps, 'schedule' | 'log'> {
  readonly steadyNow: () => number
  readonly randomBytes: (size: number) => Buffer
}

/** Undefined: no other process uses the database. */
export function membersOf(
  { instance, notices }: Stores,
  { randomBytes }: Pick<Deps, 'randomBytes'>,
): ShareMembers | undefined {
  if (notices === undefined) return undefined
  return {
    notices,
    name: instance.identity.name,
    process: randomBytes(8).toString('hex'),
    canHold: () => instance.isHoldingMoney(),
    run: () => instance.identity.epoch,
    mayHaveSlept: () => instance.mayHaveSlept(),
    size: () => instance.list().filter(isAlive).length,
    gone: () => instance.gone(),
  }
}

/**
 * Limits that count on all instances together, of calls or of requests: what is held of them is its
 * own for longer than money.
 */
export const limitsOf = (
  kind: ShareKind,
  { store, instance }: Stores,
  members: ShareMembers,
  { steadyNow: now, schedule, log }: Deps,
): InstanceShares =>
  new InstanceShares(kind, {
    store,
    now,
    schedule,
    log,
    members: { ...members, canHold: () => instance.isHolding() },
  })

const isAlive = ({ state }: InstanceStatus): boolean => state !== 'stopped' && state !== 'lost'
