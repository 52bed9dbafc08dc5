/** Headers that may have several values, in any order and over several lines. */
import { expect, test } from 'vitest'
import { numberedPartyOf } from '../../../engine/call/sip-headers.ts'
import { sdp } from '../../support/sip-peer.ts'
import { carrierOf, carrierOrigin, rig, rigForEachTest } from './steps.ts'

rigForEachTest()

const sip = '<sip:reception@pbx.example>'
const tel = '<tel:+12025550190>'

/** RFC 3325 §9.1: one sip and one tel URI. */
const identities: readonly (readonly string[])[] = [
  [`P-Asserted-Identity: ${sip}, ${tel}`],
  [`P-Asserted-Identity: ${tel}, ${sip}`],
  [`P-Asserted-Identity: ${sip}`, `P-Asserted-Identity: ${tel}`],
  [`P-Asserted-Identity: ${tel}`, `P-Asserted-Identity: ${sip}`],
  [`p-asserted-identity:${sip},${tel}`],
  [`P-ASSERTED-IDENTITY : \t${sip}\r\n ,\r\n\t<tel:+1-202-555-0190>`],
  [`P-Asserted-Identity: "Front, Desk" ${sip} , "Front, Desk" <TEL:+1(202)555.0190;ext=2>`],
  [`P-Asserted-Identity: sip:reception@pbx.example, tel:+12025550190`],
  [`P-Asserted-Identity: sip:reception@pbx.example, ${tel}`],
  [`P-Asserted-Identity: ,${sip},,${tel}`],
  [`P-Asserted-Identity: ${sip}, <sip:%2B12025550190@pbx.example;user=phone>`],
  [`P-Asserted-Identity: <sip:1002@pbx.example>, ${tel}`],
  [`P-Asserted-Identity: "" ${sip}, ""desk"" ${tel}`],
]

test.each(identities)(
  'the number of %s pays, stands in the record, and is what the carrier gets',
  async (...headers) => {
    rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1 }
    const carrier = await carrierOf(rig, { callerId: { mode: 'pai', value: null } })
    const caller = await rig.caller()
    const leg = { ...caller.leg(rig.uri('1555')), from: `${sip};tag=a` }
    caller.request('INVITE', leg, { headers, body: sdp('offer') })
    const invite = await carrier.next('INVITE')
    expect(rig.asked[0]?.caller).toBe('+12025550190')
    expect(invite.get('P-Asserted-Identity')).toMatch(/^<sip:\+12025550190@/)
    carrier.reply(invite, 486)
    await caller.next('486 INVITE')
    expect(await rig.record()).toMatchObject({ callerNumber: '+12025550190' })
  },
)

test('of a carrier whose calls their number pays, the second value names the payer, too', async () => {
  rig.answers.origin = carrierOrigin({ payer: 'from_number', customerId: null })
  rig.answers.inbound = { kind: 'set', setId: 1 }
  const [caller, node] = [await rig.caller(), await rig.node()]
  const leg = { ...caller.leg(rig.uri('+12025550100')), from: `${sip};tag=a` }
  caller.request('INVITE', leg, {
    headers: [`P-Asserted-Identity: ${sip}, ${tel}`],
    body: sdp('offer'),
  })
  node.reply(await node.next('INVITE'), 404)
  await caller.next('404 INVITE')
  expect(rig.asked[0]).toMatchObject({ caller: '+12025550190', mayNamePayer: true })
})

test.each([
  [`${sip}, <sip:1002@pbx.example>`, '1002', ''],
  [`"Front" ${sip}, ${tel}`, '+12025550190', 'Front'],
  [`"Front" ${sip}, "Desk" ${tel}`, '+12025550190', 'Desk'],
  [`${sip}, <sip:other@pbx.example>`, 'reception', ''],
  [`<sip:pbx.example>, ${sip}`, 'reception', ''],
  [`"a, b" ${sip}`, 'reception', 'a, b'],
  [Array.from({ length: 60 }, () => sip).join(',') + `,${tel}`, 'reception', ''],
])('of %s the number is %s', (value, number, name) => {
  expect(numberedPartyOf(value)).toMatchObject({ number, name })
})

test.each([
  ['Require: Timer, 100REL', 'Supported: Replaces, 100Rel'],
  ['Require: timer', 'Require: 100rel'],
  ['Require:TIMER', 'k: REPLACES'],
])('options are known in any case, and over several lines: %s, %s', async (...headers) => {
  const [caller, node] = [await rig.caller(), await rig.node()]
  caller.request('INVITE', caller.leg(rig.uri('1555')), { headers, body: sdp('offer') })
  const invite = await node.next('INVITE')
  expect(invite.get('Supported')).toContain('replaces')
  node.reply(invite, 486)
  await caller.next('486 INVITE')
})
