/** Several processes spend from the same wallets on one PostgreSQL. */
import { setTimeout as later } from 'node:timers/promises'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { UNANSWERED_WAIT_MS } from '../../../engine/shares/node-share.ts'
import { endedCall, plainRate, question, topUp } from '../../support/books.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { postgresProxy } from '../../support/postgres-proxy.ts'
import { SharedWallets } from '../../support/shared-wallets.ts'
import { eventually } from '../../support/waiting.ts'

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

  test('a call that ends on one is in its record, its ledger and its wallet, and in no share', async () => {
    const { nodes } = await opened(['a'], oneUnit)
    const [a] = nodes
    expect(await a?.ocs.authorize(question('one', '1555'))).toMatchObject({
      kind: 'granted',
      grantedSeconds: 60,
    })
    await a?.ocs.report(endedCall('one', 30, { calledNumber: '1555' }))
    expect(await shared.records()).toEqual([{ call_uuid: 'one', billsec: 30, cost_micros: 30_000 }])
    expect(await shared.wallets()).toMatchObject([
      {
        balanceMicros: 970_000n,
        ledgerMicros: 970_000n,
        heldMicros: 30_000n,
      },
    ])
    await a?.stop()
    expect(await shared.wallets()).toMatchObject([{ heldMicros: 0n }])
  })

  const of = (customerId: number) => ({ customerId, calledNumber: '1555' })

  test('a credit limit that is lowered takes back what no call holds', async () => {
    const { nodes, customerId } = await opened(['a'], 0)
    const set = (micros: number) =>
      shared.store.statements.prepare('UPDATE customer SET credit_limit_micros = $1').run([micros])
    await set(oneUnit)
    const { ocs } = nodes[0] ?? {}
    await ocs?.reloadCustomers()
    await ocs?.authorize(question('idle', '1555'))
    await ocs?.authorize(question('held', '1555'))
    await ocs?.report(endedCall('idle', 1, of(customerId)))
    expect(await shared.wallets()).toMatchObject([{ heldMicros: 119_000n }])
    await set(0)
    await ocs?.reloadCustomers()
    await eventually(async () =>
      expect(await shared.wallets()).toMatchObject([{ heldMicros: 60_000n }]),
    )
    expect(await ocs?.authorize(question('more', '1555'))).toMatchObject({
      code: 'insufficient_funds',
    })
  })

  test('a call that is charged beyond what was held takes back what other processes do not need', async () => {
    const { nodes, customerId } = await opened(['a', 'b'], 100_000)
    const [a, b] = nodes
    await b?.ocs.authorize(question('idle', '1555'))
    await b?.ocs.report(endedCall('idle', 1, of(customerId)))
    expect(await shared.wallets()).toMatchObject([{ heldMicros: 59_000n }])
    await a?.ocs.report(endedCall('late', 90, of(customerId)))
    await eventually(async () =>
      expect(await shared.wallets()).toMatchObject([{ balanceMicros: 9_000n, heldMicros: 0n }]),
    )
  })

  test('calls of a wallet that another process has used up cost few statements, and go on soon after there is money again', async () => {
    const { nodes, customerId } = await opened(['a', 'b'], 60_000)
    const [a, b] = nodes
    await a?.ocs.authorize(question('live', '1555'))
    const asked = async () =>
      (await shared.store.statements
        .prepare<{ request: number }>(
          "SELECT request FROM share WHERE kind = 'wallet' AND node = 'b'",
        )
        .get([])) ?? { request: 0 }
    const refused = { kind: 'denied', code: 'insufficient_funds' }
    expect(await b?.ocs.authorize(question('first', '1555'))).toMatchObject(refused)
    const before = await asked()
    const beganAt = Date.now()
    const answers = []
    for (let call = 0; call < 60; call += 1) {
      answers.push(b?.ocs.authorize(question(`refused ${call}`, '1555')))
      await later(16)
    }
    for (const answer of answers) expect(await answer).toMatchObject(refused)
    const seconds = (Date.now() - beganAt) / 1_000
    expect(((await asked()).request - before.request) / seconds).toBeLessThan(25)
    await a?.ocs.report(endedCall('live', 10, of(customerId)))
    await eventually(async () =>
      expect(await b?.ocs.authorize(question('later', '1555'))).toMatchObject({ kind: 'granted' }),
    )
  })

  test('a call waits for a wallet that another transaction has locked while the server answers, and is not refused', async () => {
    const { nodes, customerId } = await opened(['a'], oneUnit)
    const { statements } = shared.store
    const connect = () => nodes[0]?.store.statements.prepare('SELECT pg_sleep(0.02)').all([])
    await Promise.all([connect(), connect(), connect()])
    let locked = (): void => undefined
    const isLocked = new Promise<void>((resolve) => (locked = resolve))
    const over = statements.transaction(async () => {
      await statements.prepare('SELECT id FROM wallet FOR UPDATE').all([])
      locked()
      await later(2 * UNANSWERED_WAIT_MS)
    })
    await isLocked
    expect(await nodes[0]?.ocs.authorize(question('patient', '1555'))).toMatchObject({
      kind: 'granted',
      grantedSeconds: 60,
      account: { customerId },
    })
    await over
    expect(await shared.wallets()).toMatchObject([{ heldMicros: 60_000n }])
  })

  test('a call that is refused because the database does not say what there is says so, in its verdict and in the figures', async () => {
    const { nodes, customerId } = await opened(['a'], oneUnit)
    const proxy = await postgresProxy(shared.url)
    onTestFinished(() => proxy.close())
    const c = await shared.node('c', { url: proxy.url })
    expect(customerId).toBeGreaterThan(0)
    proxy.delayMs = 2_000
    expect(await c.ocs.authorize(question('unreachable', '1555'))).toMatchObject({
      kind: 'unreachable',
      by: 'lease_unheard',
    })
    expect(c.ocs.stats().verdicts).toEqual({ lease_unheard: 1 })
    c.isAlive = false
    expect(await c.ocs.authorize(question('away', '1555'))).toMatchObject({ by: 'database_away' })
    c.isAlive = true
    proxy.delayMs = 0
    expect(nodes).toHaveLength(1)
  })
})
