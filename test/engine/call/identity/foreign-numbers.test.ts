/** By no way does a customer show a number that is not its own. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { attestationOf } from '../../../../engine/call/stir/call-signer.ts'
import type { PresentedIdentity } from '../../../../schema/contracts/caller-identity.ts'
import type { CallerIdRule } from '../../../../engine/routing/routing-records.ts'
import { numbersOf, RiggedRules } from '../../../support/caller-rules.ts'
import { granted, startCallRig, type CallRig } from '../../../support/call-rig.ts'
import { decides, namedCarrier, ScriptedHooks } from '../../../support/scripted-hooks.ts'
import { sdp, type Leg, type PeerMessage, type SipPeer } from '../../../support/sip-peer.ts'
import {
  acknowledge,
  addExtensions,
  carrierOf,
  carrierOrigin,
  extensionRecord,
  home,
  originateRequest,
  phoneOf,
} from '../steps.ts'

let rig: CallRig
let rigged: RiggedRules
let hooks: ScriptedHooks

beforeEach(async () => {
  rigged = new RiggedRules()
  hooks = new ScriptedHooks()
  rig = await startCallRig({ identities: rigged.identities, hooks })
  addExtensions(rig, extensionRecord('101'))
})
afterEach(() => rig.stop())

const { own, main, other, colleagues, platforms, strangers } = numbersOf

/** Everything by which a number may be claimed. */
const claims = (number: string): readonly string[] => [
  `P-Asserted-Identity: "Bank" <sip:${number}@bank.example>, <tel:${number}>`,
  `P-Preferred-Identity: "Bank" <sip:${number}@bank.example>`,
  `Remote-Party-ID: "Bank" <sip:${number}@bank.example>;party=calling;screen=yes`,
  `Diversion: "Bank" <sip:${number}@bank.example>;reason=unconditional`,
  `History-Info: <sip:${number}@bank.example>;index=1, <sip:${number}@x>;index=1.1`,
  `Referred-By: <sip:${number}@bank.example>`,
  `Identity: eyJvcmlnIjoi${number}`,
]

const foreign = [strangers, strangers.slice(1), colleagues] as const
const modes = ['policy', 'pass', 'pai', 'fixed'] as const

const callerId = (mode: CallerIdRule['mode']): CallerIdRule => ({
  mode,
  value: mode === 'fixed' ? '4989000' : null,
})

/** The INVITE names none of these numbers anywhere before its body. */
function expectClean(invite: PeerMessage): void {
  const [head = ''] = invite.text.split('\r\n\r\n')
  for (const number of [strangers, colleagues]) expect(head).not.toContain(number.slice(1))
}

async function call(headers: readonly string[], from: string, to = '1555') {
  const peer = await rig.caller()
  const leg = { ...peer.leg(rig.uri(to)), from: `"Bank" <sip:${from}>;tag=a` }
  peer.request('INVITE', leg, { headers, body: sdp('offer') })
  return { peer, leg }
}

/** The carrier refuses, and the caller with it. */
async function inviteOf(carrier: SipPeer): Promise<PeerMessage> {
  const invite = await carrier.next('INVITE')
  carrier.reply(invite, 486, { tag: 'c' })
  return invite
}

const pairs = foreign.flatMap((number) => modes.map((mode) => [number, mode] as const))

test.each(pairs)(
  'a phone cannot show %s in any header, at a carrier of mode %s',
  async (number, mode) => {
    rigged.rules = { extension: {} }
    rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
    const carrier = await carrierOf(rig, { callerId: callerId(mode) })
    await call(claims(number), `101@${home}`)
    const invite = await inviteOf(carrier)
    expectClean(invite)
    expect(invite.get('From')).toContain(mode === 'fixed' ? '4989000' : own)
  },
)

test.each(pairs)(
  'a node cannot show %s in any header, at a carrier of mode %s',
  async (number, mode) => {
    rigged.rules = { customer: {} }
    rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1, tenantId: 3 }
    const carrier = await carrierOf(rig, { callerId: callerId(mode) })
    await call(claims(number), `${number}@bank.example`)
    const invite = await inviteOf(carrier)
    expectClean(invite)
    expect(invite.get('From')).toContain(mode === 'fixed' ? '4989000' : main)
  },
)

