/** Answers that end the dialog they came in: RFC 3261 §12.2.1.2, RFC 5057. */
import { expect, test } from 'vitest'
import { answer, called, dialogIdOf } from '../../../../support/callee.ts'
import { VirtualServer, sdp, sip } from '../../../../support/sip-core.ts'

function ask(server: VirtualServer, invite: string, method: string): string {
  const body = method === 'INVITE' ? sdp : ''
  server.command(`sip||${dialogIdOf(invite)}\r\n${sip(`${method} sip:p SIP/2.0`, [], body)}`)
  server.takeDelivered()
  return server.takeSent()[0]?.text ?? ''
}

test.each([
  ['INVITE', 481],
  ['INVITE', 408],
  ['UPDATE', 408],
  ['INFO', 481],
])(
  '%s that is answered %i ends the call: BYE, and the application hears of both',
  (method, status) => {
    const server = new VirtualServer()
    const invite = called(server, [])
    answer(server, ask(server, invite, method), status)
    expect(server.takeStartLines().at(-1)).toBe('BYE sip:bob@192.0.2.20:5060 SIP/2.0')
    const [response, bye] = server.takeDelivered()
    expect(response?.sip.startsWith(`SIP/2.0 ${status}`)).toBe(true)
    expect(bye).toMatchObject({ transactionId: 'unsolicited', dialogId: dialogIdOf(invite) })
    expect(server.core.stats()['dialogs']).toBe(0)
  },
)

test.each([
  ['INFO', 408],
  ['INFO', 500],
  ['INVITE', 488],
  ['NOTIFY', 481],
  ['REFER', 481],
])('%s that is answered %i does not', (method, status) => {
  const server = new VirtualServer()
  const invite = called(server, [])
  answer(server, ask(server, invite, method), status)
  expect(server.takeStartLines().filter((line) => line.startsWith('BYE'))).toEqual([])
  expect(server.core.stats()['dialogs']).toBe(1)
})
