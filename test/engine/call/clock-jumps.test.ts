/** The machine's clock is set, by hand or by NTP, during calls. */
import { afterEach, expect, test } from 'vitest'
import { type CallRig, granted, startCallRig, startedAt, talk } from '../../support/call-rig.ts'
import { dial } from './steps.ts'

let rig: CallRig

afterEach(() => rig.stop())

const hour = 3_600_000
const jumps = [hour, -hour, 30 * 24 * hour, -30_000] as const

test.each(jumps)('the clock is set by %i ms in a call of 5 s: 5 s are charged', async (jumpMs) => {
  rig = await startCallRig()
  const { caller, leg } = await talk(rig)
  await rig.advance(2_000)
  rig.time.jump(jumpMs)
  await rig.advance(3_000)
  caller.request('BYE', leg)
  expect(await rig.record()).toMatchObject({
    billsec: 5,
    startedAt,
    answeredAt: startedAt,
    endedAt: startedAt + 5_000,
    attempts: [{ startedAt, endedAt: startedAt }],
  })
})

test.each(jumps)(
  'the clock is set by %i ms: a grant lasts as long as it was given',
  async (jumpMs) => {
    rig = await startCallRig()
    rig.answers.authorize = () => Promise.resolve(granted(20))
    const { node } = await talk(rig)
    rig.time.jump(jumpMs)
    await rig.advance(19_900)
    expect(rig.calls.list()).toMatchObject([{ state: 'ACTIVE' }])
    await rig.advance(200)
    expect((await node.next('BYE')).get('Reason')).toContain('Insufficient Funds')
    expect(await rig.record()).toMatchObject({ billsec: 20, hangupBy: 'system' })
  },
)

test.each(jumps)(
  'a call that begins after the clock was set by %i ms has its stamps',
  async (jumpMs) => {
    rig = await startCallRig()
    rig.time.jump(jumpMs)
    const { caller, leg } = await talk(rig)
    const present = startedAt + jumpMs
    expect(rig.opened).toMatchObject([{ startedAt: present, answeredAt: present }])
    expect(rig.asked).toMatchObject([{ startedAt: present }])
    await rig.advance(1_000)
    const { startedAt: begun = 0, stampOffsetMs = 0 } = rig.calls.find('uuid-1') ?? {}
    expect(begun + stampOffsetMs).toBe(present)
    caller.request('BYE', leg)
    expect(await rig.record()).toMatchObject({ startedAt: present, endedAt: present + 1_000 })
  },
)

test.each(jumps)(
  'the clock is set by %i ms while it rings: it rings as long as it may',
  async (jumpMs) => {
    rig = await startCallRig()
    const { caller, node, invite } = await dial(rig)
    node.reply(invite, 180, { tag: 'b' })
    await caller.next(180)
    rig.time.jump(jumpMs)
    await rig.advance(179_900)
    expect(rig.calls.list()).toMatchObject([{ state: 'RINGING' }])
    await rig.advance(200)
    expect(await rig.record()).toMatchObject({ disposition: 'NO ANSWER', billsec: 0 })
  },
)
