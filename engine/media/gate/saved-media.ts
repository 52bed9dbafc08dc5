/** The saved media state of a leg, with which the next process continues its session. */
import { hash } from 'node:crypto'
import { noMediaRules } from '../../../schema/rules/media.ts'
import { type MediaLeg, newMediaLeg, type SdpFingerprint } from './session.ts'
import type { GateDeps } from './sessions.ts'
import { type PartyFacts, unknownParty } from '../parties.ts'

/** Plain JSON values. Defaults are absent. */
export interface SavedMedia {
  readonly facts?: Partial<PartyFacts>
  readonly told?: SdpFingerprint
  readonly session?: {
    readonly id: string
    readonly relay: string
    readonly legs: readonly [string, string]
  }
}

export function saveMedia(leg: MediaLeg): SavedMedia {
  const { facts, current, hasOwnVersions } = leg
  const told = hasOwnVersions ? lastOf(leg) : undefined
  const session = current && { id: current.id, relay: current.relay.name, legs: current.legs }
  return { facts: changedFacts(facts), ...(told && { told }), ...(session && { session }) }
}

const usualFacts: PartyFacts = { ...unknownParty, isBehindProxy: false }

/** Without defaults. */
const changedFacts = (facts: PartyFacts): Partial<PartyFacts> => ({
  ...(facts.isOnWebSocket && { isOnWebSocket: true }),
  ...(facts.address !== undefined && { address: facts.address }),
  ...(facts.isBehindProxy && { isBehindProxy: true }),
  ...(facts.boundBehindNat !== undefined && { boundBehindNat: facts.boundBehindNat }),
  ...(facts.rules !== undefined && facts.rules !== noMediaRules && { rules: facts.rules }),
})

export function restoreMedia(
  legId: string,
  saved: SavedMedia | undefined,
  { sessions, relays, calls }: GateDeps,
): MediaLeg {
  const { facts, told, session } = saved ?? {}
  // A process without relays has saved nothing.
  const leg = newMediaLeg(legId, saved === undefined ? unknownParty : { ...usualFacts, ...facts })
  leg.lastSent = told
  leg.hasOwnVersions = told !== undefined
  if (!leg.hasOwnVersions) leg.lastSdpSent = calls.leg(legId)?.lastSdpSent ?? ''
  const relay = session && relays.byName(session.relay)
  if (session && relay) {
    const { id, legs } = session
    leg.current = sessions.withId(id, legId) ?? sessions.add(id, relay, legs)
    // Only answered calls are saved: the statistics of the session count.
    leg.current.isConnected = true
  }
  return leg
}

const originLine = /^o=(\S+ \S+) (\d+) ([^\r\n]*)/m

/**
 * Returns `sdp` as it is sent to the peer of a leg: with the version after the last SDP sent (RFC
 * 3264 §8). The ports of a relay differ between sessions, so versions are counted here.
 */
export function nextFor(leg: MediaLeg, sdp: string): string {
  const last = leg.hasOwnVersions ? lastOf(leg) : undefined
  const next = last === undefined ? { sdp, lastSent: undefined } : nextSdp(last, sdp)
  leg.lastSdpSent = next.sdp
  leg.lastSent = next.lastSent
  return next.sdp
}

/**
 * The fingerprint of the last SDP sent to a leg: computed only if it is saved or followed by
 * another SDP.
 */
function lastOf(leg: MediaLeg): SdpFingerprint | undefined {
  if (leg.lastSdpSent !== '') leg.lastSent ??= nextSdp(undefined, leg.lastSdpSent).lastSent
  return leg.lastSent
}

/** Returns `sdp` as the one after `last` in a dialog, and its fingerprint. */
function nextSdp(
  last: SdpFingerprint | undefined,
  sdp: string,
): { readonly sdp: string; readonly lastSent: SdpFingerprint | undefined } {
  const line = originLine.exec(sdp)
  if (line === null) return { sdp, lastSent: last }
  const [own, session = '', version = '0', address = ''] = line
  const [before, after] = [sdp.slice(0, line.index), sdp.slice(line.index + own.length)]
  const rest = hash('sha1', before + after, 'base64url')
  if (last === undefined) return { sdp, lastSent: { origin: [session, version, address], rest } }
  const [name, number, host] = last.origin
  const next = rest === last.rest ? number : String(BigInt(number) + 1n)
  return {
    sdp: `${before}o=${name} ${next} ${host}${after}`,
    lastSent: { origin: [name, next, host], rest },
  }
}
