/**
 * The questions of an instance to the database for its shares, and their times: the database
 * answers when the test says so.
 */
import { expect, test } from 'vitest'
import { shareDatabase } from '../../support/share-database.ts'

test('room that is granted after its call has given up is given back', async () => {
  const { shares, amounts, delayAnswers, pass } = shareDatabase()
  const answer = delayAnswers()
  const obtained = shares.of('calls', () => 0).obtain(5)
  await pass(2_000)
  expect((await obtained).isGiven).toBe(false)
  expect(amounts.get('calls')).toBe(1)
  answer()
  await pass(15_000)
  expect(amounts.get('calls')).toBe(0)
})

test('what earlier processes of the instance held is freed while calls wait for room', async () => {
  const { shares, done, pass } = shareDatabase(5)
  let isOver = false
  void shares
    .of('calls', () => 0)
    .obtain(5)
    .then(() => (isOver = true))
  await pass(20)
  expect(done).toEqual(['calls: 0'])
  void shares.alone()
  await pass(10)
  expect(isOver).toBe(false)
  expect(done).toContain('others freed')
})

test('calls that go on are stored before what earlier processes held is freed', async () => {
  const { shares, done, pass, delayAnswers } = shareDatabase()
  const answer = delayAnswers()
  shares.of('first', () => 2).noted(10)
  await pass(20)
  shares.of('second', () => 3).noted(10)
  void shares.alone()
  await pass(50)
  expect(done).toEqual(['first: 2'])
  answer()
  await pass(50)
  expect(done).toEqual(['first: 2', 'second: 3', 'others freed'])
})

test('an instance that others may take for gone frees nothing; then its calls are stored first', async () => {
  const { shares, instance, done, pass } = shareDatabase()
  instance.isHolding = false
  shares.of('calls', () => 3).noted(10)
  void shares.alone()
  await pass(500)
  expect(done).toEqual([])
  instance.isHolding = true
  await pass(500)
  expect(done).toEqual(['calls: 3', 'others freed'])
})

test('what an instance holds that others may have taken meanwhile is stored again before it is used', async () => {
  const { shares, instance, done, pass } = shareDatabase()
  const share = shares.of('calls', () => 0)
  const obtained = share.obtain(5)
  await pass(20)
  const { end } = await obtained
  end()
  expect(share.admits(5)).toBe(true)
  instance.isHolding = false
  expect(share.admits(5)).toBe(false)
  instance.isHolding = true
  expect(share.admits(5)).toBe(false)
  const before = done.length
  await pass(20)
  expect(done.length).toBeGreaterThan(before)
})

test('a call that comes while another one is asked for is asked for itself, and not refused', async () => {
  const { shares, delayAnswers, pass } = shareDatabase()
  const answer = delayAnswers()
  let used = 0
  const share = shares.of('calls', () => used)
  const dial = async (): Promise<boolean> => {
    const { isGiven, end } = await share.obtain(5)
    if (isGiven) used += 1
    end()
    return isGiven
  }
  const first = dial()
  await pass(10)
  const later = [dial(), dial(), dial(), dial(), dial()]
  answer()
  await pass(50)
  expect(await first).toBe(true)
  expect(await Promise.all(later)).toEqual([true, true, true, true, false])
})

test('a share that is forgotten while its statement fails keeps nobody waiting', async () => {
  const { shares, done, delayAnswers, pass } = shareDatabase()
  const fail = delayAnswers('fail')
  shares.of('calls', () => 2).noted(10)
  await pass(20)
  void shares.alone()
  shares.forget('calls')
  fail()
  await pass(2_000)
  expect(done).toEqual(['calls: 2', 'others freed'])
})
