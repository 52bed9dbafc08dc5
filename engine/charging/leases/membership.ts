/** The other processes that spend from the same wallets. */
import type { NodeIdentity } from '../../../schema/contracts/nodes.ts'
import type { LeaseNames } from './lease-names.ts'
import type { Notices } from './lease-notices.ts'

/** What the processes that share a database know of each other. */
export interface Membership {
  readonly identity: NodeIdentity
  readonly leaseNames: LeaseNames
  /** Another process of this node serves: it hands over to this one. */
  readonly isBeside: boolean
  /** False: others may take this process for dead, and what it has leased. */
  readonly isAlive: () => boolean
  /** How many processes are alive. */
  readonly size: () => number
  /** How long this process grants while the database does not answer. */
  readonly awaySeconds?: number
  readonly notices: Notices
  /**
   * Nodes that have been silent for so long that nothing goes on which they have granted: what they have leased is
   * freed.
   */
  readonly gone?: () => readonly NodeIdentity[]
}
