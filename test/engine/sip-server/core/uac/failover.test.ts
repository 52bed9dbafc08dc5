/**
 * RFC 3263 §4.3: a target that fails is replaced by the next one before the application hears of
 * it.
 */
import { expect, test } from 'vitest'
import type { HopTarget } from '../../../../../engine/sip-server/flow.ts'
import {
  responseOf,
  sdp,
  sip,
  targetAt,
  VirtualServer,
  type SentMessage,
} from '../../../../support/sip-core.ts'

const first = targetAt('192.0.2.1')
const second = targetAt('192.0.2.2')
const third = targetAt('192.0.2.3')

const contact = 'Contact: <sip:bob@192.0.2.20:5060>'

/** The application sends a request to a host name that means `targets`. */
function send(
  server: VirtualServer,
  targets: readonly HopTarget[] = [first, second, third],
  method = 'INVITE',
) {
  const request = sip(`${method} sip:bob@pbx.example SIP/2.0`, ['from: sip:a@localhost'], sdp)
  server.command(`sip||\r\n${request}`)
  const [reply] = server.takeDelivered()
  server.resolved('pbx.example', targets)
  return { transactionId: reply?.transactionId ?? '', echo: reply?.sip ?? '' }
}

const branchOf = (text: string): string => /;branch=([^;\r]+)/.exec(text)?.[1] ?? ''

function answer(server: VirtualServer, to: SentMessage | undefined, status: number, tag = 'bt') {
  if (to === undefined) throw new Error('nothing was sent')
  const content = { toTag: tag, extra: [contact], body: status === 200 ? sdp : '' }
  server.receive(responseOf(to.text, status, content), to.flow)
}

const statuses = (server: VirtualServer): string[] =>
  server.takeDelivered().map(({ sip: text }) => text.split(' ')[1] ?? '')

const places = (sent: readonly SentMessage[]): string[] =>
  sent.map(({ text, flow }) => `${text.slice(0, text.indexOf(' '))} ${flow.address}`)

/** Nothing waits any more, after everything that can wait has had its time. */
function expectNothingLeft(server: VirtualServer): void {
  server.advance(400_000)
  expect(server.core.stats()).toMatchObject({
    clientTransactions: 0,
    outboundRequests: 0,
    dialogs: 0,
    deadlines: 0,
    resolving: 0,
  })
}

test('after 503 the next target gets the same request under a branch of its own', () => {
  const server = new VirtualServer()
  const { echo } = send(server)
  const [one] = server.takeSent()
  answer(server, one, 503)
  const [ack, two] = server.takeSent()
  expect(places([ack, two].filter((sent) => sent !== undefined))).toEqual([
    'ACK 192.0.2.1',
    'INVITE 192.0.2.2',
  ])
  expect(statuses(server)).toEqual([])
  const text = two?.text ?? ''
  expect(branchOf(text)).not.toBe(branchOf(one?.text ?? ''))
  expect(text.replace(branchOf(text), branchOf(echo))).toBe(echo)
  answer(server, two, 486)
  expect(statuses(server)).toEqual(['486'])
  expectNothingLeft(server)
})

test('a target that says nothing for 8·T1 is given up; any answer lets it take its time', () => {
  const silent = new VirtualServer()
  send(silent)
  silent.advance(3_999)
  expect(places(silent.takeSent())).toEqual(Array(4).fill('INVITE 192.0.2.1'))
  silent.advance(1)
  expect(places(silent.takeSent())).toEqual(['INVITE 192.0.2.2'])

  const slow = new VirtualServer()
  send(slow)
  answer(slow, slow.takeSent()[0], 100, '')
  slow.advance(60_000)
  expect(slow.takeSent()).toEqual([])
})

