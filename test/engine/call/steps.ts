/** Steps that calls take again and again. */
import { afterEach, beforeEach } from 'vitest'
import type { ContactTarget } from '../../../engine/registrar/bindings.ts'
import type { ExtensionRecord } from '../../../engine/registrar/extension-directory.ts'
import type { GatewayCandidate, Origin } from '../../../engine/routing/routing.ts'
import type { OriginateRequest } from '../../../schema/contracts/calls.ts'
import { startCallRig, type CallRig, type Talk } from '../../support/call-rig.ts'
import { gateway } from '../../support/gateway.ts'
import {
  sdp,
  type Content,
  type Leg,
  type PeerMessage,
  type SipPeer,
} from '../../support/sip-peer.ts'

export const home = 'acme.example'

/** The rig of the test that runs, in files that ask for one. */
export let rig: CallRig

export function rigForEachTest(): void {
  beforeEach(async () => {
    rig = await startCallRig()
  })
  afterEach(() => rig.stop())
}

/** The next process asks each party of a call whether it is still there; these are. */
export async function stillThere(rig: CallRig, ...parties: readonly SipPeer[]): Promise<void> {
  await rig.advance(200)
  for (const party of parties) {
    party.reply(await party.next('INVITE'), 200, { body: sdp('still there') })
    await party.next('ACK')
  }
  await rig.settle()
}

/** An extension of tenant 3, at the expense of customer 7. */
export const extensionRecord = (
  extension: string,
  parts: Partial<ExtensionRecord> = {},
): ExtensionRecord => ({
  extensionId: Number(extension),
  extension,
  tenantId: 3,
  customerId: 7,
  domain: home,
  displayName: `Phone ${extension}`,
  isVoicemailEnabled: false,
  secrets: { MD5: '', 'SHA-256': '' },
  ...parts,
})

export const addExtensions = ({ answers }: CallRig, ...records: readonly ExtensionRecord[]) => {
  for (const each of records) answers.extensions.set(`${each.extension}@${each.domain}`, each)
}

/** One more phone of an extension, by UDP; its Contact leads nowhere. */
export async function phoneOf(
  rig: CallRig,
  extension: string,
  { domain = home, uri = `sip:${extension}@10.0.0.9` } = {},
): Promise<SipPeer> {
  const peer = await rig.caller()
  const { contacts } = rig.answers
  const place = `${extension}@${domain}`
  contacts.set(place, [...(contacts.get(place) ?? []), contactOf(peer, uri)])
  return peer
}

export const contactOf = ({ port }: SipPeer, uri: string): ContactTarget => ({
  uri,
  routes: [],
  nextHop: `sip:127.0.0.1:${port};transport=udp`,
  q: 1_000,
  source: { protocol: 'udp', address: '127.0.0.1', port },
})

/** A carrier behind every route to the outside. */
export async function carrierOf(
  rig: CallRig,
  parts: Partial<GatewayCandidate> = {},
  isEmergency = false,
): Promise<SipPeer> {
  const peer = await rig.caller()
  const uri = `sip:127.0.0.1:${peer.port};transport=udp`
  rig.answers.outbound = { kind: 'gateways', isEmergency, gateways: [gateway({ uri, ...parts })] }
  return peer
}

export const carrierOrigin = (
  parts: Partial<Extract<Origin, { kind: 'carrier' }>> = {},
): Extract<Origin, { kind: 'carrier' }> => ({
  kind: 'carrier',
  carrierId: 1,
  gatewayId: 1,
  name: 'north',
  payer: 'customer',
  customerId: 7,
  tenantId: 3,
  inboundSetId: null,
  ...parts,
})

export const denied = (code: string) => () =>
  Promise.resolve({ kind: 'denied', code, account: null } as const)

/** A node that is called in place of the first. */
export async function nextNode(rig: CallRig): Promise<SipPeer> {
  const node = await rig.node()
  rig.answers.candidates.shift()
  return node
}

/** A caller calls 1555, and a node has the INVITE. */
export async function dial(rig: CallRig, content: Content = {}): Promise<Omit<Talk, 'nodeLeg'>> {
  const [caller, node] = [await rig.caller(), await rig.node()]
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer'), ...content })
  return { caller, node, leg, invite: await node.next('INVITE') }
}

/** The caller acknowledges its 200, and so hears the called side. */
export async function acknowledge(
  caller: SipPeer,
  leg: Leg,
  called?: SipPeer,
): Promise<PeerMessage> {
  const answer = await caller.next('200 INVITE')
  caller.learn(leg, answer)
  caller.request('ACK', leg)
  await called?.next('ACK')
  return answer
}

/** The first of them hangs up. */
export async function hangUp(one: SipPeer, leg: Leg, other: SipPeer): Promise<PeerMessage> {
  one.request('BYE', leg)
  other.reply(await other.next('BYE'), 200)
  return one.next('200 BYE')
}

/** Each of them gets BYE. */
export async function areHungUp(...peers: readonly SipPeer[]): Promise<void> {
  for (const peer of peers) peer.reply(await peer.next('BYE'), 200)
}

/** A request of `from` in a dialog passes, and its answer comes back. */
export async function infoPasses(from: SipPeer, leg: Leg, to: SipPeer): Promise<void> {
  from.request('INFO', leg)
  to.reply(await to.next('INFO'), 200)
  await from.next('200 INFO')
}

export const originateRequest: OriginateRequest = {
  domain: home,
  extension: '101',
  destination: '15550100',
  autoAnswer: false,
  callerNumber: undefined,
  callerName: undefined,
  ringMs: 60_000,
}

/** Answers the next INVITE, with the tag `t`. */
export async function replies(
  peer: SipPeer,
  status: number,
  content: Content = {},
): Promise<PeerMessage> {
  const invite = await peer.next('INVITE')
  peer.reply(invite, status, { tag: 't', ...content })
  return invite
}
