import { expect, test } from 'vitest'
import { Agents } from '../../../engine/routing/agents.ts'
import { CallLimit } from '../../../engine/shares/call-limit.ts'
import type { AgentRecord } from '../../../engine/routing/routing-records.ts'

const agent = (agentId: number, tenantId: number | null, parts: Partial<AgentRecord> = {}) => ({
  agentId,
  tenantId,
  name: `agent ${agentId}`,
  extension: '700',
  maxCalls: 0,
  uri: `sip:${agentId}@192.0.2.9`,
  isActive: true,
  ...parts,
})

const nobodys = () => false

const having = (live: () => number): CallLimit => new CallLimit('agent', live, undefined)
const idle = having(() => 0)

const idOf = (decision: ReturnType<Agents['find']>): number | string | undefined =>
  decision?.kind === 'agent' ? decision.agent.agentId : decision?.kind

test("a tenant's caller reaches its own agent, else the platform's, never another tenant's", () => {
  const agents = new Agents([agent(1, null), agent(2, 2), agent(3, 3)], idle, nobodys)
  expect([2, 3, 4].map((tenant) => idOf(agents.dialled('700', tenant)))).toEqual([2, 3, 1])
  const others = new Agents([agent(2, 2)], idle, nobodys)
  expect(idOf(others.dialled('700', 3))).toBeUndefined()
  expect(idOf(others.dialled('701', 2))).toBeUndefined()
})

test("a caller of no tenant reaches a tenant's agent by a number of this tenant only", () => {
  const dialled = (owner: number, ...list: AgentRecord[]) =>
    idOf(new Agents(list, idle, (tenantId) => tenantId === owner).dialled('700', null))
  expect(dialled(9, agent(2, 2))).toBeUndefined()
  expect(dialled(2, agent(2, 2))).toBe(2)
  expect(dialled(3, agent(2, 2), agent(3, 3))).toBe(3)
  expect(dialled(2, agent(2, 2), agent(1, null))).toBe(1)
})

test('an agent takes as many calls as it may, counted from the live ones', () => {
  let live = 1
  const limit = having(() => live)
  const agents = new Agents([agent(1, null, { maxCalls: 2 })], limit, nobodys)
  expect(idOf(agents.find(1))).toBe(1)
  live = 2
  expect(idOf(agents.find(1))).toBe('limited')
  expect(idOf(agents.dialled('700', null))).toBe('limited')
  live = 1
  expect(idOf(agents.find(1))).toBe(1)
})

test('an agent that is switched off is not there', () => {
  const agents = new Agents([agent(1, null, { isActive: false })], idle, nobodys)
  expect(agents.find(1)).toBeUndefined()
  expect(agents.dialled('700', null)).toBeUndefined()
})

test('an agent is called by its name, too, in whatever letters', () => {
  const agents = new Agents(
    [agent(1, 2, { name: 'Service' }), agent(2, 2, { name: '12' })],
    idle,
    nobodys,
  )
  expect(['service', 'SERVICE'].map((name) => idOf(agents.dialled(name, 2)))).toEqual([1, 1])
  expect(idOf(agents.dialled('12', 2))).toBeUndefined()
  expect(idOf(agents.dialled('service', 3))).toBeUndefined()
})
