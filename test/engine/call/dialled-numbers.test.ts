// Numbers on the wire: one normal form, before anything is asked or decided.
import { expect, test } from 'vitest'
import { sdp, type SipPeer } from '../../support/sip-peer.ts'
import { rig, rigForEachTest } from './steps.ts'

rigForEachTest()

async function dial(uri: string, from?: string, headers: readonly string[] = []) {
  const [caller, node] = [await rig.caller(), await rig.node()]
  const plain = caller.leg(uri)
  const leg = from === undefined ? plain : { ...plain, from: `${from};tag=1` }
  caller.request('INVITE', leg, { body: sdp('offer'), headers })
  return { caller, node, leg }
}

const refused = async (caller: SipPeer) =>
  (await caller.next((message) => message.status >= 300)).startLine

test.each([
  'sip:1-900-5551234@127.0.0.1',
  'sip:1(900)%20555.1234@127.0.0.1',
  'sip:%31900-555-12%334@127.0.0.1;user=phone',
  'sip:19005551234;npdi;rn=15550100;isub=7:secret@127.0.0.1',
  'sip:1-900-5551234;phone-context=+44@127.0.0.1;user=phone',
  'tel:1-900-5551234;phone-context=+44',
])('%s is priced, called and recorded as 19005551234', async (uri) => {
  const { caller, node } = await dial(uri)
  const invite = await node.next('INVITE')
  expect(invite.uri).toMatch(/^sip:19005551234@127\.0\.0\.1:\d+;transport=udp$/)
  expect(invite.get('To')).toMatch(/^<sip:19005551234@/)
  expect(rig.asked).toMatchObject([{ callee: '19005551234' }])
  expect(rig.calls.list()).toMatchObject([{ calledNumber: '19005551234' }])
  node.reply(invite, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  expect(await rig.record()).toMatchObject({ calledNumber: '19005551234' })
})

test.each([
  ['sip:++19005551234@127.0.0.1', '++19005551234'],
  ['sip:1+900@127.0.0.1', '1+900'],
  ['sip:%EF%BC%91900@127.0.0.1', '１900'],
  ['sip:1%09900@127.0.0.1', '1 900'],
  ['sip:1%2500@127.0.0.1', '1%00'],
  ['sip:1,900@127.0.0.1', '1,900'],
  ['sip:(-)@127.0.0.1', '(-)'],
  [`sip:${'1'.repeat(65)}@127.0.0.1`, '1'.repeat(64)],
  ['sip:1900FLOWERS@127.0.0.1;user=phone', '1900FLOWERS'],
])(
  '%s is incomplete: 484 before any wallet is asked, and the record shows it',
  async (uri, shown) => {
    const { caller, node } = await dial(uri)
    expect(await refused(caller)).toBe('SIP/2.0 484 Address Incomplete')
    expect(await rig.record()).toMatchObject({
      sipCode: 484,
      denialCode: 'malformed_number',
      calledNumber: shown,
    })
    expect([rig.asked, node.inbox]).toEqual([[], []])
  },
)

test.each(['alice', '1900FLOWERS', '1-900-FLOWERS'])(
  '%s is a name: a trunk calls it at a node, and it is priced as a name',
  async (name) => {
    const { caller, node } = await dial(`sip:${name}@127.0.0.1`)
    const invite = await node.next('INVITE')
    expect(invite.uri).toMatch(new RegExp(`^sip:${name}@127\\.0\\.0\\.1:\\d+`))
    expect(rig.asked).toMatchObject([{ callee: name, isName: true }])
    node.reply(invite, 486, { tag: 'b' })
    await caller.next('486 INVITE')
    expect(await rig.record()).toMatchObject({ calledNumber: name })
  },
)

test.each([
  ['<sip:+1-(202)%20555.0100;isub=1@h>', []],
  ['"Front" <tel:+1-202-555-0100;ext=2>', []],
  ['<sip:100@h>', ['P-Asserted-Identity: <sip:+1.202.555.0100@h>']],
])('a caller written as %s %j pays and is shown as +12025550100', async (from, headers) => {
  const { node } = await dial('sip:1555@127.0.0.1', from, headers)
  const invite = await node.next('INVITE')
  expect(rig.asked).toMatchObject([{ caller: '+12025550100' }])
  if (headers.length === 0) expect(invite.get('From')).toMatch(/<sip:\+12025550100@[^>]+>/)
})
