/** Real phones: they register, call each other, and do not notice a restart of Tollgate. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Baresip, type BaresipOptions } from '../support/baresip.ts'
import { Authority, loopbackNames } from '../support/certificates.ts'
import { sharePhones, type OwnPhones } from '../support/own-phones.ts'
import { passwordOf } from '../support/two-phones.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { eventually } from '../support/waiting.ts'

const authority = new Authority(temporaryFolder())
const { certFile, keyFile } = authority.sign('tollgate', ...loopbackNames)

const nextTenant = sharePhones(5, { SIP_TLS_CERT: certFile, SIP_TLS_KEY: keyFile })

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

/** `caller` dials, the other side answers by itself; both hear the other's tone; the caller hangs up. */
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
