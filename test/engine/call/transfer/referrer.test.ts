/** What the new party of a transfer hears of who transfers (RFC 3892). */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startCallRig, type CallRig } from '../../../support/call-rig.ts'
import { type Pair, establish, refer } from '../../../support/transfer-rig.ts'
import type { SipPeer } from '../../../support/sip-peer.ts'
import { nextNode, carrierOf } from '../steps.ts'

let rig: CallRig

beforeEach(async () => {
  rig = await startCallRig()
})
afterEach(() => rig.stop())

/** A talks to B; C is the node that is called next. */
async function talking(): Promise<Pair & { readonly c: SipPeer }> {
  const pair = await establish(rig)
  const c = await nextNode(rig)
  return { ...pair, c }
}

test('the target sees the transferor as authenticated, not as claimed', async () => {
  const { a, aLeg, c } = await talking()
  const headers = ['Refer-To: <sip:15550100@h>', 'Referred-By: <sip:boss@bank.example>']
  a.request('REFER', aLeg, { headers })
  const toC = await c.next('INVITE')
  expect(toC.all('Referred-By')).toEqual(['"Phone 101" <sip:101@acme.example>'])
})

test('a node that transfers is named by the number that was called', async () => {
  const { b, bLeg, c } = await talking()
  await refer(b, bLeg, 'sip:15550100@acme.example')
  const toC = await c.next('INVITE')
  expect(toC.get('Referred-By')).toBe(`<sip:1555@${rig.client.ownHost}>`)
})

test.each([
  ['has asked for privacy', '101@acme.example', ['Privacy: id']],
  ['calls without a name', 'anonymous@anonymous.invalid', []],
])('the target does not see the transferor when it %s', async (_when, from, more) => {
  const { a, aLeg, c } = await talking()
  const leg = { ...aLeg, from: aLeg.from.replace(/sip:[^>]*/, `sip:${from}`) }
  a.request('REFER', leg, { headers: ['Refer-To: <sip:15550100@h>', ...more] })
  const toC = await c.next('INVITE')
  expect(toC.all('Referred-By')).toEqual([])
})

test('a carrier does not see the transferor', async () => {
  const { a, aLeg } = await establish(rig)
  const c = await carrierOf(rig)
  await refer(a, aLeg, 'sip:15550100@acme.example')
  expect((await c.next('INVITE')).all('Referred-By')).toEqual([])
})
