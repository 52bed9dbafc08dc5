/** Text messages between registered phones (RFC 3428), on the embedded server and on one elsewhere. */
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { DigestPhone } from '../support/digest-phone.ts'
import { freePort } from '../support/free-port.ts'
import { isOnPostgres } from '../support/on-sqlite.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { startProgram } from './program.ts'

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

/** No source is trusted: loopback represents the internet. */
const environment = { TRUSTED_SOURCES: '192.0.2.0/24' }

let tollgate: TollgateProcess
let sipPort: number

async function phone(user: string, password = `secret-${user}`): Promise<DigestPhone> {
  const place = { protocol: 'udp', address: '127.0.0.1', port: sipPort } as const
  const listener = { ...place, advertisedHost: '127.0.0.1', advertisedPort: sipPort }
  const opened = await DigestPhone.open(listener, { user, domain, password })
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

async function servedElsewhere(): Promise<void> {
  const admin = await freePort()
  sipPort = await freePort()
  const server = startProgram([
    'sip-server',
    '--listen',
    `udp/127.0.0.1:${sipPort}`,
    '--admin',
    `127.0.0.1:${admin}`,
    '--secret',
    'cymru',
  ])
  await server.line(/^ready /)
  const DRACHTIO_URL = `drachtio://:cymru@127.0.0.1:${admin}`
  tollgate = await TollgateProcess.start(seed, { ...environment, DRACHTIO_URL })
  onTestFinished(() => tollgate.stop())
}

async function servedHere(): Promise<void> {
  tollgate = await TollgateProcess.start(seed, environment)
  sipPort = tollgate.sipPort
  onTestFinished(() => tollgate.stop())
}

const embedded = ['embedded', servedHere] as const
/** Not beside a database on a server. */
const elsewhere = ['elsewhere', servedElsewhere] as const

describe.each(isOnPostgres ? [embedded] : [embedded, elsewhere])('%s', (_name, start) => {
  beforeEach(start)

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

  test('a message over 1300 bytes, or one too many, is refused', async () => {
    const [sender, receiver] = [await registered('101'), await registered('102')]
    const large = await send(sender, `sip:102@${domain}`, { body: 'x'.repeat(1_300) })
    expect((await large.answer).status).toBe(513)
    let delivered = 0
    // Two are allowed again in each second that this takes.
    for (;;) {
      const { answer } = await send(sender, `sip:102@${domain}`)
      const next = await Promise.race([answer, receiver.peer.next('MESSAGE')])
      if (next.method === 'MESSAGE') {
        receiver.peer.reply(next, 200)
        expect((await answer).status).toBe(200)
        delivered += 1
        continue
      }
      expect([next.status, next.get('Retry-After')]).toEqual([480, '5'])
      break
    }
    expect(delivered).toBeGreaterThanOrEqual(20)
  })
})
