import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type Health,
  afterCall,
  afterProbe,
  newHealth,
} from '../../../engine/dispatcher/node-health.ts'
import { isLastInService, maySetState } from '../../../engine/dispatcher/dispatcher.ts'
import {
  formatDestination,
  isSameDestination,
  parseDestination,
} from '../../../engine/dispatcher/destination-set.ts'

const limits = { failuresToProbing: 3, successesToActive: 3 }

const afterProbes = (health: Health, probes: readonly boolean[]) =>
  probes.reduce((current, isUp) => afterProbe(current, isUp, limits), health)

test('three consecutive failed probes make an active node probing, two do not', () => {
  expect(afterProbes(newHealth('active'), [false, false]).state).toBe('active')
  expect(afterProbes(newHealth('active'), [false, false, false]).state).toBe('probing')
})

test('an answer in between starts the count anew', () => {
  expect(afterProbes(newHealth('active'), [false, false, true, false, false]).state).toBe('active')
})

test('three consecutive answers bring a probing node back, an interrupted row does not', () => {
  expect(afterProbes(newHealth('probing'), [true, true, false, true, true]).state).toBe('probing')
  expect(afterProbes(newHealth('probing'), [true, true, true]).state).toBe('active')
})

test('no sequence of probes and calls ends maintenance', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('up', 'down', 'answered', 'failed')), (events) => {
      const end = events.reduce<Health>((health, event) => {
        if (event === 'answered' || event === 'failed') return afterCall(health, event, limits)
        return afterProbe(health, event === 'up', limits)
      }, newHealth('inactive'))
      expect(end.state).toBe('inactive')
    }),
    { seed: 1 },
  )
})

test('a failed call counts as a failed probe', () => {
  const twice = afterProbes(newHealth('active'), [false, false])
  expect(afterCall(twice, 'failed', limits).state).toBe('probing')
})

test('an answered call forgives failures but does not bring a node back', () => {
  const twice = afterProbes(newHealth('active'), [false, false])
  expect(afterCall(twice, 'answered', limits).failures).toBe(0)
  const nearlyBack = afterProbes(newHealth('probing'), [true, true])
  expect(afterCall(nearlyBack, 'answered', limits)).toEqual(nearlyBack)
})

type State = 'active' | 'probing' | 'inactive'
const nodes = (...states: readonly State[]) =>
  states.map((state, index) => ({ nodeId: index + 1, state }))

test.each<[readonly State[], number, State, boolean]>([
  [['active', 'inactive'], 1, 'inactive', false],
  [['active'], 1, 'inactive', false],
  [['active', 'probing'], 1, 'inactive', true],
  [['inactive', 'probing'], 2, 'inactive', false],
  [['inactive', 'active'], 1, 'inactive', true],
  [['inactive', 'inactive'], 1, 'inactive', true],
  [['active'], 1, 'probing', true],
  [['inactive'], 1, 'active', true],
])('of nodes %j the node %i may become %s: %s', (states, nodeId, state, isAllowed) => {
  expect(maySetState(nodes(...states), nodeId, state)).toBe(isAllowed)
})

test('a node that is not in the set is never its last one', () => {
  expect(isLastInService(nodes('active'), 9)).toBe(false)
})

test('a node compiles into the destination string of the specification', () => {
  expect(formatDestination({ host: '10.0.0.5', port: 5060, transport: 'udp' })).toBe(
    'sip:10.0.0.5:5060;transport=udp',
  )
  expect(formatDestination({ host: '2001:db8::5', port: 5070, transport: 'tcp' })).toBe(
    'sip:[2001:db8::5]:5070;transport=tcp',
  )
})

test.each([
  'sip:pbx.example.com:5060;transport=udp',
  'sip:pbx.example.com:5060',
  'sip:pbx.example.com',
  'SIP:PBX.Example.COM;Transport=UDP',
  'sip:pbx.example.com.;lr',
  '<sip:pbx.example.com>',
  '  sip:pbx.example.com ',
])('%s names the node pbx.example.com:5060 over UDP', (text) => {
  const node = { host: 'PBX.example.com', port: 5060, transport: 'udp' } as const
  const parsed = parseDestination(text)
  expect(parsed && isSameDestination(parsed, node)).toBe(true)
})

test.each(['sip:pbx.example.com:5061', 'sip:pbx.example.com;transport=tcp', 'sip:pbx.example.org'])(
  '%s is another node',
  (text) => {
    const node = { host: 'pbx.example.com', port: 5060, transport: 'udp' } as const
    const parsed = parseDestination(text)
    expect(parsed && isSameDestination(parsed, node)).toBe(false)
  },
)

test.each([
  '',
  'pbx.example.com',
  'sips:pbx.example.com',
  'sip:user@pbx.example.com',
  'sip:pbx.example.com:0',
  'sip:pbx.example.com:65536',
  'sip:pbx.example.com:5060;transport=sctp',
  'sip:pbx example.com',
  `sip:${'a'.repeat(400)}`,
])('"%s" is no destination', (text) => {
  expect(parseDestination(text)).toBeUndefined()
})
