import { expect, test } from 'vitest'
import type { MediaRules } from '../../../../schema/contracts/field-values.ts'
import { noRules } from '../../../support/media-party.ts'
import { talk } from '../../../support/call-rig.ts'
import { startMediaRig } from '../../../support/media-rig.ts'
import type { SipPeer } from '../../../support/sip-peer.ts'
import { hangUp } from '../../call/steps.ts'

/** Of digits. */
async function hearsNothing(...peers: readonly SipPeer[]): Promise<void> {
  for (const peer of peers) await expect(peer.next('INFO')).rejects.toThrow('no INFO')
}

/** A call whose relay tells of digits. */
async function call(dtmf: MediaRules['dtmf'] = 'info') {
  const rig = await startMediaRig({ setRules: { ...noRules, dtmf } })
  const parties = await talk(rig)
  await rig.settle()
  const [session] = rig.media?.calls.sessionsOf('uuid-1') ?? []
  const press = (event: number, from = 'uuid-1.0', source = rig.relay.address): void => {
    const report = { callid: session?.id, source_tag: from, event, duration: 120 }
    rig.media?.digits.received(Buffer.from(JSON.stringify(report)), source)
  }
  const ignored = () => rig.media?.digits.telemetry()['media_digits_ignored_total']
  return { ...parties, rig, press, ignored }
}

test('a digit in RTP becomes INFO to a party that takes it, one after the other', async () => {
  const { rig, caller, node, leg, press, ignored } = await call()
  press(5)
  press(11)
  const first = await node.next('INFO')
  expect(first.get('content-type')).toBe('application/dtmf-relay')
  expect(first.body).toBe('Signal=5\r\nDuration=120\r\n')
  await hearsNothing(node)
  node.reply(first, 200)
  const second = await node.next('INFO')
  expect(second.body).toBe('Signal=#\r\nDuration=120\r\n')
  node.reply(second, 415)
  await rig.settle()
  // Call control does not hear of the answers, and no digit goes back.
  press(5, 'uuid-1.1')
  press(5, 'uuid-1.0', '192.0.2.66')
  await hearsNothing(caller, node)
  expect(ignored()).toBe(1)
  await hangUp(caller, leg, node)
  await rig.idle()
  press(5)
  await hearsNothing(node)
  expect(ignored()).toBe(2)
})

test.each(['auto', 'rfc4733'] as const)('not to a party with dtmf %s', async (dtmf) => {
  const { rig, caller, node, leg, press } = await call(dtmf)
  press(5)
  press(5, 'uuid-1.1')
  await hearsNothing(caller, node)
  await hangUp(caller, leg, node)
  await rig.idle()
})
