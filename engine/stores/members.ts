/** The other processes of the installation, as charging knows them. */
import type { NodeStatus } from '../../schema/contracts/nodes.ts'
import { leaseNames } from '../charging/leases/lease-names.ts'
import type { OcsDeps } from '../charging/ocs.ts'
import type { Stores } from './stores.ts'

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
