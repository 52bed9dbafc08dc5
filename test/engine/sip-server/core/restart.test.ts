/**
 * Dialogs and INVITEs that outlive the core: saved as JSON, restored in another one, which ends
 * what it does not know.
 */
import { expect, test } from 'vitest'
import type { SavedDialog, SavedInvite } from '../../../../engine/sip-server/application.ts'
import {
  answer,
  called,
  calleeRequest,
  calleeSdp,
  dialogIdOf,
  invite,
} from '../../../support/callee.ts'
import { acknowledge, invited, respond } from '../../../support/caller.ts'
import {
  VirtualServer,
  caller,
  header,
  requestOf,
  sdp,
  tagIn,
  sip,
  tcpCaller,
  udp,
  callee,
  responseOf,
} from '../../../support/sip-core.ts'

const uasId = 'c1@203.0.113.7;from-tag=f1'

/** As it is read from a file. */
function written<T>(saved: T | undefined): T {
  if (saved === undefined) throw new Error('it was not saved')
  return JSON.parse(JSON.stringify(saved)) as T
}

const savedDialog = (server: VirtualServer, id: string): SavedDialog =>
  written(server.core.saved.saveDialog(server.clientId, id))

const savedInvite = (server: VirtualServer, transactionId: string): SavedInvite =>
  written(server.core.saved.saveInvite(server.clientId, transactionId))

/** A core after the crash of the one before. */
function next(): VirtualServer {
  const server = new VirtualServer({ isInProcess: true })
  server.now = 9_000_000
  return server
}

const restored = (saved: SavedDialog, server = next()): VirtualServer => {
  expect(server.core.saved.restoreDialog(server.clientId, saved, server.now)).toBe(true)
  return server
}

function restoredInvite(saved: SavedInvite) {
  const server = next()
  const event = server.core.saved.restoreInvite(server.clientId, saved, server.now)
  if (event === undefined) throw new Error('the INVITE was not restored')
  return { server, event }
}

/** A call of the caller that is answered and acknowledged; its tag on our side. */
function answeredCall(invite = requestOf('INVITE', { body: sdp }), from = caller) {
  const server = new VirtualServer()
  respond(server, invited(server, invite, from), 200)
  const toTag = tagIn(header(server.takeSent()[0]?.text ?? '', 'To'))
  server.receive(requestOf('ACK', { toTag, branch: 'z9hG4bK-ack' }), from)
  return { server, toTag }
}

const command = (server: VirtualServer, dialogId: string, method: string, body = '') =>
  server.command(`sip||${dialogId}\r\n${sip(`${method} sip:p SIP/2.0`, [], body)}`)

const startLine = (text = ''): string => text.slice(0, text.indexOf('\r\n'))

const tcpInvite = requestOf('INVITE', {
  via: 'SIP/2.0/TCP 203.0.113.7:5060;branch=z9hG4bK-INVITE-1',
  body: sdp,
})

const flow = { protocol: 'udp', own: '198.51.100.10', ownPort: 5060 }

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

