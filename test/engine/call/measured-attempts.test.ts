/** What counts for the floors of a route: attempts at its carrier, and the talk of their calls. */
import { afterEach, expect, test } from 'vitest'
import type { HuntingRules } from '../../../schema/contracts/hunting.ts'
import { usualHunting } from '../../../schema/rules/hunting.ts'
import { type CallRig, startCallRig } from '../../support/call-rig.ts'
import { gateway } from '../../support/gateway.ts'
import { sdp } from '../../support/sip-peer.ts'
import { acknowledge, hangUp } from './steps.ts'

let rig: CallRig

afterEach(() => rig.stop())

/** A call to two gateways; routes 7 and 8 are measured. */
async function start(
  measured: readonly (number | undefined)[] = [7, 8],
  redirects: HuntingRules['redirects'] = 'refuse',
) {
  rig = await startCallRig()
  const caller = await rig.caller()
  const first = await rig.caller()
  const second = await rig.caller()
  const gateways = [first, second].map(({ port }, at) => {
    const measuredBy = measured[at]
    const uri = `sip:127.0.0.1:${port};transport=udp`
    const hunting = { ...usualHunting, redirects }
    return gateway({
      ...{ uri, port, hunting, gatewayId: at + 1 },
      ...(measuredBy !== undefined && { measuredBy }),
    })
  })
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1 }
  rig.answers.outbound = { kind: 'gateways', isEmergency: false, gateways }
  const leg = caller.leg(rig.uri('4940100'))
  caller.request('INVITE', leg, { body: sdp('offer') })
  return { caller, first, second, leg, invite: await first.next('INVITE') }
}

test.each([486, 404, 603, 503, 302])('a %i is an attempt without an answer', async (status) => {
  const { caller, first, second, invite } = await start()
  first.reply(invite, status, { tag: 'b' })
  if (status === 503) second.reply(await second.next('INVITE'), 486, { tag: 'c' })
  await caller.next((message) => message.status >= 300)
  await rig.record()
  const failed = [7, false, null]
  expect(rig.measured).toEqual(status === 503 ? [failed, [8, false, null]] : [failed])
})

test('a redirection that is followed is none: the call is measured where it leads', async () => {
  const { caller, first, second, invite } = await start([7, 8], 'follow')
  rig.answers.redirected = (_, { host, port }) =>
    gateway({ gatewayId: 2, uri: `sip:${host}:${port};transport=udp`, port, measuredBy: 9 })
  const headers = [`Contact: <sip:4940100@127.0.0.1:${second.port}>`]
  first.reply(invite, 302, { tag: 'b', headers })
  second.reply(await second.next('INVITE'), 486, { tag: 'c' })
  await caller.next('486 INVITE')
  await rig.record()
  expect(rig.measured).toEqual([[9, false, null]])
})

test('a redirection that leads nowhere is one', async () => {
  const { caller, first, second, invite } = await start([7, 8], 'follow')
  rig.answers.redirected = () => 'unknown_gateway'
  first.reply(invite, 302, { tag: 'b', headers: ['Contact: <sip:4940100@192.0.2.9>'] })
  second.reply(await second.next('INVITE'), 486, { tag: 'c' })
  await caller.next('486 INVITE')
  await rig.record()
  expect(rig.measured).toEqual([
    [7, false, null],
    [8, false, null],
  ])
})

test('silence is one, too, and the delay lasts until the first ringing', async () => {
  const { caller, second, leg } = await start()
  await rig.advance(1_600)
  // It has been called for 100 ms.
  const invite = await second.next('INVITE')
  await rig.advance(700)
  second.reply(invite, 180, { tag: 'c' })
  await caller.next(180)
  await rig.advance(5_000)
  second.reply(invite, 200, { tag: 'c', body: sdp('answer') })
  await acknowledge(caller, leg)
  await rig.advance(30_000)
  await hangUp(caller, leg, second)
  await rig.record()
  expect(rig.measured).toEqual([
    [7, false, null],
    [8, true, 800],
    [8, 'talked', 30_000],
  ])
})

test('a caller that gives up counts (E.425); a hang-up of ours does not', async () => {
  const { caller, first, leg, invite } = await start()
  first.reply(invite, 180, { tag: 'b' })
  await caller.next(180)
  caller.request('CANCEL', leg)
  await rig.record()
  expect(rig.measured).toEqual([[7, false, 0]])
})

test('a call that we end while it rings says nothing about its carrier', async () => {
  const { caller, first, invite } = await start()
  first.reply(invite, 180, { tag: 'b' })
  await caller.next(180)
  rig.calls.hangUp('uuid-1', 16)
  await rig.record()
  expect(rig.measured).toEqual([])
})

test('without floors nothing is counted', async () => {
  const { caller, first, invite, leg } = await start([undefined, undefined])
  first.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg)
  await hangUp(caller, leg, first)
  await rig.record()
  expect(rig.measured.filter(([route]) => route !== undefined)).toEqual([])
})