test.each(modes)(
  'a hidden caller shows the network no foreign number, at a carrier of mode %s',
  async (mode) => {
    rigged.rules = { customer: {} }
    rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1, tenantId: 3 }
    const carrier = await carrierOf(rig, { callerId: callerId(mode) })
    await call([...claims(strangers), 'Privacy: id'], 'anonymous@anonymous.invalid')
    expectClean(await inviteOf(carrier))
  },
)

test.each([
  ['a foreign number', strangers, ''],
  ['a foreign number in pieces', '+49 (99) 99-9', ''],
  ['a foreign number behind a word', `Bank ${strangers}`, ''],
  ['a foreign number in wide digits', '\uff0b\uff14\uff19\uff19\uff19\uff19\uff19\uff19', ''],
  ['a number of its own', other, `"${other}" `],
  ['a word and few digits', 'Floor 42', '"Floor 42" '],
])('a phone with %s as its name shows itself as it may', async (_, name, shown) => {
  rigged.rules = { extension: {} }
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
  const carrier = await carrierOf(rig, { callerId: callerId('policy') })
  await call([`P-Preferred-Identity: "${name}" <sip:${other}@x>`], `101@${home}`)
  const invite = await inviteOf(carrier)
  const from = invite.get('From')
  expect(from.slice(0, from.indexOf('<'))).toBe(shown)
  expect(from).toContain(`<sip:${other}@`)
})

test('a customer without a tenant does not show numbers of the platform', async () => {
  rigged.rules = { customer: {} }
  rig.answers.origin = carrierOrigin({ tenantId: null })
  const verdict = granted(60)
  if (verdict.kind !== 'granted') throw new Error('it is granted')
  const account = { ...verdict.account, tenantId: null }
  rig.answers.authorize = () => Promise.resolve({ ...verdict, account })
  hooks.carriers = [namedCarrier(9, 'north')]
  hooks.answers.onInvite = decides({ carriers: ['north'] })
  const carrier = await carrierOf(rig, { callerId: callerId('policy') })
  await call(claims(platforms), `${platforms}@bank.example`)
  expect((await inviteOf(carrier)).get('From')).toContain(main)
  // Nor one that was its default number until the platform took it away.
  rigged.defaultNumber = platforms
  await call([], 'anonymous@anonymous.invalid')
  const invite = await inviteOf(carrier)
  expect(invite.text).not.toContain(platforms.slice(1))
})

test.each(['UPDATE', 'INVITE'] as const)(
  'a node cannot show a foreign number by an %s in the call, nor by its answer to one',
  async (method) => {
    rigged.rules = { customer: {} }
    rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1, tenantId: 3 }
    const carrier = await carrierOf(rig, { callerId: callerId('policy') })
    const { peer, leg } = await call([], `${other}@bank.example`)
    const invite = await carrier.next('INVITE')
    carrier.reply(invite, 200, { tag: 'c', body: sdp('answer') })
    await acknowledge(peer, leg, carrier)
    const more = { headers: claims(strangers), body: sdp('moved') }
    peer.request(method, leg, more)
    const asked = await carrier.next(method)
    expectClean(asked)
    carrier.reply(asked, 200, { body: sdp('again') })
    await peer.next(`200 ${method}`)
    if (method === 'INVITE') peer.request('ACK', leg)
    carrier.request('UPDATE', carrier.calledLeg(invite, 'c'), { body: sdp('held') })
    peer.reply(await peer.next('UPDATE'), 200, more)
    expectClean(await carrier.next('200 UPDATE'))
  },
)

// Forwards.

const original = { forwarded: 'original' } as const

