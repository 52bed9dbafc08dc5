/** What two phones hear of each other: media that no relay touches, plain and encrypted. */
import { expect, onTestFinished, test } from 'vitest'
import { Baresip, type BaresipOptions } from '../support/baresip.ts'
import { domain, passwordOf, twoPhones } from '../support/two-phones.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

async function start(tollgate: TollgateProcess, user: string, media: Partial<BaresipOptions>) {
  const { sipPort } = tollgate
  const account = { user, domain, sipPort, password: passwordOf(user) }
  const phone = await Baresip.start({ ...account, ...media })
  onTestFinished(() => phone.stop())
  await phone.registered()
  return phone
}

test.each([
  ['RTP', {}],
  ['SRTP', { mediaEncryption: 'srtp-mand' }],
] as const)('each phone hears the tone of the other one, over %s', async (_name, media) => {
  const tollgate = await TollgateProcess.start(twoPhones, { DRAIN_SECONDS: '0' })
  onTestFinished(() => tollgate.stop())
  const low = await start(tollgate, '101', { toneHz: 500, ...media })
  const high = await start(tollgate, '102', { toneHz: 800, ...media })
  await low.command('dial', `sip:102@${domain}`)
  await low.next('CALL_ESTABLISHED')
  await Promise.all([low.hears(800), high.hears(500)])
  await Promise.all([low.hearsNone(500), high.hearsNone(800)])
  await low.command('hangup')
  await tollgate.waitForCalls(1)
  expect(tollgate.faults).toEqual([])
})
