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
})
