import Sqlite from 'better-sqlite3'
import { expect, test } from 'vitest'
import { GroupCommit } from '../../schema/group-commit.ts'
import { Storage } from '../../schema/storage/storage.ts'
import { ManualTime } from '../support/manual-time.ts'

function groupOn() {
  const sqlite = new Sqlite(':memory:')
  sqlite.exec('CREATE TABLE item (name TEXT PRIMARY KEY) STRICT')
  const time = new ManualTime(0)
  const storage = new Storage()
  const failures: number[] = []
  const group = new GroupCommit({
    store: { sqlite, storage },
    schedule: time.schedule,
    onFailure: (_, waiting) => failures.push(waiting),
  })
  const insert = sqlite.prepare('INSERT INTO item VALUES (?)')
  const done: string[] = []
  const refused: string[] = []
  const add = (name: string) =>
    group.add({
      run: () => insert.run(name).changes,
      done: () => done.push(name),
      refused: () => refused.push(name),
    })
  const stored = () => sqlite.prepare('SELECT name FROM item ORDER BY rowid').pluck().all()
  return { sqlite, storage, time, group, add, done, refused, failures, stored }
}

test('what is added within ten milliseconds is written in one transaction, in order', () => {
  const { time, group, add, done, stored } = groupOn()
  add('a')
  time.advance(9)
  add('b')
  expect([stored(), done]).toEqual([[], []])
  time.advance(1)
  expect([stored(), done]).toEqual([
    ['a', 'b'],
    ['a', 'b'],
  ])
  expect(group.stats()).toEqual({ waiting: 0, commits: 1, failures: 0 })
})

test('a hundred writes do not wait', () => {
  const { group, add, stored } = groupOn()
  for (let index = 0; index < 100; index += 1) add(`item-${index}`)
  expect(stored()).toHaveLength(100)
  expect(group.stats().commits).toBe(1)
})

test('a write is reported as done only after its group is committed', () => {
  const { sqlite, group, stored } = groupOn()
  const seen: boolean[] = []
  group.add({
    run: () => sqlite.exec("INSERT INTO item VALUES ('a')"),
    done: () => seen.push(sqlite.inTransaction),
  })
  group.flush()
  expect(seen).toEqual([false])
  expect(stored()).toEqual(['a'])
})

test('a group that fails is written whole, once, when the database takes it again', () => {
  const { sqlite, time, group, add, done, failures, stored } = groupOn()
  sqlite.exec('ALTER TABLE item RENAME TO gone; CREATE VIEW item AS SELECT * FROM gone')
  add('a')
  add('b')
  time.advance(10)
  add('c')
  expect(failures).toEqual([2])
  expect(group.stats()).toEqual({ waiting: 3, commits: 0, failures: 1 })
  sqlite.exec('DROP VIEW item; ALTER TABLE gone RENAME TO item')
  time.advance(1_000)
  expect(stored()).toEqual(['a', 'b', 'c'])
  expect(done).toEqual(['a', 'b', 'c'])
  expect(time.waiting).toBe(0)
})

test('a write that breaks a constraint is refused alone; the others of its group are kept', () => {
  const { time, add, done, refused, stored } = groupOn()
  add('a')
  add('a')
  add('b')
  time.advance(10)
  expect([stored(), done, refused]).toEqual([['a', 'b'], ['a', 'b'], ['a']])
})

test('a write that waits for an answer is told when it is not stored in time, and is not stored later', async () => {
  const { sqlite, time, group, stored } = groupOn()
  sqlite.pragma('query_only = ON')
  const answer = group.written(() => sqlite.exec("INSERT INTO item VALUES ('late')"), 2_000)
  time.advance(2_000)
  expect(await answer).toBe(false)
  expect(group.waiting).toBe(0)
  sqlite.pragma('query_only = OFF')
  const next = group.written(() => sqlite.exec("INSERT INTO item VALUES ('next')"), 2_000)
  time.advance(1_000)
  expect(await next).toBe(true)
  expect(stored()).toEqual(['next'])
})

test('a write that fills its group is told at once', async () => {
  const { sqlite, group, add, stored } = groupOn()
  for (let index = 0; index < 99; index += 1) add(`item-${index}`)
  expect(await group.written(() => sqlite.exec("INSERT INTO item VALUES ('last')"), 1)).toBe(true)
  expect(stored()).toHaveLength(100)
})

test('what a full disk kept waiting is written group by group, with turns for others in between', () => {
  const { sqlite, time, group, add, stored } = groupOn()
  sqlite.pragma('query_only = ON')
  for (let index = 0; index < 250; index += 1) add(`item-${index}`)
  time.advance(1_000)
  expect(group.waiting).toBe(250)
  sqlite.pragma('query_only = OFF')
  const lengths = new Set<number>()
  for (let ms = 0; ms < 1_100; ms += 1) {
    time.advance(1)
    lengths.add(stored().length)
  }
  expect([...lengths]).toEqual([0, 100, 200, 250])
})

test('failures are logged ever more rarely, and the storage hears of each and of their end', () => {
  const { sqlite, storage, time, group, add, failures } = groupOn()
  sqlite.pragma('query_only = ON')
  add('a')
  time.advance(60_000)
  expect(failures.length).toBeLessThan(8)
  expect(storage.episode).toBe(1)
  expect(group.unwritten()).toEqual([])
  sqlite.pragma('query_only = OFF')
  time.advance(1_000)
  expect(storage.episode).toBeUndefined()
})

test('a group whose last write is taken back fails no longer', () => {
  const { sqlite, storage, time, group } = groupOn()
  sqlite.pragma('query_only = ON')
  const withdraw = group.add({ run: () => sqlite.exec("INSERT INTO item VALUES ('a')") })
  time.advance(10)
  expect(storage.episode).toBe(1)
  withdraw()
  expect(storage.episode).toBeUndefined()
  expect(group.flush()).toBe(true)
})

test('flush writes at once and says whether that worked', () => {
  const { sqlite, group, add, stored } = groupOn()
  add('a')
  expect(group.flush()).toBe(true)
  expect(stored()).toEqual(['a'])
  sqlite.exec('DROP TABLE item')
  add('b')
  expect(group.flush()).toBe(false)
})
