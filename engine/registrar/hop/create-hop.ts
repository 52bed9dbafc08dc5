/** Joins what phones across nodes need: the registry of nodes, bindings, and the guard. */
import type { Log } from '../../../schema/contracts/log.ts'
import type { Binding, Source } from '../bindings.ts'
import type { Home } from './flow-token.ts'
import { type KnownNode, PeerNodes, type PeerNodesDeps } from './peer-nodes.ts'
import { PhoneHop } from './phone-hop.ts'

/** The installation that a process is a node of. */
export interface Installation {
  /** The name of this node. */
  readonly self: string
  /** 32 bytes that all nodes have, and nothing else. */
  readonly key: Buffer
  readonly nodes: () => readonly KnownNode[]
}

/** Parts of the engine, asked when they are needed. */
interface Around {
  readonly registrar: { bindingsOf(home: Home): readonly Binding[] }
  readonly guard: { unknownSource(source: Source): unknown }
}

export interface CreateHopDeps extends Pick<PeerNodesDeps, 'now' | 'hosts'> {
  readonly wallNow: () => number
  readonly log: Log
}

export function createHop(around: Around, { self, key, nodes }: Installation, deps: CreateHopDeps) {
  const { now, wallNow, hosts, log } = deps
  const peers = new PeerNodes({ self, nodes, now, hosts, log })
  const hop = new PhoneHop({
    self,
    key,
    wallNow,
    log,
    peer: (name) => peers.find(name),
    bindingsOf: (home) => around.registrar.bindingsOf(home),
    onHeard: (address) => peers.heard(address),
    onRefused: (source) => void around.guard.unknownSource(source),
  })
  return { hop, peers }
}
