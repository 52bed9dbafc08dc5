import { expect, test } from 'vitest'
import { WriteQueue } from '../../../control/webhooks/write-queue.ts'
import { all, execute } from '../../../schema/sql/query.ts'
import { emptyStore } from '../../support/empty-store.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { turnOfEventLoop } from '../../support/waiting.ts'

function open() {
  const store = emptyStore()
  const time = new ManualTime(0)
  const failures: string[] = []
  const done: string[] = []
  const queue = new WriteQueue({
    ...{ store, schedule: time.schedule },
    onFailure: (error, waiting) => failures.push(`${String(error)}, ${waiting} waiting`),
  })
  const setting = (name: string) => store.db.insertInto('setting').values({ name, value: 'x' })
  const add = (name: string) =>
    queue.add({
      run: async () => void (await execute(store, setting(name))),
      done: () => void done.push(name),
    })
  const stored = async () =>
    (await all(store, store.db.selectFrom('setting').select('name').where('value', '=', 'x'))).map(
      ({ name }) => name,
    )
  const pass = async (ms: number) => {
    time.advance(ms)
    await turnOfEventLoop()
  }
  const fail = (reason: string) =>
    store.sqlite.exec(`CREATE TRIGGER stuck BEFORE INSERT ON setting WHEN new.name = 'b'
      BEGIN SELECT RAISE(${reason}, 'stuck'); END`)
  return { store, time, queue, add, done, failures, stored, pass, fail }
}

test('writes of ten milliseconds are stored together, and reported after their commit, in order', async () => {
  const { add, pass, done, stored, queue, store } = open()
  const commits: boolean[] = []
  add('a')
  await pass(9)
  queue.add({
    run: () => Promise.resolve(),
    done: () => void commits.push(store.sqlite.inTransaction),
  })
  add('b')
  expect([await stored(), queue.waiting]).toEqual([[], 3])
  await pass(1)
  expect([await stored(), done, commits, queue.waiting]).toEqual([
    ['a', 'b'],
    ['a', 'b'],
    [false],
    0,
  ])
})

test('a group that cannot be stored stays whole, and is told less and less often', async () => {
  const { store, add, pass, done, stored, failures, time } = open()
  store.sqlite.pragma('query_only = ON')
  add('a')
  add('b')
  await pass(10)
  add('c')
  for (let second = 0; second < 3; second += 1)
    for (let step = 0; step < 20; step += 1) await pass(50)
  expect([done, failures.length]).toEqual([[], 3])
  expect(store.storage.episode).toBe(1)
  store.sqlite.pragma('query_only = OFF')
  await pass(1_000)
  expect([await stored(), done]).toEqual([
    ['a', 'b', 'c'],
    ['a', 'b', 'c'],
  ])
  expect([store.storage.episode, time.waiting]).toEqual([undefined, 0])
})

test('a write that can never be stored is dropped; the others of its group are stored', async () => {
  const { add, pass, done, stored, failures, fail } = open()
  fail('ABORT')
  for (const name of ['a', 'b', 'c']) add(name)
  await pass(10)
  expect([await stored(), done]).toEqual([
    ['a', 'c'],
    ['a', 'c'],
  ])
  expect(failures).toEqual(['SqliteError: stuck, 1 waiting'])
})

test('at the end everything is written at once, whatever is being written', async () => {
  const { add, queue, done, time } = open()
  for (let index = 0; index < 250; index += 1) add(`item ${index}`)
  time.advance(10)
  expect(await Promise.all([queue.flush(), queue.flush()])).toEqual([true, true])
  expect([done.length, queue.waiting, time.waiting]).toEqual([250, 0, 0])
})
