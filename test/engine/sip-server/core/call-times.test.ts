import { expect, test } from 'vitest'
import type { Histogram } from '../../../../engine/sip-server/core/traffic.ts'
import { answer, calleeSdp, invite } from '../../../support/callee.ts'
import { invited, respond } from '../../../support/caller.ts'
import { callee, responseOf, type SentMessage, VirtualServer } from '../../../support/sip-core.ts'

const [ringing, answering] = [
  [1, 2, 3, 5, 7, 10, 15, 20],
  [1, 3, 6, 10, 15, 20, 30, 60],
]

/** What was observed, as upper bounds with how many came up to them. */
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

test('a forwarded call counts where it came in and where it went', () => {
  const server = new VirtualServer()
  const transactionId = invited(server)
  server.command(`proxy|${transactionId}|||fullResponse||serial|||sip:192.0.2.20\r\n`)
  const [sent] = server.takeSent()
  const reply = (status: number, request: SentMessage | undefined): void =>
    server.receive(responseOf(request?.text ?? '', status, { toTag: 'b' }), callee)
  server.advance(2_500)
  reply(180, sent)
  server.advance(1_500)
  reply(200, sent)
  reply(200, sent)
  const [pdd, until] = [
    { sum: 2.5, 3: 1 },
    { sum: 4, 6: 1 },
  ]
  expect(times(server)).toEqual({ pddIn: pdd, answerIn: until, pddOut: pdd, answerOut: until })
})
