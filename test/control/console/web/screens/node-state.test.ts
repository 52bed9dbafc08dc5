import { expect, test } from 'vitest'
import type { DispatcherNode } from '../../../../../control/console/web/api/api-types.ts'
import { nodeState } from '../../../../../control/console/web/screens/node-state.ts'

type Status = NonNullable<DispatcherNode['status']>

const node = (
  state: Status['state'],
  calls: number,
  more: Partial<DispatcherNode> = {},
): DispatcherNode => ({
  ...{ id: 1, host: '10.0.0.11', internal_port: 5060, external_port: 5080, weight: 1, priority: 1 },
  ...{
    description: null,
    transport: 'udp',
    is_enabled: true,
    max_calls: 0,
    operator_state: 'active',
  },
  destination: 'sip:10.0.0.11:5060',
  status: {
    ...{ state, latency_ms: 1, last_probe: null, active_calls: calls },
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
