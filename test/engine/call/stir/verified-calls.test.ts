/** Calls of carriers whose Identity headers are looked at, as the carrier and the node see them. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { MAX_VERIFYING, VERIFY_MS } from '../../../../engine/call/stir/caller-verifier.ts'
import { traceOf } from '../../../../engine/call/trace/trace.ts'
import type { VerifiedCall } from '../../../../schema/contracts/stir.ts'
import { type CallRig, startCallRig } from '../../../support/call-rig.ts'
import { decides, ScriptedHooks } from '../../../support/scripted-hooks.ts'
import { failed, passed, ScriptedStir } from '../../../support/scripted-stir.ts'
import { sdp, type SipPeer } from '../../../support/sip-peer.ts'
import { acknowledge, carrierOrigin, denied, hangUp, stillThere } from '../steps.ts'

let rig: CallRig
let stir: ScriptedStir
let hooks: ScriptedHooks

beforeEach(async () => {
  stir = new ScriptedStir()
  hooks = new ScriptedHooks()
  rig = await startCallRig({ stir, hooks })
  verifies('mark')
})
afterEach(() => rig.stop())

const verifies = (verify: 'mark' | 'refuse', parts: object = {}): void => {
  rig.answers.origin = carrierOrigin({ verify, ...parts })
}

const identity = 'Identity: abc.def.ghi;info=<https://cert.example/a,b.pem>;alg=ES256;ppt=shaken'
const asserted = 'P-Asserted-Identity: <sip:+12155550112@north.example>'

async function calls(headers: readonly string[] = [identity, asserted], number = '+12155550113') {
  const caller = await rig.caller()
  const leg = caller.leg(rig.uri(number))
  caller.request('INVITE', leg, { body: sdp('offer'), headers })
  return { caller, leg }
}

async function busy(called: SipPeer, caller: SipPeer) {
  const invite = await called.next('INVITE')
  called.reply(invite, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  return invite
}

/** A promise that a test settles. */
function later() {
  let settle: (verified: VerifiedCall) => void = () => undefined
  let fail: (error: Error) => void = () => undefined
  const promise = new Promise<VerifiedCall>((resolve, reject) => {
    settle = resolve
    fail = reject
  })
  return { promise, settle, fail }
}

test('the header is compared with the numbers of the INVITE, and what it proves is in the record', async () => {
  const node = await rig.node()
  const { caller, leg } = await calls()
  await busy(node, caller)
  const callId = leg.callId
  expect(stir.toVerify).toEqual([
    {
      identities: [identity.slice('Identity: '.length)],
      orig: '+12155550112',
      dest: '+12155550113',
      callId,
      now: Math.floor(rig.time.wallNow() / 1_000),
    },
  ])
  expect(await rig.record()).toMatchObject({
    verification: 'passed',
    verstat: 'TN-Validation-Passed',
    attestation: 'A',
  })
  expect(rig.control.telemetry()).toMatchObject({
    stir_calls_verified_passed_total: 1,
  })
})

test('several headers, in the long and the short form, are all looked at', async () => {
  const node = await rig.node()
  const { caller } = await calls(['Identity: one;info=<https://a.example>', 'y: two', asserted])
  await busy(node, caller)
  expect(stir.toVerify[0]?.identities).toEqual(['one;info=<https://a.example>', 'two'])
})

test.each([
  ['mark', 'none', 'No-TN-Validation', []],
  ['mark', 'failed', 'TN-Validation-Failed', [identity]],
] as const)(
  '%s: a call that proves nothing goes on: %s',
  async (_, verification, verstat, sent) => {
    stir.answers.verify = () => failed(438, 'Invalid Identity Header')
    const node = await rig.node()
    const { caller } = await calls([...sent])
    await busy(node, caller)
    const record = await rig.record()
    expect(record).toMatchObject({ verification, verstat, sipCode: 486 })
    expect(record.attestation).toBeUndefined()
  },
)

