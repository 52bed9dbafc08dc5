import { expect, test } from 'vitest'
import { peersOf } from '../../../../engine/call/trace/trace.ts'
import type { Note } from '../../../../engine/call/call-machine/state.ts'
import type { TraceMessage } from '../../../../schema/contracts/calls.ts'

const message = (
  direction: TraceMessage['direction'],
  text: string,
  leg = 'a',
  address = '10.0.0.9:5060',
): TraceMessage => ({ kind: 'message', at: 0, transport: 'udp', direction, leg, address, text })

const routedTo = (candidate: object): readonly Note[] => [
  // As far as it is read.
  { at: 0, what: 'routed', route: { kind: 'candidates', candidates: [candidate] } } as never,
]

test.each([
  ['From: "A" <sip:4930100@acme.example>;tag=1', '4930100'],
  ['f: <sip:acme.example>', 'acme.example'],
  ['Subject: x', null],
])('a caller whose INVITE has %j is %j', (header, name) => {
  const invite = message('received', `INVITE sip:x SIP/2.0\r\n${header}\r\n\r\n`)
  expect(peersOf(['a'], [invite], [])).toEqual([{ role: 'caller', name, address: '10.0.0.9:5060' }])
})

test.each([
  [{ kind: 'gateway', uri: 'sip:10.0.0.1:5060;transport=udp', carrierName: 'north' }, 'north'],
  [{ kind: 'agent', uri: 'sip:bot@10.0.0.1', name: 'concierge' }, 'concierge'],
  [{ kind: 'node', uri: 'sip:10.0.0.1:5060;transport=udp' }, '10.0.0.1'],
  [
    { kind: 'extension', uri: 'sip:100@acme.example', phones: [{ uri: 'sip:4940@10.0.0.1' }] },
    '100',
  ],
  [{ kind: 'gateway', uri: 'sip:10.0.0.2:5060', carrierName: 'south' }, '4940@10.0.0.1'],
])('a leg to %o is named %j', (candidate, name) => {
  const invite = message('sent', 'INVITE sip:4940@10.0.0.1 SIP/2.0\r\n\r\n')
  expect(peersOf(['a'], [invite], routedTo(candidate))).toEqual([
    // It has not answered.
    { role: 'called', name, address: null },
  ])
})

test('of a leg whose INVITE is not kept only the address is known', () => {
  const bye = message('received', 'BYE sip:x SIP/2.0\r\n\r\n')
  expect(peersOf(['a', 'b'], [bye], [])).toEqual([
    { role: null, name: null, address: '10.0.0.9:5060' },
    { role: null, name: null, address: null },
  ])
})
