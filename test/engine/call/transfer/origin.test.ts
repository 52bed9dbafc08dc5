/** RFC 3264 §8, as strict phones check it: the transferee sees one origin, whatever its peer is. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startCallRig, type CallRig } from '../../../support/call-rig.ts'
import { sdp, type Leg, type PeerMessage, type SipPeer } from '../../../support/sip-peer.ts'
import { establish, finalNotify, refer } from '../../../support/transfer-rig.ts'
import { nextNode } from '../steps.ts'

let rig: CallRig

beforeEach(async () => {
  rig = await startCallRig()
})
afterEach(() => rig.stop())

const described = (who: string, version: number, direction = 'sendrecv'): string =>
  sdp(who)
    .replace('o=- 1 1 IN IP4 127.0.0.1', `o=${who} 7 ${version} IN IP4 192.0.2.7`)
    .replace('a=sendrecv', `a=${direction}`)

const originOf = ({ body }: PeerMessage): string | undefined => /^o=.*$/m.exec(body)?.[0]

/** `from` offers again, which `to` answers; what each was told. */
async function reoffered(
  from: SipPeer,
  leg: Leg,
  to: SipPeer,
  { offer, answer }: { readonly offer: string; readonly answer: string },
): Promise<readonly (string | undefined)[]> {
  for (const peer of [from, to]) peer.inbox.length = 0
  from.request('INVITE', leg, { body: offer })
  const reinvite = await to.next('INVITE')
  to.reply(reinvite, 200, { body: answer })
  const back = await from.next('200 INVITE')
  from.request('ACK', leg)
  await to.next('ACK')
  return [originOf(reinvite), originOf(back)]
}

test('through hold, transfer and what comes after it', async () => {
  const { a, aLeg, b, bLeg } = await establish(rig)
  // Among two who were always together the descriptions pass as they are.
  const hold = { offer: described('a', 11, 'sendonly'), answer: described('b', 31, 'recvonly') }
  expect(await reoffered(a, aLeg, b, hold)).toEqual([
    'o=a 7 11 IN IP4 192.0.2.7',
    'o=b 7 31 IN IP4 192.0.2.7',
  ])

  const c = await nextNode(rig)
  await refer(a, aLeg, 'sip:15550100@acme.example')
  const toC = await c.next('INVITE')
  expect(originOf(toC)).toBe('o=b 7 31 IN IP4 192.0.2.7')
  c.reply(toC, 200, { tag: 'c', body: described('c', 1) })
  await c.next('ACK')
  const toB = await b.next('INVITE')
  expect(originOf(toB)).toBe('o=a 7 12 IN IP4 192.0.2.7')
  expect(toB.body).toContain('s=c\r\n')
  b.reply(toB, 200, { body: described('b', 32) })
  await finalNotify(a)

  const cLeg = c.calledLeg(toC, 'c')
  const [onHold, same] = [described('c', 2, 'sendonly'), described('b', 33, 'recvonly')]
  expect(await reoffered(c, cLeg, b, { offer: onHold, answer: same })).toEqual([
    'o=a 7 13 IN IP4 192.0.2.7',
    'o=b 7 32 IN IP4 192.0.2.7',
  ])
  // The same again is the same version.
  expect(await reoffered(c, cLeg, b, { offer: onHold, answer: same })).toEqual([
    'o=a 7 13 IN IP4 192.0.2.7',
    'o=b 7 32 IN IP4 192.0.2.7',
  ])
  expect(await reoffered(b, bLeg, c, { offer: described('b', 34), answer: onHold })).toEqual([
    'o=b 7 33 IN IP4 192.0.2.7',
    'o=a 7 13 IN IP4 192.0.2.7',
  ])
})
