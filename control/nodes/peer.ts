/** The other nodes of an installation, as their registry tells of them. */
export interface Peer {
  /** `NODE_NAME`: letters, digits, `.`, `_` and `-`. */
  readonly name: string
  /** Where its API is reached by other nodes: scheme, host and port. */
  readonly apiUrl: string
  /** Its heartbeat is recent; one that is not alive is not asked. */
  readonly isAlive: boolean
}

/** What a process needs in order to ask other nodes. */
export interface Membership {
  /** The name of this node. */
  readonly self: string
  /** 32 bytes that all nodes of the installation derive from `SECRET_KEY`, and nothing else has. */
  readonly key: Buffer
  /** All nodes but this one. From memory: it is read for each request that concerns other nodes. */
  readonly peers: () => readonly Peer[]
}