test.each([
  [428, 'Use Identity Header', 'identity_missing'],
  [436, 'Bad Identity Info', 'identity_info'],
  [437, 'Unsupported Credential', 'identity_credential'],
  [438, 'Invalid Identity Header', 'identity_invalid'],
  [403, 'Stale Date', 'identity_stale'],
] as const)('refuse: %i %s, with the Reason of RFC 9410', async (status, reason, denialCode) => {
  verifies('refuse')
  stir.answers.verify = () => failed(status, reason)
  const node = await rig.node()
  const { caller } = await calls()
  const answer = await caller.next(`${status} INVITE`)
  expect(answer.text).toContain(`${status} ${reason}`)
  expect(answer.get('Reason')).toBe(`STIR;cause=${status};text="${reason}"`)
  expect(node.inbox).toEqual([])
  expect(rig.asked).toEqual([])
  expect(hooks.asked).toEqual([])
  expect(await rig.record()).toMatchObject({
    sipCode: status,
    denialCode,
    denialText: expect.stringContaining('the signature is wrong'),
    verification: 'failed',
    direction: 'inbound',
    tenantId: 3,
  })
})

test('refuse: 428 without a header, and where nothing here reads those that there are', async () => {
  verifies('refuse')
  const { caller } = await calls([])
  expect((await caller.next('428 INVITE')).get('Reason')).toContain('STIR;cause=428')
  expect(stir.toVerify).toEqual([])
  stir.answers.verify = () => ({ verification: 'none' })
  const other = await calls()
  await other.caller.next('428 INVITE')
  expect(await rig.record()).toMatchObject({
    denialCode: 'identity_missing',
    verification: 'none',
    verstat: 'No-TN-Validation',
  })
})

test('refuse: who is proved is connected', async () => {
  verifies('refuse')
  const node = await rig.node()
  const { caller } = await calls()
  await busy(node, caller)
})

test('who is no carrier with verification is never looked at', async () => {
  for (const origin of [{ kind: 'trusted' } as const, carrierOrigin()]) {
    rig.answers.origin = origin
    const node = await rig.node()
    const { caller } = await calls()
    await busy(node, caller)
    rig.answers.candidates.length = 0
    expect((await rig.record()).verification).toBeUndefined()
  }
  expect(stir.toVerify).toEqual([])
})

test('a reason from elsewhere cannot write another header', async () => {
  verifies('refuse')
  stir.answers.verify = () => failed(438, 'bad\r\nX-Evil: "yes"')
  const { caller } = await calls()
  const answer = await caller.next('438 INVITE')
  expect(answer.get('X-Evil')).toBe('')
  expect(answer.get('Reason')).toBe('STIR;cause=438;text="bad  X-Evil:  yes "')
})

test('the rules of the carrier make a number international; a local one is compared as it was sent', async () => {
  // The rig has 00 as exit code: a number after it is international.
  const node = await rig.node()
  const { caller } = await calls([identity, asserted], '0012155550113')
  await busy(node, caller)
  expect(stir.toVerify[0]).toMatchObject({ orig: '+12155550112', dest: '+12155550113' })
})

test('hooks get what is proved, and may decide by it; others get nothing of the kind', async () => {
  hooks.answers.onInvite = decides({ refuse: { status: 603 } })
  const { caller } = await calls()
  await caller.next('603 INVITE')
  stir.answers.verify = () => failed(438, 'Invalid Identity Header')
  await (await calls()).caller.next('603 INVITE')
  rig.answers.origin = carrierOrigin()
  await (await calls()).caller.next('603 INVITE')
  const [first, second, third] = hooks.argumentsOf('onInvite')
  expect(first).toMatchObject({ verification: 'passed', attestation: 'A' })
  expect(second).toMatchObject({ verification: 'failed' })
  expect(second).not.toHaveProperty('attestation')
  expect(third).not.toHaveProperty('verification')
})

test('the caller cancels while its certificate is fetched: 487, a record, and nobody is called', async () => {
  const { promise, settle } = later()
  stir.answers.verify = () => promise
  const node = await rig.node()
  const { caller, leg } = await calls()
  await rig.until(() => stir.toVerify.length === 1)
  caller.request('CANCEL', leg)
  await caller.next('487 INVITE')
  await rig.settle()
  settle(passed())
  expect(await rig.record()).toMatchObject({
    disposition: 'CANCELED',
    hangupBy: 'caller',
    tenantId: 3,
    verification: 'passed',
  })
  expect(node.inbox).toEqual([])
  await rig.idle()
})

