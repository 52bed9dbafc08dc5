import { expect, test } from 'vitest'
import { VirtualServer, sdp, sip } from '../../../../support/sip-core.ts'

const invite = (lines: string[] = []) =>
  sip('INVITE sip:1@203.0.113.50 SIP/2.0', ['To: <sip:x@y>', ...lines], sdp)

test.each([
  ['a request goes to the outbound proxy', `sip|||\r\n${invite()}`, '192.0.2.99'],
  ['a next hop of its own wins', `sip|||sip:192.0.2.1\r\n${invite()}`, '192.0.2.1'],
  ['so does a Route', `sip|||\r\n${invite(['Route: <sip:192.0.2.2;lr>'])}`, '192.0.2.2'],
])('%s, its Request-URI stays', (_what, command, address) => {
  const server = new VirtualServer({ more: { outboundProxy: 'sip:192.0.2.99' } })
  server.command(command)
  const [sent] = server.takeSent()
  expect(sent?.flow.address).toBe(address)
  expect(sent?.text).toMatch(/^INVITE sip:1@203\.0\.113\.50 SIP/)
})
