/** Asynchronous statements and transactions, against real databases. */
import { setTimeout as later } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openDatabase } from '../../../schema/sqlite/open.ts'
import type { LocalStore } from '../../../schema/storage/store.ts'
import { failureOf } from '../../../schema/sql/failure.ts'
import { PostgresStatements } from '../../../schema/sql/postgres-statements.ts'
import type { Statements } from '../../../schema/sql/statements.ts'
import { deferred } from '../../support/deferred.ts'
import { freshDatabase, hasPostgres } from '../../support/postgres.ts'

let statements: Statements
let placeholder = '?'

const add = (name: string) =>
  statements.prepare(`INSERT INTO thing (name) VALUES (${placeholder})`).run([name])
const names = async () =>
  (await statements.prepare<{ name: string }>('SELECT name FROM thing ORDER BY id').all([])).map(
    ({ name }) => name,
  )

/** The promises of both databases. */
function guarantees(): void {
  test('a transaction is committed whole, and its result is returned', async () => {
    const result = await statements.transaction(async () => {
      await add('a')
      await add('b')
      return names()
    })
    expect(result).toEqual(['a', 'b'])
    expect(await names()).toEqual(['a', 'b'])
  })

  test('a rejected transaction is rolled back whole', async () => {
    await add('a')
    const refused = statements.transaction(async () => {
      await add('b')
      await add('a')
    })
    await expect(refused).rejects.toSatisfy((error) => failureOf(error)?.kind === 'unique')
    expect(await names()).toEqual(['a'])
  })

  test('a locked transaction is committed or rolled back whole, too', async () => {
    await statements.lockedTransaction(() => add('a'))
    const refused = statements.lockedTransaction(async () => {
      await add('b')
      throw new Error('no')
    })
    await expect(refused).rejects.toThrow('no')
    expect(await names()).toEqual(['a'])
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
    expect(await names()).toEqual([])
  })

  test('what waits for a commit runs after it, outside the transaction, and never after a rollback', async () => {
    const told: string[] = []
    const tell = (what: string) => statements.afterCommit(() => void told.push(what))
    let seen: Promise<readonly string[]> = Promise.resolve([])
    await statements.transaction(async () => {
      await add('a')
      tell('outer')
      await statements.transaction(async () => tell('inner'))
      await statements
        .transaction(async () => {
          tell('rolled back')
          throw new Error('no')
        })
        .catch(() => undefined)
      statements.afterCommit(() => void (seen = names()))
      expect(told).toEqual([])
    })
    expect(told).toEqual(['outer', 'inner'])
    expect(await seen).toEqual(['a'])
    const refused = statements.transaction(async () => {
      tell('never')
      throw new Error('no')
    })
    await expect(refused).rejects.toThrow('no')
    tell('at once')
    expect(told).toEqual(['outer', 'inner', 'at once'])
  })

  test('what outlives its transaction runs outside it', async () => {
    let outliving: Promise<unknown> = Promise.resolve()
    await statements.transaction(async () => {
      await add('a')
      outliving = later(0).then(() => add('later'))
    })
    await outliving
    expect(await names()).toEqual(['a', 'later'])
  })

  test('rows come as objects or arrays, and changes are counted', async () => {
    await add('a')
    await add('b')
    const all = statements.prepare<{ id: number; name: string }>(
      'SELECT id, name FROM thing ORDER BY id',
    )
    expect(await all.all([])).toEqual([
      { id: 1, name: 'a' },
      { id: 2, name: 'b' },
    ])
    expect(await all.get([])).toEqual({ id: 1, name: 'a' })
    expect(await all.arrays([])).toEqual([
      [1, 'a'],
      [2, 'b'],
    ])
    const rename = statements.prepare(`UPDATE thing SET name = name || ${placeholder}`)
    expect(await rename.run(['!'])).toBe(2)
    expect(await statements.prepare('DELETE FROM thing WHERE id = 7').run([])).toBe(0)
  })

  test('values come back as they went', async () => {
    const values = [9_007_199_254_740_991, 0.25, 'é', Buffer.from([0, 255]), null]
    await statements.prepare(insertKinds(placeholder)).run(values)
    const kept = statements.prepare('SELECT whole, real, text, bytes, none FROM kinds')
    expect(await kept.arrays([])).toEqual([values])
    const figures = statements.prepare(
      'SELECT count(*), sum(whole), max(whole), coalesce(sum(none), 0) FROM kinds WHERE whole > 1',
    )
    expect(await figures.arrays([])).toEqual([[1, 9_007_199_254_740_991, 9_007_199_254_740_991, 0]])
    const sums = statements.prepare('SELECT CAST(sum(big) AS TEXT) AS big FROM kinds')
    await statements.prepare('UPDATE kinds SET big = 9000000000000000001').run([])
    expect(await sums.get([])).toEqual({ big: '9000000000000000001' })
  })
}

