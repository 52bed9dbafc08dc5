/** E-mail by SMTP, to mail servers on loopback whose certificates a test authority has signed. */
import { createServer, type Socket } from 'node:net'
import { readFileSync } from 'node:fs'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { MailSender, type MailSenderDeps } from '../../../control/alerts/mail-sender.ts'
import type { ChannelInForce, MailServer } from '../../../control/alerts/alert-rule-set.ts'
import { mailServer } from '../../support/alert-receivers.ts'
import { Authority, type Certificate } from '../../support/certificates.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const folder = temporaryFolder()
const trusted = getCACertificates('default')
let own: Certificate
let foreign: Certificate

beforeAll(() => {
  const authority = new Authority(folder, 'trusted')
  own = authority.sign('mail', 'DNS:mail.example.com')
  foreign = new Authority(folder, 'unknown').sign('foreign', 'DNS:mail.example.com')
  setDefaultCACertificates([...trusted, readFileSync(authority.file, 'utf8')])
})
afterAll(() => setDefaultCACertificates([...trusted]))

const senderWith = (deps: Partial<MailSenderDeps> = {}) =>
  new MailSender({
    resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    allowPrivate: true,
    schedule: (work, delayMs) => {
      const timer = setTimeout(work, delayMs)
      return () => clearTimeout(timer)
    },
    installation: undefined,
    ...deps,
  })

const login = { user: 'pbx', password: 'right' }

const channelOf = (server: Partial<MailServer> | undefined): ChannelInForce => ({
  id: 1,
  name: 'noc',
  tenantId: null,
  kind: 'email',
  isEnabled: true,
  recipients: ['a@example.com', 'b@example.com'],
  sender: 'pbx@example.com',
  mailServer: server && {
    ...{
      host: 'mail.example.com',
      port: 25,
      tls: 'starttls',
      user: undefined,
      password: undefined,
    },
    ...server,
  },
  url: null,
  secret: undefined,
})

const mail = { key: 'alert-1.1', subject: 'Nodes', text: 'A node is out.' }

async function serverWith(options: Parameters<typeof mailServer>[0], certificate?: Certificate) {
  const tls = certificate && {
    cert: readFileSync(certificate.certFile),
    key: readFileSync(certificate.keyFile),
    ...{ disabledCommands: [], hideSTARTTLS: false },
  }
  const server = await mailServer({ ...tls, ...options })
  onTestFinished(server.close)
  return server
}

test.each(['starttls', 'tls'] as const)(
  'with %s, a mail and its password are encrypted',
  async (tls) => {
    const server = await serverWith({ secure: tls === 'tls', authOptional: false }, own)
    const channel = channelOf({ port: server.port, tls, ...login })
    expect(await senderWith().send(channel, mail)).toEqual({ kind: 'sent' })
    expect(server.mails).toMatchObject([
      { isSecure: true, user: 'pbx', to: ['a@example.com', 'b@example.com'] },
    ])
  },
)

test.each([
  ['the server offers no encryption', undefined, 'starttls', /STARTTLS/i],
  ['nobody known has signed its certificate', 'foreign', 'starttls', /certificate/],
  ['nobody known has signed its certificate', 'foreign', 'tls', /certificate/],
] as const)('nothing is sent when %s (%s, %s)', async (_, kind, tls, reason) => {
  const certificate = kind === 'foreign' ? foreign : undefined
  const server = await serverWith(
    { secure: tls === 'tls', authMethods: ['PLAIN'], allowInsecureAuth: true },
    certificate,
  )
  const sent = await senderWith().send(channelOf({ port: server.port, tls, ...login }), mail)
  expect(sent).toMatchObject({ kind: 'failed', isFinal: false })
  expect(sent).toMatchObject({ reason: expect.stringMatching(reason) as unknown })
  expect(server.mails).toEqual([])
})

test('a certificate for another name is refused', async () => {
  const server = await serverWith({}, own)
  const channel = channelOf({ port: server.port, host: 'other.example.com', ...login })
  expect(await senderWith().send(channel, mail)).toMatchObject({ kind: 'failed' })
  expect(server.mails).toEqual([])
})

