/**
 * PostgreSQL databases for the tests of one worker. To empty one takes 10 ms, to make one takes a
 * second, and its connections know its tables already: so each is emptied and used again.
 */
import { openStore, type ServerStore } from '../../schema/postgres/open.ts'
import type { PostgresStatements } from '../../schema/sql/postgres-statements.ts'
import { Storage } from '../../schema/storage/storage.ts'
import { freshDatabase } from './postgres.ts'
import { watched } from './watched-statements.ts'

interface Reused {
  readonly store: ServerStore
  readonly url: string
  readonly drop: () => Promise<void>
}

const free: Reused[] = []
const secretKey = Buffer.alloc(32, 7).toString('base64')
/** Statements of stores whose tables a test has changed: they are not used again. */
const changed = new WeakSet<object>()

export interface TakenStore extends ServerStore {
  readonly url: string
  /** Resolves once no statement runs, and none follows. */
  readonly settled: () => Promise<void>
}

/** As a migration leaves it. `close` waits for the statements that run, and refuses later ones. */
export async function takeServerStore(): Promise<TakenStore> {
  const reused = free.pop() ?? (await make())
  const { store, url } = reused
  await store.statements.execute('SELECT test_base.reset()')
  const { statements, settled, whenIdle } = watched(store.statements)
  return {
    ...store,
    statements,
    url,
    settled,
    storage: new Storage(),
    async close() {
      await whenIdle()
      if (changed.has(statements)) await remove(reused)
      else free.push(reused)
    },
  }
}

/** Another test must not find the tables of this one. */
export const tablesChanged = (statements: object): void => void changed.add(statements)

/** Those of a server that outlives the run. */
export async function dropDatabases(): Promise<void> {
  for (const reused of free.splice(0)) await remove(reused)
}

async function remove({ store, drop }: Reused): Promise<void> {
  await store.close()
  await drop()
}

async function make(): Promise<Reused> {
  const { url, drop } = await freshDatabase()
  const store = await openStore(url, { now: 0, connections: 8, secretKey, keyFile: '/none' })
  await keepBase(store.statements)
  return { store, url, drop }
}

/** Makes the function that brings all rows back to those of now. */
async function keepBase(statements: PostgresStatements): Promise<void> {
  const names = await statements
    .prepare<{ readonly name: string }>(
      `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'schema_migration'`,
    )
    .all([])
  const sequences = await statements
    .prepare<{ readonly name: string }>(
      `SELECT sequencename AS name FROM pg_sequences WHERE schemaname = 'public'`,
    )
    .all([])
  const steps: string[] = []
  await statements.execute('CREATE SCHEMA test_base')
  for (const { name } of names) {
    steps.push(`DELETE FROM public."${name}";`)
    const some = await statements.prepare(`SELECT 1 FROM public."${name}" LIMIT 1`).get([])
    if (some === undefined) continue
    await statements.execute(`CREATE TABLE test_base."${name}" AS TABLE public."${name}"`)
    steps.push(`INSERT INTO public."${name}" SELECT * FROM test_base."${name}";`)
  }
  for (const { name } of sequences)
    steps.push(`PERFORM setval('public."${name}"'::regclass, 1, false);`)
  // In the role of a replica no trigger runs, and no reference is checked.
  await statements.execute(`CREATE FUNCTION test_base.reset() RETURNS void LANGUAGE plpgsql
    SET session_replication_role TO replica AS $$ BEGIN ${steps.join('\n')} END $$`)
}
