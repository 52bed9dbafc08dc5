import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ContactTarget } from '../../../engine/registrar/bindings.ts'
import { startCallRig, type CallRig } from '../../support/call-rig.ts'
import { sdp, type Leg, type SipPeer } from '../../support/sip-peer.ts'
import { acknowledge, hangUp } from './steps.ts'

const home = 'acme.example'

let rig: CallRig

beforeEach(async () => {
  rig = await startCallRig()
  for (const [extensionId, extension] of ['101', '102'].entries())
    rig.answers.extensions.set(`${extension}@${home}`, record(extensionId, extension))
  rig.answers.caller = { kind: 'extension', extension: record(0, '101') }
})
afterEach(() => rig.stop())

const record = (extensionId: number, extension: string) => ({
  extensionId,
  extension,
  tenantId: 3,
  customerId: 7,
  domain: home,
  displayName: `Phone ${extension}`,
  isVoicemailEnabled: true,
  secrets: { MD5: '', 'SHA-256': '' },
})

/** Phones of extension 102, as many as asked for. */
async function phones(count: number): Promise<SipPeer[]> {
  const peers = await Promise.all(Array.from({ length: count }, () => rig.caller()))
  const targets = peers.map((peer): ContactTarget => {
    const source = { protocol: 'udp', address: '127.0.0.1', port: peer.port }
    const nextHop = `sip:127.0.0.1:${peer.port};transport=udp`
    return { uri: 'sip:102@10.0.0.9;line=1', routes: [], nextHop, q: 1_000, source }
  })
  rig.answers.contacts.set(`102@${home}`, targets)
  return peers
}

async function dial(number = '102'): Promise<{ caller: SipPeer; leg: Leg }> {
  const caller = await rig.caller()
  const leg = caller.leg(`sip:${number}@${home}`)
  caller.request('INVITE', leg, {
    headers: ['P-Asserted-Identity: <sip:999@evil.example>', 'Diversion: <sip:999@evil.example>'],
    body: sdp('offer'),
  })
  return { caller, leg }
}

test('a phone is called by its Contact at the address that it registered from, and sees the caller', async () => {
  const [phone] = await phones(1)
  const { caller, leg } = await dial()
  const invite = await phone?.next('INVITE')
  expect(invite?.uri).toBe('sip:102@10.0.0.9;line=1')
  expect(invite?.get('From')).toMatch(/^"Phone 101" <sip:peer@acme\.example>/)
  expect(invite?.get('To')).toBe('<sip:102@acme.example>')
  expect(invite?.get('P-Asserted-Identity')).toBe('')
  expect(invite?.get('Diversion')).toBe('')
  if (invite) phone?.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg)
  await phone?.next('ACK')
  caller.request('BYE', leg)
  await phone?.next('BYE')
  expect(await rig.record()).toMatchObject({
    direction: 'internal',
    disposition: 'ANSWERED',
    callerNumber: 'peer',
    tenantId: 3,
    customerId: null,
    calledNumber: '102',
  })
  // A call inside a tenant asks no wallet.
  expect(rig.asked).toEqual([])
})

test('a phone that hides its number stays anonymous to the called phone', async () => {
  const [phone] = await phones(1)
  const caller = await rig.caller()
  const from = '"Anonymous" <sip:anonymous@anonymous.invalid>;tag=a'
  const leg = { ...caller.leg(`sip:102@${home}`), from }
  caller.request('INVITE', leg, { body: sdp('offer') })
  const invite = await phone?.next('INVITE')
  expect(invite?.get('From')).toMatch(/^"Anonymous" <sip:anonymous@anonymous\.invalid>/)
  // Tags, branch, Call-ID and ports are random, and may hold any digits.
  expect(invite?.text.replaceAll(/[\da-f]{20}|:\d+/g, '')).not.toContain('101')
  expect(invite?.get('Privacy')).toBe('id')
  if (invite) phone?.reply(invite, 486, { tag: 'b' })
  expect(await rig.record()).toMatchObject({ callerNumber: '101', callerName: 'Phone 101' })
})