/** 101 is called by `from`, and its phone sends the call outside. */
async function forwarded(from: string, headers: readonly string[], diversion: readonly string[]) {
  const phone = await phoneOf(rig, '101')
  rig.answers.inbound = { kind: 'extension', extension: '101', tenantId: 3, domain: home }
  await call(headers, from, `101`)
  const invite = await phone.next('INVITE')
  const carrier = await carrierOf(rig, { callerId: callerId('policy') })
  phone.contact = 'tel:+1-555-0123'
  phone.reply(invite, 302, { tag: 'f', headers: diversion })
  phone.contact = undefined
  return inviteOf(carrier)
}

const inwards = [
  ['the trunk of a customer', carrierOrigin({ tenantId: null })],
  ['the carrier of a tenant', carrierOrigin({ customerId: null })],
  [
    'a trunk whose numbers say who pays',
    carrierOrigin({ customerId: null, tenantId: null, payer: 'from_number' }),
  ],
  ['a node', { kind: 'node', nodeId: 1, setId: 1, tenantId: 3 }],
  ['a trusted source', { kind: 'trusted' }],
  ['an edge proxy', { kind: 'proxy', tenantIds: [3] }],
] as const

test.each(inwards)(
  'a call from %s that a phone forwards shows the number of the phone',
  async (_, origin) => {
    rigged.rules = { extension: original }
    rig.answers.origin = origin
    const foreignDiversion = [`Diversion: <sip:${strangers}@x>;reason=user-busy`]
    const invite = await forwarded(`${strangers}@bank.example`, claims(strangers), foreignDiversion)
    expectClean(invite)
    expect(invite.get('From')).toContain(own)
  },
)

test('a call of a network that a phone forwards shows the first caller, and who forwards it', async () => {
  rigged.rules = { extension: original }
  rig.answers.origin = carrierOrigin({ customerId: null, tenantId: null })
  const because = ['Diversion: <sip:101@acme.example>;reason=user-busy']
  const headers = [`P-Asserted-Identity: "Ann" <tel:+33155>`, `Diversion: <sip:${strangers}@x>`]
  const invite = await forwarded('+33155@net.example', headers, because)
  expect(invite.get('From')).toMatch(/^"Ann" <sip:\+33155@127/)
  expect(invite.get('P-Asserted-Identity')).toContain('+33155')
  expect(invite.get('Diversion')).toMatch(/^<sip:\+4930101@127[^>]*>;reason=user-busy$/)
  expect(invite.get('History-Info')).toMatch(
    /^<sip:\+4930101@[^>]+>;index=1, <sip:1555@[^>]+;cause=486>;index=1\.1;mp=1$/,
  )
  expectClean(invite)
  const records = [await rig.record(), await rig.record()]
  const shown = records.flatMap(({ attempts }) => attempts.flatMap((each) => each.presented ?? []))
  const why = 'the first caller, forwarded by +4930101'
  expect(shown).toEqual([{ number: '+33155', asserted: '+33155', attestation: 'C', why }])
})

test('a caller of a network with a number of who forwards is not vouched for as that', async () => {
  rigged.rules = { extension: original }
  rig.answers.origin = carrierOrigin({ customerId: null, tenantId: null })
  const invite = await forwarded(`${main}@net.example`, [], [])
  expect(invite.get('From')).toContain(main)
  const records = [await rig.record(), await rig.record()]
  const [identity] = records.flatMap(({ attempts }) =>
    attempts.flatMap((each) => each.presented ?? []),
  )
  expect(identity).toMatchObject({ number: main, attestation: 'C' })
  const call = { account: { customerId: 7, tenantId: 3 }, origin: undefined, forwardedBy: '101' }
  const owned = { find: () => undefined, isOwned: () => true }
  const shown = { ...identity, name: '', isPrivate: false } as PresentedIdentity
  expect(attestationOf(main, call as Parameters<typeof attestationOf>[1], owned, shown)).toBe('C')
})

