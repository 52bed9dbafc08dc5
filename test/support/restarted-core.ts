/** A `VirtualServer` after the crash of the one before, with what that has saved. */
import { expect } from 'vitest'
import type { SavedDialog, SavedInvite } from '../../engine/sip-server/application.ts'
import { invited, respond } from './caller.ts'
import { VirtualServer, caller, header, requestOf, sdp, sip, tagIn } from './sip-core.ts'

export const uasId = 'c1@203.0.113.7;from-tag=f1'

/** As it is read from a file. */
const written = <T>(saved: T): T => JSON.parse(JSON.stringify(saved)) as T

export function savedDialog(server: VirtualServer, id: string): SavedDialog {
  const saved = server.core.saved.saveDialog(server.clientId, id)
  if (saved === undefined) throw new Error('the dialog was not saved')
  return written(saved)
}

export function savedInvite(server: VirtualServer, transactionId: string): SavedInvite {
  const saved = server.core.saved.saveInvite(server.clientId, transactionId)
  if (saved === undefined) throw new Error('the INVITE was not saved')
  return written(saved)
}

/** A core after the crash of the one before. */
export function next(): VirtualServer {
  const server = new VirtualServer({ isInProcess: true })
  server.now = 9_000_000
  return server
}

export const restored = (saved: SavedDialog, server = next()): VirtualServer => {
  expect(server.core.saved.restoreDialog(server.clientId, saved, server.now)).toBe(true)
  return server
}

export function restoredInvite(saved: SavedInvite) {
  const server = next()
  const event = server.core.saved.restoreInvite(server.clientId, saved, server.now)
  if (event === undefined) throw new Error('the INVITE was not restored')
  return { server, event }
}

/** A call of the caller that is answered and acknowledged; its tag on our side. */
export function answeredCall(invite = requestOf('INVITE', { body: sdp }), from = caller) {
  const server = new VirtualServer()
  respond(server, invited(server, invite, from), 200)
  const toTag = tagIn(header(server.takeSent()[0]?.text ?? '', 'To'))
  server.receive(requestOf('ACK', { toTag, branch: 'z9hG4bK-ack' }), from)
  return { server, toTag }
}

export const command = (server: VirtualServer, dialogId: string, method: string, body = '') =>
  server.command(`sip||${dialogId}\r\n${sip(`${method} sip:p SIP/2.0`, [], body)}`)

export const startLine = (text = ''): string => text.slice(0, text.indexOf('\r\n'))

export const tcpInvite = requestOf('INVITE', {
  via: 'SIP/2.0/TCP 203.0.113.7:5060;branch=z9hG4bK-INVITE-1',
  body: sdp,
})