test('a node gets the number that a phone hides, asserted by us', async () => {
  rig.answers.extensions.clear()
  const node = await rig.node()
  const caller = await rig.caller()
  const from = '"Anonymous" <sip:anonymous@anonymous.invalid>;tag=a'
  const leg = { ...caller.leg('sip:15550100@sbc'), from }
  const headers = ['P-Asserted-Identity: <sip:999@evil.example>', 'Privacy: id;critical']
  caller.request('INVITE', leg, { headers, body: sdp('offer') })
  const invite = await node.next('INVITE')
  expect(invite.get('P-Asserted-Identity')).toMatch(/^"Phone 101" <sip:101@/)
  expect(invite.get('Privacy')).toBe('id;critical')
  node.reply(invite, 486, { tag: 'b' })
  await rig.record()
})

test('another domain of ours means its own extension; any other name means the own domain', async () => {
  const [own, second, stranger] = [await rig.caller(), await rig.caller(), await rig.caller()]
  const places = [
    { peer: own, domain: home, tenantId: 3 },
    { peer: second, domain: 'b.example', tenantId: 3 },
    { peer: stranger, domain: 'rival.example', tenantId: 4 },
  ]
  for (const { peer, domain, tenantId } of places) {
    rig.answers.extensions.set(`102@${domain}`, { ...record(1, '102'), domain, tenantId })
    const source = { protocol: 'udp', address: '127.0.0.1', port: peer.port }
    const nextHop = `sip:127.0.0.1:${peer.port};transport=udp`
    rig.answers.contacts.set(`102@${domain}`, [
      { uri: 'sip:102@10.0.0.9', routes: [], nextHop, q: 1_000, source },
    ])
  }
  const reached: string[] = []
  for (const host of [home, 'b.example', '127.0.0.1', 'rival.example']) {
    const caller = await rig.caller()
    const leg = caller.leg(`sip:102@${host}`)
    caller.request('INVITE', leg, { body: sdp('offer') })
    const called = host === 'b.example' ? second : own
    if (host !== 'rival.example') {
      const invite = await called.next('INVITE')
      reached.push(invite.get('To'))
      // The other domain may give the caller's number to another extension.
      expect(invite.get('From')).toContain(`@${home}>`)
      called.reply(invite, 486, { tag: 'b' })
    }
    await caller.next(({ status }) => status >= 400)
  }
  expect(reached).toEqual([`<sip:102@${home}>`, '<sip:102@b.example>', `<sip:102@${home}>`])
  expect(stranger.inbox).toEqual([])
})

