/** A transfer between nodes, through a media relay: the node that asks speaks for the transferee, not for the transferor. */
import { expect, test } from 'vitest'
import { noMediaRules } from '../../../../schema/rules/media.ts'
import { OtherNodes } from '../../../../engine/call/transfer/other-nodes.ts'
import { placeIn, startMediaRig } from '../../../support/media-rig.ts'
import { sdp } from '../../../support/sip-peer.ts'
import { establish, replacing } from '../../../support/transfer-rig.ts'

/** Extension 1 talks to B through a relay, as its rules want it; no other party has any. */
async function talking() {
  const rig = await startMediaRig({
    policy: 'bypass',
    extensionRules: { ...noMediaRules, policy: 'anchor' },
    otherNodes: nodeNamed('b'),
  })
  return { rig, ...(await establish(rig)) }
}

const nodeNamed = (self: string, isRecording = false): OtherNodes =>
  new OtherNodes({
    self,
    key: Buffer.alloc(32, 1),
    wallNow: () => 0,
    peers: {
      find: () => ({
        sip: { host: '127.0.0.1', port: 5_060, protocol: 'udp' },
        isAlive: true,
        addresses: ['127.0.0.1'],
      }),
      alive: ['a', 'b'],
    },
    isRecording: () => isRecording,
    onRefused: () => undefined,
    onNodeAt: () => undefined,
    log: () => undefined,
  })

test('the rules of the transferor do not hold for a node that asks for the other party', async () => {
  const { rig, aLeg, b } = await talking()
  const { callId, to, from } = aLeg
  const tagOf = (party: string): string => /;tag=(.*)$/.exec(party)?.[1] ?? ''
  const dialog = { callId, toTag: tagOf(to), fromTag: tagOf(from), isEarlyOnly: false }
  const party = 'extension 1'
  const [asked] = nodeNamed('a').candidates(dialog, { party, transfersBefore: 1, callUuid: 'u' })
  const node = await rig.caller()
  const headers = [`Replaces: ${replacing(aLeg)}`, `X-Tollgate-Transfer: ${asked?.token ?? ''}`]
  node.request('INVITE', node.leg(rig.uri('1777')), { headers, body: sdp('transferee', 4_321) })
  expect(placeIn((await b.next('INVITE')).body)).toBe('127.0.0.1:4321')
})

test.each([true, false])(
  'whether the other node records what is said is known of the call that connects it (%s)',
  async (isRecording) => {
    const { rig, aLeg, b } = await talking()
    const { callId, to, from } = aLeg
    const tagOf = (party: string): string => /;tag=(.*)$/.exec(party)?.[1] ?? ''
    const dialog = { callId, toTag: tagOf(to), fromTag: tagOf(from), isEarlyOnly: false }
    const asked = { party: 'extension 1', transfersBefore: 1, callUuid: 'u' }
    const [other] = nodeNamed('a', isRecording).candidates(dialog, asked)
    const node = await rig.caller()
    const token = `X-Tollgate-Transfer: ${other?.token ?? ''}`
    const headers = [`Replaces: ${replacing(aLeg)}`, token]
    node.request('INVITE', node.leg(rig.uri('1777')), { headers, body: sdp('transferee') })
    await b.next('INVITE')
    const { start } = rig.calls.call('uuid-2') ?? {}
    expect(start?.isRecordedElsewhere === true).toBe(isRecording)
  },
)
