import { expect, test } from 'vitest'
import { answered } from '../../../support/caller.ts'
import { callee, requestOf, responseOf, sdp, VirtualServer } from '../../../support/sip-core.ts'

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

test('names that a peer makes up do not make the table grow', () => {
  const server = new VirtualServer()
  for (let i = 0; i < 50; i++)
    server.receive(requestOf(`X${i}`, { callId: `x${i}`, branch: `z9hG4bK-x${i}` }))
  expect(totals(server).requestsIn).toEqual({ other: 50 })
  expect(totals(server).responsesOut).toEqual({ other: { 501: 50 } })
})
