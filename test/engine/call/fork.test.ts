/** Calls for an extension: all of its phones ring, and voicemail takes what none of them does. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startCallRig, type CallRig } from '../../support/call-rig.ts'
import { sdp, type Leg, type SipPeer } from '../../support/sip-peer.ts'
import {
  acknowledge,
  addExtensions,
  extensionRecord,
  hangUp,
  home,
  phoneOf,
  replies,
} from './steps.ts'

let rig: CallRig

const record = (extension: string, parts = {}) =>
  extensionRecord(extension, { isVoicemailEnabled: true, ...parts })

beforeEach(async () => {
  rig = await startCallRig()
  addExtensions(rig, record('101'), record('102'))
  rig.answers.caller = { kind: 'extension', extension: record('101') }
})
afterEach(() => rig.stop())

const phone = () => phoneOf(rig, '102', { uri: 'sip:102@10.0.0.9;line=1' })

async function dial(number = '102', host = home): Promise<{ caller: SipPeer; leg: Leg }> {
  const caller = await rig.caller()
  const leg = caller.leg(`sip:${number}@${host}`)
  caller.request('INVITE', leg, {
    headers: ['P-Asserted-Identity: <sip:999@evil.example>', 'Diversion: <sip:999@evil.example>'],
    body: sdp('offer'),
  })
  return { caller, leg }
}

async function voicemailBox(): Promise<SipPeer> {
  const voicemail = await rig.caller()
  rig.answers.voicemail = `sip:vm@127.0.0.1:${voicemail.port}`
  return voicemail
}

test('a phone is called by its Contact at the address that it registered from, sees the caller, and asks no wallet', async () => {
  const called = await phone()
  const { caller, leg } = await dial()
  const invite = await called.next('INVITE')
  expect(invite.uri).toBe('sip:102@10.0.0.9;line=1')
  expect(invite.get('From')).toMatch(/^"Phone 101" <sip:peer@acme\.example>/)
  expect(invite.get('To')).toBe('<sip:102@acme.example>')
  expect([invite.get('P-Asserted-Identity'), invite.get('Diversion')]).toEqual(['', ''])
  called.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg, called)
  await hangUp(caller, leg, called)
  expect(await rig.record()).toMatchObject({
    direction: 'internal',
    callerNumber: 'peer',
    tenantId: 3,
    customerId: null,
    calledNumber: '102',
  })
  expect(rig.asked).toEqual([])
})

const anonymous = '"Anonymous" <sip:anonymous@anonymous.invalid>'

test('a phone that hides its number stays anonymous to the called phone', async () => {
  const called = await phone()
  const caller = await rig.caller()
  const leg = { ...caller.leg(`sip:102@${home}`), from: `${anonymous};tag=a` }
  caller.request('INVITE', leg, { body: sdp('offer') })
  const invite = await replies(called, 486)
  expect(invite.get('From')).toContain(anonymous)
  // Tags, branch, Call-ID and ports are random, and may hold any digits.
  expect(invite.text.replaceAll(/[\da-f]{20}|:\d+/g, '')).not.toContain('101')
  expect(invite.get('Privacy')).toBe('id')
  expect(await rig.record()).toMatchObject({ callerNumber: '101', callerName: 'Phone 101' })
})

test('a node gets the number that a phone hides, asserted by us', async () => {
  rig.answers.extensions.clear()
  const node = await rig.node()
  const caller = await rig.caller()
  const leg = { ...caller.leg('sip:15550100@sbc'), from: `${anonymous};tag=a` }
  const headers = ['P-Asserted-Identity: <sip:999@evil.example>', 'Privacy: id;critical']
  caller.request('INVITE', leg, { headers, body: sdp('offer') })
  const invite = await replies(node, 486)
  expect(invite.get('P-Asserted-Identity')).toMatch(/^"Phone 101" <sip:101@/)
  expect(invite.get('Privacy')).toBe('id;critical')
  expect(rig.asked).toMatchObject([{ customerId: 7, payerTenantId: 3 }])
  await rig.record()
})

test('another domain of ours means its own extension; any other name means the own domain', async () => {
  const places = { [home]: 3, 'b.example': 3, 'rival.example': 4 }
  const phones = new Map<string, SipPeer>()
  for (const [domain, tenantId] of Object.entries(places)) {
    addExtensions(rig, record('102', { domain, tenantId }))
    phones.set(domain, await phoneOf(rig, '102', { domain }))
  }
  for (const [host, domain] of [
    [home, home],
    ['b.example', 'b.example'],
    ['127.0.0.1', home],
  ] as const) {
    const { caller } = await dial('102', host)
    const called = phones.get(domain)
    const invite = called && (await replies(called, 486))
    expect(invite?.get('To')).toBe(`<sip:102@${domain}>`)
    // The other domain may give the caller's number to another extension.
    expect(invite?.get('From')).toContain(`@${home}>`)
    await caller.next(486)
  }
  await (await dial('102', 'rival.example')).caller.next(404)
  expect(phones.get('rival.example')?.inbox).toEqual([])
})

test('all phones ring; the first answer wins, the others are cancelled with Reason', async () => {
  const [one, two, three] = [await phone(), await phone(), await phone()]
  const { caller, leg } = await dial()
  const first = await replies(one, 180, { body: sdp('early') })
  const second = await replies(two, 180)
  const third = await replies(three, 180)
  expect((await caller.next('180 INVITE')).body).toBe('')
  two.reply(second, 200, { tag: 't', body: sdp('answer') })
  expect((await acknowledge(caller, leg, two)).body).toBe(sdp('answer'))
  for (const other of [one, three]) {
    const cancel = await other.next('CANCEL')
    expect(cancel.get('Reason')).toBe('SIP;cause=200;text="Call completed elsewhere"')
    other.reply(cancel, 200)
  }
  // The caller's side was not told twice that it rings.
  expect(caller.inbox.filter(({ status }) => status === 180)).toEqual([])
  one.reply(first, 487, { tag: 't' })
  three.reply(third, 487, { tag: 't' })
  await one.next('ACK')
  await hangUp(caller, leg, two)
  const { attempts } = await rig.record()
  expect(attempts.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([180, 180, 200])
})

// RFC 3261 §16.7 step 5: 6xx speaks for the callee, not for one phone.
test('a decline on one phone ends the others, with a Reason', async () => {
  const [one, two] = [await phone(), await phone()]
  const { caller } = await dial()
  const second = await replies(two, 180)
  await caller.next('180 INVITE')
  await replies(one, 603)
  const cancel = await two.next('CANCEL')
  expect(cancel.get('Reason')).toMatch(/^SIP;cause=603/)
  two.reply(cancel, 200)
  two.reply(second, 487, { tag: 't' })
  await caller.next('603 INVITE')
  expect((await rig.record()).attempts.map(({ status }) => status)).toEqual([603, 180])
})

test('two phones answer at once: one talks, the other gets ACK and BYE', async () => {
  const [one, two] = [await phone(), await phone()]
  const { caller, leg } = await dial()
  const first = await replies(one, 200, { body: sdp('one') })
  const second = await replies(two, 200, { body: sdp('two') })
  const isFirst = (await acknowledge(caller, leg)).body === sdp('one')
  const [winner, loser] = isFirst ? [one, two] : [two, one]
  await Promise.all([winner.next('ACK'), loser.next('ACK')])
  const bye = await loser.next('BYE')
  expect(bye.get('Reason')).toContain('Call completed elsewhere')
  loser.reply(bye, 200)
  await rig.until(() => rig.calls.list()[0]?.state === 'ACTIVE')
  await hangUp(winner, winner.calledLeg(isFirst ? first : second, 't'), caller)
  expect((await rig.record()).hangupBy).toBe('callee')
})

test.each([
  [[486, 480], 486],
  [[404, 603], 603],
  [[500, 486], 486],
  [[415, 503], 415],
])('phones that refuse with %s leave the caller with %s', async (statuses, expected) => {
  const peers = [await phone(), await phone()]
  const { caller } = await dial()
  for (const [index, peer] of peers.entries()) await replies(peer, statuses[index] ?? 500)
  expect((await caller.next(({ status }) => status >= 300)).status).toBe(expected)
  expect((await rig.record()).sipCode).toBe(expected)
})

test('a caller that gives up stops every phone', async () => {
  const peers = [await phone(), await phone()]
  const { caller, leg } = await dial()
  for (const peer of peers) await replies(peer, 180)
  await caller.next('180 INVITE')
  caller.request('CANCEL', leg)
  for (const peer of peers) await peer.next('CANCEL')
  await caller.next('487 INVITE')
  expect((await rig.record()).disposition).toBe('CANCELED')
})

test('an extension without phones is 480, one that does not exist is dialled outside', async () => {
  await (await dial()).caller.next('480 INVITE')
  expect((await rig.record()).disposition).toBe('NO ANSWER')
  await (await dial('777')).caller.next('503 INVITE')
  expect(rig.asked.map(({ callee }) => callee)).toEqual(['777'])
})

test('when no phone answers in 25 s the voicemail does, and gets the mailbox in Diversion', async () => {
  const voicemail = await voicemailBox()
  const called = await phone()
  const { caller, leg } = await dial()
  await replies(called, 180)
  await caller.next('180 INVITE')
  await rig.advance(25_100)
  called.reply(await called.next('CANCEL'), 200)
  const invite = await replies(voicemail, 200, { body: sdp('beep') })
  expect(invite.get('Diversion')).toBe('<sip:102@acme.example>;reason=no-answer')
  await acknowledge(caller, leg, voicemail)
  await hangUp(caller, leg, voicemail)
  expect((await rig.record()).attempts).toHaveLength(2)
})

test.each([
  [486, true],
  [603, false],
])('a phone that refuses with %s sends the caller to the voicemail: %s', async (status, goes) => {
  const voicemail = await voicemailBox()
  const called = await phone()
  const { caller } = await dial()
  await replies(called, status)
  if (goes) await replies(voicemail, 486)
  await caller.next(`${goes ? 486 : 603} INVITE`)
  expect(voicemail.inbox.filter(({ method }) => method === 'INVITE')).toEqual([])
  await rig.record()
})

test('a call from a trunk reaches the extension that its route names, and its payer is asked', async () => {
  rig.answers.caller = { kind: 'stranger' }
  rig.answers.inbound = { kind: 'extension', extension: '102', tenantId: 3, domain: null }
  const called = await phone()
  const { caller } = await dial('15551234')
  expect((await replies(called, 486)).get('To')).toBe('<sip:102@acme.example>')
  await caller.next('486 INVITE')
  expect(await rig.record()).toMatchObject({ direction: 'inbound', disposition: 'BUSY' })
  expect(rig.asked).toHaveLength(1)
})

test('a challenge is no call: it has no record; a call under a number of another is refused and recorded', async () => {
  const values = ['Digest realm="a"', 'Digest realm="b"']
  const headers = { 'Proxy-Authenticate': values }
  rig.answers.caller = { kind: 'refused', answer: { status: 407, reason: 'x', headers } }
  const { caller, leg } = await dial()
  expect((await caller.next('407 INVITE')).all('Proxy-Authenticate')).toEqual(values)
  caller.request('ACK', leg)
  rig.answers.isSampled = false
  rig.answers.caller = { kind: 'refused', answer: { status: 403, reason: 'x', headers: {} } }
  await (await dial()).caller.next('403 INVITE')
  expect(await rig.record()).toMatchObject({ sipCode: 403, denialCode: 'unknown_source' })
  // Its password was right: it is no stranger, and has a record of every try.
  expect([rig.records, rig.strangers]).toEqual([[], []])
})
