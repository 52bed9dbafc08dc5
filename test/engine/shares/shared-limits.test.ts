/** Several nodes share the limits of a carrier on one PostgreSQL. */
import { afterEach, describe, expect, test } from 'vitest'
import { hasPostgres } from '../../support/postgres.ts'
import { postgresProxy } from '../../support/postgres-proxy.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { type LimitNode, SharedCarrier } from '../../support/shared-limits.ts'
import { eventually } from '../../support/waiting.ts'

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

describe.runIf(hasPostgres)('limits of several nodes', () => {
  let carrier: SharedCarrier
  const closers: (() => unknown)[] = []
  afterEach(async () => {
    await carrier.close()
    for (const close of closers.splice(0)) await close()
  })

  async function opened(...names: readonly string[]): Promise<readonly LimitNode[]> {
    carrier = await SharedCarrier.open()
    const nodes: LimitNode[] = []
    for (const name of names) nodes.push(await carrier.node(name))
    return nodes
  }

  const dialAll = async (node: LimitNode | undefined, count: number): Promise<number> => {
    const begun = await Promise.all(Array.from({ length: count }, async () => node?.dial()))
    return begun.filter(Boolean).length
  }

  test('one node alone can use the whole limit, and no call more', async () => {
    const [a] = await opened('a', 'b', 'c')
    carrier.maxCalls = 20
    expect(await dialAll(a, 30)).toBe(20)
    expect(carrier.calls).toBe(20)
    expect(await a?.dial()).toBe(false)
  })

  test('when a call ends on one node, another node can begin one', async () => {
    const [a, b] = await opened('a', 'b')
    carrier.maxCalls = 3
    expect(await dialAll(a, 3)).toBe(3)
    expect(await b?.dial()).toBe(false)
    if (a) a.calls -= 1
    await eventually(async () => expect(await b?.dial()).toBe(true))
    expect(await dialAll(a, 2)).toBe(0)
    expect(carrier.calls).toBe(3)
  })

  test('what one node does not use goes to the one that needs it', async () => {
    const [a, b] = await opened('a', 'b')
    carrier.maxCalls = 10
    expect(await dialAll(a, 10)).toBe(10)
    if (a) a.calls = 0
    let begun = 0
    await eventually(async () => {
      begun += await dialAll(b, 10 - begun)
      expect(begun).toBe(10)
    })
    expect(carrier.mostCalls).toBe(10)
  })

  test('a call is decided in memory where the node has room', async () => {
    const [a] = await opened('a', 'b')
    carrier.maxCalls = 100
    await a?.dial()
    await dialAll(a, 20)
    await pause(1_200)
    await dialAll(a, 5)
    const admitted = a?.dial()
    // Neither a timer nor a statement has had its turn.
    let isKnown = false
    void admitted?.then(() => (isKnown = true))
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
    expect(isKnown).toBe(true)
  })

  test('in no second do more calls start on all nodes than max_cps, and one node can start them all', async () => {
    const [a, b, c] = await opened('a', 'b', 'c')
    carrier.maxCps = 8
    const until = performance.now() + 4_000
    const load = async (node: LimitNode | undefined, everyMs: number): Promise<void> => {
      const dialled: Promise<unknown>[] = []
      for (; performance.now() < until; await pause(everyMs)) dialled.push(node?.dial() ?? pause(0))
      await Promise.all(dialled)
    }
    await Promise.all([load(a, 20), load(b, 35), load(c, 50)])
    const starts = [a, b, c].flatMap((node) => node?.starts ?? []).toSorted((x, y) => x - y)
    const inWindow = starts.map(
      (from) => starts.filter((at) => at >= from && at < from + 999).length,
    )
    expect(Math.max(...inWindow)).toBeLessThanOrEqual(8)
    expect(starts.length).toBeGreaterThan(16)
    await pause(1_100)
    let alone = 0
    await eventually(async () => {
      await pause(1_100)
      alone = await dialAll(b, 12)
      expect(alone).toBe(8)
    })
  }, 60_000)

  test('what a node held that is gone is free; before that it is not', async () => {
    const [a, b] = await opened('a', 'b')
    carrier.maxCalls = 4
    expect(await dialAll(a, 4)).toBe(4)
    await a?.kill()
    expect(await dialAll(b, 4)).toBe(0)
    await carrier.takeForGone('a')
    await eventually(async () => expect(await b?.dial()).toBe(true))
    expect(await carrier.stored()).not.toHaveProperty('a')
  })

  test('what a node holds that was started again is not freed for having been gone', async () => {
    const [a, b] = await opened('a', 'b')
    carrier.maxCalls = 4
    expect(await dialAll(a, 4)).toBe(4)
    await carrier.takeForGone('a', 0)
    await pause(5_500)
    expect(await dialAll(b, 1)).toBe(0)
  })

  test('a node that starts again counts the calls that go on, and frees the others', async () => {
    const [a, b] = await opened('a', 'b')
    carrier.maxCalls = 4
    expect(await dialAll(a, 4)).toBe(4)
    await a?.kill()
    await carrier.node('a', { calls: 3 })
    let begun = 0
    await eventually(async () => {
      begun += await dialAll(b, 4)
      expect(begun).toBe(1)
    })
    await pause(300)
    expect(await dialAll(b, 4)).toBe(0)
  })

  test('calls of another process of the node stay counted until that has ended', async () => {
    const [old, b] = await opened('a', 'b')
    carrier.maxCalls = 4
    expect(await dialAll(old, 3)).toBe(3)
    await old?.limits.stop()
    expect(await carrier.stored()).toMatchObject({ a: 3 })
    expect(await dialAll(b, 4)).toBe(1)
  })

  test('a limit that an operator lowers is kept by all nodes at once', async () => {
    const [a, b] = await opened('a', 'b')
    carrier.maxCalls = 20
    await dialAll(a, 8)
    await dialAll(b, 8)
    for (const node of [a, b]) if (node) node.calls = 0
    carrier.maxCalls = 3
    carrier.mostCalls = 0
    await Promise.all([dialAll(a, 10), dialAll(b, 10)])
    await pause(300)
    await Promise.all([dialAll(a, 10), dialAll(b, 10)])
    expect(carrier.mostCalls).toBeGreaterThan(0)
    expect(carrier.mostCalls).toBeLessThanOrEqual(3)
  })

  test('calls that were there before the limit count', async () => {
    const [a, b] = await opened('a', 'b')
    expect(await dialAll(a, 5)).toBe(5)
    carrier.maxCalls = 6
    await dialAll(a, 1)
    await pause(300)
    expect(await dialAll(b, 3)).toBe(0)
  })

  test('while the database is away a node keeps to what it holds; one that may be taken for gone begins nothing', async () => {
    carrier = await SharedCarrier.open()
    const proxy = await postgresProxy(carrier.url)
    closers.push(() => proxy.close())
    const a = await carrier.node('a', { url: proxy.url })
    carrier.maxCalls = 10
    expect(await dialAll(a, 6)).toBe(6)
    a.calls = 0
    proxy.cut()
    const begun = await dialAll(a, 20)
    expect(begun).toBeGreaterThanOrEqual(6)
    expect(begun).toBeLessThanOrEqual(10)
    a.calls = 0
    a.isHolding = false
    expect(await dialAll(a, 5)).toBe(0)
    proxy.mend()
    a.isHolding = true
    await eventually(async () => expect(await a.dial()).toBe(true))
    expect(a.log.filter((line) => line.startsWith('error'))).toHaveLength(1)
  })

  test('a node that stops gives its room back', async () => {
    const [a, b] = await opened('a', 'b')
    carrier.maxCalls = 4
    expect(await dialAll(a, 4)).toBe(4)
    if (a) a.calls = 0
    await a?.stop()
    expect(await carrier.stored()).toEqual({})
    expect(await dialAll(b, 4)).toBe(4)
  })

  test('never more calls than the limit, whatever nodes do and lose', async () => {
    const random = seededRandom(30)
    carrier = await SharedCarrier.open(random)
    carrier.lossRate = 0.1
    carrier.maxCalls = 1 + Math.floor(random() * 12)
    const names = ['a', 'b', 'c']
    for (const name of names) await carrier.node(name)
    const pick = (): LimitNode | undefined =>
      carrier.nodes.get(names[Math.floor(random() * 3)] ?? '')
    const pending: Promise<unknown>[] = []
    let begun = 0
    for (let step = 0; step < 1_500; step += 1) {
      const draw = random()
      const node = pick()
      if (node === undefined) continue
      if (draw < 0.5) pending.push(node.dial().then((isBegun) => (begun += isBegun ? 1 : 0)))
      else if (draw < 0.93) node.calls = Math.max(0, node.calls - Math.floor(random() * 3))
      else if (draw < 0.94) {
        const { name, calls } = node
        await node.kill()
        await carrier.node(name, { calls })
      }
      if (random() < 0.3) await pause(random() * 12)
      expect(carrier.calls).toBeLessThanOrEqual(carrier.maxCalls)
    }
    await Promise.all(pending)
    expect(carrier.mostCalls).toBeLessThanOrEqual(carrier.maxCalls)
    const sum = Object.values(await carrier.stored()).reduce((all, slots) => all + slots, 0)
    expect(sum).toBeLessThanOrEqual(carrier.maxCalls)
    expect(begun).toBeGreaterThan(50)
    expect([...carrier.nodes.values()].flatMap(({ log }) => log)).toEqual([])
  }, 120_000)
})
