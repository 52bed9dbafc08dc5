/** Who keeps records hears of attempts, answers and ends: wire/README.md §3.1. */
import { expect, test } from 'vitest'
import { acknowledge, answered, invited, respond } from '../../../support/caller.ts'
import {
  VirtualServer,
  callee,
  header,
  requestOf,
  responseOf,
  sdp,
} from '../../../support/sip-core.ts'

const recorder = 9

function start(): VirtualServer {
  const server = new VirtualServer()
  server.core.clientConnected(recorder, false)
  server.command('authenticate|cymru|', recorder)
  for (const kind of ['attempt', 'start', 'stop']) server.command(`route|cdr:${kind}`, recorder)
  server.takeDelivered()
  server.details.length = 0
  return server
}

/** Leaders without id and time, and the first word or words of the message. */
const told = (server: VirtualServer): string[] =>
  server.details.splice(0).map(({ kind, source, time, reason, sip }) => {
    expect(time).toMatch(/^\d\d:\d\d:\d\d\.\d{6}$/)
    const [first = '', second = ''] = sip.split(' ')
    const what = first === 'SIP/2.0' ? second : first
    return [kind, source, ...(reason === '' ? [] : [reason]), what].join(' ')
  })

test('an incoming call: attempt, start as uas, stop with the BYE', () => {
  const server = start()
  const toTag = answered(server)
  acknowledge(server, toTag)
  server.receive(requestOf('BYE', { toTag, cseq: 2, branch: 'z9hG4bK-bye' }))
  expect(told(server)).toEqual([
    'cdr:attempt network INVITE',
    'cdr:start application uas 200',
    'cdr:stop network normal-release BYE',
  ])
})

test('an incoming call that is refused, and one that is cancelled', () => {
  const server = start()
  respond(server, invited(server), 486)
  server.takeDelivered()
  invited(server, requestOf('INVITE', { callId: 'c', branch: 'z9hG4bK-c', body: sdp }))
  server.receive(requestOf('CANCEL', { callId: 'c', branch: 'z9hG4bK-c' }))
  expect(told(server)).toEqual([
    'cdr:attempt network INVITE',
    'cdr:stop application call-rejected 486',
    'cdr:attempt network INVITE',
    'cdr:stop network call-canceled CANCEL',
  ])
})

const call = (server: VirtualServer): { readonly sent: string; readonly id: string } => {
  server.takeDelivered()
  server.command(
    `sip|||sip:192.0.2.20\r\nINVITE sip:b@192.0.2.20 SIP/2.0\r\nContent-Type: application/sdp\r\n\r\n${sdp}`,
  )
  const [answer] = server.takeDelivered()
  return { sent: server.takeSent()[0]?.text ?? '', id: answer?.transactionId ?? '' }
}

test('an outgoing call: attempt, start as uac, stop with the BYE of the application', () => {
  const server = start()
  const { sent } = call(server)
  const extra = ['Contact: <sip:b@192.0.2.20>']
  server.receive(responseOf(sent, 200, { toTag: 'b', body: sdp, extra }), callee)
  const dialogId = server.takeDelivered().at(-1)?.dialogId ?? ''
  server.command(`sip||${dialogId}\r\nACK sip:b@192.0.2.20 SIP/2.0\r\n\r\n`)
  server.command(`sip||${dialogId}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`)
  expect(told(server)).toEqual([
    'cdr:attempt application INVITE',
    'cdr:start network uac 200',
    'cdr:stop application normal-release BYE',
  ])
})

test('an outgoing call that is refused, cancelled, or not answered at all', () => {
  const server = start()
  server.receive(responseOf(call(server).sent, 603, { toTag: 'b' }), callee)
  expect(told(server).at(-1)).toBe('cdr:stop network call-rejected 603')
  const { sent, id } = call(server)
  server.receive(responseOf(sent, 180, { toTag: 'b' }), callee)
  server.command(`sip|${id}|\r\nCANCEL sip:b@192.0.2.20 SIP/2.0\r\n\r\n`)
  server.receive(responseOf(sent, 487, { toTag: 'b' }), callee)
  expect(told(server).slice(1)).toEqual(['cdr:stop application call-canceled CANCEL'])
  call(server)
  server.advance(32_000)
  expect(told(server).slice(1)).toEqual(['cdr:stop network call-rejected 408'])
})

/** A call that the application has forwarded; the INVITE as the callee got it. */
function forwarded(server: VirtualServer): string {
  const transactionId = invited(server)
  server.command(
    `proxy|${transactionId}|remainInDialog|fullResponse||serial|||sip:192.0.2.20\r\nINVITE sip:x SIP/2.0\r\n\r\n`,
  )
  server.takeDelivered()
  return server.takeSent()[0]?.text ?? ''
}

test('a call that is forwarded starts on both sides, and stops with the BYE that passes', () => {
  const server = start()
  const invite = forwarded(server)
  const route = header(invite, 'Record-Route')
  const extra = ['Contact: <sip:b@192.0.2.20>', `Record-Route: ${route}`]
  server.receive(responseOf(invite, 200, { toTag: 'b', body: sdp, extra }), callee)
  const uri = 'sip:b@192.0.2.20'
  const bye = { toTag: 'b', cseq: 2, uri, branch: 'z9hG4bK-bye', extra: [`Route: ${route}`] }
  server.receive(requestOf('BYE', bye))
  expect(told(server)).toEqual([
    'cdr:attempt network INVITE',
    'cdr:start network proxy-uac 200',
    'cdr:start application proxy-uas 200',
    'cdr:stop network normal-release BYE',
  ])
})
