/** Many writes in one transaction, on real databases. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openDatabase } from '../../../schema/sqlite/open.ts'
import { PostgresStatements } from '../../../schema/sql/postgres-statements.ts'
import { SqliteStatements } from '../../../schema/sql/sqlite-statements.ts'
import type { Statements } from '../../../schema/sql/statements.ts'
import { Storage } from '../../../schema/storage/storage.ts'
import { QueueFull, runEach, WriteQueue } from '../../../schema/storage/write-queue.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { freshDatabase, hasPostgres } from '../../support/postgres.ts'
import { eventually } from '../../support/waiting.ts'

let statements: Statements
let placeholder = '?'

const execute = (sql: string) => statements.prepare(sql).run([])
const insert = (name: string) =>
  statements.prepare(`INSERT INTO item (name) VALUES (${placeholder})`).run([name])
/** The table is away: nothing can be written. */
const breakTable = () => execute('ALTER TABLE item RENAME TO gone')
const mendTable = () => execute('ALTER TABLE gone RENAME TO item')

function start(options: { readonly maxWaiting?: number; readonly groupRows?: number } = {}) {
  const time = new ManualTime(0)
  const storage = new Storage()
  const failures: string[] = []
  const done: string[] = []
  const refused: string[] = []
  const queue = new WriteQueue({
    store: { statements, storage },
    schedule: time.schedule,
    run: runEach,
    ...options,
    onFailure: (error, waiting) => failures.push(`${(error as Error).name}, ${waiting} waiting`),
  })
  const add = (name: string) =>
    queue.add({
      run: () => insert(name),
      done: (rows) => void done.push(`${name} ${String(rows)}`),
      refused: () => void refused.push(name),
    })
  const stored = async () => {
    const rows = statements.prepare<{ name: string }>('SELECT name FROM item ORDER BY position')
    return (await rows.all([])).map(({ name }) => name)
  }
  /** Lets time pass until a group has been tried. */
  const tried = async (ms: number) => {
    const { commits, failures: before } = queue.stats()
    time.advance(ms)
    await eventually(() => {
      const after = queue.stats()
      expect([after.commits, after.failures]).not.toEqual([commits, before])
    })
  }
  return { time, storage, queue, add, done, refused, failures, stored, tried }
}

