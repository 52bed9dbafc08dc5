/** What is kept of a leg's media beside its call, so that the next process goes on with its session. */
import { noMediaRules } from '../../../schema/rules/media.ts'
import type { ActiveCalls } from '../../call/active-calls.ts'
import { type MediaLeg, newMediaLeg, type SdpFingerprint } from './session.ts'
import type { Sessions } from './sessions.ts'
import { type PartyFacts, unknownParty } from '../parties.ts'
import type { Relays } from '../relay/relays.ts'

/** Plain JSON values; what is usual is absent. */
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

/** Without what is usual. */
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
  {
    sessions,
    relays,
    calls,
  }: {
    readonly sessions: Sessions
    readonly relays: Pick<Relays, 'byName'>
    readonly calls: Pick<ActiveCalls, 'leg'>
  },
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
    // Only answered calls are saved: what it tells at its end is kept.
    leg.current.isConnected = true
  }
  return leg
}

const originLine = /^o=(\S+ \S+) (\d+) ([^\r\n]*)/m

/**
 * Returns `sdp` as it goes out to the peer of a leg: with the version after the description that the leg was sent last. A
 * relay's ports differ between sessions, so a version counts what is really sent (RFC 3264 §8).
 */
export function nextFor(leg: MediaLeg, sdp: string): string {
  const last = leg.hasOwnVersions ? lastOf(leg) : undefined
  const next = last === undefined ? { sdp, lastSent: undefined } : nextSdp(last, sdp)
  leg.lastSdpSent = next.sdp
  leg.lastSent = next.lastSent
  return next.sdp
}

/** What is kept of what a leg was told last: made once, and only of descriptions that are saved or followed by another. */
function lastOf(leg: MediaLeg): SdpFingerprint | undefined {
  if (leg.lastSdpSent !== '') leg.lastSent ??= nextSdp(undefined, leg.lastSdpSent).lastSent
  return leg.lastSent
}

/** `sdp` as the description after `last` in one dialog, and what is to be kept of it. */
function nextSdp(
  last: SdpFingerprint | undefined,
  sdp: string,
): { readonly sdp: string; readonly lastSent: SdpFingerprint | undefined } {
  const line = originLine.exec(sdp)
  if (line === null) return { sdp, lastSent: last }
  const [own, session = '', version = '0', address = ''] = line
  const [before, after] = [sdp.slice(0, line.index), sdp.slice(line.index + own.length)]
  const rest = digestOf(before, after)
  if (last === undefined) return { sdp, lastSent: { origin: [session, version, address], rest } }
  const [name, number, host] = last.origin
  const next = rest === last.rest ? number : String(BigInt(number) + 1n)
  return {
    sdp: `${before}o=${name} ${next} ${host}${after}`,
    lastSent: { origin: [name, next, host], rest },
  }
}

/** 53 bits (cyrb53): it tells a change from a repetition, and guards nothing. SHA-1 took 5 µs between other work, this 1. */
function digestOf(...texts: readonly string[]): string {
  let [high, low] = [0xdeadbeef, 0x41c6ce57]
  for (const text of texts)
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at)
      high = Math.imul(high ^ code, 0x9e3779b1)
      low = Math.imul(low ^ code, 0x5f356495)
    }
  high = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35)
  low = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35)
  return (4_294_967_296 * (0x1f_ffff & low) + (high >>> 0)).toString(36)
}
