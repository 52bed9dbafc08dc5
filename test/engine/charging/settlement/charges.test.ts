/** A call that was cut off a moment past its grant pays what its wallet has, wherever that lies. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { endedCall, openCall, plainRate, question, topUp } from '../../../support/books.ts'
import { hasPostgres } from '../../../support/postgres.ts'
import { type PostgresProxy, postgresProxy } from '../../../support/postgres-proxy.ts'
import { type Node, SharedWallets } from '../../../support/shared-wallets.ts'

/** Of the 61 s that each call lasts. */
const costMicros = 61_000

describe.runIf(hasPostgres)('calls that are cut off, on PostgreSQL', () => {
  let shared: SharedWallets
  let customerId: number
  const proxies: PostgresProxy[] = []

  beforeEach(async () => {
    shared = await SharedWallets.open(() => 0.5)
    const planId = await shared.addPlan([plainRate])
    customerId = await shared.addCustomer({ name: '+15550001', rate_plan_id: planId })
  })
  afterEach(async () => {
    await shared.close()
    for (const proxy of proxies.splice(0)) proxy.close()
  })

  /** Two processes, and a call on the first of them, whose grant of 60 s holds less than the wallet has. */
  async function talking(balanceMicros: number, url?: string): Promise<Node> {
    const other = await shared.node('b')
    const node = await shared.node('a', url === undefined ? {} : { url })
    await topUp(other.ocs, customerId, balanceMicros)
    await answer(node, 'one')
    return node
  }
  async function answer({ ocs }: Node, uuid: string): Promise<void> {
    expect(await ocs.authorize(question(uuid, '1555'))).toMatchObject({ grantedSeconds: 60 })
    expect(await ocs.answered(openCall(uuid, Date.now(), of()), '{}')).toBe(true)
  }
  const of = () => ({ customerId, calledNumber: '1555' })
  const ended = (uuid = 'one') => endedCall(uuid, 61, of())
  async function proxied(): Promise<PostgresProxy> {
    const proxy = await postgresProxy(shared.url)
    proxies.push(proxy)
    return proxy
  }
  const costs = async () => (await shared.records()).map((record) => record.cost_micros)

  test('one pays its whole price where the wallet has it', async () => {
    const { ocs } = await talking(costMicros)
    await ocs.report(ended())
    expect(await costs()).toEqual([costMicros])
    expect(await shared.wallets()).toMatchObject([{ balanceMicros: 0n, heldMicros: 0n }])
  })

  test('one pays what another process gives back', async () => {
    const node = await talking(2 * costMicros)
    const other = await shared.node('c')
    expect(await other.ocs.authorize(question('two', '1555'))).toMatchObject({ grantedSeconds: 60 })
    await other.ocs.report(endedCall('two', 1, of()))
    await node.ocs.report(ended())
    expect(await costs()).toEqual([costMicros, 1_000])
  })

  test('one pays all that the wallet has, and no more', async () => {
    const { ocs } = await talking(costMicros - 500)
    await ocs.report(ended())
    expect(await costs()).toEqual([costMicros - 500])
    expect(await shared.wallets()).toMatchObject([{ balanceMicros: 0n, heldMicros: 0n }])
  })

  test('the report of a node is answered with its whole price, also when it comes twice', async () => {
    const { ocs } = await talking(2 * costMicros)
    const report = () => ocs.reportFromNode(ended(), '{}')
    const answers = await Promise.all([report(), report()])
    expect(answers).toMatchObject([
      { kind: 'settled', costMicros, isDuplicate: false },
      { kind: 'settled', costMicros, isDuplicate: true },
    ])
    expect(await costs()).toEqual([costMicros])
  })

  test('without the database one is charged from the share, in a moment', async () => {
    const proxy = await proxied()
    const { ocs } = await talking(costMicros, proxy.url)
    proxy.cut()
    let stored: Promise<void> | undefined
    await new Promise<void>((safe) => void (stored = ocs.report(ended(), safe)))
    proxy.mend()
    await stored
    const [cost] = await costs()
    expect(cost).toBeGreaterThanOrEqual(60_000)
    expect(cost).toBeLessThan(costMicros)
  })

  test('a crash while one waits leaves the call as it was before its end: it goes on, and is charged once', async () => {
    const proxy = await proxied()
    const { ocs, kill } = await talking(costMicros, proxy.url)
    proxy.cut()
    let isSafe = false
    void ocs.report(ended(), () => (isSafe = true)).catch(() => undefined)
    await kill()
    expect(isSafe).toBe(false)
    const next = await shared.node('a')
    expect(await next.ocs.start()).toMatchObject({ saved: [{ callUuid: 'one' }] })
    expect(next.ocs.resume('one')).toBe(true)
    await next.ocs.report(ended())
    expect(await costs()).toEqual([costMicros])
    expect(await shared.wallets()).toMatchObject([{ ledgerMicros: 0n, heldMicros: 0n }])
  })

  test('a process that stops decides those that wait first', async () => {
    const { ocs, stop } = await talking(costMicros)
    let isSafe = false
    const stored = ocs.report(ended(), () => (isSafe = true))
    await stop()
    await stored
    expect(isSafe).toBe(true)
    expect(await costs()).toEqual([costMicros])
  })
})
