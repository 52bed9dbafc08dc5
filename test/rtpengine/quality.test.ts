/** Real phones through a real relay: what their calls are worth, and what becomes of them without media. */
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { Baresip } from '../support/baresip.ts'
import { LOSSY_ADDRESS, LossyLink } from '../support/lossy-link.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import type { AtEnd } from '../support/scripted-node.ts'
import { watchStandstill } from '../support/standstill.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { domain, passwordOf, twoPhones } from '../support/two-phones.ts'

function stoppedLater<T extends { stop(): Promise<void> }>(atEnd: AtEnd, started: T): T {
  atEnd(() => started.stop())
  return started
}

/** Phone 101 talks to 102 through the relay. */
async function talkThrough(atEnd: AtEnd, relay: RtpEngine) {
  const settings = { MEDIA_POLICY: 'anchor', MEDIA_TIMEOUT_SECONDS: '5' }
  const tollgate = stoppedLater(
    atEnd,
    await TollgateProcess.start(twoPhones, { ...settings, RTPENGINE: relay.setting }),
  )
  const start = async (user: string): Promise<Baresip> =>
    stoppedLater(
      atEnd,
      await Baresip.start({ user, domain, sipPort: tollgate.sipPort, password: passwordOf(user) }),
    )
  const [caller, callee] = [await start('101'), await start('102')]
  await Promise.all([caller.registered(), callee.registered()])
  await caller.command('dial', `sip:102@${domain}`)
  await Promise.all([caller.next('CALL_ESTABLISHED'), callee.next('CALL_ESTABLISHED')])
  return { tollgate, caller, callee }
}

/** baresip sends RTCP every five seconds. */
const TALK_MS = 12_000

interface Measured {
  readonly mos_score: number
  readonly mos_source: string
  readonly packet_loss_pct: number
  readonly media_quality: string
}

const measured = (tollgate: TollgateProcess): Measured | undefined =>
  tollgate.query<Measured>(
    'SELECT mos_score, mos_source, packet_loss_pct, media_quality FROM cdr',
  )[0]

/** Of both directions. */
const qualities = (record: Measured | undefined) =>
  Object.values(
    JSON.parse(String(record?.media_quality)) as Readonly<
      Record<string, { readonly mos: number; readonly packets: number }>
    >,
  )

/** Beside each other, as they wait for most of their time. */
describe.concurrent('calls through a relay', () => {
  test('a good call has a MOS above 4, measured in both directions', async ({
    onTestFinished: atEnd,
  }) => {
    const { tollgate, caller } = await talkThrough(
      atEnd,
      stoppedLater(atEnd, await RtpEngine.start()),
    )
    await delay(TALK_MS)
    await caller.command('hangup')
    await tollgate.waitForCalls(1)
    const record = measured(tollgate)
    expect(record).toMatchObject({ mos_source: 'measured', packet_loss_pct: 0 })
    expect(record?.mos_score).toBeGreaterThan(4)
    for (const direction of qualities(record)) expect(direction.packets).toBeGreaterThan(150)
  })

  test('a call in which one packet in ten of one party is lost has one below 3, of that direction', async ({
    onTestFinished: atEnd,
  }) => {
    const relay = stoppedLater(atEnd, await RtpEngine.start({ advertised: LOSSY_ADDRESS }))
    const { tollgate, caller, callee } = await talkThrough(atEnd, relay)
    const network = new LossyLink(10)
    try {
      await network.join(relay)
      await Promise.all([caller.hearsMore(), callee.hearsMore()])
      await delay(TALK_MS)
      await caller.command('hangup')
      await tollgate.waitForCalls(1)
    } finally {
      network.close()
    }
    const record = measured(tollgate)
    // Below what the relay says, which takes it that losses are concealed.
    expect(record).toMatchObject({ mos_source: 'computed' })
    const [worse, better] = qualities(record).toSorted((one, other) => one.mos - other.mos)
    expect(worse?.mos).toBeLessThan(3)
    // It lost some, too, until the network was there.
    expect(better?.mos).toBeGreaterThan(worse?.mos ?? 5)
    expect(record?.mos_score).toBe(worse?.mos)
    expect(Math.abs(Number(record?.packet_loss_pct) - 10)).toBeLessThan(3)
  })

  test('a call whose relay is killed ends by itself, and is charged until then', async ({
    onTestFinished: atEnd,
  }) => {
    const relay = stoppedLater(atEnd, await RtpEngine.start())
    const { tollgate, caller, callee } = await talkThrough(atEnd, relay)
    await Promise.all([caller.hearsMore(), callee.hearsMore()])
    const standstillMs = watchStandstill(atEnd)
    await delay(4_000)
    const killedAt = Date.now()
    await relay.kill()
    await Promise.all([caller.next('CALL_CLOSED'), callee.next('CALL_CLOSED')])
    const endedAt = Date.now()
    expect(endedAt - killedAt).toBeGreaterThan(3_500)
    await tollgate.waitForCalls(1)
    const [record] = tollgate.query<{
      readonly answer_stamp: number
      readonly end_stamp: number
      readonly billsec: number
    }>('SELECT answer_stamp, end_stamp, billsec, hangup_cause, hangup_by, denial_code FROM cdr')
    expect(record).toMatchObject({
      hangup_cause: 'MEDIA_TIMEOUT',
      hangup_by: 'system',
      denial_code: 'media_timeout',
    })
    const talkedMs = killedAt - Number(record?.answer_stamp)
    const stoodMs = standstillMs()
    expect(Math.abs(Number(record?.end_stamp) - killedAt)).toBeLessThan(1_500 + stoodMs)
    const lateSeconds = 2.5 + stoodMs / 1_000
    expect(Math.abs(Number(record?.billsec) - talkedMs / 1_000)).toBeLessThan(lateSeconds)
  })
})
