/**
 * A phone in a browser (DTLS-SRTP, ICE) and a desk phone on plain RTP: the relay speaks with each
 * as it can.
 */
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { Baresip } from '../support/baresip.ts'
import { BrowserPhone } from '../support/browser-phone.ts'
import { Authority, loopbackNames } from '../support/certificates.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { domain, passwordOf, twoPhones } from '../support/two-phones.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

const authority = new Authority(temporaryFolder())
const { certFile, keyFile } = authority.sign('tollgate', ...loopbackNames)

let relay: RtpEngine
let tollgate: TollgateProcess
let desk: Baresip
let browser: BrowserPhone

beforeEach(async () => {
  relay = await RtpEngine.start()
  onTestFinished(() => relay.stop())
  tollgate = await TollgateProcess.start(twoPhones, {
    SIP_TLS_CERT: certFile,
    SIP_TLS_KEY: keyFile,
    DRAIN_SECONDS: '0',
    RTPENGINE: relay.setting,
  })
  onTestFinished(() => tollgate.stop())
  const password = passwordOf('102')
  const { sipPort, wssPort } = tollgate
  ;[desk, browser] = await Promise.all([
    Baresip.start({ user: '102', domain, sipPort, password, toneHz: 800 }),
    BrowserPhone.start({ toneHz: 500 }),
  ])
  onTestFinished(() => desk.stop())
  onTestFinished(() => browser.stop())
  const server = `wss://127.0.0.1:${wssPort}`
  await browser.register({ server, user: '101', domain, password: passwordOf('101') })
  await desk.registered()
})

const talk = (): Promise<unknown> => Promise.all([desk.hears(500), browser.hears(800)])

/** Since its media has changed direction the desk phone only counts. */
const talksOn = (): Promise<unknown> => Promise.all([desk.hearsMore(), browser.hears(800)])

test('a browser calls a desk phone, holds and resumes, sends digits, and hangs up; it is called back', async () => {
  await browser.call(`sip:102@${domain}`)
  await desk.next('CALL_ESTABLISHED')
  await talk()
  expect(await browser.statistics()).toMatchObject({ dtlsState: 'connected' })

  await browser.hold()
  await desk.hearsNone(500)
  await browser.hearsNone(800)
  await browser.resume()
  await talksOn()

  await browser.sendDtmf('5', 'RFC2833')
  expect(await desk.next('CALL_DTMF_START')).toMatchObject({ param: '5' })
  await browser.sendDtmf('7', 'INFO')
  expect(await desk.next('CALL_DTMF_START')).toMatchObject({ param: '7' })
  await talksOn()

  await browser.hangUp()
  await desk.next('CALL_CLOSED')
  await desk.command('dial', `sip:101@${domain}`)
  await browser.answer()
  await desk.next('CALL_ESTABLISHED')
  await talksOn()
  await desk.command('hangup')
  await browser.over()
  expect(await tollgate.waitForCalls(2)).toMatchObject([
    { caller_id_number: '101', disposition: 'ANSWERED' },
    { caller_id_number: '102', disposition: 'ANSWERED' },
  ])
  await relay.idle()
  expect(tollgate.faults).toEqual([])
})
