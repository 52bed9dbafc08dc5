/** Plain views of the engine: of a call, of a node, and of a call that was traced. */
import type { ActiveCall, Trace } from '../../schema/contracts/calls.ts'
import type { NodeStatus } from '../../schema/contracts/engine.ts'

export const activeCall = (change: Partial<ActiveCall> = {}): ActiveCall => ({
  callUuid: '00000000-0000-4000-8000-000000000001',
  state: 'ACTIVE',
  direction: 'inbound',
  callerNumber: '1',
  calledNumber: '2',
  startedAt: Date.UTC(2026, 0, 1),
  answeredAt: Date.UTC(2026, 0, 1),
  tenantId: null,
  isPaidByPlatform: false,
  customerId: null,
  setId: null,
  node: null,
  carrier: null,
  stampOffsetMs: 0,
  instance: 'sbc-1',
  peers: { caller: null, callee: null },
  ...change,
})

export const nodeStatus = (change: Partial<NodeStatus> = {}): NodeStatus => ({
  nodeId: 1,
  destination: 'sip:10.0.0.1:5060;transport=udp',
  state: 'active',
  priority: 10,
  weight: 100,
  latencyMs: null,
  description: null,
  activeCalls: 0,
  lastProbe: null,
  probes: { sent: 0, answered: 0, failed: 0 },
  ...change,
})

export const traced = (change: Partial<Trace> = {}): Trace => ({
  tenantId: null,
  legs: [],
  peers: [],
  entries: [],
  isComplete: true,
  ...change,
})
