/** What a node has to know of the others, from the list of nodes that heartbeats keep. */
import type { Membership, Peer } from './peer.ts'

/** As `GET /nodes` lists it. */
interface ListedNode {
  readonly name: string
  /** URL of its API. */
  readonly address: string
  readonly state: 'starting' | 'serving' | 'draining' | 'stopped' | 'lost'
  /** Milliseconds UTC. */
  readonly heartbeatAt: number
  readonly isThis: boolean
}

interface Nodes {
  readonly identity: { readonly name: string }
  list(): readonly ListedNode[]
}

/** A node that is lost for longer is not named any more: the calls of its last run are over, or with a new one. */
const NAMED_MS = 3_600_000

/** @param key of `Secrets.keyFor(NODE_KEY)`. */
export const membershipOf = (nodes: Nodes, key: Buffer, now: () => number): Membership => ({
  self: nodes.identity.name,
  key,
  peers: () => nodes.list().flatMap((node) => peerOf(node, now())),
})

/** What the key is for that nodes know each other by. */
export const NODE_KEY = 'node requests'

function peerOf(node: ListedNode, now: number): readonly Peer[] {
  const { name, address: apiUrl, state, heartbeatAt, isThis } = node
  if (isThis || state === 'stopped' || !isUrl(apiUrl)) return []
  if (state === 'lost' && now - heartbeatAt > NAMED_MS) return []
  return [{ name, apiUrl, isAlive: state === 'serving' || state === 'draining' }]
}

const isUrl = (text: string): boolean => /^https?:$/.test(URL.parse(text)?.protocol ?? '')
