/** Limits that count on all nodes of a database together. */
import type { NodeStatus } from '../../schema/contracts/nodes.ts'
import { leaseNames } from '../charging/leases/lease-names.ts'
import type { OcsDeps } from '../charging/ocs.ts'
import { SharedLimits, type SharedLimitsDeps } from '../limits/shared-limits.ts'
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

/**
 * They spend from the same wallets. Undefined: there are none.
 *
 * @param old the process of this node that hands over to this one.
 */
export function membersOf(
  { node, notices }: Stores,
  old?: { readonly leaseName: string | undefined },
): OcsDeps['members'] {
  if (notices === undefined) return undefined
  const { identity } = node
  const beside = old && (old.leaseName ?? identity.name)
  return {
    identity,
    notices,
    isBeside: old !== undefined,
    leaseNames: leaseNames(identity.name, beside),
    isAlive: () => node.isLeaseValid(),
    size: () => Math.max(1, node.list().filter(isAlive).length),
    gone: () => node.gone(),
  }
}

const isAlive = ({ state }: NodeStatus): boolean => state !== 'stopped' && state !== 'lost'
