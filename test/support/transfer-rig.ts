/** Calls that are transferred: scripted peers on the rig of call control. */
import type { CallRecord } from '../../schema/contracts/call-record.ts'
import type { Origin } from '../../engine/routing/routing.ts'
import type { CallRig } from './call-rig.ts'
import { sdp, type Leg, type PeerMessage, type SipPeer } from './sip-peer.ts'

/** A phone that calls as extension 101 of tenant 3. */
export const extension101: Origin = {
  kind: 'extension',
  extensionId: 1,
  tenantId: 3,
  customerId: 7,
  domain: 'acme.example',
  extension: '101',
  displayName: 'Phone 101',
}

export interface Pair {
  readonly a: SipPeer
  readonly aLeg: Leg
  readonly b: SipPeer
  readonly bLeg: Leg
}

/** A calls 1555 as `origin`, and talks to the node B. */
export async function establish(rig: CallRig, origin = extension101): Promise<Pair> {
  return call(rig, await rig.caller(), await rig.node(), origin)
}

/** `a` has a further call, to `b`, which is the only candidate. */
export async function call(
  rig: CallRig,
  a: SipPeer,
  b: SipPeer,
  origin = extension101,
  name = '',
): Promise<Pair> {
  if (origin.kind === 'extension') {
    const extension = { ...origin, isVoicemailEnabled: false, secrets: { MD5: '', 'SHA-256': '' } }
    rig.answers.caller = { kind: 'extension', extension }
  } else {
    rig.answers.caller = { kind: 'stranger' }
    rig.answers.origin = origin
  }
  const tag = name === '' ? 'b' : 'b2'
  const before = rig.calls.size
  const aLeg = a.leg(rig.uri('1555'))
  const from = aLeg.from.replace('sip:peer@', 'sip:101@')
  const leg: Leg = { ...aLeg, from }
  a.request('INVITE', leg, { body: sdp(`offer of a${name}`) })
  const invite = await b.next('INVITE')
  b.reply(invite, 200, { tag, body: sdp(`answer of b${name}`) })
  a.learn(leg, await a.next('200 INVITE'))
  a.request('ACK', leg)
  await b.next('ACK')
  await rig.until(
    () => rig.calls.size === before + 1 && rig.calls.list().at(-1)?.state === 'ACTIVE',
  )
  await rig.seen(a)
  // With fast timers a peer is told everything again that it does not answer at once.
  a.inbox.length = 0
  b.inbox.length = 0
  return { a, aLeg: leg, b, bLeg: b.calledLeg(invite, tag) }
}

const tagOf = (party: string): string => /;tag=(.*)$/.exec(party)?.[1] ?? ''

/** Replaces (RFC 3891 §6.1) with `leg` as the party asked to replace it knows it. */
export const replacing = ({ callId, to, from }: Leg, more = ''): string =>
  `${callId};to-tag=${tagOf(to)};from-tag=${tagOf(from)}${more}`

/** A session description for a party that has received earlier ones (RFC 3264 §8). */
export const asVersion = (version: number, description: string): string =>
  description.replace('o=- 1 1 ', `o=- 1 ${version} `)

/** The records of the next calls that end, by the order in which they began. */
export async function recordsOf(rig: CallRig, count: number): Promise<readonly CallRecord[]> {
  const records: CallRecord[] = []
  while (records.length < count) records.push(await rig.record())
  return records.toSorted((one, other) => (one.callUuid < other.callUuid ? -1 : 1))
}

/** REFER, accepted; its first NOTIFY is answered. */
export async function refer(peer: SipPeer, leg: Leg, target: string): Promise<void> {
  peer.request('REFER', leg, { headers: [`Refer-To: <${target}>`] })
  await peer.next('202 REFER')
  await notified(peer)
}

/** The next NOTIFY, answered; repeated ones are answered again and passed over. */
export async function notified(peer: SipPeer): Promise<PeerMessage> {
  for (;;) {
    const notify = await peer.next('NOTIFY')
    peer.reply(notify, 200)
    const seen = numbersOf.get(peer) ?? new Set<string>()
    numbersOf.set(peer, seen)
    const number = `${notify.get('Call-ID')} ${notify.get('CSeq')}`
    if (!seen.has(number)) {
      seen.add(number)
      return notify
    }
  }
}

const numbersOf = new WeakMap<SipPeer, Set<string>>()

/** The NOTIFY that ends the subscription. */
export async function finalNotify(peer: SipPeer): Promise<PeerMessage> {
  for (;;) {
    const notify = await notified(peer)
    if (notify.get('Subscription-State') === 'terminated;reason=noresource') return notify
  }
}

export interface Transferring extends Pair {
  readonly c: SipPeer
  readonly toC: PeerMessage
}

/** A transfers B to 15550100, where C is called. */
export async function transferring(rig: CallRig): Promise<Transferring> {
  const pair = await establish(rig)
  const c = await rig.node()
  rig.answers.candidates.shift()
  await refer(pair.a, pair.aLeg, 'sip:15550100@acme.example')
  return { ...pair, c, toC: await c.next('INVITE') }
}

/** C has answered, and talks to B; A has heard of it. */
export async function answeredBy(
  transfer: Transferring,
): Promise<Transferring & { readonly cLeg: Leg }> {
  const { a, b, c, toC } = transfer
  c.reply(toC, 200, { tag: 'c', body: sdp('answer of c') })
  await c.next('ACK')
  b.reply(await b.next('INVITE'), 200, { body: sdp('answer of b') })
  await b.next('ACK')
  await finalNotify(a)
  b.inbox.length = 0
  c.inbox.length = 0
  return { ...transfer, cLeg: c.calledLeg(toC, 'c') }
}
