/** Which process of an installation this is, and which of its runs. */
import { createHash } from 'node:crypto'

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
