/** A wallet that another transaction has locked delays its own calls only, on one PostgreSQL. */
import { expect, onTestFinished, test } from 'vitest'
import { lockedTransaction } from '../../../schema/sql/query.ts'
import { endedCall, plainRate, question, topUp } from '../../support/books.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { type ChargingInstance, SharedWallets } from '../../support/shared-wallets.ts'
import { eventually } from '../../support/waiting.ts'

const CUSTOMERS = 12
const callerOf = (index: number): string => `+1555000${String(index).padStart(2, '0')}`
const oneUnit = 1_000_000

/** Customers with a wallet of one unit each, and two instances. */
async function customers() {
  const shared = await SharedWallets.open(() => 0.5)
  onTestFinished(() => shared.close())
  const planId = await shared.addPlan([plainRate])
  const ids: number[] = []
  for (let index = 0; index < CUSTOMERS; index += 1)
    ids.push(await shared.addCustomer({ name: callerOf(index), rate_plan_id: planId }))
  const [a, b] = [await shared.instance('a'), await shared.instance('b')]
  for (const id of ids) await topUp(a.ocs, id, oneUnit)
  const balances = async () => (await shared.wallets()).map(({ balanceMicros }) => balanceMicros)
  return { shared, ids, a, b, balances }
}

/** Locks the wallet of a customer, as a console of an operator does. Returns what ends it. */
async function lockWallet(shared: SharedWallets, customerId: number): Promise<() => Promise<void>> {
  let unlock = (): void => undefined
  let transaction: Promise<void> = Promise.resolve()
  await new Promise<void>((resolve) => {
    transaction = lockedTransaction(shared.store, async () => {
      const lock = 'SELECT id FROM wallet WHERE customer_id = $1 FOR UPDATE'
      await shared.store.statements.prepare(lock).all([customerId])
      const isOver = new Promise<void>((done) => (unlock = done))
      resolve()
      await isOver
    })
  })
  return async () => {
    unlock()
    await transaction
  }
}

const authorize = ({ ocs }: ChargingInstance, uuid: string, index: number) =>
  ocs.authorize(question(uuid, '1555', callerOf(index)))

const ended = (uuid: string, index: number, ids: readonly number[]) =>
  endedCall(uuid, 20, {
    customerId: ids[index] ?? 0,
    callerNumber: callerOf(index),
    calledNumber: '1555',
  })

test.runIf(hasPostgres)(
  'calls of other customers begin and are charged while a wallet is locked',
  async () => {
    const { shared, ids, a, b, balances } = await customers()
    const unlock = await lockWallet(shared, ids[0] ?? 0)
    const locked = authorize(a, 'locked', 0)
    const kinds: string[] = []
    for (let round = 0; round < 5; round += 1)
      await Promise.all(
        ids.slice(1).map(async (_, index) => {
          const uuid = `call ${round} ${index + 1}`
          const instance = index % 2 === 0 ? a : b
          kinds.push((await authorize(instance, uuid, index + 1)).kind)
          await instance.ocs.report(ended(uuid, index + 1, ids))
        }),
      )
    expect(new Set(kinds)).toEqual(new Set(['granted']))
    expect((await balances()).slice(1)).toEqual(ids.slice(1).map(() => 900_000n))
    // Its own call was refused, as nobody knows what it may spend: it is not told that it has no
    // money.
    expect(await locked).toMatchObject({ kind: 'unreachable' })
    await unlock()
    await eventually(async () => expect((await authorize(a, 'afterwards', 0)).kind).toBe('granted'))
  },
)

test.runIf(hasPostgres)(
  'a record that waits for a locked wallet keeps no other from being stored, and is stored once',
  async () => {
    const { shared, ids, a, b, balances } = await customers()
    for (const [index] of ids.entries()) await authorize(a, `call ${index}`, index)
    const unlock = await lockWallet(shared, ids[0] ?? 0)
    const waits = a.ocs.report(ended('call 0', 0, ids))
    await Promise.all(
      ids.slice(1).map((_, at) => a.ocs.report(ended(`call ${at + 1}`, at + 1, ids))),
    )
    expect(await shared.records()).toHaveLength(CUSTOMERS - 1)
    // The wait for the row holds no other wallet: the other instance gets what it asks for.
    expect((await authorize(b, 'elsewhere', 1)).kind).toBe('granted')
    await unlock()
    await waits
    expect(await shared.records()).toHaveLength(CUSTOMERS)
    expect(await balances()).toEqual(ids.map(() => 980_000n))
  },
)

test.runIf(hasPostgres)(
  'money is not moved to a locked wallet, and the connection is free again within seconds',
  async () => {
    const { shared, ids, a } = await customers()
    const unlock = await lockWallet(shared, ids[0] ?? 0)
    const moves = ids.map((_, at) => topUp(a.ocs, ids[0] ?? 0, at + 1))
    const results = await Promise.allSettled(moves)
    expect(results.every(({ status }) => status === 'rejected')).toBe(true)
    await unlock()
    await topUp(a.ocs, ids[0] ?? 0, oneUnit)
  },
)
