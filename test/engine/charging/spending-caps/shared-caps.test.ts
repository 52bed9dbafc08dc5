/** Caps of spend guards that several processes share, on one PostgreSQL. */
import { describe, expect, test } from 'vitest'
import { hasPostgres } from '../../../support/postgres.ts'
import { seededRandom } from '../../../support/seeded-random.ts'
import { type ChargingInstance, sharedWallet } from '../../../support/shared-wallets.ts'
import { addGuard, capOf, takenOf } from '../../../support/spending-caps.ts'
import { eventually } from '../../../support/waiting.ts'

async function opened(capMicros: number) {
  const made = await sharedWallet()
  const { shared, customerId, authorize } = made
  const guard = { customer_id: customerId, ...capOf(capMicros), created_at: Date.now() }
  await addGuard(shared.store, 'guard', guard)
  const [a, b] = [await made.instance('a'), await made.instance('b')]
  await made.topUp(a, 10_000_000)
  /** How many seconds a call is granted, or why not. */
  const dial = async (instance: ChargingInstance, uuid: string) => {
    const verdict = await authorize(instance, uuid)
    return verdict.kind === 'granted' ? verdict.grantedSeconds : verdict
  }
  return { ...made, a, b, dial }
}

const braked = { code: 'spend_guard' }

describe.runIf(hasPostgres)('caps of several processes', () => {
  test('what the calls of one process have not spent is there for another within a second or two', async () => {
    const { a, b, dial, call } = await opened(60_000)
    expect(await dial(a, 'a1')).toBe(60)
    expect(await dial(b, 'b1')).toMatchObject(braked)
    await a.ocs.report(call('a1', 10))
    let tries = 1
    await eventually(async () => expect(await dial(b, `b${(tries += 1)}`)).toBe(50))
  })

  test('a process that dies takes nothing out of the cap, and gives none of it twice', async () => {
    const { a, b, dial, instance } = await opened(120_000)
    expect(await dial(a, 'a1')).toBe(60)
    await a.kill()
    expect(await dial(await instance('a'), 'a2')).toBe(60)
    expect(await dial(b, 'b1')).toMatchObject(braked)
  })

  test('whatever calls do on three processes, they spend no more than the cap', async () => {
    const capMicros = 500_000
    const { shared, a, b, instance, dial, call, costs } = await opened(capMicros)
    const instances = [a, b, await instance('c')]
    const random = seededRandom(20)
    const below = (limit: number) => Math.floor(random() * limit)
    const run = async (on: ChargingInstance, worker: number): Promise<void> => {
      for (let round = 0; round < 8; round += 1) {
        const uuid = `${on.name}${worker}-${round}`
        let granted = await dial(on, uuid)
        if (typeof granted !== 'number') continue
        for (let more = below(3); more > 0; more -= 1) {
          const answer = await on.ocs.extend(uuid, Math.max(0, granted - 10))
          if (answer.kind === 'granted') granted = answer.grantedSeconds
        }
        // Some are cut a moment late.
        const billsec = below(4) === 0 ? granted + 1 : below(granted + 1)
        await on.ocs.report(call(uuid, billsec))
      }
    }
    await Promise.all(instances.flatMap((on) => [0, 1, 2].map((worker) => run(on, worker))))
    const spent = (await costs()).reduce<number>((sum, cost) => sum + (cost ?? 0), 0)
    expect(spent).toBeLessThanOrEqual(capMicros)
    for (const on of instances) await on.stop()
    expect(await takenOf(shared.store)).toEqual({ guard: spent })
  })
})
