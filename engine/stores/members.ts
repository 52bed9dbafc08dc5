/** The other processes of the installation, as charging knows them. */
import type { NodeStatus } from '../../schema/contracts/nodes.ts'
import type { OcsDeps } from '../charging/ocs.ts'
import type { Stores } from './stores.ts'

/** They spend from the same wallets. Undefined: there are none. */
export function membersOf({ node, notices }: Stores): OcsDeps['members'] {
  if (notices === undefined) return undefined
  return {
    ...{ identity: node.identity, notices },
    isAlive: () => node.isLeaseValid(),
    size: () => Math.max(1, node.list().filter(isAlive).length),
    gone: () => node.gone(),
  }
}

const isAlive = ({ state }: NodeStatus): boolean => state !== 'stopped' && state !== 'lost'
