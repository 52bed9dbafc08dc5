/** The reports of phones reach the record of their call, and no other one. */
import { expect, test } from 'vitest'
import type { ClosedSession } from '../../../../engine/media/call-media.ts'
import { measuredQuality } from '../../../../engine/media/quality/quality.ts'
import { CallMachine } from '../../../support/call-machine.ts'
import { candidate, type Talk, talk } from '../../../support/call-rig.ts'
import { sdp } from '../../../support/sip-peer.ts'
import { vqReport } from '../../../support/vq-report.ts'
import { extension101 } from '../../../support/transfer-rig.ts'
import type { Origin } from '../../../../engine/routing/routing.ts'
import { acknowledge, carrierOrigin, rig, rigForEachTest } from '../../call/steps.ts'

rigForEachTest()

const stat = (received: number, lost: number): string =>
  `X-RTP-Stat: PS=1000,OS=160000,PR=${received},OR=160000,PL=${lost},JI=2,LA=40,DU=20`

async function hangUp({ caller, leg, node }: Talk, bye: string[], answer: string[] = []) {
  caller.request('BYE', leg, { headers: bye })
  node.reply(await node.next('BYE'), 200, { headers: answer })
  await caller.next('200 BYE')
}

interface Published {
  readonly body?: string
  readonly event?: string
  readonly contentType?: string
}

function publish({ caller, leg }: Talk, published: Published = {}) {
  const { event = 'vq-rtcpxr', contentType = 'application/vq-rtcpxr' } = published
  const { body = vqReport(leg.callId) } = published
  const request = { headers: [`Event: ${event}`], contentType, body }
  caller.request('PUBLISH', caller.leg(rig.uri('collector')), request)
}

/** The same two talk again. */
async function talkAgain({ caller, node, ...rest }: Talk): Promise<Talk> {
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer') })
  node.reply(await node.next('INVITE'), 200, { tag: 'c', body: sdp('answer') })
  await acknowledge(caller, leg, node)
  return { ...rest, caller, node, leg }
}

test('the BYE of a phone tells what it has heard: that is the quality of the other party', async () => {
  await hangUp(await talk(rig), [stat(1_000, 30)])
  const { quality } = await rig.record()
  expect(quality).toEqual({
    caller: null,
    callee: {
      mos: 2.8,
      mosSource: 'computed',
      jitterMs: 2,
      packetLossPct: 2.9,
      roundTripMs: null,
      packets: 1_000,
    },
  })
})

test('the answer to a BYE reaches the record once its phone has reported before', async () => {
  const first = await talk(rig)
  await hangUp(first, [], [stat(900, 0)])
  expect((await rig.record()).quality).toBeUndefined()
  await rig.settle()
  const trace = rig.calls.story('uuid-1')?.notes.find(({ what }) => what === 'reported')
  expect(trace).toMatchObject({ by: 'callee', stream: { packets: 900 } })

  await hangUp(await talkAgain(first), [], [stat(800, 0)])
  expect((await rig.record()).quality?.caller?.packets).toBe(800)
})

test('a report that is published during the call reaches its record', async () => {
  const call = await talk(rig)
  publish(call)
  const answer = await call.caller.next('200 PUBLISH')
  expect(answer.get('Expires')).toBe('0')
  expect(answer.get('SIP-ETag')).not.toBe('')
  await hangUp(call, [])
  const { quality } = await rig.record()
  expect(quality?.callee).toMatchObject({ mos: 4.2, mosSource: 'reported', packetLossPct: 7 })
  expect(quality?.caller).toMatchObject({ mos: 4.3, mosSource: 'reported' })
})

test.each([
  ['another event', 489, { event: 'presence' }],
  ['another type', 415, { contentType: 'application/pidf+xml' }],
  ['no report', 400, { body: 'nothing' }],
  ['an unknown call', 404, { body: vqReport('no-such-call') }],
] as const)('%s is refused with %i', async (_what, status, published) => {
  const call = await talk(rig)
  publish(call, published)
  await call.caller.next(`${status} PUBLISH`)
  await hangUp(call, [])
  expect((await rig.record()).quality).toBeUndefined()
})

test('neither another extension nor another carrier speaks for a party', async () => {
  const call = await talk(rig)
  const origins = [
    { ...extension101, extensionId: 9 },
    carrierOrigin({ carrierId: 5 }),
    { kind: 'node', nodeId: 7, setId: 1 },
  ]
  for (const origin of origins) {
    rig.answers.origin = origin as Origin
    publish(call)
    await call.caller.next('403 PUBLISH')
  }
  rig.answers.origin = { kind: 'trusted' }
  await hangUp(call, [])
  expect((await rig.record()).quality).toBeUndefined()
})

/**
 * An answered call whose sessions have ended, by the packets that came from the party of each leg.
 */
async function measured(sessionsOf: (caller: string, callee: string) => object[] | undefined) {
  const machine = new CallMachine()
  const { caller, callee } = machine.answered(null, candidate(1, 5_060))
  const closed = sessionsOf(caller, callee)?.map((packets) => {
    const tags = Object.entries(packets).map(([legId, count]) => {
      const streams = [{ flags: ['RTP'], stats: { packets: Number(count) } }]
      return [legId, { medias: [{ type: 'audio', streams }] }] as const
    })
    const [one = '', other = ''] = Object.keys(packets)
    const values = tags.length > 0 ? { tags: Object.fromEntries(tags) } : undefined
    return { session: { legs: [one, other] }, values } as unknown as ClosedSession
  })
  const media = { closedSessions: () => closed && Promise.resolve(closed) }
  const quality = await measuredQuality(machine.call(), media)
  return quality && [quality.caller?.packets, quality.callee?.packets]
}

test.each<[string, Parameters<typeof measured>[0], unknown]>([
  ['the caller has offered', (a, b) => [{ [a]: 10, [b]: 20 }], [10, 20]],
  ['the callee has offered', (a, b) => [{ [b]: 20, [a]: 10 }], [10, 20]],
  [
    'each is judged by where most was heard from it',
    (a, b) => [
      { [a]: 10, [b]: 20 },
      { [a]: 500, 'other/1': 490 },
    ],
    [500, 490],
  ],
  ['without a session nothing is known', () => undefined, undefined],
  ['without an answer of the relay nothing is known', () => [{}], undefined],
])('what relays have measured is told for each leg: %s', async (_, sessions, expected) => {
  expect(await measured(sessions)).toEqual(expected)
})
