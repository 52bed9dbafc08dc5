import { expect, test } from 'vitest'
import type { DispatcherNode } from '../../../../../control/console/web/api/views.ts'
import {
  isLastInService,
  nodeState,
  placeOf,
} from '../../../../../control/console/web/screens/node-state.ts'

type Status = NonNullable<DispatcherNode['status']>

const node = (
  state: Status['state'],
  calls: number,
  more: Partial<DispatcherNode> = {},
): DispatcherNode => ({
  id: 1,
  host: '10.0.0.11',
  internal_port: 5060,
  external_port: 5080,
  weight: 1,
  priority: 1,
  description: null,
  transport: 'udp',
  is_enabled: true,
  max_calls: 0,
  operator_state: 'active',
  destination: 'sip:10.0.0.11:5060',
  status: {
    state,
    latency_ms: 1,
    last_probe: null,
    active_calls: calls,
    probes: { sent: 1, answered: 1, failed: 0 },
  },
  ...more,
})

test.each([
  ['good', 'in service', node('active', 3)],
  ['bad', 'out: it does not answer', node('probing', 3)],
  ['warn', 'draining: 3 calls left', node('inactive', 3, { operator_state: 'inactive' })],
  ['good', 'drained: it may be stopped', node('inactive', 0, { operator_state: 'inactive' })],
  ['plain', 'disabled', node('active', 0, { is_enabled: false })],
  ['plain', 'disabled', node('active', 0, { status: null })],
] as const)('a node is shown as %s: %s', (tone, text, shown) => {
  expect(nodeState(shown)).toEqual([tone, text])
})

test('the last node that is neither drained nor disabled is known', () => {
  const set = (...nodes: readonly DispatcherNode[]) =>
    ({ nodes }) as unknown as Parameters<typeof isLastInService>[0]
  const first = node('active', 0)
  const silent = node('probing', 0, { id: 2 })
  const drained = node('inactive', 0, { id: 2, operator_state: 'inactive' })
  const disabled = node('active', 0, { id: 3, is_enabled: false })
  expect(isLastInService(set(first, drained, disabled), first)).toBe(true)
  expect(isLastInService(set(first, silent), first)).toBe(false)
  expect(placeOf(node('active', 0, { destination: 'sip:[::1]:5060;transport=udp' }))).toBe(
    '[::1]:5060',
  )
})