test('a wrong password is tried again later, and said without it', async () => {
  const server = await serverWith({ authOptional: false }, own)
  const channel = channelOf({ port: server.port, ...login, password: 'wrong-one' })
  const sent = await senderWith().send(channel, mail)
  expect(sent).toMatchObject({ kind: 'failed', isFinal: false })
  expect(JSON.stringify(sent)).not.toContain('wrong-one')
})

test('a receiver that is refused is named, and the others get the mail once', async () => {
  const server = await serverWith({
    onRcptTo: ({ address }, _, done) =>
      address.startsWith('b@')
        ? done(Object.assign(new Error('no such mailbox'), { responseCode: 550 }))
        : done(),
  })
  const channel = channelOf({ port: server.port, tls: 'none' })
  expect(await senderWith().send(channel, mail)).toEqual({
    kind: 'sent',
    refused: expect.stringMatching(/^not to b@example\.com: 550 no such mailbox/) as unknown,
  })
  expect(server.mails.map(({ to }) => to)).toEqual([['a@example.com']])
})

test('when all receivers are refused for good, nobody tries again', async () => {
  const server = await serverWith({
    onRcptTo: (_, __, done) =>
      done(Object.assign(new Error('no such mailbox'), { responseCode: 550 })),
  })
  const channel = channelOf({ port: server.port, tls: 'none' })
  expect(await senderWith().send(channel, mail)).toMatchObject({ kind: 'failed', isFinal: true })
})

test('a subject with line breaks adds no header', async () => {
  const server = await serverWith({})
  const subject = 'Node x\r\nBcc: evil@example.com\r\n\r\nbody'
  await senderWith().send(channelOf({ port: server.port, tls: 'none' }), { ...mail, subject })
  const [got] = server.mails
  expect(got?.to).toEqual(['a@example.com', 'b@example.com'])
  expect(got?.text.slice(0, got.text.indexOf('\r\n\r\n'))).not.toMatch(/^bcc:/im)
})

test.each([
  ['a private address', '10.0.0.1', []],
  ['this machine', '127.0.0.1', []],
  ['the addresses of a cloud', '169.254.169.254', []],
  ['this machine, written otherwise', '::ffff:127.0.0.1', []],
  ['a name of a private address', 'mail.example.com', ['10.0.0.1']],
  ['a name of two, of which one is private', 'mail.example.com', ['203.0.113.7', '127.0.0.1']],
])('a channel does not reach %s', async (_, host, addresses) => {
  const connections: Socket[] = []
  const listener = createServer((socket) => void connections.push(socket)).listen(0, '127.0.0.1')
  onTestFinished(() => void listener.close())
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  const sender = senderWith({
    allowPrivate: false,
    resolve: async () => addresses.map((address) => ({ address, family: 4 })),
  })
  expect(await sender.send(channelOf({ host, port }), mail)).toMatchObject({
    kind: 'failed',
    reason: expect.stringMatching(/private address/) as unknown,
  })
  expect(connections).toEqual([])
})

test('a tenant writes by the mail server of the installation in its name, and reads nothing of it', async () => {
  const server = await serverWith({})
  const place = { host: '127.0.0.1', port: server.port, tls: 'none' as const }
  const inside = {
    server: { ...place, user: undefined, password: undefined },
    sender: 'pbx@own.example',
  }
  const sender = senderWith({ allowPrivate: false, installation: inside })
  const channel = { ...channelOf(undefined), tenantId: 1, sender: 'boss@own.example' }
  expect(await sender.send(channel, mail)).toEqual({ kind: 'sent' })
  expect(server.mails.map(({ from }) => from)).toEqual(['pbx@own.example'])
  await server.close()
  const failed = await sender.send(channel, mail)
  expect(failed).toMatchObject({ kind: 'failed' })
  expect(JSON.stringify(failed)).not.toContain('127.0.0.1')
  const ofPlatform = await sender.send({ ...channel, tenantId: null }, mail)
  expect(JSON.stringify(ofPlatform)).toContain('127.0.0.1')
})
