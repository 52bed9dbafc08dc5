/**
 * Display names that break the grammar, in every method and by every transport (RFC 4475 §3.1.2.6).
 */
import { expect, test } from 'vitest'
import { caller, sdp, sip, tcpCaller, VirtualServer } from '../../../../support/sip-core.ts'

const names = [
  '""unknown"" ',
  '"unterminated ',
  '"a\\" ',
  '" ',
  '"""',
  '"A" Smith ',
  'Doe, Jane ',
  'jane@home ',
  'Sales: 4; x ',
  'J. "Jay" Doe\t',
]

/** A request that names its sender so, in the header lines of its transport. */
function requestBy(name: string, method: string, protocol: 'UDP' | 'TCP', from = 'From'): string {
  return sip(
    `${method} sip:bob@198.51.100.10 SIP/2.0`,
    [
      `Via: SIP/2.0/${protocol} 203.0.113.7;branch=z9hG4bK1`,
      'Max-Forwards: 70',
      `${from}: ${name}<sip:+12025550123@203.0.113.7>;tag=a`,
      `t:${name}<sip:bob@198.51.100.10>`,
      'Call-ID: odd',
      `CSeq: 1 ${method}`,
      `m: ${name.includes(',') ? '' : name}<sip:203.0.113.7>`,
      ...(method === 'SUBSCRIBE' ? ['Event: x'] : []),
    ],
    method === 'INVITE' ? sdp : '',
  )
}

test.each(names.flatMap((name) => (['UDP', 'TCP'] as const).map((way) => [name, way] as const)))(
  'a call of %s by %s is taken, with its tag, and answered byte for byte',
  (name, way) => {
    const server = new VirtualServer()
    server.receive(requestBy(name, 'INVITE', way, 'f'), way === 'UDP' ? caller : tcpCaller)
    const [invite] = server.takeDelivered()
    server.takeSent()
    server.command(`sip|${invite?.transactionId ?? ''}|\r\n${sip('SIP/2.0 486 Busy Here', [])}`)
    const [answer] = server.takeSent()
    expect(answer?.text).toContain('SIP/2.0 486')
    expect(answer?.text).toContain(`\r\nFrom: ${name}<sip:+12025550123@203.0.113.7>;tag=a\r\n`)
    expect(answer?.text).toContain(`\r\nTo: ${name}<sip:bob@198.51.100.10>;tag=`)
  },
)

test.each(['OPTIONS', 'MESSAGE', 'SUBSCRIBE', 'INFO'])('so is %s', (method) => {
  const taken = names.map((name) => {
    const server = new VirtualServer()
    server.receive(requestBy(name, method, 'UDP'))
    return [name, server.takeDelivered().length]
  })
  expect(taken).toEqual(names.map((name) => [name, 1]))
})

test('a dialog that began with such a name knows its peer by the tag', () => {
  const server = new VirtualServer()
  server.receive(requestBy('""unknown"" ', 'INVITE', 'UDP'))
  const [invite] = server.takeDelivered()
  const ok = sip('SIP/2.0 200 OK', [], sdp)
  server.command(`sip|${invite?.transactionId ?? ''}|\r\n${ok}`)
  const to = /\r\nTo: (.*)\r\n/.exec(server.takeSent().at(-1)?.text ?? '')?.[1] ?? ''
  const lines = (method: string) => [
    `Via: SIP/2.0/UDP 203.0.113.7;branch=z9hG4bK-${method}`,
    'From: <sip:+12025550123@203.0.113.7>;tag=a',
    `To: ${to}`,
    'Call-ID: odd',
    `CSeq: ${method === 'BYE' ? 2 : 1} ${method}`,
  ]
  server.receive(sip('ACK sip:198.51.100.10 SIP/2.0', lines('ACK')))
  server.takeDelivered()
  server.receive(sip('BYE sip:198.51.100.10 SIP/2.0', lines('BYE')))
  expect(server.takeDelivered()).toHaveLength(1)
  expect(server.core.stats()).toMatchObject({ dialogs: 0 })
})
