/** The counts, and the notices to those who keep records (wire/README.md §3.1). */
import { expect, test } from 'vitest'
import type { Histogram } from '../../../../engine/sip-server/core/histogram.ts'
import { answered, invited, respond, acknowledge } from '../../../support/caller.ts'
import { callee, requestOf, responseOf, sdp, VirtualServer } from '../../../support/sip-core.ts'
import { answer, calleeSdp, invite } from '../../../support/callee.ts'

const totals = (server: VirtualServer) => {
  const { requestsIn, requestsOut, responsesIn, responsesOut } = server.core.traffic
  const plain = (counts: ReadonlyMap<string, ReadonlyMap<number, number>>) =>
    Object.fromEntries([...counts].map(([method, codes]) => [method, Object.fromEntries(codes)]))
  return {
    requestsIn: Object.fromEntries(requestsIn),
    requestsOut: Object.fromEntries(requestsOut),
    responsesIn: plain(responsesIn),
    responsesOut: plain(responsesOut),
  }
}

test('messages are counted by method and status, copies included', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  server.advance(500)
  server.receive(requestOf('ACK', { toTag, branch: 'z9hG4bK-ack' }))
  server.command(
    `sip|||sip:192.0.2.20\r\nINVITE sip:b@192.0.2.20 SIP/2.0\r\nContent-Type: application/sdp\r\n\r\n${sdp}`,
  )
  const invite = server.takeSent().find(({ text }) => text.startsWith('INVITE'))
  server.receive(responseOf(invite?.text ?? '', 486, { toTag: 'b' }), callee)
  expect(totals(server)).toEqual({
    requestsIn: { INVITE: 1, ACK: 1 },
    requestsOut: { INVITE: 1, ACK: 1 },
    responsesIn: { INVITE: { 486: 1 } },
    responsesOut: { INVITE: { 100: 1, 200: 2 } },
  })
})

test('what cannot be read, or is no correct message, is counted', () => {
  const server = new VirtualServer()
  server.receive('no SIP at all')
  server.receive(requestOf('OPTIONS').replace('OPTIONS sip:', 'OPTIONS  sip:'))
  server.receive(requestOf('OPTIONS').replace('CSeq: 1 OPTIONS', 'CSeq: 1 INFO'))
  server.receive(requestOf('OPTIONS', { uri: 'unknown:scheme' }))
  server.receive(responseOf(requestOf('OPTIONS'), 200).replace('Call-ID', 'X-Id'))
  const { faulty } = server.core.traffic
  expect(faulty).toEqual({ unreadable: 2, unreadableRequests: 1, requests: 1, responses: 1 })
})

/** The observed values, as upper bounds with how many came up to them. */
const shown = ({ bounds, counts, sum }: Histogram): Readonly<Record<string, number>> => ({
  sum,
  ...Object.fromEntries(
    counts.flatMap((count, index) => (count === 0 ? [] : [[bounds[index] ?? 'more', count]])),
  ),
})

const times = (server: VirtualServer) => {
  const { inbound, outbound } = server.core.callTimes
  return {
    pddIn: shown(inbound.ringing),
    answerIn: shown(inbound.answer),
    pddOut: shown(outbound.ringing),
    answerOut: shown(outbound.answer),
  }
}

const none = { sum: 0 }

test('a received call: until it rings, and until it is answered', () => {
  const server = new VirtualServer()
  const transactionId = invited(server)
  server.advance(1_500)
  respond(server, transactionId, 180)
  server.advance(500)
  respond(server, transactionId, 183)
  server.advance(5_000)
  respond(server, transactionId, 200)
  server.advance(700)
  expect(times(server)).toEqual({
    pddIn: { sum: 1.5, 2: 1 },
    answerIn: { sum: 7, 10: 1 },
    pddOut: none,
    answerOut: none,
  })
})

test('a sent call, of which Trying and copies of the answer say nothing', () => {
  const server = new VirtualServer()
  const request = invite(server)
  server.advance(200)
  answer(server, request, 100)
  server.advance(800)
  answer(server, request, 180)
  server.advance(60_000)
  answer(server, request, 200, { body: calleeSdp })
  answer(server, request, 200, { body: calleeSdp })
  expect(times(server)).toEqual({
    pddIn: none,
    answerIn: none,
    pddOut: { sum: 1, 1: 1 },
    answerOut: { sum: 61, more: 1 },
  })
})

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
