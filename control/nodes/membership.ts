/** What a node has to know of the others, from the list of nodes that heartbeats keep. */
import type { NodesPort, NodeStatus } from '../../schema/contracts/nodes.ts'
import type { Membership, Peer } from './peer.ts'

/** A node that is lost for longer is not named any more: the calls of its last run are over, or with a new one. */
const NAMED_MS = 3_600_000

/** @param key of `Secrets.keyFor(NODE_KEY)`. */
export const membershipOf = (
  nodes: Pick<NodesPort, 'identity' | 'list'>,
  key: Buffer,
  now: () => number,
): Membership => ({
  self: nodes.identity.name,
  key,
  peers: () => nodes.list().flatMap((node) => peerOf(node, now())),
})

/** What the key is for that nodes know each other by. */
export const NODE_KEY = 'node requests'

function peerOf(node: NodeStatus, now: number): readonly Peer[] {
  const { name, address: apiUrl, state, heartbeatAt, isThis } = node
  if (isThis || state === 'stopped' || !isUrl(apiUrl)) return []
  if (state === 'lost' && now - heartbeatAt > NAMED_MS) return []
  return [{ name, apiUrl, isAlive: state === 'serving' || state === 'draining' }]
}

const isUrl = (text: string): boolean => /^https?:$/.test(URL.parse(text)?.protocol ?? '')
