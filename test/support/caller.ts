/** The caller's side of a call to a `VirtualServer`, step by step. */
import { expect } from 'vitest'
import { type VirtualServer, caller, header, requestOf, sdp, sip, tagIn } from './sip-core.ts'

/** A caller's INVITE is with the application; returns the transaction id that it quotes. */
export function invited(
  server: VirtualServer,
  invite = requestOf('INVITE', { body: sdp }),
  flow = caller,
) {
  server.receive(invite, flow)
  const event = server.takeDelivered()[0]
  expect(event?.kind).toBe('sip')
  server.takeSent()
  return event?.transactionId ?? ''
}

export function respond(
  server: VirtualServer,
  transactionId: string,
  status: number,
  lines: string[] = [],
) {
  return server.command(
    `sip|${transactionId}|\r\n${sip(`SIP/2.0 ${status} Any`, lines, status === 200 ? sdp : '')}`,
  )
}

/** An answered call; returns our tag. */
export function answered(server: VirtualServer, invite?: string): string {
  respond(server, invited(server, invite), 200)
  const sent = server.takeSent()
  server.takeDelivered()
  return tagIn(header(sent[0]?.text ?? '', 'To'))
}

export const acknowledge = (server: VirtualServer, toTag: string): void =>
  server.receive(requestOf('ACK', { toTag, branch: 'z9hG4bK-ack' }))
