/** INVITEs that the SIP server refuses by itself: SPECIFICATION.md §12.3. */
import { expect, test } from 'vitest'
import { carrierOrigin, rig, rigForEachTest } from '../steps.ts'
import { sdp, type SipPeer } from '../../../support/sip-peer.ts'

rigForEachTest()

const usual = (caller: SipPeer, number: number): Record<string, string> => ({
  Via: `SIP/2.0/UDP 127.0.0.1:${caller.port};branch=z9hG4bK-odd-${number}`,
  'Max-Forwards': '70',
  From: '<sip:+12025550123@203.0.113.7>;tag=a',
  To: '<sip:+12025550100@192.0.2.1>',
  'Call-ID': `odd-${number}`,
  CSeq: '1 INVITE',
  Contact: `<sip:127.0.0.1:${caller.port}>`,
  'Content-Type': 'application/sdp',
  'Content-Length': String(sdp('offer').length),
})

let number = 0

/** An INVITE in which some lines differ; '' leaves one out. */
function invite(caller: SipPeer, changed: Readonly<Record<string, string>>, line?: string): string {
  const headers = { ...usual(caller, ++number), ...changed }
  return [
    line ?? 'INVITE sip:+12025550100@192.0.2.1 SIP/2.0',
    ...Object.entries(headers).flatMap(([name, value]) =>
      value === '' ? [] : `${name}: ${value}`,
    ),
    '',
    sdp('offer'),
  ].join('\r\n')
}

test.each([
  '""unknown"" <sip:+12025550123@203.0.113.7>;tag=a',
  '"unterminated <sip:+12025550123@203.0.113.7>;tag=a',
  '"a\\" <sip:+12025550123@203.0.113.7>;tag=a',
  '"" "" <sip:+12025550123@203.0.113.7>;tag=a',
  'Doe, Jane <sip:+12025550123@203.0.113.7>;tag=a',
  'a@b: c <sip:+12025550123@203.0.113.7>;tag=a',
])('a carrier that names its caller %s gets its call through', async (from) => {
  rig.answers.origin = carrierOrigin()
  const [caller, node] = [await rig.caller(), await rig.node()]
  caller.send(invite(caller, { From: from, To: '"never closed <sip:+12025550100@192.0.2.1>' }))
  const outgoing = await node.next('INVITE')
  expect(outgoing.get('From')).toMatch(/^(?:"[^"\\]*" )?<sip:\+12025550123@/)
  node.reply(outgoing, 486)
  expect((await caller.next('486 INVITE')).get('From')).toBe(from)
  expect(await rig.record()).toMatchObject({
    callerNumber: '+12025550123',
    calledNumber: '+12025550100',
  })
})

test.each([
  ['two addresses', { From: '"a <sip:1@a>" <sip:2@b> <sip:3@c>;tag=a' }, 'Bad From Header'],
  ['no address', { From: '"a" 123;tag=a' }, 'Bad From Header'],
  ['two of From', { From: '<sip:1@a>;tag=a\r\nf: <sip:2@b>;tag=b' }, 'Multiple From Headers'],
  ['no To', { To: '' }, 'Missing To Header'],
  ['no CSeq', { CSeq: '' }, 'Missing CSeq Header'],
  ['another method in CSeq', { CSeq: '1 BYE' }, 'CSeq Method Mismatch'],
  ['no Contact', { Contact: '' }, 'Missing Contact Header'],
  ['a bad Contact', { Contact: '<sip:>' }, 'Bad Contact Header'],
  ['a bad Record-Route', { 'Record-Route': 'x' }, 'Bad Record-Route Header'],
  ['no Content-Type', { 'Content-Type': '' }, 'Missing Content-Type Header'],
  ['a body that is cut', { 'Content-Length': '9999' }, 'Bad Content-Length Header'],
  ['a line that is no header', { 'X-A': '1\r\nno header' }, 'Bad Header Line'],
  ['no Call-ID', { 'Call-ID': '' }, 'Missing Call-ID Header'],
])('an INVITE with %s is refused, and a carrier’s has a record', async (_what, lines, reason) => {
  rig.answers.origin = carrierOrigin()
  const caller = await rig.caller()
  caller.send(invite(caller, lines))
  const answer = await caller.next(({ status }) => status > 100)
  expect(answer.startLine).toBe(`SIP/2.0 400 ${reason}`)
  expect(await rig.record()).toMatchObject({
    sipCode: 400,
    disposition: 'FAILED',
    denialCode: 'bad_request',
    denialText: expect.stringContaining(reason),
    direction: 'inbound',
    tenantId: 3,
    calledNumber: '+12025550100',
    sourceAddress: `127.0.0.1:${caller.port}`,
  })
  await rig.idle()
})

test.each([
  ['INVITE tel:+12025550100 SIP/3.0', {}, 505],
  ['INVITE gopher://x SIP/2.0', {}, 416],
  ['INVITE <sip:+12025550100@192.0.2.1> SIP/2.0', {}, 400],
  ['INVITE  sip:+12025550100@192.0.2.1 SIP/2.0', {}, 400],
  ['INVITE sip:+12025550100@192.0.2.1 SIP/2.0', { 'Content-Type': 'text/plain' }, 415],
  ['INVITE sip:+12025550100@192.0.2.1 SIP/2.0', { 'Content-Encoding': 'gzip' }, 415],
  ['INVITE sip:+12025550100@192.0.2.1 SIP/2.0', { e: 'identity\r\ne: gzip' }, 415],
])('so has one of a PBX with %s, %j', async (line, lines, status) => {
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1 }
  const caller = await rig.caller()
  caller.send(invite(caller, lines, line))
  expect((await caller.next((answer) => answer.status > 100)).status).toBe(status)
  expect(await rig.record()).toMatchObject({ sipCode: status, direction: 'outbound' })
})

