/** The processes of an installation as the API sees them. */
import { createHash } from 'node:crypto'

export interface NodeStatus extends NodeIdentity {
  /** URL of its API, for the other nodes. */
  readonly address: string
  /** SIP URI at which it takes requests of the other nodes; null: it has told none. */
  readonly sipUri: string | null
  /** By which its SIP requests come, besides that of the URI. */
  readonly sipAddresses: readonly string[]
  readonly version: string
  /** `lost`: it has not been heard for so long that it may be dead. */
  readonly state: 'starting' | 'serving' | 'draining' | 'stopped' | 'lost'
  readonly liveCalls: number
  /** Milliseconds UTC. */
  readonly startedAt: number
  readonly heartbeatAt: number
  /** The process that answers. */
  readonly isThis: boolean
}

/** `fenced`: another process has its name, for good. `unheard`: the database server does not answer it. */
export type NodeCondition = 'valid' | 'unheard' | 'fenced'

export interface NodesPort {
  readonly identity: NodeIdentity
  /** Ordered by name. From memory: what was heard within the last second, or last of all. */
  list(): readonly NodeStatus[]
  /** By the name of a node: settings that must be the same on all, and in which it differs from another that lives. */
  readonly differingSettings: ReadonlyMap<string, readonly string[]>
  /** Of this process. */
  readonly condition: NodeCondition
  /** Milliseconds since this process was heard; 0 where no other process is. */
  readonly heartbeatAgeMs: number
}

/** Which process of an installation this is, and which of its runs. */
export interface NodeIdentity {
  /** `NODE_NAME`: one process of an installation has it at a time. */
  readonly name: string
  /** Grows with each start under this name; 0 on SQLite, which one process serves. A higher one has taken over. */
  readonly epoch: number
}

export const RUN_MARK_BYTES = 8

/** Begins what this run has taken for a time, so that the next run on the same disk finds it. */
export const runMark = ({ name, epoch }: NodeIdentity): Buffer =>
  createHash('sha256').update(`${name} ${epoch}`).digest().subarray(0, RUN_MARK_BYTES)
