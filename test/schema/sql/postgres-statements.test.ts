import { describe, expect, onTestFinished, test } from 'vitest'
import { failureOf } from '../../../schema/sql/failure.ts'
import { PostgresStatements } from '../../../schema/sql/postgres-statements.ts'
import { freshDatabase, hasPostgres } from '../../support/postgres.ts'

describe.runIf(hasPostgres)('statements on PostgreSQL', () => {
  test('after a failover, a connection to what is a standby now is not used again', async () => {
    const { url, drop } = await freshDatabase('empty')
    onTestFinished(drop)
    const one = new PostgresStatements({ url, connections: 1 })
    onTestFinished(() => one.close())
    await one.execute('CREATE TABLE thing (name text)')
    await one.execute('SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY')
    const write = () => one.prepare("INSERT INTO thing (name) VALUES ('a')").run([])
    await expect(write()).rejects.toSatisfy((error) => failureOf(error)?.kind === 'unwritable')
    expect(await write()).toBe(1)
  })

  async function withNames() {
    const { url, drop } = await freshDatabase('empty')
    onTestFinished(drop)
    const open = () => {
      const statements = new PostgresStatements({ url, connections: 1 })
      onTestFinished(() => statements.close())
      return statements
    }
    const one = open()
    await one.execute('CREATE TABLE thing (name text UNIQUE)')
    const add = (on: PostgresStatements) =>
      on.prepare("INSERT INTO thing (name) VALUES ('a')").run([])
    const names = () => one.prepare<{ name: string }>('SELECT name FROM thing').all([])
    return { one, other: open(), add, names }
  }

  test('a transaction that writes a name which another one has taken meanwhile runs again, and finds it taken', async () => {
    const { one, other, add, names } = await withNames()
    let runs = 0
    const outcome = await one.transaction(async () => {
      runs += 1
      const taken = await names()
      // After this one has begun to read.
      if (runs === 1) await add(other)
      if (taken.length > 0) return 'taken'
      await add(one)
      return 'added'
    })
    expect([outcome, runs, await names()]).toEqual(['taken', 2, [{ name: 'a' }]])
  })

  test('a name that stays taken is refused after the last run', async () => {
    const { one, add, names } = await withNames()
    await add(one)
    let runs = 0
    const adding = one.transaction(async () => {
      runs += 1
      await add(one)
    })
    await expect(adding).rejects.toSatisfy((error) => failureOf(error)?.kind === 'unique')
    expect([runs, await names()]).toEqual([4, [{ name: 'a' }]])
  })
})
