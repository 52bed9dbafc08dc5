/** Several processes spend from the same wallets on one PostgreSQL. */
import { afterEach, describe, expect, test } from 'vitest'
import { endedCall, plainRate, question, topUp } from '../../../support/books.ts'
import { hasPostgres } from '../../../support/postgres.ts'
import { SharedWallets } from '../../../support/shared-wallets.ts'

const oneUnit = 1_000_000

describe.runIf(hasPostgres)('wallets of several processes', () => {
  let shared: SharedWallets
  afterEach(() => shared.close())

  async function opened(names: readonly string[], balanceMicros: number) {
    shared = await SharedWallets.open(() => 0.5)
    const planId = await shared.addPlan([plainRate])
    const customerId = await shared.addCustomer({ name: '+15550001', rate_plan_id: planId })
    const nodes = []
    for (const name of names) nodes.push(await shared.node(name))
    const [first] = nodes
    if (first !== undefined && balanceMicros > 0) await topUp(first.ocs, customerId, balanceMicros)
    return { nodes, customerId }
  }

  test('a call that ends on one is in its record, its ledger and its wallet, and on no lease', async () => {
    const { nodes } = await opened(['a'], oneUnit)
    const [a] = nodes
    expect(await a?.ocs.authorize(question('one', '1555'))).toMatchObject({
      ...{ kind: 'granted', grantedSeconds: 60 },
    })
    await a?.ocs.report(endedCall('one', 30, { calledNumber: '1555' }))
    expect(await shared.records()).toEqual([{ call_uuid: 'one', billsec: 30, cost_micros: 30_000 }])
    expect(await shared.wallets()).toMatchObject([
      {
        balanceMicros: 970_000n,
        ledgerMicros: 970_000n,
        leasedMicros: 30_000n,
        leasesMicros: 30_000n,
      },
    ])
    await a?.stop()
    expect(await shared.wallets()).toMatchObject([{ leasedMicros: 0n, leasesMicros: 0n }])
  })
})
