/**
 * `OCS_FAIL_MODE` where an instance is cut off from the wallets that it shares: what it does not
 * know is no denial.
 */
import { describe, expect, test } from 'vitest'
import { question } from '../../support/books.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedWallet } from '../../support/shared-wallets.ts'
import { eventually } from '../../support/waiting.ts'

const oneUnit = 1_000_000

/** One instance with money in its wallet. */
async function opened(failMode: 'closed' | 'open', balanceMicros = oneUnit) {
  const made = await sharedWallet({ max_concurrent_calls: 2 })
  const proxy = await made.proxy()
  const instance = await made.instance('a', { failMode, url: proxy.url })
  if (balanceMicros > 0) await made.topUp(instance, balanceMicros)
  const ask = (uuid: string, callee = '1555', caller?: string) =>
    instance.ocs.authorize(question(uuid, callee, caller))
  return { ...made, proxy, instance, ask }
}

/** Others may take the instance for dead. */
async function cutOff(failMode: 'closed' | 'open', balanceMicros = oneUnit) {
  const made = await opened(failMode, balanceMicros)
  made.instance.isAlive = false
  return made
}

describe.runIf(hasPostgres)('an instance that is cut off from the database', () => {
  test('neither starts nor extends a call with `closed`, until it is back', async () => {
    const { instance, ask } = await opened('closed')
    expect(await ask('a')).toMatchObject({ kind: 'granted' })
    instance.isAlive = false
    expect(await ask('b')).toMatchObject({ kind: 'unreachable' })
    expect(await instance.ocs.extend('a', 60)).toEqual({ kind: 'denied', code: 'ocs_unreachable' })
    instance.isAlive = true
    await eventually(async () => expect(await ask('c')).toMatchObject({ kind: 'granted' }))
  })

  test('starts calls with `open`, marks them, lets them go on, and charges them in full', async () => {
    const { instance, ask, call, customerId, wallet, shared } = await cutOff('open')
    expect(await ask('a')).toMatchObject({
      kind: 'granted',
      grantedSeconds: 60,
      account: { customerId, isUnauthorizedByOcs: true },
    })
    expect(await instance.ocs.extend('a', 60)).toEqual({ kind: 'granted', grantedSeconds: 120 })
    await instance.ocs.report(call('a', 110))
    expect(await wallet()).toMatchObject({ balanceMicros: 890_000n })
    expect(await instance.ocs.authorizeForNode(question('b', '1555'))).toMatchObject({
      kind: 'granted',
    })
    instance.isAlive = true
    const settled = { kind: 'settled', costMicros: 10_000 }
    expect(await instance.ocs.reportFromNode(call('b', 10), '{}')).toMatchObject(settled)
    const marked = 'SELECT is_unauthorized_by_ocs AS it FROM cdr WHERE call_uuid = $1'
    expect(await shared.store.statements.prepare(marked).all(['b'])).toEqual([{ it: 1 }])
  })

  test('with `open` still denies what it knows: blocked prices, limits, callers without a customer', async () => {
    const { ask } = await cutOff('open')
    expect(await ask('b', '1900555')).toMatchObject({ code: 'destination_blocked' })
    expect(await ask('c', '1555', '+1999')).toMatchObject({ code: 'unknown_caller' })
    expect(await ask('d')).toMatchObject({ kind: 'granted' })
    expect(await ask('e')).toMatchObject({ kind: 'granted' })
    expect(await ask('f')).toMatchObject({ code: 'concurrent_limit' })
  })

  test('with `open` ends calls of an empty wallet once it hears from the database again', async () => {
    const { instance, ask, call, wallet } = await cutOff('open', 30_000)
    expect(await ask('a')).toMatchObject({ grantedSeconds: 60 })
    instance.isAlive = true
    let granted = 60
    await eventually(async () => {
      const answer = await instance.ocs.extend('a', granted)
      if (answer.kind === 'granted') granted = answer.grantedSeconds
      expect(answer).toEqual({ kind: 'denied', code: 'insufficient_funds' })
    })
    await instance.ocs.report(call('a', granted))
    const balanceMicros = 30_000n - BigInt(granted) * 1_000n
    expect(await wallet()).toMatchObject({ balanceMicros, heldMicros: 0n })
  })

  test('spends what it holds; then no call is told that its wallet is empty', async () => {
    const { instance, ask, call, proxy } = await opened('closed')
    await ask('a')
    await instance.ocs.report(call('a', 10))
    proxy.cut()
    expect(await ask('b')).toMatchObject({ grantedSeconds: 50 })
    expect(await ask('c')).toMatchObject({ kind: 'unreachable' })
    expect(await instance.ocs.extend('b', 50)).toEqual({ kind: 'denied', code: 'ocs_unreachable' })
  })

  test('does not say of a deduction that the wallet has too little', async () => {
    const { shared, instance, move } = await opened('closed')
    const { statements } = shared.store
    await statements.transaction(async () => {
      await statements.prepare('LOCK TABLE wallet IN EXCLUSIVE MODE').all([])
      await expect(move(instance, -oneUnit, 'one')).rejects.toThrow(
        'does not say what the wallet has',
      )
    })
    await eventually(async () =>
      expect(await move(instance, -oneUnit, 'two')).toEqual({ kind: 'moved', balanceMicros: 0n }),
    )
  })

  test('with `open` spends more than it holds before it is taken for dead', async () => {
    const { instance, ask, proxy } = await opened('open')
    expect(await ask('a')).toMatchObject({ account: { isUnauthorizedByOcs: false } })
    proxy.cut()
    expect(await ask('b')).toMatchObject({
      grantedSeconds: 60,
      account: { isUnauthorizedByOcs: true },
    })
    expect(await instance.ocs.extend('a', 60)).toEqual({ kind: 'granted', grantedSeconds: 120 })
  })
})
