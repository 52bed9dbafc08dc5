/** The processes of an installation as the API sees them. */
import { createHash } from 'node:crypto'

export interface InstanceStatus extends InstanceIdentity {
  /** URL of its API, for the other instances. */
  readonly address: string
  /** SIP URI at which it takes requests of the other instances; null: not known. */
  readonly sipUri: string | null
  /** Further source addresses of its SIP requests. */
  readonly sipAddresses: readonly string[]
  readonly version: string
  /** `lost`: it has been silent for so long that it may be dead. */
  readonly state: 'starting' | 'serving' | 'draining' | 'stopped' | 'lost'
  readonly liveCalls: number
  /** Milliseconds UTC. */
  readonly startedAt: number
  readonly heartbeatAt: number
  /**
   * How far the clock of its machine is ahead of the database server's, in whole seconds; 0 within
   * two seconds.
   */
  readonly clockDifferenceMs: number
  /** The process that answers. */
  readonly isThis: boolean
}

/**
 * `fenced`: another process has taken its name for good. `unheard`: the database server does not
 * answer the instance.
 */
export type InstanceCondition = 'valid' | 'unheard' | 'fenced'

/**
 * The state of a process that was fenced: it was paused, cut off or asleep, and others have what
 * it held.
 */
export interface Fenced {
  /** How long its steady clock stood still: the machine was asleep. */
  readonly stoodStillMs: number
  /** It may hold money again, for its live calls. False: another process has its name. */
  readonly mayHold: boolean
}

export interface InstancesPort {
  readonly identity: InstanceIdentity
  /** Ordered by name. From memory: the result of the last heartbeat. */
  list(): readonly InstanceStatus[]
  /**
   * Settings that must be the same on all instances and differ from those of another live instance,
   * by the name of the instance.
   */
  readonly differingSettings: ReadonlyMap<string, readonly string[]>
  /** The condition of this process. */
  readonly condition: InstanceCondition
  /** Milliseconds since the last heartbeat of this process; 0 on SQLite. */
  readonly heartbeatAgeMs: number
  /**
   * How far the clock of this machine is ahead of the database server's, as measured last; 0 on
   * SQLite.
   */
  readonly clockDifferenceMs: number
}

/** One run of one process of an installation. */
export interface InstanceIdentity {
  /** `NODE_NAME`: one process of an installation has it at a time. */
  readonly name: string
  /**
   * Grows with each start under this name; 0 on SQLite, which one process serves. A higher one has
   * taken over.
   */
  readonly epoch: number
}

export const RUN_MARK_BYTES = 8

/** The first bytes of claims of this run, by which the next run on the same disk finds them. */
export const runMark = ({ name, epoch }: InstanceIdentity): Buffer =>
  createHash('sha256').update(`${name} ${epoch}`).digest().subarray(0, RUN_MARK_BYTES)
