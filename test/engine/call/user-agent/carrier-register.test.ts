/** Our REGISTER at a carrier, as the carrier sees and answers it. */
import { expect, onTestFinished, test } from 'vitest'
import { registerThrough } from '../../../../engine/call/user-agent/carrier-register.ts'
import { CarrierRegistration } from '../../../../engine/trunks/carrier-registration.ts'
import { startCallRig } from '../../../support/call-rig.ts'

const stranger = '<sip:12025550100@198.51.100.99:5060>'

/**
 * Returns for how many seconds we believe to be registered. `listed` gets our Contact, without its
 * brackets.
 */
async function granted(listed: (own: string) => readonly string[]): Promise<number> {
  const rig = await startCallRig()
  onTestFinished(() => rig.stop())
  const registrar = await rig.caller()
  const registration = new CarrierRegistration(
    {
      registrars: [`sip:127.0.0.1:${registrar.port};transport=udp`],
      username: '12025550100',
      password: 'secret',
      realm: null,
      domain: null,
      expiresSeconds: 721,
    },
    {
      now: rig.time.now,
      random: () => 0.5,
      schedule: rig.time.schedule,
      send: registerThrough(rig.client, rig.time.schedule),
      newCallId: () => 'register',
      onChange: () => undefined,
    },
  )
  onTestFinished(() => registration.leave())
  registration.begin()
  const register = await registrar.next('REGISTER')
  const own = register.get('Contact').replace(/^<|>$/g, '')
  registrar.contact = 'sip:12025550100@198.51.100.98'
  registrar.reply(register, 200, { headers: listed(own) })
  await rig.until(() => registration.report().state === 'registered')
  const { expiresAt, nextAttemptAt } = registration.report()
  expect(nextAttemptAt).toBeLessThan(expiresAt ?? 0)
  return Math.round(((expiresAt ?? 0) - rig.time.now()) / 1_000)
}

test.each([
  ['behind', (own: string) => [`Contact: ${stranger};expires=3400, <${own}>;expires=60`]],
  ['before', (own: string) => [`Contact: <${own}>;expires=60, ${stranger};expires=3400`]],
  [
    'on a line of its own',
    (own: string) => [`Contact: ${stranger};expires=5`, `m: <${own}>;expires=60`],
  ],
  ['without brackets', (own: string) => [`Contact: ${stranger};expires=5,${own};expires=60`]],
])(
  'of several bindings that a registrar lists, ours counts, as it was sent: %s those of others',
  async (_place, listed) => {
    expect(await granted(listed)).toBe(60)
  },
)

test('when a NAT has rewritten our binding, the one that ends first counts', async () => {
  const rewritten = '<sip:12025550100@203.0.113.99:1024>;expires=60'
  expect(await granted(() => [`Contact: ${stranger};expires=3400, ${rewritten}`])).toBe(60)
})

test('a registrar does not grant more than was asked for', async () => {
  expect(await granted((own) => [`Contact: <${own}>;expires=3400`])).toBe(721)
})
