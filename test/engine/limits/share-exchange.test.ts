/** What a node asks of the database for its shares, and when: the database answers when the test says so. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { SharedLimits } from '../../../engine/limits/shared-limits.ts'
import type { SqlValue, Statements } from '../../../schema/sql/statements.ts'
import { ManualTime } from '../../support/manual-time.ts'

interface Asked {
  readonly name: string
  readonly used: number
  readonly base: number
  readonly extra: number
  readonly at_most: number
}

/** One node on a database in which other nodes have `elsewhere` of each limit. */
function openNode(elsewhere = 0) {
  const time = new ManualTime(0)
  const node = { isHolding: true }
  const slots = new Map<string, number>()
  /** What was stored and freed, in this order. */
  const done: string[] = []
  let answered = Promise.resolve()
  const take = async (asked: readonly Asked[]) => {
    const rows = asked.map(({ name, used, base, extra, at_most }) => {
      const granted = Math.max(used, Math.min(at_most - elsewhere, base + extra))
      slots.set(name, granted)
      done.push(`${name}: ${granted}`)
      return { of_resource: name, granted, elsewhere }
    })
    await answered
    return rows
  }
  const statements = {
    prepare: (sql: string) => ({
      all: ([asked]: readonly SqlValue[]) => take(JSON.parse(String(asked)) as Asked[]),
      run: async () => {
        if (sql.includes('process <> $2')) done.push('others freed')
        return 0
      },
    }),
  } as unknown as Statements
  const limits = new SharedLimits({
    store: { statements },
    now: time.now,
    schedule: time.schedule,
    log: () => undefined,
    members: {
      name: 'a',
      process: '2',
      canHold: () => node.isHolding,
      size: () => 1,
      gone: () => [],
      notices: { on: () => () => undefined, notify: () => undefined },
    },
  })
  return {
    limits,
    node,
    slots,
    done,
    /** Answers wait until what it returns is called. */
    delayAnswers: (): (() => void) => {
      let answer = (): void => undefined
      answered = new Promise((resolve) => {
        answer = resolve
      })
      return answer
    },
    /** Statements have their turns on the way. */
    pass: async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 10) {
        time.advance(10)
        await nextTurn()
      }
    },
  }
}

test('room that is granted after its call has given up is given back', async () => {
  const { limits, slots, delayAnswers, pass } = openNode()
  const answer = delayAnswers()
  const obtained = limits.of('calls', () => 0).obtain(5)
  await pass(2_000)
  expect((await obtained).isGiven).toBe(false)
  expect(slots.get('calls')).toBe(1)
  answer()
  await pass(15_000)
  expect(slots.get('calls')).toBe(0)
})

test('a call waits for half a second for a database that has not answered', async () => {
  const { limits, delayAnswers, pass } = openNode()
  const answer = delayAnswers()
  let isGiven: boolean | undefined
  const obtain = () =>
    limits
      .of('calls', () => 0)
      .obtain(5)
      .then((hold) => (isGiven = hold.isGiven))
  void obtain()
  await pass(400)
  expect(isGiven).toBeUndefined()
  answer()
  await pass(10)
  expect(isGiven).toBe(true)
})

test('a call that hears that other nodes have the room waits a tenth of a second for it', async () => {
  const { limits, pass } = openNode(5)
  let isGiven: boolean | undefined
  void limits
    .of('calls', () => 0)
    .obtain(5)
    .then((hold) => (isGiven = hold.isGiven))
  await pass(80)
  expect(isGiven).toBeUndefined()
  await pass(40)
  expect(isGiven).toBe(false)
})

test('what earlier processes of the node held is freed while calls wait for room', async () => {
  const { limits, done, pass } = openNode(5)
  let isOver = false
  void limits
    .of('calls', () => 0)
    .obtain(5)
    .then(() => (isOver = true))
  await pass(20)
  expect(done).toEqual(['calls: 0'])
  void limits.alone()
  await pass(10)
  expect(isOver).toBe(false)
  expect(done).toContain('others freed')
})

test('calls that go on are stored before what earlier processes held is freed', async () => {
  const { limits, done, pass, delayAnswers } = openNode()
  const answer = delayAnswers()
  limits.of('first', () => 2).noted(10)
  await pass(20)
  limits.of('second', () => 3).noted(10)
  void limits.alone()
  await pass(50)
  expect(done).toEqual(['first: 2'])
  answer()
  await pass(50)
  expect(done).toEqual(['first: 2', 'second: 3', 'others freed'])
})

test('a node that others may take for gone frees nothing; then its calls are stored first', async () => {
  const { limits, node, done, pass } = openNode()
  node.isHolding = false
  limits.of('calls', () => 3).noted(10)
  void limits.alone()
  await pass(500)
  expect(done).toEqual([])
  node.isHolding = true
  await pass(500)
  expect(done).toEqual(['calls: 3', 'others freed'])
})

test('what a node holds that others may have taken meanwhile is stored again before it is used', async () => {
  const { limits, node, done, pass } = openNode()
  const share = limits.of('calls', () => 0)
  const obtained = share.obtain(5)
  await pass(20)
  const { end } = await obtained
  end()
  expect(share.admits(5)).toBe(true)
  node.isHolding = false
  expect(share.admits(5)).toBe(false)
  node.isHolding = true
  expect(share.admits(5)).toBe(false)
  const before = done.length
  await pass(20)
  expect(done.length).toBeGreaterThan(before)
})

test('a node that others may take for gone can stop', async () => {
  const { limits, node, done } = openNode()
  node.isHolding = false
  limits.of('calls', () => 3).noted(10)
  await limits.stop()
  expect(done).toEqual([])
})
