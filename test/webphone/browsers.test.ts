/**
 * Two phones in browsers: JsSIP in Chromium over WSS. Their media is their own, DTLS-SRTP with ICE.
 */
import { expect, onTestFinished, test } from 'vitest'
import { BrowserPhone } from '../support/browser-phone.ts'
import { Authority, loopbackNames } from '../support/certificates.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { domain, passwordOf, twoPhones } from '../support/two-phones.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

const authority = new Authority(temporaryFolder())
const { certFile, keyFile } = authority.sign('tollgate', ...loopbackNames)

async function start({ wssPort }: TollgateProcess, user: string, toneHz: number) {
  const phone = await BrowserPhone.start({ toneHz })
  onTestFinished(() => phone.stop())
  const server = `wss://127.0.0.1:${wssPort}`
  await phone.register({ server, user, domain, password: passwordOf(user) })
  return phone
}

test('a browser calls another one, holds and resumes, and each hears the other', async () => {
  const tollgate = await TollgateProcess.start(twoPhones, {
    SIP_TLS_CERT: certFile,
    SIP_TLS_KEY: keyFile,
    DRAIN_SECONDS: '0',
  })
  onTestFinished(() => tollgate.stop())
  const [low, high] = await Promise.all([start(tollgate, '101', 500), start(tollgate, '102', 800)])
  await Promise.all([low.call(`sip:102@${domain}`), high.answer()])
  await Promise.all([low.hears(800), high.hears(500)])
  expect(await low.statistics()).toMatchObject({ dtlsState: 'connected', codec: 'audio/opus' })
  await low.hold()
  await high.hearsNone(500)
  await low.resume()
  await high.hears(500)
  await high.hangUp()
  await low.over()
  expect(await tollgate.waitForCalls(1)).toMatchObject([{ disposition: 'ANSWERED' }])
  expect(tollgate.faults).toEqual([])
})