const insertKinds = (mark: string): string =>
  mark === '?'
    ? 'INSERT INTO kinds (whole, real, text, bytes, none) VALUES (?, ?, ?, ?, ?)'
    : 'INSERT INTO kinds (whole, real, text, bytes, none) VALUES ($1, $2, $3, $4, $5)'

describe('on SQLite', () => {
  let store: LocalStore

  beforeEach(() => {
    store = openDatabase(':memory:')
    store.sqlite.exec(
      `CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
       CREATE TABLE kinds (whole INTEGER, real REAL, text TEXT, bytes BLOB, none INTEGER, big INTEGER)`,
    )
    statements = store.statements
    placeholder = '?'
  })
  afterEach(() => {
    expect(store.sqlite.inTransaction).toBe(false)
    store.close()
  })

  guarantees()

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
})

describe.runIf(hasPostgres)('on PostgreSQL', () => {
  let server: PostgresStatements
  let drop: () => Promise<void>
  let url: string

  beforeAll(async () => {
    ;({ url, drop } = await freshDatabase('empty'))
    server = new PostgresStatements({ url })
    await server.execute(
      `CREATE TABLE thing (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE);
       CREATE TABLE kinds (whole bigint, real double precision, text text, bytes bytea, none bigint, big bigint)`,
    )
  })
  beforeEach(async () => {
    await server.execute('TRUNCATE thing, kinds RESTART IDENTITY')
    statements = server
    placeholder = '$1'
  })
  afterAll(async () => {
    await server.close()
    await drop()
  })

  guarantees()

  const count = async (): Promise<number> => {
    const row = await statements.prepare<{ n: number }>('SELECT count(*) AS n FROM thing').get([])
    return row?.n ?? -1
  }

  test('rows are copied with the bytes that are stored', async () => {
    const bytes = [0, 1, 255, 256, 4_096, 70_000].map((length) =>
      Buffer.from(Array.from({ length }, (_, at) => (at * 7) % 256)),
    )
    const insert = statements.prepare('INSERT INTO kinds (whole, text, bytes) VALUES ($1, $2, $3)')
    for (const [whole, each] of bytes.entries()) await insert.run([whole, `é${whole}`, each])
    await insert.run([bytes.length, null, null])
    const query = 'SELECT text, bytes FROM kinds ORDER BY whole'
    const wanted = [...bytes.map((each, whole) => [Buffer.from(`é${whole}`), each]), [null, null]]
    expect(await server.copied(query)).toEqual(wanted)
    expect(await server.copied(`${query} LIMIT 0`)).toEqual([])
    // Numbers are read from them as they lie in memory.
    const kept = await server.copied(query)
    expect(kept.flat().every((each) => (each?.byteOffset ?? 0) % 8 === 0)).toBe(true)
    expect(await Promise.all([query, query, query].map((each) => server.copied(each)))).toEqual([
      wanted,
      wanted,
      wanted,
    ])
  })

  test('a copy sees what its transaction has written, and one that fails leaves the connection usable', async () => {
    const one = new PostgresStatements({ url, connections: 1 })
    await one.lockedTransaction(async () => {
      await one.prepare("INSERT INTO thing (name) VALUES ('a')").run([])
      expect(await one.copied('SELECT name FROM thing')).toEqual([[Buffer.from('a')]])
    })
    await expect(one.copied('SELECT none_such FROM thing')).rejects.toThrow('none_such')
    expect(await one.copied('SELECT name FROM thing')).toEqual([[Buffer.from('a')]])
    await one.close()
  })

  test('however many write what all of them read, none is refused', async () => {
    const more = new PostgresStatements({ url })
    const addOne = (on: PostgresStatements) => () =>
      on.transaction(async () => {
        const rows = await on.prepare<{ n: number }>('SELECT count(*) AS n FROM thing').all([])
        await on.prepare('INSERT INTO thing (name) VALUES ($1)').run([`thing ${rows[0]?.n}`])
      })
    const both = [addOne(server), addOne(more)]
    await Promise.all(Array.from({ length: 20 }, () => both.map((begin) => begin())).flat())
    await more.close()
    expect(await count()).toBe(40)
  })

  test('a locked transaction runs once, whatever others add', async () => {
    let runs = 0
    const bothHaveRead = deferred()
    const addAfterReading = (name: string) =>
      statements.lockedTransaction(async () => {
        runs += 1
        await count()
        if (runs === 2) bothHaveRead.resolve()
        await bothHaveRead.promise
        await add(name)
      })
    await Promise.all([addAfterReading('a'), addAfterReading('b')])
    expect([await count(), runs]).toEqual([2, 2])
  })

  test.each(['transaction', 'lockedTransaction'] as const)(
    'of two that wait for each other both succeed: %s',
    async (kind) => {
      await add('a')
      await add('b')
      const set = statements.prepare('UPDATE thing SET name = name || $1 WHERE id = $2')
      const both = (first: number, second: number) =>
        statements[kind](async () => {
          await set.run(['x', first])
          await set.run(['x', second])
        })
      await Promise.all([both(1, 2), both(2, 1)])
      expect((await names()).toSorted()).toEqual(['axx', 'bxx'])
    },
  )

  test('a transaction that writes a name which another one has taken meanwhile runs again, and finds it taken', async () => {
    const other = new PostgresStatements({ url, connections: 1 })
    let runs = 0
    const outcome = await statements.transaction(async () => {
      runs += 1
      const taken = await names()
      // After this one has begun to read.
      if (runs === 1) await other.prepare("INSERT INTO thing (name) VALUES ('a')").run([])
      if (taken.length > 0) return 'taken'
      await add('a')
      return 'added'
    })
    await other.close()
    expect([outcome, runs, await names()]).toEqual(['taken', 2, ['a']])
  })

  test('a name that stays taken is refused after the last run', async () => {
    await add('a')
    let runs = 0
    const adding = statements.transaction(async () => {
      runs += 1
      await add('a')
    })
    await expect(adding).rejects.toSatisfy((error) => failureOf(error)?.kind === 'unique')
    expect([runs, await names()]).toEqual([4, ['a']])
  })

  test('after a failover, a connection to what is a standby now is not used again', async () => {
    const one = new PostgresStatements({ url, connections: 1 })
    await one.execute('SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY')
    const write = () => one.prepare("INSERT INTO thing (name) VALUES ('a')").run([])
    await expect(write()).rejects.toSatisfy((error) => failureOf(error)?.kind === 'unwritable')
    expect(await write()).toBe(1)
    await one.close()
  })

  test.each([
    ['a server that does not exist', { url: 'postgres://localhost:1/nowhere' }],
    ['one that takes too long for a statement', { statementTimeoutMs: 50 }],
  ])('%s is unavailable', async (_, options) => {
    const tried = new PostgresStatements({ url, ...options })
    await expect(tried.prepare('SELECT pg_sleep(20)').get([])).rejects.toSatisfy(
      (error) => failureOf(error)?.kind === 'unavailable',
    )
    await tried.close()
  })

  test('work that goes on after a failed statement is not taken for committed', async () => {
    const careless = statements.transaction(async () => {
      await add('a')
      await add('a').catch(() => undefined)
    })
    await expect(careless).rejects.toThrow('had failed')
    expect(await names()).toEqual([])
  })

  test('a number that would be another one is an error', async () => {
    await statements.prepare('INSERT INTO kinds (big) VALUES (9000000000000000001)').run([])
    await expect(statements.prepare('SELECT big FROM kinds').all([])).rejects.toThrow('too large')
    expect(await count()).toBe(0)
  })

  test('a connection that breaks fails what runs on it, and is replaced', async () => {
    const kill = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()
                  AND datname = current_database()`
    const other = new PostgresStatements({ url, connections: 1 })
    const broken = statements.transaction(async () => {
      await add('a')
      await other.prepare(kill).run([])
      await add('b')
    })
    await expect(broken).rejects.toSatisfy((error) => failureOf(error)?.kind === 'unavailable')
    await other.close()
    await expect.poll(count).toBe(0)
    await add('c')
    expect(await names()).toEqual(['c'])
  })
})
