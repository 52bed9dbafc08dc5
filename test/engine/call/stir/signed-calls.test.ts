/** Calls to carriers that want signatures, as the carriers see them. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { attestationOf, SIGN_MS } from '../../../../engine/call/stir/call-signer.ts'
import { traceOf } from '../../../../engine/call/trace/trace.ts'
import type { OwnedNumber, OwnedNumbers } from '../../../../schema/contracts/owned-numbers.ts'
import type { SignedCall } from '../../../../schema/contracts/stir.ts'
import { compileHeaderRules } from '../../../../schema/rules/header-rules.ts'
import { type CallRig, granted, startCallRig } from '../../../support/call-rig.ts'
import { gateway } from '../../../support/gateway.ts'
import { failed, passed, ScriptedStir } from '../../../support/scripted-stir.ts'
import { type PeerMessage, sdp, type SipPeer } from '../../../support/sip-peer.ts'
import {
  acknowledge,
  addExtensions,
  carrierOf,
  carrierOrigin,
  extensionRecord,
  hangUp,
  home,
  phoneOf,
  stillThere,
} from '../steps.ts'

let rig: CallRig
let stir: ScriptedStir
/** Numbers of customer 7. */
let owned: Set<string>
let attestation: OwnedNumber['attestation']

const ownedNumbers: OwnedNumbers = {
  find: (number) =>
    owned.has(number)
      ? {
          id: 1,
          first: number,
          last: number,
          tenantId: 3,
          customerId: 7,
          displayName: '',
          attestation,
          isActive: true,
        }
      : undefined,
  isOwned: (number, { customerId }) => owned.has(number) && customerId === 7,
}

beforeEach(async () => {
  stir = new ScriptedStir()
  owned = new Set(['+12155550112'])
  attestation = null
  rig = await startCallRig({ stir, ownedNumbers })
  rig.answers.knowsNumber = true
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1, tenantId: 3 }
})
afterEach(() => rig.stop())

const asserts = (number: string) => `P-Asserted-Identity: <sip:${number}@pbx.example>`

async function calls(headers = [asserts('+12155550112')]) {
  const caller = await rig.caller()
  const leg = caller.leg(rig.uri('+12155550113'))
  caller.request('INVITE', leg, { body: sdp('offer'), headers })
  return { caller, leg }
}

