/**
 * Digits between a party that sends RFC 4733 events and one that speaks SIP INFO, through a real
 * relay.
 */
import { expect, onTestFinished, test } from 'vitest'
import { Baresip } from '../support/baresip.ts'
import { freePort } from '../support/free-port.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { domain, passwordOf, twoPhones } from '../support/two-phones.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

const seed = {
  ...twoPhones,
  extensions: twoPhones.extensions.map((row) => ({
    ...row,
    dtmf: row.extension === '101' ? 'rfc4733' : 'info',
  })),
}

test('events in RTP become INFO, also after a restart', async () => {
  const listen = `127.0.0.1:${await freePort()}`
  const relay = await RtpEngine.start({ words: [`--dtmf-log-dest=${listen}`] })
  onTestFinished(() => relay.stop())
  const settings = { RTPENGINE: relay.setting, MEDIA_DTMF_LISTEN: listen }
  const tollgate = await TollgateProcess.start(seed, settings, { isActivated: true })
  onTestFinished(() => tollgate.stop())
  const { sipPort } = tollgate
  const phone = async (user: '101' | '102'): Promise<Baresip> => {
    const account = { user, domain, sipPort, password: passwordOf(user) }
    const started = await Baresip.start(account)
    onTestFinished(() => started.stop())
    await started.registered()
    return started
  }
  const [rtp, info] = [await phone('101'), await phone('102')]
  await rtp.command('dial', `sip:102@${domain}`)
  await rtp.next('CALL_ESTABLISHED')
  await Promise.all([rtp.hears(440), info.hears(440)])
  const press = async (...digits: readonly string[]): Promise<void> => {
    for (const digit of digits) {
      await rtp.command('sndcode', digit)
      expect(await info.next('CALL_DTMF_START')).toMatchObject({ param: digit })
      await info.next('CALL_DTMF_END')
    }
  }
  await press('5', '5')
  expect(rtp.events.filter(({ type }) => type === 'CALL_DTMF_START')).toEqual([])
  await tollgate.restartInOrder()
  await press('1', '0', '*')

  await rtp.command('hangup')
  await info.next('CALL_CLOSED')
  await relay.idle()
  expect(tollgate.faults).toEqual([])
})
