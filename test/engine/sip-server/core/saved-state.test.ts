/** Dialogs and unanswered INVITEs that outlive the core: saved as JSON, restored in another one. */
import { expect, test } from 'vitest'
import type { SavedDialog, SavedInvite } from '../../../../engine/sip-server/application.ts'
import { answer, called, dialogIdOf, invite } from '../../../support/callee.ts'
import { acknowledge, answered, invited, respond } from '../../../support/caller.ts'
import {
  answeredCall,
  command,
  next,
  restored,
  restoredInvite,
  savedDialog,
  savedInvite,
  startLine,
  uasId,
} from '../../../support/restarted-core.ts'
import { VirtualServer, caller, header, requestOf, sdp, tagIn } from '../../../support/sip-core.ts'

const flow = { protocol: 'udp', own: '198.51.100.10', ownPort: 5060 }

// ---- dialogs ----

test('a dialog that a caller has begun: its requests reach the application, and ours reach the caller', () => {
  const before = answeredCall()
  const server = restored(savedDialog(before.server, uasId))
  const { toTag } = before
  server.receive(requestOf('INVITE', { toTag, cseq: 2, branch: 'z9hG4bK-re', body: sdp }))
  const [reinvite] = server.takeDelivered()
  expect(reinvite).toMatchObject({ source: 'network', dialogId: uasId })
  respond(server, reinvite?.transactionId ?? '', 200)
  const sent = server.takeSent().map(({ text }) => text)
  expect(sent.map(startLine)).toEqual(['SIP/2.0 100 Trying', 'SIP/2.0 200 Any'])
  expect(header(sent[1] ?? '', 'Contact')).toBe('<sip:18005551212@198.51.100.10:5060>')
  server.receive(requestOf('ACK', { toTag, cseq: 2, branch: 'z9hG4bK-reack' }))
  server.takeDelivered()
  command(server, uasId, 'INVITE', sdp)
  const [{ text, flow: to } = { text: '', flow: caller }] = server.takeSent()
  expect(startLine(text)).toBe('INVITE sip:alice@203.0.113.7:5060 SIP/2.0')
  expect([header(text, 'CSeq'), to.address]).toEqual(['10001 INVITE', '203.0.113.7'])
  expect([tagIn(header(text, 'From')), tagIn(header(text, 'To'))]).toEqual([toTag, 'f1'])
})

test('a peer behind NAT is reached by the address that it was heard from', () => {
  const nat = { ...caller, address: '192.0.2.99', port: 33_000 }
  const via = 'SIP/2.0/UDP 10.0.0.7:5060;rport;branch=z9hG4bK-INVITE-1'
  const { server: before } = answeredCall(requestOf('INVITE', { via, body: sdp }), nat)
  const server = restored(savedDialog(before, uasId))
  command(server, uasId, 'BYE')
  expect(server.takeSent()[0]?.flow).toMatchObject({ address: '192.0.2.99', port: 33_000 })
})

test('a dialog is restored once, and belongs to the application that has restored it', () => {
  const { server: before } = answeredCall()
  const saved = savedDialog(before, uasId)
  const server = restored(saved)
  expect(server.core.saved.restoreDialog(server.clientId, saved, server.now)).toBe(false)
  expect(server.core.saved.saveDialog(server.clientId + 1, uasId)).toBeUndefined()
  expect(savedDialog(server, uasId)).toEqual({ ...saved, localCseq: saved.localCseq + 10_000 })
})

test('what is not confirmed, not acknowledged or no call is not saved', () => {
  const { saved } = new VirtualServer().core
  expect(saved.saveDialog(1, 'unknown')).toBeUndefined()
  const early = new VirtualServer()
  const sent = invite(early)
  answer(early, sent, 180)
  expect(early.core.saved.saveDialog(1, dialogIdOf(sent))).toBeUndefined()
  const waiting = new VirtualServer()
  const toTag = answered(waiting)
  expect(waiting.core.saved.saveDialog(1, uasId)).toBeUndefined()
  acknowledge(waiting, toTag)
  expect(waiting.core.saved.saveDialog(1, uasId)).toBeDefined()
  const subscribed = new VirtualServer()
  subscribed.receive(requestOf('SUBSCRIBE', { extra: ['Event: presence'] }))
  respond(subscribed, subscribed.takeDelivered()[0]?.transactionId ?? '', 202)
  expect(subscribed.core.stats()).toMatchObject({ dialogs: 1 })
  expect(subscribed.core.saved.saveDialog(1, uasId)).toBeUndefined()
})

const good: SavedDialog = {
  role: 'uas',
  callId: 'c',
  local: '<sip:b@x>;tag=t',
  remote: '<sip:a@x>;tag=f',
  localTag: 't',
  remoteTag: 'f',
  localCseq: 1,
  remoteCseq: 1,
  contact: '<sip:b@x>',
  routeSet: [],
  remoteTarget: 'sip:a@192.0.2.1',
  isFlowBound: false,
  flow: { ...flow, address: '192.0.2.1', port: 5060 },
}
const session = { seconds: 90, isOurs: true, isAgreed: true }

