/** OPTIONS that take the short way are on the wire what any other OPTIONS is. */
import { expect, test } from 'vitest'
import type { Flow } from '../../../../../engine/sip-server/flow.ts'
import {
  callee,
  header,
  responseOf,
  sip,
  udp,
  VirtualServer,
} from '../../../../support/sip-core.ts'

const target = 'sip:192.0.2.20:5070;transport=udp'
const node: Flow = { ...callee, port: 5070 }

/** A ping under way, and what was sent for it. */
function begin() {
  const server = new VirtualServer()
  const answers = server.ping(target) ?? []
  const [{ text, flow } = { text: '', flow: node }] = server.takeSent()
  return { server, answers, text, flow }
}

const isOver = { clientTransactions: 0, deadlines: 0, outboundRequests: 0 }

/** When and how an ordinary OPTIONS is repeated, if its peer sends nothing but `responses`. */
function copiesOf(send: (server: VirtualServer) => void, provisional = false): readonly number[] {
  const server = new VirtualServer()
  const from = server.now
  send(server)
  server.advance(100)
  if (provisional) server.receive(responseOf(server.sent[0]?.text ?? '', 100), node)
  server.advance(40_000)
  expect(server.core.stats()).toMatchObject(isOver)
  return server.sent.map(({ at }) => at - from)
}

const ordinary = (server: VirtualServer): void => {
  server.command(`sip||\r\n${sip(`OPTIONS ${target} SIP/2.0`, [])}`)
}
const ping = (server: VirtualServer): void => void server.ping(target)

test('it is the same request as any other, with a branch and a Call-ID of its own', () => {
  const server = new VirtualServer()
  ordinary(server)
  ping(server)
  ping(server)
  const [other = '', one = '', two = ''] = server.sent.map(({ text }) => text)
  const own = /(branch=z9hG4bK|;tag=|Call-ID: )[\w-]+/g
  expect(one.replace(own, '$1')).toBe(other.replace(own, '$1'))
  for (const name of ['Via', 'Call-ID']) expect(header(one, name)).not.toBe(header(two, name))
  expect(server.sent.map(({ flow }) => [flow.address, flow.port, flow.listener])).toEqual(
    [1, 2, 3].map(() => ['192.0.2.20', 5070, udp]),
  )
})

test('its answer is heard once, whatever its status, and nothing is left of it', () => {
  for (const status of [200, 302, 486, 503, 604]) {
    const { server, answers, text, flow } = begin()
    server.receive(responseOf(text, status), flow)
    server.receive(responseOf(text, 200), flow)
    expect(answers).toEqual([{ status, reason: 'Reason' }])
    expect(server.core.stats()).toMatchObject(isOver)
    server.advance(40_000)
    expect([server.sent, answers.length]).toEqual([[], 1])
    expect(server.core.traffic.responsesIn.get('OPTIONS')?.get(status)).toBeGreaterThan(0)
  }
})

test('what does not answer it is not heard: a guessed branch, another method, a response with parts missing', () => {
  const { server, answers, text, flow } = begin()
  const usual = responseOf(text, 200)
  const others = [
    usual.replace(/branch=z9hG4bKping-\w+/, 'branch=z9hG4bKping-guess'),
    usual.replace('CSeq: 1 OPTIONS', 'CSeq: 1 MESSAGE'),
    ...['Via', 'From', 'To', 'Call-ID', 'CSeq'].map((name) =>
      usual.replace(new RegExp(`\r\n${name}: .*`), ''),
    ),
    usual.replace('\r\n\r\n', '\r\n'),
    usual.replace('SIP/2.0 200', 'SIP/2.0 700'),
  ]
  for (const other of others) server.receive(other, flow)
  expect(answers).toEqual([])
  server.receive(usual, flow)
  expect(answers).toHaveLength(1)
})

test('without an answer it is repeated when any other request is, and ends with 408 when that does', () => {
  const copies = copiesOf(ping)
  expect(copies.slice(0, 5)).toEqual([0, 500, 1_500, 3_500, 7_500])
  expect(copies).toEqual(copiesOf(ordinary))
  const { server, answers } = begin()
  server.advance(31_999)
  expect(answers).toEqual([])
  server.advance(1)
  expect(answers).toEqual([{ status: 408, reason: 'Request Timeout' }])
})
