/** Calls that wait for money of a wallet, in manual time. */
import { expect, test } from 'vitest'
import { SHARE_WAIT_MS, UNANSWERED_WAIT_MS } from '../../../engine/shares/waiting-calls.ts'
import { walletShares } from '../../../engine/shares/instance-shares.ts'
import { shareDatabase } from '../../support/share-database.ts'

const BUSY_WAIT_MS = 2_000

/** A call that needs 100 of a wallet that has 1,000. */
function waiting(elsewhere = 0) {
  const opened = shareDatabase(elsewhere, walletShares())
  opened.database.bound = 1_000
  const answer = opened.delayAnswers()
  let outcome: string | undefined
  const dial = async (): Promise<void> => {
    const { isGiven, isKnown } = await opened.shares.of('1', () => 0).obtainAmount(100)
    outcome = isGiven ? 'given' : isKnown ? 'no more' : 'not known'
  }
  void dial()
  return { ...opened, answer, outcome: () => outcome }
}

test('a call waits for 500 ms for a database that does not answer, and hears that nothing is known', async () => {
  const { pass, outcome } = waiting()
  await pass(UNANSWERED_WAIT_MS - 10)
  expect(outcome()).toBeUndefined()
  await pass(10)
  expect(outcome()).toBe('not known')
})

test('a call waits for two seconds for a database that answers other questions', async () => {
  const { pass, database, outcome } = waiting()
  database.isThere = true
  await pass(BUSY_WAIT_MS - 10)
  expect(outcome()).toBeUndefined()
  await pass(10)
  expect(outcome()).toBe('not known')
})

test('a call that hears that others have the money hears after 100 ms that there is none', async () => {
  const { answer, pass, outcome } = waiting(1_000)
  answer()
  await pass(SHARE_WAIT_MS - 10)
  expect(outcome()).toBeUndefined()
  await pass(20)
  expect(outcome()).toBe('no more')
})

test('a process that stood still waits for the database when it goes on, and hears it', async () => {
  const { time, answer, pass, outcome } = waiting()
  await pass(10)
  time.stall(2_500)
  await pass(SHARE_WAIT_MS)
  expect(outcome()).toBeUndefined()
  answer()
  await pass(10)
  expect(outcome()).toBe('given')
})

test('what is obtained for a call is not free for another one until the call is decided', async () => {
  const { shares, database, delayAnswers, pass } = shareDatabase(0, walletShares())
  database.bound = 150
  delayAnswers()()
  const share = shares.of('1', () => 0)
  const first = share.obtainAmount(100)
  await pass(10)
  expect(share.free).toBe(0)
  const second = share.obtainAmount(100)
  await pass(50)
  expect(await second).toMatchObject({ isGiven: false, isKnown: true })
  ;(await first).end()
  expect(share.free).toBe(150)
})

test('the share in memory is never more than the stored one, whatever comes first', async () => {
  const { shares, amounts, database, debit, delayAnswers, pass } = shareDatabase(0, walletShares())
  database.bound = 200
  let used = 0
  const share = shares.of('1', () => used)
  const first = share.obtainAmount(100)
  await pass(10)
  ;(await first).end()
  used = 100
  const answer = delayAnswers()
  const second = share.obtainAmount(60)
  await pass(10)
  // The request is stored, its answer is on the way, and so is the debit.
  const tell = debit('1', 40)
  tell()
  used = 60
  answer()
  await pass(20)
  ;(await second).end()
  expect(share.free + used).toBeLessThanOrEqual(amounts.get('1') ?? 0)
  expect(amounts.get('1')).toBeLessThanOrEqual(database.bound)
})
