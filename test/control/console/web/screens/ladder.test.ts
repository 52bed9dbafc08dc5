import { expect, test } from 'vitest'
import type { TraceMessage } from '../../../../../control/console/web/api/views.ts'
import {
  afterText,
  ladderOf,
  shortSummary,
} from '../../../../../control/console/web/screens/ladder.ts'

const at = '2026-01-01T00:00:00.000Z'
const message = (direction: TraceMessage['direction'], leg: number): TraceMessage => ({
  at,
  kind: 'message',
  direction,
  leg,
  transport: 'udp',
  address: '10.0.0.1:5060',
  summary: 'INVITE',
  text: 'INVITE',
})

test('messages go between the platform and the party of their leg, decisions stand between them', () => {
  const decision = { at, kind: 'decision', what: 'charged', detail: {} } as const
  const entries = [
    message('received', 0),
    decision,
    message('sent', 1),
    message('received', 1),
    message('sent', 2),
  ]
  const peers = [
    { role: 'caller', name: '4930100', address: null },
    { role: 'called', name: 'north', address: null },
    { role: null, name: null, address: '10.0.0.9:5060' },
  ] as const
  const { parties, steps } = ladderOf({ entries, peers })
  expect(parties).toEqual([
    { title: 'Caller', name: '4930100', address: null },
    { title: 'Tollgate', name: null, address: null },
    { title: 'Called 1', name: 'north', address: null },
    { title: 'Leg 3', name: '10.0.0.9:5060', address: null },
  ])
  expect(steps.map((step) => (step.kind === 'message' ? [step.from, step.to] : step.kind))).toEqual(
    [[0, 1], 'decision', [1, 2], [2, 1], [1, 3]],
  )
})

test('a line has what is sent, and how long after the first message', () => {
  expect(shortSummary('INVITE sip:100@10.0.0.1:5060 SIP/2.0')).toBe('INVITE')
  expect(shortSummary('SIP/2.0 180 Ringing')).toBe('180 Ringing')
  expect([0, 12, 10_250].map(afterText)).toEqual(['0 ms', '+12 ms', '+10.25 s'])
})
