/** One INVITE, one UPDATE and one offer at a time: RFC 3261 §14.2, RFC 3311 §5.2. */
import { expect, test } from 'vitest'
import { acknowledge, answered, invited } from '../../../../support/caller.ts'
import { VirtualServer, header, requestOf, sdp, sip, tagIn } from '../../../../support/sip-core.ts'

const dialogId = 'c1@203.0.113.7;from-tag=f1'

function established() {
  const server = new VirtualServer()
  const toTag = answered(server)
  acknowledge(server, toTag)
  server.takeDelivered()
  server.takeSent()
  let cseq = 1
  return {
    server,
    toTag,
    /** A request of the peer; returns the status of its final answer, '' while there is none. */
    ask: (method: string, body = '') => {
      cseq += 1
      server.receive(requestOf(method, { toTag, cseq, branch: `z9hG4bK-${cseq}`, body }))
      return (
        server
          .takeStartLines()
          .find((line) => !line.includes('100'))
          ?.slice(8, 11) ?? ''
      )
    },
    send: (method: string, body = '') => {
      server.command(`sip||${dialogId}\r\n${sip(`${method} sip:p SIP/2.0`, [], body)}`)
      return server.takeSent()[0]?.text ?? ''
    },
  }
}

const bodyOf = (offer: string): string => (offer === 'with offer' ? sdp : '')

test.each([
  ['UPDATE', 'without', 'UPDATE', 'without', '500'],
  ['UPDATE', 'with offer', 'INVITE', 'with offer', '500'],
  ['UPDATE', 'without', 'INFO', 'without', ''],
  ['INVITE', 'with offer', 'UPDATE', 'with offer', '500'],
  ['INVITE', 'with offer', 'UPDATE', 'without', ''],
  ['INVITE', 'with offer', 'INVITE', 'with offer', '500'],
])('while %s (%s) of the peer is open, its %s (%s) gets %j', (...row) => {
  const [first, firstOffer, second, secondOffer, status] = row
  const { ask } = established()
  ask(first, bodyOf(firstOffer))
  expect(ask(second, bodyOf(secondOffer))).toBe(status)
})

test.each([
  ['INVITE', 'with offer', 'INVITE', 'with offer', '491'],
  ['INVITE', 'with offer', 'UPDATE', 'with offer', '491'],
  ['INVITE', 'with offer', 'UPDATE', 'without', ''],
  ['UPDATE', 'with offer', 'INVITE', 'with offer', '491'],
  ['UPDATE', 'with offer', 'UPDATE', 'with offer', '491'],
  ['UPDATE', 'without', 'UPDATE', 'with offer', ''],
  ['UPDATE', 'without', 'INVITE', 'with offer', ''],
])('while our %s (%s) is open, the peer’s %s (%s) gets %j', (...row) => {
  const [ours, ourOffer, theirs, theirOffer, status] = row
  const { ask, send } = established()
  send(ours, bodyOf(ourOffer))
  expect(ask(theirs, bodyOf(theirOffer))).toBe(status)
})

test('before the first offer is answered, an UPDATE of the caller may bring no other', () => {
  const server = new VirtualServer()
  const transactionId = invited(
    server,
    requestOf('INVITE', { body: sdp, extra: ['Supported: 100rel'] }),
  )
  server.command(`sip|${transactionId}|\r\n${sip('SIP/2.0 183 X', ['Require: 100rel'], sdp)}`)
  const early = server.takeSent()[0]?.text ?? ''
  const toTag = tagIn(header(early, 'To'))
  const update = (cseq: number) => {
    server.receive(requestOf('UPDATE', { toTag, cseq, branch: `z9hG4bK-u${cseq}`, body: sdp }))
    return server.takeStartLines()[0]?.slice(8, 11)
  }
  expect(update(2)).toBe('500')
  const extra = [`RAck: ${header(early, 'RSeq')} 1 INVITE`]
  server.receive(requestOf('PRACK', { toTag, cseq: 3, extra }))
  expect(update(4)).toBeUndefined()
})