test('a hidden first caller stays hidden, and the network knows it', async () => {
  rigged.rules = { extension: original }
  rig.answers.origin = carrierOrigin({ customerId: null, tenantId: null })
  const headers = ['P-Asserted-Identity: <tel:+33155>', 'Privacy: id']
  const invite = await forwarded('anonymous@anonymous.invalid', headers, [])
  expect(invite.get('From')).toContain('<sip:anonymous@anonymous.invalid>')
  expect(invite.get('P-Asserted-Identity')).toContain('<sip:+33155@')
  expect(invite.get('Privacy')).toBe('id')
})

test('a number that forwards has to be an own one', async () => {
  rigged.rules = { extension: original }
  rigged.callerNumber = strangers
  rigged.defaultNumber = undefined
  rig.answers.origin = carrierOrigin({ customerId: null, tenantId: null })
  const invite = await forwarded('+33155@net.example', [], [])
  expectClean(invite)
  expect(invite.get('From')).toContain('anonymous')
})

test('the rules say that forwarded calls show the own number, or say nothing', async () => {
  rigged.rules = {}
  rig.answers.origin = carrierOrigin({ customerId: null, tenantId: null })
  const invite = await forwarded('+33155@net.example', [], [])
  expect(invite.get('From')).toMatch(/^"Phone 101" <sip:\+4930101@/)
  expect(invite.get('Diversion')).toBe('')
})

// Transfers.

/** A trunk calls 101, which transfers the call outside. */
async function transferred(from: string, headers: readonly string[]) {
  rig.answers.inbound = { kind: 'extension', extension: '101', tenantId: 3, domain: home }
  const phone = await phoneOf(rig, '101')
  const { peer, leg } = await call([], from, '101')
  const toPhone = await phone.next('INVITE')
  phone.reply(toPhone, 200, { tag: 'p', body: sdp('answer') })
  await acknowledge(peer, leg, phone)
  const carrier = await carrierOf(rig, { callerId: callerId('policy') })
  const phoneLeg: Leg = phone.calledLeg(toPhone, 'p')
  await rig.until(() => rig.calls.list()[0]?.state === 'ACTIVE')
  phone.request('REFER', phoneLeg, {
    headers: ['Refer-To: <sip:+15550123@acme.example>', ...headers],
  })
  await phone.next('202 REFER')
  const invite = await carrier.next('INVITE')
  carrier.reply(invite, 486, { tag: 'c' })
  await rig.settle()
  peer.request('BYE', leg)
  return invite
}

test.each(inwards)(
  'a call from %s that is transferred shows the number of who transfers',
  async (_, origin) => {
    rigged.rules = { extension: original }
    rig.answers.origin = origin
    const invite = await transferred(`${strangers}@bank.example`, claims(strangers))
    expectClean(invite)
    expect(invite.get('From')).toContain(own)
  },
)

test.each([
  [original, '+33155', /^<sip:\+4930101@/],
  [{}, own, /^$/],
] as const)(
  'a call of a network that is transferred by the rules %j shows %s',
  async (rules, shown, by) => {
    rigged.rules = { extension: rules }
    rig.answers.origin = carrierOrigin({ customerId: null, tenantId: null })
    const invite = await transferred('+33155@net.example', [])
    expect(invite.get('From')).toContain(`<sip:${shown}@`)
    expect(invite.get('Diversion')).toMatch(by)
  },
)