test('all phones ring; the first answer wins, the others are cancelled with Reason', async () => {
  const [one, two, three] = await phones(3)
  if (!one || !two || !three) throw new Error('no phones')
  const { caller, leg } = await dial()
  const invites = await Promise.all([one, two, three].map((phone) => phone.next('INVITE')))
  for (const [index, phone] of [one, two, three].entries()) {
    const invite = invites[index]
    if (invite)
      phone.reply(invite, 180, { tag: `t${index}`, body: index === 0 ? sdp('early') : '' })
  }
  const ringing = await caller.next('180 INVITE')
  expect(ringing.body).toBe('')
  if (invites[1]) two.reply(invites[1], 200, { tag: 't1', body: sdp('answer') })
  const answered = await caller.next('200 INVITE')
  expect(answered.body).toBe(sdp('answer'))
  for (const phone of [one, three]) {
    const cancel = await phone.next('CANCEL')
    expect(cancel.get('Reason')).toBe('SIP;cause=200;text="Call completed elsewhere"')
    phone.reply(cancel, 200)
  }
  caller.learn(leg, answered)
  caller.request('ACK', leg)
  await two.next('ACK')
  // The caller's side was not told twice that it rings.
  expect(caller.inbox.filter(({ status }) => status === 180)).toEqual([])
  if (invites[0]) one.reply(invites[0], 487, { tag: 't0' })
  if (invites[2]) three.reply(invites[2], 487, { tag: 't2' })
  await one.next('ACK')
  caller.request('BYE', leg)
  const bye = await two.next('BYE')
  two.reply(bye, 200)
  await caller.next('200 BYE')
  const { attempts } = await rig.record()
  expect(attempts.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([180, 180, 200])
})

// RFC 3261 §16.7 step 5: 6xx speaks for the callee, not for one phone.
test('a decline on one phone ends the others, with a Reason', async () => {
  const [one, two] = await phones(2)
  if (!one || !two) throw new Error('no phones')
  const { caller } = await dial()
  const [first, second] = await Promise.all([one.next('INVITE'), two.next('INVITE')])
  two.reply(second, 180, { tag: 'b' })
  await caller.next('180 INVITE')
  one.reply(first, 603, { tag: 'a' })
  const cancel = await two.next('CANCEL')
  expect(cancel.get('Reason')).toMatch(/^SIP;cause=603/)
  two.reply(cancel, 200)
  two.reply(second, 487, { tag: 'b' })
  expect((await caller.next('603 INVITE')).status).toBe(603)
  expect((await rig.record()).attempts.map(({ status }) => status)).toEqual([603, 180])
})

test('two phones answer at once: one talks, the other gets ACK and BYE', async () => {
  const [one, two] = await phones(2)
  if (!one || !two) throw new Error('no phones')
  const { caller, leg } = await dial()
  const [first, second] = await Promise.all([one.next('INVITE'), two.next('INVITE')])
  one.reply(first, 200, { tag: 'a', body: sdp('one') })
  two.reply(second, 200, { tag: 'b', body: sdp('two') })
  const answered = await caller.next('200 INVITE')
  const [winner, loser] = answered.body === sdp('one') ? [one, two] : [two, one]
  await loser.next('ACK')
  const bye = await loser.next('BYE')
  expect(bye.get('Reason')).toContain('Call completed elsewhere')
  loser.reply(bye, 200)
  caller.learn(leg, answered)
  caller.request('ACK', leg)
  await winner.next('ACK')
  await rig.until(() => rig.calls.list()[0]?.state === 'ACTIVE')
  winner.request(
    'BYE',
    winner.calledLeg(winner === one ? first : second, winner === one ? 'a' : 'b'),
  )
  const over = await caller.next('BYE')
  caller.reply(over, 200)
  expect((await rig.record()).hangupBy).toBe('callee')
})

test.each([
  [[486, 480], 486],
  [[404, 603], 603],
  [[500, 486], 486],
  [[415, 503], 415],
])('phones that refuse with %s leave the caller with %s', async (statuses, expected) => {
  const peers = await phones(statuses.length)
  const { caller } = await dial()
  for (const [index, peer] of peers.entries())
    peer.reply(await peer.next('INVITE'), statuses[index] ?? 500, { tag: 't' })
  const refusal = await caller.next(({ status }) => status >= 300)
  expect(refusal.status).toBe(expected)
  expect((await rig.record()).sipCode).toBe(expected)
})

test('a caller that gives up stops every phone', async () => {
  const [one, two] = await phones(2)
  if (!one || !two) throw new Error('no phones')
  const { caller, leg } = await dial()
  for (const phone of [one, two]) phone.reply(await phone.next('INVITE'), 180, { tag: 't' })
  await caller.next('180 INVITE')
  caller.request('CANCEL', leg)
  for (const phone of [one, two]) phone.reply(await phone.next('CANCEL'), 200)
  await caller.next('487 INVITE')
  expect((await rig.record()).disposition).toBe('CANCELED')
})

test('an extension without phones is 480, one that does not exist is dialled outside', async () => {
  const { caller } = await dial()
  await caller.next('480 INVITE')
  expect((await rig.record()).disposition).toBe('NO ANSWER')
  const other = await dial('777')
  await other.caller.next('503 INVITE')
  expect(rig.asked.map(({ callee }) => callee)).toEqual(['777'])
})

test('when no phone answers in 25 s the voicemail does, and gets the mailbox in Diversion', async () => {
  const voicemail = await rig.caller()
  rig.answers.voicemail = `sip:vm@127.0.0.1:${voicemail.port}`
  const [phone] = await phones(1)
  if (!phone) throw new Error('no phone')
  const { caller, leg } = await dial()
  phone.reply(await phone.next('INVITE'), 180, { tag: 't' })
  await caller.next('180 INVITE')
  await rig.advance(25_100)
  phone.reply(await phone.next('CANCEL'), 200)
  const invite = await voicemail.next('INVITE')
  expect(invite.get('Diversion')).toBe('<sip:102@acme.example>;reason=no-answer')
  voicemail.reply(invite, 200, { tag: 'v', body: sdp('beep') })
  await acknowledge(caller, leg, voicemail)
  await hangUp(caller, leg, voicemail)
  expect((await rig.record()).attempts).toHaveLength(2)
})

test.each([
  [486, true],
  [603, false],
])('a phone that refuses with %s sends the caller to the voicemail: %s', async (status, goes) => {
  const voicemail = await rig.caller()
  rig.answers.voicemail = `sip:vm@127.0.0.1:${voicemail.port}`
  const [phone] = await phones(1)
  const { caller } = await dial()
  const invite = await phone?.next('INVITE')
  if (invite) phone?.reply(invite, status, { tag: 't' })
  if (goes) voicemail.reply(await voicemail.next('INVITE'), 486, { tag: 'v' })
  await caller.next(`${goes ? 486 : 603} INVITE`)
  expect(voicemail.inbox.filter(({ method }) => method === 'INVITE')).toEqual([])
  await rig.record()
})

test('a call from a trunk reaches the extension that its route names, and its payer is asked', async () => {
  rig.answers.caller = { kind: 'stranger' }
  rig.answers.inbound = { kind: 'extension', extension: '102', tenantId: 3, domain: null }
  const [phone] = await phones(1)
  const { caller } = await dial('15551234')
  const invite = await phone?.next('INVITE')
  expect(invite?.get('To')).toBe('<sip:102@acme.example>')
  if (invite) phone?.reply(invite, 486, { tag: 't' })
  await caller.next('486 INVITE')
  expect(await rig.record()).toMatchObject({ direction: 'inbound', disposition: 'BUSY' })
  expect(rig.asked).toHaveLength(1)
})

test('a challenge is no call: it has no record; a call under a number of another is refused and recorded', async () => {
  rig.answers.caller = {
    kind: 'refused',
    answer: {
      status: 407,
      reason: 'Proxy Authentication Required',
      headers: { 'Proxy-Authenticate': ['Digest realm="a"', 'Digest realm="b"'] },
    },
  }
  const { caller, leg } = await dial()
  const challenge = await caller.next('407 INVITE')
  expect(challenge.all('Proxy-Authenticate')).toEqual(['Digest realm="a"', 'Digest realm="b"'])
  caller.request('ACK', leg)
  rig.answers.isSampled = false
  rig.answers.caller = { kind: 'refused', answer: { status: 403, reason: 'x', headers: {} } }
  const second = await dial()
  await second.caller.next('403 INVITE')
  expect(await rig.record()).toMatchObject({ sipCode: 403, denialCode: 'unknown_source' })
  // Its password was right: it is no stranger, and has a record of every try.
  expect([rig.records, rig.strangers]).toEqual([[], []])
})

test("a phone's call to the outside is not paid by a customer of another tenant who has its number", async () => {
  const node = await rig.node()
  const { caller } = await dial('15550100')
  node.reply(await node.next('INVITE'), 486, { tag: 'b' })
  await caller.next('486 INVITE')
  expect(rig.asked).toMatchObject([{ customerId: 7, payerTenantId: 3 }])
})
