/** The limits of a customer whose calls begin on several nodes, on one PostgreSQL. */
import { afterEach, describe, expect, test } from 'vitest'
import { endedCall, openCall, plainRate, question, topUp } from '../../support/books.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { type Node, SharedWallets } from '../../support/shared-wallets.ts'
import { eventually } from '../../support/waiting.ts'

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

describe.runIf(hasPostgres)('limits of a customer on several nodes', () => {
  let shared: SharedWallets
  let calls = 0
  afterEach(() => shared.close())

  async function opened(
    limits: { max_concurrent_calls?: number; max_cps?: number },
    ...names: readonly string[]
  ): Promise<Node[]> {
    shared = await SharedWallets.open(() => 0.5)
    const rate_plan_id = await shared.addPlan([plainRate])
    const customerId = await shared.addCustomer({ name: '+15550001', rate_plan_id, ...limits })
    const nodes: Node[] = []
    for (const name of names) nodes.push(await shared.node(name))
    // A busy machine may take longer for the first connections than a call waits.
    for (const { store } of nodes)
      await Promise.all(
        Array.from({ length: 4 }, () => store.statements.prepare('SELECT pg_sleep(0.02)').all([])),
      )
    const [first] = nodes
    if (first) await topUp(first.ocs, customerId, 1_000_000_000)
    return nodes
  }

  /** Uuids of the calls that begin, and why others do not. */
  async function dial(node: Node | undefined, count: number) {
    const uuids = Array.from({ length: count }, () => `call-${(calls += 1)}`)
    const verdicts = await Promise.all(
      uuids.map(async (uuid) => node?.ocs.authorize(question(uuid, '1555'))),
    )
    const begun = uuids.filter((_, index) => verdicts[index]?.kind === 'granted')
    const codes = verdicts.flatMap((one) => (one?.kind === 'denied' ? one.code : []))
    return { begun, codes: [...new Set(codes)] }
  }

  const end = (node: Node | undefined, uuid: string) =>
    node?.ocs.report(endedCall(uuid, 1, { calledNumber: '1555' }))

  test('one node alone gets all calls at once that the customer may have; the others get none', async () => {
    const [a, b] = await opened({ max_concurrent_calls: 7 }, 'a', 'b')
    const { begun, codes } = await dial(a, 12)
    expect(begun).toHaveLength(7)
    expect(codes).toEqual(['concurrent_limit'])
    expect(await dial(b, 3)).toEqual({ begun: [], codes: ['concurrent_limit'] })
    await end(a, begun[0] ?? '')
    await eventually(async () => expect((await dial(b, 1)).begun).toHaveLength(1))
    expect((await dial(a, 2)).begun).toEqual([])
  })

  test('calls on all nodes together are never more than the limit', async () => {
    const nodes = await opened({ max_concurrent_calls: 5 }, 'a', 'b', 'c')
    const live = new Map<string, Node>()
    for (let round = 0; round < 12; round += 1) {
      const dialled = await Promise.all(nodes.map((node) => dial(node, 3)))
      for (const [index, { begun }] of dialled.entries())
        for (const uuid of begun) live.set(uuid, nodes[index] as Node)
      expect(live.size).toBeLessThanOrEqual(5)
      const open = nodes.map(({ ocs }) => ocs.stats().openCalls)
      expect(open.reduce((sum, count) => sum + count, 0)).toBe(live.size)
      for (const [uuid, node] of [...live].slice(0, 1 + (round % 3))) {
        await end(node, uuid)
        live.delete(uuid)
      }
      await pause(round % 4 === 0 ? 300 : 0)
    }
    expect(calls).toBeGreaterThan(100)
  })

  test('calls per second are those of all nodes', async () => {
    const [a, b] = await opened({ max_cps: 4 }, 'a', 'b')
    // On a busy machine a second may pass between the calls of both: then they are made again.
    for (;;) {
      const begin = performance.now()
      const [first, second] = [await dial(a, 6), await dial(b, 2)]
      const tookMs = performance.now() - begin
      await pause(1_300)
      if (tookMs > 700) continue
      expect([first.begun.length, first.codes]).toEqual([4, ['cps_limit']])
      expect(second).toEqual({ begun: [], codes: ['cps_limit'] })
      break
    }
    await eventually(async () => expect((await dial(b, 6)).begun.length).toBeGreaterThan(0))
  })

  test('a call that waits for money and for room gets both, and counts once', async () => {
    const [, b] = await opened({ max_concurrent_calls: 3, max_cps: 3 }, 'a', 'b')
    const { begun } = await dial(b, 3)
    expect(begun).toHaveLength(3)
    expect(b?.ocs.stats().verdicts).toEqual({ granted: 3 })
  })

  test('after kill -9 the calls that go on count, before and after the restart', async () => {
    const [a, b] = await opened({ max_concurrent_calls: 4 }, 'a', 'b')
    const { begun } = await dial(a, 4)
    for (const uuid of begun.slice(0, 3)) await a?.ocs.answered(openCall(uuid, Date.now()), '{}')
    await a?.kill()
    expect((await dial(b, 2)).begun).toEqual([])
    const again = await shared.node('a')
    const { saved } = await again.ocs.start()
    expect(saved).toHaveLength(3)
    for (const uuid of begun.slice(0, 3)) expect(again.ocs.resume(uuid)).toBe(true)
    await again.limits.alone()
    await eventually(async () => expect((await dial(b, 1)).begun).toHaveLength(1))
    await pause(300)
    expect([(await dial(b, 2)).begun, (await dial(again, 2)).begun]).toEqual([[], []])
  })

  test('what would happen to a call is told without asking other nodes', async () => {
    const [a, b] = await opened({ max_concurrent_calls: 1 }, 'a', 'b')
    const { callUuid: _, ...asked } = question('what-if', '1555')
    expect(a?.ocs.foresee(asked).verdict.kind).toBe('granted')
    expect((await dial(b, 1)).begun).toHaveLength(1)
    await dial(a, 1)
    expect(a?.ocs.foresee(asked).verdict).toMatchObject({ code: 'concurrent_limit' })
  })
})
