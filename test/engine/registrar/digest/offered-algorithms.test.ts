/** Which algorithms a phone is offered, by what is known of it. */
import { expect, test } from 'vitest'
import { challengesOf, Phone, readsSeveral, startRegistrar } from '../phone.ts'

const offeredTo = async (userAgent: string, protocol = 'udp'): Promise<(string | undefined)[]> => {
  const { ask } = await startRegistrar()
  const agent = userAgent === '' ? {} : { 'user-agent': userAgent }
  const headers = { to: '<sip:101@acme.example>', 'call-id': 'x', cseq: '1 REGISTER', ...agent }
  const source = { protocol, address: '203.0.113.9', port: 5_060 }
  const challenges = challengesOf(await ask({ method: 'REGISTER', headers, source }))
  return challenges.map((value) => /algorithm=([\w-]+)/.exec(value)?.[1])
}

// JsSIP and SIP.js take the last challenge; Sofia-SIP fails with any second one, as PJSIP and libre did.
test.each([
  'JsSIP 3.13.8',
  'SIP.js/0.21.2',
  'FreeSWITCH-mod_sofia/1.10.12',
  'sofia-sip/1.12.11',
  'PJSUA v2.10 Linux',
  'baresip v1.0.0 (x86_64/linux)',
  'baresip v3.9.0',
  'baresip v3.10.1',
])(
  'a phone that is known to fail with several challenges is offered MD5 alone: "%s"',
  async (agent) => {
    expect(await offeredTo(agent)).toEqual(['MD5'])
  },
)

test.each(['ws', 'wss'])(
  'a page is offered MD5 alone, whatever name it has given its JsSIP or SIP.js (%s)',
  async (protocol) => {
    expect(await offeredTo('Acme Web Phone 1.0', protocol)).toEqual(['MD5'])
  },
)

test.each(['Linphonec/5.1.65', 'LinphoneAndroid/5.2.0', 'baresip v3.11.0', 'PJSUA v2.14.1'])(
  'a phone that is known to read several challenges is offered SHA-256, then MD5: "%s"',
  async (agent) => {
    expect(await offeredTo(agent)).toEqual(['SHA-256', 'MD5'])
  },
)

test.each(['', 'Twinkle/1.10.2', 'Some Phone 1.0'])(
  'any other is offered MD5, then SHA-256: a client that reads one challenge only takes the first: "%s"',
  async (agent) => {
    expect(await offeredTo(agent)).toEqual(['MD5', 'SHA-256'])
  },
)

// Sofia-SIP under a name of its own gives up at two challenges, and comes again after a while.
test.each([
  { userAgent: readsSeveral, offered: [2, 2, 2, 1] },
  { userAgent: 'Acme Phone 1.0', offered: [2, 1, 1, 1] },
])(
  'a phone that leaves challenges unanswered is offered MD5 alone: "$userAgent"',
  async ({ userAgent, offered }) => {
    const phone = new Phone(await startRegistrar(), { userAgent })
    const offers: number[] = []
    for (const _ of offered) offers.push(challengesOf(await phone.send({})).length)
    expect(offers).toEqual(offered)
  },
)

test('a phone that had to ask twice goes on with MD5 alone', async () => {
  const phone = new Phone(await startRegistrar(), { userAgent: 'Acme Phone 1.0' })
  await phone.send({})
  expect((await phone.register()).status).toBe(200)
  expect(challengesOf(await phone.send({}))).toHaveLength(1)
})