test('copies of one have one record, what a sender repeats in another form has none, nor has a stranger', async () => {
  rig.answers.origin = carrierOrigin()
  const caller = await rig.caller()
  const odd = invite(caller, { From: 'x' })
  for (let copy = 0; copy < 3; copy++) {
    caller.send(odd)
    await caller.next('400 INVITE')
  }
  await rig.record()
  caller.send(invite(caller, { 'Session-Expires': '10', Supported: 'timer' }))
  await caller.next('422 INVITE')
  rig.answers.origin = { kind: 'unknown' }
  caller.send(invite(caller, { From: 'x' }))
  await caller.next('400 INVITE')
  await rig.settle()
  expect(rig.records).toEqual([])
})

test('what no database takes is left out of the record', async () => {
  rig.answers.origin = carrierOrigin()
  const caller = await rig.caller()
  caller.send(invite(caller, { From: 'x\0y <sip:1\0@a>', 'Call-ID': 'a\0b' + 'c'.repeat(2_000) }))
  await caller.next(({ status }) => status > 100)
  const { callId, callerNumber } = await rig.record()
  expect([callId.length, /\p{Cc}/u.test(callId + callerNumber)]).toEqual([511, false])
})

test('a source that sends many has 60 records a minute, whatever its ports; the others are counted', async () => {
  rig.answers.origin = carrierOrigin()
  const [caller, other] = [await rig.caller(), await rig.caller()]
  for (let sent = 0; sent < 100; sent++) {
    const peer = sent % 2 === 0 ? caller : other
    peer.send(invite(peer, { From: 'x' }))
    await peer.next('400 INVITE')
  }
  await rig.settle()
  expect(rig.records.splice(0)).toHaveLength(60)
  await rig.advance(60_000)
  expect(rig.warnings).toEqual([
    { message: 'malformed INVITEs of known sources got no record', invites: 40 },
  ])
  caller.send(invite(caller, { From: 'x' }))
  await caller.next('400 INVITE')
  expect(await rig.record()).toMatchObject({ sipCode: 400 })
})