function guarantees(): void {
  test('writes of ten milliseconds are stored together and told after their commit, in order, with their results', async () => {
    const { time, queue, add, done, stored, tried } = start()
    add('a')
    time.advance(9)
    add('b')
    expect([await stored(), done, queue.waiting]).toEqual([[], [], 2])
    await tried(1)
    expect([await stored(), done]).toEqual([
      ['a', 'b'],
      ['a 1', 'b 1'],
    ])
    expect(queue.stats()).toEqual({ waiting: 0, commits: 1, failures: 0 })
  })

  test('a group that cannot be stored stays whole, in order, and is told less and less often', async () => {
    const { storage, time, queue, add, done, failures, stored, tried } = start()
    await breakTable()
    add('a')
    add('b')
    await tried(10)
    add('c')
    for (let attempt = 0; attempt < 6; attempt += 1) await tried(1_000)
    expect([done, failures.length, storage.episode]).toEqual([[], 3, 1])
    expect(queue.stats()).toEqual({ waiting: 3, commits: 0, failures: 7 })
    await mendTable()
    await tried(1_000)
    expect([await stored(), done]).toEqual([
      ['a', 'b', 'c'],
      ['a 1', 'b 1', 'c 1'],
    ])
    expect([storage.episode, time.waiting]).toEqual([undefined, 0])
  })

  test('a write that violates a constraint is refused alone; the others of its group are stored', async () => {
    const { add, done, refused, failures, stored, queue } = start()
    for (const name of ['a', 'a', 'b']) add(name)
    queue.add({ run: () => insert('b') })
    expect(await queue.flush()).toBe(true)
    expect([await stored(), done, refused]).toEqual([['a', 'b'], ['a 1', 'b 1'], ['a']])
    expect(failures).toHaveLength(1)
  })

  test('beyond the bound a write is refused at once; it is taken again when there is room', async () => {
    const { add, queue, refused, stored, failures } = start({ maxWaiting: 2 })
    for (const name of ['a', 'b', 'c']) add(name)
    expect([refused, queue.waiting]).toEqual([['c'], 2])
    queue.add({ run: () => insert('d') })
    expect(failures).toEqual([`${QueueFull.name}, 2 waiting`])
    await queue.flush()
    add('e')
    await queue.flush()
    expect(await stored()).toEqual(['a', 'b', 'e'])
  })

  test('a write that is taken back is not stored; when it was the last, nothing fails any more', async () => {
    const { storage, add, queue, stored, tried } = start()
    await breakTable()
    const withdraw = add('a')
    await tried(10)
    expect(storage.episode).toBe(1)
    withdraw()
    await mendTable()
    expect([storage.episode, queue.waiting, await queue.flush()]).toEqual([undefined, 0, true])
    expect(await stored()).toEqual([])
  })

  test('of writes with the same key the second has a group of its own', async () => {
    const { queue, done } = start()
    const add = (name: string, key: string) =>
      queue.add({ run: () => insert(name), done: () => void done.push(name), key })
    add('a', 'one')
    add('b', 'one')
    add('c', 'two')
    await queue.flush()
    expect([done, queue.stats().commits]).toEqual([['a', 'c', 'b'], 2])
  })

  test('a flush writes everything at once, and says whether that worked', async () => {
    const { add, queue, done, time } = start()
    for (let index = 0; index < 250; index += 1) add(`item ${index}`)
    time.advance(10)
    expect(await Promise.all([queue.flush(), queue.flush()])).toEqual([true, true])
    expect([done.length, queue.waiting, time.waiting]).toEqual([250, 0, 0])
    await breakTable()
    add('last')
    expect([await queue.flush(), queue.waiting]).toEqual([false, 1])
    await mendTable()
  })

  test('what a full disk kept waiting is written group by group, with turns for others in between', async () => {
    const { add, queue, stored, tried } = start()
    await breakTable()
    for (let index = 0; index < 250; index += 1) add(`item-${index}`)
    await eventually(() => expect(queue.stats().failures).toBe(1))
    expect(queue.waiting).toBe(250)
    await mendTable()
    const lengths: number[] = []
    for (const ms of [50, 1, 1]) {
      await tried(ms)
      lengths.push((await stored()).length)
    }
    expect(lengths).toEqual([100, 200, 250])
  })

  test('a group has nothing to do with a transaction of its callers', async () => {
    const { queue, add, stored } = start()
    await statements
      .transaction(async () => {
        add('a')
        await insert('rolled back')
        throw new Error('refused')
      })
      .catch(() => undefined)
    await queue.flush()
    expect(await stored()).toEqual(['a'])
  })
}

describe('on SQLite', () => {
  test('a group has as few writes as its queue says, with turns of the event loop between them, unless many wait', async () => {
    const { time, add, queue, done } = start({ groupRows: 3 })
    const groups = async (): Promise<readonly number[]> => {
      const told: number[] = []
      const before = done.length
      while (queue.waiting > 0) {
        const already = done.length
        time.advance(10)
        await eventually(() => expect(done.length).toBeGreaterThan(already))
        told.push(done.length - before)
      }
      return told
    }
    for (let n = 0; n < 7; n += 1) add(`few ${n}`)
    expect(await groups()).toEqual([3, 6, 7])
    for (let n = 0; n < 104; n += 1) add(`many ${n}`)
    expect(await groups()).toEqual([100, 103, 104])
  })

  let close = (): void => undefined

  beforeEach(() => {
    const { sqlite } = openDatabase(':memory:')
    sqlite.exec('CREATE TABLE item (position INTEGER PRIMARY KEY, name TEXT UNIQUE) STRICT')
    statements = new SqliteStatements(sqlite)
    placeholder = '?'
    close = () => void sqlite.close()
  })
  afterEach(() => close())

  guarantees()
})

describe.runIf(hasPostgres)('on PostgreSQL', () => {
  let server: PostgresStatements
  let drop: () => Promise<void>

  beforeAll(async () => {
    const database = await freshDatabase('empty')
    drop = database.drop
    server = new PostgresStatements({ url: database.url, connections: 3 })
    await server.execute(`CREATE TABLE item (
      position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text UNIQUE)`)
  })
  beforeEach(async () => {
    placeholder = '$1'
    statements = server
    await server.execute('TRUNCATE item')
  })
  afterAll(async () => {
    await server.close()
    await drop()
  })

  guarantees()
})
