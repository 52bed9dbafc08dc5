/** Text messages between registered phones (RFC 3428). */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { DigestPhone } from '../support/digest-phone.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

const domain = 'acme.example'
const seed = {
  tenants: [
    { slug: 'acme', domains: [domain] },
    { slug: 'other', domains: ['other.example'] },
  ],
  extensions: [
    ...['101', '102', '103'].map((extension) => ({ tenant: 'acme', extension, domain })),
    { tenant: 'other', extension: '102', domain: 'other.example' },
  ].map((each) => ({
    ...each,
    password: `secret-${each.extension}`,
    display_name: `Phone ${each.extension}`,
  })),
}

let tollgate: TollgateProcess
beforeAll(async () => {
  // Loopback represents the internet.
  tollgate = await TollgateProcess.start(seed, { TRUSTED_SOURCES: '192.0.2.0/24' })
})
afterAll(() => tollgate.stop())

async function phone(user: string, password = `secret-${user}`): Promise<DigestPhone> {
  const opened = await DigestPhone.open(tollgate.listener(), { user, domain, password })
  onTestFinished(() => opened.close())
  return opened
}

async function registered(user: string): Promise<DigestPhone> {
  const opened = await phone(user)
  expect((await opened.signOn()).status).toBe(200)
  return opened
}

interface Text {
  readonly body?: string
  readonly headers?: readonly string[]
  /** Instead of its own. */
  readonly from?: string
}

let lastTag = 0

/** Sends it with password, once challenged; the leg in which its answer comes. */
async function send(sender: DigestPhone, uri: string, text: Text = {}) {
  const { body = 'hello', headers = [], from = `sip:${sender.account.user}@${domain}` } = text
  const leg = { ...sender.peer.leg(uri), from: `<${from}>;tag=m${(lastTag += 1)}`, to: `<${uri}>` }
  const content = { body, headers, contentType: 'text/plain' }
  sender.peer.request('MESSAGE', leg, content)
  const challenge = await sender.answerTo(leg)
  if (challenge.status !== 407) return { answer: Promise.resolve(challenge) }
  sender.learn(challenge)
  const credentials = `Proxy-Authorization: ${sender.credentials('MESSAGE')}`
  sender.peer.request('MESSAGE', leg, { ...content, headers: [...headers, credentials] })
  return { answer: sender.answerTo(leg) }
}

const statusOf = async (sender: DigestPhone, uri: string, text?: Text): Promise<number> =>
  (await (await send(sender, uri, text)).answer).status

test('a message reaches all phones of an extension of the tenant; the first that takes it counts', async () => {
  const [sender, one, two] = [
    await registered('101'),
    await registered('102'),
    await registered('102'),
  ]
  const sent = await send(sender, `sip:102@${domain}`, {
    body: 'Grüße',
    headers: ['X-Internal: 10.9.9.9', 'User-Agent: secret', 'Subject: lunch'],
  })
  const [first, second] = [await one.peer.next('MESSAGE'), await two.peer.next('MESSAGE')]
  for (const message of [first, second]) {
    expect(message.body).toBe('Grüße')
    expect(message.get('From')).toMatch(/^"?Phone 101"? *<sip:101@acme\.example>;tag=/)
    expect(message.get('To')).toBe(`<sip:102@${domain}>`)
    expect([message.get('Content-Type'), message.get('Subject')]).toEqual(['text/plain', 'lunch'])
    expect(message.text).not.toMatch(/secret|10\.9\.9\.9|digest/i)
  }
  one.peer.reply(first, 486)
  two.peer.reply(second, 200)
  expect((await sent.answer).status).toBe(200)
  // It is not charged: there is no call.
  expect(tollgate.calls()).toEqual([])
})

test('who sends it has shown a password, and nothing leaves the tenant', async () => {
  const sender = await registered('101')
  const victim = await registered('102')
  const stranger = await phone('101', 'guess')
  const statuses = [
    // A password of 101 says nothing of 103, and a guess nothing at all.
    await statusOf(sender, `sip:102@${domain}`, { from: `sip:103@${domain}` }),
    await statusOf(stranger, `sip:102@${domain}`),
    await statusOf(sender, `sip:102@${domain}`, { from: 'sip:102@elsewhere.example' }),
    // Other tenants, outside numbers, foreign domains, unknown users.
    await statusOf(sender, 'sip:102@other.example'),
    await statusOf(sender, `sip:18005551212@${domain}`),
    await statusOf(sender, 'sip:102@elsewhere.example'),
    await statusOf(sender, `sip:199@${domain}`),
    // An extension without a phone.
    await statusOf(sender, `sip:103@${domain}`),
  ]
  expect(statuses).toEqual([403, 407, 403, 404, 404, 404, 404, 480])
  expect(victim.peer.inbox.filter(({ method }) => method === 'MESSAGE')).toEqual([])
  expect(tollgate.calls()).toEqual([])
})