async function busy(carrier: SipPeer, caller: SipPeer): Promise<PeerMessage> {
  const invite = await carrier.next('INVITE')
  carrier.reply(invite, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  return invite
}

const signing = () => carrierOf(rig, { number: '12155550113', isSigned: true })

test('the INVITE has one signature: of the asserted number, and of the number as it is sent', async () => {
  const carrier = await signing()
  const { caller } = await calls([asserts('+12155550112'), 'Identity: theirs', 'Date: yesterday'])
  const invite = await busy(carrier, caller)
  expect(invite.all('Identity')).toEqual(['sig-1;info=<https://us.example>'])
  expect(invite.all('Date')).toEqual([new Date(rig.time.wallNow()).toUTCString()])
  const [asked] = stir.toSign
  expect(asked).toEqual({
    tenantId: 3,
    orig: '+12155550112',
    dest: '12155550113',
    attestation: 'A',
    origid: 'uuid-1',
    iat: Math.floor(rig.time.wallNow() / 1_000),
  })
  expect(await rig.record()).toMatchObject({ attestation: 'A' })
  expect(rig.control.telemetry()).toMatchObject({ stir_calls_signed_A_total: 1 })
})

test('a carrier that wants no signature gets what it has always got', async () => {
  const carrier = await carrierOf(rig, { number: '12155550113' })
  const { caller } = await calls([asserts('+12155550112'), 'Identity: theirs'])
  expect((await busy(carrier, caller)).all('Identity')).toEqual(['theirs'])
  expect(stir.toSign).toEqual([])
  expect((await rig.record()).attestation).toBeUndefined()
})

const phone = { kind: 'extension', extension: extensionRecord('101') } as const
const nobody = { ...granted(60), account: { ...account(), customerId: null } }
function account() {
  const verdict = granted(60)
  if (verdict.kind !== 'granted') throw new Error('not granted')
  return verdict.account
}

test('A for a number of the payer, B for a known customer, C for all others', async () => {
  const attestations: (string | undefined)[] = []
  const call = async (number: string) => {
    const carrier = await signing()
    const { caller } = await calls([asserts(number)])
    await busy(carrier, caller)
    attestations.push((await rig.record()).attestation)
  }
  await call('+12155550112')
  await call('+12155550999')
  attestation = 'C'
  await call('+12155550112')
  attestation = null
  rig.answers.authorize = () => Promise.resolve(nobody as ReturnType<typeof granted>)
  await call('+12155550112')
  expect(attestations).toEqual(['A', 'B', 'C', 'C'])
})

test('a number that has named the payer itself proves nothing: C', () => {
  const origin = carrierOrigin({ payer: 'from_number', customerId: null })
  const call = { account: account(), origin, forwardedBy: undefined }
  expect(attestationOf('+12155550112', call, ownedNumbers)).toBe('C')
})

test("the carrier's fixed number is signed, by who owns it", async () => {
  const callerId = { mode: 'fixed', value: '+12155550777' } as const
  const carrier = await carrierOf(rig, { number: '12155550113', isSigned: true, callerId })
  const { caller } = await calls()
  await busy(carrier, caller)
  expect(stir.toSign).toMatchObject([{ orig: '+12155550777', attestation: 'B' }])
})

test("an exit code that the carrier's rules have written is not signed, and the owner stays the owner", async () => {
  const rules = compileHeaderRules(
    ['From', 'P-Asserted-Identity'].map((header) => ({
      ...({ direction: 'out', do: 'rewrite', header, part: 'user' } as const),
      ...{ pattern: '^\\+', replacement: '00' },
    })),
  )
  if (typeof rules === 'string') throw new Error(rules)
  const headerRules = rules.out
  const carrier = await carrierOf(rig, { number: '01112155550113', isSigned: true, headerRules })
  const { caller } = await calls()
  const invite = await busy(carrier, caller)
  expect(invite.get('P-Asserted-Identity')).toContain('sip:0012155550112@')
  expect(stir.toSign).toMatchObject([
    { orig: '+12155550112', dest: '+12155550113', attestation: 'A' },
  ])
})

test.each([
  ['there is no key', () => ({ kind: 'unsigned', why: 'there is no key' }) as const],
  [
    'the signing service has given no signature',
    () => ({ kind: 'signed', identities: ['a\r\nX-Evil: 1'] }) as const,
  ],
  ['a fault of the platform', () => Promise.reject(new Error('broken'))],
])('%s: the call goes on without a signature, and its trace says so', async (why, sign) => {
  stir.answers.sign = sign
  const carrier = await signing()
  const { caller } = await calls([asserts('+12155550112'), 'Identity: theirs'])
  const invite = await busy(carrier, caller)
  expect(invite.text).not.toMatch(/^(?:identity|x-evil):/im)
  const record = await rig.record()
  expect(record.attestation).toBeUndefined()
  const trace = await traceOf(record.callUuid, { ...rig, pause: () => Promise.resolve() })
  expect(trace?.entries.find((each) => 'what' in each && each.what === 'signed')).toMatchObject({
    detail: { carrier: 'north', attestation: null, why },
  })
  expect(rig.control.telemetry()).toMatchObject({ stir_calls_signed_unsigned_total: 1 })
  rig.faults.length = 0
})

test('an anonymous caller, or a name, is not signed', async () => {
  const carrier = await signing()
  const { caller } = await calls([])
  await busy(carrier, caller)
  expect(stir.toSign).toEqual([])
})

/** A promise that a test settles. */
function later() {
  let settle: (signed: SignedCall) => void = () => undefined
  const promise = new Promise<SignedCall>((resolve) => {
    settle = resolve
  })
  return { promise, settle }
}

test('the signing service is waited for, and no longer than a second', async () => {
  const first = later()
  stir.answers.sign = () => first.promise
  const carrier = await signing()
  const { caller } = await calls()
  await rig.until(() => stir.toSign.length === 1)
  await rig.settle()
  expect(carrier.inbox).toEqual([])
  first.settle(stir.signature())
  expect((await busy(carrier, caller)).get('Identity')).toContain('sig-1')
  stir.answers.sign = () => later().promise
  const other = await calls()
  await rig.until(() => stir.toSign.length === 2)
  await rig.advance(SIGN_MS + 100)
  const invite = await busy(carrier, other.caller)
  expect(invite.get('Identity')).toBe('')
  expect(rig.control.telemetry()).toMatchObject({ stir_calls_signing: 0 })
})

test('the caller cancels while the signing service works: nothing is sent', async () => {
  const { promise, settle } = later()
  stir.answers.sign = () => promise
  const carrier = await signing()
  const { caller, leg } = await calls()
  await rig.until(() => stir.toSign.length === 1)
  caller.request('CANCEL', leg)
  await caller.next('487 INVITE')
  await rig.settle()
  settle(stir.signature())
  expect(await rig.record()).toMatchObject({ disposition: 'CANCELED' })
  await rig.idle()
  expect(carrier.inbox).toEqual([])
})

test('an emergency call does not wait', async () => {
  stir.answers.sign = () => later().promise
  rig.answers.emergencyNumber = '+12155550113'
  rig.answers.caller = phone
  const carrier = await carrierOf(rig, { number: '112', isSigned: true }, true)
  addExtensions(rig, extensionRecord('101'))
  const { caller } = await calls()
  expect((await busy(carrier, caller)).get('Identity')).toBe('')
})

test('each destination gets a signature of its own, and one that wants none gets none of ours', async () => {
  const peers = [await rig.caller(), await rig.caller(), await rig.caller()]
  const gateways = peers.map(({ port }, index) =>
    gateway({
      gatewayId: index + 1,
      uri: `sip:127.0.0.1:${port};transport=udp`,
      number: `1215555011${index}`,
      ...(index < 2 && { isSigned: true as const }),
    }),
  )
  rig.answers.outbound = { kind: 'gateways', isEmergency: false, gateways }
  const { caller } = await calls()
  const signatures: string[] = []
  for (const peer of peers) {
    const invite = await peer.next('INVITE')
    signatures.push(invite.get('Identity'))
    peer.reply(invite, peer === peers[2] ? 486 : 503, { tag: 'b' })
  }
  await caller.next('486 INVITE')
  expect(signatures).toEqual([
    'sig-1;info=<https://us.example>',
    'sig-2;info=<https://us.example>',
    '',
  ])
  expect(stir.toSign.map(({ dest }) => dest)).toEqual(['12155550110', '12155550111'])
  expect((await rig.record()).attestation).toBeUndefined()
})

const login = { ...gateway({}).auth, type: 'digest', username: 'me', password: 's3cret' } as const
const challenge = ['Proxy-Authenticate: Digest realm="north", nonce="1"']

test.each(['at once', 'later'])(
  'a challenge is answered with a new signature, %s',
  async (when) => {
    const carrier = await carrierOf(rig, { number: '12155550113', isSigned: true, auth: login })
    if (when === 'later') stir.answers.sign = () => Promise.resolve(stir.signature())
    const { caller } = await calls()
    const first = await carrier.next('INVITE')
    carrier.reply(first, 100)
    await rig.advance(1_100)
    carrier.reply(first, 407, { tag: 'c', headers: challenge })
    await carrier.next('ACK')
    const second = await busy(carrier, caller)
    expect(second.get('Proxy-Authorization')).toContain('username="me"')
    expect(first.all('Identity')).toEqual(['sig-1;info=<https://us.example>'])
    expect(second.all('Identity')).toEqual(['sig-2;info=<https://us.example>'])
    expect(second.all('Date')).toEqual([new Date(rig.time.wallNow()).toUTCString()])
    expect(second.get('CSeq')).toBe('2 INVITE')
  },
)

test('cancelled while a challenge waits for its signature: no second INVITE', async () => {
  const carrier = await carrierOf(rig, { number: '12155550113', isSigned: true, auth: login })
  const { caller, leg } = await calls()
  const first = await carrier.next('INVITE')
  const { promise, settle } = later()
  stir.answers.sign = () => promise
  carrier.reply(first, 407, { tag: 'c', headers: challenge })
  await carrier.next('ACK')
  await rig.until(() => stir.toSign.length === 2)
  caller.request('CANCEL', leg)
  await caller.next('487 INVITE')
  await rig.settle()
  settle(stir.signature())
  await rig.record()
  await rig.idle()
  expect(carrier.inbox).toEqual([])
})

async function forwarded(verified = passed()) {
  stir.answers.verify = () => verified
  const desk = await phoneOf(rig, '102')
  addExtensions(rig, extensionRecord('102'))
  const carrier = await carrierOf(rig, { number: '12155550199', isSigned: true })
  rig.answers.origin = carrierOrigin({ verify: 'mark' })
  rig.answers.inbound = { kind: 'extension', extension: '102', tenantId: 3, domain: home }
  const { caller, leg } = await calls([asserts('+13105550100'), 'Identity: theirs;ppt=shaken'])
  const invite = await desk.next('INVITE')
  desk.contact = 'tel:+1-215-555-0199'
  desk.reply(invite, 302, { tag: 'f' })
  return { caller, leg, carrier, desk, invite }
}

test("a forward passes the caller's signatures, and adds div of the number that was called", async () => {
  stir.answers.sign = ({ received = [] }) => ({
    kind: 'signed',
    identities: [...received, 'own;ppt=div'],
  })
  const { caller, carrier, invite } = await forwarded()
  expect(invite.get('Identity')).toBe('theirs;ppt=shaken')
  const sent = await carrier.next('INVITE')
  expect(sent.all('Identity')).toEqual(['theirs;ppt=shaken', 'own;ppt=div'])
  expect(stir.toSign).toMatchObject([
    {
      orig: '+13105550100',
      dest: '12155550199',
      received: ['theirs;ppt=shaken'],
      divertedBy: [{ number: '+12155550113', dest: '12155550199' }],
    },
  ])
  carrier.reply(sent, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  expect(rig.control.telemetry()).toMatchObject({ stir_calls_signed_div_total: 1 })
})

test('a forward whose caller is not proved is signed as one that has come from elsewhere', async () => {
  const { caller, carrier } = await forwarded(failed(438, 'Invalid Identity Header'))
  const sent = await carrier.next('INVITE')
  expect(sent.all('Identity')).toEqual(['sig-1;info=<https://us.example>'])
  expect(stir.toSign).toMatchObject([{ orig: '+13105550100', attestation: 'C' }])
  expect(stir.toSign[0]).not.toHaveProperty('received')
  carrier.reply(sent, 486, { tag: 'b' })
  await caller.next('486 INVITE')
})

test('after a crash the record still says how the call was signed', async () => {
  const carrier = await signing()
  const { caller, leg } = await calls()
  carrier.reply(await carrier.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg, carrier)
  await rig.advance(2_000)
  rig.crash()
  const { time, world, server, saved, opened, peers } = rig
  await rig.advance(1_000)
  rig = await startCallRig({ stir, after: { time, world, server, opened, saved } })
  rig.peers.push(...peers)
  await rig.settle()
  await stillThere(rig, caller, carrier)
  await hangUp(caller, leg, carrier)
  expect(await rig.record()).toMatchObject({ attestation: 'A', disposition: 'ANSWERED' })
})
