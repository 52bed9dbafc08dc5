/** The called side of a call that the application of a `VirtualServer` makes, step by step. */
import { type VirtualServer, callee, header, responseOf, sdp, sip, tagIn } from './sip-core.ts'

const contact = 'Contact: <sip:bob@192.0.2.20:5060>'
export const calleeSdp = 'v=0\r\no=- 7 1 IN IP4 192.0.2.20\r\ns=-\r\n'

/** The application sends an INVITE; returns it as it left. */
export function invite(server: VirtualServer, lines: readonly string[] = []): string {
  const from = 'from: sip:alice@localhost'
  server.command(`sip||\r\n${sip('INVITE sip:bob@192.0.2.20 SIP/2.0', [from, ...lines], sdp)}`)
  server.takeDelivered()
  return server.takeSent()[0]?.text ?? ''
}

export const dialogIdOf = (request: string): string =>
  `${header(request, 'Call-ID')};from-tag=${tagIn(header(request, 'From'))}`

/** The called side answers a request that it was sent. */
export function answer(
  server: VirtualServer,
  request: string,
  status: number,
  options: {
    readonly lines?: readonly string[]
    readonly toTag?: string
    readonly body?: string
  } = {},
): void {
  const { lines = [], toTag = 'bt', body = '' } = options
  server.receive(responseOf(request, status, { toTag, extra: [contact, ...lines], body }), callee)
}

/** A call that is answered with these lines, and acknowledged; returns its INVITE. */
export function called(
  server: VirtualServer,
  asked: readonly string[],
  answered: readonly string[] = [],
): string {
  const request = invite(server, asked)
  answer(server, request, 200, { lines: answered, body: calleeSdp })
  server.command(`sip||${dialogIdOf(request)}\r\n${sip('ACK sip:bob@192.0.2.20 SIP/2.0', [])}`)
  server.takeSent()
  server.takeDelivered()
  return request
}

/** A request of the called side in that call. */
export function calleeRequest(
  invite: string,
  method: string,
  cseq: number,
  lines: readonly string[] = [],
  body = '',
): string {
  return sip(
    `${method} sip:alice@198.51.100.10:5060 SIP/2.0`,
    [
      `Via: SIP/2.0/UDP 192.0.2.20:5060;branch=z9hG4bK-${method}-${cseq}`,
      'Max-Forwards: 70',
      `From: ${header(invite, 'To')};tag=bt`,
      `To: ${header(invite, 'From')}`,
      `Call-ID: ${header(invite, 'Call-ID')}`,
      `CSeq: ${cseq} ${method}`,
      contact,
      ...lines,
    ],
    body,
  )
}