test('an INVITE leaves several silent targets within twice the time of the first', () => {
  const server = new VirtualServer({ timers: { inviteSilenceMs: 750 } })
  const fourth = targetAt('192.0.2.4')
  send(server, [first, second, third, fourth])
  const triedAt = new Map<string, number>()
  for (let now = 0; now < 1_500; now += 25) {
    for (const place of places(server.takeSent())) if (!triedAt.has(place)) triedAt.set(place, now)
    server.advance(25)
  }
  // The third is asked while its answer still comes in time; none is given less than half of T1.
  expect([...triedAt.values()]).toEqual([0, 750, 1_125, 1_375])
})

test('when every target has failed the application gets one final response', () => {
  const silent = new VirtualServer()
  send(silent)
  silent.advance(100_000)
  expect(statuses(silent)).toEqual(['408'])
  expectNothingLeft(silent)

  const refusing = new VirtualServer()
  send(refusing, [first, second])
  answer(refusing, refusing.takeSent()[0], 503)
  answer(refusing, refusing.takeSent()[1], 503)
  expect(statuses(refusing)).toEqual(['503'])
  expectNothingLeft(refusing)
})

test('a target that was given up and rings after all is cancelled, and its answer ended', () => {
  const server = new VirtualServer()
  send(server)
  const [one] = server.takeSent()
  server.advance(4_000)
  const two = server.takeSent().at(-1)
  answer(server, one, 180, 'late')
  expect(places(server.takeSent())).toEqual(['CANCEL 192.0.2.1'])
  answer(server, one, 200, 'late')
  expect(server.takeSent().map(({ text }) => text.split(' ')[0])).toEqual(['ACK', 'BYE'])
  answer(server, two, 200, 'wanted')
  expect(statuses(server)).toEqual(['200'])
  expect(server.core.stats()['dialogs']).toBe(1)
})

test('a silent or refusing target is tried last for 30 s, or as long as its Retry-After says', () => {
  const server = new VirtualServer()
  send(server)
  server.advance(4_000)
  answer(server, server.takeSent().at(-1), 486)
  server.takeSent()
  const firstPlace = (): string | undefined => {
    send(server)
    const [one] = server.takeSent()
    answer(server, one, 486)
    server.takeSent()
    return one?.flow.address
  }
  expect(firstPlace()).toBe('192.0.2.2')
  server.advance(30_000)
  expect(firstPlace()).toBe('192.0.2.1')

  send(server)
  const refused = server.takeSent()[0]
  if (refused)
    server.receive(responseOf(refused.text, 503, { extra: ['Retry-After: 120'] }), refused.flow)
  answer(server, server.takeSent().at(-1), 486)
  server.advance(119_000)
  server.takeSent()
  expect(firstPlace()).toBe('192.0.2.2')
  server.advance(1_000)
  expect(firstPlace()).toBe('192.0.2.1')
})

test('targets that no listener serves, and our own address, are passed over', () => {
  const server = new VirtualServer()
  const own = targetAt('198.51.100.10')
  send(server, [targetAt('192.0.2.1', 'tls'), targetAt('2001:db8::1'), own, second])
  expect(places(server.takeSent())).toEqual(['INVITE 192.0.2.2'])
  send(server, [own])
  expect(statuses(server)).toEqual(['503'])
})

test.each([
  ['sip:b@pbx.example', { port: 0, protocol: undefined, isSecure: false }],
  ['sip:b@pbx.example:5070', { port: 5070, protocol: 'udp' }],
  ['sip:b@pbx.example;transport=tcp', { port: 0, protocol: 'tcp' }],
  ['sip:b@elsewhere;maddr=pbx.example', { port: 0, protocol: undefined }],
])('what %s leaves open is asked, no more', (uri, question) => {
  const server = new VirtualServer()
  server.command(`sip||\r\n${sip(`OPTIONS ${uri} SIP/2.0`, [])}`)
  expect(server.other).toMatchObject([
    { kind: 'resolve', question: { host: 'pbx.example', supported: ['udp', 'tcp'], ...question } },
  ])
})
