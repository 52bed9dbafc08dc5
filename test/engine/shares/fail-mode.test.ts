/** `OCS_FAIL_MODE` where a node is cut off from the wallets that it shares: what it does not know is no denial. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { endedCall, plainRate, question, topUp } from '../../support/books.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { type PostgresProxy, postgresProxy } from '../../support/postgres-proxy.ts'
import { type Node, SharedWallets } from '../../support/shared-wallets.ts'
import { eventually } from '../../support/waiting.ts'

const oneUnit = 1_000_000

describe.runIf(hasPostgres)('a node that is cut off from the database', () => {
  let shared: SharedWallets
  let proxy: PostgresProxy
  let customerId: number

  beforeEach(async () => {
    shared = await SharedWallets.open(() => 0.5)
    proxy = await postgresProxy(shared.url)
    const blocked = { ...plainRate, prefix: '1900', is_blocked: 1 as const }
    const planId = await shared.addPlan([plainRate, blocked])
    customerId = await shared.addCustomer({
      name: '+15550001',
      rate_plan_id: planId,
      max_concurrent_calls: 2,
    })
  })
  afterEach(async () => {
    proxy.mend()
    await shared.close()
    proxy.close()
  })

  async function cutOff(failMode: 'closed' | 'open', balanceMicros: number): Promise<Node> {
    const node = await shared.node('a', { failMode, url: proxy.url })
    if (balanceMicros > 0) await topUp(node.ocs, customerId, balanceMicros)
    node.isAlive = false
    return node
  }
  /** Until what it returns is called, the database answers nothing that waits for this. */
  async function lock(sql: string): Promise<() => Promise<void>> {
    const { statements } = shared.store
    let unlock = (): void => undefined
    const unlocked = new Promise<void>((resolve) => {
      unlock = resolve
    })
    let over = unlocked
    await new Promise<void>((locked) => {
      over = statements.transaction(async () => {
        await statements.prepare(sql).all([])
        locked()
        await unlocked
      })
    })
    return () => {
      unlock()
      return over
    }
  }
  const record = (uuid: string, billsec: number) =>
    endedCall(uuid, billsec, { customerId, calledNumber: '1555' })

  test('starts no call with `closed`', async () => {
    const { ocs } = await cutOff('closed', oneUnit)
    expect(await ocs.authorize(question('a', '1555'))).toMatchObject({ kind: 'unreachable' })
  })

  test('starts calls with `open`, marks them, lets them go on, and charges them in full', async () => {
    const { ocs } = await cutOff('open', oneUnit)
    expect(await ocs.authorize(question('a', '1555'))).toMatchObject({
      kind: 'granted',
      grantedSeconds: 60,
      account: { customerId, isUnauthorizedByOcs: true },
    })
    expect(await ocs.extend('a', 60)).toEqual({ kind: 'granted', grantedSeconds: 120 })
    await ocs.report(record('a', 110))
    expect(await shared.wallets()).toMatchObject([{ balanceMicros: 890_000n }])
  })

  test('with `open` still denies what it knows: blocked prices, limits, callers without a customer', async () => {
    const { ocs } = await cutOff('open', oneUnit)
    const ask = (uuid: string, callee: string, caller?: string) =>
      ocs.authorize(question(uuid, callee, caller))
    expect(await ask('b', '1900555')).toMatchObject({ code: 'destination_blocked' })
    expect(await ask('c', '1555', '+1999')).toMatchObject({ code: 'unknown_caller' })
    expect(await ask('d', '1555')).toMatchObject({ kind: 'granted' })
    expect(await ask('e', '1555')).toMatchObject({ kind: 'granted' })
    expect(await ask('f', '1555')).toMatchObject({ code: 'concurrent_limit' })
  })

  test('with `open` ends calls of an empty wallet once it hears from the database again', async () => {
    const node = await cutOff('open', 30_000)
    expect(await node.ocs.authorize(question('a', '1555'))).toMatchObject({ grantedSeconds: 60 })
    node.isAlive = true
    let granted = 60
    await eventually(async () => {
      const answer = await node.ocs.extend('a', granted)
      if (answer.kind === 'granted') granted = answer.grantedSeconds
      expect(answer).toEqual({ kind: 'denied', code: 'insufficient_funds' })
    })
    await node.ocs.report(record('a', granted))
    const balanceMicros = 30_000n - BigInt(granted) * 1_000n
    expect(await shared.wallets()).toMatchObject([{ balanceMicros, heldMicros: 0n }])
  })

  test('spends what it holds; then no call is told that its wallet is empty', async () => {
    const { ocs } = await shared.node('a', { url: proxy.url })
    await topUp(ocs, customerId, oneUnit)
    await ocs.authorize(question('a', '1555'))
    await ocs.report(record('a', 10))
    proxy.cut()
    expect(await ocs.authorize(question('b', '1555'))).toMatchObject({ grantedSeconds: 50 })
    expect(await ocs.authorize(question('c', '1555'))).toMatchObject({ kind: 'unreachable' })
    expect(await ocs.extend('b', 50)).toEqual({ kind: 'denied', code: 'ocs_unreachable' })
  })

  test('does not say of a deduction that the wallet has too little', async () => {
    const { ocs, store } = await shared.node('a')
    await topUp(ocs, customerId, oneUnit)
    const deduct = (ref: string) =>
      ocs.move({
        customerId,
        kind: 'adjust',
        amountMicros: -oneUnit,
        ref,
        actor: 'test',
        note: null,
      })
    // Statements without locks are answered.
    const connect = () => store.statements.prepare('SELECT pg_sleep(0.02)').all([])
    await Promise.all([connect(), connect(), connect(), connect()])
    const unlock = await lock('LOCK TABLE wallet IN EXCLUSIVE MODE')
    try {
      await expect(deduct('one')).rejects.toThrow('does not say what the wallet has')
    } finally {
      await unlock()
    }
    await eventually(async () =>
      expect(await deduct('two')).toEqual({ kind: 'moved', balanceMicros: 0n }),
    )
  })

  test('with `open` spends more than it holds before it is taken for dead', async () => {
    const { ocs } = await shared.node('a', { failMode: 'open', url: proxy.url })
    await topUp(ocs, customerId, oneUnit)
    expect(await ocs.authorize(question('a', '1555'))).toMatchObject({
      kind: 'granted',
      account: { isUnauthorizedByOcs: false },
    })
    proxy.cut()
    expect(await ocs.authorize(question('b', '1555'))).toMatchObject({
      grantedSeconds: 60,
      account: { isUnauthorizedByOcs: true },
    })
    expect(await ocs.extend('a', 60)).toEqual({ kind: 'granted', grantedSeconds: 120 })
  })

  test('with `open` a call whose limits cannot be asked still needs money', async () => {
    const { ocs, store } = await shared.node('a', { failMode: 'open' })
    // A busy machine may take longer for the first connections than a call waits.
    const connect = () => store.statements.prepare('SELECT pg_sleep(0.02)').all([])
    await Promise.all([connect(), connect(), connect(), connect()])
    const unlock = await lock(
      `SELECT pg_advisory_xact_lock(hashtextextended('customer ${customerId} calls', 11))`,
    )
    try {
      expect(await ocs.authorize(question('a', '1555'))).toMatchObject({
        code: 'insufficient_funds',
      })
      await topUp(ocs, customerId, oneUnit)
      expect(await ocs.authorize(question('b', '1555'))).toMatchObject({
        kind: 'granted',
        account: { isUnauthorizedByOcs: false },
      })
    } finally {
      await unlock()
    }
  })

  test('a report of a node tells that its call was allowed without the database', async () => {
    const node = await cutOff('open', oneUnit)
    expect(await node.ocs.authorizeForNode(question('a', '1555'))).toMatchObject({
      kind: 'granted',
    })
    node.isAlive = true
    expect(await node.ocs.reportFromNode(record('a', 10), '{}')).toMatchObject({
      kind: 'settled',
      costMicros: 10_000,
    })
    const marked = shared.store.statements.prepare('SELECT is_unauthorized_by_ocs AS it FROM cdr')
    expect(await marked.all([])).toEqual([{ it: 1 }])
  })
})
