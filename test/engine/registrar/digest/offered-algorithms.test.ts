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

/**
 * JsSIP and SIP.js take the last challenge; Sofia-SIP fails with any second one, as PJSIP and libre
 * did.
 */
const failing = ['MD5']
const reading = ['SHA-256', 'MD5']
/** A client that reads one challenge only takes the first. */
const unknown = ['MD5', 'SHA-256']

test.each([
  ['JsSIP 3.13.8', failing],
  ['SIP.js/0.21.2', failing],
  ['FreeSWITCH-mod_sofia/1.10.12', failing],
  ['PJSUA v2.10 Linux', failing],
  ['baresip v3.9.0', failing],
  ['baresip v3.10.1', failing],
  ['baresip v3.11.0', reading],
  ['PJSUA v2.14.1', reading],
  ['Linphonec/5.1.65', reading],
  ['LinphoneAndroid/5.2.0', reading],
  ['', unknown],
  ['Some Phone 1.0', unknown],
])('the phone "%s" is offered %j', async (agent, offered) => {
  expect(await offeredTo(agent)).toEqual(offered)
})

test('a page is offered MD5 alone, whatever name it has given its JsSIP or SIP.js', async () => {
  for (const protocol of ['ws', 'wss'])
    expect(await offeredTo('Acme Web Phone 1.0', protocol)).toEqual(failing)
})

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
