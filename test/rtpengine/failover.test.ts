/**
 * A relay is lost in mid-call: signalling goes on, and new calls use the other one. That this takes
 * less than a second is shown in virtual time, by test/engine/media/relay.
 */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { paying, seedFor } from '../sipp/call-case.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { openPeer, startWithNode, type WithNode } from '../support/scripted-node.ts'
import { sdp, type Leg, type SipPeer } from '../support/sip-peer.ts'
import { eventually } from '../support/waiting.ts'

let engines: readonly RtpEngine[]
let platform: WithNode

beforeEach(async () => {
  engines = await Promise.all([RtpEngine.start(), RtpEngine.start()])
  platform = await startWithNode(seedFor, {
    RTPENGINE: engines.map(({ setting }) => setting).join(),
    MEDIA_POLICY: 'anchor',
  })
})

afterEach(() => Promise.all(engines.map((engine) => engine.stop())))

interface AnchoredCall {
  readonly caller: SipPeer
  readonly leg: Leg
  readonly nodeLeg: Leg
}

const mediaPort = (body: string): number => Number(/^m=audio (\d+) /m.exec(body)?.[1])

/** The ports that the parties name in their own descriptions; those of relays are above 61000. */
const partyPort = 4_000

async function place(number = 0): Promise<AnchoredCall> {
  const { node, tollgate } = platform
  const caller = await openPeer(tollgate)
  const plain = caller.leg(`sip:1800555${1_000 + number}@127.0.0.1:${tollgate.sipPort}`)
  const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${paying}@`) }
  caller.request('INVITE', leg, { body: sdp('caller', partyPort) })
  const invite = await node.next(
    ({ method, uri }) => method === 'INVITE' && uri.startsWith(`sip:1800555${1_000 + number}@`),
  )
  expect(mediaPort(invite.body)).toBeGreaterThanOrEqual(61_000)
  node.reply(invite, 200, { tag: `b${number}`, body: sdp('node', partyPort) })
  const answer = await caller.next('200 INVITE')
  expect(mediaPort(answer.body)).toBeGreaterThanOrEqual(61_000)
  caller.learn(leg, answer)
  caller.request('ACK', leg)
  await node.next('ACK')
  return { caller, leg, nodeLeg: node.calledLeg(invite, `b${number}`) }
}

/** `from` changes the session; the other party hears of it, and agrees. */
async function reinvite(from: SipPeer, leg: Leg, to: SipPeer): Promise<void> {
  from.request('INVITE', leg, { body: sdp('changed', partyPort).replace('sendrecv', 'sendonly') })
  const offer = await to.next('INVITE')
  expect(mediaPort(offer.body)).toBeGreaterThanOrEqual(61_000)
  to.reply(offer, 200, { body: sdp('agreed', partyPort).replace('sendrecv', 'recvonly') })
  expect(mediaPort((await from.next('200 INVITE')).body)).toBeGreaterThanOrEqual(61_000)
  from.request('ACK', leg)
  await to.next('ACK')
}

async function hangUp({ caller, leg }: AnchoredCall): Promise<void> {
  const { node } = platform
  caller.request('BYE', leg)
  node.reply(await node.next('BYE'), 200)
  await caller.next('200 BYE')
}

/** The relay that has the session of the only call, and the other one. */
async function relaysOfCall(): Promise<readonly [RtpEngine, RtpEngine]> {
  const [one, other] = engines
  if (one === undefined || other === undefined) throw new Error('two relays')
  return (await one.sessions()).length > 0 ? [one, other] : [other, one]
}

test('a relay is killed in mid-call: the call goes on, and the next ones use the other relay', async () => {
  const { node, tollgate } = platform
  const call = await place()
  const [used, other] = await relaysOfCall()
  await used.kill()
  const next = [await place(1), await place(2)]
  expect(await other.sessions()).toHaveLength(2)
  await reinvite(call.caller, call.leg, node)
  await reinvite(node, call.nodeLeg, call.caller)
  expect(await other.sessions()).toHaveLength(3)
  for (const each of [call, ...next]) await hangUp(each)
  for (const each of await tollgate.waitForCalls(3)) expect(each.disposition).toBe('ANSWERED')
  await eventually(async () => expect(await other.sessions()).toEqual([]))
  expect(tollgate.faults).toEqual([])
})

test('without a relay that answers an anchored call is refused, and with the first one it is placed again', async () => {
  const { tollgate } = platform
  for (const engine of engines) await engine.kill()
  const caller = await openPeer(tollgate)
  const plain = caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`)
  const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${paying}@`) }
  caller.request('INVITE', leg, { body: sdp('caller', partyPort) })
  expect((await caller.next(503)).startLine).toBe('SIP/2.0 503 Media Relay Unavailable')
  caller.request('ACK', leg)
  await engines[0]?.restart()
  await eventually(() =>
    expect(
      tollgate.log.filter((line) => line.includes('media relay answers')).length,
    ).toBeGreaterThan(2),
  )
  await hangUp(await place())
})
