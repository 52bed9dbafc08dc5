/** The parties of a call that is live, or ended a moment ago: they may report its quality. */
import type { Origin } from '../routing/routing.ts'
import { bracketed } from '../../schema/sip/index.ts'
import type { LiveCall, Side } from './call-machine/state.ts'

export interface CallParties extends Pick<LiveCall, 'callIds' | 'legs' | 'peers' | 'origin'> {
  readonly callUuid: string
  readonly place: Pick<LiveCall['place'], 'nodeId' | 'carrierId'>
  /** SIP URI of what was called, where it is an extension. */
  readonly extension: string | undefined
}

export function partiesOf(call: LiveCall): CallParties {
  const { start, callIds, legs, peers, origin, place, destination } = call
  const extension = destination?.kind === 'extension' ? destination.uri : undefined
  return {
    callUuid: start.callUuid,
    callIds,
    legs,
    peers,
    origin,
    extension,
    place: { nodeId: place.nodeId, carrierId: place.carrierId },
  }
}

/**
 * Which party of the call sends a request outside of it, with the Call-ID of its own leg;
 * undefined: neither, so that no stranger and no other tenant speaks for one.
 */
export function sideOf(
  parties: CallParties,
  { origin, address, callId }: { origin: Origin; address: string; callId: string },
): Side | undefined {
  const isCaller = isCalling(parties, origin, address)
  const isCallee = isCalled(parties, origin, address)
  if (isCaller && isCallee) return parties.callIds[0] === callId ? 'caller' : 'callee'
  if (isCaller) return 'caller'
  return isCallee ? 'callee' : undefined
}

function isCalling({ origin: caller, peers }: CallParties, by: Origin, address: string): boolean {
  if (by.kind === 'extension')
    return caller?.kind === 'extension' && caller.extensionId === by.extensionId
  if (by.kind === 'carrier') return caller?.kind === 'carrier' && caller.carrierId === by.carrierId
  return by.kind !== 'unknown' && caller?.kind === by.kind && isAt(peers.caller, address)
}

function isCalled({ extension, place, peers }: CallParties, by: Origin, address: string): boolean {
  if (by.kind === 'extension')
    return extension?.toLowerCase() === `sip:${by.extension}@${by.domain}`.toLowerCase()
  if (by.kind === 'carrier') return place.carrierId === by.carrierId
  if (by.kind === 'node') return place.nodeId === by.nodeId
  return by.kind === 'trusted' && isAt(peers.callee, address)
}

/** `peer` is `address:port`. */
const isAt = (peer: string | null, address: string): boolean =>
  peer !== null && peer.slice(0, peer.lastIndexOf(':')) === bracketed(address)
