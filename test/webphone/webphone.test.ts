/** A phone in a browser: SIP.js registers over WebSocket, calls and is called. */
import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SessionState } from 'sip.js'
import { Baresip } from '../support/baresip.ts'
import { Authority, loopbackNames } from '../support/certificates.ts'
import { sharePhones, type OwnPhones } from '../support/own-phones.ts'
import { passwordOf } from '../support/two-phones.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { WebPhone } from '../support/web-phone.ts'

const authority = new Authority(temporaryFolder())
const { certFile, keyFile } = authority.sign('tollgate', ...loopbackNames)

const nextTenant = sharePhones(5, { SIP_TLS_CERT: certFile, SIP_TLS_KEY: keyFile })

let own: OwnPhones
const cleanUp: (() => unknown)[] = []

beforeEach(() => {
  own = nextTenant()
})
afterEach(async () => {
  for (const step of cleanUp.splice(0).toReversed()) await step()
})

async function webPhone(
  user: string,
  protocol: 'ws' | 'wss' = 'ws',
  password = passwordOf(user),
): Promise<WebPhone> {
  const { tollgate, domain } = own
  const port = protocol === 'ws' ? tollgate.wsPort : tollgate.wssPort
  const server = `${protocol}://localhost:${port}`
  const phone = new WebPhone({ user, password, domain, server, ca: readFileSync(authority.file) })
  cleanUp.push(() => phone.stop())
  await phone.connect()
  return phone
}

async function baresip(user: string): Promise<Baresip> {
  const { tollgate, domain } = own
  const { sipPort } = tollgate
  const phone = await Baresip.start({ user, domain, sipPort, password: passwordOf(user) })
  cleanUp.push(() => phone.stop())
  await phone.registered()
  return phone
}

test.each(['ws', 'wss'] as const)(
  'a web phone registers by %s with digest, calls a desk phone and is called by it',
  async (protocol) => {
    const web = await webPhone('101', protocol)
    await web.register()
    const desk = await baresip('102')
    expect(own.bindings()[0]).toEqual({
      source_protocol: protocol,
    })

    const outgoing = await web.call('102')
    await desk.next('CALL_ESTABLISHED')
    expect(web.heard.at(-1)).toContain('m=audio')
    await outgoing.bye()
    await desk.next('CALL_CLOSED')

    await desk.command('dial', `sip:101@${own.domain}`)
    const incoming = await web.answer()
    await desk.next('CALL_ESTABLISHED')
    await desk.command('hangup')
    await web.reaches(incoming, SessionState.Terminated)

    expect(await own.waitForCalls(2)).toMatchObject([
      { caller_id_number: '101', destination_number: '102', disposition: 'ANSWERED' },
      { caller_id_number: '102', destination_number: '101', disposition: 'ANSWERED' },
    ])
    expect(own.tollgate.faults).toEqual([])
  },
)

test('a caller who gives up is heard by the web phone, and its refusal by the caller', async () => {
  const web = await webPhone('101')
  await web.register()
  const desk = await baresip('102')
  await desk.command('dial', `sip:101@${own.domain}`)
  const first = await web.invitation()
  await desk.command('hangup')
  await web.reaches(first, SessionState.Terminated)

  await desk.command('dial', `sip:101@${own.domain}`)
  const second = await web.invitation()
  await second.reject({ statusCode: 486 })
  await desk.next('CALL_CLOSED')
  await expect.poll(async () => (await desk.next('CALL_CLOSED')).param).toMatch(/^486/)
})

test('a page that comes back is called over its new WebSocket', async () => {
  const web = await webPhone('101', 'ws')
  await web.register()
  await web.vanish()
  const again = await webPhone('101', 'ws')
  await again.register()
  const desk = await baresip('102')
  await desk.command('dial', `sip:101@${own.domain}`)
  const session = await again.answer()
  await session.bye()
  await desk.next('CALL_CLOSED')
})

test('a page that is closed in a call: the other side hangs up, and the call is recorded', async () => {
  const web = await webPhone('101', 'wss')
  await web.register()
  const desk = await baresip('102')
  await web.call('102')
  await desk.next('CALL_ESTABLISHED')
  await web.vanish()
  await desk.command('hangup')
  await desk.next('CALL_CLOSED')
  expect(await own.waitForCalls(1)).toMatchObject([
    { disposition: 'ANSWERED', hangup_by: 'callee' },
  ])
  expect(own.tollgate.faults).toEqual([])
})
