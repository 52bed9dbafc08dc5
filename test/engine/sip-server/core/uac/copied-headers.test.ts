/** A B2BUA with `proxyRequestHeaders: ['all']` hands over what the caller's request had. */
import { expect, test } from 'vitest'
import { VirtualServer, header, sdp, sip } from '../../../../support/sip-core.ts'

function invite(server: VirtualServer, lines: readonly string[], nextHop = '') {
  const text = sip(
    'INVITE sip:bob@192.0.2.20 SIP/2.0',
    ['from: sip:alice@localhost', ...lines],
    sdp,
  )
  server.command(`sip|||${nextHop}\r\n${text}`)
  const [sent] = server.takeSent()
  const [reply] = server.takeDelivered()
  return { text: sent?.text ?? '', to: sent?.flow.address, reply }
}

const own = '<sip:198.51.100.10:5060;lr>'

test.each([
  ['alone', [`route: ${own}`]],
  ['by another transport', ['Route: <sip:pbx@198.51.100.10;transport=tcp;lr>']],
  ['several times', [`route: ${own}, <sip:198.51.100.10;lr>`, `Route: ${own}`]],
])('a Route that led the caller to this server is used up: %s', (_, lines) => {
  const { text, to, reply } = invite(new VirtualServer(), lines)
  expect([to, reply?.verdict]).toEqual(['192.0.2.20', 'OK'])
  expect(text).not.toContain('Route:')
})

test('what follows it is the next hop, and goes along', () => {
  const next = '<sip:192.0.2.77;lr>'
  const { text, to } = invite(new VirtualServer(), [`route: ${own}, ${next}`, 'route: <sip:x;lr>'])
  expect([to, header(text, 'Route')]).toEqual(['192.0.2.77', next])
  expect(text.match(/^Route: .*/gm)).toEqual([`Route: ${next}`, 'Route: <sip:x;lr>'])
})
