/** Which process of an installation this is, and which of its runs. */
export interface NodeIdentity {
  /** `NODE_NAME`: one process of an installation has it at a time. */
  readonly name: string
  /** Grows with each start under this name; 0 on SQLite, which one process serves. A higher one has taken over. */
  readonly epoch: number
}
