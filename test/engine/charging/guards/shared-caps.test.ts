/** Caps of spend guards that several processes share, on one PostgreSQL. */
import { afterEach, describe, expect, test } from 'vitest'
import { endedCall, plainRate, question, topUp } from '../../../support/books.ts'
import { hasPostgres } from '../../../support/postgres.ts'
import { seededRandom } from '../../../support/seeded-random.ts'
import { type Node, SharedWallets } from '../../../support/shared-wallets.ts'
import { addGuard, capOf, takenOf } from '../../../support/spend-guards.ts'
import { eventually } from '../../../support/waiting.ts'

const oneUnit = 1_000_000

describe.runIf(hasPostgres)('caps of several processes', () => {
  let shared: SharedWallets
  afterEach(() => shared.close())

  async function opened(names: readonly string[], capMicros: number) {
    shared = await SharedWallets.open(() => 0.5)
    const planId = await shared.addPlan([plainRate])
    const customerId = await shared.addCustomer({ name: '+15550001', rate_plan_id: planId })
    await addGuard(shared.store, 'guard', {
      customer_id: customerId,
      ...capOf(capMicros),
      created_at: Date.now(),
    })
    const nodes: Node[] = []
    for (const name of names) nodes.push(await shared.node(name))
    const [first] = nodes
    if (first === undefined) throw new Error('no node')
    await topUp(first.ocs, customerId, 10 * oneUnit)
    return { nodes, first, customerId }
  }

  const dial = async ({ ocs }: Node, uuid: string) => {
    const verdict = await ocs.authorize(question(uuid, '1555'))
    return verdict.kind === 'granted' ? verdict.grantedSeconds : verdict
  }
  const end = ({ ocs }: Node, uuid: string, billsec: number, customerId: number) =>
    ocs.report(endedCall(uuid, billsec, { calledNumber: '1555', customerId }))
  const spent = async () =>
    (await shared.records()).reduce((sum, { cost_micros: cost }) => sum + (cost ?? 0), 0)

  test('calls that begin at once on two processes get the cap between them, to the micro-unit', async () => {
    const { nodes } = await opened(['a', 'b'], 330_000)
    const asked = nodes.flatMap((node) =>
      ['1', '2', '3', '4', '5'].map((call) => dial(node, `${node.name}${call}`)),
    )
    const answers = await Promise.all(asked)
    const seconds = answers.filter((answer) => typeof answer === 'number')
    expect(seconds.reduce((sum, one) => sum + one, 0)).toBe(330)
    for (const answer of answers)
      if (typeof answer !== 'number') expect(answer).toMatchObject({ code: 'spend_guard' })
    expect(await takenOf(shared.store)).toEqual({ guard: 330_000 })
  })

  test('what the calls of one process have not spent is there for another within a second or two', async () => {
    const { nodes, first, customerId } = await opened(['a', 'b'], 60_000)
    const [, second] = nodes
    if (second === undefined) throw new Error('no node')
    expect(await dial(first, 'a1')).toBe(60)
    expect(await dial(second, 'b1')).toMatchObject({ code: 'spend_guard' })
    await end(first, 'a1', 10, customerId)
    let tries = 1
    await eventually(async () => {
      tries += 1
      expect(await dial(second, `b${tries}`)).toBe(50)
    })
  })

  test('a process that dies takes nothing out of the cap, and gives none of it twice', async () => {
    const { nodes, first } = await opened(['a', 'b'], 120_000)
    const [, second] = nodes
    if (second === undefined) throw new Error('no node')
    expect(await dial(first, 'a1')).toBe(60)
    await first.kill()
    const next = await shared.node('a')
    expect(await dial(next, 'a2')).toBe(60)
    expect(await dial(second, 'b1')).toMatchObject({ code: 'spend_guard' })
  })

  test('whatever calls do on three processes, they spend no more than the cap', async () => {
    const capMicros = 500_000
    const { nodes, customerId } = await opened(['a', 'b', 'c'], capMicros)
    const random = seededRandom(20)
    const below = (limit: number) => Math.floor(random() * limit)
    const run = async (node: Node, worker: number): Promise<void> => {
      for (let round = 0; round < 8; round += 1) {
        const uuid = `${node.name}${worker}-${round}`
        let granted = await dial(node, uuid)
        if (typeof granted !== 'number') continue
        for (let more = below(3); more > 0; more -= 1) {
          const answer = await node.ocs.extend(uuid, Math.max(0, granted - 10))
          if (answer.kind === 'granted') granted = answer.grantedSeconds
        }
        // Some are cut a moment late.
        const billsec = below(4) === 0 ? granted + 1 : below(granted + 1)
        await end(node, uuid, billsec, customerId)
      }
    }
    await Promise.all(nodes.flatMap((node) => [0, 1, 2].map((worker) => run(node, worker))))
    expect(await spent()).toBeLessThanOrEqual(capMicros)
    for (const node of nodes) await node.stop()
    expect(await takenOf(shared.store)).toEqual({ guard: await spent() })
  })
})
