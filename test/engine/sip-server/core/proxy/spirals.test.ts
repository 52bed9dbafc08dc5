/** Requests that were forwarded and come back: RFC 3261 §6 (spiral), §16.3 step 4 (loop). */
import { expect, test } from 'vitest'
import { invited } from '../../../../support/caller.ts'
import { callee, responseOf, VirtualServer } from '../../../../support/sip-core.ts'

/** What another proxy makes of a request of ours that it sends back. */
const sentBack = (text: string, uri: string, branch: string): string =>
  text
    .replace(/^INVITE \S+/, `INVITE ${uri}`)
    .replace('\r\nVia:', `\r\nVia: SIP/2.0/UDP 192.0.2.20;branch=z9hG4bK-${branch}\r\nVia:`)

test('a request that comes back for another URI is a new one; for the same it went in a circle', () => {
  const server = new VirtualServer()
  server.command(`proxy|${invited(server)}||||serial|||sip:192.0.2.20\r\n`)
  const sent = server.takeSent()[0]?.text ?? ''
  server.takeDelivered()
  server.receive(sentBack(sent, 'sip:other@198.51.100.10', 'spiral'), callee)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 100 Trying'])
  expect(server.takeDelivered()[0]?.sip).toMatch(/^INVITE sip:other@/)
  const same = 'sip:18005551212@198.51.100.10'
  server.receive(sentBack(sent, same, 'loop'), callee)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 482 Loop Detected'])
  const contact = ['Contact: <sip:b@192.0.2.20>']
  server.receive(responseOf(sent, 200, { toTag: 'b1', extra: contact }), callee)
  server.takeSent()
  server.receive(sentBack(sent, same, 'late'), callee)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 482 Loop Detected'])
})