test('an AI agent, as any called party that is no phone of ours, transfers no call', async () => {
  rig.answers.origin = carrierOrigin({ customerId: null, tenantId: null })
  const agent = await rig.caller()
  const uri = `sip:bot@127.0.0.1:${agent.port}`
  const found = { agentId: 1, name: 'bot', tenantId: 3, uri, stripHeaders: undefined } as const
  rig.answers.agent = { kind: 'agent', agent: { kind: 'agent', ...found } }
  rig.answers.inbound = { kind: 'agent', agentId: 1 }
  const { peer, leg } = await call([], '+33155@net.example', '+4930101')
  const toAgent = await agent.next('INVITE')
  agent.reply(toAgent, 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(peer, leg, agent)
  const carrier = await carrierOf(rig)
  agent.request('REFER', agent.calledLeg(toAgent, 'b'), {
    headers: [`Refer-To: <sip:+15550123@x>`, ...claims(strangers)],
  })
  await agent.next('403 REFER')
  expect(carrier.inbox).toEqual([])
  peer.request('BYE', leg)
  agent.reply(await agent.next('BYE'), 200)
})

// Click-to-call, test calls and hooks.

test.each(foreign)('click-to-call cannot show %s', async (number) => {
  const [phone, carrier] = [
    await phoneOf(rig, '101'),
    await carrierOf(rig, { callerId: callerId('policy') }),
  ]
  await rig.control.originate({ ...originateRequest, callerNumber: number, callerName: 'Bank' })
  phone.reply(await phone.next('INVITE'), 200, { tag: 'a', body: sdp('offer of a') })
  const invite = await inviteOf(carrier)
  expectClean(invite)
  expect(invite.get('From')).toContain(own)
})

test('click-to-call shows another number of its own', async () => {
  const [phone, carrier] = [
    await phoneOf(rig, '101'),
    await carrierOf(rig, { callerId: callerId('policy') }),
  ]
  await rig.control.originate({ ...originateRequest, callerNumber: other, callerName: 'Sales' })
  phone.reply(await phone.next('INVITE'), 200, { tag: 'a', body: sdp('offer of a') })
  expect((await inviteOf(carrier)).get('From')).toMatch(/^"?Sales"? <sip:\+4930102@/)
})

test.each(foreign)(
  'a hook cannot show %s for a phone, a node or a hidden caller',
  async (number) => {
    hooks.answers.onInvite = decides({ from: number, fromName: 'Bank' })
    const carrier = await carrierOf(rig, { callerId: callerId('policy') })
    rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
    await call(claims(number), `101@${home}`)
    const ofPhone = await inviteOf(carrier)
    await call(claims(number), 'anonymous@anonymous.invalid')
    const ofHidden = await inviteOf(carrier)
    rig.answers.caller = { kind: 'stranger' }
    rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1, tenantId: 3 }
    await call(claims(number), `${other}@pbx.example`)
    const ofNode = await inviteOf(carrier)
    for (const invite of [ofPhone, ofHidden, ofNode]) expectClean(invite)
    expect(ofPhone.get('From')).toContain(own)
    expect(ofHidden.get('P-Asserted-Identity')).toContain(own)
    expect(ofNode.get('From')).toContain(main)
  },
)

test('a hook shows another number of who pays, and a trunk that it sends outside no foreign one', async () => {
  hooks.answers.onInvite = decides({ from: other })
  const carrier = await carrierOf(rig, { callerId: callerId('policy') })
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
  await call([], `101@${home}`)
  expect((await inviteOf(carrier)).get('From')).toContain(other)
  hooks.carriers = [namedCarrier(9, 'north')]
  hooks.answers.onInvite = decides({ carriers: ['north'] })
  rig.answers.caller = { kind: 'stranger' }
  rig.answers.origin = carrierOrigin()
  await call(claims(strangers), `${strangers}@bank.example`)
  const invite = await inviteOf(carrier)
  expectClean(invite)
  expect(invite.get('From')).toContain(main)
})

// Emergency calls.

test.each([
  [{ customer: { emergencyNumber: other } }, [], other],
  [{ customer: { emergencyNumber: strangers } }, [], own],
  [{ carrier: { emergencyNumber: '+4989112', isPlatforms: true } }, [], '+4989112'],
  [{ customer: { otherwise: 'refuse' } }, claims(strangers), own],
  [{ customer: { emergencyNumber: other } }, ['Privacy: id'], other],
] as const)(
  'an emergency call by the rules %j is made, and shows %3$s',
  async (rules, headers, shown) => {
    rigged.rules = rules
    rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
    const carrier = await carrierOf(rig, { callerId: callerId('policy') }, true)
    await call(headers, `101@${home}`, '112')
    const invite = await inviteOf(carrier)
    expect(invite.get('From')).toContain(`<sip:${shown}@127.0.0.1`)
    expectClean(invite)
  },
)