test.each([
  ['mark', 486],
  ['refuse', 436],
] as const)('%s: no certificate in time: the caller gets %i', async (policy, status) => {
  verifies(policy)
  const { promise, settle } = later()
  stir.answers.verify = () => promise
  const node = await rig.node()
  const { caller } = await calls()
  await rig.until(() => stir.toVerify.length === 1)
  await rig.advance(VERIFY_MS + 100)
  if (policy === 'mark') await busy(node, caller)
  else await caller.next('436 INVITE')
  expect(await rig.record()).toMatchObject({
    sipCode: status,
    verification: 'none',
    verstat: 'No-TN-Validation',
  })
  // What comes later changes nothing.
  settle(passed())
  await rig.settle()
  expect(rig.control.telemetry()).toMatchObject({
    stir_calls_verified_none_total: 1,
    stir_calls_verified_passed_total: 0,
    stir_calls_verifying: 0,
  })
})

test('a fault of the library is no proof, and ends no call that is only marked', async () => {
  stir.answers.verify = () => Promise.reject(new Error('broken'))
  const node = await rig.node()
  const { caller } = await calls()
  await busy(node, caller)
  expect(await rig.record()).toMatchObject({ verification: 'none' })
  expect(rig.faults.splice(0)).toMatchObject([{ message: 'a caller could not be verified' }])
})

test('so many calls wait for certificates; the next one does not', async () => {
  const { promise, settle } = later()
  stir.answers.verify = () => promise
  rig.answers.authorize = denied('no_rate')
  const caller = await rig.caller()
  for (let count = 0; count < MAX_VERIFYING; count += 1)
    caller.request('INVITE', caller.leg(rig.uri('1')), { body: 'v=0', headers: [identity] })
  await rig.until(() => stir.toVerify.length === MAX_VERIFYING)
  expect(rig.control.telemetry()).toMatchObject({ stir_calls_verifying: MAX_VERIFYING })
  const last = await calls()
  await last.caller.next('402 INVITE')
  expect(await rig.record()).toMatchObject({ verification: 'none', denialCode: 'no_rate' })
  settle(passed())
  await rig.until(() => rig.records.length === MAX_VERIFYING)
}, 20_000)

test('an emergency number waits for no certificate, and is not refused', async () => {
  verifies('refuse')
  rig.answers.emergencyNumber = '112'
  stir.answers.verify = () => later().promise
  const node = await rig.node()
  const { caller } = await calls([identity], '112')
  await busy(node, caller)
  expect(await rig.record()).toMatchObject({ verification: 'none', sipCode: 486 })
})

test('a call that would be refused anyway costs no verification', async () => {
  rig.answers.unserved = 'storage_unavailable'
  const { caller } = await calls()
  await caller.next('503 INVITE')
  expect(stir.toVerify).toEqual([])
})

test('the trace says who has signed', async () => {
  const node = await rig.node()
  const { caller } = await calls()
  await busy(node, caller)
  const { callUuid } = await rig.record()
  const trace = await traceOf(callUuid, { ...rig, pause: () => Promise.resolve() })
  const decision = trace?.entries.find((each) => 'what' in each && each.what === 'verified')
  expect(decision).toMatchObject({
    detail: { verification: 'passed', attestation: 'A', why: 'CN=North' },
  })
})

test('after a crash the record of the call still has what was proved', async () => {
  const node = await rig.node()
  const { caller, leg } = await calls()
  node.reply(await node.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg, node)
  await rig.advance(2_000)
  rig.crash()
  const { time, world, server, saved, opened, peers } = rig
  await rig.advance(1_000)
  rig = await startCallRig({ stir, after: { time, world, server, opened, saved } })
  rig.peers.push(...peers)
  await rig.settle()
  await stillThere(rig, caller, node)
  await hangUp(caller, leg, node)
  expect(await rig.record()).toMatchObject({
    verification: 'passed',
    verstat: 'TN-Validation-Passed',
    attestation: 'A',
  })
})
