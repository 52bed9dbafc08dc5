/** Real phones: they register, call each other, and do not notice a restart of Tollgate. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { Baresip, type BaresipOptions } from '../support/baresip.ts'
import { Authority, loopbackNames } from '../support/certificates.ts'
import { DigestPhone } from '../support/digest-phone.ts'
import { sharePhones, type OwnPhones } from '../support/own-phones.ts'
import { sdp } from '../support/sip-peer.ts'
import { passwordOf } from '../support/two-phones.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { eventually } from '../support/waiting.ts'

const authority = new Authority(temporaryFolder())
const { certFile, keyFile } = authority.sign('tollgate', ...loopbackNames)

const nextTenant = sharePhones(6, { SIP_TLS_CERT: certFile, SIP_TLS_KEY: keyFile })

let own: OwnPhones
let phones: Baresip[] = []

beforeEach(() => {
  own = nextTenant()
})
afterEach(async () => {
  await Promise.all(phones.map((phone) => phone.stop()))
  phones = []
})

async function phone(user: string, options: Partial<BaresipOptions> = {}): Promise<Baresip> {
  const { tollgate, domain } = own
  const sipPort = options.transport === 'tls' ? tollgate.tlsPort : tollgate.sipPort
  const started = await Baresip.start({
    user,
    domain,
    sipPort,
    password: passwordOf(user),
    caFile: authority.file,
    ...options,
  })
  phones.push(started)
  return started
}

/**
 * `caller` dials, the other side answers by itself; both hear the other's tone; the caller hangs
 * up.
 */
async function talk(caller: Baresip, number: string, callee: Baresip): Promise<void> {
  await caller.command('dial', `sip:${number}@${own.domain}`)
  await Promise.all([caller.next('CALL_ESTABLISHED'), callee.next('CALL_ESTABLISHED')])
  await Promise.all([receivesAudio(caller), receivesAudio(callee)])
  await caller.command('hangup')
  await Promise.all([caller.next('CALL_CLOSED'), callee.next('CALL_CLOSED')])
}

/** Waits until packets of the other side have come in. */
async function receivesAudio(phone: Baresip): Promise<void> {
  await eventually(async () => expect(await phone.received()).toBeGreaterThan(10))
}

test.each(['udp', 'tcp', 'tls'] as const)(
  'two phones register with digest by %s and call each other, both ways, with audio',
  async (transport) => {
    const one = await phone('101', { transport })
    const two = await phone('102', { transport })
    await Promise.all([one.registered(), two.registered()])
    await talk(one, '102', two)
    await talk(two, '101', one)
    const calls = await own.waitForCalls(2)
    expect(calls).toMatchObject([
      { caller_id_number: '101', destination_number: '102', disposition: 'ANSWERED' },
      { caller_id_number: '102', destination_number: '101', disposition: 'ANSWERED' },
    ])
  },
)

test('after a power cut of Tollgate a phone is called where it registered before', async () => {
  const [one, two] = [await phone('101'), await phone('102')]
  await Promise.all([one.registered(), two.registered()])
  const registrations = registrationsOf(two)
  await own.tollgate.kill()
  await own.tollgate.restart()
  await talk(one, '102', two)
  expect(await own.waitForCalls(1)).toMatchObject([{ disposition: 'ANSWERED' }])
  expect(registrationsOf(two)).toBe(registrations)
})

const registrationsOf = (phone: Baresip): number =>
  phone.events.filter(({ type }) => type.startsWith('REGISTER')).length

test('a phone whose connection is gone is not waited for: 480 at once', async () => {
  const [one, two] = [await phone('101'), await phone('102', { transport: 'tls' })]
  await Promise.all([one.registered(), two.registered()])
  await two.stop()
  phones = [one]
  const before = Date.now()
  await one.command('dial', `sip:102@${own.domain}`)
  expect((await one.next('CALL_CLOSED')).param).toMatch(/^480/)
  // A callee rings for 25 s; a silent one times out after 32 s.
  expect(Date.now() - before).toBeLessThan(10_000)
})

/** A place for media, which counts its packets. */
async function ear(): Promise<{ readonly port: number; readonly heard: () => number }> {
  const socket = createSocket('udp4')
  onTestFinished(() => void socket.close())
  let packets = 0
  socket.on('message', () => (packets += 1))
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return { port: socket.address().port, heard: () => packets }
}

// baresip takes each answer as it comes: first that of the 200, which repeats the first one, then
// the re-INVITE.
test('a phone talks to the fork that has answered, not to the one that only rang', async () => {
  const { tollgate, domain } = own
  const one = await phone('101')
  await one.registered()
  const account = { user: '102', domain, password: passwordOf('102') }
  const proxy = await DigestPhone.open(tollgate.listener(), account)
  onTestFinished(() => proxy.close())
  expect((await proxy.signOn()).status).toBe(200)
  const [ringing, answering] = [await ear(), await ear()]
  await one.command('dial', `sip:102@${domain}`)
  const invite = await proxy.peer.next('INVITE')
  const leg = proxy.peer.calledLeg(invite, 'c')
  proxy.peer.reply(invite, 183, { tag: 'b', body: sdp('rings', ringing.port) })
  await eventually(() => expect(ringing.heard()).toBeGreaterThan(5))
  proxy.peer.reply(invite, 200, { tag: 'c', body: sdp('answers', answering.port) })
  await proxy.peer.next('ACK')
  await eventually(() => expect(answering.heard()).toBeGreaterThan(50))
  const rung = ringing.heard()
  const before = answering.heard()
  await eventually(() => expect(answering.heard()).toBeGreaterThan(before + 20))
  expect(ringing.heard()).toBe(rung)
  proxy.peer.request('BYE', leg)
  await proxy.peer.next('200 BYE')
  expect(await own.waitForCalls(1)).toMatchObject([{ disposition: 'ANSWERED' }])
})
