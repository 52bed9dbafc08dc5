/** `max_calls` of agents and nodes: on one node, and shared by several on one PostgreSQL. */
import { afterEach, describe, expect, test } from 'vitest'
import { CallLimit } from '../../../engine/shares/call-limit.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { SharedCarrier, type LimitNode } from '../../support/shared-limits.ts'
import { eventually } from '../../support/waiting.ts'

const agentId = 7

test('on one node live calls are counted at once, and 0 is no limit', () => {
  let live = 1
  const limit = new CallLimit('agent', () => live, undefined)
  expect([limit.admit(agentId, 2), limit.admit(agentId, 1)]).toEqual([true, false])
  live = 1_000
  expect([limit.isReached(agentId, 0), limit.admit(agentId, 0)]).toEqual([false, true])
})

describe.runIf(hasPostgres)('an agent that several nodes call', () => {
  let installation: SharedCarrier
  afterEach(() => installation.close())

  /** Live calls of the agent on all nodes, at the most that there have been. */
  const most = { calls: 0 }
  const live = new Map<string, number>()
  const sum = (): number => [...live.values()].reduce((total, calls) => total + calls, 0)

  async function agentAt(name: string): Promise<{ dial(maxCalls: number): Promise<boolean> }> {
    const node: LimitNode = await installation.node(name)
    live.set(name, 0)
    const schedule = (act: () => void, delayMs: number) => {
      const timer = setTimeout(act, delayMs)
      return () => clearTimeout(timer)
    }
    const limit = new CallLimit('agent', () => live.get(name) ?? 0, {
      shares: node.limits,
      schedule,
    })
    return {
      dial: async (maxCalls) => {
        // As call control does: a call that is admitted at once is counted at once.
        const admitted = limit.admit(agentId, maxCalls)
        const isAdmitted = typeof admitted === 'boolean' ? admitted : await admitted
        if (isAdmitted) live.set(name, (live.get(name) ?? 0) + 1)
        most.calls = Math.max(most.calls, sum())
        return isAdmitted
      },
    }
  }

  test('has never more calls than its limit, and no call is refused for which there is room', async () => {
    installation = await SharedCarrier.open()
    most.calls = 0
    const [a, b, c] = [await agentAt('a'), await agentAt('b'), await agentAt('c')]
    const dialled = await Promise.all(
      Array.from({ length: 30 }, async (_, index) => [a, b, c][index % 3]?.dial(10)),
    )
    expect(dialled.filter(Boolean).length).toBeLessThanOrEqual(10)
    // One node has it all at last, whatever the others had first.
    await eventually(async () => {
      await b.dial(10)
      expect(sum()).toBe(10)
    })
    expect(await a.dial(10)).toBe(false)
    live.set('b', 0)
    live.set('c', 0)
    await eventually(async () => {
      await a.dial(10)
      expect(sum()).toBe(10)
    })
    expect(most.calls).toBe(10)
  })
})
