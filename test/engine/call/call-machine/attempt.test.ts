/** The health that an attempt without success shows of the instance of the installation. */
import { expect, test } from 'vitest'
import type { OtherInstanceCandidate } from '../../../../engine/call/dialing/outgoing-invite.ts'
import { CallMachine, response } from '../../../support/call-machine.ts'

const otherInstance: OtherInstanceCandidate = {
  kind: 'other-node',
  uri: 'sip:10.0.0.9',
  holder: 'b',
  token: 't',
  replaces: 'c;to-tag=t;from-tag=f',
}

/**
 * An INVITE for another instance is being sent; tells of which instances it is said that they are
 * silent.
 */
function asked() {
  const machine = new CallMachine()
  machine.invited(null, 'u', 'offer')
  machine.dial([otherInstance], 'u', 'offer')
  const legId = machine.call().dialing?.attempts[0]?.legId ?? ''
  const silent = (): readonly string[] =>
    machine.commands.flatMap((command) => (command.type === 'instanceSilent' ? [command.name] : []))
  const sent = () => machine.event({ type: 'sent', legId, callId: 'x' })
  return { machine, legId, silent, sent }
}

test('an instance that says nothing to what has left for it is silent', () => {
  const { machine, silent, sent } = asked()
  sent()
  machine.advanceTo(10_000)
  expect(silent()).toEqual(['b'])
})

test('an INVITE that our own SIP server refuses to send says nothing about the instance', () => {
  const { machine, legId, silent } = asked()
  machine.event({ type: 'failed', legId, reason: 'missing content-type' })
  machine.advanceTo(10_000)
  expect(machine.call().end).toBeDefined()
  expect(silent()).toEqual([])
})

test('an INVITE that still waits here, as for a media relay, says nothing about the instance', () => {
  const { machine, silent } = asked()
  machine.advanceTo(10_000)
  expect(machine.call().end).toBeDefined()
  expect(silent()).toEqual([])
})

test('what comes after the first response of an instance is not its silence', () => {
  const { machine, legId, silent, sent } = asked()
  sent()
  machine.event({ type: 'provisional', legId, response: response(100) })
  machine.advanceTo(400_000)
  expect(machine.call().end).toBeDefined()
  expect(silent()).toEqual([])
})
