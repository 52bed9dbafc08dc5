/** Asynchronous statements and transactions on SQLite, against a real database. */
import { setTimeout as later } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { GroupCommit } from '../../../schema/group-commit.ts'
import { openDatabase, type LocalStore } from '../../../schema/open.ts'
import type { Statements } from '../../../schema/sql/statements.ts'

let store: LocalStore
let statements: Statements

beforeEach(() => {
  store = openDatabase(':memory:')
  store.sqlite.exec('CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)')
  statements = store.statements
})
afterEach(() => store.close())

const add = (name: string) => statements.prepare('INSERT INTO thing (name) VALUES (?)').run([name])
const names = async () =>
  (await statements.prepare<{ name: string }>('SELECT name FROM thing ORDER BY id').all([])).map(
    ({ name }) => name,
  )

test('a transaction is committed whole, and its result is returned', async () => {
  const result = await statements.transaction(async () => {
    await add('a')
    await add('b')
    return names()
  })
  expect(result).toEqual(['a', 'b'])
  expect(store.sqlite.inTransaction).toBe(false)
  expect(await names()).toEqual(['a', 'b'])
})

test('a rejected transaction is rolled back whole', async () => {
  await add('a')
  const refused = statements.transaction(async () => {
    await add('b')
    await add('a')
  })
  await expect(refused).rejects.toThrow('UNIQUE constraint failed')
  expect(await names()).toEqual(['a'])
})

test('statements of others wait until the transaction has ended, in their order', async () => {
  const failing = statements.transaction(async () => {
    await add('inside')
    await names()
    throw new Error('no')
  })
  const writing = add('outside')
  const second = statements.transaction(() => add('second'))
  await expect(failing).rejects.toThrow('no')
  await Promise.all([writing, second])
  expect(await names()).toEqual(['outside', 'second'])
})

test('a statement in a function that knows no transaction belongs to the one of its caller', async () => {
  const nested = async (): Promise<void> => {
    await Promise.resolve()
    await add('nested')
  }
  await expect(
    statements.transaction(async () => {
      await nested()
      throw new Error('no')
    }),
  ).rejects.toThrow('no')
  expect(await names()).toEqual([])
})

test('a transaction inside another is a savepoint', async () => {
  await statements.transaction(async () => {
    await add('outer')
    await statements
      .transaction(async () => {
        await add('inner')
        throw new Error('no')
      })
      .catch(() => undefined)
    await statements.transaction(() => add('second'))
  })
  expect(await names()).toEqual(['outer', 'second'])
})

test('savepoints of one transaction at the same time are refused, and nothing is stored', async () => {
  const inner = (name: string) => () =>
    statements.transaction(async () => {
      await add(name)
      await names()
      await names()
    })
  const both = statements.transaction(() => Promise.all([inner('a')(), inner('b')()]))
  await expect(both).rejects.toThrow('at the same time')
  expect(store.sqlite.inTransaction).toBe(false)
  expect(await names()).toEqual([])
})

test('a transaction that waits for something else is rolled back before the next event', async () => {
  const waiting = statements.transaction(async () => {
    await add('a')
    await later(5)
    await add('b')
  })
  const ended = waiting.catch((error: unknown) => String(error))
  await later(0)
  await later(0)
  expect(store.sqlite.inTransaction).toBe(false)
  await add('meanwhile')
  expect(await ended).toContain('waited for something other')
  expect(await names()).toEqual(['meanwhile'])
})

test('what outlives its transaction runs outside it', async () => {
  let outliving: Promise<unknown> = Promise.resolve()
  await statements.transaction(async () => {
    await add('a')
    outliving = later(0).then(() => add('later'))
  })
  await outliving
  expect(store.sqlite.inTransaction).toBe(false)
  expect(await names()).toEqual(['a', 'later'])
})

test('a group of calls is never committed inside a transaction of the API', async () => {
  const failures: unknown[] = []
  const group = new GroupCommit({
    store,
    schedule: (run, ms) => {
      const timer = setTimeout(run, ms)
      return () => clearTimeout(timer)
    },
    onFailure: (error) => failures.push(error),
  })
  let stored: Promise<boolean> = Promise.resolve(false)
  let isFlushed = true
  await expect(
    statements.transaction(async () => {
      await add('of the API')
      const insert = store.sqlite.prepare("INSERT INTO thing (name) VALUES ('of a call')")
      stored = group.written(() => insert.run(), 1_000)
      isFlushed = group.flush()
      throw new Error('no')
    }),
  ).rejects.toThrow('no')
  expect(isFlushed).toBe(false)
  expect(await stored).toBe(true)
  expect(await names()).toEqual(['of a call'])
  expect(failures).toEqual([])
})