test('a dialog that we have begun keeps route set, target and both tags', () => {
  const first = new VirtualServer()
  const routes = ['Record-Route: <sip:192.0.2.2;lr>', 'Record-Route: <sip:192.0.2.1;lr>']
  const sent = called(first, [], routes)
  const id = dialogIdOf(sent)
  const server = restored(savedDialog(first, id))
  command(server, id, 'BYE')
  const [{ text, flow: to } = { text: '', flow: caller }] = server.takeSent()
  expect(text).toContain('Route: <sip:192.0.2.1;lr>\r\nRoute: <sip:192.0.2.2;lr>\r\n')
  expect(startLine(text)).toBe('BYE sip:bob@192.0.2.20:5060 SIP/2.0')
  expect([to.address, header(text, 'To')]).toEqual(['192.0.2.1', `${header(sent, 'To')};tag=bt`])
  const other = restored(savedDialog(first, id))
  other.receive(calleeRequest(sent, 'BYE', 1), callee)
  expect(other.takeDelivered()[0]?.sip).toMatch(/^BYE /)
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
const wholeSession = { ...session, takesUpdate: false, dueAt: 0 }

test.each([
  ['of a listener that is gone', { flow: { ...good.flow, ownPort: 5061 } }],
  ['without its flow', { flow: undefined }],
  ['with a number for a text', { remote: 7 }],
  ['with a text for a number', { localCseq: '1' }],
  ['of no side', { role: 'proxy' }],
  ['with a route set that is no list', { routeSet: { length: 0 } }],
  ['with routes that are no texts', { routeSet: [1] }],
  ['with a text for a bound flow', { isFlowBound: 'true' }],
  ['with a session that is incomplete', { session }],
  ['with a session that never ends', { session: { ...wholeSession, seconds: null } }],
  ['with a session of another least interval', { session: { ...wholeSession, minSeconds: '90' } }],
  ['with a session whose description is no text', { session: { ...wholeSession, localSdp: 1 } }],
])('a dialog %s is not restored', (_what, part) => {
  const server = next()
  const damaged = { ...good, ...part } as unknown as SavedDialog
  expect(server.core.saved.restoreDialog(server.clientId, damaged, server.now)).toBe(false)
  expect(server.core.saved.restoreDialog(server.clientId, good, server.now)).toBe(true)
})

test('what an earlier version has saved is restored, with the fields that are absent now', () => {
  const server = next()
  const earlier = { ...good, session: { ...wholeSession, localSdp: '', minSeconds: 0 } }
  expect(server.core.saved.restoreDialog(server.clientId, earlier, server.now)).toBe(true)
  const id = `${good.callId};from-tag=${good.remoteTag}`
  const saved = savedDialog(server, id)
  expect(saved).toMatchObject({ callId: 'c', session: { seconds: 90, isOurs: true } })
  const text = JSON.stringify(saved)
  for (const absent of ['routeSet', 'isFlowBound', 'localSdp', 'minSeconds'])
    expect(text).not.toContain(absent)
})

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

test('a dialog over TCP is asked for by a new connection, and goes on when its peer answers', () => {
  const server = restored(savedDialog(answeredCall(tcpInvite, tcpCaller).server, uasId))
  server.advance(10_250)
  const [asking] = server.takeSent()
  expect(startLine(asking?.text)).toBe('OPTIONS sip:alice@203.0.113.7:5060 SIP/2.0')
  expect(asking?.flow).toMatchObject({ address: '203.0.113.7', connectionId: 0 })
  expect(asking?.text).toMatch(/\r\nContact: <sip:[^>]*@?198\.51\.100\.10:5060[^>]*>\r\n/)
  server.receive(sip('SIP/2.0 200 OK', headersOf(asking?.text ?? '')), asking?.flow)
  server.advance(600_000)
  expect(server.takeSent()).toEqual([])
  expect(server.core.stats()).toMatchObject({ dialogs: 1, clientTransactions: 0, deadlines: 0 })
})

const headersOf = (request: string): string[] =>
  request.split('\r\n').filter((line) => /^(Via|From|To|Call-ID|CSeq):/.test(line))

test.each(['INFO', 'REGISTER'])(
  'a peer over TCP is found by the connection of its next %s',
  (method) => {
    const before = answeredCall(tcpInvite, tcpCaller)
    const server = next()
    server.command('route|register')
    server.takeDelivered()
    restored(savedDialog(before.server, uasId), server)
    const again = { ...tcpCaller, port: 41_000, connectionId: 3 }
    const registers = { callId: 'r', extra: ['Expires: 600'] }
    const inDialog = { toTag: before.toTag, cseq: 2 }
    server.receive(requestOf(method, method === 'INFO' ? inDialog : registers), again)
    respond(server, server.takeDelivered()[0]?.transactionId ?? '', 200)
    server.takeSent()
    server.advance(120_000)
    expect(server.takeSent()).toEqual([])
    command(server, uasId, 'BYE')
    expect(server.takeSent()[0]?.flow).toMatchObject({ port: 41_000, connectionId: 3 })
  },
)

const again = { ...tcpCaller, port: 41_000, connectionId: 3 }
const privately = (text: string): string =>
  text.replace('alice@203.0.113.7:5060', 'alice@192.168.1.5:5060;transport=tcp')

test.each([
  [
    'of the last process',
    (mayFollow: () => boolean) => {
      const before = answeredCall(privately(tcpInvite), tcpCaller)
      const server = new VirtualServer({ isInProcess: true, more: { mayFollow } })
      return restored(savedDialog(before.server, uasId), server)
    },
  ],
  [
    'that was closed',
    (mayFollow: () => boolean) => {
      const server = new VirtualServer({ isInProcess: true, more: { mayFollow } })
      respond(server, invited(server, privately(tcpInvite), tcpCaller), 200)
      acknowledge(server, tagIn(header(server.takeSent()[0]?.text ?? '', 'To')))
      server.connectionClosed(tcpCaller)
      return server
    },
  ],
])('a phone behind NAT, over a connection %s, is reached when it is back', (_which, lost) => {
  const server = lost(() => false)
  server.command('route|register')
  server.takeDelivered()
  command(server, uasId, 'INFO')
  for (const { text, flow, reference } of server.takeSent()) {
    expect(startLine(text)).toBe('INFO sip:203.0.113.7:40000;transport=tcp SIP/2.0')
    expect(flow).toMatchObject({ address: '203.0.113.7', port: 40_000, connectionId: 0 })
    server.sendFailed(reference)
  }
  expect(savedDialog(server, uasId).remoteTarget).toBe('sip:alice@192.168.1.5:5060;transport=tcp')
  server.advance(11_000)
  for (const { reference } of server.takeSent()) server.sendFailed(reference)
  server.takeDelivered()
  const registers = { callId: 'r', extra: ['Expires: 600'] }
  server.receive(privately(requestOf('REGISTER', registers)), again)
  respond(server, server.takeDelivered()[0]?.transactionId ?? '', 200)
  server.takeSent()
  server.advance(120_000)
  expect(server.takeSent()).toEqual([])
  command(server, uasId, 'BYE')
  const [bye] = server.takeSent()
  expect(startLine(bye?.text)).toBe('BYE sip:alice@192.168.1.5:5060;transport=tcp SIP/2.0')
  expect(bye?.flow).toMatchObject({ port: 41_000, connectionId: 3 })
})

test('a dialog over TCP that cannot be reached for a minute ends as an expired session does', () => {
  const server = restored(savedDialog(answeredCall(tcpInvite, tcpCaller).server, uasId))
  for (let second = 0; second < 59; second++) {
    server.advance(1_000)
    for (const { reference } of server.takeSent()) server.sendFailed(reference)
  }
  expect(server.takeDelivered()).toEqual([])
  server.advance(2_000)
  const [bye] = server.takeSent()
  expect(header(bye?.text ?? '', 'Reason')).toContain('Session timer expired')
  expect(server.takeDelivered()[0]?.sip).toMatch(/^BYE /)
  expect(server.core.stats()).toMatchObject({ dialogs: 0 })
})

test('a phone by WebSocket is waited for, because only it can connect', () => {
  const ws = { ...tcpCaller.listener, protocol: 'ws' } as const
  const before = new VirtualServer({ listeners: [udp, ws] })
  const flow = { ...tcpCaller, listener: ws }
  respond(before, invited(before, tcpInvite.replace('/TCP', '/WS'), flow), 200)
  acknowledge(before, tagIn(header(before.takeSent()[0]?.text ?? '', 'To')))
  const server = new VirtualServer({ listeners: [udp, ws] })
  restored(savedDialog(before, uasId), server)
  server.advance(59_000)
  expect([server.takeSent(), server.takeDelivered()]).toEqual([[], []])
  server.advance(2_000)
  expect(server.takeDelivered()[0]?.sip).toMatch(/^BYE /)
})

const contact = 'Contact: <sip:bob@192.0.2.20:5070>'

/** An INVITE of a process that has crashed since, and the next process. */
function crashed(isToBeEnded: () => boolean = () => true) {
  const request = invite(new VirtualServer())
  const server = next()
  server.core.endOrphanedInvites(isToBeEnded, server.now)
  return { request, server }
}

const texts = (server: VirtualServer): string[] => server.takeSent().map(({ text }) => text)

test('who rings gets CANCEL once, and its 487 is acknowledged', () => {
  const { request, server } = crashed()
  answer(server, request, 100)
  expect(texts(server)).toEqual([])
  answer(server, request, 180)
  const [cancel = '', ...others] = texts(server)
  expect(others).toEqual([])
  expect(startLine(cancel)).toBe('CANCEL sip:bob@192.0.2.20 SIP/2.0')
  for (const name of ['Via', 'From', 'To', 'Call-ID'])
    expect(header(cancel, name)).toBe(header(request, name))
  expect(header(cancel, 'CSeq')).toBe('1 CANCEL')
  answer(server, request, 183)
  answer(server, cancel, 200)
  expect(texts(server)).toEqual([])
  answer(server, request, 487)
  const [ack = ''] = texts(server)
  expect(startLine(ack)).toBe('ACK sip:bob@192.0.2.20 SIP/2.0')
  expect(header(ack, 'Via')).toBe(header(request, 'Via'))
  expect(header(ack, 'To')).toContain(';tag=bt')
})

test('who answers gets ACK and BYE in the dialog that the answer makes', () => {
  const { request, server } = crashed()
  const lines = [contact, 'Record-Route: <sip:192.0.2.2;lr>', 'Record-Route: <sip:192.0.2.1;lr>']
  server.receive(responseOf(request, 200, { toTag: 'bt', extra: lines, body: calleeSdp }), callee)
  const sent = server.takeSent()
  const [ack = '', bye = ''] = sent.map(({ text }) => text)
  expect([startLine(ack), startLine(bye)]).toEqual([
    'ACK sip:bob@192.0.2.20:5070 SIP/2.0',
    'BYE sip:bob@192.0.2.20:5070 SIP/2.0',
  ])
  expect([header(ack, 'CSeq'), header(bye, 'CSeq')]).toEqual(['1 ACK', '2 BYE'])
  for (const text of [ack, bye]) {
    expect(header(text, 'From')).toBe(header(request, 'From'))
    expect(header(text, 'To')).toBe(`${header(request, 'To')};tag=bt`)
    expect(text).toContain('Route: <sip:192.0.2.1;lr>\r\nRoute: <sip:192.0.2.2;lr>\r\n')
  }
  expect(sent.every(({ flow }) => flow.address === '192.0.2.20' && flow.port === 5060)).toBe(true)
  server.receive(responseOf(request, 200, { toTag: 'bt', extra: lines, body: calleeSdp }), callee)
  expect(texts(server)).toEqual([ack])
  answer(server, bye, 200)
  server.advance(60_000)
  expect(server.core.stats()).toMatchObject({ dialogs: 0, clientTransactions: 0, deadlines: 0 })
})

test.each([
  ['from a source that is not known', (text: string) => text, (): boolean => false],
  ['to another method', (text: string) => text.replace('1 INVITE', '1 OPTIONS')],
  ['to another host', (text: string) => text.replace('UDP 198.51.100.10', 'UDP 198.51.100.11')],
  [
    'to another port',
    (text: string) => text.replace('UDP 198.51.100.10:5060', 'UDP 198.51.100.10'),
  ],
  ['with a branch that is not made here', (text: string) => text.replace('z9hG4bK', 'z9hG4bK-')],
  [
    'that goes on to another hop',
    (text: string) => text.replace('From:', 'Via: SIP/2.0/UDP 192.0.2.9;branch=z9hG4bK1\r\nFrom:'),
  ],
])('a response %s is dropped', (_what, change, isToBeEnded = (): boolean => true) => {
  const { request, server } = crashed(isToBeEnded)
  for (const status of [180, 200]) {
    const response = responseOf(request, status, { toTag: 'bt', extra: [contact] })
    server.receive(change(response), callee)
  }
  expect(server.takeSent()).toEqual([])
})

test('so much is done in a second, and nothing after 32', () => {
  const { request, server } = crashed()
  const answers = (count: number, name: string): number => {
    for (let number = 0; number < count; number++)
      answer(server, request.replace('z9hG4bK', `z9hG4bK${name}${number}`), 180)
    return texts(server).filter((text) => text.startsWith('CANCEL ')).length
  }
  expect(answers(300, 'a')).toBe(200)
  server.advance(1_000)
  server.takeSent()
  expect(answers(50, 'b')).toBe(50)
  server.advance(31_000)
  server.takeSent()
  expect(answers(50, 'c')).toBe(0)
})