test.each([
  ['of a listener that is gone', { flow: { ...good.flow, ownPort: 5061 } }],
  ['without its flow', { flow: undefined }],
  ['with a number for a text', { remote: 7 }],
  ['with a text for a number', { localCseq: '1' }],
  ['of no side', { role: 'proxy' }],
  ['with a route set that is no list', { routeSet: { length: 0 } }],
  ['with routes that are no texts', { routeSet: [1] }],
  ['with a session that is incomplete', { session }],
  ['with a session that never ends', { session: { ...session, seconds: null } }],
])('a dialog %s is not restored', (_what, part) => {
  const server = next()
  const damaged = { ...good, ...part } as unknown as SavedDialog
  expect(server.core.saved.restoreDialog(server.clientId, damaged, server.now)).toBe(false)
  expect(server.core.saved.restoreDialog(server.clientId, good, server.now)).toBe(true)
})

// ---- sessions ----

const asked = ['Supported: timer', 'Session-Expires: 1800']

test('a session that we refresh is refreshed within an eighth of its interval, with the same offer', () => {
  const first = new VirtualServer()
  const id = dialogIdOf(called(first, asked, ['Session-Expires: 1800;refresher=uac']))
  const server = restored(savedDialog(first, id))
  server.advance(225_250)
  const [refresh] = server.takeSent()
  expect(header(refresh?.text ?? '', 'CSeq')).toBe('10002 INVITE')
  expect(refresh?.text.endsWith(sdp)).toBe(true)
  expect(header(refresh?.text ?? '', 'Session-Expires')).toBe('1800;refresher=uac')
})

// ---- INVITEs ----

test('an INVITE is answered by the next process with the tag that its caller knows', () => {
  const first = new VirtualServer()
  const transactionId = invited(first)
  respond(first, transactionId, 180)
  const ringing = first.takeSent()[0]?.text ?? ''
  const { server, event } = restoredInvite(savedInvite(first, transactionId))
  expect(event).toMatchObject({ kind: 'request', isNew: true, dialogId: '', flow: caller })
  expect(event.message.get('Call-ID')).toBe('c1@203.0.113.7')
  server.receive(requestOf('INVITE', { body: sdp }))
  expect([server.takeSent(), server.takeDelivered()]).toEqual([[], []])
  respond(server, event.transactionId, 200)
  const [ok] = server.takeSent()
  expect(startLine(ok?.text)).toBe('SIP/2.0 200 Any')
  for (const name of ['To', 'From', 'Contact', 'Via', 'CSeq'])
    expect(header(ok?.text ?? '', name)).toBe(header(ringing, name))
  server.advance(1_500)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 Any', 'SIP/2.0 200 Any'])
  server.takeDelivered()
  acknowledge(server, tagIn(header(ringing, 'To')))
  expect(server.takeDelivered()[0]?.sip).toMatch(/^ACK /)
  server.advance(20_000)
  expect(server.takeSent()).toEqual([])
  command(server, uasId, 'BYE')
  expect(header(server.takeSent()[0]?.text ?? '', 'CSeq')).toBe('10001 BYE')
})

test('a caller of a restored INVITE may give up', () => {
  const first = new VirtualServer()
  const transactionId = invited(first)
  respond(first, transactionId, 180)
  const { server, event } = restoredInvite(savedInvite(first, transactionId))
  server.receive(requestOf('CANCEL', { branch: 'z9hG4bK-INVITE-1' }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 OK', 'SIP/2.0 487 Request Terminated'])
  expect(server.takeDelivered()[0]).toMatchObject({ transactionId: event.transactionId })
  expect(server.core.stats()).toMatchObject({ dialogs: 0, inboundRequests: 0 })
})

test.each([
  ['twice', {}],
  ['of a listener that is gone', { flow: { ...flow, own: '198.51.100.11' } }],
  ['without its head', { head: undefined }],
  ['that is no SIP', { head: 'INVITE\r\n\r\n' }],
  ['of another method', { head: requestOf('OPTIONS', { callId: 'o' }) }],
  ['in a dialog', { head: requestOf('INVITE', { callId: 'o', toTag: 't' }) }],
  ['with a damaged early dialog', { early: { contact: '<sip:b@x>', localCseq: null } }],
])('an INVITE %s is not restored', (_what, part) => {
  const first = new VirtualServer()
  const saved = savedInvite(first, invited(first))
  const { server } = restoredInvite(saved)
  const damaged = { ...saved, ...part } as SavedInvite
  const { core, clientId, now } = server
  expect(core.saved.restoreInvite(clientId, damaged, now)).toBeUndefined()
  expect(core.stats()).toMatchObject({ inboundRequests: 1, serverTransactions: 1 })
})

test('what a caller has proved its password with is not saved', () => {
  const first = new VirtualServer()
  const digest = 'Digest username="101", response="81926fada35b3a0e"'
  const text = requestOf('INVITE', { body: sdp }).replace(
    'Max-Forwards',
    `PROXY-AUTHORIZATION : ${digest},\r\n qop=auth\r\nAuthorization: ${digest}\r\nMax-Forwards`,
  )
  const saved = savedInvite(first, invited(first, text))
  expect(saved.head).not.toMatch(/response|qop|uthorization/i)
  expect(saved.head).toContain('\r\nMax-Forwards: ')
  const { server, event } = restoredInvite(saved)
  respond(server, event.transactionId, 200)
  expect(startLine(server.takeSent()[0]?.text)).toBe('SIP/2.0 200 Any')
})
