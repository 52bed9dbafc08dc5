/** A transfer, or click-to-call, while its calls end or its parties are told of something else. */
import { expect, test } from 'vitest'
import { forgetCall, beginCall } from '../../../../engine/call/call-machine/call.ts'
import type { CallCommand } from '../../../../engine/call/call-machine/protocol.ts'
import type { PhoneCandidate } from '../../../../engine/call/dialing/outgoing-invite.ts'
import { CallMachine, response, sampleInvite, sampleStart } from '../../../support/call-machine.ts'
import { candidate } from '../../../support/call-rig.ts'

const node = candidate(1, 5_060)
const dialogOf = (leg: string) => ({
  callId: leg,
  localTag: 'l',
  remoteTag: 'r',
  media: `by ${leg}`,
})
const types = (commands: readonly CallCommand[]) => commands.map(({ type }) => type)
const stored = (commands: readonly CallCommand[]) =>
  commands.flatMap((command) => (command.type === 'store' ? [command.callUuid] : []))

/**
 * The callee of call `u` refers the caller to a party that has answered; the journal of that call
 * `t` is written.
 */
function transferring() {
  const machine = new CallMachine()
  const { caller, callee } = machine.answered(null, node)
  beginCall(machine.world, { start: { ...sampleStart('t'), isOurs: true }, stampOffsetMs: 0 })
  machine.event({
    type: 'transferTo',
    transferor: callee,
    transferee: caller,
    callUuid: 't',
    destination: '3',
    offered: 'offer',
    isReferred: true,
  })
  machine.dial([node], 't', 'offer')
  const target = 't.0'
  machine.event({ type: 'sent', legId: target, callId: target })
  machine.event({
    type: 'answered',
    legId: target,
    dialog: dialogOf(target),
    response: response(200, 'answer of the target'),
  })
  const bye = (legId: string) => machine.event({ type: 'bye', legId, headers: {}, isOurs: false })
  const journalled = () => machine.event({ type: 'journalled', callUuid: 't', isStored: true })
  return { machine, caller, callee, target, bye, journalled }
}

test('the new party hangs up while the journal is written: the transfer fails, the old parties go on', () => {
  const { machine, caller, callee, target, bye, journalled } = transferring()
  bye(target)
  expect(stored(journalled())).toEqual(['t'])
  expect(machine.call('u').transfer?.state).toBe('failed')
  expect(machine.call('u').legs).toEqual({ caller, callee })
})

test('the transferee hangs up, and its call is forgotten, while the journal is written: the new call ends', () => {
  const { machine, caller, bye, journalled } = transferring()
  expect(stored(bye(caller))).toEqual(['u'])
  forgetCall(machine.world, 'u')
  expect(stored(journalled())).toEqual(['t'])
})

test('a transferor that has gone already is not waited for', () => {
  const { machine, caller, callee, bye, journalled } = transferring()
  bye(callee)
  journalled()
  const transactionId = `${caller}#0`
  machine.event({
    type: 'response',
    legId: caller,
    transactionId,
    owesAck: false,
    response: response(200, 'answer of the transferee'),
  })
  expect(machine.call('u').transfer?.state).toBe('transferred')
  expect(machine.timers).toBe(0)
})

test('new media that a transferee is to be offered once more are not offered when the transfer has failed', () => {
  const { machine, caller, target, bye, journalled } = transferring()
  journalled()
  const response491 = { type: 'response', legId: caller, response: response(491) } as const
  machine.event({ ...response491, transactionId: `${caller}#0`, owesAck: false })
  bye(target)
  expect(machine.call('u').transfer?.state).toBe('failed')
  expect(types(machine.advanceTo(10_000))).not.toContain('request')
})

/** Click-to-call: the phone is picked up, and the destination is dialled. */
function pickedUp(): CallMachine {
  const machine = new CallMachine()
  beginCall(machine.world, { start: { ...sampleStart(), isOurs: true }, stampOffsetMs: 0 })
  const invite = sampleInvite('u', undefined)
  const connect = { invite, isEmergency: false }
  const phone: PhoneCandidate = {
    kind: 'phone',
    uri: 'sip:1@h',
    routes: [],
    nextHop: undefined,
    extension: '1',
    domain: 'd',
    tenantId: 1,
  }
  machine.event({ type: 'ring', callUuid: 'u', phones: [phone], invite, ringMs: 10_000, connect })
  machine.event({
    type: 'offered',
    legId: 'u.0',
    response: response(200),
    offer: 'v=0\r\nm=audio 1 RTP/AVP 8',
  })
  machine.dial([node], 'u', 'offer')
  return machine
}

test('a phone of click-to-call that was refused its destination leaves no timer', () => {
  const machine = pickedUp()
  machine.event({ type: 'rejected', legId: 'u.1', response: response(486) })
  expect(machine.timers).toBe(0)
})

test('the phone of click-to-call is told of the next media when it has answered', () => {
  const machine = pickedUp()
  machine.event({ type: 'provisional', legId: 'u.1', response: response(100) })
  machine.advanceTo(2_000)
  machine.event({ type: 'acknowledged', legId: 'u.0', dialog: dialogOf('u.0') })
  const early = { ...response(183, 'early'), headers: { 'content-type': 'application/sdp' } }
  const first = machine.event({ type: 'provisional', legId: 'u.1', response: early })
  expect(first).toContainEqual(expect.objectContaining({ type: 'request', body: 'early' }))
  const dialog = dialogOf('u.1')
  machine.event({ type: 'answered', legId: 'u.1', dialog, response: response(200, 'final') })
  const answered = machine.event({ type: 'journalled', callUuid: 'u', isStored: true })
  expect(types(answered)).not.toContain('request')
  const moved = { type: 'response', legId: 'u.0', owesAck: false, response: response(200) } as const
  const then = machine.event({ ...moved, transactionId: 'u.0#0' })
  expect(then).toContainEqual(expect.objectContaining({ type: 'request', body: 'final' }))
  expect(machine.event({ ...moved, transactionId: 'u.0#1' })).toEqual([])
})
