/** A phone that takes SRTP only, and a trunk that has none. */
import { expect, onTestFinished, test } from 'vitest'
import { seedFor } from '../sipp/call-case.ts'
import { Baresip } from '../support/baresip.ts'
import { freePort } from '../support/free-port.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { domain, passwordOf } from '../support/two-phones.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

const number = '18005551212'

const seedWith = (port: number): object => ({
  ...seedFor([]),
  dispatcher: [],
  tenants: [{ slug: 'acme', domains: [domain] }],
  extensions: [
    {
      tenant: 'acme',
      extension: '101',
      password: passwordOf('101'),
      display_name: 'Phone 101',
      customer: 'paying',
      media_profile: 'srtp',
    },
  ],
  carriers: [
    {
      name: 'north',
      direction: 'out',
      media_profile: 'rtp',
      gateways: [{ host: '127.0.0.1', port }],
    },
  ],
  outbound_routes: [{ name: 'out', prefix: '', carrier: 'north' }],
})

test('an SRTP phone and an RTP trunk hear each other', async () => {
  const relay = await RtpEngine.start()
  onTestFinished(() => relay.stop())
  const gatewayPort = await freePort()
  const trunk = await Baresip.start({
    user: number,
    domain: '127.0.0.1',
    sipPort: gatewayPort,
    password: 'unused',
    gatewayPort,
    toneHz: 800,
  })
  onTestFinished(() => trunk.stop())
  const tollgate = await TollgateProcess.start(seedWith(gatewayPort), {
    DRAIN_SECONDS: '0',
    RTPENGINE: relay.setting,
  })
  onTestFinished(() => tollgate.stop())
  const { sipPort } = tollgate
  const phone = await Baresip.start({
    user: '101',
    domain,
    sipPort,
    password: passwordOf('101'),
    toneHz: 500,
    mediaEncryption: 'srtp-mand',
  })
  onTestFinished(() => phone.stop())
  await phone.registered()

  await phone.command('dial', `sip:${number}@${domain}`)
  await phone.next('CALL_ESTABLISHED')
  await Promise.all([phone.hears(800), trunk.hears(500)])
  await trunk.command('hangup')
  await phone.next('CALL_CLOSED')
  expect(await tollgate.waitForCalls(1)).toMatchObject([
    { disposition: 'ANSWERED', destination_number: number, direction: 'outbound' },
  ])
  expect(tollgate.wallet('paying').debits).toBe(1)
  await relay.idle()
  expect(tollgate.faults).toEqual([])
})
